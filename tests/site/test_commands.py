"""The command line of a site, as its people use it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.protocol import Message, Request, digest_of_text
from dpcausal.federation.signatures import Key, claimed_body
from dpcausal.site.policy import Policy
from dpcausal.site.site import Site


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
    again = run("init", tmp_path / "west", "west")
    assert again.exit_code == 2
    assert "expected a folder that holds no site yet" in again.output


@pytest.mark.parametrize("name", ["", "no rth", "../north", "server", "n" * 64])
def test_a_name_that_cannot_be_a_name(tmp_path: Path, name: str) -> None:
    assert run("init", tmp_path / "west", name).exit_code == 2


def test_review_approve_answer(folder: Path, study_file: Path, tmp_path: Path, asker: Key, study: Study) -> None:
    digest = digest_of_text(study.to_toml())
    assert "No study" in run("review", folder).output
    assert digest in run("review", folder, study_file).output
    assert digest[:12] in run("review", folder).output
    request = tmp_path / "request.json"
    request.write_text(asker.seal(Request(study=study.to_toml(), ask="releases").to_json()))
    early = run("answer", folder, request, "--out", tmp_path / "early.json")
    assert early.exit_code == 1
    assert "north has not decided about the study yet" in early.output
    approved = run("approve", folder, digest[:10], "--by", "bob", "--why", "as the board decided")
    assert (approved.exit_code, approved.output.split()[-1]) == (0, "approved.")
    assert run("answer", folder, request, "--out", tmp_path / "message.json").exit_code == 0
    assert Message.from_json(claimed_body((tmp_path / "message.json").read_text())).code == "answered"
    told = run("diary", folder).output
    assert "bob" in told
    assert "as the board" in told
    assert run("deny", folder, study_file, "--by", "carol").exit_code == 0
    assert "denied" in run("review", folder).output


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
    for words in (("listen", folder), ("enter", folder, study_file, "SHA256:AB")):
        refused = run(*words)
        assert refused.exit_code == 2
        assert "dpcausal site join" in refused.output.replace("\n", " ")
