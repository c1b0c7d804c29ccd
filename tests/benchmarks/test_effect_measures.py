"""Coverage of ratios: stored intervals cover, and a small run gives the same kind of lines."""

import json

import numpy as np

from benchmarks.effect_measures import Cell, simulate, summary
from benchmarks.parts import PUBLISHED

STORED = json.loads((PUBLISHED / "effect_measures.json").read_text(encoding="utf-8"))["cells"]


def test_stored_intervals_cover() -> None:
    assert all(cell["runs"] >= 400 for cell in STORED)
    for name in ("risk_ratio", "odds_ratio"):
        assert 0.94 < np.mean([cell[f"{name}_coverage"] for cell in STORED]) < 0.96
        # A cell of 400 runs is within 3.5 standard errors of an interval that covers 94 to 97 %.
        assert all(0.94 - 3.5 * 0.0119 < cell[f"{name}_coverage"] < 0.97 + 3.5 * 0.0085 for cell in STORED)


def test_small_run_has_the_stored_columns() -> None:
    cell = Cell(0.2, 2_000, 0.5, 1.0)
    found = summary(cell, [simulate((cell, (0, run))) for run in range(20)])
    stored = next(each for each in STORED if each["ratio"] == 1)
    assert found.keys() == stored.keys()
    assert found["risk_ratio_coverage"] >= 0.8  # type: ignore[operator]
