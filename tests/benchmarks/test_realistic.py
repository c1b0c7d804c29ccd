"""Realistic tables: their true effects, a short run of each estimator, and the page that reports stored results."""

import json
from typing import Any

import numpy as np
import pytest

from benchmarks.parts import PUBLISHED
from benchmarks.realistic.page import CSV, PAGE, as_csv, page
from benchmarks.realistic.runs import ESTIMATORS, simulate, summary
from benchmarks.realistic.tables import KINDS, Kind

UNITS = 200_000


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_true_effects_are_means_of_unit_effects(kind: Kind) -> None:
    draw = kind.draw(np.random.default_rng(1), UNITS)
    overlap = draw.propensity * (1 - draw.propensity)
    error = 4 * draw.effect.std() / UNITS**0.5
    assert abs(draw.effect.mean() - kind.truth["ATE"]) <= error + 0.001 * abs(kind.truth["ATE"])
    assert abs(np.average(draw.effect, weights=overlap) - kind.truth["ATO"]) <= 2 * error + 0.001 * abs(
        kind.truth["ATO"]
    )


@pytest.mark.slow
def test_every_estimator_runs_on_every_kind_of_table() -> None:
    for name in KINDS:
        found = simulate((name, 2_000, 0, tuple(each for each in ESTIMATORS if each != "best ranked"), 1.0, 1e-6))
        assert all(run["half"] > 0 for run in found.values())


def test_a_summary_counts_refusals_apart() -> None:
    runs: list[dict[str, Any]] = [
        {"error": 0.1, "se": 0.1, "half": 0.2},
        {"error": -0.3, "se": 0.1, "half": 0.2},
        {"error": 0.5, "se": 0.1, "half": 0.2, "refused": "why"},
    ]
    found = summary(runs)
    assert (found["given"], found["coverage"], found["coverage_of_all"]) == (0.6667, 0.5, 0.3333)


def test_page_and_csv_show_the_stored_results() -> None:
    results = json.loads((PUBLISHED / "realistic.json").read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert page(results, text) == text
    assert CSV.read_text(encoding="utf-8") == as_csv(results)
    cells = [
        (cell["coverage"], cell["half_width"] / of["AIPW without privacy"]["half_width"])
        for at, of in results.items()
        for name, cell in of.items()
        if at[0] in "OBK" and name in ESTIMATORS
    ]
    coverage, widths = zip(*cells, strict=True)
    assert f"On O, B and K, all of them cover in {100 * min(coverage):.1f} to {100 * max(coverage):.1f} %" in text
    assert f"privacy multiplies the width by {min(widths):.1f} to {max(widths):.1f}" in text
