"""Pooling by the set of smallest variance, against all sets and against the printed rule."""

import json
from pathlib import Path

from benchmarks.papers.paper import written
from benchmarks.parts import PUBLISHED
from benchmarks.pooling import Setting, agreement, errors
from benchmarks.robust_pooling import LIE, tables, without_intervals, wrong_site

PAGE = Path(__file__).parents[2] / "docs" / "pooling-evidence.md"


def test_the_best_prefix_is_the_best_of_all_sets() -> None:
    assert agreement(400, most=9)["agree"]


def test_floored_rule_is_no_worse_than_the_printed_rule() -> None:
    """Small sites, where noise makes printed variances negative: there the printed rule loses, and ours does not."""
    small, plain = errors(Setting(3, "small", 1.0, 0.0), 500), errors(Setting(3, "equal", 1.0, 0.0), 500)
    assert float(str(small["printed_variances_below_0"])) > 0.05
    assert float(str(small["z"])) < -5
    assert float(str(plain["z"])) < 3


def test_median_resists_a_wrong_site_and_the_others_warn() -> None:
    rules = wrong_site(3, LIE, 5)["rules"]
    assert rules["median"]["rmse"] < 0.05
    for rule in ("minimum_variance", "inverse_variance", "sample_size", "largest"):
        assert rules[rule]["rmse"] > 0.2
        assert rules[rule]["warned"] == 1


def test_keeping_sites_without_an_interval_is_no_worse() -> None:
    rmse = without_intervals("any four", 60)["rmse"]
    assert rmse["kept"]["minimum_variance"] < rmse["left out"]["minimum_variance"]


def test_page_agrees_with_the_stored_result() -> None:
    stored = json.loads((PUBLISHED / "robust_pooling.json").read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, tables(stored)) == page
    covered = json.loads((PUBLISHED / "pooling.json").read_text(encoding="utf-8"))["coverage"]
    median = [line for line in covered if line["rule"] == "median" and line["coverage"] is not None]
    shares = [
        [100 * line["coverage"] for line in median if bool(line["between"]) == differ] for differ in (False, True)
    ]
    said = "with one effect {:.1f} to {:.1f}; where effects differ, only {:.0f} to {:.0f}"
    assert said.format(*(end(each) for each in shares for end in (min, max))) in page
