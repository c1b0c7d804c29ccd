"""Numbers of units without a value of covariates that are numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, TypeGuard

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.coerced import covariate
from dpcausal.queries.features import covariates_named, with_indicators
from dpcausal.queries.query import Norm, Sensitivity
from dpcausal.queries.summing import CovariateQuery
from dpcausal.schema.columns import Column, indicator_of
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums

_MOST_COVARIATES = 100


@dataclass(frozen=True)
class MissingCovariates(CovariateQuery):
    """How many units have no value of each covariate, also where it declares what counts in its place.

    All units count, whatever their arm or outcome. One unit moves each count by 1 at most, and may move all of them.

    All covariates are numbers that can be missing: no totals over a unit's records.
    """

    name: ClassVar[str] = "missing_covariates"

    @property
    def indicated(self) -> tuple[str, ...]:
        return tuple(self.covariates)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The name of each count, covariate after covariate."""
        return tuple(f"{name} is missing" for name in self.covariates)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        names = [indicator_of(column).name for column in self._columns(schema)]
        counted = {name: covariate(name, schema) for name in names}
        return (Sums({}, {}, counted, dict.fromkeys(counted, Fraction(1)), everyone=True),)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them: each count by 1, all together."""
        return super().sensitivity(with_indicators(schema, self.indicated), protects, norm)

    def _columns(self, schema: Schema) -> Sequence[Real]:
        columns = covariates_named(self.covariates, schema)
        named = [column.name for column in schema.covariates]
        numbers = [column for column in columns if _is_number(column) and indicator_of(column).name in named]
        if len(numbers) < len(columns) or len(numbers) > _MOST_COVARIATES:
            raise QueryError(
                expected=f"1 to {_MOST_COVARIATES} covariates that are numbers and can be missing",
                got=", ".join(self.covariates),
                hint="a total over a unit's records is never missing; other covariates have values of a public list.",
            )
        return numbers

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise: no value is missing."""
        columns = covariates_named(self.covariates, expectations.schema)
        return {indicator_of(column).name: 0.0 for column in columns if _is_number(column)}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        never = schema.unit.added if schema.unit else ()
        numbers = tuple(each.name for each in schema.covariates if _is_number(each) and each.name not in never)
        return tuple(cls(names) for names in dict.fromkeys((numbers[:1], numbers)) if names)


def _is_number(column: Column) -> TypeGuard[Real]:
    return isinstance(column, Real)
