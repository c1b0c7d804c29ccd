"""Changes of a site that a person's own key signs: who made them is more than a name on a command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import LedgerError, StudyError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.export import events
from dpcausal.federation.site.people import People, Person
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.rotation import rotate_key
from dpcausal.federation.site.signed_changes import Signer, known_keys, verified_changes
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.ledger import Budget, Ledger
from dpcausal.study.study import Study
from tests.support.site_folders import approve_study, confirm_settings, person_key


@pytest.fixture
def bob(folder: Path) -> Path:
    """The key of the site's first person, at a site whose policy requires signatures."""
    text = (folder / FILE).read_text(encoding="utf-8")
    (folder / FILE).write_text(f"signed_changes = true\n{text}", encoding="utf-8")
    confirm_settings(folder)  # nobody can sign yet
    return person_key(folder, "bob")


def words(folder: Path) -> list[str]:
    return [each.words for each in verified_changes(Site(folder).audit_log.entries(), "north")]


def run(*command: object, typed: str = "") -> str:
    return CliRunner().invoke(app, ["site", *map(str, command)], input=typed).output


def test_every_change_needs_the_signature_of_a_person_whom_the_site_knows(folder: Path, bob: Path) -> None:
    assert words(folder) == ["not signed"] * 2  # the first person, too: nobody could sign
    dora, _ = (Key.make(name, folder.with_name(f"{name}.key")) for name in ("dora", "stranger"))
    add = ("people", "add", folder, "Dora", "--role", "operator", "--key", dora.public)
    assert "requires that a person signs each change" in run(*add)
    stranger_key = folder.with_name("stranger.key")
    assert "not the key of an approver or operator" in run(*add, "--sign", stranger_key)
    assert "Added Dora" in run(*add, "--by", "somebody else", "--sign", bob)
    with pytest.raises(StudyError, match="signs each change"):
        Changes(folder).set_console_key("ab" * 32)
    with pytest.raises(StudyError, match="signs each change"):
        rotate_key(folder, "bob", lambda *_: None)
    dora_key = folder.with_name("dora.key")
    people = ("people", "add", folder, "Finn", "--role", "reader", "--login", "finn", "--sign", dora_key)
    assert "Added Finn" in run(*people)
    assert "signs each change" in run("set-password", folder, "finn")
    assert "Set the password" in run("set-password", folder, "finn", "--sign", dora_key, typed="a long pass phrase\n")
    assert "Removed bob" in run("people", "remove", folder, "bob", "--sign", dora_key)
    assert "not the key of an approver or operator" in run(*add[:3], "Eve", *add[4:], "--sign", bob)
    text = (folder / FILE).read_text(encoding="utf-8")
    (folder / FILE).write_text(text.replace("signed_changes = true", "signed_changes = false"), encoding="utf-8")
    confirm = ("confirm", folder, "--why", "simpler", "--yes")
    assert "signs each change" in run(*confirm, "--by", "dora")  # an edit does not lift it
    (folder / "ledger.db").rename(folder / "aside.db")
    for broken in (b"", b"no ledger"):  # neither does a ledger that was moved away, or cannot be used
        (folder / "ledger.db").write_bytes(broken)
        assert "signs each change" in run("people", "add", folder, "Eve", "--role", "reader", "--login", "eve")
    (folder / "aside.db").replace(folder / "ledger.db")
    assert "Confirmed" in run(*confirm, "--sign", dora_key)
    rotate_key(folder, "dora", lambda *_: None, dora)
    assert words(folder)[2:] == ["signed by bob", *["signed by Dora"] * 5]
    assert "by bob (signed by bob)" in run("audit-log", folder)
    assert [each.detail.rpartition(" (")[2] for each in events(Site(folder))][-1] == "signed by Dora)"


def test_a_signature_counts_for_one_change_by_one_who_could_make_it(folder: Path, bob: Path) -> None:
    changes = Changes(folder, Key.read("", bob))
    changes.add_person(Person("dora", ("operator",), key="ab" * 32))
    log = Site(folder).audit_log
    entries = log.entries()
    assert [each.words for each in verified_changes(entries, "south")][-1] == "signed for another change"
    signed = entries[-1]
    for part, other in {"who": "eve", "what": "removed", "at": "2026-01-01T00:00:00+00:00", "kind": "key"}.items():
        changed = type(signed)(**{**vars(signed), part: other})
        (*_, last) = verified_changes([*entries[:-1], changed], "north")
        assert last.problem, part
    (*_, early) = verified_changes([signed], "north")
    assert "did not know" in early.problem
    eve = Key.make("eve", folder.with_name("eve.key"))
    log.write("people", "", "carl", "removed", Signer("north", "bob", eve))
    assert "did not know" in words(folder)[-1]
    check = next(each for each in site_status(folder).checks if each.name == "audit_log")
    assert (check.level, "did not know" in check.words) == (2, True)


def test_a_signature_does_not_count_again_further_down_the_log(folder: Path, bob: Path) -> None:
    Changes(folder, Key.read("", bob)).add_person(Person("dora", ("reader",), login="dora"))
    log = Site(folder).audit_log
    *_, signed = log.entries()
    with log._locked() as descriptor:
        log._append(
            descriptor, **{each: getattr(signed, each) for each in ("kind", "study", "who", "what", "at", "sealed")}
        )
    assert words(folder)[-2:] == ["signed by bob", "signed for another change"]
    check = next(each for each in site_status(folder).checks if each.name == "audit_log")
    assert check.level == 2


def test_a_new_ledger_needs_a_signature_and_ends_earlier_approvals(folder: Path, bob: Path, study: Study) -> None:
    approve_study(folder, study, "bob")
    own, site = Key.read("", bob), Site(folder)
    Changes(folder, own).add_person(Person("dora", ("reader",), login="dora"))
    text = (folder / FILE).read_text(encoding="utf-8")
    edited = text.replace("signed_changes = true", "signed_changes = false").replace('"ledger.db"', '"b.db"')
    (folder / FILE).write_text(edited, encoding="utf-8")
    assert "signs each change" in run("create-ledger", folder)
    Ledger.create(f"sqlite:///{folder / 'b.db'}", Budget(epsilon=3.0), as_of=site.policy.as_of)
    for change in (lambda: confirm_settings(folder), lambda: Changes(folder).remove_person("dora")):
        with pytest.raises(StudyError, match="signs each change"):  # neither does a ledger that records nothing lift it
            change()
    (folder / "b.db").unlink()
    assert site.status(study.digest) == "approved"
    assert "Created" in run("create-ledger", folder, "--sign", bob)
    assert (words(folder)[-1], Changes(folder).unconfirmed()) == ("signed by bob", None)
    assert Site(folder).status(study.digest) == "undecided"
    Changes(folder).remove_person("dora")  # a signed line lifted it


def test_the_key_of_a_reader_signs_nothing(folder: Path, bob: Path) -> None:
    rita = Key.make("rita", folder.with_name("rita.key"))
    Changes(folder, Key.read("", bob)).add_person(Person("rita", ("reader",), key=rita.public))
    log = Site(folder).audit_log
    assert rita.public not in known_keys(log.people())
    log.write("people", "", "bob", "removed", Signer("north", "rita", rita))
    assert "did not know" in words(folder)[-1]


def test_only_a_decision_has_a_login(folder: Path, bob: Path) -> None:
    Changes(folder, Key.read("", bob)).add_person(Person("dora", ("reader",), login="dora"))
    assert Site(folder).audit_log.entries()[-1].sealed
    assert {entry.login for entry in Site(folder).audit_log.entries()} == {""}


def test_a_key_written_into_the_file_by_hand_signs_nothing(folder: Path, bob: Path) -> None:
    eve = Key.make("eve", folder.with_name("eve.key"))
    people = People.read(folder)
    People((*people.people, Person("eve", ("approver",), key=eve.public)), people.console_key).write(folder)
    with pytest.raises(StudyError, match="audit log of the site knows"):
        Changes(folder, eve).confirm("eve", "mine now")


def test_unsigned_changes_are_counted_and_decisions_still_need_signatures(folder: Path, bob: Path) -> None:
    Changes(folder, Key.read("", bob)).add_person(Person("dora", ("operator",), key="ab" * 32))
    assert next(each for each in site_status(folder).checks if each.name == "audit_log").level == 0
    Site(folder).audit_log.write("people", "", "dora", "removed")
    check = next(each for each in site_status(folder).checks if each.name == "audit_log")
    assert (check.level, "1 changes not signed" in check.words) == (1, True)
    file = folder / "audit_log.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(bool(each["sealed"]) for each in lines) == 1
    lines[-1] |= {"kind": "answer", "sealed": lines[-2]["sealed"]}
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(LedgerError):
        Site(folder).audit_log.entries()
