"""Weights of public functions of covariates that predict the effect, by a robust loss."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.basis import Basis, Fourier, Polynomial, Spline, basis_of
from dpcausal.queries.features import COEFFICIENT_TICK, single_feature
from dpcausal.queries.models import EVEN, EXTREME, MODERATE, Learner, Modelled, check_learner, joined
from dpcausal.queries.query import GRID, Coordinate, Norm, Sensitivity, outcome_tick
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.roots import root_above
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class EffectWeights(Modelled):
    """The weights of public functions of covariates that best predict the effect, by a robust loss.

    What is minimised over weights w is the sum over units of c² log cosh((r - g'w) / c), with r and g those of the
    learner and c the limit, plus penalty / 2 times the squared length of w: near 0 a square, far out a distance. One
    unit moves the minimum by 2 c L / penalty at most, L the greatest length of g. Proof:
    docs/proofs/effect_weights.md.

    Attributes:
        clip: The propensity is clipped to clip and 1 - clip.
        limit: Where the loss turns from a square to a distance, in half ranges of the outcome.
        penalty: The ridge, in units.
        learner: Which regression of effects.
    """

    name: ClassVar[str] = "effect_weights"
    most_units: ClassVar[int] = 10**6
    slack: ClassVar[Fraction] = Fraction(1, 1000)
    """How far the solver may stay from the minimum, as a share of what one unit can move it."""
    reach: ClassVar[dict[Learner, int]] = {"residual": 2, "augmented": 20}
    """The largest r, in half ranges of the outcome: residuals are never larger, augmented scores are clipped."""

    basis: Basis
    clip: float
    limit: float
    penalty: float
    learner: Learner = "residual"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_learner(self.learner)
        object.__setattr__(self, "basis", basis_of(self.basis))
        numbers = is_number(self.clip) and is_number(self.limit) and is_number(self.penalty)
        ranges = numbers and 1e-3 <= self.clip < 0.5 and 0.01 <= self.limit <= 100 and 1 <= self.penalty <= 1e12
        least = self.reach[self.learner] / 50
        if not ranges or self.limit * self.penalty < least:  # the solver is certified above that
            raise QueryError(
                expected="a clip from 0.001 to below 0.5, a limit from 0.01 to 100, a penalty from 1 to 1e12, "
                f"and limit times penalty of at least {least:g}",
                got=f"clip={self.clip!r}, limit={self.limit!r}, penalty={self.penalty!r}",
                hint="a larger penalty needs less noise and flattens the effect.",
            )

    def longest(self, schema: Schema) -> float:
        """Return the greatest length of regressors."""
        return self.farthest_arm(schema, self.clip) if self.learner == "residual" else 1.0

    def moved(self, schema: Schema) -> Fraction:
        """Return how far one unit can move the minimum, in half ranges, solver included."""
        longest = Fraction(self.longest(schema)) + Fraction(1, 10**9)
        return 2 * (1 + self.slack) * Fraction(self.limit) * longest / Fraction(self.penalty)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        self.check_models(schema)
        names = self.basis.names(schema)
        root = root_above(Fraction(len(names)))
        length = self.moved(schema) / Fraction(COEFFICIENT_TICK) + root  # each is rounded to a tick
        tick = COEFFICIENT_TICK * outcome_tick(schema) * GRID
        coordinates = tuple(Coordinate(name, tick, length) for name in names)
        return Sensitivity(norm, coordinates, root if norm == "l1" else Fraction(1))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return joined(super().reads(schema), self.basis, schema)

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        return dict.fromkeys(self.basis.names(expectations.schema), 0.0)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        made = []
        for covariates in single_feature(schema):
            made += [
                cls(covariates, *EXTREME, Polynomial(covariates), 0.1, 0.05, 1.0),
                cls(covariates, *MODERATE, Fourier(covariates, n_features=2), 0.1, 0.05, 1.0),
                cls(covariates, *EVEN, Spline(covariates, 1), 0.1, 1.0, 20.0),
                cls(covariates, *EXTREME, Spline(covariates, 1), 0.1, 0.4, 1.0, "augmented"),
                cls(covariates, *MODERATE, Polynomial(covariates), 0.1, 0.4, 1.0, "augmented"),
            ]
        return tuple(made)
