"""The command line of a site, as its people use it."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.protocol import Message, Request, digest_of_text
from dpcausal.federation.signatures import Key, claimed_body
from dpcausal.site.policy import Policy
from dpcausal.site.site import Site
from dpcausal.testing import synthetic_table
from tests.site.conftest import SCHEMA


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["site", *map(str, words)])


@pytest.fixture
def study_file(tmp_path: Path, study: Study) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(study.to_toml())
    return file


def test_a_new_site_has_a_key_and_a_policy_to_fill_in(tmp_path: Path) -> None:
    done = run("init", tmp_path / "west", "west")
    assert done.exit_code == 0
    assert Site(tmp_path / "west").public_key in done.output
    assert Policy.read(tmp_path / "west").columns == ()
    assert run("key", tmp_path / "west").output.strip() in done.output
    made = run("create-ledger", tmp_path / "west")
    assert "with a budget of epsilon 3, delta 0 (additive)" in made.output
    assert run("create-ledger", tmp_path / "west").exit_code == 2
    again = run("init", tmp_path / "west", "west")
    assert again.exit_code == 2
    assert "expected a folder that holds no site yet" in again.output


@pytest.mark.parametrize("name", ["", "no rth", "../north", "server", "n" * 64])
def test_a_name_that_cannot_be_a_name(tmp_path: Path, name: str) -> None:
    assert run("init", tmp_path / "west", name).exit_code == 2


def test_review_approve_answer(folder: Path, study_file: Path, tmp_path: Path, requester: Key, study: Study) -> None:
    digest = digest_of_text(study.to_toml())
    assert "No study" in run("review", folder).output
    assert digest in run("review", folder, study_file).output
    assert digest[:12] in run("review", folder).output
    request = tmp_path / "request.json"
    request.write_text(requester.seal(Request(study=study.to_toml(), ask="releases").to_json()))
    early = run("answer", folder, request, "--out", tmp_path / "early.json")
    assert early.exit_code == 1
    assert "north has not decided about the study yet" in early.output
    approved = run("approve", folder, digest[:10], "--by", "bob", "--why", "as the board decided")
    assert (approved.exit_code, approved.output.split()[-1]) == (0, "approved.")
    assert run("answer", folder, request, "--out", tmp_path / "message.json").exit_code == 0
    assert Message.from_json(claimed_body((tmp_path / "message.json").read_text())).code == "answered"
    told = run("audit-log", folder).output
    assert "bob" in told
    assert "as the board" in told
    assert run("reject", folder, study_file, "--by", "carol").exit_code == 0
    assert "rejected" in run("review", folder).output


@pytest.fixture
def request_file(tmp_path: Path, requester: Key, study: Study) -> Path:
    file = tmp_path / "scores.request.json"
    file.write_text(requester.seal(Request(study=study.to_toml(), ask="releases").to_json()))
    return file


def test_a_table_that_became_another_is_told_here_and_nowhere_else(
    folder: Path, study_file: Path, request_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "message.json"
    assert run("approve", folder, study_file, "--by", "bob").exit_code == 0
    assert run("answer", folder, request_file, "--out", out).exit_code == 0
    pq.write_table(synthetic_table(SCHEMA, 401), folder / "table.parquet")
    for kept in (folder / "messages").iterdir():  # as if the study were a new one
        kept.unlink()
    failed = run("answer", folder, request_file, "--out", out)
    assert failed.exit_code == 1
    assert "failed to compute its answer" in failed.output
    why = [line for line in failed.output.splitlines() if "dpcausal site review" in line]
    assert why
    assert Message.from_json(claimed_body(out.read_text())).answer is None
    reviewed = run("review", folder, digest_of_text(study_file.read_text())[:12])
    assert reviewed.exit_code == 2
    assert "another number of units than this ledger's data set has" in reviewed.output


def test_a_budget_that_was_changed_and_a_ledger_that_is_none(
    folder: Path, study_file: Path, request_file: Path, tmp_path: Path
) -> None:
    run("approve", folder, study_file, "--by", "bob")
    run("answer", folder, request_file, "--out", tmp_path / "message.json")
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("epsilon = 3.0", "epsilon = 9.0"))
    raised = run("review", folder, study_file)
    assert raised.exit_code == 2
    assert "the budget that this ledger was created with, epsilon 3" in raised.output
    (folder / "ledger.db").write_text("not a ledger")
    broken = run("review", folder, study_file)
    assert broken.exit_code == 2
    assert "a ledger that can be read and written" in broken.output


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("epsilon = 3.0", "epsilon = 0.5"), ("no budget left", "cannot be raised")),
        (('as_of = "2026-06-30"', 'as_of = "2026-09-30"'), ("failed to compute", "dpcausal site review")),
        (("minimum_units = 100", "minimum_units = 401"), ("too few units", "minimum_units")),
        (("anna = ", "bella = "), ("does not know who asks", "dpcausal federation key")),
        (("epsilon_per_study = 2.0", "epsilon_per_study = 0.5"), ("does not allow", "dpcausal site review")),
        (("table.parquet", "absent.parquet"), ("failed to compute", "dpcausal site review")),
    ],
)
def test_a_site_that_does_not_answer_says_what_to_do(
    change: tuple[str, str], told: tuple[str, str], study_file: Path, request_file: Path, folder: Path
) -> None:
    run("approve", folder, study_file, "--by", "bob")
    policy = folder / "policy.toml"
    assert change[0] in policy.read_text()
    policy.write_text(policy.read_text().replace(*change))
    if "budget" in told[0]:
        (folder / "ledger.db").unlink()
        assert run("create-ledger", folder).exit_code == 0
    refused = run("answer", folder, request_file, "--out", folder / "message.json")
    assert refused.exit_code == 1
    said, cure = refused.output.split("\n\nHint: ")
    assert told[0] in said
    assert told[1] in cure


def test_files_that_are_something_else(folder: Path, study_file: Path, request_file: Path, tmp_path: Path) -> None:
    renamed, garbled = study_file.with_suffix(".txt"), tmp_path / "garbled.toml"
    study_file.rename(renamed)
    garbled.write_bytes(b"\xff")
    assert run("review", folder, renamed).exit_code == 0
    message = tmp_path / "message.json"
    run("answer", folder, request_file, "--out", message)
    for words, told in (
        (("review", folder, study_file), f"{study_file} (No such file or directory)"),
        (("review", folder, garbled), "as UTF-8 text"),
        (("answer", folder, renamed, "--out", message), "a request as dpcausal federation ask writes it"),
        (("answer", folder, message, "--out", message), "a request as dpcausal federation ask writes it"),
        (("answer", folder, folder / "table.parquet", "--out", message), "which holds something else"),
        (("answer", folder, request_file, "--out", tmp_path / "absent" / "message.json"), "No such file"),
    ):
        refused = run(*words)
        assert refused.exit_code == 2, words
        assert told in refused.output, refused.output
        assert "Traceback" not in refused.output


def test_a_folder_that_is_somebody_elses(folder: Path, study_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder / "audit_log.jsonl"))

    monkeypatch.setattr("os.open", closed)
    refused = run("approve", folder, study_file, "--by", "bob")
    assert refused.exit_code == 2
    assert "audit_log.jsonl (Permission denied)" in refused.output


def test_what_cannot_be_approved_says_why(folder: Path, study_file: Path) -> None:
    study_file.write_text(study_file.read_text().replace("epsilon = 1.0", "epsilon = 50.0"))
    refused = run("approve", folder, study_file, "--by", "bob")
    assert refused.exit_code == 2
    assert "epsilon is beyond 2" in refused.output
    assert "Traceback" not in refused.output


def test_a_folder_without_a_site(tmp_path: Path) -> None:
    refused = run("review", tmp_path)
    assert refused.exit_code == 2
    assert "dpcausal site init" in refused.output


def test_a_digest_that_no_study_has(folder: Path) -> None:
    refused = run("approve", folder, "abcdef", "--by", "bob")
    assert refused.exit_code == 2
    assert "the digest of one study that this site has" in refused.output


def test_a_network_is_joined_step_by_step(folder: Path, study_file: Path) -> None:
    for words in (("serve", folder), ("install-kit", folder, study_file, "SHA256:AB")):
        refused = run(*words)
        assert refused.exit_code == 2
        assert "dpcausal site request-kit" in refused.output.replace("\n", " ")
    (folder / "nvflare" / "kit").mkdir(parents=True)
    again = run("install-kit", folder, study_file, "SHA256:AB")
    assert again.exit_code == 2
    assert "dpcausal site serve" in again.output.replace("\n", " ")
