"""Means of two arms with their joint error, from totals, deficits and sizes."""

from functools import partial

import numpy as np

from dpcausal.release import Release, ValueOf
from dpcausal.source import Source, units_compared
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.uncertainty.joint_estimate import JointEstimate


def arm_sizes_of(release: Release, source: Source, value: ValueOf | None = None) -> tuple[Numbers, Numbers]:
    """Return the arms' sizes, at least 1 each, so that an empty arm has an answer like any other.

    Args:
        release: What was released; public sizes are not part of it.
        value: In a formula, what returns the number of a name in place of the release.
    """
    if source.arm_sizes is not None:
        return max(source.arm_sizes[0], 1.0), max(source.arm_sizes[1], 1.0)
    units = units_compared(source, release, value)
    treated = within((value or release.value)("size_1"), 1.0, units - 1.0)
    return units - treated, treated


def arm_means_of(
    release: Release, source: Source, value: ValueOf | None = None, total: str = "total"
) -> tuple[Numbers, Numbers]:
    """Return the arms' means, measured from where totals are; `total` names the sum that they are means of."""
    control, treated = arm_sizes_of(release, source, value)
    value = value or release.value
    return value(f"{total}_0") / control, value(f"{total}_1") / treated


def mean_difference(release: Release, source: Source) -> JointEstimate:
    """Return the difference of both means, with the noise in it."""

    def formula(value: ValueOf) -> list[Numbers]:
        control, treated = arm_means_of(release, source, value)
        return [treated - control]

    return release.estimates(["difference"], formula)


def joint_means(
    release: Release, source: Source, bounds: tuple[float, float], *, floored: bool = False
) -> JointEstimate:
    """Return both arms' means; noise in the sizes moves both.

    Args:
        release: Totals, deficits and, where arms are private, sizes.
        bounds: The public bounds of the number whose means they are.
        floored: Whether a variance is at least the standard deviation of the noise in it.
    """
    half, middle = (bounds[1] - bounds[0]) / 2, (bounds[0] + bounds[1]) / 2
    sizes, errors = arm_sizes_of(release, source), []
    for arm, (spread, size) in enumerate(zip(variances(release, source, half), sizes, strict=True)):
        least = release.variance(f"deficit_{arm}") ** 0.5 / size if floored else 0.0
        errors.append(min(max(spread, least), half**2) / max(size - 1, 1.0))
    return release.estimates(
        source.schema.treatment.labels_or_values,
        lambda value: [middle + mean for mean in arm_means_of(release, source, value)],
        np.diag(errors),
    )


def joint_sizes(release: Release, source: Source) -> JointEstimate:
    """Return both arms' sizes; they have noise where arms are private."""
    return release.estimates(source.schema.treatment.labels_or_values, partial(arm_sizes_of, release, source))


def variances(release: Release, source: Source, half: float) -> list[float]:
    """Return the variance in each arm, noise included; the square of a noisy mean is corrected for its noise."""
    arms = zip(arm_sizes_of(release, source), arm_means_of(release, source), strict=True)
    return [
        half**2 - release.value(f"deficit_{arm}") / size - mean**2 + release.variance(f"total_{arm}") / size**2
        for arm, (size, mean) in enumerate(arms)
    ]
