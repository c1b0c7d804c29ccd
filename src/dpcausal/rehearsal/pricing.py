"""What estimators will cost, before their first query.

An estimator may ask several queries, and one answer is of no use without the others. A budget with enough left for the
first query and too little for the second would be spent for nothing. So an estimator is rehearsed first: it runs on
answers that the ledger has stored, and on expected ones where it has none. What it asks there is what it will cost.
"""

import math
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, cast

from dpcausal import queries
from dpcausal.guarantee import Event, Guarantee
from dpcausal.queries import CovariateCounts, MissingCovariates, Query
from dpcausal.queries.calibration import calibrate
from dpcausal.rehearsal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.schema.scale import Scale
from dpcausal.source import Source, WrappedSource
from dpcausal.utils.hash_chain import digest_of

if TYPE_CHECKING:
    from dpcausal.ledger import Ledger

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, modulo 1, are spread evenly and never repeat."""

_COUNTS_OF_MISSING = CovariateCounts | MissingCovariates
"""The queries whose answers decide whether models have indicators of missing values."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class MeteredSource(Source, Protocol):
    """A source that charges its releases to a ledger: a vault."""

    @property
    def ledger(self) -> "Ledger":
        """The ledger."""
        ...

    def question(self, query: Query, guarantee: Guarantee) -> dict[str, Any]:
        """Return what makes two requests the same; its digest names the request in the ledger."""
        ...


def outstanding_cost(source: MeteredSource, *asks: Callable[[Source], object]) -> dict[str, Event]:
    """Return the prices, by request, of all queries that `asks` will ask and that the ledger has no answer to.

    No data is read, and nothing is spent or reserved. Under `zcdp`, where the parts of one epsilon may add up to more
    if covariates lack values, it is the larger price of a table without and of one with many missing values.

    Args:
        source: The vault that will be asked.
        asks: Functions of a source, such as `lambda source: estimator.estimate(source, epsilon=1.0)`.

    Example:
        >>> import pyarrow as pa
        >>> from dpcausal import Budget, DifferenceInMeans, Real, Schema, Treatment, Vault
        >>> schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1))
        >>> table = pa.table({"t": [0, 1], "y": [0.2, 0.7]})
        >>> vault = Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=3))
        >>> prices = outstanding_cost(vault, lambda source: DifferenceInMeans().estimate(source, epsilon=2.0))
        >>> [event.epsilon for event in prices.values()]
        [2.0]
    """

    def priced(*, lacking: bool) -> _PricingSource:
        pricing = _PricingSource(source, lacking=lacking)
        for ask in asks:
            pricing.adaptive = False
            ask(pricing)
        return pricing

    found = priced(lacking=False)
    others = [priced(lacking=True)] if found.depends_on_missing else []
    return max((each.prices for each in (found, *others)), key=lambda prices: sum(at.rho for at in prices.values()))


def check_affords(ask: Callable[..., object], *sources: Source) -> None:
    """Raise, before the first query, unless every budget has enough left for all that `ask` will ask of the sources.

    Sources without a ledger, such as rehearsals, have no budget.

    Raises:
        BudgetExceededError: If a budget has too little left. Nothing was spent.
        EngineError: If the machines where a table is lack what an answer needs there. Nothing was spent.
    """
    if not any(map(_is_metered, sources)):
        return
    priced = _check_affords(ask, sources, lacking=False)
    if any(each.depends_on_missing for each in priced):
        _check_affords(ask, sources, lacking=True)


def _check_affords(ask: Callable[..., object], sources: Collection[Source], *, lacking: bool) -> "list[_PricingSource]":
    """Check this for a table without missing values, or for one that lacks many."""
    priced = [_PricingSource(source, lacking=lacking) for source in sources]
    ask(*priced)
    metered = [
        (cast("MeteredSource", source).ledger, each.prices)
        for source, each in zip(sources, priced, strict=True)
        if _is_metered(source)
    ]
    for ledger, _ in metered:
        shared = (prices for other, prices in metered if other.opening == ledger.opening)
        ledger.check_affords(dict(ChainMap(*shared)))
    for each in priced:
        for view, query in each.asked:
            getattr(view, "check_ready", lambda _: None)(query)
    return priced


def look_ahead(estimate: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a method `(self, source, …)`: all its queries must fit into the budget before it asks one."""

    @wraps(estimate)
    def checked(self: Any, source: Source, **options: Any) -> Result:  # noqa: ANN401 (as the method has it)
        ask = cast("Callable[..., Result]", estimate)
        others = {name: each for name, each in options.items() if isinstance(each, Source)}

        def rehearse(first: Source, *rest: Source) -> object:
            return ask(self, first, **options | dict(zip(others, rest, strict=True)))

        check_affords(rehearse, source, *others.values())
        return ask(self, source, **options)

    return cast("Callable[Parameters, Result]", checked)


class _PricingSource(WrappedSource):
    """A source that answers without data and adds up what another one would charge.

    Args:
        lacking: Whether to expect that many values of covariates are missing, rather than none.
    """

    def __init__(self, source: Source, *, lacking: bool = False) -> None:
        super().__init__(source)
        self._lacking = lacking
        self._metered = cast("MeteredSource", source) if _is_metered(source) else None
        self._rehearsal = Rehearsal(source.schema, source.n, rule=source.rule)
        self._places, self._expected = count(1), dict[str, Release]()
        self._priced: list[tuple[str, Guarantee]] = []
        self.prices: dict[str, Event] = {}
        self.asked: list[tuple[Source, Query]] = []
        self.adaptive = False
        """Whether an answer was expected only: a query that depends on it will be another one in earnest."""

    @property
    def depends_on_missing(self) -> bool:
        """Whether the price may be another one if values are missing: parts of one epsilon differ in rho."""
        return self.rule == "zcdp" and any(isinstance(query, _COUNTS_OF_MISSING) for _, query in self.asked)

    def narrowed(self, low: float, high: float) -> Self:
        """Return a source with narrower bounds of the outcome that adds to the same prices."""
        return super().narrowed(low, high)._expecting(self._rehearsal.narrowed(low, high))  # noqa: SLF001 (its own copy)

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return a source with covariates by their scores that adds to the same prices."""
        seen = self._rehearsal.scaled(scales, indicators)
        return super().scaled(scales, indicators)._expecting(seen)  # noqa: SLF001 (its own copy)

    def _expecting(self, rehearsal: Rehearsal) -> Self:
        """Make this copy, which has another source, expect what another rehearsal does."""
        self._metered = cast("MeteredSource", self._source) if _is_metered(self._source) else None
        self._rehearsal, self._expected = rehearsal, {}
        return self

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the stored answer; where there is none, add the price and return the expected answer."""
        if self._metered is not None:
            question = self._metered.question(query, guarantee)
            stored = self._metered.ledger.stored(digest_of(question))
            if stored is not None and not (self.adaptive and self._may_be_another(query)):
                return Release.from_json(stored)
            self.asked.append((self._source, query))
            unlike = " if another" * (stored is not None)  # not this request, which is paid for
            paid = digest_of(queries.payment(query, question))
            if not (query.prepaid and self._metered.ledger.is_debited(paid)):
                rule = self._metered.ledger.budget.rule
                self.prices[paid + unlike] = calibrate(query, self.schema, guarantee, rule).event
        self._priced.append((self._named(query), guarantee))
        self.adaptive = True
        asked = digest_of(queries.to_dict(query), guarantee.to_dict())
        if asked not in self._expected:
            expected = self._rehearsal.release(query, guarantee)
            self._expected[asked] = self._off_centre(_lacking(expected, self.n) if self._lacking else expected)
        return self._expected[asked]

    def _may_be_another(self, query: Query) -> bool:
        """Return whether a query may be another one in earnest; counts of covariates depend on no earlier answer."""
        return self.schema.unit is not None or not isinstance(query, _COUNTS_OF_MISSING)

    def answered(self, query: Query) -> tuple[Guarantee, ...]:
        """Return the guarantees under which the ledger has an answer, and those that are priced and will have one."""
        priced = (guarantee for named, guarantee in self._priced if named == self._named(query))
        return tuple(dict.fromkeys((*super().answered(query), *priced)))

    def _named(self, query: Query) -> str:
        """Return what makes two queries the same, whatever their guarantees."""
        any_guarantee = Guarantee(epsilon=1.0, protects=self.schema.protects)
        return digest_of(queries.question(query, any_guarantee, self.schema, None))

    def _off_centre(self, release: Release) -> Release:
        """Return a release a little off what is expected, each number by another part of its noise.

        Expected answers are often round numbers. A query that depends on one could then be the same as an earlier
        query, which costs nothing, though it will not be the same in earnest.
        """
        places = (next(self._places) * _GOLDEN % 1 - 0.5 for _ in release.names)
        moved = (
            value + (scale or 0.0) * at for value, scale, at in zip(release.values, release.scales, places, strict=True)
        )
        return replace(release, values=tuple(moved))


def _lacking(release: Release, n: int) -> Release:
    """Return a count of missing values that finds half of all units without each covariate; other releases as given."""
    if not isinstance(release.query, _COUNTS_OF_MISSING):
        return release
    pairs = zip(release.names, release.values, strict=True)
    return replace(release, values=tuple(n / 2 if name.endswith("missing") else value for name, value in pairs))


def _is_metered(source: Source) -> bool:
    return getattr(source, "ledger", None) is not None and isinstance(source, Source)
