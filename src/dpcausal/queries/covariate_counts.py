"""Numbers of units in many bins between the declared bounds of covariates, and without a value: where values are."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, Self, TypeGuard

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.coerced import covariate
from dpcausal.queries.features import covariates_named
from dpcausal.queries.query import GRID, Coordinate, Norm, Sensitivity
from dpcausal.queries.summing import CovariateQuery
from dpcausal.schema.columns import Column, indicator_of
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.cases import Domain
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Between, Clip, Code, Number, Shift, Ticks, indicator
from dpcausal.sums.sensitivity import sensitivity_bound, together

COARSE, FINE = 32, 1_024
"""How many bins of equal width there are between the bounds, at each of two levels."""

EACH = COARSE + FINE + 1
"""How many numbers there are of each covariate: coarse bins, fine bins, and units without a value."""

_WIDE = FINE // COARSE
_MOST_COVARIATES = 100


@dataclass(frozen=True)
class CovariateCounts(CovariateQuery):
    """How many units have a value of each covariate in each of 32 coarse and 1,024 fine bins, and how many have none.

    Bins have equal width between the declared bounds; an edge belongs to the bin above it. A unit without a value is in
    no bin, also where the covariate declares what counts in its place. All units count, whatever their arm or outcome.
    One unit leaves a bin of each level and joins another, however many there are.

    All covariates are numbers.
    """

    name: ClassVar[str] = "covariate_counts"

    @property
    def indicated(self) -> tuple[str, ...]:
        return tuple(self.covariates)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The name of each count, covariate after covariate: coarse bins, fine bins, and those without a value."""
        return _names(tuple(self.covariates))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        return tuple(
            _counted(column.name, _place(covariate(column.name, schema), _missing(column, schema)))
            for column in self._columns(schema)
        )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates, in the order of `own_names`, and how far one unit can move them."""
        missing = tuple(_missing(column, schema) is not None for column in self._columns(schema))
        return _sensitivity(tuple(self.covariates), missing, protects, norm)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on: indicators of missing values are of the same ones."""
        return self._columns(schema)

    def _columns(self, schema: Schema) -> tuple[Real, ...]:
        columns = covariates_named(self.covariates, schema)
        numbers = tuple(column for column in columns if _is_counted(column))
        if len(numbers) < len(columns) or len(numbers) > _MOST_COVARIATES:
            raise QueryError(
                expected=f"1 to {_MOST_COVARIATES} covariates that are numbers, between their declared bounds",
                got=", ".join(self.covariates),
                hint="values of other covariates are declared one by one; ask a source itself, not its scaled view.",
            )
        return numbers

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise: values are normal around the middle, and none is missing."""
        each = [expectations.n * share for share in _expected_shares(expectations.covariate_sd)]
        return dict(zip(self.own_names, each * len(self.covariates), strict=True))

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        numbers = tuple(column.name for column in schema.covariates if _is_counted(column))
        return tuple(cls(names) for names in dict.fromkeys((numbers[:1], numbers)) if names)


def _missing(column: Real, schema: Schema) -> Number | None:
    """Return whether a value is missing; None for a total over a unit's records, which never is."""
    name = indicator_of(column).name
    return covariate(name, schema) if name in [each.name for each in schema.covariates] else None


def _place(value: Number, missing: Number | None) -> Number:
    """Return the fine bin of a value, or the place after the last for none; the upper bound is in the last bin."""
    fine = Clip(Shift(value + GRID, (2 * GRID // FINE).bit_length() - 1), 0, FINE - 1)
    return fine if missing is None else Clip(fine + FINE * missing, 0, FINE)


def _counted(name: str, place: Number) -> Sums:
    """Return the counts of one covariate."""
    coarse = {
        f"{name}: coarse {at}": indicator(Between(place, _WIDE * at, _WIDE * (at + 1) - 1)) for at in range(COARSE)
    }
    labels = tuple(f"{name}: {each}" for each in (*(f"fine {at}" for at in range(FINE)), "missing"))
    weights = dict.fromkeys(("", *coarse), Fraction(1))
    return Sums({place: FINE + 1}, {"": ONE}, coarse, weights, everyone=True, labels=labels)


@lru_cache(64)
def _sensitivity(covariates: tuple[str, ...], missing: tuple[bool, ...], protects: Protects, norm: Norm) -> Sensitivity:
    """Return the coordinates and the bound. Covariates are counted apart and all alike, and so are both levels."""
    changes = frozenset({"covariate_0", "covariate_1"} if protects != "outcome" else ())
    domain, of_one = Domain({"covariate_1": 2}, changes, leaves=False), {}
    for each in set(missing):
        place = _place(Ticks("covariate_0"), Code("covariate_1", 2) if each else None)
        levels: dict[Number, int] = {place: FINE + 1, Shift(place, _WIDE.bit_length() - 1): COARSE}
        counts = (
            Sums({bin_: count}, {"": ONE}, weights={"": Fraction(1)}, everyone=True) for bin_, count in levels.items()
        )
        of_one[each] = together([sensitivity_bound(level, domain, norm).bound for level in counts], norm)
    one, bound = Fraction(1), together([of_one[each] for each in missing], norm)
    return Sensitivity(norm, tuple(Coordinate(name, 1.0, one) for name in _names(covariates)), bound or one)


@lru_cache(64)
def _names(covariates: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the counts, which are thousands."""
    levels = [f"coarse {place}" for place in range(COARSE)] + [f"fine {place}" for place in range(FINE)]
    return tuple(f"{name}: {each}" for name in covariates for each in (*levels, "missing"))


@lru_cache(64)
def _expected_shares(sd: float) -> tuple[float, ...]:
    """Return the expected shares of units in coarse and fine bins, and without a value."""
    spread = NormalDist(0.0, sd)
    inner = [spread.cdf(2 * place / FINE - 1) for place in range(1, FINE)]
    shares = [high - low for low, high in zip([0.0, *inner], [*inner, 1.0], strict=True)]
    return *(sum(shares[start : start + _WIDE]) for start in range(0, FINE, _WIDE)), *shares, 0.0


def _is_counted(column: Column) -> TypeGuard[Real]:
    return isinstance(column, Real) and column.scale is None
