"""`dpcausal federation`, by files carried by hand."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Effect
from dpcausal.cli import app
from dpcausal.federation.roster import Roster
from tests.federation.conftest import Town


def told(*words: object) -> Result:
    return CliRunner().invoke(app, ["federation", *map(str, words)])


@pytest.fixture
def office(town: Town, tmp_path: Path) -> Path:
    """Anna's folder, with all hospitals in the roster."""
    office = tmp_path / "office"
    made = told("init", office, "anna")
    assert made.exit_code == 0
    (tmp_path / "anna.key").replace(office / "anna.key")  # the one that the hospitals know
    for name, member in town.roster.sites.items():
        assert told("admit", office, name, member.key).exit_code == 0
    assert Roster.from_toml(office / "roster.toml") == town.roster
    return office


def test_a_study_from_the_first_command_to_the_effect(office: Path, town: Town, tmp_path: Path) -> None:
    study, road = tmp_path / "study.toml", tmp_path / "road"
    study.write_text(town.study().to_toml(), encoding="utf-8")
    asked = told("ask", office, study, "--files", road)
    assert asked.exit_code == 0
    (request,) = (road / "out").iterdir()
    assert str(request) in asked.output.replace("\n", "")
    nobody = told("run", office, study, "--files", road)
    assert nobody.exit_code == 1
    assert "north, south, west did not answer" in nobody.output
    for name in ("north", "south"):
        (road / "in" / f"{name}.message.json").write_text(town.sites[name](request.read_text()))
    few = told("run", office, study, "--files", road, "--at-least", 3)
    assert few.exit_code == 1
    two = told("run", office, study, "--files", road)
    assert two.exit_code == 0
    assert "2 of 3 sites" in two.output
    (road / "in" / "west.message.json").write_text(town.sites["west"](request.read_text()))
    three = told("run", office, study, "--files", road, "--json")
    assert three.exit_code == 0
    assert Effect.from_json(json.dumps(json.loads(three.stdout))).n == 600


def test_files_that_cannot_count_are_named(office: Path, town: Town, tmp_path: Path) -> None:
    study, other, road = tmp_path / "study.toml", tmp_path / "other.toml", tmp_path / "road"
    study.write_text(town.study().to_toml(), encoding="utf-8")
    other.write_text(town.study(epsilon=0.5).to_toml(), encoding="utf-8")
    for asked, name in ((study, "north.message.json"), (other, "south.message.json"), (study, "west.json")):
        told("ask", office, asked, "--files", tmp_path / asked.stem)
        (request,) = (tmp_path / asked.stem / "out").iterdir()
        (road / "in").mkdir(parents=True, exist_ok=True)
        (road / "in" / name).write_text(town.sites[name.split(".")[0]](request.read_text()))
    (road / "in" / "notes.txt").write_text("sent on Monday")
    one = told("run", office, study, "--files", road)
    assert one.exit_code == 0
    assert "1 of 3 sites" in one.output or "south: did not answer" in one.output
    for name, why in (("south.message", "another study"), ("west", "does not end in"), ("notes", "no message")):
        assert [line for line in one.stderr.splitlines() if f"{name}." in line and why in line], one.stderr
    assert "north.message.json" not in one.stderr


def test_keys_and_fingerprints_can_be_asked_for(office: Path, town: Town, tmp_path: Path) -> None:
    assert told("key", office).output == f"{town.anna.public}\n"
    (office / "bob.key").write_bytes((office / "anna.key").read_bytes())
    assert "anna, bob" in told("key", office).output
    assert told("key", tmp_path).exit_code == 2
    assert "--host HOST" in told("fingerprint", office).output.replace("\n", " ")


@pytest.mark.xdist_group("federation")
def test_the_fingerprint_that_is_asked_for_is_the_one_that_was_told(tmp_path: Path) -> None:
    pytest.importorskip("nvflare")
    said = told("init", tmp_path / "office", "anna", "--host", "localhost").output
    (line,) = (line for line in said.splitlines() if line.startswith("SHA256:"))
    assert told("fingerprint", tmp_path / "office").output == f"{line}\n"


def test_wrong_use_is_told_in_words(office: Path, town: Town, tmp_path: Path) -> None:
    study, other = tmp_path / "study.toml", tmp_path / "other.toml"
    study.write_text(town.study().to_toml(), encoding="utf-8")
    other.write_text(town.study().to_toml().replace('"anna"', '"bob"'), encoding="utf-8")
    for words, hint in (
        (("init", office, "anna"), "no coordinator yet"),
        (("admit", office, "north", "ab" * 32), "or a new site"),
        (("admit", office, "east", "ab"), "64 hexadecimal digits"),
        (("run", office, study), "--host HOST"),
        (("run", office, study, "--files", "a", "--kit", "b"), "choose one road"),
        (("run", office, tmp_path / "absent.toml", "--files", "a"), "does not exist"),
        (("run", office, other, "--files", tmp_path / "a"), "the key of 'bob'"),
        (("run", office, office / "roster.toml", "--files", tmp_path / "a"), "expected study with name"),
        (("run", tmp_path / "nowhere", study, "--files", tmp_path / "a"), "federation init"),
        (("ask", office, study, "--files", study), "is a file"),
        (("serve", office), "--host HOST"),
    ):
        result = told(*words)
        assert result.exit_code == 2, words
        assert hint in result.output.replace("\n", " "), result.output
        assert "Traceback" not in result.output
