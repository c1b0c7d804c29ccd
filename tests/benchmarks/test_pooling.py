"""Pooling by the set of smallest variance, against all sets and against the printed rule."""

import json
from pathlib import Path

from benchmarks.parts import PUBLISHED
from benchmarks.pooling import Setting, agreement, errors

PAGE = Path(__file__).parents[2] / "docs" / "pooling-evidence.md"


def test_the_best_prefix_is_the_best_of_all_sets() -> None:
    assert agreement(400, most=9)["agree"]


def test_floored_rule_is_no_worse_than_the_printed_rule() -> None:
    """Small sites, where noise makes printed variances negative: there the printed rule loses, and ours does not."""
    small, plain = errors(Setting(3, "small", 1.0, 0.0), 500), errors(Setting(3, "equal", 1.0, 0.0), 500)
    assert float(str(small["printed_variances_below_0"])) > 0.05
    assert float(str(small["z"])) < -5
    assert float(str(plain["z"])) < 3


def test_page_agrees_with_the_stored_result() -> None:
    page = PAGE.read_text(encoding="utf-8")
    covered = json.loads((PUBLISHED / "pooling.json").read_text(encoding="utf-8"))["coverage"]
    median = [line for line in covered if line["rule"] == "median" and line["coverage"] is not None]
    shares = [
        [100 * line["coverage"] for line in median if bool(line["between"]) == differ] for differ in (False, True)
    ]
    said = "with one effect {:.1f} to {:.1f}; where effects differ, only {:.0f} to {:.0f}"
    assert said.format(*(end(each) for each in shares for end in (min, max))) in page
