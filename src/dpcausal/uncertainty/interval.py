"""Intervals that account for sampling error and privacy noise, by Monte Carlo from public scales.

The random numbers here simulate known distributions after the release. They protect nobody, so they have a fixed seed:
the same effect always has the same interval.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import RefusedError
from dpcausal.utils.validation import is_number

DRAWS = 100_000

_MANY = 20
"""Beyond so many parts, a sum of Laplace noise has normal quantiles, to within a hundredth of its size."""

_FEW = 24
"""The draws of up to so many parts are remembered, and as many draws in all; each takes a megabyte."""

_OWN_TERMS = 7
"""So many of the largest terms keep their own distribution where there are very many."""

_SEED = 20
"""Public: the noise of a release was drawn before, in the vault."""

_HELD = 500_000
"""So many simulated numbers of scale 1 are drawn once and held: 4 MB, for each of a few shapes."""

_REMEMBERED = 256
"""How many half widths are remembered: a report, its verdict and its figures ask for the same one."""

_PERIOD, _INVERSION_STEPS, _DAMPED = 80.0, 2**18, 80.0
"""How many standard deviations the inversion of a characteristic function spans, in how many steps at most, and how far
it goes: to where the function is below e^-40."""

Family = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class NoiseTerm:
    """One independent part of an estimate's privacy noise, to first order.

    Attributes:
        scale: The scale of a Laplace, the standard deviation of a Gaussian, in the estimate's units.
        parts: The number of independent parts of one size that it is the sum of; their variances add up to its own. A
            sum of shares of Laplace noise need not be a whole number of parts: it is the difference of two Gamma
            variables of this shape.
    """

    family: Family
    scale: float
    parts: float = 1

    @property
    def variance(self) -> float:
        """The variance of this part."""
        return (2.0 if self.family == "laplace" else 1.0) * self.scale**2


def check_level(level: float) -> None:
    """Raise unless this is a level of confidence: below 0.5 an error probability is meant, from 1 on a percentage."""
    if not (is_number(level) and 0.5 <= level < 1):
        meant = 1 - level if is_number(level) and 0 < level < 0.5 else 0.95
        raise RefusedError(
            expected="a level of confidence from 0.5 to below 1",
            got=repr(level),
            hint=f"for a {100 * meant:g} % interval give {meant:g}.",
        )


def check_alpha(alpha: float) -> None:
    """Raise unless this is an error probability: above 0.5 a level of confidence is meant."""
    if not (is_number(alpha) and 0 < alpha <= 0.5):
        raise RefusedError(
            expected="an error probability alpha above 0, up to 0.5",
            got=repr(alpha),
            hint="for 95 % confidence give 0.05.",
        )


def check_margin(margin: object, *, most: float = math.inf, may_be_zero: bool = False) -> None:
    """Raise unless this is a margin: a size without a sign, below the largest effect that is possible.

    Args:
        most: The margin must be below this: 1 for a difference of risks.
    """
    number = float(margin) if is_number(margin) else None  # type: ignore[arg-type]
    if number is None or number < 0 or (number == 0 and not may_be_zero):
        raise RefusedError(
            problem=f"A margin must be a number {'of 0 or more' if may_be_zero else 'above 0'}, not {margin!r}"[:300],
            hint="write its size without a sign; the test puts it on the right side.",
        )
    if number >= most:
        raise RefusedError(
            problem=f"The margin of a difference of risks must be below {most:g}, not {margin!r}",
            hint="write a share: 0.02 for 2 percentage points.",
        )


def merged(terms: Sequence[NoiseTerm]) -> NoiseTerm:
    """Return independent terms of one family as one of the same variance, with as many parts as its tails call for.

    Example:
        >>> merged([NoiseTerm("laplace", 3.0), NoiseTerm("laplace", 4.0)])
        NoiseTerm(family='laplace', scale=5.0, parts=1)
    """
    squares = [term.scale**2 for term in terms]
    kurtosis = sum(square**2 / term.parts for square, term in zip(squares, terms, strict=True))
    parts = int(sum(squares) ** 2 / kurtosis) if kurtosis > 0 else 1
    return NoiseTerm(terms[0].family, math.sqrt(sum(squares)), max(parts, 1))


def simulated(family: Family, scales: Sequence[float], draws: int) -> NDArray[np.float64]:
    """Simulate independent noise of these scales, one draw a line."""
    unit = _held if draws * len(scales) <= _HELD else _unit
    noise: NDArray[np.float64] = unit(family, draws, len(scales)) * np.array(scales)
    return noise


def _unit(family: Family, draws: int, count: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(_SEED)  # a simulation from public sizes; it protects nothing
    draw = generator.laplace if family == "laplace" else generator.normal
    return draw(0.0, 1.0, (draws, count))


_held = lru_cache(maxsize=8)(_unit)


def simulated_sums(parts: Sequence[float], draws: int) -> NDArray[np.float64]:
    """Simulate sums of so many independent Laplace parts, each of the variance of one of scale 1, one draw a line."""
    generator = np.random.default_rng(_SEED)  # a simulation from public sizes; it protects nothing
    few = [min(each, _MANY) for each in parts]
    whole = [int(each) for each in few]
    unit = generator.laplace(0.0, 1.0, (draws, sum(whole)))
    ends = np.cumsum(whole)
    summed = [unit[:, end - each : end].sum(axis=1) for end, each in zip(ends, whole, strict=True)]
    for place, rest in enumerate(each - count for each, count in zip(few, whole, strict=True)):
        summed[place] = summed[place] + laplace_part(generator, rest, draws) if rest else summed[place]
    scaled: NDArray[np.float64] = np.stack([each / count**0.5 for each, count in zip(summed, few, strict=True)], axis=1)
    return scaled


def standard_noise(family: Family, parts: float, count: int, draws: int) -> NDArray[np.float64]:
    """Simulate noise of variance 1 that is the sum of so many parts, `count` numbers a line.

    It does not repeat what `simulated` gives for as many draws.
    """
    whole = int(parts)
    size = math.sqrt(0.5 / parts if family == "laplace" else 1 / whole)  # a sum of Gaussians is Gaussian
    drawn = simulated(family, [size] * count, (1 + whole) * draws)[draws:].reshape(whole, draws, count)
    noise: NDArray[np.float64] = drawn.sum(axis=0)
    if family == "laplace" and parts > whole:
        generator = np.random.default_rng(_SEED + 1)  # a simulation from public sizes; it protects nothing
        noise = noise + size * laplace_part(generator, parts - whole, noise.shape)
    return noise


def laplace_part(
    generator: np.random.Generator, part: float, size: int | tuple[int, ...] = DRAWS
) -> NDArray[np.float64]:
    """Simulate so large a part of Laplace noise of scale 1: independent parts of which the sum is 1 add up to it."""
    drawn: NDArray[np.float64] = generator.gamma(part, 1.0, size) - generator.gamma(part, 1.0, size)
    return drawn


def few_terms(noise: Sequence[NoiseTerm]) -> tuple[NoiseTerm, ...]:
    """Return the largest terms, and the sum of all others as one that is normal.

    What is computed from them then takes no longer with more terms. The others are many and small where there are any,
    so their sum is nearly normal.

    Example:
        >>> few_terms([NoiseTerm("laplace", 1.0)] * 40)[-1].family
        'gaussian'
    """
    ordered = sorted(noise, key=lambda term: -term.variance)
    rest = math.sqrt(sum(term.variance for term in ordered[_OWN_TERMS:]))
    return (*ordered[:_OWN_TERMS], *([NoiseTerm("gaussian", rest)] if rest > 0 else []))


def half_width(sampling_sd: float, noise: Sequence[NoiseTerm], level: float, bias: float = 0.0) -> float:
    """Return the distance that normal sampling error plus privacy noise stays within, with probability `level`.

    A bias of up to `bias` in either direction is allowed for, as in the bias-aware intervals of Armstrong and Kolesár
    (2018): with the largest bias the interval covers with probability `level`, with a smaller one more often.

    Example:
        >>> round(half_width(1.0, [], 0.95), 1)
        2.0
        >>> round(half_width(0.0, [NoiseTerm("laplace", 1.0)], 0.95), 1)  # ln 20
        3.0
        >>> round(half_width(1.0, [], 0.95, bias=0.5), 1)
        2.2
    """
    return _half_width(sampling_sd, tuple(noise), level, bias)


@lru_cache(_REMEMBERED)
def _half_width(sampling_sd: float, noise: tuple[NoiseTerm, ...], level: float, bias: float) -> float:
    terms = [(term, min(term.parts, _MANY) if term.family == "laplace" else 1) for term in noise]
    kinds = [(term.scale / parts**0.5, kind) for term, parts in terms for kind in _kinds(term.family, parts)]
    draws = _unit_draws(tuple(kind for _, kind in kinds))
    error = next(draws) * sampling_sd
    for scale, _ in kinds:
        error += next(draws) * scale
    return float(np.quantile(np.abs(error + bias), level))


def _kinds(family: Family, parts: float) -> tuple[Family | float, ...]:
    """Return what is drawn for so many parts of a family: as many draws, and what is left over as a part of a draw."""
    whole = int(parts)
    return (family,) * whole + ((parts - whole,) if parts > whole else ())


def beyond(distance: float, sampling_sd: float, noise: Sequence[NoiseTerm]) -> float:
    """Return the probability that normal sampling error plus privacy noise exceeds a distance, on one side.

    It is exact to nine decimal places: the characteristic function of the error is a product of known ones, and is
    inverted numerically (Davies 1973).

    Example:
        >>> round(beyond(1.96, 1.0, []), 3)
        0.025
        >>> round(beyond(1.0, 0.0, [NoiseTerm("laplace", 1.0)]), 3)  # exp(-1) / 2
        0.184
    """
    sd = math.sqrt(sampling_sd**2 + sum(term.variance for term in noise))
    if sd == 0:
        return float(distance < 0) if distance else 0.5
    at, weights = _inversion(sampling_sd, noise, abs(distance) / sd)
    inverted = 0.5 - float((np.sin(at * distance / sd) * weights).sum())
    return min(max(inverted, 0.0), 1.0)


def student_half_width(freedom: int, level: float) -> float:
    """Return how many standard errors Student's t stays within, with probability `level`.

    Example:
        >>> round(student_half_width(4, 0.95), 2)
        2.78
    """
    low, high = 0.0, math.pi / 2  # of the angle whose cotangent is the distance over the root of the degrees of freedom
    while low < (angle := (low + high) / 2) < high:
        low, high = (low, angle) if 2 * _student_tail(angle, freedom) > 1 - level else (angle, high)
    return math.sqrt(freedom) / math.tan(angle)


def student_beyond(distance: float, freedom: int) -> float:
    """Return the probability that Student's t exceeds a distance, in standard errors, on one side.

    Example:
        >>> round(student_beyond(2.776, 4), 3)
        0.025
    """
    tail = _student_tail(math.atan2(math.sqrt(freedom), abs(distance)), freedom)
    return tail if distance >= 0 else 1 - tail


def _student_tail(angle: float, freedom: int) -> float:
    """Return the probability of an angle below this one; its density is proportional to a power of its sine."""
    nodes, weights = _legendre()
    powers = np.sin(angle * (nodes + 1) / 2) ** (freedom - 1)
    log_total = math.lgamma(freedom / 2) + math.lgamma(0.5) - math.lgamma((freedom + 1) / 2)
    return float((weights * powers).sum()) * angle / 2 / math.exp(log_total)


@lru_cache(maxsize=1)
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss-Legendre quadrature, enough for 100,000 degrees of freedom."""
    return np.polynomial.legendre.leggauss(100)


def inverted_half_width(sampling_sd: float, noise: Sequence[NoiseTerm], level: float) -> float:
    """Return the same distance as `half_width` without simulation: faster, and as exact for levels very near 1.

    Example:
        >>> round(inverted_half_width(1.0, [], 0.95), 3)
        1.96
        >>> round(inverted_half_width(0.5, [NoiseTerm("laplace", 1.0)], 0.9999), 2)
        9.34
    """
    sd = math.sqrt(sampling_sd**2 + sum(term.variance for term in noise))
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if sd == 0 or all(term.family == "gaussian" for term in noise):
        return sd * normal
    # No error here has heavier tails than one Laplace term.
    low, high = 0.0, max(normal, -math.log(1 - level) / math.sqrt(2)) + 1
    at, weights = _inversion(sampling_sd, noise, high)
    beyond_at = (1 - level) / 2
    distance = min(normal, high)
    for _ in range(60):
        excess = 0.5 - float((np.sin(at * distance) * weights).sum()) - beyond_at
        low, high = (distance, high) if excess > 0 else (low, distance)
        density = float((np.cos(at * distance) * weights * at).sum())
        step = excess / density if density > 0 else math.inf
        distance = distance + step if low < distance + step < high else (low + high) / 2
        if abs(step) < 1e-9 or high - low < 1e-9:
            break
    return sd * distance


def _inversion(
    sampling_sd: float, noise: Sequence[NoiseTerm], farthest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where the characteristic function of an error is evaluated, and what each sine counts.

    All in standard deviations of the error. Beyond the last point the normal part has damped it to nothing.
    """
    normal = sampling_sd**2 + sum(term.variance for term in noise if term.family == "gaussian")
    laplace = [term for term in noise if term.family == "laplace"]
    sd = math.sqrt(normal + sum(term.variance for term in laplace))
    step = 2 * math.pi / (2 * farthest + _PERIOD)
    damped = math.sqrt(_DAMPED * sd**2 / normal) / step if normal > 0 else math.inf
    at = step * (np.arange(math.ceil(min(damped, _INVERSION_STEPS)), dtype=np.float64) + 0.5)
    squares = at**2
    log = squares * (-normal / sd**2 / 2)
    for term in laplace:
        log -= term.parts * np.log1p(squares * (term.scale**2 / sd**2 / term.parts))
    weights: NDArray[np.float64] = step / math.pi * np.exp(log) / at
    return at, weights


def _unit_draws(kinds: tuple[Family | float, ...]) -> Iterator[NDArray[np.float64]]:
    """Yield normal draws, and draws of scale 1 from each of these families, or of so large a part of a Laplace."""
    generator = np.random.default_rng(_SEED)  # a simulation from public sizes; it protects nothing
    for count in range(min(len(kinds), _FEW) + 1):
        draws, generator.bit_generator.state = _last_draws(kinds[:count])
        yield draws
    for kind in kinds[_FEW:]:
        yield _drawn(generator, kind)


@lru_cache(_FEW + 8)
def _last_draws(kinds: tuple[Family | float, ...]) -> tuple[NDArray[np.float64], Mapping[str, Any]]:
    """Return the last draws for these kinds, and the generator's state after them.

    They are remembered, since plans and reports ask for them often. Kinds that begin alike share what they begin with.
    """
    generator = np.random.default_rng(_SEED)  # a simulation from public sizes; it protects nothing
    if kinds:
        _, generator.bit_generator.state = _last_draws(kinds[:-1])
    draws = _drawn(generator, kinds[-1] if kinds else "gaussian")
    return draws, generator.bit_generator.state


def _drawn(generator: np.random.Generator, kind: Family | float) -> NDArray[np.float64]:
    if isinstance(kind, float):
        return laplace_part(generator, kind)
    return (generator.laplace if kind == "laplace" else generator.normal)(0.0, 1.0, DRAWS)


def critical_values(family: Family, shares: NDArray[np.float64], level: float, parts: float = 1) -> NDArray[np.float64]:
    """Return how many standard errors an error stays within, with probability `level`, for shares of privacy noise.

    An error is the sum of a normal part and of privacy noise, which has so many independent `parts` of one size. A
    share is the standard deviation of the noise over that of the whole error.

    Example:
        >>> critical_values("laplace", np.array([0.0, 1.0]), 0.95).round(1)
        array([2. , 2.1])
    """
    if family == "gaussian":
        return np.full(len(shares), NormalDist().inv_cdf((1 + level) / 2))
    known = np.linspace(0, 1, 11)
    generator = np.random.default_rng(_SEED)  # a simulation from public sizes; it protects nothing
    size, whole = (2 * parts) ** -0.5, int(parts)
    normal, noise = generator.normal(0, 1, DRAWS), generator.laplace(0, size, (whole, DRAWS)).sum(axis=0)
    noise = noise + size * laplace_part(generator, parts - whole) if parts > whole else noise
    errors = [np.abs(np.sqrt(1 - share**2) * normal + share * noise) for share in known]
    values: NDArray[np.float64] = np.interp(shares, known, [np.quantile(each, level) for each in errors])
    return values
