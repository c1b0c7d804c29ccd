"""A narrower range of the outcome than the public one, found by private counts."""

import math
from dataclasses import dataclass, replace

from dpcausal.errors import QueryError, RefusedError, SchemaError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.guarantee import Guarantee
from dpcausal.queries import OutcomesBelow
from dpcausal.queries.calibration import calibrate
from dpcausal.rehearsal.pricing import look_ahead
from dpcausal.release import Receipt, Release
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.text import format_number
from dpcausal.utils.validation import is_number

_TAIL_SDS = 2.0
"""A count beyond a bound must be below the tail by so many standard deviations of its noise."""


@dataclass(frozen=True)
class Range:
    """Bounds that contain nearly all outcomes, from noisy counts. Public, like everything computed from releases.

    Attributes:
        outcome: The outcome with the bounds found.
        public: The outcome as declared.
        tail: The share of units allowed beyond each bound.
        guarantee: The privacy guarantee of all queries together.
        receipts: The queries and their prices.
    """

    outcome: Real
    public: Real
    tail: float
    guarantee: Guarantee
    receipts: tuple[Receipt, ...]

    def schema(self, schema: Schema) -> Schema:
        """Return the schema with these bounds: open another vault with it, on the same table and ledger."""
        return replace(schema, outcome=self.outcome)

    @property
    def narrower(self) -> float:
        """The public range over this one, which is also the factor by which noise in sums of the outcome falls."""
        return (self.public.high - self.public.low) / (self.outcome.high - self.outcome.low)

    def __str__(self) -> str:
        low, high = format_number(self.outcome.low), format_number(self.outcome.high)
        declared = f"{format_number(self.public.low)} to {format_number(self.public.high)}"
        return "\n".join(
            (
                f"Range of {self.outcome.name}: {low} to {high}, {self.narrower:.1f} times narrower than {declared}",
                f"about {self.tail:.1%} of outcomes, or fewer, are beyond each bound and will count as the bound",
                f"price: {self.guarantee}",
                "the price of an effect that uses it does not include this: add both, or read the ledger",
            )
        )


@dataclass(frozen=True)
class OutcomeRange(BaseEstimator):
    """A search for narrower bounds of a real outcome, by halving the public range.

    Worth its price where the public range is several times wider than the outcomes' own, and n is large. Each count has
    noise of about 3 · steps / epsilon units; where the tail is less than twice that, the search is refused.

    Privacy:
        `2 steps` queries, each a noisy number of units beyond a threshold, with equal shares of epsilon.

    Attributes:
        tail: The share of units that may be beyond each bound. They will count as the bound, which biases an effect by
            the treatment's effect on their outcomes.
        steps: How often to halve the range on either side: bounds are multiples of the range divided by 2^steps.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("cost", 0, 1_000_000))
        >>> plan = Rehearsal(schema, n=50_000, outcome_mean=20_000, outcome_sd=5_000)
        >>> found = OutcomeRange().find(plan, epsilon=0.2)
        >>> round(found.outcome.low), round(found.outcome.high), round(found.narrower)
        (0, 46875, 21)
    """

    tail: float = 0.01
    steps: int = 6

    @look_ahead
    def find(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Range:
        """Find the bounds for a total of at most epsilon and delta.

        Raises:
            RefusedError: If noise would hide the tail. Nothing was spent.
        """
        outcome = source.schema.outcome
        if not isinstance(outcome, Real):
            raise SchemaError(
                problem=f"The outcome {outcome.name!r} has two values, and this needs a number",
                hint="a binary outcome has the narrowest bounds already.",
            )
        if not (is_number(self.tail) and 0 < self.tail < 0.5 and isinstance(self.steps, int) and 0 < self.steps <= 20):
            raise QueryError(
                expected="a tail between 0 and 0.5, and 1 to 20 steps",
                got=f"tail={self.tail!r}, steps={self.steps!r}",
                hint="0.01 and 6 are usual: they find bounds to within a 64th of the public range.",
            )
        cell = (outcome.high - outcome.low) / 2**self.steps
        for low in (outcome.low, outcome.high - cell):  # nothing narrower can be found, and these must be bounds
            replace(outcome, low=low, high=low + cell, missing=None)
        guarantee = guarantee_for(source, epsilon, delta)
        each = guarantee.part(2 * self.steps)
        noise = calibrate(OutcomesBelow(outcome.low), source.schema, each, source.rule)
        noise_sd = NoiseTerm(noise.family, float(noise.scales[0] or 0.0)).variance ** 0.5
        if _TAIL_SDS * noise_sd > self.tail * source.n:
            raise RefusedError(
                expected=f"a tail of at least {math.ceil(_TAIL_SDS * noise_sd):,} units, twice the noise in a count",
                got=f"{self.tail * source.n:,.0f} units",
                hint="give more epsilon or a larger tail, or keep the public range; nothing was spent.",
            )
        search = _Search(source, each, self.tail * source.n - _TAIL_SDS * noise_sd, self.steps)
        low, high = search.bound(outcome, upper=False), search.bound(outcome, upper=True)
        if low >= high:  # noise alone can do that
            low, high = outcome.low, outcome.high
        found = outcome.narrowed(low, high)
        return Range(found, outcome, self.tail, guarantee, tuple(release.receipt for release in search.releases))


class _Search:
    def __init__(self, source: Source, each: Guarantee, most: float, steps: int) -> None:
        self.source, self.each, self.most, self.steps = source, each, most, steps
        self.releases: list[Release] = []

    def bound(self, outcome: Real, *, upper: bool) -> float:
        """Return the innermost threshold with no more than the tail beyond it, allowing for noise."""
        inside, outside = (outcome.low, outcome.high) if upper else (outcome.high, outcome.low)
        for _ in range(self.steps):
            middle = (inside + outside) / 2
            self.releases.append(self.source.release(OutcomesBelow(middle, at_least=upper), self.each))
            if self.releases[-1].value("units") <= self.most:
                outside = middle
            else:
                inside = middle
        return outside
