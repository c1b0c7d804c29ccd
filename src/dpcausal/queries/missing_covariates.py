"""Numbers of units without a value of covariates."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.coerced import covariate
from dpcausal.queries.features import covariates_named, with_indicators
from dpcausal.queries.query import Norm, Sensitivity
from dpcausal.queries.summing import CovariateQuery
from dpcausal.schema.columns import Column, Indicator, indicator_of
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Between, indicator

MOST_COVARIATES = 100


@dataclass(frozen=True)
class MissingCovariates(CovariateQuery):
    """How many units have no value of each covariate, also where it declares what counts in its place.

    All units count, whatever their arm or outcome. One unit moves each count by 1 at most, and may move all of them.
    No covariate is a total over a unit's records, which is never missing.

    Attributes:
        each: Whether each covariate has a count of its own; otherwise there is one, of units that lack any of them.
    """

    each: bool = True

    name: ClassVar[str] = "missing_covariates"

    @property
    def indicated(self) -> tuple[str, ...]:
        return tuple(self.covariates)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The name of each count, covariate after covariate."""
        return tuple(f"{name} is missing" for name in self.covariates) if self.each else ("any is missing",)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        absent = [covariate(indicator_of(column).name, schema) for column in self._columns(schema)]
        if not self.each:
            absent = [indicator(Between(sum(absent[1:], absent[0]), 1, len(absent)))]
        counted = dict(zip(self.own_names, absent, strict=True))
        return (Sums({}, {}, counted, dict.fromkeys(counted, Fraction(1)), everyone=True),)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them: each count by 1, all together."""
        if not isinstance(self.each, bool):
            raise QueryError(expected="each=True or each=False", got=repr(self.each), hint="leave it out for True.")
        return super().sensitivity(with_indicators(schema, self.indicated), protects, norm)

    def _columns(self, schema: Schema) -> Sequence[Column]:
        columns = covariates_named(self.covariates, schema)
        named = [column.name for column in schema.covariates]
        counted = [each for each in columns if not isinstance(each, Indicator) and indicator_of(each).name in named]
        if len(counted) < len(columns) or len(counted) > MOST_COVARIATES:
            raise QueryError(
                expected=f"1 to {MOST_COVARIATES} covariates that can be missing",
                got=", ".join(self.covariates),
                hint="a total over a unit's records is never missing, nor is an indicator.",
            )
        return counted

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise: no value is missing."""
        return dict.fromkeys(self.own_names, 0.0)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        never = schema.unit.added if schema.unit else ()
        names = tuple(
            each.name for each in schema.covariates if not isinstance(each, Indicator) and each.name not in never
        )
        several = (names[:1], names) if names else ()
        return (*(cls(some) for some in dict.fromkeys(several)), *(cls(names, each=False) for _ in several[1:]))
