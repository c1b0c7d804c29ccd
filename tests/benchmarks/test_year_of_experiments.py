"""The simulated year of experiments: what it costs fits, and its tables say what was found."""

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks import year_of_experiments as year
from benchmarks.year_of_experiments import METRICS, RESULTS, Team, looks_table, summary, users, width_table
from dpcausal.experiment.scorecard import Scorecard

PAGE = Path(__file__).parents[2] / "docs" / "population.md"
TRUE = {"seconds": (1.0, 3.0), "bought": (0.0, 1.0)}


def line(metric: str, look: int, **found: Any) -> dict[str, Any]:
    return {"experiment": 0, "look": look, "metric": metric, "given": True, "covers": True} | found


def test_summary_and_tables_count_what_has_no_interval_as_infinitely_wide() -> None:
    lines = [
        line("seconds", 1, noise=4.0 * 8**0.5, covers=False),
        line("seconds", 8, noise=4.0),
        line("bought", 1, given=False),
        line("bought", 8, noise=0.1),
    ]
    found = summary(lines, TRUE)
    assert found["by metric, last look"] == pytest.approx({"seconds": 5 / 3, "bought": 1.01**0.5})
    assert (found["without interval"], found["metrics within 5 %, last look"], found["of"]) == (1, 1, 2)
    assert (found["covered at the last look"], found["covered at all looks"]) == (2, 1)
    assert summary([line("seconds", 8, given=False), line("bought", 8, given=False)], TRUE)["median width"] is None
    rows = [{"way": "both", "epsilon": epsilon} | found for epsilon in (1.0, 4.0)]
    assert width_table({"rows": rows}).splitlines()[2:] == ["| a schedule in layers | 1.34, 1 of 2 | 1.34, 1 of 2 |"]
    assert looks_table({"rows": rows}).splitlines()[2:] == [
        "| a schedule in layers | 1.67 | 1.34 | 0 of 2 | 100.0 % | 50.0 % |"
    ]


def test_pilot_costs_a_tenth_and_all_experiments_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bucket of every layer has room for its experiment beside the pilot, and hardly any is left."""
    monkeypatch.setattr(year, "UNITS", 2_000)
    monkeypatch.setattr(year, "METRICS", METRICS[:3])
    with tempfile.TemporaryDirectory() as folder:
        team = Team("both, informed", 4.0, folder)
        team.learns(users(np.random.default_rng(0), 1.0))
        whole, pilot = team.budget.cap.rho, year._zcdp(team.budget.part(41).epsilon).cap.rho
        each = year._zcdp(team.part.epsilon).cap.rho
        assert float(each / pilot) == pytest.approx(10, rel=1e-3)
        assert float((pilot + year.LAYERS * each) / whole) == pytest.approx(1, rel=1e-3)
        true = dict.fromkeys((metric.label for metric in METRICS), (0.0, 1.0))
        for at in (0, 5, 10, 15):
            team.asks(users(np.random.default_rng(at), 1.0, at), at, true)
        assert len(team.found) == 4 * year.LOOKS * 3
        assert float(team.everyone.remaining.epsilon) < 0.05


def test_more_metrics_of_a_platform_are_as_narrow_as_without_privacy(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thirty metrics on users whose rates differ, and as much noise as a year's experiment has for its users."""
    monkeypatch.setattr(year, "UNITS", 40_000)
    table = users(np.random.default_rng(1), 1.0)
    asked = dpc.Experiment(
        name="pilot",
        treatment=year.TREATMENT,
        metrics=METRICS,
        epsilon=50.0,
        delta=1e-6,
    )

    def card(experiment: dpc.Experiment) -> Scorecard:
        budget = dpc.Budget(epsilon=experiment.epsilon, delta=1e-6, rule="zcdp")
        return experiment.run(dpc.Vault(table, experiment.schema, ledger="sqlite://", budget=budget))

    pilot, widths = card(asked), {}
    errors = {line.metric: line.sampling_sd for line in pilot.lines}
    for within in (0.0, 0.05):
        later = replace(asked, epsilon=3.5).informed_by(pilot, within=within)
        assert sum(each.weight for each in later.metrics) == pytest.approx(30)
        lines = card(later).lines
        widths[within] = np.array([math.hypot(1, line.privacy_sd / errors[line.metric]) for line in lines])
    near = {aim: int((each <= 1.05).sum()) for aim, each in widths.items()}
    assert near[0.05] >= max(20, near[0.0] + 5)
    assert np.sqrt(widths[0.05] ** 2 - 1).max() < 1.6 * np.sqrt(widths[0.0] ** 2 - 1).max()


def test_page_shows_the_stored_result() -> None:
    stored, page = json.loads(RESULTS.read_text(encoding="utf-8")), PAGE.read_text(encoding="utf-8")
    assert width_table(stored) in page
    assert looks_table(stored) in page


def test_informed_experiments_are_nearly_as_narrow_as_without_privacy() -> None:
    rows = {(row["way"], row["epsilon"]): row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]}
    row = rows["both, informed", 4.0]
    assert row["median width"] <= 1.15
    assert row["metrics within 5 %, last look"] >= row["metrics"] / 2
    for each in rows.values():
        assert each["covered at the last look"] >= 0.93 * each["of"], each["way"]
