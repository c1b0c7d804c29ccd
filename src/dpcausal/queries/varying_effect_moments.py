"""Sums of products of outcome, covariates and arm, for effects that vary with covariates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from dpcausal.queries.features import name_tuple, one_and_all
from dpcausal.queries.regression_moments import WEIGHTS, Moment, ProductMoments
from dpcausal.schema.schema import Schema

_WEIGHTS = WEIGHTS | {(True, 1, 1): 2, (True, 0, 2): 8}
"""As in `RegressionMoments`, with less noise where the arms' slopes differ: in products of arm, outcome and a feature,
and of arm and two features."""


@dataclass(frozen=True)
class VaryingEffectMoments(ProductMoments):
    """The sums of `RegressionMoments` with `interaction`, and less noise in those that show how the effect varies."""

    name: ClassVar[str] = "varying_effect_moments"
    interaction: ClassVar[bool] = True  # type: ignore[misc]

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def weight(self, moment: Moment) -> int:
        """Return the size of a moment's noise, in proportion."""
        return _WEIGHTS[self.kind(moment)]

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(map(cls, one_and_all(schema)))
