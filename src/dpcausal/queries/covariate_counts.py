"""Numbers of units in many bins between the declared bounds of covariates, and without a value: where values are."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, Self, TypeGuard

from dpcausal.columns import Column, indicator_of
from dpcausal.errors import QueryError
from dpcausal.expectations import Expectations
from dpcausal.guarantee import Guarantee
from dpcausal.queries.coerced import covariate
from dpcausal.queries.features import covariates_named, name_tuple
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, root_above
from dpcausal.real import Real
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Between, Clip, Shift, indicator
from dpcausal.treatment import TableColumn

COARSE, FINE = 32, 1_024
"""How many bins of equal width there are between the bounds, at each of two levels."""

EACH = COARSE + FINE + 1
"""How many numbers there are of each covariate: coarse bins, fine bins, and units without a value."""

_MOST_COVARIATES = 100


@dataclass(frozen=True)
class CovariateCounts(Query):
    """How many units have a value of each covariate in each of 32 coarse and 1,024 fine bins, and how many have none.

    Bins have equal width between the declared bounds; an edge belongs to the bin above it. A unit without a value is in
    no bin, also where the covariate declares what counts in its place. All units count, whatever their arm or outcome.
    One unit leaves a bin of each level and joins another, however many there are: docs/proofs/covariate_counts.md.

    Attributes:
        covariates: The covariates; all of them numbers.
    """

    name: ClassVar[str] = "covariate_counts"
    adds_up: ClassVar[bool] = True

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    @property
    def indicated(self) -> tuple[str, ...]:
        """The numbers of which the answer tells who has none."""
        return tuple(self.covariates)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The name of each count, covariate after covariate: coarse bins, fine bins, and those without a value."""
        return tuple(at.name for at in _sensitivity(tuple(self.covariates), "l1").coordinates)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """Return the answer's coordinates and how far one unit can move them."""
        self._columns(schema)
        return _sensitivity(tuple(self.covariates), norm)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        return tuple(_counted(column, schema) for column in self._columns(schema))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on: neither the treatment nor the outcome."""
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

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:  # noqa: ARG002
        """Return the expected answer without noise: values are normal around the middle, and none is missing."""
        spread = NormalDist(0.0, expectations.covariate_sd)
        inner = [spread.cdf(2 * place / FINE - 1) for place in range(1, FINE)]
        shares = [high - low for low, high in zip([0.0, *inner], [*inner, 1.0], strict=True)]
        wide = FINE // COARSE
        coarse = [sum(shares[start : start + wide]) for start in range(0, FINE, wide)]
        each = [expectations.n * share for share in (*coarse, *shares, 0.0)]
        return dict(zip(self.own_names, each * len(self.covariates), strict=True))

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        numbers = tuple(column.name for column in schema.covariates if _is_counted(column))
        return tuple(cls(names) for names in dict.fromkeys((numbers[:1], numbers)) if names)


def _counted(column: Real, schema: Schema) -> Sums:
    """Return the counts of one covariate: units are in fine bins, or in the place after the last without a value."""
    # The upper bound belongs to the last bin.
    fine = Clip(Shift(covariate(column.name, schema) + GRID, (2 * GRID // FINE).bit_length() - 1), 0, FINE - 1)
    place, missing = fine, indicator_of(column).name
    if missing in [each.name for each in schema.covariates]:  # a total over a unit's records is never missing
        place = Clip(fine + FINE * covariate(missing, schema), 0, FINE)
    wide = FINE // COARSE
    coarse = {
        f"{column.name}: coarse {at}": indicator(Between(place, wide * at, wide * (at + 1) - 1)) for at in range(COARSE)
    }
    labels = tuple(f"{column.name}: {each}" for each in (*(f"fine {at}" for at in range(FINE)), "missing"))
    return Sums({place: FINE + 1}, {"": ONE}, coarse, everyone=True, labels=labels)


@lru_cache(64)
def _sensitivity(covariates: tuple[str, ...], norm: Norm) -> Sensitivity:
    """Return the coordinates, which are thousands, and how far one unit can move them."""
    levels = [f"coarse {place}" for place in range(COARSE)] + [f"fine {place}" for place in range(FINE)]
    one, most = Fraction(1), Fraction(4 * len(covariates))
    names = (f"{name}: {each}" for name in covariates for each in (*levels, "missing"))
    coordinates = tuple(Coordinate(name, 1.0, one) for name in names)
    return Sensitivity(norm, coordinates, most if norm == "l1" else root_above(most))


def _is_counted(column: Column) -> TypeGuard[Real]:
    return isinstance(column, Real) and column.scale is None
