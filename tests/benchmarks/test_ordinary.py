"""Ordinary tables: their true effects, runs that are added, targets, and the page that reports stored results."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ordinary.__main__ import main
from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.page import CSV, FILE, PAGE, PLANS, as_csv, as_text, page
from benchmarks.ordinary.records import add, code, read
from benchmarks.ordinary.reference import knowing
from benchmarks.ordinary.runs import ESTIMATORS, estimand_of, simulate
from benchmarks.ordinary.summary import summary
from benchmarks.ordinary.table import Draw, Table
from benchmarks.ordinary.targets import Target, judged
from benchmarks.ordinary.truth import sums, truths

UNITS = 50_000


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_stored_truths_are_means_of_unit_effects(table: Table) -> None:
    draw = table.draw(np.random.default_rng(1), UNITS)
    for population, estimands in sums(draw).items():
        for estimand, (effects, weights) in estimands.items():
            error = 5 * float(draw.effect.std()) / UNITS**0.5 / min(draw.propensity.mean(), 0.5)
            assert abs(effects / weights - truths()[table.name][population][estimand]) <= error + 1e-3


@pytest.mark.parametrize("name", ["HF", "HIP", "STATIN", "M", "REG"])
def test_aipw_with_the_right_features_finds_the_truth(name: str) -> None:
    found = knowing(TABLES[name], TABLES[name].draw(np.random.default_rng(2), UNITS))
    for estimand, (estimate, error) in found.items():
        assert abs(estimate - truths()[name]["compared"][estimand]) < 4 * error


def test_effect_among_those_with_an_outcome_is_weighted_by_the_chance_of_one() -> None:
    everyone = np.ones(2)
    draw = Draw({}, np.array([0.5, 0.5]), np.array([0.0, 1.0]), {}, (everyone, np.array([1.0, 0.0])))
    found = {population: effects / weights for population, of in sums(draw).items() for effects, weights in [of["ATE"]]}
    assert found == {"all": 0.5, "compared": pytest.approx(1 / 3)}


@pytest.mark.slow
def test_all_estimators_run_on_a_table_with_missing_cells() -> None:
    found = simulate(("HIP", 3_000, 0, tuple(ESTIMATORS)))
    assert not any("error" in run for run in found.values())
    assert all(("half" in run) != ("refused" in run) for run in found.values())


@pytest.mark.parametrize(
    ("printed", "key"),
    [
        ("average treatment effect: mean outcome with all treated minus mean outcome with none", "ATE"),
        ("average treatment effect in the overlap population, a unit counting as e (1 - e)", "ATO"),
        ("average treatment effect in the overlap population of strata", "strata"),
        ("average treatment effect over strata with both arms, a stratum counting for less where", "strata"),
        ("average treatment effect on the treated", "ATT"),
        ("something else", "something else"),
    ],
)
def test_estimand_is_the_one_that_is_printed(printed: str, key: str) -> None:
    assert estimand_of(printed) == key


def _run(number: int, estimate: float, **more: object) -> dict[str, object]:
    both = {"ATE": [0.0, 0.1], "ATO": [0.0, 0.1]}
    return {"run": number, "of": "ATE", "estimate": estimate, "plan": 0.5, "verdict": "inconclusive"} | {
        "aipw": both,
        "plain": [0.0, 0.2],
        "cpu": 1.0,
        **more,
    }


def test_summary_counts_refusals_failures_and_wrong_signs() -> None:
    truth = truths()["LAB lin 7"]["compared"]["ATE"]  # about 2
    runs = [
        _run(0, truth + 0.1, half=0.392),
        _run(1, -truth, half=0.392, verdict="no report"),
        _run(2, truth, refused="why"),
        {"run": 3, "error": "ValueError", "cpu": 1.0},
    ]
    found = summary("LAB lin 7", runs)
    assert {
        key: found[key] for key in ("runs", "failed", "given", "coverage", "wrong_sign", "width", "width_over_main")
    } == {
        "runs": 4,
        "failed": 1,
        "given": 0.5,
        "coverage": 0.5,
        "wrong_sign": 0.25,
        "width": 2.0,
        "width_over_main": 1.0,
    }
    assert found["plan_over_realised"] == pytest.approx(0.5 / 0.392, rel=1e-3)


@pytest.mark.costly("benchmarks/results")
def test_runs_are_added_until_there_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(tmp_path, "TRIAL", 800, "regression", _run(0, 1.0, half=1.0))
    add(tmp_path, "TRIAL", 800, "regression", _run(0, 2.0, half=1.0))  # by another process: one of the two counts
    words = ["--folder", str(tmp_path), "--tables", "TRIAL", "--estimators", "regression", "--summary", "--runs"]
    main([*words, "1"])
    assert [run["estimate"] for run in read(tmp_path, "TRIAL", 800, "regression", code())] == [2.0]
    assert "TRIAL 800" in capsys.readouterr().out
    main([*words, "2", "--minutes", "0"])
    assert len(read(tmp_path, "TRIAL", 800, "regression", code())) == 1
    main([*words, "2"])
    assert [run["run"] for run in read(tmp_path, "TRIAL", 800, "regression", code())] == [0, 1]
    assert read(tmp_path, "TRIAL", 800, "regression", "another") == []


def test_target_is_missed_only_where_more_runs_would_hardly_help() -> None:
    target = Target("coverage", "coverage", 0.93, 0.975, ["REG"])
    for runs, coverage, verdict in (
        (10, 0.9, "unclear"),
        (400, 0.85, "missed"),
        (400, 0.95, "met"),
        (400, 1.0, "missed"),
    ):
        cell = {"runs": runs, "given": 1.0, "coverage": coverage}
        assert [each.verdict for each in judged(target, {"REG 20000": {"first ranked": cell}})] == [verdict]
    assert judged(target, {}) == []
    refused = {"runs": 400.0, "given": 0.0}
    assert judged(target, {"REG 20000": {"first ranked": refused}})[0].shown == "no interval"


def test_page_and_csv_show_the_stored_results() -> None:
    stored, plans = (json.loads(file.read_text(encoding="utf-8")) for file in (FILE, PLANS))
    assert json.loads(as_text(stored)) == stored
    assert set(plans) == set(TABLES)
    text = PAGE.read_text(encoding="utf-8")
    assert page(stored, plans, text) == text
    assert CSV.read_text(encoding="utf-8") == as_csv(stored, plans)
