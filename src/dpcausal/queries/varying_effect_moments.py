"""Sums of products of outcome, covariates and arm, for effects that vary with covariates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.features import design_names, name_tuple, one_and_all
from dpcausal.queries.query import Norm
from dpcausal.queries.regression_moments import (
    FINE,
    FIRST_FEATURE,
    OUTCOME,
    WEIGHTS,
    Moment,
    RegressionMoments,
    moment_name,
)
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums

_WEIGHTS = WEIGHTS | {(True, 1, 1): 2, (True, 0, 2): 8}
"""As in `RegressionMoments`, with less noise where the arms' slopes differ: in products of arm, outcome and a feature,
and of arm and two features."""


@dataclass(frozen=True)
class VaryingEffectMoments(SummingQuery):
    """The sums of `RegressionMoments` with `interaction`, and less noise in those that show how the effect varies.

    Attributes:
        covariates: The covariates.
    """

    name: ClassVar[str] = "varying_effect_moments"
    interaction: ClassVar[bool] = True

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def moments(self, schema: Schema) -> tuple[Moment, ...]:
        """Return the sums, in the order of the coordinates."""
        return RegressionMoments(self.covariates).moments(schema)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        """Return the answer as data."""
        (sums,) = RegressionMoments(self.covariates).sums(schema, protects, norm)
        weights = {name: Fraction(2 * FINE**2 * _weight(moment)) for name, moment in self._named(schema).items()}
        return (replace(sums, weights=weights),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        """Return the size of one tick of each sum."""
        low, high = schema.outcome_bounds
        return {
            name: ((high - low) / 2) ** (moment.first, moment.second).count(OUTCOME) / FINE**2
            for name, moment in self._named(schema).items()
        }

    def _named(self, schema: Schema) -> dict[str, Moment]:
        numbers = ["", "outcome", *design_names(self.covariates, schema)]
        return {moment_name(moment, numbers): moment for moment in self.moments(schema)}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(map(cls, one_and_all(schema)))


def _weight(moment: Moment) -> int:
    """Return the size of a moment's noise, in proportion."""
    factors = (moment.first, moment.second)
    return _WEIGHTS[moment.signed, factors.count(OUTCOME), sum(each >= FIRST_FEATURE for each in factors)]
