"""The privacy curve of Gaussian noise, bounded from above in decimals, and what integers add to it.

Proof: docs/proofs/noise.md.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache

from dpcausal.guarantee import exact

_CONTEXT = Context(prec=60, traps=[])
"""Sixty digits: rounding moves nothing in the first thirty of a delta, whatever the caller's own context is."""

_ROOT_2_PI = Decimal("2.50662827463100050241576528481104525300698674060993831662992")

_BY_FRACTIONS_FROM = 4
"""From here on the continued fraction of the normal tail is used, below it the series."""

_FRACTIONS, _TERMS = 100, 100

_OFF_BY = Decimal("1e-40")
"""More than rounding and the terms that are left out move a value of the series; at most about 4,000 in size."""

_FIRST_STEP = Fraction(1, 2**40)
"""By which share the search goes up until the bound on delta confirms it; each step is twice the one before."""

_Q_BITS = Fraction(284, 10)
"""exp(-2 pi²) is below 2 to the power of minus this."""

_STEP = Fraction(1, 32)
"""The grid of added variances, in squared ticks."""


@cache
def curve_sd(epsilon: float, delta: float, kept: Fraction) -> Fraction:
    """Return the standard deviation at which normal noise has a share of epsilon and delta, for sensitivity 1.

    It is minimal up to one part in 10^9, and its delta is confirmed by `delta_above`.

    Args:
        epsilon: Read as the decimal that was typed, as delta is.
        kept: The share of both; what is left pays for what integers add.
    """
    allowed, most = exact(epsilon) * kept, exact(delta) * kept
    with localcontext(_CONTEXT):
        aim, at = _decimal(most).ln(), _decimal(allowed)
        # Enough by zCDP and its simplest conversion; from here by Newton's steps in logarithms.
        mu = Decimal(2).sqrt() * ((at - aim).sqrt() - (-aim).sqrt())
        for _ in range(50):
            found = _delta(mu, at)
            density = (-((at / mu - mu / 2) ** 2) / 2).exp() / _ROOT_2_PI  # the derivative of delta by mu
            change = (aim - found.ln()) * found / (mu * density)
            mu *= change.exp()
            if abs(change) < Decimal("1e-13"):
                break
        near = sd = Fraction(float(1 / mu))
    step = _FIRST_STEP
    while delta_above(sd, allowed) > most:
        sd, step = near * (1 + step), 2 * step
    return sd


def delta_above(sd: Fraction, epsilon: Fraction) -> Fraction:
    """Return a bound from above on the delta at this epsilon of normal noise, for sensitivity 1.

    With mu = 1 / sd and k = epsilon / mu - mu / 2 delta is Phi(-k) - exp(epsilon) Phi(-k - mu) (Balle and Wang 2018,
    Theorem 8), which is the normal density at k times the difference of Mills ratios at k and at k + mu.
    """
    with localcontext(_CONTEXT):
        return Fraction(min(_delta(1 / _decimal(sd), _decimal(epsilon)), Decimal(1)))


def _delta(mu: Decimal, epsilon: Decimal) -> Decimal:
    k = epsilon / mu - mu / 2
    if k < -_BY_FRACTIONS_FROM:
        return Decimal(1)
    density = (-k * k / 2).exp() / _ROOT_2_PI
    between = _mills(k, above=True) - _mills(k + mu, above=False)
    return density * between * (1 + _OFF_BY) + Decimal("1e-100")


def _mills(at: Decimal, *, above: bool) -> Decimal:
    """Return the tail of a normal distribution over its density, never on the wrong side of it.

    The series is half the root of 2 pi times exp(x²/2) less the sum of x^(2n + 1) / (1 · 3 · 5 … (2n + 1)). The
    continued fraction is 1 / (x + 1 / (x + 2 / (x + 3 / …))), which is above the ratio if cut off after an even number
    of its parts, and below it after an odd one.
    """
    if at >= _BY_FRACTIONS_FROM:
        tail = at
        for part in range(_FRACTIONS if above else _FRACTIONS + 1, 0, -1):
            tail = at + part / tail
        return 1 / tail
    term = total = at
    for odd in range(3, 2 * _TERMS, 2):
        term *= at * at / odd
        total += term
    half = _ROOT_2_PI / 2 * (at * at / 2).exp() - total
    return half + _OFF_BY if above else half - _OFF_BY


def grid_variance(smallest: Fraction, count: int, epsilon: Fraction, spare: Fraction) -> Fraction:
    """Return the variance, in squared ticks, that makes noise on integers as private as normal noise without it.

    That is but for a factor of at most exp(epsilon · spare), which also bounds what delta grows by.

    Args:
        smallest: The variance of the normal noise in the number that has the least, in squared ticks.
        spare: The share of epsilon and of delta that is kept back.
    """
    bits = int(9 * count / (min(epsilon, Fraction(1)) * spare) + 1).bit_length()
    added = Fraction(1, 4)
    while _Q_BITS * added * (1 + smallest / (smallest + added)) < bits:
        added += _STEP
    return added


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
