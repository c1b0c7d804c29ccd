"""What is known about features of covariates that have a scale: how they vary, and what they may leave in."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dpcausal.estimators.covariate_scales import ScaledCovariates
from dpcausal.queries.features import covariates_named, design_names
from dpcausal.results.propensity_score import PropensityScore
from dpcausal.schema.columns import Column, Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, scaled
from dpcausal.utils.arrays import Array

SCALED_VARIANCE = 1 / REACH**2
"""The variance of scores, by the way in which scales are made."""

SCALED_VARIANCE_SD = 0.3 * SCALED_VARIANCE
"""How far it is off: laws are of other shapes than the fitted one, and fitted in noise."""

SURE_SDS = 1.64
"""A number between declared bounds may fill any small part of them. Its variance is sure up to so many standard
deviations of the noise in it: of the noise in a variance near 0, one in twenty is larger."""

_MOST_SHARE = 0.9
"""The largest share of a covariate's confounding that its score may leave in."""


_MISSING_STAYS = 1.5
"""How much more than in proportion stays in among units without a value. Where covariates are independent and missing
at random, what stays is divided by 1 - R², R² that of treatment on all covariates: a third is strong confounding."""


def seen_as(schema: Schema, source: Source) -> Source:
    """Return a source with covariates by the scores that they have in a schema, as far as it declares the same."""
    declared = {column.name: column for column in source.schema.covariates}
    same = [column for column in schema.covariates if _alike(column, declared.get(column.name))]
    scales = {column.name: column.scale for column in same if isinstance(column, Real) and column.scale is not None}
    indicated = [column.name for column in same if column.indicator]
    return scaled(source, scales, indicated) if scales or indicated else source


def _alike(column: Column, own: Column | None) -> bool:
    """Return whether a column is of the kind of another, and a number between the same bounds."""
    if not (isinstance(column, Real) and isinstance(own, Real)):
        return type(column) is type(own)
    return (own.low, own.high) == (column.low, column.high)


def names_in(score: PropensityScore, covariates: Sequence[str]) -> tuple[str, ...]:
    """Return covariates, and after them the indicators of missing values that a score of them has."""
    names, own = tuple(covariates), score.covariates
    extra = covariates_named(own[len(names) :], score.schema) if len(own) > len(names) else ()
    return own if own[: len(names)] == names and all(isinstance(each, Indicator) for each in extra) else names


def scaled_among(covariates: Sequence[str], schema: Schema) -> list[bool]:
    """Return whether each feature of a regression on covariates is a number with a scale."""
    return _among(covariates, schema, lambda column: isinstance(column, Real) and column.scale is not None)


def unscaled_among(covariates: Sequence[str], schema: Schema) -> list[bool]:
    """Return whether each feature of a regression on covariates is a number between its declared bounds."""
    return _among(covariates, schema, lambda column: isinstance(column, Real) and column.scale is None)


def _among(covariates: Sequence[str], schema: Schema, chosen: Callable[[Column], bool]) -> list[bool]:
    return [
        chosen(column)
        for column in covariates_named(covariates, schema)
        for _ in range(1 if isinstance(column, Real) else len(column.values) - 1)
    ]


def with_known_variance(found: Array, noise: Array, scaled: Sequence[bool]) -> tuple[Array, Array]:
    """Return noisy variances of features and the variance of their error, with what scales make known of them."""
    precision = np.where(scaled, 1 / SCALED_VARIANCE_SD**2, 0.0)
    total = precision + 1 / np.maximum(noise, 1e-18)
    return (precision * SCALED_VARIANCE + found / np.maximum(noise, 1e-18)) / total, 1 / total


def surely_varies(found: Array, noise_sd: Array, unscaled: Sequence[bool]) -> Array:
    """Return variances of features as far as they are sure: of numbers without a scale, less than was found."""
    least: Array = found - np.where(unscaled, SURE_SDS, 0.0) * noise_sd
    return least


def left_by_scores(
    scaled: ScaledCovariates,
    features: Sequence[str],
    adjusted: Array,
    resolution: Array | None = None,
    *,
    ends: Mapping[str, float] = MappingProxyType({}),
) -> float:
    """Return a bound of the confounding that adjusting for features leaves in.

    Where treatment and outcome are linear in a shape whose squared correlation with the score is 1 - share, adjusting
    for the score takes off that part of the confounding by the covariate, and leaves the share in. Among units without
    a value all of it stays, and slopes are flatter for it. Of a number without a scale, the share of its variance that
    may be noise is left in.

    Args:
        adjusted: What each of them takes off the difference between arms.
        resolution: What is sure of each feature's variance, in standard deviations of the noise in it; none where
            intervals allow for noise in another way.
        ends: The share that the ends of a scale leave in, by covariate, where typical values misfit.
    """
    schema, scales, lacking = scaled.source.schema, scaled.scales, scaled.lacking
    missing = {feature: share for name, share in lacking.items() for feature in design_names([name], schema)}
    shares = [
        (scales[name].shape_share if name in scales else 0.0)
        + _MISSING_STAYS * missing.get(name, 0.0)
        + ends.get(name, 0.0)
        for name in features
    ]
    if resolution is not None:
        unscaled = {column.name for column in schema.covariates if isinstance(column, Real) and not column.scale}
        unsure = SURE_SDS / (SURE_SDS + np.maximum(resolution, 0.0))
        shares = [
            share + (float(off) if name in unscaled else 0.0)
            for share, name, off in zip(shares, features, unsure, strict=True)
        ]
    shares = [min(share, _MOST_SHARE) for share in shares]
    return float(sum(abs(off) * share / (1 - share) for off, share in zip(adjusted, shares, strict=True)))
