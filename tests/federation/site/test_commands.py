"""The command line of a site, as its people use it."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.testing import synthetic_table
from dpcausal.utils.hash_chain import digest_of_text
from tests.federation.site.conftest import SCHEMA
from tests.support.site_folders import confirm_settings, person_key


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["site", *map(str, words)])


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a site answer in this process. One test below has the process of its own, and `test_worker` tests it."""
    monkeypatch.setattr("dpcausal.cli.site.run_in_subprocess", lambda folder, request: Site(folder).answer(request))


@pytest.fixture
def study_file(tmp_path: Path, study: Study) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(study.to_toml())
    return file


def decide(folder: Path, study_file: Path, command: str = "approve", by: str = "bob", *more: str) -> Result:
    """Receive a study, then decide about it by its digest with a person's own key."""
    run("review", folder, study_file)
    digest = digest_of_text(study_file.read_text())
    return run(command, folder, digest, "--key", person_key(folder, by), "--yes", *more)


def test_init_creates_a_key_and_a_policy_to_fill_in(tmp_path: Path) -> None:
    done = run("init", tmp_path / "west", "west")
    assert done.exit_code == 0
    assert Site(tmp_path / "west").public_key in done.output
    assert Policy.read(tmp_path / "west").columns == ()
    assert run("key", tmp_path / "west").output.strip() in done.output
    early = run("create-ledger", tmp_path / "west")
    assert early.exit_code == 2
    assert "lists no columns yet" in early.output
    policy = tmp_path / "west" / "policy.toml"
    policy.write_text(policy.read_text().replace("columns = []", 'columns = ["score"]'))
    made = run("create-ledger", tmp_path / "west")
    assert "with a budget of epsilon 3, delta 0 (additive)" in made.output
    assert run("create-ledger", tmp_path / "west").exit_code == 2
    again = run("init", tmp_path / "west", "west")
    assert again.exit_code == 2
    assert "holds a site already" in again.output


@pytest.mark.parametrize("name", ["", "no rth", "../north", "server", "n" * 64])
def test_init_refuses_an_invalid_site_name(tmp_path: Path, name: str) -> None:
    assert run("init", tmp_path / "west", name).exit_code == 2


def test_review_approve_and_answer_in_order(
    folder: Path, study_file: Path, request_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpcausal.cli.site.run_in_subprocess", run_in_subprocess)
    digest = digest_of_text(study_file.read_text())
    assert "has not received a study yet" in run("review", folder).output
    assert digest in run("review", folder, study_file).output
    assert digest in run("review", folder).output
    early = run("answer", folder, request_file, "--out", tmp_path / "early.json")
    assert early.exit_code == 1
    assert "north has not decided on the study yet" in early.output
    approved = decide(folder, study_file, "approve", "bob", "--why", "as the board decided")
    assert (approved.exit_code, approved.output.split()[-1]) == (0, "approved.")
    assert run("answer", folder, request_file, "--out", tmp_path / "message.json").exit_code == 0
    assert Message.from_json(claimed_body((tmp_path / "message.json").read_text())).code == "answered"
    log = run("audit-log", folder).output
    assert "bob" in log
    assert "as the board" in log
    assert decide(folder, study_file, "reject", "carol").exit_code == 0
    assert "rejected" in run("review", folder).output


@pytest.mark.parametrize("name", ["policy.toml", "site.key", "ledger.db", "audit_log.jsonl", "new.json", "a/../x"])
def test_answer_never_writes_into_the_folder_of_the_site(folder: Path, request_file: Path, name: str) -> None:
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    link = request_file.with_name("link.json")
    link.symlink_to(folder / name)
    for out in (folder / name, link):
        for more in ((), ("--overwrite",)):
            refused = run("answer", folder, request_file, "--out", out, *more)
            assert refused.exit_code == 2
            assert "is in the site's folder" in refused.output
    assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


def test_answer_replaces_a_file_only_when_asked_to(folder: Path, request_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "message.json"
    out.write_text("mine")
    refused = run("answer", folder, request_file, "--out", out)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.output
    assert out.read_text() == "mine"
    assert run("answer", folder, request_file, "--out", out, "--overwrite").exit_code == 1
    assert Message.from_json(claimed_body(out.read_text())).code == "undecided"


def test_answer_does_not_open_pipes_or_large_files(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1_500_000_000)
    for name in ("pipe", "large"):
        refused = run("answer", folder, tmp_path / name, "--out", tmp_path / "message.json")
        assert refused.exit_code == 2
        assert "a regular file of at most 20,000,000 bytes" in refused.output


@pytest.fixture
def request_file(tmp_path: Path, requester: Key, study: Study) -> Path:
    file = tmp_path / "scores.request.json"
    file.write_text(requester.seal(Request(study=study.to_toml(), ask="releases").to_json()))
    return file


def test_changed_table_is_explained_at_the_site_only(
    folder: Path, study_file: Path, request_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "message.json"
    assert decide(folder, study_file).exit_code == 0
    assert run("answer", folder, request_file, "--out", out).exit_code == 0
    pq.write_table(synthetic_table(SCHEMA, 401), folder / "table.parquet")
    for stored in (folder / "messages").iterdir():  # as if the study were a new one
        stored.unlink()
    failed = run("answer", folder, request_file, "--out", out, "--overwrite")
    assert failed.exit_code == 1
    assert "could not compute its answer" in failed.output
    why = [line for line in failed.output.splitlines() if "dpcausal site review" in line]
    assert why
    assert Message.from_json(claimed_body(out.read_text())).answer is None
    reviewed = run("review", folder, digest_of_text(study_file.read_text()))
    assert reviewed.exit_code == 2
    assert "another number of units than this ledger's data set has" in reviewed.output


def test_review_refuses_a_changed_budget_and_a_broken_ledger(
    folder: Path, study_file: Path, request_file: Path, tmp_path: Path
) -> None:
    decide(folder, study_file)
    run("answer", folder, request_file, "--out", tmp_path / "message.json")
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("epsilon = 3.0", "epsilon = 9.0"))
    raised = run("review", folder, study_file)
    assert raised.exit_code == 2
    assert "This ledger was created with the budget epsilon 3" in raised.output
    (folder / "ledger.db").write_text("not a ledger")
    broken = run("review", folder, study_file)
    assert broken.exit_code == 2
    assert "is no ledger" in broken.output


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("epsilon = 3.0", "epsilon = 0.5"), ("too little budget left", "cannot be raised")),
        (('as_of = "2026-06-30"', 'as_of = "2026-09-30"'), ("could not compute", "dpcausal site review")),
        (("minimum_units = 100", "minimum_units = 401"), ("too few units", "minimum_units")),
        (("anna = ", "bella = "), ("does not know the requester", "federation key")),
        (("epsilon_per_study = 2.0", "epsilon_per_study = 0.5"), ("does not allow", "dpcausal site review")),
        (("table.parquet", "absent.parquet"), ("could not compute", "dpcausal site review")),
    ],
)
def test_answer_prints_a_hint_for_each_refusal(
    change: tuple[str, str], expected: tuple[str, str], study_file: Path, request_file: Path, folder: Path
) -> None:
    decide(folder, study_file)
    policy = folder / "policy.toml"
    assert change[0] in policy.read_text()
    policy.write_text(policy.read_text().replace(*change))
    confirm_settings(folder)
    if "budget" in expected[0]:
        (folder / "ledger.db").unlink()
        assert run("create-ledger", folder).exit_code == 0
        decide(folder, study_file)  # approvals before a new ledger do not count
    refused = run("answer", folder, request_file, "--out", study_file.with_name("message.json"))
    assert refused.exit_code == 1
    words, hint = refused.output.split("\n\nHint: ")
    assert expected[0] in words
    assert expected[1] in hint


def test_commands_refuse_files_of_the_wrong_kind(
    folder: Path, study_file: Path, request_file: Path, tmp_path: Path
) -> None:
    renamed, garbled = study_file.with_suffix(".txt"), tmp_path / "garbled.toml"
    study_file.rename(renamed)
    garbled.write_bytes(b"\xff")
    assert run("review", folder, renamed).exit_code == 0
    message = tmp_path / "message.json"
    run("answer", folder, request_file, "--out", message)
    for words, expected in (
        (("review", folder, study_file), f"{study_file} cannot be used (No such file or directory)"),
        (("review", folder, garbled), "is not a study file in UTF-8"),
        (("answer", folder, renamed, "--out", message), "ends in .request.json"),
        (("answer", folder, message, "--out", message), "ends in .request.json"),
        (("answer", folder, folder / "table.parquet", "--out", message), "not a request or a message"),
        (("answer", folder, request_file, "--out", tmp_path / "absent" / "message.json"), "cannot be written"),
    ):
        refused = run(*words)
        assert refused.exit_code == 2, words
        assert expected in refused.output, refused.output
        assert "Traceback" not in refused.output


def test_commands_report_a_file_without_permission(
    folder: Path, study_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder / "audit_log.jsonl"))

    monkeypatch.setattr("os.open", closed)
    refused = run("review", folder, study_file)
    assert refused.exit_code == 2
    assert "audit_log.jsonl cannot be used (Permission denied)" in refused.output


def test_approve_prints_the_objections_of_the_policy(folder: Path, study_file: Path) -> None:
    study_file.write_text(study_file.read_text().replace("epsilon = 1.0", "epsilon = 50.0"))
    refused = decide(folder, study_file)
    assert refused.exit_code == 2
    assert "epsilon is above 2" in refused.output
    assert "Traceback" not in refused.output


def test_commands_refuse_a_folder_without_a_site(tmp_path: Path) -> None:
    refused = run("review", tmp_path)
    assert refused.exit_code == 2
    assert "dpcausal site init" in refused.output


def test_approve_refuses_an_unknown_digest(folder: Path) -> None:
    refused = run("approve", folder, "ab" * 32, "--key", person_key(folder, "bob"), "--yes")
    assert refused.exit_code == 2
    assert "the whole digest of a study that this site has" in refused.output


def test_network_commands_name_the_missing_step(folder: Path, study_file: Path) -> None:
    for words in (("serve", folder), ("install-kit", folder, study_file, "SHA256:AB")):
        refused = run(*words)
        assert refused.exit_code == 2
        assert "dpcausal site request-kit" in refused.output.replace("\n", " ")
    (folder / "nvflare" / "kit").mkdir(parents=True)
    (folder / "nvflare" / "participant.yml").write_text('{"name": "hips"}')
    again = run("install-kit", folder, study_file, "SHA256:AB")
    assert again.exit_code == 2
    assert "dpcausal site serve" in again.output.replace("\n", " ")
