"""Published coverage of formulas of sums, the page that shows it, and a short form of the benchmark."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import custom_sums

ROOT = Path(__file__).parents[2]


def published() -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads((ROOT / "benchmarks/results/custom_sums.json").read_text("utf-8"))["cells"]
    return lines


def test_published_intervals_are_given_and_cover() -> None:
    lines = published()
    assert {line["generator"] for line in lines} == set(custom_sums.GENERATORS)
    assert min(line["runs"] for line in lines) >= 200
    assert min(line["given"] for line in lines) > 0.99
    coverage = np.array([line["covered"] for line in lines])
    assert 0.94 < coverage.mean() < 0.97
    # A setting of 200 runs is within 3.5 standard errors of an interval that covers 94 to 97 %.
    assert coverage.min() > 0.94 - 3.5 * 0.0168
    assert all(line["width"] > line["width_without_noise"] for line in lines)


def test_a_short_form_covers() -> None:
    cell = custom_sums.Cell("uniform doses, normal errors", 5_000, 1.0)
    line: dict[str, Any] = custom_sums.summary(cell, [custom_sums.simulate((cell, (99, run))) for run in range(20)])
    assert line["given"] == 1.0
    assert line["covered"] > 0.75
