"""Sources: whatever answers queries with releases, and wrappers around them."""

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, Self, runtime_checkable

from dpcausal.errors import TableError
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import Query
from dpcausal.queries.calibration import Asked
from dpcausal.release import Release, ValueOf
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.uncertainty.derivatives import within


@runtime_checkable
class Source(Protocol):
    """Anything that answers queries: a vault, a rehearsal, a coordinator of many sites."""

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        ...

    @property
    def n(self) -> int:
        """The number of units, which is public."""
        ...

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each compared arm where the schema makes that public; otherwise None."""
        ...

    @property
    def caveats(self) -> tuple[str, ...]:
        """What readers of an effect from this source should also know."""
        ...

    @property
    def rule(self) -> Rule:
        """How prices add up: `additive`, or `zcdp`, where Gaussian noise costs less than Laplace noise."""
        ...

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the noisy answer to a query."""
        ...


def narrowed(source: Source, low: float, high: float) -> Source:
    """Return a source with narrower public bounds of the outcome.

    Privacy: bounds are public numbers, such as ones that were computed from releases. Every unit's outcome is moved to
    the nearer bound by itself, so every proof holds as for a table that was declared with these bounds. The ledger is
    the same, and the bounds are part of every question, so that answers for other bounds are other answers.

    Raises:
        TableError: If the source has its bounds fixed, as a coordinator of many sites has.
    """
    return _able(source, "narrowed", "whose outcome can be given narrower bounds", "")(low, high)


def scaled(source: Source, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Source:
    """Return a source with covariates by their scores on public scales; see `Schema.scaled`.

    Privacy: the knots of a scale are public numbers, such as ones that were computed from releases. Every unit's value
    becomes its score by itself, within the same limits, so every proof holds as for a table that was declared so. The
    ledger is the same, and the knots are part of every question, so that answers for other scales are other answers.

    Raises:
        TableError: If the source has its declarations fixed, as a coordinator of many sites has.
    """
    return _able(source, "scaled", "whose covariates can be given scales", "of the covariates ")(scales, indicators)


def _able(source: Source, method: str, what: str, bounds: str) -> Callable[..., Source]:
    """Return a method that vaults and rehearsals have, and sources with fixed declarations have not."""
    found: Callable[..., Source] | None = getattr(source, method, None)
    if found is None:
        raise TableError(
            expected=f"a source {what}: a Vault or a Rehearsal",
            got=type(source).__name__,
            hint=f"declare narrower public bounds {bounds}in the schema instead.",
        )
    return found


def is_scalable(source: Source) -> bool:
    """Return whether the covariates of a source can be given scales: not those of a sum over sites."""
    found: bool = getattr(source, "is_scalable", hasattr(source, "scaled"))
    return found


def has_declared_scales(source: Source) -> bool:
    """Return whether the covariates of a source can be given the scales that typical values declare."""
    found: bool = getattr(source, "has_declared_scales", is_scalable(source))
    return found


def answered(source: Source, query: Query) -> tuple[Guarantee, ...]:
    """Return the guarantees under which a source has answered a query before, the oldest first.

    Under each of these it gives the stored answer again, for nothing. A source without a ledger remembers none.
    """
    found: Callable[[Query], tuple[Guarantee, ...]] = getattr(source, "answered", lambda _: ())
    return found(query)


class WrappedSource:
    """A source that passes everything on to another one. Subclasses override `release`.

    It has only what every source has: what else a vault can do, such as its ledger, is out of reach. `innermost` tells
    whether two sources hold the same units.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        return self._source.schema

    @property
    def n(self) -> int:
        """The number of units, which is public."""
        return self._source.n

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each compared arm where the schema makes that public; otherwise None."""
        return self._source.arm_sizes

    @property
    def caveats(self) -> tuple[str, ...]:
        """What readers of an effect from this source should also know."""
        return self._source.caveats

    @property
    def rule(self) -> Rule:
        """How prices add up."""
        return self._source.rule

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the other source's answer."""
        return self._source.release(query, guarantee)

    def narrowed(self, low: float, high: float) -> Self:
        """Return a wrapper of the same kind, which shares what this one records, around the narrowed source."""
        other = copy.copy(self)
        other._source = narrowed(self._source, low, high)  # noqa: SLF001 (its own copy)
        return other

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return a wrapper of the same kind, which shares what this one records, around the scaled source."""
        other = copy.copy(self)
        other._source = scaled(self._source, scales, indicators)  # noqa: SLF001 (its own copy)
        return other

    @property
    def wrapped(self) -> Source:
        """The source that this one passes everything on to."""
        return self._source

    @property
    def is_scalable(self) -> bool:
        """Whether covariates can be given scales."""
        return is_scalable(self._source)

    @property
    def has_declared_scales(self) -> bool:
        """Whether covariates can be given the scales that typical values declare."""
        return has_declared_scales(self._source)

    def answered(self, query: Query) -> tuple[Guarantee, ...]:
        """Return the guarantees under which the other source has answered a query before."""
        return answered(self._source, query)

    @property
    def innermost(self) -> Source:
        """The source that answers, without any wrapper."""
        return innermost(self._source)


def innermost(source: Source) -> Source:
    """Return the source that answers: the given one, or what its wrappers pass everything on to."""
    return source.innermost if isinstance(source, WrappedSource) else source


def is_within(source: Source, kind: type[WrappedSource]) -> bool:
    """Return whether a source is a wrapper of this kind, or wraps one."""
    if not isinstance(source, WrappedSource):
        return False
    return isinstance(source, kind) or is_within(source.wrapped, kind)


class RequiringSource(WrappedSource):
    """A source as queries see it that require some covariates: units that lack one of them are outside the comparison.

    Args:
        required: The covariates; one that declares `missing` is never lacking.
    """

    def __init__(self, source: Source, required: Collection[str]) -> None:
        super().__init__(source)
        self._required = tuple(required)

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        return super().schema.requiring(self._required)

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each compared arm where the schema makes that public; otherwise None."""
        return super().arm_sizes if self.schema.sizes_are_public else None


class AdditiveSource(WrappedSource):
    """A source as if its prices were added up, whatever rule its budget has.

    Sites keep that rule to themselves, and all of them must be asked the same: what people approved.
    """

    @property
    def rule(self) -> Rule:
        """How prices add up, for those who ask."""
        return "additive"

    def answered(self, query: Query) -> tuple[Guarantee, ...]:  # noqa: ARG002 (as every source has it)
        """Return no guarantees: what a site answered before does not change what it is asked."""
        return ()


class RandomisedSource(WrappedSource):
    """A source whose treatment was randomised: values that are missing hide no confounding, and are not counted."""


class OwnQueriesSource(WrappedSource):
    """A source that an estimator asks its own queries only, and that it does not ask for missing outcomes as well."""


class SummedSource(OwnQueriesSource):
    """A source whose answers are added up with those of other sites: all are asked the same, whatever their size."""

    @property
    def is_scalable(self) -> bool:
        """Whether covariates can be given scales that are found: each site would find others."""
        return False

    @property
    def has_declared_scales(self) -> bool:
        """Whether covariates can be given the scales that typical values declare, the same at all sites."""
        return True


class RecordingSource(WrappedSource):
    """A source that records what another one releases.

    Attributes:
        releases: The releases so far, in order.
        asked: What was asked for them.
        schemas: The schema as each of them saw it.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.releases: list[Release] = []
        self.asked: list[Asked] = []
        self.schemas: list[Schema] = []

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the other source's answer, and record it."""
        self.releases.append(super().release(query, guarantee))
        self.asked.append(Asked.of(query, guarantee, self.schema))
        self.schemas.append(self.schema)
        return self.releases[-1]


def units_compared(source: Source, release: Release, value: ValueOf | None = None) -> float:
    """Return the number of units in the comparison, at least 2: public, or as a release holds it with noise.

    Args:
        value: In a formula, what returns the number of a name in place of the release.
    """
    if source.arm_sizes is not None:
        return max(float(sum(source.arm_sizes)), 2.0)
    if "compared" not in release.names:  # no unit can be outside for its query, whatever others require
        return float(source.n)
    units: float = within((value or release.value)("compared"), 2.0, float(source.n))
    return units


def guarantee_for(source: Source, epsilon: float, delta: float) -> Guarantee:
    """Return the guarantee of this size that the source's data set calls for."""
    if not isinstance(source, Source):
        raise TableError(
            expected="a Vault, a Rehearsal or another source",
            got=type(source).__name__,
            hint="put the table into a Vault first, with its schema, a ledger and a budget.",
        )
    return Guarantee(epsilon=epsilon, delta=delta, protects=source.schema.protects)
