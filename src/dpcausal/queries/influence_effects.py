"""Effects that a learner predicts, with noise sized by influence functions: not proved private."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.models import Learner, LearnerQuery, check_learner, example_profiles
from dpcausal.queries.query import Coordinate, NoiseKind, Norm, Sensitivity, outcome_tick
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class InfluenceEffects(LearnerQuery):
    """The effects that a learner gives to public profiles, with noise sized by influence functions. Not proved private.

    This is Theorem 1 of Schröder, Melnychuk and Feuerriegel (2025) as printed. Influence functions describe
    large samples in the limit, not what one record can do to this one; the models are not paid for, the size of the
    noise is read off the table, and it does not grow with the number of profiles. An audit shows losses far above the
    claim. It is here to be compared with, and refused unless the data set allows it by name. Why no proof holds:
    docs/proofs/influence_effects.md.

    Attributes:
        clip: The propensity is clipped to clip and 1 - clip.
        pseudo_outcome: Which regression of effects: the R-learner's (Lemma 2) or the DR-learner's (Lemma 2b).
    """

    name: ClassVar[str] = "influence_effects"
    most_units: ClassVar[int] = 10**6
    proof_status: ClassVar[Literal["proved", "heuristic"]] = "heuristic"

    learners: ClassVar[tuple[str, ...]] = ("forest", "linear", "network")
    """What may be second; the models of outcome and propensity are always neural networks."""

    clip: float
    pseudo_outcome: Learner = "residual"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_learner(self.pseudo_outcome)
        if self.learner not in self.learners or not (is_number(self.clip) and 1e-3 <= self.clip < 0.5):
            raise QueryError(
                expected=f"a clip from 0.001 to below 0.5 and a learner out of {', '.join(self.learners)}",
                got=f"clip={self.clip!r}, learner={self.learner!r}",
                hint="0.05 and forest are what the paper's experiments suggest.",
            )

    @property
    def vault_learner(self) -> str | None:
        """Neural networks, whatever comes second."""
        return "network"

    @property
    def noise(self) -> NoiseKind:
        """What kind of noise the theorem is about."""
        return "influence"

    @staticmethod
    def factor(n: int, epsilon: float, delta: float) -> float:
        """Return the noise's standard deviation as a share of the largest influence, as the theorem says."""
        return 5 * math.sqrt(2 * math.log(n) * math.log(2 / delta)) / (epsilon * n)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates; how far one unit can move them is not known."""
        self.check_profiles(schema)
        coordinates = tuple(Coordinate(name, outcome_tick(schema), None) for name in self.names)
        return Sensitivity(norm, coordinates, Fraction(1))

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        return dict.fromkeys(self.names, 0.0)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls("linear", covariates, profiles, 0.05) for covariates, profiles in example_profiles(schema))
