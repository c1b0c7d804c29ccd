"""The arms' means behind an adjusted difference, with a joint error that agrees with that of the difference."""

from collections.abc import Sequence

import numpy as np

from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array


def adjusted_means(  # noqa: PLR0913 (all but two have names)
    schema: Schema,
    means: Sequence[float] | Array,
    *,
    sampling_sd: float,
    noise: Sequence[NoiseTerm],
    sampling: Array,
    noise_covariance: Array,
) -> JointEstimate:
    """Return both arms' means.

    The error of the difference is known term by term. That of the level, the mean of both arms' means, follows it as
    far as the covariances say, and has the rest to itself.

    Args:
        means: The means, the control arm's first.
        noise: The privacy noise in the difference.
        sampling: The covariance of the means' sampling errors, as far as it is known.
        noise_covariance: That of the privacy noise in them.
    """
    follows, rest = _level(sampling)
    along = np.array([follows - 0.5, follows + 0.5])
    covariance = sampling_sd**2 * np.outer(along, along) + rest
    follows, rest = _level(noise_covariance)
    terms = [
        JointNoise(term.family, (term.scale * (follows - 0.5), term.scale * (follows + 0.5)), term.parts)
        for term in noise
    ]
    return JointEstimate(
        names=schema.treatment.labels_or_values,
        values=(float(means[0]), float(means[1])),
        sampling=tuple(tuple(map(float, line)) for line in covariance),
        noise=(*terms, JointNoise("gaussian", (rest**0.5, rest**0.5))),
    )


def _level(covariance: Array) -> tuple[float, float]:
    """Return how the level moves with the difference, and the variance that it has to itself."""
    control, treated, both = covariance[0, 0], covariance[1, 1], covariance[0, 1]
    difference = max(float(control + treated - 2 * both), 0.0)
    if difference == 0:
        return 0.0, max(float(control), 0.0)
    follows = float(treated - control) / 2 / difference
    return follows, max(float(control + treated + 2 * both) / 4 - follows**2 * difference, 0.0)


def spread_over_arms(sampling_sd: float, schema: Schema, means: Sequence[float], shares: Sequence[float]) -> Array:
    """Divide the sampling variance of a difference between the arms' means.

    Each arm's part is one over its share of the units, times a risk's own variance where the outcome is binary.
    """
    spreads = np.ones(2)
    if isinstance(schema.outcome, Binary):
        spreads = np.maximum(np.array(means) * (1 - np.array(means)), 1e-3)
    parts = spreads / np.maximum(np.array(shares), 1e-3)
    covariance: Array = np.diag(sampling_sd**2 * parts / parts.sum())
    return covariance
