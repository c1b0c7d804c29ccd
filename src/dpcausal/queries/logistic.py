"""Coefficients of a logistic regression of treatment on covariates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.features import (
    COEFFICIENT_TICK,
    covariates_named,
    feature_names,
    name_tuple,
    score_columns,
    single_feature,
)
from dpcausal.queries.query import Coordinate, Draw, NoiseKind, Norm, Query, Sensitivity, value_names
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.utils.arrays import Array
from dpcausal.utils.validation import is_number

WIDEST_SCORE = 1_000
"""The solver's arithmetic is certified up to so many features, and up to 10^8 units."""


def of_length(moved: Fraction, names: tuple[str, ...], norm: Norm, share: Fraction = Fraction(1)) -> Sensitivity:
    """Return the sensitivity of coefficients that move by a length of at most `moved` ticks before rounding."""
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
class Perturbation:
    """What objective perturbation adds to the equations of coefficients of features between -1 and 1.

    The coefficients are where each feature's weighted sum of propensity less arm, its ridge times its coefficient, and
    its random term add up to 0. A unit's weight is 1 where all count alike, and else 1 over the length of its features,
    each in its size.

    Attributes:
        ridges: The ridge of each coefficient, the constant's first.
        tilt_sds: The standard deviation of the random term of each.
        sizes: The size of each feature; None where all units count alike.
        fixed: The part of a unit's squared length that is the same in all units: that of features that are no numbers.
    """

    ridges: Array
    tilt_sds: Array
    sizes: Array | None = None
    fixed: float = 0.0


@dataclass(frozen=True)
class LogisticQuery(Query):
    """The base of queries for coefficients of treatment on covariates."""

    most_units: ClassVar[int] = 10**8

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return score_columns(self.covariates, schema)

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise: covariates predict treatment as far as they confound."""
        return _expected(self.covariates, expectations)


@dataclass(frozen=True)
class PerturbedLogistic(LogisticQuery):
    """The base of those that draw noise inside the answer: for pure epsilon only."""

    @property
    def noise(self) -> NoiseKind:
        return "laplace"

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: none of missing outcomes where none can be missing."""
        if cls.counts_missing and not schema.outcome_may_be_missing:
            return ()
        return tuple(map(cls, single_feature(schema)))


@dataclass(frozen=True)
class OutputPerturbedLogistic(LogisticQuery):
    """The coefficients of a ridge logistic regression of treatment on covariates, with noise on the result.

    Every covariate is a number within -1 and 1, or 0-or-1 indicators of three or more values; with a constant 1 and
    divided by the root of their number, features have a length of at most 1. The constant is penalised like the rest.
    Proof: docs/proofs/logistic.md.

    Attributes:
        penalty: The ridge: what is minimised is the sum of losses plus penalty / 2 times the squared length of the
            coefficients. One unit moves these by 2 / penalty at most.
    """

    name: ClassVar[str] = "output_perturbed_logistic"
    slack: ClassVar[Fraction] = Fraction(1, 1000)
    """How far the solver may stay from the minimum, in parts of 1 / penalty."""

    penalty: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.penalty) and 1 <= self.penalty <= 1e12):
            raise QueryError(
                expected="a penalty from 1 to 1e12", got=repr(self.penalty), hint="a hundredth of n is usual."
            )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        names = feature_names(self.covariates, schema)
        moved = 2 * (1 + self.slack) / Fraction(self.penalty) / Fraction(COEFFICIENT_TICK)
        return of_length(moved, names, norm)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(covariates, penalty) for covariates in single_feature(schema) for penalty in (1.0, 20.0))


@dataclass(frozen=True)
class ObjectivePerturbedLogistic(PerturbedLogistic):
    """The same coefficients, with noise in what is minimised and hardly any on the result.

    The penalty is as small as the proof allows, a number of the order of 1 / epsilon whatever n is. Features as in
    `OutputPerturbedLogistic`. Pure epsilon only. Proof: docs/proofs/logistic.md.
    """

    name: ClassVar[str] = "objective_perturbed_logistic"
    draws: ClassVar[tuple[Draw, ...]] = ("cube",)
    shares: ClassVar[dict[str, Fraction]] = {
        "curvature": Fraction(25, 100),
        "gradient": Fraction(71, 100),
        "slack": Fraction(2, 100),
    }
    """How epsilon is divided; the slack counts twice."""
    slack: ClassVar[Fraction] = Fraction(1, 10**5)
    """How far the solver, and the grid on which noise is drawn, may move the result."""

    @classmethod
    def penalty(cls, epsilon: float) -> float:
        """Return the ridge: as small as the share of epsilon for curvature allows, but at least 1."""
        return max(1 / (4 * math.expm1(epsilon * float(cls.shares["curvature"]))), 1.0) * (1 + 1e-9)

    @classmethod
    def tilt_scale(cls, epsilon: float, covariates: int) -> float:
        """Return the scale of the random linear term for so many covariates, including the constant."""
        return 2 / math.sqrt(covariates) / (epsilon * float(cls.shares["gradient"])) * (1 + 1e-9)

    @classmethod
    def tilt_sd(cls, epsilon: float, covariates: int, features: int) -> float:
        """Return the standard deviation of each entry of that term."""
        return cls.tilt_scale(epsilon, covariates) * math.sqrt((features + 1) * (features + 2) / 3)

    def perturbation(self, epsilon: float, schema: Schema) -> Perturbation:
        """Return the ridge and the noise, for coefficients of features that are not divided by a root."""
        count, features = len(self.covariates) + 1, len(feature_names(self.covariates, schema))
        tilt_sd = math.sqrt(count) * self.tilt_sd(epsilon, count, features)
        return Perturbation(np.full(features, count * self.penalty(epsilon)), np.full(features, tilt_sd))

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates, and how far the solver and the grid can have moved them."""
        names = feature_names(self.covariates, schema)
        moved = self.slack / Fraction(COEFFICIENT_TICK)
        return of_length(moved, names, norm, self.shares["slack"])


@dataclass(frozen=True)
class BoundedInfluenceLogistic(PerturbedLogistic):
    """The same coefficients, from losses weighted so that every unit pulls at them by a length of at most 1.

    A unit's loss is divided by the length of its features, so that the noise is for the lengths that units have, and
    not for the largest there can be. Weights depend on covariates alone: a logistic model that is right is estimated
    without bias (Mallows weights). In that length a number between -1 and 1 has its own size, the constant and listed
    values have half of theirs. The noise is spherical. Coefficients are in the terms of `OutputPerturbedLogistic`. Pure
    epsilon only. Proof: docs/proofs/logistic.md.
    """

    name: ClassVar[str] = "bounded_influence_logistic"
    draws: ClassVar[tuple[Draw, ...]] = ("ball",)
    shares: ClassVar[dict[str, Fraction]] = {
        "curvature": Fraction(13, 100),
        "gradient": Fraction(83, 100),
        "slack": Fraction(2, 100),
    }
    """How epsilon is divided; the slack counts twice."""
    slack: ClassVar[Fraction] = Fraction(2, 10**6)
    """How far the solver, and the grid on which noise is drawn, may move coefficients of features in their sizes."""

    def sizes(self, schema: Schema) -> Array:
        """Return the size of each feature: 1 for a number, and 1/2 for the constant and what is 0, 1 or -1."""
        numbers = {column.name for column in covariates_named(self.covariates, schema) if isinstance(column, Real)}
        return np.array([1.0 if name in numbers else 0.5 for name in feature_names(self.covariates, schema)])

    def longest(self, schema: Schema) -> float:
        """Return the largest length that features in their sizes can have."""
        numbers = sum(isinstance(column, Real) for column in covariates_named(self.covariates, schema))
        return math.sqrt(self.fixed(schema) + numbers) * (1 + 1e-9)

    def fixed(self, schema: Schema) -> float:
        """Return the part of a unit's squared length that is no number's: of several values of a column it has one."""
        return (1 + sum(not isinstance(column, Real) for column in covariates_named(self.covariates, schema))) / 4

    def penalty(self, epsilon: float, schema: Schema) -> float:
        """Return the ridge: as small as the share of epsilon for curvature allows, but at least 1."""
        needed = self.longest(schema) / (4 * math.expm1(epsilon * float(self.shares["curvature"])))
        return max(needed, 1.0) * (1 + 1e-9)

    @classmethod
    def tilt_scale(cls, epsilon: float) -> float:
        """Return the scale of the random linear term."""
        return 2 / (epsilon * float(cls.shares["gradient"])) * (1 + 1e-9)

    def perturbation(self, epsilon: float, schema: Schema) -> Perturbation:
        """Return the ridge and the noise, for coefficients of features that are not in their sizes."""
        sizes = self.sizes(schema)
        tilt_sd = self.tilt_scale(epsilon) * math.sqrt(drawn_dimensions(len(sizes)) + 1)
        return Perturbation(self.penalty(epsilon, schema) / sizes**2, tilt_sd / sizes, sizes, self.fixed(schema))

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates, and how far the solver and the grid can have moved them."""
        names = feature_names(self.covariates, schema)
        root = Fraction(math.isqrt(10**12 * (len(self.covariates) + 1)) + 1, 10**6)
        moved = self.slack * root / Fraction(COEFFICIENT_TICK)
        return of_length(moved, names, norm, self.shares["slack"])


def drawn_dimensions(features: int) -> int:
    """Return the dimensions of the vector that the random term of so many features is taken from: an even number."""
    return features + features % 2


def _expected(covariates: Sequence[str], expectations: Expectations) -> dict[str, float]:
    """Return the coefficients with which arms are as far apart as expected; each covariate has an equal part in it."""
    schema = expectations.schema
    c, t = expectations.expected_sizes
    length = math.sqrt(len(covariates) + 1)
    values = dict.fromkeys(feature_names(covariates, schema), 0.0)
    apart = expectations.apart / math.sqrt(len(covariates)) * length
    for column in covariates_named(covariates, schema):
        if isinstance(column, Real) or len(column.values) == 2:
            values[column.name] = apart / expectations.covariate_spread(column)
            continue
        middle, last = (len(column.values) - 1) / 2, len(column.values) - 1
        for place, name in enumerate(value_names(column)):  # the later a value, the more often it is treated
            values[name] = apart * (place - middle) / math.sqrt(last * (last + 2) / 12)
    numbers = (column for column in covariates_named(covariates, schema) if isinstance(column, Real))
    middle = sum(values[column.name] * expectations.covariate_middle(column) for column in numbers)
    return values | {"intercept": math.log(t / c) * length - middle}
