"""Plans on ordinary tables: what a planner who knows them expects."""

import math

import numpy as np
import pytest

from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.plans import informed


def test_an_informed_planner_knows_how_far_apart_arms_are() -> None:
    """Of T25 all follows from a normal logit; its standard deviation is that of ten slopes of 0.293."""
    places, masses = np.polynomial.hermite_e.hermegauss(101)
    masses /= masses.sum()
    propensity = 1 / (1 + np.exp(-0.293 * math.sqrt(10) * places))
    apart = 4 * float(masses @ (places * propensity)) * 2.5 * math.sqrt(10)
    expected = informed(TABLES["T25"])
    assert expected.overlap == pytest.approx(2 * masses @ np.minimum(propensity, 1 - propensity), abs=0.01)
    assert expected.confounding * expected.sd == pytest.approx(apart, rel=0.02)
    assert expected.sd == pytest.approx(math.sqrt(64 + 62.5 - (apart / 2) ** 2), rel=0.02)
    assert expected.treated_share == pytest.approx(0.5, abs=0.01)


def test_an_informed_planner_declares_indicators_of_what_is_missing() -> None:
    schema = informed(TABLES["LAB log 15 X10"]).schema
    assert [column.name for column in schema.covariates if getattr(column, "indicator", False)] == ["creatinine"]
    assert not any(getattr(column, "indicator", False) for column in informed(TABLES["LAB log 15"]).schema.covariates)


def test_outcomes_that_are_missing_are_out_of_the_comparison() -> None:
    assert informed(TABLES["O Y20"]).share_compared == pytest.approx(0.8, abs=0.01)


def test_a_trial_has_no_confounding() -> None:
    assert (informed(TABLES["K"]).confounding, informed(TABLES["K"]).overlap) == (0.0, None)
