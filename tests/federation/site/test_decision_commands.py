"""The commands by which the people of a site are listed, and decide."""

import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.cli.site import account
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.people import People
from dpcausal.federation.site.site import Site
from tests.support.site_folders import person_key


def run(*words: object, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["site", *map(str, words)], input=answer)


@pytest.fixture
def digest(north: Site, study: Study) -> str:
    return north.receive(study.to_toml())


def test_person_creates_a_key_is_added_and_approves(north: Site, folder: Path, digest: str, tmp_path: Path) -> None:
    file = tmp_path / "adams.key"
    made = run("create-person-key", file)
    assert made.exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    public = made.output.split()[-1]
    assert run("person-key", file).output.strip() == public
    early = run("approve", folder, digest, "--key", file, "--yes")
    assert early.exit_code == 2
    assert "this site has no approvers yet" in early.output
    roles = ("--role", "approver", "--role", "reader")
    added = run("people", "add", folder, " Dr.  Adams", *roles, "--key", public, "--by", "Otto")
    assert added.output == "Added Dr. Adams as approver, reader.\n"
    listed = run("people", "list", folder).output
    assert "Dr. Adams" in listed
    assert public in listed
    approved = run("approve", folder, digest, "--key", file, "--yes", "--why", "board of 3 May")
    assert approved.exit_code == 0
    assert "Study scores at north" in approved.output
    assert approved.output.endswith(f"Approved {digest}. Status: approved.\n")
    assert run("people", "remove", folder, "dr. adams").output == "Removed Dr. Adams.\n"
    assert north.status(digest) == "undecided"
    events = [(entry.kind, entry.who) for entry in north.audit_log.entries()]
    assert events == [("people", "Dr. Adams"), ("approve", "Dr. Adams"), ("people", "Dr. Adams")]
    added_by, _, removed_by = (entry.what.rpartition(", by ")[2] for entry in north.audit_log.entries())
    assert (added_by, removed_by) == ("Otto", account())
    assert "Nobody can decide here yet" in run("people", "list", folder).output


def test_existing_file_is_not_overwritten_by_a_new_key(tmp_path: Path) -> None:
    file = tmp_path / "adams.key"
    run("create-person-key", file)
    before = file.read_text()
    refused = run("create-person-key", file)
    assert refused.exit_code == 2
    assert "exists already" in refused.output
    assert file.read_text() == before


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_decision_needs_the_whole_digest(folder: Path, digest: str, command: str, study: Study, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(study.to_toml())
    for digits in (digest[:12], digest[:63], f"{digest}0", digest.upper(), file, ""):
        refused = run(command, folder, digits, "--key", person_key(folder, "bob"), "--yes")
        assert refused.exit_code == 2
        assert "the whole digest of a study" in refused.output
    assert not Site(folder).audit_log.decided()


def test_nothing_is_decided_without_a_confirmation(
    north: Site, folder: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = person_key(folder, "bob")
    unasked = run("approve", folder, digest, "--key", key)
    assert unasked.exit_code == 2
    assert "no terminal to confirm on" in unasked.output
    monkeypatch.setattr("dpcausal.cli.requirements._is_terminal", lambda: True)
    assert run("approve", folder, digest, "--key", key, answer="n\n").exit_code == 1
    assert north.status(digest) == "undecided"
    confirmed = run("approve", folder, digest, "--key", key, answer="y\n")
    assert f"Approve this study, digest {digest}, as bob?" in confirmed.output
    assert north.status(digest) == "approved"


def test_key_of_a_stranger_is_refused(north: Site, folder: Path, digest: str, tmp_path: Path) -> None:
    person_key(folder, "bob")
    run("create-person-key", tmp_path / "eve.key")
    refused = run("approve", folder, digest, "--key", tmp_path / "eve.key", "--yes")
    assert refused.exit_code == 2
    assert "approvers are: bob" in refused.output
    assert north.status(digest) == "undecided"


@pytest.mark.parametrize(("name", "role"), [("Ad\x1bams", "approver"), ("", "approver"), ("Adams", "owner")])
def test_people_add_refuses_unusable_names_and_roles(folder: Path, name: str, role: str) -> None:
    refused = run("people", "add", folder, name, "--role", role, "--key", "ab" * 32)
    assert refused.exit_code == 2
    assert "\x1b" not in refused.output
    assert not People.read(folder).people


def test_full_disk_is_reported_in_words(
    north: Site, folder: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = person_key(folder, "bob")
    write = os.write

    def full(descriptor: int, text: bytes) -> int:
        if b"sealed" in text:
            raise OSError(28, "No space left on device")
        return write(descriptor, text)

    monkeypatch.setattr("os.write", full)
    refused = run("approve", folder, digest, "--key", key, "--yes")
    assert refused.exit_code == 2
    assert "No space left on device" in refused.output
    assert isinstance(refused.exception, SystemExit)
    monkeypatch.undo()
    assert north.status(digest) == "undecided"


def test_audit_log_command_counts_forged_requests_and_makes_a_lost_index_again(
    north: Site, folder: Path, tmp_path: Path
) -> None:
    forger = Key.make("anna", tmp_path / "forged.key")
    for number in range(40):
        north.answer(forger.seal(f"request {number}"))
    entries = north.audit_log.entries()
    assert [(entry.kind, entry.who) for entry in entries] == [("forged", "anna")] * 10 + [("forged", "")] * 2
    shown = run("audit-log", folder)
    assert shown.exit_code == 0
    assert ": 40." in shown.output
    (folder / "audit_log.index").unlink()
    refused = run("audit-log", folder)
    assert refused.exit_code == 2
    assert "--rebuild-index" in refused.output
    assert run("audit-log", folder, "--rebuild-index").exit_code == 0
    assert north.audit_log.entries()[-1].kind == "index"


def test_nobody_changes_people_under_an_unreadable_name(folder: Path) -> None:
    person_key(folder, "bob")
    for words in (("add", folder, "carol", "--role", "reader"), ("remove", folder, "bob")):
        done = run("people", *words, "--by", "\x1b[2J")
        assert done.exit_code == 2
        assert [person.name for person in Site(folder).people.people] == ["bob"]


def test_nobody_is_added_without_a_line_in_the_audit_log(folder: Path) -> None:
    (folder / "audit_log.jsonl").mkdir()
    refused = run("people", "add", folder, "Adams", "--role", "approver", "--key", "ab" * 32)
    assert refused.exit_code == 2
    assert not People.read(folder).people
