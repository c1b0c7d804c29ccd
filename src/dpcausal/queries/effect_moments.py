"""Sums of products for a regression of effects on public functions of covariates."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.basis import LENGTH, Basis, Cells, Fourier, Polynomial, Spline, basis_of
from dpcausal.queries.cuts import single_cut
from dpcausal.queries.features import single_feature
from dpcausal.queries.models import (
    EVEN,
    EXTREME,
    MODERATE,
    Learner,
    Modelled,
    Models,
    check_learner,
    check_limits,
    joined,
)
from dpcausal.queries.query import GRID, Coordinate, Norm, Sensitivity, outcome_tick
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.roots import root_above

_OFF_DIAGONAL = Fraction(7072, 10000)
"""The noise of products of two functions relative to that of squares: at least √(1/2), since they count twice."""


@dataclass(frozen=True)
class EffectMoments(Modelled):
    """Sums of products for a regression of effects on public functions of covariates.

    With functions f of a unit, a its arm (0 or 1), e its propensity and y its outcome, the regressors are
    g = (a - e) f and the regressand is r = y - e m1 - (1 - e) m0, m1 and m0 what the regressions say (`residual`); or
    g = f and r is its augmented score (`augmented`). r is clipped to `limit` half ranges of the outcome. The answer
    holds the sums of g g', of r g, of what r² lacks to its most, and the number of r that the limit cut off. Proof:
    docs/proofs/effect_moments.md.

    Attributes:
        learner: Which regression of effects.
        clip: The propensity is clipped to clip and 1 - clip.
        limit: The largest r, in half ranges of the outcome.
    """

    name: ClassVar[str] = "effect_moments"
    adds_up: ClassVar[bool] = True
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
        check_learner(self.learner)

    def pairs(self, schema: Schema) -> list[tuple[int, int]]:
        """Return the pairs of functions whose products are summed: each once, and none that must be 0."""
        count = len(self.basis.names(schema))
        return [(i, j) for i in range(count) for j in range(i, count) if i == j or not self.basis.disjoint]

    def longest(self, schema: Schema) -> Fraction:
        """Return the greatest length of regressors, in ticks."""
        if self.learner == "augmented":
            return Fraction(LENGTH)
        # Each is rounded to the nearest tick.
        return (
            Fraction(self.farthest_arm(schema, self.clip)) * LENGTH
            + root_above(Fraction(len(self.basis.names(schema)))) / 2
        )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
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
        return joined(super().reads(schema), self.basis, schema)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        made = []
        for covariates in single_feature(schema):
            line, curve, fourier = Polynomial(covariates), Spline(covariates, 1), Fourier(covariates, n_features=2)
            groups = Cells(single_cut(schema)[0])
            variants: tuple[tuple[Learner, float, Models, tuple[Basis, ...]], ...] = (
                ("residual", 0.5, EXTREME, (line, curve, groups, fourier)),
                ("residual", 1.0, EVEN, (line, fourier)),
                ("augmented", 5.0, EXTREME, (curve, groups)),
                ("augmented", 0.5, MODERATE, (line, fourier)),
            )
            for learner, limit, models, bases in variants:
                made += [cls(covariates, *models, basis, learner, 0.1, limit) for basis in bases]
        return tuple(made)
