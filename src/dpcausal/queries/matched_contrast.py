"""Outcomes of matched units as one weighted sum, where only outcomes are private."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.features import covariates_named, name_tuple, score_columns, single_feature
from dpcausal.queries.query import GRID, Norm, Query, Sensitivity, outcome_tick, shared
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.utils.validation import is_number

COEFFICIENT_TICKS = 2**16
"""Into how many ticks the largest coefficient of a matched contrast is divided."""

MOVES = 2 * GRID * COEFFICIENT_TICKS  # how far one outcome moves a sum with such coefficients


@dataclass(frozen=True)
class MatchedContrast(Query):
    """Outcomes of units and of their matches in the other arm, as one sum with known coefficients.

    Units are matched on a propensity score fitted to covariates and arms, both of which must be public. Each unit has
    `neighbours` matches, each counting 1 / neighbours, and may itself serve as a match for a limited number of others.
    Given covariates and arms the estimate is a weighted sum of outcomes; the answer is that sum with its largest
    coefficient counted as 1, and a sum of squared differences from which the standard error is made.
    Proof: docs/proofs/matched_contrast.md.

    Attributes:
        neighbours: How many matches each unit has.
        limit: A unit may serve as a match `limit` times `neighbours` times; None to choose the limit for each arm by
            the error model of Yuan et al. (2025).
        error: The coefficient of that model.
    """

    name: ClassVar[str] = "matched_contrast"
    most_units: ClassVar[int] = 2**25
    public_values: ClassVar[tuple[str, ...]] = ("largest", "squared", "limit_0", "limit_1", "matched", "freedom")
    shares: ClassVar[dict[str, Fraction]] = {"effect": Fraction(9, 10), "squares": Fraction(1, 10)}

    covariates: Sequence[str]
    neighbours: int
    limit: int | None
    error: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        check_matching(self.neighbours, self.limit, self.error)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        covariates_named(self.covariates, schema)
        if schema.required_columns:
            raise QueryError(
                expected=f"an outcome that no unit lacks, which the proof of {self.name} needs",
                got=f"{schema.outcome.name!r}, without which a unit is outside the comparison",
                hint="use Stratification; or, where no outcome is missing, declare what would count in its place: "
                f"{type(schema.outcome).__name__}({schema.outcome.name!r}, …, missing=…).",
            )
        if protects != "outcome":
            raise QueryError(
                expected="a schema that declares covariates and arms public: protects='outcome'",
                got=f"one that protects {protects}",
                hint="matching on the score as it is reveals covariates and arms; where these are private use "
                "Stratification or InverseWeighting.",
            )
        tick = outcome_tick(schema)
        parts = {"effect": (tick / COEFFICIENT_TICKS, MOVES), "squares": (tick**2 * GRID, 4 * GRID + 1)}
        return shared(parts, self.shares, norm)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return *score_columns(self.covariates, schema), schema.outcome

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        return expected_matching(self.limit, self.error, expectations, guarantee.epsilon)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(
            cls(covariates, neighbours, limit, 0.01)
            for covariates in single_feature(schema)
            for neighbours in (1, 5)
            for limit in (None, 1)
        )


def check_matching(neighbours: object, limit: object, error: float) -> None:
    """Raise unless these can be parameters of matching."""
    whole = all(isinstance(each, int) and 1 <= each <= 1000 for each in (neighbours, 1 if limit is None else limit))
    if not whole or not (is_number(error) and 0 < error <= 1):
        raise QueryError(
            expected="whole numbers from 1 to 1000 as neighbours and limit, and an error coefficient up to 1",
            got=f"neighbours={neighbours!r}, limit={limit!r}, error={error!r}",
            hint="5 neighbours and no limit of your own are usual.",
        )


def expected_matching(limit: int | None, error: float, expectations: Expectations, epsilon: float) -> dict[str, float]:
    """Return the expected result of matching.

    Without a limit, the busiest units serve as matches ten times as often as their arm does on average.
    """
    n, (c, t) = expectations.compared, expectations.expected_sizes
    few, many = min(c, t), max(c, t)
    most = 10 * many / few
    chosen = min(math.sqrt(epsilon * error * many * most / math.sqrt(2)), most)
    serves = max(chosen, many / few, 1.0) if limit is None else float(limit)
    return {
        "effect": 0.0,
        "squares": 3 * n / 4 * expectations.sd**2,
        "freedom": 3 * n / 4,
        "largest": (1 + serves) / n,
        "squared": 1.2 * (1 / c + 1 / t),
        "limit_0": serves,
        "limit_1": serves,
        "matched": 1.0,
    }
