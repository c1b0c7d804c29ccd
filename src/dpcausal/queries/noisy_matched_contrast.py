"""Outcomes of units matched by noisy scores and arms, where everything is private."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.features import (
    check_coefficients,
    clipped_coefficients,
    name_tuple,
    score_columns,
    single_feature,
)
from dpcausal.queries.matched_contrast import COEFFICIENT_TICKS, MOVES, check_matching, expected_matching
from dpcausal.queries.query import (
    Coordinate,
    Draw,
    NoiseKind,
    Norm,
    Query,
    Sensitivity,
    check_all_compared,
    outcome_tick,
)
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class NoisyMatchedContrast(Query):
    """The sum of `MatchedContrast` for units whose scores and arms get noise first, one by one.

    Nothing about a unit need be public. Pure epsilon only. Proof: docs/proofs/noisy_matched_contrast.md.

    Attributes:
        coefficients: The score's coefficients, in the order of `feature_names`, as a logistic query released them.
        neighbours: How many matches each unit has.
        limit: As in `MatchedContrast`.
        error: As in `MatchedContrast`.
        shares: How epsilon is divided among scores, arms and outcomes.
    """

    name: ClassVar[str] = "noisy_matched_contrast"
    draws: ClassVar[tuple[Draw, ...]] = ("laplace", "randomised_response")
    most_units: ClassVar[int] = 2**25
    public_values: ClassVar[tuple[str, ...]] = ("largest", "limit_0", "limit_1", "matched")

    covariates: Sequence[str]
    coefficients: Sequence[float]
    neighbours: int
    limit: int | None
    error: float
    shares: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        object.__setattr__(self, "coefficients", clipped_coefficients(self.coefficients))
        object.__setattr__(self, "shares", tuple(self.shares))
        check_matching(self.neighbours, self.limit, self.error)
        three = len(self.shares) == 3 and all(is_number(share) and 0 < share < 1 for share in self.shares)
        if not three or sum(map(Fraction, self.shares)) > 1 + Fraction(1, 10**9):
            raise QueryError(
                expected="three positive shares that add up to 1",
                got=repr(self.shares),
                hint="for instance .05, .75, .2.",
            )

    @property
    def noise(self) -> NoiseKind:
        return "laplace"

    def parts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return the shares of scores, arms and outcomes; together no more than 1."""
        total = max(sum(map(Fraction, self.shares)), Fraction(1))
        score, arm, outcome = (Fraction(share) / total for share in self.shares)
        return score, arm, outcome

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        check_all_compared(self, schema, protects)
        check_coefficients(self.coefficients, self.covariates, schema)
        effect = Coordinate("effect", outcome_tick(schema) / COEFFICIENT_TICKS, Fraction(MOVES) / self.parts()[2])
        return Sensitivity(norm, (effect,), Fraction(1))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return *score_columns(self.covariates, schema), schema.outcome

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        return expected_matching(self.limit, self.error, expectations, guarantee.epsilon)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(
            cls(covariates, [0.5, -1.25], 5, limit, 0.001, [0.05, 0.75, 0.2])
            for covariates in single_feature(schema)
            for limit in (None, 2)
        )
