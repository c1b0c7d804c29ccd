"""Sums of covariates over all units of both arms, those without an outcome too."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.coerced import OUTCOME, TREATMENT, design
from dpcausal.queries.features import design_names, one_and_all
from dpcausal.queries.query import GRID, Norm
from dpcausal.queries.regression_moments import FINE
from dpcausal.queries.summing import CovariateQuery
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Between, Number, indicator


@dataclass(frozen=True)
class CovariateTotals(CovariateQuery):
    """How many units of both arms have no outcome, and the sums of the features of all, with an outcome or without.

    Features are those of `RegressionMoments`, so that regressions among units with an outcome can be averaged over all.
    The number of all units comes with them where some may be in neither arm.
    """

    name: ClassVar[str] = "covariate_totals"
    counts_missing: ClassVar[bool] = True

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        whole: dict[str, Number] = dict(zip(self.ticks(schema), design(self.covariates, schema, FINE), strict=True))
        weights = dict.fromkeys(whole, Fraction(FINE))
        whole["missing"], weights["missing"] = indicator(Between(OUTCOME, 1, GRID)), Fraction(4)
        if schema.units_may_be_outside:
            whole["units"], weights["units"] = ONE, Fraction(1)
        return (Sums({TREATMENT: 2}, {}, whole, weights),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return {f"total of {name}": 1 / FINE for name in design_names(self.covariates, schema)}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: none where no outcome can be missing."""
        return tuple(map(cls, one_and_all(schema))) if schema.outcome_may_be_missing else ()
