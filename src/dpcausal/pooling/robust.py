"""Huber's M-estimator of the effects of sites: a site that is far from the others has a bounded influence."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.arrays import Array

_BEND = 1.345
"""Residuals count up to so many standard errors: 95 % efficient where all are normal (Huber 1964)."""

_SQUARE = 0.7101645
"""The mean of the squared residual of a normal site, counted up to the bend."""

_STEPS = 45


@dataclass(frozen=True)
class RobustFit:
    """The centre of sites' effects, with each site's influence bounded.

    No site counts as more precise than the median one, because a site may overstate its precision. The between-site
    variance is that of Huber's second proposal, on top of the sites' own variances. The standard error comes from the
    residuals themselves (a sandwich, as Hartung and Knapp do for random effects), so it needs Student's t.

    Attributes:
        residuals: Each site's distance from the centre, in its own standard errors, heterogeneity included.

    Reference:
        Huber (1964), Robust estimation of a location parameter. Hartung and Knapp (2001), A refined method for the
        meta-analysis of controlled clinical trials with binary outcome.

    Example:
        >>> fit = RobustFit.of(np.array([-1.6, -1.1, -1.4, -0.9, 30.0]), np.array([0.2, 0.3, 0.2, 0.3, 0.005]))
        >>> round(fit.estimate, 1), fit.weights.round(2)
        (-1.0, array([0.27, 0.22, 0.27, 0.22, 0.01]))
    """

    estimate: float
    weights: Array
    between: float
    standard_error: float
    residuals: Array

    @classmethod
    def of(cls, estimates: Array, variances: Array) -> Self:
        """Fit the centre of two or more estimates with these variances."""
        floored = np.maximum(variances, np.median(variances))
        between = _between(estimates, floored)
        errors = np.sqrt(floored + between)
        centre = _centre(estimates, errors)
        residuals = (estimates - centre) / errors
        inside = np.abs(residuals) <= _BEND
        precisions = (errors.min() / errors) ** 2  # relative, so that no size overflows
        counted = precisions * np.minimum(1.0, _BEND / np.maximum(np.abs(residuals), _BEND))
        slopes = float(precisions[inside].sum()) or float(precisions.sum())
        scores = precisions * np.clip(residuals, -_BEND, _BEND) * errors
        count = len(estimates)
        error = math.sqrt(count / (count - 1)) * float(np.linalg.norm(scores)) / slopes
        return cls(centre, counted / counted.sum(), between, error, residuals)


def _centre(estimates: Array, errors: Array) -> float:
    """Return where the bounded residuals, by precision, add up to 0: a root of a falling, piecewise linear function."""
    corners = np.sort(np.concatenate([estimates - _BEND * errors, estimates + _BEND * errors]))
    residuals = (estimates - corners[:, None]) / errors
    scores = (np.clip(residuals, -_BEND, _BEND) * (errors.min() / errors)).sum(axis=1)
    after = int(np.argmax(scores <= 0)) or 1
    left, right = float(scores[after - 1]), float(scores[after])
    share = left / (left - right) if left > right else 0.5
    return float(corners[after - 1] + share * (corners[after] - corners[after - 1]))


def _between(estimates: Array, variances: Array) -> float:
    """Return the between-site variance at which squared residuals, up to the bend, have their expected sum."""
    expected = (len(estimates) - 1) * _SQUARE

    def excess(between: float) -> float:
        errors = np.sqrt(variances + between)
        residuals = (estimates - _centre(estimates, errors)) / errors
        return float((np.clip(residuals, -_BEND, _BEND) ** 2).sum()) - expected

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(variances.max())
    while excess(high) > 0:  # from the sites' own variances on, so that a far site costs no precision
        low, high = high, 4 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def scaled_errors(
    error: float, sampling_sd: float, noise: tuple[NoiseTerm, ...]
) -> tuple[float, tuple[NoiseTerm, ...], float]:
    """Return sampling error, noise and between-site error that add up to a standard error estimated from differences.

    What exceeds sampling error and noise is heterogeneity. Where sites agree better than both allow, both are scaled.
    """
    known = math.hypot(sampling_sd, *(math.sqrt(term.variance) for term in noise))
    if error >= known:
        return sampling_sd, noise, math.sqrt(error**2 - known**2)
    times = error / known
    return sampling_sd * times, tuple(replace(term, scale=term.scale * times) for term in noise), 0.0
