"""`dpcausal population`, as a person types it."""

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from typer.testing import CliRunner, Result

from dpcausal.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def population(command: str, *words: object) -> Result:
    return CliRunner().invoke(app, ["population", command, "people.db", "people", *map(str, words)])


def test_budget_goes_out_and_comes_back() -> None:
    created = population("create", "--epsilon", 3, "--period", "quarter")
    assert "The guarantee is epsilon 3 per person in each quarter; over k quarters k times that" in created.output
    allocated = population("allocate", "button", "--epsilon", 1, "--as-of", "week 12")
    assert "The population has left: epsilon 2, delta 0." in allocated.output
    assert population("allocate", "button", "--epsilon", 1, "--as-of", "week 12").output == allocated.output
    document = json.loads(population("show", "--json").stdout)
    assert document["left"] == "epsilon 2, delta 0"
    (experiment,) = document["experiments"]
    assert experiment["ledger"] in allocated.output.replace("\n", "")
    shown = CliRunner().invoke(app, ["ledger", "show", experiment["ledger"]])
    assert "budget    epsilon 1, delta 0" in shown.output
    assert "button" in population("show").output
    assert "Returned: epsilon 1, delta 0" in population("close", "button").output
    assert population("verify").output.startswith("Intact: 3 entries")


def test_what_a_population_declares_is_shown() -> None:
    terms = ("--unit", "user", "--protects", "record_within_arm", "--public", "arm", "--public", "cell")
    population("create", "--epsilon", 3, "--delta", 1e-5, *terms)
    document = json.loads(population("show", "--json").stdout)
    assert (document["unit"], document["public"]) == ("user", "arm, cell")


def test_layers_are_shown_with_what_is_free() -> None:
    population("create", "--epsilon", 3, "--layer", "page=bucket:100")
    terms = ("--epsilon", 1, "--as-of", "week 12", "--layer", "page", "--buckets", "0-19,40")
    allocated = population("allocate", "button", *terms)
    assert "Its units are those in buckets 0-19, 40 of the layer page, by bucket." in allocated.output
    document = json.loads(population("show", "--json").stdout)
    assert document["experiments"][0]["buckets"] == "page: 0-19, 40"
    assert [(line["buckets"], line["experiment"]) for line in document["layers"]] == [
        ("0-19", "button"),
        ("20-39", "free"),
        ("40", "button"),
        ("41-99", "free"),
    ]
    assert [line["left"] for line in document["layers"]][:2] == ["epsilon 2, delta 0", "epsilon 3, delta 0"]
    for wrong in ("page", "page=bucket", "page=bucket:x"):
        assert population("create", "--epsilon", 3, "--layer", wrong).exit_code == 2
    assert population("allocate", "other", *terms[:-1], "0-x").exit_code == 2
    assert population("allocate", "other", *terms).exit_code == 2


def test_refusals_and_damage_have_an_exit_status() -> None:
    assert population("show").exit_code == 2
    population("create", "--epsilon", 1)
    refused = population("allocate", "button", "--epsilon", 2, "--as-of", "week 12")
    assert refused.exit_code == 2
    assert "Nothing was allocated" in refused.output
    population("allocate", "button", "--epsilon", 1, "--as-of", "week 12")
    engine = create_engine("sqlite:///people.db")
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM dpcausal_ledgers WHERE ledger = 'people/button'"))
    engine.dispose()
    assert population("verify").exit_code == 1
