"""What is promised about a release, and what it costs."""

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from dpcausal.errors import GuaranteeError
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import is_number

Rule = Literal["additive", "zcdp"]
"""How prices add up; `Budget` explains both."""

SMALLEST_EPSILON, SMALLEST_DELTA = 1e-6, 1e-30
"""Below these, numbers are mistakes or meaningless; a delta may be 0."""

LARGEST_MEANINGFUL_EPSILON = 10
"""Above this a guarantee holds, and says next to nothing; everything that shows it says so."""

_NEIGHBOURS: dict[Protects, str] = {
    "record": "one unit's whole record replaced by any other; n is public",
    "record_within_arm": "one unit's covariates and outcome replaced by any others; n and every unit's arm are public",
    "outcome": "one unit's outcome replaced by any other; n, covariates and arms are public",
}


def exact(number: float) -> Fraction:
    """Return a float as the decimal that was typed: 0.1 is one tenth, so that three of them fit into 0.3."""
    return Fraction(repr(number))


def check_numbers(epsilon: object, delta: object) -> None:
    """Raise unless epsilon and delta are numbers."""
    if not (is_number(epsilon) and is_number(delta)):
        raise GuaranteeError(
            problem=f"epsilon and delta must be numbers, not epsilon={epsilon!r} and delta={delta!r}",
            hint="write for instance epsilon=1.0, without quotation marks.",
        )


@dataclass(frozen=True, kw_only=True)
class Guarantee(metaclass=Constructor):
    """(epsilon, delta)-differential privacy, of what, and on what grounds.

    Attributes:
        epsilon: The privacy loss, greater than 0.
        delta: By what more every probability may differ; 0 for pure differential privacy. Loosely, how likely it is
            that the loss is larger.
        protects: What one unit may change between neighbouring tables (see `dpcausal.schema.schema.Protects`).

    Example:
        >>> print(Guarantee(epsilon=1.0))
        epsilon 1, delta 0: one unit's whole record replaced by any other; n is public
    """

    _example = "Guarantee(epsilon=1.0)"

    epsilon: float
    delta: float = 0.0
    protects: Protects = "record"

    def __post_init__(self) -> None:
        check_numbers(self.epsilon, self.delta)
        if not SMALLEST_EPSILON <= self.epsilon <= 100 or not (self.delta == 0 or SMALLEST_DELTA <= self.delta < 0.5):
            raise GuaranteeError(
                problem="epsilon must be from 1e-6 to 100, and delta 0 or from 1e-30 to below 0.5, not "
                f"epsilon={self.epsilon!r} and delta={self.delta!r}",
                hint="epsilon near 1 is a usual choice; delta should be far below 1/n.",
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        if self.protects not in PROTECTS:
            raise GuaranteeError(
                problem=f"protects must be one of {', '.join(PROTECTS)}, not {self.protects!r}",
                hint="take it from the schema.",
            )

    @property
    def neighbours(self) -> str:
        """The pairs of tables between which this guarantee holds, in words."""
        return _NEIGHBOURS[self.protects]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to show with this guarantee: an epsilon may be too large to promise anything."""
        if self.epsilon <= LARGEST_MEANINGFUL_EPSILON:
            return ()
        odds = f"{math.exp(self.epsilon):.0e}".replace("e+", " · 10^")
        odds_text = f"the odds of a guess about one unit may grow by a factor of e^{self.epsilon:g}, about {odds}"
        return (f"epsilon {self.epsilon:g} promises next to nothing: {odds_text}. Epsilon near 1 is a usual choice",)

    def split(self, share: float, *, pure_first: bool = False) -> tuple["Guarantee", "Guarantee"]:
        """Two guarantees that add up to this one, the first with this share of epsilon and delta.

        With `pure_first` the first has no delta and the second has all of it.
        """
        epsilon = _divided(self.epsilon, share)
        delta = (0.0, self.delta) if pure_first or self.delta == 0 else _divided(self.delta, share)
        return replace(self, epsilon=epsilon[0], delta=delta[0]), replace(self, epsilon=epsilon[1], delta=delta[1])

    def after(self, first: "Guarantee") -> "Guarantee":
        """Return what is left of this guarantee after a part of it without delta."""
        return replace(self, epsilon=_rest(self.epsilon, first.epsilon))

    def part(self, count: int) -> "Guarantee":
        """One of so many equal guarantees that add up to this one."""
        return replace(self, epsilon=equal_part(self.epsilon, count), delta=equal_part(self.delta, count))

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}: {self.neighbours}"

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values."""
        return asdict(self)


def check_is_guarantee(guarantee: object) -> None:
    """Raise unless this is a Guarantee, and not a number in place of one."""
    if not isinstance(guarantee, Guarantee):
        raise GuaranteeError(
            problem=f"The guarantee must be a Guarantee, not {guarantee!r}"[:200], hint="write Guarantee(epsilon=1.0)."
        )


def _divided(whole: float, share: float) -> tuple[float, float]:
    """Return two parts of a number that, read as the decimals they print as, add up to no more than it."""
    first = whole * share
    return first, _rest(whole, first)


def _rest(whole: float, first: float) -> float:
    """Return the largest float that, with a first part, adds up to no more than a number, all read as decimals."""
    second = whole - first
    while exact(first) + exact(second) > exact(whole):
        second = math.nextafter(second, 0.0)
    return second


def equal_part(whole: float, count: int) -> float:
    """Return the largest float of which so many, as the decimals they print as, add up to no more than the whole."""
    part = whole / count
    while exact(part) * count > exact(whole):
        part = math.nextafter(part, 0.0)
    return part


NO_RHO = Fraction(10**9)
"""In place of infinity: more than any budget has."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """What one release spends, as the ledger stores it. Theories of composition read it later.

    Attributes:
        family: What was released: `laplace` (anything of pure epsilon), `gaussian`, or `smooth` (Laplace noise
            in proportion to a smooth sensitivity).
        epsilon: The pure loss of `laplace`; with `delta`, the loss that the others were calibrated to.
        delta: 0 for `laplace`.
        mu: For `gaussian`, the sensitivity divided by the noise's standard deviation; 0 for the others.
    """

    family: Literal["laplace", "gaussian", "smooth"]
    epsilon: float
    delta: float
    mu: float

    @property
    def rho(self) -> Fraction:
        """The loss in zero-concentrated differential privacy (Bun and Steinke 2016, Propositions 4 and 6).

        An event that is known to be (epsilon, delta)-differentially private, and no more, has none.
        """
        if self.family == "smooth":
            return NO_RHO
        return exact(self.epsilon) ** 2 / 2 if self.family == "laplace" else Fraction(self.mu) ** 2 / 2

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain values."""
        return asdict(self)
