"""Typical values that are not typical: intervals allow for what models cannot see, and effects say so."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.covariate_scales import with_scales
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.queries import RegressionMoments
from dpcausal.results.effect import Estimator
from tests.support.engines import fresh_noise

NAMES = ["a", "b"]
N = 20_000
RIGHT, NARROW, ELSEWHERE, FAR = (1.4, 4.6), (2.7, 3.3), (4.0, 8.0), (5.0, 8.0)
ESTIMATORS: dict[str, Estimator] = {
    "regression": dpc.RegressionAdjustment(covariates=NAMES),
    "doubly robust": dpc.DoublyRobust(covariates=NAMES),
    "weighting": dpc.InverseWeighting(covariates=NAMES, estimand="ATE"),
    "contrasts": dpc.ArmContrasts(covariates=NAMES),
}


def confounded(seed: int = 0) -> tuple[pa.Table, float]:
    """Normal confounders around 3 with standard deviation 1: everything is linear in them."""
    random = np.random.default_rng(seed)
    x = np.clip(random.normal(3, 1, (2, N)), 0, 10)
    t = (random.random(N) < 1 / (1 + np.exp(-0.6 * (x - 3).sum(axis=0)))).astype(int)
    y = np.clip(8 + 1.5 * x.sum(axis=0) + t + random.normal(0, 1, N), 0, 40)
    return pa.table({"t": t, "y": y, "a": x[0], "b": x[1]}), 1.0


def schema_of(typical: tuple[float, float]) -> dpc.Schema:
    covariates = [dpc.Real(name, 0, 10, typical=typical, transform="linear") for name in NAMES]
    return dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 40, missing=20), covariates=covariates)


@pytest.mark.parametrize("typical", [NARROW, ELSEWHERE])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_intervals_allow_for_what_the_ends_of_a_scale_hide(name: str, typical: tuple[float, float]) -> None:
    table, truth = confounded()
    effect = ESTIMATORS[name].estimate(fresh_noise(table, schema_of(typical)), epsilon=6.0, delta=1e-6)
    low, high = effect.interval(0.95)
    assert abs(effect.estimate - truth) > 0.1  # an interval without the allowance would miss it
    assert low < truth < high
    assert any(text.startswith("a is not mostly between") for text in effect.warnings)
    assert not any("outside the comparison" in text for text in effect.warnings)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_is_allowed_for_where_typical_values_are_right(name: str) -> None:
    table, truth = confounded()
    effect = ESTIMATORS[name].estimate(fresh_noise(table, schema_of(RIGHT)), epsilon=6.0, delta=1e-6)
    low, high = effect.interval(0.95)
    assert low < truth < high < low + 0.4
    assert not effect.warnings
    said = "about 90 % of units are within the declared typical values, and values far beyond count alike in models"
    assert f"{said}: a 1.4 to 4.6, b 1.4 to 4.6" in effect.assumptions
    assert not any("lack a value" in text for text in effect.assumptions)  # which is counted


@pytest.mark.parametrize("name", ESTIMATORS)
def test_there_is_no_interval_where_most_units_are_at_an_end(name: str) -> None:
    table, _ = confounded()
    effect = ESTIMATORS[name].estimate(fresh_noise(table, schema_of(FAR)), epsilon=6.0, delta=1e-6)
    assert effect.no_interval.startswith(("most units are at an end of the scale", "privacy noise hides how a"))


def test_shares_left_in_follow_the_law() -> None:
    """A normal number that is cut at the ends of its scale: the share is that without noise, and half as much more."""
    table, _ = confounded()
    x = table["a"].to_numpy()
    for typical in (NARROW, (2.2, 3.8), ELSEWHERE):
        source = dpc.Vault(table, schema_of(typical), ledger="sqlite://", budget=dpc.Budget(epsilon=100))
        low, high = typical
        score = np.clip((x - (low + high) / 2) / (2.6 * (high - low) / 2 / 1.645), -1, 1)
        scaled = with_scales(source, NAMES, dpc.Guarantee(epsilon=50.0)).source
        release = scaled.release(RegressionMoments(NAMES), dpc.Guarantee(epsilon=50.0))
        exact = 1 - np.corrcoef(score, x)[0, 1] ** 2
        assert left_at_ends(release, scaled)["a"] == pytest.approx(1.5 * exact, rel=0.35)


def test_a_number_between_its_bounds_is_at_no_end() -> None:
    """Where a scale reaches the declared bounds, nothing is beyond it, however much a number varies."""
    table, _ = confounded()
    table = table.set_column(2, "a", pa.array(np.where(table["a"].to_numpy() > 3, 10.0, 0.0)))
    columns = [dpc.Real("a", 0, 10, typical=(0, 10), transform="linear"), *schema_of(RIGHT).covariates[1:]]
    schema = replace(schema_of(RIGHT), covariates=columns)
    effect = dpc.RegressionAdjustment(covariates=NAMES).estimate(fresh_noise(table, schema), epsilon=6.0)
    assert not effect.warnings
