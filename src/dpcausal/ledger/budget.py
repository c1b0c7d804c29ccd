"""Budgets: how spending adds up, and when to stop. Proof for adaptive queries: docs/proofs/ledger.md."""

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Self

from dpcausal.errors import GuaranteeError
from dpcausal.guarantee import SMALLEST_DELTA, SMALLEST_EPSILON, Event, Rule, check_numbers, exact
from dpcausal.queries.calibration import epsilon_of_gaussian, float_above, float_below, gaussian_sd
from dpcausal.utils.other_names import Constructor

_ROUNDED = Fraction(1, 10**8)
"""By which share of rho a part is smaller for each binary digit of the number of parts. That is more than the
conversions between rho and epsilon round, so that parts of a part, which have a digit more, fit into it."""


@dataclass(frozen=True)
class Spending:
    """An amount of privacy loss in the terms of a budget's rule.

    Attributes:
        epsilon: Under `additive` a sum; under `zcdp` what the sum of rho is worth at the budget's delta.
        delta: Under `additive` a sum; under `zcdp` the budget's delta.
    """

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"


@dataclass(frozen=True)
class Total:
    """Exact sums over events."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def plus(self, event: Event, times: int = 1) -> "Total":
        """Return the total with one more event, or with several equal ones."""
        epsilon, delta, rho = times * exact(event.epsilon), times * exact(event.delta), times * event.rho
        return Total(self.epsilon + epsilon, self.delta + delta, self.rho + rho)

    def __add__(self, other: "Total") -> "Total":
        return Total(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: "Total") -> "Total":
        return Total(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)


@dataclass(frozen=True, kw_only=True)
class Budget(metaclass=Constructor):
    """The most privacy loss that one unit of a data set may ever suffer.

    Both rules hold for adaptive queries, each chosen after seeing the earlier answers.

    Attributes:
        delta: The cap on delta. With 0, only pure (Laplace) releases fit.
        rule: `additive` adds up epsilons and deltas as printed on the releases. `zcdp` adds up rho against the largest
            rho that is (epsilon, delta)-differentially private: better for many small Gaussian releases, worse for few
            large Laplace ones. Fixed for a data set when its ledger is opened.

    Example:
        >>> print(Budget(epsilon=3, delta=1e-6))
        epsilon 3, delta 1e-06 (additive)
    """

    _example = "Budget(epsilon=3)"

    epsilon: float
    delta: float = 0.0
    rule: Rule = "additive"

    def __new__(cls, *unnamed: object, **_: object) -> Self:
        """Refuse numbers without a name: a delta is not an epsilon."""
        if unnamed:
            raise GuaranteeError(
                problem=f"The numbers of a budget must be named, unlike in "
                f"Budget({', '.join(map(repr, unnamed))[:90]})",
                hint="write Budget(epsilon=3), or Budget(epsilon=3, delta=1e-6).",
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_numbers(self.epsilon, self.delta)
        if not SMALLEST_EPSILON <= self.epsilon <= 1000 or not (self.delta == 0 or SMALLEST_DELTA <= self.delta < 0.5):
            raise GuaranteeError(
                problem="epsilon of a budget must be from 1e-6 to 1000, and delta 0 or from 1e-30 to below 0.5, not "
                f"epsilon={self.epsilon!r} and delta={self.delta!r}",
                hint="a single-digit epsilon for everything ever asked of a data set is a usual choice.",
            )
        if self.rule not in ("additive", "zcdp") or (self.rule == "zcdp" and self.delta == 0):
            raise GuaranteeError(
                problem=f'rule must be "additive", or "zcdp" with a positive delta, not rule={self.rule!r} with '
                f"delta={self.delta!r}",
                hint="rules are spelled in small letters; a budget without delta is additive.",
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @property
    def cap(self) -> Total:
        """The largest total that may be spent, in the parts that the rule adds up."""
        if self.rule == "additive":
            return Total(epsilon=exact(self.epsilon), delta=exact(self.delta))
        return Total(rho=self._rho())

    def unspent(self, total: Total) -> Total:
        """Return the part of the cap that a total leaves, exactly."""
        spent = Total(total.epsilon, total.delta) if self.rule == "additive" else Total(rho=total.rho)
        return self.cap - spent

    def covers(self, total: Total) -> bool:
        """Return whether this total may be spent."""
        if self.rule == "additive":
            return total.epsilon <= exact(self.epsilon) and total.delta <= exact(self.delta)
        return total.rho <= self._rho()

    def spent(self, total: Total) -> Spending:
        """Return a total in this budget's terms."""
        if self.rule == "additive":
            return Spending(float(total.epsilon), float(total.delta))
        return self._spending(total.rho)

    def remaining(self, total: Total) -> Spending:
        """Return the remaining budget; under `zcdp`, the epsilon of one Gaussian release that would use all of it."""
        if self.rule == "zcdp":
            return self._spending(self._rho() - total.rho)
        return Spending(float(exact(self.epsilon) - total.epsilon), float(exact(self.delta) - total.delta))

    def part(self, count: int) -> Spending:
        """Return what each of so many queries may cost, if all cost the same and fit together.

        Parts of parts fit too: eight of 160 parts fit into a budget that is one of 20. Under `zcdp` this is for queries
        with Gaussian noise and a delta. An estimator with a private score also asks a query with Laplace noise, which
        costs far more there, or has no price at all.

        Example:
            >>> print(Budget(epsilon=3).part(10))
            epsilon 0.3, delta 0
            >>> print(Budget(epsilon=3, delta=1e-6, rule="zcdp").part(10))
            epsilon 0.863375, delta 1e-06
        """
        if not (isinstance(count, int) and count >= 1):
            raise GuaranteeError(
                expected="a number of queries, 1 or more", got=repr(count), hint="write 10 for ten queries."
            )
        part = self._part(count)
        if part.epsilon < SMALLEST_EPSILON or 0 < part.delta < SMALLEST_DELTA:
            raise GuaranteeError(
                expected=f"parts of at least epsilon {SMALLEST_EPSILON:g}, and delta 0 or at least {SMALLEST_DELTA:g}",
                got=f"one of {count:,} equal parts of {self}, {part}",
                hint="ask fewer queries.",
            )
        return part

    def _part(self, count: int) -> Spending:
        if self.rule == "additive":
            return Spending(_decimal_part(self.epsilon, count), _decimal_part(self.delta, count))
        share = self._rho() / count * (1 - _ROUNDED * count.bit_length())
        epsilon = self._spending(share).epsilon
        while epsilon >= SMALLEST_EPSILON and _rho_of(epsilon, self.delta) > share:  # by the rounding of conversions
            epsilon *= 1 - 1e-9
        return Spending(epsilon, self.delta)

    def refusal(self, total: Total, event: Event) -> tuple[str, str, str]:
        """Explain why an event does not fit: what is left, what it costs, and what to do, in this budget's terms."""
        left, price = self.remaining(total), f"epsilon {event.epsilon:g}, delta {event.delta:g}"
        if self.rule == "additive":
            hint = f"ask for less; the budget is {self}."
            if event.delta > left.delta and event.epsilon <= left.epsilon:
                hint = f"ask with a delta of at most {left.delta:g}; the budget is {self}."
            return str(left), price, hint
        rho = f"rho {float(self._rho() - total.rho):.3g} ({left} by one Gaussian release)"
        if event.family == "smooth":
            return (
                rho,
                f"more rho than any budget has (smooth noise for {price} has no price in rho)",
                "a ledger with the additive rule takes such events.",
            )
        return (
            rho,
            f"rho {float(event.rho):.3g} ({event.family} noise for {price})",
            f"ask for less, or with a positive delta: Gaussian noise costs less under zcdp. The budget is {self}.",
        )

    def _rho(self) -> Fraction:
        return _rho_of(self.epsilon, self.delta)

    def _spending(self, rho: Fraction) -> Spending:
        # Below this, what is left buys no Gaussian release that anyone could use.
        epsilon = epsilon_of_gaussian(math.sqrt(1 / (2 * rho)), self.delta) if rho > Fraction(1, 10**18) else 0.0
        return Spending(epsilon, self.delta)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} ({self.rule})"

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as plain values."""
        return asdict(self)


def _decimal_part(whole: float, count: int) -> float:
    """Return one of so many equal parts of a number, rounded down to a multiple of a decimal of its 15th digit.

    All parts of a number are multiples of the same decimal. So parts of it that together are at most the exact part
    are also at most the rounded one, and a float of 15 digits prints as it is.
    """
    if whole == 0:
        return 0.0
    last = Fraction(10) ** (math.floor(math.log10(whole)) - 14)
    return float(exact(whole) / count // last * last)


@cache
def _rho_of(epsilon: float, delta: float) -> Fraction:
    """Return the largest rho that a budget of this epsilon at this delta covers.

    It is the rho that one Gaussian release of the same epsilon and delta is charged. That charge is rounded up, so it
    is the cap only where OpenDP confirms that noise with a standard deviation of at most 1 / sqrt(2 rho) still has this
    epsilon at this delta. Otherwise the cap is the rho of the calibrated noise itself.
    """
    sd = Fraction(gaussian_sd(epsilon, delta))
    charged = Fraction(float_above(1 / sd))
    allowed, at = float_below(exact(epsilon)), float_below(exact(delta))
    confirmed = epsilon_of_gaussian(float_below(1 / charged), at) <= allowed
    return charged**2 / 2 if confirmed else 1 / (2 * sd**2)
