"""Means of two arms with their joint error, from totals, deficits and sizes."""

from dpcausal.interval import NoiseTerm
from dpcausal.joint_estimate import JointEstimate
from dpcausal.release import Release
from dpcausal.source import Source, units_compared


def arm_sizes_of(release: Release, source: Source) -> tuple[float, float]:
    """Return the arms' sizes, at least 1 each, so that an empty arm has an answer like any other."""
    if source.arm_sizes is not None:
        return max(source.arm_sizes[0], 1.0), max(source.arm_sizes[1], 1.0)
    units = units_compared(source, release)
    treated = min(max(release.value("size_1"), 1.0), units - 1.0)
    return units - treated, treated


def difference_noise(release: Release, sizes: tuple[float, float], means: list[float]) -> tuple[NoiseTerm, ...]:
    """Return the noise in the difference of both means, which are measured from where totals are."""
    noise = [release.noise_term(f"total_{arm}", 1 / sizes[arm]) for arm in (0, 1)]
    return (
        *noise,
        *(
            release.noise_term(name, abs(treated - control))
            for name, (control, treated) in size_slopes(release, sizes, means).items()
        ),
    )


def size_slopes(release: Release, sizes: tuple[float, float], means: list[float]) -> dict[str, tuple[float, float]]:
    """Return how far one more in each released size moves the mean of each arm, measured from where totals are.

    Args:
        release: The release; public sizes are not part of it.
        sizes: The arms' sizes.
        means: The arms' means, from the same point as their totals.
    """
    slopes = {"size_1": (means[0] / sizes[0], -means[1] / sizes[1]), "compared": (-means[0] / sizes[0], 0.0)}
    return {name: along for name, along in slopes.items() if name in release.names}


def joint_means(  # noqa: PLR0913 (the last has a default)
    release: Release,
    source: Source,
    sizes: tuple[float, float],
    means: list[float],
    bounds: tuple[float, float],
    *,
    floored: bool = False,
) -> JointEstimate:
    """Return both arms' means; noise in the sizes moves both.

    Args:
        release: Totals, deficits and, where arms are private, sizes.
        source: What was asked.
        sizes: The arms' sizes.
        means: The arms' means, from the middle of the bounds.
        bounds: The public bounds of the number whose means they are.
        floored: Whether a variance is at least the standard deviation of the noise in it.
    """
    half, middle = (bounds[1] - bounds[0]) / 2, (bounds[0] + bounds[1]) / 2
    spreads = variances(release, half, sizes, means)
    errors = []
    for arm, (within, size) in enumerate(zip(spreads, sizes, strict=True)):
        least = release.variance(f"deficit_{arm}") ** 0.5 / size if floored else 0.0
        errors.append(min(max(within, least), half**2) / max(size - 1, 1.0))
    slopes = {"total_0": (1 / sizes[0], 0.0), "total_1": (0.0, 1 / sizes[1])} | size_slopes(release, sizes, means)
    return JointEstimate(
        names=source.schema.treatment.labels_or_values,
        values=(middle + means[0], middle + means[1]),
        sampling=((errors[0], 0.0), (0.0, errors[1])),
        noise=tuple(release.joint_noise(name, along) for name, along in slopes.items()),
    )


def joint_sizes(release: Release, source: Source, sizes: tuple[float, float]) -> JointEstimate:
    """Return both arms' sizes; they have noise where arms are private."""
    slopes = {"size_1": (-1.0, 1.0), "compared": (1.0, 0.0)} if source.arm_sizes is None else {}
    return JointEstimate(
        names=source.schema.treatment.labels_or_values,
        values=sizes,
        sampling=((0.0, 0.0), (0.0, 0.0)),
        noise=tuple(release.joint_noise(name, along) for name, along in slopes.items() if name in release.names),
    )


def variances(release: Release, half: float, sizes: tuple[float, float], means: list[float]) -> list[float]:
    """Return the variance in each arm, noise included; the square of a noisy mean is corrected for its noise."""
    return [
        half**2 - release.value(f"deficit_{arm}") / size - mean**2 + release.variance(f"total_{arm}") / size**2
        for arm, (size, mean) in enumerate(zip(sizes, means, strict=True))
    ]
