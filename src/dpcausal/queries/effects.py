"""Questions about heterogeneous treatment effects: as a sum of public functions of covariates, with weights."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

from dpcausal.columns import Real
from dpcausal.errors import QueryError
from dpcausal.queries.basis import LENGTH, Basis, basis_of
from dpcausal.queries.models import Modelled, check_limits
from dpcausal.queries.query import GRID, Coordinate, Norm, Sensitivity, outcome_tick
from dpcausal.queries.regression_moments import root_above
from dpcausal.queries.scores import COEFFICIENT_TICK, covariates_named
from dpcausal.schema import Protects, Schema
from dpcausal.treatment import TableColumn
from dpcausal.validation import is_number

Learner = Literal["residual", "augmented"]
"""How a unit tells of its effect.

`residual` (R-learner, Nie and Wager 2021): its outcome less what its covariates foretell is its effect times the
distance of its arm from its propensity. `augmented` (DR-learner, Kennedy 2023): its augmented score is its effect.
"""

_OFF_DIAGONAL = Fraction(7072, 10000)
"""The noise of products of two functions beside that of squares: not below the root of 1/2, since they count twice."""


def _joined(columns: tuple[TableColumn, ...], basis: Basis, schema: Schema) -> tuple[TableColumn, ...]:
    """Columns with those of a basis, each once, in the order of the schema."""
    names = {column.name for column in (*columns, *basis.reads(schema))}
    return tuple(column for column in schema.columns if column.name in names)


@dataclass(frozen=True)
class EffectMoments(Modelled):
    """Sums of products that a regression of effects on public functions of covariates is made of.

    With functions f of a unit, a its arm (0 or 1), e its propensity and y its outcome, the regressors are
    g = (a - e) f and the regressand is r = y - e m1 - (1 - e) m0, m1 and m0 what the regressions say (`residual`); or
    g = f and r is its augmented score (`augmented`). r is kept within `limit` half ranges of the outcome. The answer
    holds the sums of g g', of r g, of what r² lacks to its most, and the number of r that the limit cut off. Proof:
    docs/proofs/effect_moments.md.

    Attributes:
        basis: The functions.
        learner: How a unit tells of its effect.
        clip: The propensity is kept within clip and 1 - clip.
        limit: The largest r, in half ranges of the outcome.
    """

    name: ClassVar[str] = "effect_moments"
    most_units: ClassVar[int] = 2**39
    weights: ClassVar[dict[str, int]] = {"gram": 1, "along": 1, "deficit": 4, "clipped": 4}
    """How large the noise of each kind of sum is, in proportion to the largest that one unit can add to it."""

    basis: Basis
    learner: Learner
    clip: float
    limit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "basis", basis_of(self.basis))
        check_limits(self.clip, self.limit)
        if self.learner not in get_args(Learner):
            raise QueryError(
                expected=f"one of the learners {', '.join(get_args(Learner))}",
                got=repr(self.learner),
                hint="residual has the smaller noise; augmented weighs all units alike.",
            )

    def pairs(self, schema: Schema) -> list[tuple[int, int]]:
        """Which products of two functions are asked for: each once, and none that must be 0."""
        count = len(self.basis.names(schema))
        return [(i, j) for i in range(count) for j in range(i, count) if i == j or not self.basis.disjoint]

    def longest(self, schema: Schema) -> Fraction:
        """The greatest length of regressors, in ticks."""
        if self.learner == "augmented":
            return Fraction(LENGTH)
        # Each is rounded to the nearest tick.
        return Fraction(farthest_arm(self, schema)) * LENGTH + root_above(Fraction(len(self.basis.names(schema)))) / 2

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates and how far one unit can move them."""
        self.check_models(schema)
        names, longest = self.basis.names(schema), self.longest(schema)
        unit = self.limit * outcome_tick(schema) * GRID / LENGTH
        gram = [
            Coordinate(f"{names[i]} by {names[j]}", 1 / LENGTH**2, longest**2 * (1 if i == j else _OFF_DIAGONAL))
            for i, j in self.pairs(schema)
        ]
        along = [Coordinate(f"effect * {name}", unit / LENGTH, longest * LENGTH) for name in names]
        rest = [
            Coordinate("deficit", unit**2, Fraction(LENGTH**2 * self.weights["deficit"])),
            Coordinate("clipped", 1.0, Fraction(self.weights["clipped"])),
        ]
        return Sensitivity(norm, (*gram, *along, *rest), self._bound(schema, norm))

    def _bound(self, schema: Schema, norm: Norm) -> Fraction:
        cut = Fraction(1, self.weights["clipped"])  # deficits never add to what products move
        if norm == "l2":
            # Twice (1 - s²) + (1 + s), s the cosine between two units' regressors, is largest at 1/2; 0 is for groups.
            return root_above((Fraction(4) if self.basis.disjoint else Fraction(9, 2)) + cut**2)
        if self.basis.disjoint:
            return 4 + cut
        reach = Fraction(self.basis.reach(schema) * (1 + 1e-9)) + Fraction(len(self.basis.names(schema)), LENGTH)
        half = 1 / (2 * _OFF_DIAGONAL)
        squares = reach**2 * half + 1 - half  # of all products, those of two functions counting once
        # Where all functions are as large as each other two units cannot both have all products to themselves.
        return (1 if self.basis.level else 2) * squares + 2 * reach + cut

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return _joined(super().reads(schema), self.basis, schema)


@dataclass(frozen=True)
class EffectWeights(Modelled):
    """The weights of public functions of covariates that best tell the effect, by a loss that no unit can pull far.

    What is minimised over weights w is the sum over units of c² log cosh((r - g'w) / c), with r and g those of the
    `residual` learner and c the limit, plus penalty / 2 times the squared length of w: near 0 a square, far out a
    distance. One unit moves the minimum by 2 c L / penalty at most, L the greatest length of g. Proof:
    docs/proofs/effect_weights.md.

    Attributes:
        basis: The functions.
        clip: The propensity is kept within clip and 1 - clip.
        limit: Where the loss turns from a square to a distance, in half ranges of the outcome.
        penalty: The ridge, in units.
    """

    name: ClassVar[str] = "effect_weights"
    most_units: ClassVar[int] = 10**6
    slack: ClassVar[Fraction] = Fraction(1, 1000)
    """How far the solver may stay from the minimum, as a share of what one unit can move it."""

    basis: Basis
    clip: float
    limit: float
    penalty: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "basis", basis_of(self.basis))
        numbers = is_number(self.clip) and is_number(self.limit) and is_number(self.penalty)
        ranges = numbers and 1e-3 <= self.clip < 0.5 and 0.01 <= self.limit <= 100 and 1 <= self.penalty <= 1e12
        if not ranges or self.limit * self.penalty < 1 / 25:  # the solver is certified above that
            raise QueryError(
                expected="a clip from 0.001 to below 0.5, a limit from 0.01 to 100, a penalty from 1 to 1e12, "
                "and limit times penalty of at least 0.04",
                got=f"clip={self.clip!r}, limit={self.limit!r}, penalty={self.penalty!r}",
                hint="a larger penalty needs less noise and flattens the effect.",
            )

    def moved(self, schema: Schema) -> Fraction:
        """How far one unit can move the minimum, in half ranges, solver included."""
        longest = Fraction(farthest_arm(self, schema)) + Fraction(1, 10**9)
        return 2 * (1 + self.slack) * Fraction(self.limit) * longest / Fraction(self.penalty)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates and how far one unit can move them."""
        self.check_models(schema)
        names = self.basis.names(schema)
        root = root_above(Fraction(len(names)))
        length = self.moved(schema) / Fraction(COEFFICIENT_TICK) + root  # each is rounded to a tick
        tick = COEFFICIENT_TICK * outcome_tick(schema) * GRID
        coordinates = tuple(Coordinate(name, tick, length) for name in names)
        return Sensitivity(norm, coordinates, root if norm == "l1" else Fraction(1))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return _joined(super().reads(schema), self.basis, schema)


def farthest_arm(query: EffectMoments | EffectWeights, schema: Schema) -> float:
    """How far an arm can be from its propensity, whatever a unit's covariates are: a half where it is always a half."""
    query.check_models(schema)
    root = math.sqrt(len(query.covariates) + 1)
    low, *slopes = (round(each / root * 2**16) / 2**16 for each in query.propensity)  # as the vault rounds them
    high = low
    for column in covariates_named(query.covariates, schema):
        if isinstance(column, Real) or len(column.values) == 2:
            slope, *slopes = slopes
            own = [-slope, slope]
        else:  # one of these and no other
            own, slopes = slopes[: len(column.values)], slopes[len(column.values) :]
        low, high = low + min(own), high + max(own)
    # The predictor is rounded down to a tick of the table that it is looked up in, and the propensity to the nearest.
    ends = [1 / (1 + math.exp(-min(max(end, -40), 40))) for end in (low - 2**-12, high)]
    return min(max(ends[1], 1 - ends[0]), 1 - query.clip) + 2 / GRID
