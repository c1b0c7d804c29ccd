"""Logistic regressions over all units, with an outcome or without: of treatment, and of having an outcome."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcausal.guarantee import Guarantee
from dpcausal.queries.features import COEFFICIENT_TICK, feature_names
from dpcausal.queries.logistic import ObjectivePerturbedLogistic, of_length
from dpcausal.queries.query import Norm, Sensitivity
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn


@dataclass(frozen=True)
class AllUnitsLogistic(ObjectivePerturbedLogistic):
    """The propensity among all units of both arms: an `ObjectivePerturbedLogistic` of those without an outcome too."""

    name: ClassVar[str] = "all_units_logistic"
    counts_missing: ClassVar[bool] = True


@dataclass(frozen=True)
class ObservedLogistic(ObjectivePerturbedLogistic):
    """Coefficients of a logistic regression, in each arm, of having an outcome on covariates.

    Each arm's regression has a random linear term of its own. A unit is in one of them, so both together cost no more
    than one. Proof: docs/proofs/observed_logistic.md.
    """

    name: ClassVar[str] = "observed_logistic"
    counts_missing: ClassVar[bool] = True

    @staticmethod
    def of_arm(arm: int, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return what features' coefficients are called in the regression of an arm."""
        return tuple(f"arm_{arm} * {name}" for name in names)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates, and how far solver and grid can have moved those of both arms."""
        names = feature_names(self.covariates, schema)
        moved = 2 * self.slack / Fraction(COEFFICIENT_TICK)
        return of_length(moved, (*self.of_arm(0, names), *self.of_arm(1, names)), norm, self.shares["slack"])

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return *super().reads(schema), schema.outcome

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise: outcomes are missing equally often, whatever the covariates."""
        names = feature_names(self.covariates, expectations.schema)
        length = math.sqrt(len(self.covariates) + 1)
        values: dict[str, float] = {}
        for arm, size in enumerate(expectations.expected_sizes):
            missing = expectations.mean * size
            odds = (size - missing + 1) / (missing + 1)
            coefficients = [length * math.log(odds), *(0.0 for _ in names[1:])]
            values |= dict(zip(self.of_arm(arm, names), coefficients, strict=True))
        return values
