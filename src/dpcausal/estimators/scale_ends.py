"""What stays unadjusted where declared typical values are not typical, by moments of scores that are released anyway.

Values far out have the score of the nearer end of their scale. Where typical values are right these are few. Where
they are too close to each other, or elsewhere, these are many, and models hardly see how they differ. The mean and the
mean square of a score tell: for a normal law they say how many standard deviations the scale spans, and where it is.
"""

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpcausal.estimators.plausibility import Measured
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, innermost, units_compared
from dpcausal.utils.arrays import Array

_SDS = 2.0
"""A mean square stands out where it is larger by so many standard deviations of the noise in it."""

_USUAL_SQUARE = 0.2
"""The largest mean square, about 0, that laws of other shapes have on a scale that fits."""

_SKEWED = 1.5
"""How much more stays in than for a normal law: most covariates that are far out have a long tail."""

_MOST, _TOO_MUCH = 0.85, 0.6
"""The largest share that is said to stay in; and that from which on a bound by it is no bound."""

_PLACES: Array = np.linspace(-4.5, 4.5, 181)
_DENSITY: Array = np.exp(-(_PLACES**2) / 2) / np.exp(-(_PLACES**2) / 2).sum()
_CENTRES, _SPREADS = np.linspace(-6.0, 6.0, 121), 1.06 ** np.arange(-8.0, 48.0)
"""Normal laws to compare: how far the median is from the middle of the scale, in their own standard deviations; and
their standard deviation, in those that the scale takes them to have."""


def left_at_ends(release: Release, source: Source, schema: Schema | None = None) -> Mapping[str, float]:
    """Return the share of each number's confounding that the ends of its scale leave in, where typical values misfit.

    Args:
        release: A release that has the sums of scores, and of what their squares lack to 1.
        source: What was asked. A rehearsal takes typical values to be right.
        schema: The schema with the scales; by default the source's.
    """
    units, found = _units(release, source), {}
    columns = () if isinstance(innermost(source), Rehearsal) else (schema or source.schema).covariates
    for column in columns:
        if not isinstance(column, Real) or column.scale is None or column.typical is None:
            continue
        mean, lacking = (_mean(release, f"{kind}{column.name}", units) for kind in ("", "deficit of "))
        if mean is None or lacking is None:
            continue
        square, ends = 1 - lacking.value, _ends(column)
        if any(map(math.isfinite, ends)) and square - _SDS * lacking.noise_sd > _USUAL_SQUARE:
            shares = [
                _share(round(mean.value + up * mean.noise_sd, 3), round(square + out * lacking.noise_sd, 3), *ends)
                for up in (-1, 0, 1)
                for out in (0, 1)
            ]
            found[column.name] = min(_SKEWED * max(shares), _MOST)
    return found


def beyond_typical(left: Mapping[str, float], schema: Schema) -> tuple[str, ...]:
    """Return a warning for each number whose declared typical values leave in a part of its confounding."""
    declared = {column.name: column.typical for column in schema.covariates if isinstance(column, Real)}
    return tuple(
        f"{name} is not mostly between {low:,g} and {high:,g}, as its typical values declare: many units are at an end "
        f"of its scale, and models take them to be alike in {name}. The interval allows for what that may leave in, by "
        "a normal law, and may be too narrow for another. Declare between which values about 90 % of units lie, from "
        "public knowledge, or leave typical out"
        for name in left
        for low, high in [declared[name] or (0.0, 0.0)]
    )


def mostly_at_an_end(left: Mapping[str, float]) -> str:
    """Return why there is no interval where models hardly see a number at all; empty where they do."""
    names = ", ".join(name for name, share in left.items() if share >= _TOO_MUCH)
    return f"most units are at an end of the scale that typical values declare: {names}" if names else ""


def _ends(column: Real) -> tuple[float, float]:
    """Return the scores at which values further out are held; none where the scale reaches the column's bound."""
    (low, first), (high, last) = column.scale.knots[0], column.scale.knots[-1]  # type: ignore[union-attr]
    return (first if low > column.low else -math.inf), (last if high < column.high else math.inf)


def _units(release: Release, source: Source) -> float:
    """Return the number of units in the sums, public or as released."""
    arms = [name for name in release.names if name.startswith("arm_") and name.removeprefix("arm_").isdigit()]
    return max(sum(map(release.value, arms)), 2.0) if arms else units_compared(source, release)


def _mean(release: Release, name: str, units: float) -> Measured | None:
    """Return the mean of a number over units, from the sum that has it: without weights, or of every arm."""
    whole = next((each for each in (f"sum of {name}", f"total of {name}", name) if each in release.names), None)
    names = (whole,) if whole else tuple(each for each in release.names if each == f"{each.split(' * ')[0]} * {name}")
    names = names if whole else tuple(each for each in names if each.startswith("arm_"))
    if not names:
        return None
    noise_sd = math.sqrt(sum(map(release.variance, names)))
    return Measured(sum(map(release.value, names)) / units, noise_sd / units)


@lru_cache(maxsize=64)
def _laws(first: float, last: float) -> tuple[Array, Array, Array]:
    """Return means, mean squares and the shares left in, for all laws, given the scores of the ends."""
    values = _SPREADS[:, None, None] * (_PLACES + _CENTRES[:, None]) / REACH
    scores = np.clip(values, first, last)
    means, squares = scores @ _DENSITY, scores**2 @ _DENSITY
    along = (scores * _PLACES) @ _DENSITY
    variances = np.maximum(squares - means**2, 1e-9)
    return means, squares, np.clip(1 - along**2 / variances, 0.0, 1.0)


@lru_cache(maxsize=1024)
def _share(mean: float, square: float, first: float, last: float) -> float:
    """Return the share of the law that comes nearest to a mean and a mean square."""
    means, squares, left = _laws(first, last)
    place = np.argmin((means - mean) ** 2 + (squares - square) ** 2)
    return float(left.flat[place])
