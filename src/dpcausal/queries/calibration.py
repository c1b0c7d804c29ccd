"""From a guarantee and a sensitivity to the size of the noise. Public arithmetic, rounded to the safe side."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal, NamedTuple, Self, get_args

from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP
from opendp.domains import atom_domain
from opendp.measurements import make_gaussian
from opendp.metrics import absolute_distance
from opendp.mod import enable_features

from dpcausal.errors import GuaranteeError, QueryError
from dpcausal.guarantee import Event, Guarantee, Rule, exact
from dpcausal.queries import Query, Sensitivity, question, seen_by
from dpcausal.queries.privacy_curve import curve_sd, grid_variance
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.sums.roots import root_above

# OpenDP's name for all constructors whose proofs have not passed its last vetting stage; there is no other kind.
enable_features("contrib")

SPARE = (Fraction(1, 2**20), Fraction(1, 2**10))
"""Which share of epsilon and delta pays for noise on integers not being normal. The first that gives less noise than
zCDP is taken: the larger one for noise of a few ticks."""

_INFLATED = tuple(1 + Fraction(1, 2**power) for power in (40, 20, 10, 7))
"""By how much shares of Gaussian noise may be larger than a share of the variance, because their sum is not quite a
discrete Gaussian. The first that covers the difference is taken."""

_LARGEST_EXPONENT = 4096
"""Where the bound on that difference is cut: 2^-4096 is small enough for any number of sites and coordinates."""

_LARGEST_SCALE = 2**52
"""In ticks. Sums with larger noise would not fit into 64 bits."""

_NEAR = 1e-10
"""How near the standard deviation in floats is to that which OpenDP allows, as a share of it."""


@dataclass(frozen=True)
class Noise:
    """The noise that an answer will get: independent in each coordinate, of one family.

    Attributes:
        sensitivity: What the noise was calibrated to.
        scales: The size of each coordinate's noise in ticks: the scale of a Laplace, the standard deviation of a
            Gaussian; None where only the table knows it.
    """

    sensitivity: Sensitivity
    scales: tuple[float | None, ...]
    event: Event

    @property
    def family(self) -> Literal["laplace", "gaussian"]:
        """The noise's distribution."""
        return "gaussian" if self.event.family == "gaussian" else "laplace"


def calibrate(query: Query, schema: Schema, guarantee: Guarantee, rule: Rule = "additive") -> Noise:
    """Return the noise that gives this query this guarantee: Laplace where delta is 0, otherwise Gaussian.

    Args:
        rule: How the ledger adds up prices. Where it adds up epsilons, Gaussian noise is as small as its own privacy
            curve allows. Under `zcdp` it is what a budget of this epsilon and delta covers once. So is that of a
            schedule of looks, which goes on as it began.

    Example:
        >>> from dpcausal import Guarantee, Real, Schema, Treatment
        >>> from dpcausal.queries import ArmTotals
        >>> trial = Schema(Treatment("t"), Real("y", 0, 1, missing=0), protects="record_within_arm")
        >>> noise = calibrate(ArmTotals(), trial, Guarantee(epsilon=2.0, protects="record_within_arm"))
        >>> [scale * at.tick for scale, at in zip(noise.scales, noise.sensitivity.coordinates)]  # (1 - 0) / 2
        [0.5, 0.5]
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    schema = seen_by(query, schema)
    protects = schema.bounded_as(guarantee.protects)
    wrong = {"laplace": delta > 0, "either": False}.get(query.noise, delta == 0)
    if wrong:
        raise QueryError(
            expected=f"delta {'0' if delta else 'greater than 0'} for {query.name}",
            got=f"delta {delta:g}",
            hint="it is made for that kind of guarantee only.",
        )
    if delta == 0 or query.noise == "smooth":
        sensitivity = query.sensitivity(schema, protects, "l1")
        size, added = 1 / exact(epsilon), Fraction(0)
        event = Event(family="smooth" if delta else "laplace", epsilon=epsilon, delta=delta, mu=0.0)
    else:
        sensitivity = query.sensitivity(schema, protects, "l2")
        by_curve = rule == "additive" and not query.prepaid
        size, added = _gaussian(sensitivity, epsilon, delta) if by_curve else (_rho_sd(epsilon, delta), Fraction(0))
        event = Event(family="gaussian", epsilon=epsilon, delta=delta, mu=float_above(1 / size))
    return Noise(sensitivity, _scales(sensitivity, size, added), event)


def calibrations(query: Query, schema: Schema, guarantee: Guarantee) -> tuple[Noise, ...]:
    """Return the noise by each rule: a site does not say by which its ledger adds up."""
    return tuple(calibrate(query, schema, guarantee, rule) for rule in get_args(Rule))


def _gaussian(sensitivity: Sensitivity, epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
    """Return the sd for sensitivity 1 and a variance in squared ticks to add; by zCDP where that gives less noise."""
    by_rho = _rho_sd(epsilon, delta)
    ratios = {at.weight.as_integer_ratio() for at in sensitivity.coordinates if at.weight is not None}
    smallest = min(Fraction(*ratio) for ratio in ratios) * sensitivity.bound
    for spare in SPARE:
        sd = curve_sd(epsilon, delta, 1 - spare)
        variance = (smallest * sd) ** 2
        added = grid_variance(variance, len(sensitivity.coordinates), exact(epsilon), spare)
        if variance + added <= (smallest * by_rho) ** 2:
            return sd, added
    return by_rho, Fraction(0)


def _rho_sd(epsilon: float, delta: float) -> Fraction:
    return Fraction(gaussian_sd(epsilon, delta))


@dataclass(frozen=True)
class NoiseShare:
    """One site's share of a noise. The sum of `honest` independent shares is as private as the whole noise.

    Attributes:
        scales: For each coordinate, in ticks: the scale of the whole Laplace noise, of which a share is the difference
            of two negative binomials of size 1 / `honest`; or the standard deviation of one share of a Gaussian.
        honest: How many shares are the whole noise.
        inflation: The standard deviation of so many shares over that of the whole noise: a little above 1 for a
            Gaussian.
    """

    family: Literal["laplace", "gaussian"]
    scales: tuple[float, ...]
    honest: int
    inflation: float = 1.0


def share_of(noise: Noise, honest: int) -> NoiseShare:
    """Return the share of a noise that each site adds, where `honest` shares together are the whole noise.

    Laplace shares add up to Laplace noise exactly. The sum of Gaussian shares is close to a discrete Gaussian; each
    share is a little larger, which covers the difference. Proof: docs/proofs/noise_shares.md.

    Raises:
        QueryError: If the noise cannot be shared: its scales are private, too large, or for a Gaussian too small or not
            by zCDP, in which the proof is.
    """
    scales = [scale for scale in noise.scales if scale is not None and scale <= _LARGEST_SCALE]
    if noise.event.family not in ("laplace", "gaussian") or len(scales) < len(noise.scales):
        raise QueryError(
            expected="noise whose size is public and at most 2^52 ticks, for a secure sum",
            got="another noise",
            hint='leave out aggregation = "secure", or ask another query.',
        )
    if noise.family == "laplace":
        return NoiseShare("laplace", tuple(scales), honest)
    if noise.event.mu > float_above(1 / _rho_sd(noise.event.epsilon, noise.event.delta)):
        raise QueryError(
            expected="Gaussian noise calibrated by zCDP, for shares",
            got="noise that is as small as one release alone allows",
            hint="take Asked.shared_noise.",
        )
    for inflated in _INFLATED:
        shares = {scale: float_above(root_above((Fraction(scale) * inflated) ** 2 / honest)) for scale in set(scales)}
        room = Fraction(noise.event.mu) * (1 - 1 / inflated) / 2
        excess = sum(scales.count(scale) * _excess(share, honest) ** 2 for scale, share in shares.items())
        if min(shares.values()) >= 0.5 and excess <= room**2:
            return NoiseShare("gaussian", tuple(shares[scale] for scale in scales), honest, float(inflated))
    raise QueryError(
        expected="Gaussian noise of a tick or more in each share, for a secure sum",
        got=f"shares of {min(scales) / math.sqrt(honest):.3g} ticks",
        hint="set delta to 0: Laplace noise of any size can be shared. Or ask for a smaller epsilon.",
    )


def _excess(share: float, honest: int) -> Fraction:
    """Return a bound on how much more the sum of discrete Gaussians loses than one of the same variance.

    It is tau in Proposition 14 of Kairouz, Liu and Steinke (2021), 10 times the sum of exp(-2 pi² share² k / (k + 1))
    for k from 1 to below the number of shares; exp(-2 pi²) is below 2^-28.4.
    """
    exponents = (Fraction(284, 10) * Fraction(share) ** 2 * k / (k + 1) for k in range(1, honest))
    return 10 * sum((Fraction(1, 2 ** min(int(each), _LARGEST_EXPONENT)) for each in exponents), Fraction(0))


def _scales(sensitivity: Sensitivity, size: Fraction, added: Fraction) -> tuple[float | None, ...]:
    """Return the size of each coordinate's noise in ticks. Thousands of coordinates may have a dozen weights.

    `added` is a variance in squared ticks, the same for all.
    """
    found: dict[tuple[int, int], float] = {}
    scales: list[float | None] = []
    last: Fraction | None = None
    scale: float | None = None
    for at in sensitivity.coordinates:
        if at.weight is not last:  # neighbours often share one, and comparing fractions takes longer
            last, scale = at.weight, None
            if last is not None:
                ratio = last.as_integer_ratio()
                if ratio not in found:
                    plain = last * sensitivity.bound * size
                    found[ratio] = float_above(root_above(plain**2 + added) if added else plain)
                scale = found[ratio]
        scales.append(scale)
    return tuple(scales)


@cache
def gaussian_sd(epsilon: float, delta: float) -> float:
    """Return the standard deviation at which Gaussian noise, for sensitivity 1, is (epsilon, delta)-private by zCDP.

    The discrete Gaussian with this sd is rho-zCDP with rho = 1 / (2 sd²) (Canonne, Kamath and Steinke 2020), in any
    number of dimensions. OpenDP turns rho into epsilon at this delta. The privacy curve allows an sd about 7 % smaller
    for one release; see `curve_sd`.

    Both are read as the decimals that were typed, as the ledger reads them: OpenDP is given the largest floats that are
    not above these.
    """
    allowed, at = float_below(exact(epsilon)), float_below(exact(delta))
    low, high = 1e-3, 1e9
    near = _sd_in_floats(allowed, at)
    beyond, enough = near * (1 - _NEAR), near * (1 + _NEAR)
    found = low < beyond and enough < high
    if not (found and epsilon_of_gaussian(beyond, at) > allowed >= epsilon_of_gaussian(enough, at)):
        beyond, enough = 0.0, math.inf  # then OpenDP decides every step
        if epsilon_of_gaussian(high, at) > allowed:
            raise GuaranteeError(
                expected=f"an epsilon that Gaussian noise of any useful size can give at delta {delta:g}",
                got=f"epsilon {epsilon:g}",
                hint="ask for a larger epsilon.",
            )
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        if middle >= enough or (middle > beyond and epsilon_of_gaussian(middle, at) <= allowed):
            high = middle
        else:
            low = middle
    return high


def _sd_in_floats(epsilon: float, delta: float) -> float:
    """Return about the same standard deviation, without rounding to the safe side: where the search begins.

    It is that of the largest rho for which some order gives epsilon (Canonne, Kamath and Steinke 2020, Proposition
    12). OpenDP takes milliseconds for each step of the search, and has the last word.
    """

    def rho(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return (epsilon + (math.log(delta) + math.log1p(excess)) / excess - math.log1p(-1 / order)) / order

    low, high = math.log(1e-6), math.log(1e12)
    for _ in range(100):
        third = (high - low) / 3
        low, high = (low + third, high) if rho(low + third) < rho(high - third) else (low, high - third)
    most = rho((low + high) / 2)
    return 1 / math.sqrt(2 * most) if most > 0 else math.inf


class Asked(NamedTuple):
    """A query, what is promised about its answer, and the scales by which it sees covariates."""

    query: Query
    guarantee: Guarantee
    scales: tuple[tuple[str, Scale], ...] = ()

    @classmethod
    def of(cls, query: Query, guarantee: Guarantee, schema: Schema) -> Self:
        """Return what is asked of a source whose schema is this one."""
        return cls(query, guarantee, schema.scales)

    def seen(self, schema: Schema) -> Schema:
        """Return the declared schema as the query sees it."""
        return schema.scaled(dict(self.scales))

    def noise(self, schema: Schema, rule: Rule = "additive") -> Noise:
        """Return the noise of the answer, of tables with this declared schema and a ledger with this rule."""
        return calibrate(self.query, self.seen(schema), self.guarantee, rule)

    def shared_noise(self, schema: Schema) -> Noise:
        """Return the noise of which sites add shares in a secure sum: by zCDP, as the proof of shares has it."""
        return self.noise(schema, "zcdp")

    def question(self, schema: Schema, as_of: str | None) -> dict[str, Any]:
        """Return what makes two requests for it the same."""
        return question(self.query, self.guarantee, self.seen(schema), as_of)


def epsilon_of_gaussian(sd: float, delta: float) -> float:
    """Return the epsilon at `delta` of zero-concentrated differential privacy with rho = 1 / (2 sd²), by OpenDP."""
    line = atom_domain(T=float, nan=False), absolute_distance(T=float)
    gaussian = make_fix_delta(make_zCDP_to_approxDP(make_gaussian(*line, scale=sd)), delta)
    epsilon: float = gaussian.map(1.0)[0]
    return epsilon


def float_above(number: Fraction) -> float:
    """Return the smallest float that is not below a positive fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def float_below(number: Fraction) -> float:
    """Return the largest float that is not above a positive fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)
