"""`dpcausal run` and `dpcausal ledger`: the price first, then a yes, then the answer; and a book of what was spent."""

import dataclasses
import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a table and two studies of it, as a person would have it."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "table.parquet")
    for name, estimator in (
        ("plain", dpc.DifferenceInMeans()),
        ("robust", dpc.DoublyRobust(covariates=["age", "race"])),
    ):
        study = dpc.Study(name=name, question="Does it help?", schema=schema, estimator=estimator, epsilon=1.0)
        Path(f"{name}.toml").write_text(study.to_toml())


def dpcausal(*words: object, typed: str = "") -> Result:
    return CliRunner().invoke(app, list(map(str, words)), input=typed)


def create(epsilon: float, ledger: str = "ledger.db") -> None:
    assert dpcausal("ledger", "create", ledger, "--epsilon", epsilon, "--as-of", "2026-06-30").exit_code == 0


def run(study: str, *words: object, typed: str = "", ledger: str = "ledger.db") -> Result:
    where = ("--table", "table.parquet", "--ledger", ledger, "--as-of", "2026-06-30")
    return dpcausal("run", f"{study}.toml", *where, *words, typed=typed)


def spent() -> float:
    document = json.loads(dpcausal("ledger", "show", "ledger.db", "--json").stdout)
    assert "receipts_found" not in document  # none were given
    return float(document["total"]["epsilon"])


def test_csv_file_is_announced_alike_whatever_its_cells(table: pa.Table) -> None:
    create(3)
    rows = table.to_pandas()
    stated = []
    for name, change in (("good", str), ("bad", lambda cell: f"{cell} mg")):
        rows.assign(score=rows["score"].map(change)).to_csv("table.csv", index=False)
        where = ("--table", "table.csv", "--ledger", f"{name}.db", "--as-of", "2026-06-30")
        create(3, f"{name}.db")
        stated.append(dpcausal("run", "plain.toml", *where).stderr.replace(f"{name}.db", ""))
    assert stated[0] == stated[1]
    assert "dpcausal check plain.toml --table table.csv" in stated[0]
    assert "dpcausal check" not in run("plain", "--yes").stderr  # a parquet file has numbers


def test_price_answer_and_file() -> None:
    create(3)
    done = run("plain", "--yes")
    assert done.exit_code == 0, done.output
    assert str(Path("ledger.db").absolute()) in done.stderr.replace("\n                  ", "")
    assert "data as of        2026-06-30" in done.stdout
    assert "arm_moments: epsilon 1, delta 0" in done.stderr
    assert "expect about ±" in done.stderr
    assert "no interval       in none of 40 rehearsals with noise" in done.stderr
    assert done.stdout.startswith("Effect of training against usual care on score")
    effect = dpc.Effect.from_json(Path("effect.json").read_text())
    assert 1 < effect.estimate < 3
    assert not effect.rehearsed
    assert spent() == 1.0


def test_the_same_study_again_costs_nothing_and_asks_nobody() -> None:
    create(1)
    first = run("plain", "--yes", "--json")
    again = run("plain", "--json", "--out", "again.json")
    assert again.exit_code == 0, again.output
    files = [Path(name).read_text() for name in ("effect.json", "again.json")]
    effects = [json.loads(text) for text in (first.stdout, again.stdout, *files)]
    assert [receipt.pop("stored") for effect in effects for receipt in effect["receipts"]] == [False, True] * 2
    assert all(effect == effects[0] for effect in effects)
    assert "it costs nothing" in again.stderr
    assert "plain: answered before" in again.stderr
    assert "spent yet" not in again.stderr
    assert spent() == 1.0


def test_without_a_person_nothing_is_spent_unless_it_is_said() -> None:
    create(3)
    done = run("plain")
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert not Path("effect.json").exists()
    assert spent() == 0.0


@pytest.mark.parametrize(("typed", "code", "price"), [("n\n", 1, 0.0), ("\n", 1, 0.0), ("y\n", 0, 1.0)])
def test_a_person_is_asked(monkeypatch: pytest.MonkeyPatch, typed: str, code: int, price: float) -> None:
    monkeypatch.setattr("dpcausal.cli.requirements._is_terminal", lambda: True)
    create(3)
    done = run("plain", typed=typed)
    assert done.exit_code == code
    assert "Spend epsilon 1, delta 0? This is final." in done.stderr
    assert spent() == price


def test_before_the_yes_it_says_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    create(3)
    assert "plain: nothing is spent yet" in run("plain", "--yes").stderr
    monkeypatch.setattr("dpcausal.cli.requirements._is_terminal", lambda: True)
    done = run("robust", typed="n\n")
    assert "robust: nothing more is spent yet" in done.stderr
    assert spent() == 1.0


def test_a_study_that_fits_only_in_part_is_not_begun() -> None:
    create(1.5)
    assert run("plain", "--yes").exit_code == 0
    done = run("robust", "--yes")
    assert done.exit_code == 1
    assert "epsilon 1, delta 0 for" in done.stderr
    assert "Nothing was spent" in done.stderr
    assert spent() == 1.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ledger", "new.db", "--as-of", "2026-06-30"), "dpcausal ledger create"),
        (("--ledger", "sqlite://", "--as-of", "2026-06-30"), "is in memory"),
        (("--ledger", "new.db"), "--as-of"),
        (("--ledger", "new.db", "--as-of", "2026-06-30", "--out", "no/e.json"), "--out"),
    ],
)
def test_wrong_use_is_told_and_makes_no_ledger(words: tuple[object, ...], told: str) -> None:
    done = dpcausal("run", "plain.toml", "--table", "table.parquet", "--yes", *words)
    assert done.exit_code == 2
    assert told in done.output
    assert not Path("new.db").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new.db", "--epsilon", -1, "--as-of", "now"), "epsilon of a budget"),
        (("new.db", "--epsilon", 3, "--as-of", "x" * 65), "a date or a name on one line"),
        (("new.db", "--epsilon", 3, "--as-of", "now", "--rule", "none"), '"additive", or'),
        (("no/new.db", "--epsilon", 3, "--as-of", "now"), "There is no folder"),
        (("new.db", "--epsilon", 3, "--as-of", "now", "--witness", "new.db"), "in another place than the ledger"),
        (("new.db", "--epsilon", 3), "--as-of"),
    ],
)
def test_a_ledger_that_cannot_be_made(words: tuple[object, ...], told: str) -> None:
    done = dpcausal("ledger", "create", *words)
    assert done.exit_code == 2
    assert told in done.output


def test_a_ledger_is_made_once() -> None:
    create(3)
    again = dpcausal("ledger", "create", "ledger.db", "--epsilon", 5, "--as-of", "2026-06-30")
    assert again.exit_code == 2
    assert "a ledger already" in again.stderr
    assert f"sqlite:///{Path('ledger.db').absolute()}" in again.stderr


def test_a_version_that_nobody_declared_is_refused() -> None:
    create(3)
    assert run("plain", "--yes").exit_code == 0
    later = ("--table", "table.parquet", "--ledger", "ledger.db", "--as-of", "2026-09-30")
    refused = dpcausal("run", "plain.toml", *later, "--yes")
    assert refused.exit_code == 2
    assert "dpcausal ledger add-version" in refused.stderr
    assert dpcausal("ledger", "add-version", "ledger.db", "--as-of", "2026-09-30").exit_code == 0
    assert dpcausal("run", "plain.toml", *later, "--yes", "--out", "later.json").exit_code == 0
    assert Path("later.json").read_text() != Path("effect.json").read_text()
    assert "data as of 2026-09-30: 1,000 units" in dpcausal("ledger", "show", "ledger.db").stdout
    assert spent() == 2.0


def test_another_unit_is_refused_without_a_count() -> None:
    create(3)
    assert run("plain", "--yes").exit_code == 0
    spying = Path("plain.toml").read_text() + '\n[schema.unit]\nname = "race"\nby = "age"\n'
    Path("spy.toml").write_text(spying.replace('name = "race"\nvalues', 'name = "other"\nvalues'))
    done = run("spy", "--yes")
    assert done.exit_code == 2
    assert "one unit for each race" in done.stderr
    assert "4 units" not in done.output


def test_receipts_tell_a_ledger_that_was_put_back() -> None:
    create(3)
    yesterday = Path("ledger.db").read_bytes()
    assert run("plain", "--yes").exit_code == 0
    assert dpcausal("ledger", "check-receipts", "ledger.db", "effect.json").exit_code == 0
    Path("ledger.db").write_bytes(yesterday)
    missing = dpcausal("ledger", "check-receipts", "ledger.db", "effect.json")
    assert missing.exit_code == 1
    assert "this ledger was truncated, restored from a copy, or is another one" in missing.stderr
    by = ("--by", "bob", "--reason", "the disk failed")
    unpriced = dpcausal("ledger", "restore", "ledger.db", *by, "--receipts", "effect.json")
    assert unpriced.exit_code == 2
    assert "--lost-epsilon" in unpriced.stderr
    done = dpcausal("ledger", "restore", "ledger.db", *by, "--receipts", "effect.json", "--lost-epsilon", 0)
    assert done.exit_code == 0, done.output
    assert spent() == 1.0
    shown = dpcausal("ledger", "show", "ledger.db").stdout
    assert "by bob (the disk failed)" in shown
    assert dpcausal("ledger", "check-receipts", "ledger.db", "effect.json").exit_code == 0
    assert dpcausal("ledger", "check-receipts", "ledger.db", "plain.toml").exit_code == 2


def test_a_ledger_with_a_witness_is_used_with_it() -> None:
    made = dpcausal("ledger", "create", "ledger.db", "--epsilon", 3, "--as-of", "2026-06-30", "--witness", "w.log")
    assert made.exit_code == 0
    without = run("plain", "--yes")
    assert without.exit_code == 2
    assert str(Path("w.log").absolute()) in without.stderr
    assert run("plain", "--yes", "--witness", "w.log").exit_code == 0
    assert dpcausal("ledger", "show", "ledger.db", "--witness", "w.log").exit_code == 0


def test_a_ledger_is_shown_and_verified() -> None:
    create(3)
    assert run("robust", "--yes").exit_code == 0
    shown = dpcausal("ledger", "show", "sqlite:///ledger.db").output
    for words in ("augmented_scores", "1,000 units", "budget    epsilon 3", "left      epsilon 2"):
        assert words in shown
    verified = dpcausal("ledger", "verify", "ledger.db", "--json")
    assert verified.exit_code == 0
    document = json.loads(verified.stdout)
    assert (document["intact"], document["entries"]) == (True, 14)
    assert document["head"] in dpcausal("ledger", "verify", "ledger.db").stdout


def test_a_ledger_that_was_tampered_with_is_found_out() -> None:
    create(3)
    assert run("plain", "--yes").exit_code == 0
    with sqlite3.connect("ledger.db") as connection:
        connection.execute("UPDATE dpcausal_ledger SET body = replace(body, '1.0', '0.1') WHERE kind = 'grant'")
    connection.close()
    done = dpcausal("ledger", "verify", "ledger.db")
    assert done.exit_code == 1
    assert "chain is broken" in done.stderr
    told = dpcausal("ledger", "verify", "ledger.db", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["intact"] is False
    assert run("plain", "--yes").exit_code == 2


def test_looking_for_a_ledger_does_not_make_one() -> None:
    for command in ("show", "verify"):
        done = dpcausal("ledger", command, "nothing.db")
        assert done.exit_code == 2
        assert f"no ledger at sqlite:///{Path('nothing.db').absolute()}: no file" in done.stderr
    assert not Path("nothing.db").exists()


def test_what_a_study_requires_must_pass_before_the_effect_is_asked_for() -> None:
    plain = dpc.Study.from_toml(Path("plain.toml").read_text())
    for name, most in (("strict", 1e-5), ("easy", 5.0)):
        wanted = {"balance": {"epsilon": 50.0, "covariates": ["age"], "most": most}}
        Path(f"{name}.toml").write_text(dataclasses.replace(plain, requires=wanted).to_toml())
    create(60)
    refused = run("strict", "--yes")
    assert "required balance: epsilon 50, delta 0" in refused.stderr
    assert "Failed: balance" in refused.stderr
    assert "Hint: the arms differ in age and nothing adjusts for it" in refused.stderr
    assert refused.exit_code == 1
    assert not Path("effect.json").exists()
    assert spent() == 50.0
    done = run("easy", "--yes")
    assert done.exit_code == 0
    assert "Wrote balance.json and effect.json." in done.stderr
    assert spent() == 51.0
    words = ("report", "effect.json", "--study", "easy.toml", "--ledger", "ledger.db")
    told = dpcausal(*words)  # what the run wrote beside the effect is found
    assert told.exit_code == 0, told.output
    assert "Wrote report.html, with balance.json" in told.output
    Path("balance.json").rename("other.json")
    assert "with balance.json" not in dpcausal(*words).output
    told = dpcausal(*words, "--balance", "other.json")
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
    schema = dpc.Schema(
        treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Real("y", 0, 2), covariates=[dpc.Real("x", 0, 1)]
    )
    study = dpc.Study(
        name="apart",
        question="Does it help?",
        schema=schema,
        estimator=dpc.InverseWeighting(covariates=["x"]),
        epsilon=2.0,
        requires={"balance": {"epsilon": 20.0, "covariates": ["x"]}},
    )
    Path("apart.toml").write_text(study.to_toml())
    create(60, "apart.db")
    there = ("--table", "apart.parquet", "--ledger", "apart.db", "--as-of", "2026-06-30", "--yes")
    done = dpcausal("run", "apart.toml", *there)
    assert done.exit_code == 0, done.output
    assert "passes: the largest difference after weighting" in done.stderr
    plain = dataclasses.replace(study, estimator=dpc.DifferenceInMeans())
    Path("apart.toml").write_text(plain.to_toml())
    assert "choose an estimator that does" in dpcausal("run", "apart.toml", *there).stderr


def test_the_odds_of_no_interval_are_told_before_anything_is_spent() -> None:
    create(3)
    Path("faint.toml").write_text(Path("robust.toml").read_text().replace("epsilon = 1.0", "epsilon = 0.02"))
    refused = run("faint")
    assert refused.exit_code == 2
    assert re.search(r"no interval +in \d+ of 40 rehearsals with noise \(\d+ %\); the price would be", refused.stderr)


def test_a_report_of_parts_that_do_not_belong_together_is_refused() -> None:
    create(3)
    assert run("plain", "--yes").exit_code == 0
    with pytest.warns(UserWarning, match="other.db is new"):
        create(3, "other.db")
    assert run("robust", "--out", "other.json", "--yes", ledger="other.db").exit_code == 0
    other = Path("plain.toml").read_text().replace("epsilon = 1.0", "epsilon = 2.0")
    Path("other.toml").write_text(other)
    for words, told in (
        (("--ledger", "other.db"), "the ledger that paid"),
        (("--study", "other.toml"), "an effect of this study, with epsilon 2.0"),
        (("--study", "robust.toml"), "an effect of this study, with estimator"),
    ):
        refused = dpcausal("report", "effect.json", *words)
        assert refused.exit_code == 2
        assert told in refused.stderr
        assert not Path("report.html").exists()
    assert dpcausal("report", "effect.json", "--study", "plain.toml", "--ledger", "ledger.db").exit_code == 0


def test_entries_are_counted_in_words() -> None:
    create(3)
    assert "Intact: 1 entry, the last" in dpcausal("ledger", "verify", "ledger.db").stdout
    run("plain", "--yes")
    assert "Intact: 5 entries, the last" in dpcausal("ledger", "verify", "ledger.db").stdout


def test_a_report_of_nothing_that_is_an_effect() -> None:
    refused = dpcausal("report", "plain.toml")
    assert refused.exit_code == 2
    assert "is not a result that dpcausal wrote" in refused.output
    assert dpcausal("report", "plain.toml", "--ledger", "absent.db").exit_code == 2
    assert not Path("absent.db").exists()
