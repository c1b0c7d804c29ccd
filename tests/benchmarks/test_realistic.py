"""Realistic tables: their true effects, a short run of each estimator, and the page that reports stored results."""

import json
from typing import Any

import numpy as np
import pytest

from benchmarks.parts import PUBLISHED
from benchmarks.realistic.page import PAGE, page
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


def test_the_page_shows_the_stored_results() -> None:
    results = json.loads((PUBLISHED / "realistic.json").read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert page(results, text) == text
