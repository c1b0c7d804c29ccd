"""The only place where privacy noise is drawn: OpenDP's exact discrete samplers on the operating system's entropy.

There is no seed, and none can be given. Only `vault/door.py` imports this file: the door owns the sampler, and hands it
to each answer in its context.
"""

import math
import secrets
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance

from dpcausal.errors import EngineError
from dpcausal.queries.calibration import Noise, NoiseShare, float_above
from dpcausal.release import Noisy
from dpcausal.utils.arrays import Array, Int64s

_LIMIT = 2**62


class Sampler:
    """Every draw that a release is made of."""

    def add_noise(self, ticks: Sequence[int], noise: Noise) -> Noisy:
        """Return the integers with independent discrete noise on each.

        OpenDP does not check its input: a sum too large for 64 bits, a scale of 0 or a wrong length would go through
        silently. None of these can come from rows (docs/proofs/door.md); they are refused all the same. A scale may be
        as large as it likes, since it may come from rows: noisy numbers beyond 64 bits become the largest there is,
        which is post-processing.
        """
        scales = [scale for scale in noise.scales if scale is not None and 0 < scale < math.inf]
        if not all(abs(tick) < _LIMIT for tick in ticks) or not len(ticks) == len(noise.scales) == len(scales):
            raise EngineError(
                expected="as many 64-bit sums as positive noise scales",
                got="something else",
                hint="this is a defect in dpcausal: please report it. The budget is spent; nothing was released.",
            )
        noisy = list(ticks)
        for scale in set(scales):
            places = [place for place, each in enumerate(scales) if each == scale]
            drawn = _drawn([ticks[place] for place in places], scale, noise.family)
            for place, value in zip(places, drawn, strict=True):
                noisy[place] = value
        return Noisy(tuple(noisy))

    def add_noise_share(self, ticks: Sequence[int], share: NoiseShare) -> list[int]:
        """Return the integers with one site's share of the noise on each, for a sum over sites that nobody sees apart.

        A share of Laplace noise is the difference of two negative binomials; of Gaussian noise, a smaller discrete
        Gaussian. Proof: docs/proofs/noise_shares.md.
        """
        if not all(abs(tick) < _LIMIT for tick in ticks) or len(ticks) != len(share.scales):
            raise EngineError(
                expected="as many 64-bit sums as shares of noise",
                got="something else",
                hint="this is a defect in dpcausal: please report it. The budget is spent; nothing was released.",
            )
        noisy = list(ticks)
        for scale in set(share.scales):
            places = [place for place, each in enumerate(share.scales) if each == scale]
            if share.family == "gaussian":
                drawn = _drawn([0] * len(places), scale, "gaussian")
            else:
                one, other = (_negative_binomials(len(places), scale, share.honest) for _ in range(2))
                drawn = (one - other).tolist()
            for place, noise in zip(places, drawn, strict=True):
                noisy[place] += noise
        return noisy

    def laplace(self, ticks: Sequence[int], scale: float) -> list[int]:
        """Return every integer with discrete Laplace noise of one scale."""
        return _drawn(ticks, scale, "laplace")

    def randomised_response(self, answers: Sequence[int], epsilon: Fraction) -> list[int]:
        """Return each yes (1) or no (0) as it is with probability e^epsilon / (1 + e^epsilon), and else turned round.

        An integer 0 with discrete Laplace noise of scale 1 / epsilon comes out above 0 with exactly probability
        1 / (1 + e^epsilon).
        """
        turned = _drawn([0] * len(answers), float_above(1 / epsilon), "laplace")
        return [answer ^ (noise > 0) for answer, noise in zip(answers, turned, strict=True)]

    def cube(self, dimensions: int, scale: float) -> Array:
        """Return a vector with density in proportion to exp(-(largest entry) / scale).

        It is exact to within (dimensions + 1) 2^-48 scale. Its size has a Gamma distribution with shape dimensions + 1,
        here a sum of geometric numbers on a fine grid, and its direction is uniform over a cube. (K-norm mechanism of
        Hardt and Talwar 2010, for the largest-entry norm.)
        """
        corners = [secrets.randbelow(2**53 + 1) / 2**52 - 1 for _ in range(dimensions)]
        return np.array(corners) * (_gamma(dimensions + 1) * scale)

    def ball(self, dimensions: int, scale: float) -> Array:
        """Return the first so many entries of a vector with density in proportion to exp(-length / scale).

        The vector has an even dimension, one more than asked for where that is odd. Its length has a Gamma distribution
        with that shape, and is exact to within dimension 2^-48 scale. Its direction is uniform over the sphere, to
        within 2^-47: squares of the lengths of pairs of entries are the gaps between uniform numbers, and angles are
        uniform. (K-norm mechanism of Hardt and Talwar 2010, for the Euclidean norm.)
        """
        pairs = (dimensions + 1) // 2
        whole = 2**128
        places = sorted(secrets.randbelow(whole + 1) for _ in range(pairs - 1))
        lengths = np.sqrt(np.array([high - low for low, high in pairwise((0, *places, whole))], dtype=float) / whole)
        angles = np.array([secrets.randbelow(2**53) for _ in range(pairs)]) * (2 * math.pi / 2**53)
        vector = np.column_stack([lengths * np.cos(angles), lengths * np.sin(angles)]).ravel()[:dimensions]
        return np.asarray(vector * (_gamma(2 * pairs) * scale))


def _drawn(ticks: Sequence[int], scale: float, family: str) -> list[int]:
    integers = vector_domain(atom_domain(T="i64"))
    if family == "laplace":
        sample = make_laplace(integers, l1_distance(T="i64"), scale=scale)
    else:
        sample = make_gaussian(integers, l2_distance(T="i64"), scale=scale)
    noisy: list[int] = sample(list(ticks))
    return noisy


def _gamma(shape: int) -> float:
    """Draw a Gamma number of this shape, to within shape 2^-48 below: a sum of geometric numbers on a fine grid."""
    fine, size = 2.0**48, 0
    for _ in range(shape):
        # A discrete Laplace that is not negative is geometric: a rounded-down exponential.
        while (draw := _drawn([0], fine, "laplace")[0]) < 0:
            pass
        size += draw
    return size / fine


def _negative_binomials(count: int, scale: float, honest: int) -> Int64s:
    """Draw negative binomials of size 1 / honest: as many together as are honest make one geometric number.

    A geometric number is a Poisson number of jumps. Given their sum, the jumps are the cycle lengths of a random
    permutation; keeping each with probability 1 / honest leaves a Poisson number with that share of the mean.
    """
    left = _geometrics(count, scale)
    kept = np.zeros(count, dtype=np.int64)
    while len(places := left.nonzero()[0]):
        cycles = _below(left[places]) + 1
        kept[places] += cycles * (_below(np.full(len(places), honest)) == 0)
        left[places] -= cycles
    return kept


def _geometrics(count: int, scale: float) -> Int64s:
    """Draw numbers from 0 on, each less likely by exp(-1 / scale) than the one before.

    Laplace noise given that it is not negative is such a number; and given that it is negative, -1 less the noise is.
    """
    draws = np.array(_drawn([0] * count, scale, "laplace"), dtype=np.int64)
    return np.where(draws < 0, ~draws, draws)


def _below(limits: Int64s) -> Int64s:
    """Draw integers from 0 to below each positive limit, all alike: random bits, drawn again where they are beyond."""
    bits = limits - 1
    for shift in (1, 2, 4, 8, 16, 32):
        bits |= bits >> shift
    found = _random(len(limits)) & bits
    while len(beyond := (found >= limits).nonzero()[0]):
        found[beyond] = _random(len(beyond)) & bits[beyond]
    return found


def _random(count: int) -> Int64s:
    return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.int64)
