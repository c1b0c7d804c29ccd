"""What noise in both models leaves in a mean of augmented scores."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.model_errors import PropensityError
from dpcausal.estimators.noise_aware_regression import NoiseAwareRegressions, fit_noise_aware
from dpcausal.estimators.outcome_regression import fit_regressions
from dpcausal.estimators.propensity import ScoreQuery
from dpcausal.queries import BoundedInfluenceLogistic, ObjectivePerturbedLogistic, RegressionMoments
from dpcausal.utils.arrays import Array
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", -2, 2),
    covariates=[dpc.Real("x", -2, 2), dpc.Category("k", ["p", "q", "r"])],
)
OF = ["x", "k"]
TRUTH = np.array([1.6, 0.0, 0.4])
"""Slopes of the logit in x as a share of 2, and in two of three values as -1 or 1."""


def table(n: int) -> pa.Table:
    random = np.random.default_rng(0)
    x, k = np.clip(random.normal(0, 0.8, n), -2, 2), random.choice(["p", "q", "r"], n)
    t = (random.random(n) < 1 / (1 + np.exp(0.3 - 0.8 * x - 0.8 * (k == "r")))).astype(int)
    y = np.clip(0.5 * x + 0.3 * t + random.normal(0, 0.5, n), -2, 2)
    return pa.table({"t": t, "x": x, "k": k, "y": y})


QUERIES: tuple[type[ScoreQuery], ...] = (ObjectivePerturbedLogistic, BoundedInfluenceLogistic)


@cache
def errors(
    n: int, epsilon: float, runs: int, query: type[ScoreQuery] = BoundedInfluenceLogistic
) -> tuple[tuple[PropensityError, NoiseAwareRegressions], ...]:
    source = fresh_noise(table(n), SCHEMA)
    found = []
    for _ in range(runs):
        moments = source.release(RegressionMoments(OF), dpc.Guarantee(epsilon=5.0))
        score = source.release(query(OF), dpc.Guarantee(epsilon=epsilon))
        regressions, fit = (
            fit_noise_aware(moments, source),
            fit_regressions(moments, source, np.array([moments.values])),
        )
        found.append((PropensityError.of(score, fit, regressions.centres, SCHEMA), regressions))
    return tuple(found)


def slopes(found: tuple[tuple[PropensityError, NoiseAwareRegressions], ...]) -> Array:
    return np.array([error.coefficients[1:] for error, _ in found])


def test_propensity_is_the_same_in_both_kinds_of_features() -> None:
    error, regressions = errors(4_000, 0.5, 60)[0]
    released = np.array(error.released) / np.sqrt(3)
    for x, k in ((-1.0, "p"), (0.5, "q"), (1.0, "r")):
        of_score = np.array([1.0, x, k == "p", k == "q", k == "r"], dtype=float)
        of_regression = np.array([x, 1.0 if k == "q" else -1.0, 1.0 if k == "r" else -1.0]) - regressions.centres
        assert released @ of_score == pytest.approx(error.coefficients @ np.array([1.0, *of_regression]), abs=1e-6)


@pytest.mark.parametrize("query", QUERIES)
def test_correction_takes_the_shrinkage_of_the_ridge_off(query: type[ScoreQuery]) -> None:
    """The ridge takes a tenth or more of the slopes."""
    found = errors(4_000, 0.5, 60, query)
    mean, sd = slopes(found).mean(axis=0), slopes(found).std(axis=0)
    assert np.all(np.abs(mean - TRUTH) < 3 * sd / np.sqrt(60) + 0.08)


@pytest.mark.parametrize("query", QUERIES)
def test_covariance_of_the_score_matches_the_spread_of_releases(query: type[ScoreQuery]) -> None:
    found = errors(4_000, 0.5, 60, query)
    expected = np.sqrt([np.diag(error.covariance)[1:] for error, _ in found])
    ratio = np.median(expected, axis=0) / slopes(found).std(axis=0)
    assert np.all((ratio > 0.7) & (ratio < 1.45))


def test_what_is_left_in_is_the_product_of_both_errors() -> None:
    """Four times the noise in the score leaves four times as much in; without any nothing is left in."""
    error, regressions = errors(4_000, 0.5, 60)[0]
    noisier = PropensityError(error.released, error.coefficients, 16 * error.covariance, error.arms)
    exact = PropensityError(error.released, error.coefficients, 0 * error.covariance, error.arms)
    for estimand in ("ATE", "ATT", "ATO"):
        alone = exact.left_in(regressions, estimand, 0.001)
        product = np.sqrt(error.left_in(regressions, estimand, 0.001) ** 2 - alone**2)
        assert alone < 1e-3 * product + 1e-9
        assert noisier.left_in(regressions, estimand, 0.001) == pytest.approx(4 * product, rel=1e-3)


def test_clipping_leaves_out_what_is_beyond() -> None:
    error, _ = errors(4_000, 0.5, 60)[0]
    logits = np.random.default_rng(0).normal(error.coefficients[0], 1.0, 100_000)
    spread = error.arms.sum(axis=0)[1:, 1:]
    sd = np.sqrt(error.coefficients[1:] @ spread @ error.coefficients[1:])
    treated = 1 / (1 + np.exp(-(error.coefficients[0] + (logits - error.coefficients[0]) * sd)))
    assert error.clipped(0.3)[1][0] == pytest.approx(np.maximum(1 - treated / 0.3, 0).mean(), rel=0.05)
