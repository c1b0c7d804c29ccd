"""A narrower range of the outcome than the public one, found privately and paid for."""

import math
from dataclasses import dataclass, replace

from dpcausal.calibration import calibrate
from dpcausal.errors import QueryError, RefusedError, SchemaError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.guarantee import Guarantee
from dpcausal.interval import NoiseTerm
from dpcausal.queries import OutcomesBelow
from dpcausal.real import Real
from dpcausal.rehearsal.pricing import look_ahead
from dpcausal.release import Receipt, Release
from dpcausal.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.text import format_number
from dpcausal.validation import is_number


@dataclass(frozen=True)
class Range:
    """Bounds between which nearly all outcomes lie, as noisy counts tell. Public, like everything made from releases.

    Attributes:
        outcome: The outcome with the bounds that were found.
        public: The outcome as it was declared.
        tail: The share of units that was allowed beyond each bound.
        guarantee: What is promised about everything that this was made from, taken together.
        receipts: What was asked and paid.
    """

    outcome: Real
    public: Real
    tail: float
    guarantee: Guarantee
    receipts: tuple[Receipt, ...]

    def schema(self, schema: Schema) -> Schema:
        """The schema with these bounds: open another vault with it, on the same table and ledger."""
        return replace(schema, outcome=self.outcome)

    @property
    def narrower(self) -> float:
        """How many times narrower this range is than the public one; noise in sums of the outcome falls as much."""
        return (self.public.high - self.public.low) / (self.outcome.high - self.outcome.low)

    def __str__(self) -> str:
        low, high = format_number(self.outcome.low), format_number(self.outcome.high)
        declared = f"{format_number(self.public.low)} to {format_number(self.public.high)}"
        return "\n".join(
            (
                f"Range of {self.outcome.name}: {low} to {high}, {self.narrower:.1f} times narrower than {declared}",
                f"about {self.tail:.1%} of outcomes, or fewer, lie beyond each bound and will count as the bound",
                f"paid for with {self.guarantee}",
                "an effect that uses it does not hold this price: add both, or read the ledger",
            )
        )


@dataclass(frozen=True)
class OutcomeRange(BaseEstimator):
    """A search for narrower bounds of a real outcome, by halving the public range.

    Worth its price where the public range is several times wider than where outcomes lie, and n is large: each count
    has noise of about 3 · steps / epsilon units, and where the tail is less than twice that, the search is refused.

    Privacy:
        At most `2 steps - 1` queries, each a noisy number of units below a threshold, with equal parts of epsilon.

    Attributes:
        tail: The share of units that may lie beyond each bound. Those will count as the bound, which biases an effect
            by as much as treatment moves outcomes out there.
        steps: How often the range is halved on either side: bounds are multiples of the range divided by 2^steps.

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
        """The bounds, for no more than epsilon and delta in all.

        Raises:
            RefusedError: If noise would hide the tail. Nothing was spent.
        """
        outcome = source.schema.outcome
        if not isinstance(outcome, Real):
            raise SchemaError(
                expected="an outcome that is a number",
                got=f"{outcome.name}, which has two values",
                hint="a yes-or-no outcome has the narrowest bounds already.",
            )
        if not (is_number(self.tail) and 0 < self.tail < 0.5 and isinstance(self.steps, int) and 0 < self.steps <= 20):
            raise QueryError(
                expected="a tail between 0 and 0.5, and 1 to 20 steps",
                got=f"tail={self.tail!r}, steps={self.steps!r}",
                hint="0.01 and 6 are usual: bounds to within a 64th of the public range.",
            )
        cell = (outcome.high - outcome.low) / 2**self.steps
        for low in (outcome.low, outcome.high - cell):  # nothing narrower can be found, and these must be bounds
            replace(outcome, low=low, high=low + cell, missing=None)
        guarantee = guarantee_for(source, epsilon, delta)
        each = guarantee.part(2 * self.steps - 1)
        noise = calibrate(OutcomesBelow(outcome.low), source.schema, each)
        doubt = NoiseTerm(noise.family, float(noise.scales[0] or 0.0)).variance ** 0.5
        if 2 * doubt > self.tail * source.n:
            raise RefusedError(
                expected=f"a tail of at least {math.ceil(2 * doubt):,} units, twice the noise in a count",
                got=f"{self.tail * source.n:,.0f} units",
                hint="give more epsilon or a larger tail, or keep the public range; nothing was spent.",
            )
        search = _Search(source, each, self.tail * source.n - 2 * doubt, self.steps)
        low, high = search.bound(outcome, upper=False), search.bound(outcome, upper=True)
        if low >= high:  # noise alone can do that
            low, high = outcome.low, outcome.high
        found = replace(outcome, low=low, high=high, missing=min(max(outcome.missing_value, low), high))
        return Range(
            found, outcome, self.tail, guarantee, tuple(release.receipt for release in search.releases.values())
        )


class _Search:
    def __init__(self, source: Source, each: Guarantee, most: float, steps: int) -> None:
        self.source, self.each, self.most, self.steps = source, each, most, steps
        self.releases: dict[float, Release] = {}

    def bound(self, outcome: Real, *, upper: bool) -> float:
        """The innermost threshold beyond which no more than the tail seems to lie, noise allowed for."""
        inside, outside = (outcome.low, outcome.high) if upper else (outcome.high, outcome.low)
        for _ in range(self.steps):
            middle = (inside + outside) / 2
            if middle not in self.releases:  # both searches may ask the same
                self.releases[middle] = self.source.release(OutcomesBelow(middle), self.each)
            below = self.releases[middle].value("below")
            if (self.source.n - below if upper else below) <= self.most:
                outside = middle
            else:
                inside = middle
        return outside
