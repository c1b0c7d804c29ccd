"""`dpcausal run` and `dpcausal ledger`: the price first, then a yes, then the answer; and a book of what was spent."""

import dataclasses
import json
import re
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.cli.reading import is_new
from dpcausal.ledger import DataSet


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a table and two studies of it, as a person would have it."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "table.parquet")
    for name, estimator in (("plain", dpc.DifferenceInMeans()), ("robust", dpc.DoublyRobust(of=["age", "race"]))):
        study = dpc.Study(name=name, question="Does it help?", schema=schema, estimator=estimator, epsilon=1.0)
        Path(f"{name}.toml").write_text(study.to_toml())


def dpcausal(*words: object, typed: str = "") -> Result:
    return CliRunner().invoke(app, list(map(str, words)), input=typed)


def run(study: str, *words: object, typed: str = "") -> Result:
    return dpcausal("run", f"{study}.toml", "--table", "table.parquet", "--ledger", "ledger.db", *words, typed=typed)


def spent() -> float:
    document = json.loads(dpcausal("ledger", "show", "ledger.db", "--json").stdout)
    return float(document["total"]["epsilon"])


def test_price_answer_and_file() -> None:
    done = run("plain", "--budget-epsilon", 3, "--yes")
    assert done.exit_code == 0, done.output
    assert "arm_moments: epsilon 1, delta 0" in done.stderr
    assert "expect about ±" in done.stderr
    assert "no interval       in none of 40 rehearsals with noise" in done.stderr
    assert done.stdout.startswith("Effect of training against usual care on score")
    effect = dpc.Effect.from_json(Path("effect.json").read_text())
    assert 1 < effect.estimate < 3
    assert not effect.rehearsed
    assert spent() == 1.0


def test_the_same_study_again_costs_nothing_and_asks_nobody() -> None:
    first = run("plain", "--budget-epsilon", 1, "--yes", "--json")
    again = run("plain", "--json", "--out", "again.json")
    assert again.exit_code == 0, again.output
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert "it costs nothing" in again.stderr
    assert "plain: answered before" in again.stderr
    assert "spent yet" not in again.stderr
    assert Path("again.json").read_text() == Path("effect.json").read_text()
    assert spent() == 1.0


def test_without_a_person_nothing_is_spent_unless_it_is_said() -> None:
    done = run("plain", "--budget-epsilon", 3)
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert not Path("ledger.db").exists()
    assert not Path("effect.json").exists()
    assert run("plain", "--budget-epsilon", 2, "--yes").exit_code == 0  # what nobody confirmed binds nobody


@pytest.mark.parametrize(("typed", "code", "price"), [("n\n", 1, 0.0), ("\n", 1, 0.0), ("y\n", 0, 1.0)])
def test_a_person_is_asked(monkeypatch: pytest.MonkeyPatch, typed: str, code: int, price: float) -> None:
    monkeypatch.setattr(sys.modules["dpcausal.cli.run"], "_is_terminal", lambda: True)
    done = run("plain", "--budget-epsilon", 3, typed=typed)
    assert done.exit_code == code
    assert "Spend epsilon 1, delta 0, for good?" in done.stderr
    assert "ledger            a new one: its budget, epsilon 3, delta 0 (additive), can never" in done.stderr
    assert Path("ledger.db").exists() == bool(price)
    assert not price or spent() == price


def test_before_the_yes_it_says_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "plain: nothing is spent yet" in run("plain", "--budget-epsilon", 3, "--yes").stderr
    monkeypatch.setattr(sys.modules["dpcausal.cli.run"], "_is_terminal", lambda: True)
    done = run("robust", typed="n\n")
    assert "robust: nothing more is spent yet" in done.stderr
    assert "a new one" not in done.stderr
    assert spent() == 1.0


def test_a_ledger_that_was_never_opened_is_new_wherever_it_is(ledger_url: str) -> None:
    if ledger_url.startswith("sqlite:///"):
        Path(ledger_url.removeprefix("sqlite:///")).touch()
    elif ledger_url == "sqlite://":
        return
    assert is_new(ledger_url)
    assert is_new(ledger_url)
    dpc.Ledger(ledger_url, dpc.Budget(epsilon=3), DataSet(n=10, protects="record", unit=None))
    assert not is_new(ledger_url)


def test_a_study_that_fits_only_in_part_is_not_begun() -> None:
    assert run("plain", "--budget-epsilon", 1.5, "--yes").exit_code == 0
    done = run("robust", "--yes")
    assert done.exit_code == 1
    assert "3 questions for epsilon 1, delta 0 in all" in done.stderr
    assert "Nothing was spent" in done.stderr
    assert spent() == 1.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--table", "table.parquet", "--ledger", "new.db"), "--budget-epsilon"),
        (("--table", "nothing.parquet", "--ledger", "new.db", "--budget-epsilon", 3), "no file at"),
        (("--table", "table.parquet", "--ledger", "sqlite://", "--budget-epsilon", 3), "outlives"),
        (("--table", "table.parquet", "--ledger", "new.db", "--budget-epsilon", 3, "--out", "no/e.json"), "--out"),
        (("--table", "table.parquet", "--ledger", "new.db", "--budget-epsilon", -1), "a budget with epsilon"),
        (("--table", "table.parquet", "--ledger", "no/new.db", "--budget-epsilon", 3), "a folder for the new ledger"),
    ],
)
def test_wrong_use_is_told_and_makes_no_ledger(words: tuple[object, ...], told: str) -> None:
    done = dpcausal("run", "plain.toml", "--yes", *words)
    assert done.exit_code == 2
    assert told in done.output
    assert not Path("new.db").exists()


def test_another_budget_than_the_ledgers_is_refused() -> None:
    assert run("plain", "--budget-epsilon", 3, "--yes").exit_code == 0
    done = run("plain", "--budget-epsilon", 5, "--yes")
    assert done.exit_code == 2
    assert "the budget that this ledger was opened with" in done.stderr
    assert "leave the budget out: this ledger's is epsilon 3" in done.stderr


def test_a_ledger_is_shown_and_verified() -> None:
    assert run("robust", "--budget-epsilon", 3, "--yes").exit_code == 0
    shown = dpcausal("ledger", "show", "sqlite:///ledger.db").output
    for words in ("augmented_scores", "1000 units", "budget    epsilon 3", "left      epsilon 2"):
        assert words in shown
    verified = dpcausal("ledger", "verify", "ledger.db", "--json")
    assert verified.exit_code == 0
    document = json.loads(verified.stdout)
    assert (document["whole"], document["entries"]) == (True, 10)
    assert document["head"] in dpcausal("ledger", "verify", "ledger.db").stdout


def test_a_ledger_that_was_tampered_with_is_found_out() -> None:
    assert run("plain", "--budget-epsilon", 3, "--yes").exit_code == 0
    with sqlite3.connect("ledger.db") as connection:
        connection.execute("UPDATE dpcausal_ledger SET body = replace(body, '1.0', '0.1') WHERE kind = 'grant'")
    connection.close()
    done = dpcausal("ledger", "verify", "ledger.db")
    assert done.exit_code == 1
    assert "an unbroken chain" in done.stderr
    told = dpcausal("ledger", "verify", "ledger.db", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["whole"] is False
    assert run("plain", "--yes").exit_code == 2


def test_looking_for_a_ledger_does_not_make_one() -> None:
    for command in ("show", "verify"):
        done = dpcausal("ledger", command, "nothing.db")
        assert done.exit_code == 2
        assert "no file nothing.db" in done.stderr
    assert not Path("nothing.db").exists()


def test_what_a_study_requires_must_pass_before_the_effect_is_asked_for() -> None:
    plain = dpc.Study.from_toml(Path("plain.toml").read_text())
    for name, most in (("strict", 1e-5), ("easy", 5.0)):
        wanted = {"balance": {"epsilon": 50.0, "of": ["age"], "most": most}}
        Path(f"{name}.toml").write_text(dataclasses.replace(plain, requires=wanted).to_toml())
    refused = run("strict", "--budget-epsilon", 60, "--yes")
    assert "balance not to fail: epsilon 50" in refused.stderr
    assert "Failed: balance" in refused.stderr
    assert "Hint: the arms differ in age and nothing adjusts for it" in refused.stderr
    assert refused.exit_code == 1
    assert not Path("effect.json").exists()
    assert spent() == 50.0
    assert run("easy", "--yes").exit_code == 0
    assert spent() == 51.0
    told = dpcausal(
        "report", "effect.json", "--study", "easy.toml", "--ledger", "ledger.db", "--balance", "balance.json"
    )
    assert told.exit_code == 0, told.output
    page = Path("report.html").read_text()
    assert "the largest difference" in page
    assert "<img" in page


def test_a_study_that_adjusts_is_not_stopped_by_what_it_adjusts_for() -> None:
    """Balance is that after weighting: before, these arms are half a standard deviation apart."""
    random = np.random.default_rng(1)
    x = random.uniform(0, 1, 20_000)
    treat = (random.random(20_000) < 1 / (1 + np.exp(-2 * (x - 0.5)))).astype(int)
    pq.write_table(pa.table({"treat": treat, "x": x, "y": x + 0.1 * treat}), "apart.parquet")
    schema = dpc.Schema(treatment=dpc.Binary("treat"), outcome=dpc.Real("y", 0, 2), covariates=[dpc.Real("x", 0, 1)])
    study = dpc.Study(
        name="apart",
        question="Does it help?",
        schema=schema,
        estimator=dpc.InverseWeighting(of=["x"]),
        epsilon=2.0,
        requires={"balance": {"epsilon": 20.0, "of": ["x"]}},
    )
    Path("apart.toml").write_text(study.to_toml())
    there = ("--table", "apart.parquet", "--ledger", "apart.db", "--budget-epsilon", 60, "--yes")
    done = dpcausal("run", "apart.toml", *there)
    assert done.exit_code == 0, done.output
    assert "passes: the largest difference after weighting" in done.stderr
    plain = dataclasses.replace(study, estimator=dpc.DifferenceInMeans())
    Path("apart.toml").write_text(plain.to_toml())
    assert "choose an estimator that does" in dpcausal("run", "apart.toml", *there).stderr


def test_the_odds_of_no_interval_are_told_before_anything_is_spent() -> None:
    refused = run("robust", "--budget-epsilon", 3)
    assert refused.exit_code == 2
    assert re.search(r"no interval +in \d+ of 40 rehearsals with noise \(\d+ %\); the price would be", refused.stderr)
    assert not Path("ledger.db").exists()


def test_a_report_of_parts_that_do_not_belong_together_is_refused() -> None:
    assert run("plain", "--budget-epsilon", 3, "--yes").exit_code == 0
    elsewhere = ("--table", "table.parquet", "--ledger", "other.db", "--budget-epsilon", 3)
    assert dpcausal("run", "robust.toml", *elsewhere, "--out", "other.json", "--yes").exit_code == 0
    other = Path("robust.toml").read_text().replace("epsilon = 1.0", "epsilon = 2.0")
    Path("other.toml").write_text(other)
    for words, told in (
        (("--ledger", "other.db"), "the ledger that paid"),
        (("--study", "other.toml"), "an effect of this study, with epsilon 2.0"),
    ):
        refused = dpcausal("report", "effect.json", *words)
        assert refused.exit_code == 2
        assert told in refused.stderr
        assert not Path("report.html").exists()
    assert dpcausal("report", "effect.json", "--study", "plain.toml", "--ledger", "ledger.db").exit_code == 0


def test_entries_are_counted_in_words() -> None:
    dpc.Ledger("sqlite:///ledger.db", dpc.Budget(epsilon=3), DataSet(n=10, protects="record", unit=None))
    assert "Whole: 1 entry, the last" in dpcausal("ledger", "verify", "ledger.db").stdout
    run("plain", "--yes")
    assert "Whole: 1 entry, the last" in dpcausal("ledger", "verify", "ledger.db").stdout  # another data set: refused


def test_a_report_of_nothing_that_is_an_effect() -> None:
    refused = dpcausal("report", "plain.toml")
    assert refused.exit_code == 2
    assert "expected a result as dpcausal writes it" in refused.output
    assert dpcausal("report", "plain.toml", "--ledger", "absent.db").exit_code == 2
    assert not Path("absent.db").exists()
