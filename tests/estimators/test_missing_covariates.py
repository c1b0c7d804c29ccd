"""Indicators and levels for missing cells adjust as other covariates do, and effects say how cells counted."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.results.effect import Estimator
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 10),
    covariates=[
        dpc.Real("lab", 0, 10, missing=5, indicator=True),
        dpc.Category("smoking", ["never", "ever", "not recorded"]),
    ],
)
NAMES = ("lab", "lab is missing", "smoking")
HANDLED = "a covariate that is missing or not declared counted as: lab 5 with an indicator, smoking not recorded"
ADJUSTING: dict[str, Estimator] = {
    "stratification": dpc.Stratification(by=[dpc.Cut("lab", [3, 7]), "lab is missing", "smoking"]),
    "regression": dpc.RegressionAdjustment(covariates=NAMES),
    "doubly robust": dpc.DoublyRobust(covariates=NAMES),
    "weighting": dpc.InverseWeighting(covariates=NAMES, estimand="ATO"),
    "winsorised": dpc.Winsorised(dpc.RegressionAdjustment(covariates=NAMES)),
}


def table(n: int = 40_000) -> pa.Table:
    """Units whose laboratory value or smoking is missing are treated more often, and worse off; the effect is 1."""
    random = np.random.default_rng(1)
    lab, away = random.uniform(2, 8, n), random.random(n) < 0.3
    smoking = random.choice(["never", "ever", "unknown"], n, p=[0.5, 0.3, 0.2])
    gone = smoking == "unknown"
    treated = random.random(n) < 0.35 + 0.25 * away + 0.15 * gone
    y = 3 + 0.2 * np.where(away, 0, lab - 5) + 1.5 * away + 0.8 * gone + treated + random.uniform(-1, 1, n)
    return pa.table({"t": treated.astype(int), "y": y, "lab": np.where(away, np.nan, lab), "smoking": smoking})


@pytest.mark.parametrize("name", ADJUSTING)
def test_missingness_that_confounds_is_adjusted_for(name: str) -> None:
    source = fresh_noise(table(), SCHEMA)
    plain = dpc.DifferenceInMeans().estimate(source, epsilon=10.0).estimate - 1
    effect = ADJUSTING[name].estimate(source, epsilon=10.0)
    assert plain > 0.4
    assert abs(effect.estimate - 1) < 0.15
    assert effect.assumptions.count(HANDLED) == 1


def test_without_its_indicator_missingness_is_left_in() -> None:
    left_in = dpc.RegressionAdjustment(covariates=["lab", "smoking"]).estimate(
        fresh_noise(table(), SCHEMA), epsilon=10.0
    )
    assert left_in.estimate > 1.2
    assert "a covariate that is missing or not declared counted as: lab 5, smoking not recorded" in left_in.assumptions


def test_nothing_is_said_of_covariates_that_are_not_used() -> None:
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)
    assert not any("missing covariate" in text for text in effect.assumptions)
    only = dpc.Stratification(by=["smoking"]).estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)
    assert "a covariate that is missing or not declared counted as: smoking not recorded" in only.assumptions
    assert replace(SCHEMA, covariates=()).covariate_handling(["lab"]) == ()


def test_a_missing_value_counts_as_the_middle_of_its_scale_and_the_effect_says_so() -> None:
    """Models see a number by its score, so what a missing one counts as follows from the scale, not from the bounds."""
    random = np.random.default_rng(2)
    n = 20_000
    crp = np.where(random.random(n) < 0.2, np.nan, np.exp(random.normal(2, 0.6, n)))
    age = random.normal(60, 8, n)
    treated = (random.random(n) < 0.5).astype(int)
    y = np.clip(5 + treated + random.normal(0, 1, n), 0, 10)
    covariates = [dpc.Real("crp", 0.1, 500), dpc.Real("age", 18, 100, typical=(45, 75))]
    schema = replace(SCHEMA, covariates=covariates)
    source = fresh_noise(pa.table({"t": treated, "y": y, "crp": crp, "age": age}), schema)
    for estimator in (
        dpc.RegressionAdjustment(covariates=["crp", "age"]),
        dpc.DoublyRobust(covariates=["crp", "age"]),
        dpc.InverseWeighting(covariates=["crp", "age"]),
    ):
        said = [text for text in estimator.estimate(source, epsilon=4.0).assumptions if "a covariate" in text]
        found = re.fullmatch(
            r"a covariate that is missing or not declared counted as: crp ([\d.]+) with an indicator, age ([\d.]+)",
            said[0],
        )
        assert found
        assert 5 < float(found[1]) < 10  # the median is 7.4; the middle of the bounds is 250
        assert 45 < float(found[2]) < 75
        assert len(said) == 1
