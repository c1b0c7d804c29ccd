"""Which moments a regression is fitted from, and what those of weighted units say about all of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.outcome_regression import OutcomeRegressions
from dpcausal.estimators.scaled_features import SCALED_VARIANCE
from dpcausal.guarantee import Guarantee
from dpcausal.queries import RegressionMoments, WeightedRegressionMoments
from dpcausal.queries.calibration import calibrate
from dpcausal.queries.features import covariates_named, design_names, numbers_among
from dpcausal.queries.regression_moments import CONSTANT, FIRST_FEATURE, OUTCOME
from dpcausal.queries.weighted_regression_moments import deficit_name, sum_name
from dpcausal.release import Release
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source

_MOST_STRETCHED = 2.0
"""How much larger variances without weights may be: what exceeds it is noise."""

Moments = RegressionMoments | WeightedRegressionMoments
"""The sums from which a regression of the outcome is fitted."""

_EXPLAINED_SD = 0.2
"""The standard deviation that covariates explain, in half ranges of the outcome."""

_WORTH_WHILE = 0.9
"""The largest share of the variance of the noise that weights may leave: weighted units tell a little less."""

_LEVEL = 0.2
"""How far the outcome's mean is from the middle of its range, in half ranges."""

_APART = 0.32
"""How far the arms' mean features are expected to be apart, squared and in variances: two by 0.4 each."""


def slope_moments(covariates: Sequence[str], source: Source, guarantee: Guarantee) -> Moments:
    """Return the moments that leave the least noise in slopes, from public numbers alone.

    They are for regressions whose residuals correct them: the constants of weighted ones are right only where outcomes
    are linear. Where no delta may be spent, and where outcomes alone are protected, weights are not worth their while.
    """
    plain, weighted = RegressionMoments(covariates), WeightedRegressionMoments(covariates)
    if guarantee.delta == 0 or source.schema.protects == "outcome":
        return plain

    def noise(query: Moments) -> float:
        asked = narrower(query, source, guarantee, "arm * outcome")
        return _expected_variance(query, source.schema, asked)

    return weighted if noise(weighted) < _WORTH_WHILE * noise(plain) else plain


def _expected_variance(query: Moments, schema: Schema, guarantee: Guarantee) -> float:
    """Return the variance that noise in slopes leaves in an adjusted difference, in half ranges and times n².

    It is that of the slopes, times how far the arms' mean features are apart, where arms are even.
    """
    made = calibrate(query, schema, guarantee)
    half = (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2
    spreads = np.array(
        [
            SCALED_VARIANCE if isinstance(column, Real) else 1.0
            for column in covariates_named(query.covariates, schema)
            for _ in range(1 if isinstance(column, Real) else len(column.values) - 1)
        ]
    )
    noise = np.zeros((len(spreads) + FIRST_FEATURE, len(spreads) + FIRST_FEATURE))
    parts = zip(query.moments(schema), made.sensitivity.coordinates, made.scales, strict=False)
    for moment, at, scale in parts:
        if not moment.signed:
            size = half ** (moment.first, moment.second).count(OUTCOME)
            places = [moment.first, moment.second], [moment.second, moment.first]
            noise[places] = (float(scale or 0.0) * at.tick / size) ** 2
    features = slice(FIRST_FEATURE, None)
    slopes = _EXPLAINED_SD**2 / len(spreads) / spreads
    in_slopes = noise[OUTCOME, features] + _LEVEL**2 * noise[CONSTANT, features] + noise[features, features] @ slopes
    return _APART * float((in_slopes / spreads).mean()) * (2.0 if made.family == "laplace" else 1.0)


def units_compared(release: Release, source: Source) -> float:
    """Return the number of units in the comparison, public or as released."""
    if source.arm_sizes is not None:
        return float(max(sum(source.arm_sizes), 2))
    if "compared" in release.names:
        return min(max(release.value("compared"), 2.0), float(source.n))
    return float(source.n)


def spread_as_all_units(fit: OutcomeRegressions, release: Release, source: Source) -> OutcomeRegressions:
    """Return regressions whose features spread as those of all units do, where they were fitted to weighted ones.

    Weights are smaller far out. Numeric covariates are stretched alike, by what they vary less than without weights.
    """
    query = release.query
    if not isinstance(query, WeightedRegressionMoments):
        return fit
    numbers = numbers_among(query.covariates, source.schema)
    n, weight = units_compared(release, source), float(fit.n[0])
    all_units = sum(
        1 - release.value(deficit_name(name)) / n - (release.value(sum_name(name)) / n) ** 2 for name in numbers
    )
    weighted = sum(release.value(f"{name} * {name}") / weight - (release.value(name) / weight) ** 2 for name in numbers)
    stretched = min(max(all_units / weighted, 1.0), _MOST_STRETCHED) if weighted > 0 else 1.0
    names = design_names(query.covariates, source.schema)
    by = np.array([stretched**0.5 if name in numbers else 1.0 for name in names])
    centre = (fit.sizes[:, :, None] * fit.centres).sum(axis=1, keepdims=True) / weight
    return replace(fit, centres=centre + by * (fit.centres - centre), covariances=fit.covariances * np.outer(by, by))
