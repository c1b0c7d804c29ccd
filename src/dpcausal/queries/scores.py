"""Questions about the propensity score, and about arms weighted by it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

from dpcausal.columns import Column, Real
from dpcausal.errors import QueryError
from dpcausal.queries.query import (
    GRID,
    Coordinate,
    Draw,
    NoiseKind,
    Norm,
    Query,
    Sensitivity,
    compared,
    outcome_tick,
    value_names,
)
from dpcausal.schema import Protects, Schema
from dpcausal.treatment import TableColumn
from dpcausal.validation import did_you_mean, is_number

Estimand = Literal["ATE", "ATT", "ATC", "ATO"]

COEFFICIENT_TICK = 2.0**-30


def feature_names(covariates: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The features that covariates become: a constant, each number, one of two values, each of more values."""
    names = ["intercept"]
    for column in covariates_named(covariates, schema):
        names += [column.name] if isinstance(column, Real) or len(column.values) == 2 else value_names(column)
    return tuple(names)


def covariates_named(covariates: Sequence[str], schema: Schema) -> tuple[Column, ...]:
    """The covariates of these names."""
    if isinstance(covariates, str):
        raise QueryError(
            expected="a list of covariates", got=repr(covariates), hint="put it into a list: covariates=[...]."
        )
    known = {column.name: column for column in schema.covariates}
    texts = all(isinstance(name, str) for name in covariates)
    if not (covariates and texts and len(set(covariates)) == len(covariates) and set(covariates) <= set(known)):
        near = next((did_you_mean(name, known) for name in covariates if name not in known), "") if texts else ""
        raise QueryError(
            expected=f"one or more different covariates out of {', '.join(known) or 'none'}",
            got=f"{list(covariates)}",
            hint=f"{near}declare in the schema, with bounds or values, every covariate that is used.",
        )
    return tuple(known[name] for name in covariates)


def score_columns(covariates: Sequence[str], schema: Schema) -> tuple[TableColumn, ...]:
    """The columns that a score depends on."""
    return schema.treatment, *covariates_named(covariates, schema)


def kept_within(coefficients: Sequence[float]) -> tuple[float, ...]:
    """Coefficients moved to within a million, which is beyond any that noise has not drowned."""
    if not all(map(is_number, coefficients)):
        raise QueryError(
            expected="numbers as coefficients",
            got=repr(coefficients),
            hint="take them from a logistic query's release.",
        )
    return tuple(min(max(float(each), -(2.0**20)), 2.0**20) for each in coefficients)


def check_coefficients(coefficients: Sequence[float], covariates: Sequence[str], schema: Schema) -> None:
    """Raise unless there is a coefficient for each feature."""
    names = feature_names(covariates, schema)
    if len(coefficients) != len(names):
        raise QueryError(
            expected=f"{len(names)} coefficients, one for each feature",
            got=f"{len(coefficients)}",
            hint="take them from the release of a logistic query of the same covariates.",
        )


def check_estimand(estimand: object, known: Sequence[str]) -> None:
    """Raise unless an estimand is one of those known."""
    if estimand not in known:
        raise QueryError(
            expected=f"one of the estimands {', '.join(known)}",
            got=repr(estimand),
            hint="they are written in capitals; ATO is the one with the least noise.",
        )


def largest_weight(estimand: Estimand, clip: float) -> float:
    """The largest weight there can be with scores kept within clip and 1 - clip."""
    return {"ATE": 1 / clip, "ATO": 1.0}.get(estimand, (1 - clip) / clip)


WIDEST_SCORE = 1_000
"""The solver's arithmetic is certified up to so many features, and up to 10^8 units."""


def of_length(moved: Fraction, names: tuple[str, ...], norm: Norm, share: Fraction = Fraction(1)) -> Sensitivity:
    """Coefficients that move, as a vector, by a length of at most `moved` ticks before each is rounded to a tick."""
    if len(names) > WIDEST_SCORE:
        raise QueryError(
            expected=f"a score of at most {WIDEST_SCORE:,} features",
            got=f"{len(names):,}",
            hint="name fewer covariates, or declare fewer values for them.",
        )
    root = Fraction(math.isqrt(10**12 * len(names)) + 1, 10**6)
    length = (moved + root) / share
    coordinates = tuple(Coordinate(name, COEFFICIENT_TICK, length) for name in names)
    return Sensitivity(norm, coordinates, root if norm == "l1" else Fraction(1))


@dataclass(frozen=True)
class OutputPerturbedLogistic(Query):
    """The coefficients of a ridge logistic regression of treatment on covariates, with noise on the result.

    Every covariate is a number within -1 and 1, or 0-or-1 indicators of three or more values; with a constant 1 and
    divided by the root of their number, features have a length of at most 1. The constant is penalised like the rest.
    Proof: docs/proofs/logistic.md.

    Attributes:
        covariates: The covariates.
        penalty: The ridge: what is minimised is the sum of losses plus penalty / 2 times the squared length of the
            coefficients. One unit moves these by 2 / penalty at most.
    """

    name: ClassVar[str] = "output_perturbed_logistic"
    most_units: ClassVar[int] = 10**8
    slack: ClassVar[Fraction] = Fraction(1, 1000)
    """How far the solver may stay from the minimum, in parts of 1 / penalty."""

    covariates: Sequence[str]
    penalty: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covariates", self.covariates if isinstance(self.covariates, str) else tuple(self.covariates)
        )
        if not (is_number(self.penalty) and 1 <= self.penalty <= 1e12):
            raise QueryError(
                expected="a penalty from 1 to 1e12", got=repr(self.penalty), hint="a hundredth of n is usual."
            )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates and how far one unit can move them."""
        names = feature_names(self.covariates, schema)
        moved = 2 * (1 + self.slack) / Fraction(self.penalty) / Fraction(COEFFICIENT_TICK)
        return of_length(moved, names, norm)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return score_columns(self.covariates, schema)


@dataclass(frozen=True)
class ObjectivePerturbedLogistic(Query):
    """The same coefficients, with noise in what is minimised and hardly any on the result.

    The penalty is as small as the proof allows, a number of the order of 1 / epsilon whatever n is. Features as in
    `OutputPerturbedLogistic`. Pure epsilon only. Proof: docs/proofs/logistic.md.

    Attributes:
        covariates: The covariates.
    """

    name: ClassVar[str] = "objective_perturbed_logistic"
    draws: ClassVar[tuple[Draw, ...]] = ("cube",)
    most_units: ClassVar[int] = 10**8
    shares: ClassVar[dict[str, Fraction]] = {
        "curvature": Fraction(25, 100),
        "gradient": Fraction(71, 100),
        "slack": Fraction(2, 100),
    }
    """How epsilon is divided; the slack counts twice."""
    slack: ClassVar[Fraction] = Fraction(1, 10**5)
    """How far the solver, and the grid on which noise is drawn, may move the result."""

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covariates", self.covariates if isinstance(self.covariates, str) else tuple(self.covariates)
        )

    @classmethod
    def penalty(cls, epsilon: float) -> float:
        """The ridge: as small as the share of epsilon for curvature allows, but at least 1."""
        return max(1 / (4 * math.expm1(epsilon * float(cls.shares["curvature"]))), 1.0) * (1 + 1e-9)

    @classmethod
    def tilt_scale(cls, epsilon: float, covariates: int) -> float:
        """The scale of the random linear term for so many covariates, the constant among them."""
        return 2 / math.sqrt(covariates) / (epsilon * float(cls.shares["gradient"])) * (1 + 1e-9)

    @classmethod
    def tilt_sd(cls, epsilon: float, covariates: int, features: int) -> float:
        """The standard deviation of each entry of that term."""
        return cls.tilt_scale(epsilon, covariates) * math.sqrt((features + 1) * (features + 2) / 3)

    @property
    def noise(self) -> NoiseKind:
        """What kind of noise the proof is about."""
        return "laplace"

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates, and how far the solver and the grid can have moved them."""
        names = feature_names(self.covariates, schema)
        moved = self.slack / Fraction(COEFFICIENT_TICK)
        return of_length(moved, names, norm, self.shares["slack"])

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return score_columns(self.covariates, schema)


@dataclass(frozen=True)
class WeightedArms(Query):
    """Sums over both arms of outcomes weighted by a propensity score that is public already.

    With weights w as a share of the largest possible one and outcomes z as a share of half their range, the answer
    holds the sums of +-w z (weighted_difference), w z (weighted_sum), +-w (weight_difference), w (weight_sum), w (1 - z²) (deficit) and w² (weight_square_sum), where +
    is for treated and - for control units; and the number of units where they may leave the comparison. From these
    follow both weighted means, at hardly more noise than the contrast alone would need. Proof:
    docs/proofs/weighted_arms.md.

    Attributes:
        covariates: The covariates of the score.
        coefficients: The score's coefficients, in the order of `feature_names`, as a logistic query released them.
        estimand: Whose effect the weights are for.
        clip: The score is kept within clip and 1 - clip.
        shrink: What is taken off a weight's exponent for each unit of squared length of the features, to undo the
            upward bias of noisy coefficients (exactly for Gaussian noise, nearly for little Laplace noise); 0 for none.
    """

    name: ClassVar[str] = "weighted_arms"
    weights: ClassVar[dict[str, int]] = {
        "weighted_difference": 2,
        "weighted_sum": 8,
        "weight_difference": 8,
        "weight_sum": 4,
        "deficit": 16,
        "weight_square_sum": 16,
    }

    covariates: Sequence[str]
    coefficients: Sequence[float]
    estimand: Estimand
    clip: float
    shrink: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covariates", self.covariates if isinstance(self.covariates, str) else tuple(self.covariates)
        )
        object.__setattr__(self, "coefficients", kept_within(self.coefficients))
        check_estimand(self.estimand, get_args(Estimand))
        numbers = is_number(self.shrink) and is_number(self.clip)
        if not (numbers and 0 <= self.shrink <= 2**20 and 1e-3 <= self.clip < 0.5):
            raise QueryError(
                expected="a clip from 0.001 to below 0.5",
                got=f"clip={self.clip!r}, shrink={self.shrink!r}",
                hint="a clip of 0.1 is usual; a smaller one needs more noise.",
            )

    @property
    def largest(self) -> float:
        """The largest weight there can be."""
        return largest_weight(self.estimand, self.clip)

    @property
    def smallest(self) -> float:
        """The smallest weight there can be."""
        return {"ATE": 1 / (1 - self.clip), "ATO": self.clip}.get(self.estimand, self.clip / (1 - self.clip))

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates and how far one unit can move them."""
        check_coefficients(self.coefficients, self.covariates, schema)
        weight, outcome = self.largest / GRID, outcome_tick(schema)
        ticks = {
            "weighted_difference": self.largest * outcome,
            "weighted_sum": self.largest * outcome,
            "weight_difference": weight,
            "weight_sum": weight,
            "deficit": self.largest * outcome**2 * GRID,
            "weight_square_sum": self.largest * weight,
        }
        coordinates = tuple(Coordinate(name, ticks[name], Fraction(GRID * self.weights[name])) for name in ticks)
        coordinates = (*coordinates, *compared(schema, Fraction(8)))
        bound = {"l1": Fraction(5, 4), "l2": Fraction(1031, 1000)}[norm]
        return Sensitivity(norm, coordinates, bound + Fraction(8, GRID))  # and what rounding to ticks adds

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return *score_columns(self.covariates, schema), schema.outcome
