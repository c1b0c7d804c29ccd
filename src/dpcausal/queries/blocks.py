"""Questions to any learner, asked of many parts of the table at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dpcausal.columns import Value
from dpcausal.errors import QueryError
from dpcausal.queries.profiles import by_covariate, codes_of, profile_names, profiles_of
from dpcausal.queries.query import GRID, Coordinate, Draw, NoiseKind, Norm, Query, Sensitivity, outcome_tick
from dpcausal.queries.regression_moments import root_above
from dpcausal.queries.scores import covariates_named, score_columns
from dpcausal.schema import Protects, Schema
from dpcausal.treatment import TableColumn
from dpcausal.validation import is_number


@dataclass(frozen=True)
class Asked(Query):
    """A question to a learner: the effects that it gives to public profiles.

    Attributes:
        learner: Which learner, by the name under which the vault knows it.
        covariates: The covariates that it sees.
        at: The profiles, each a list of values in the order of `covariates`.
    """

    learner: str
    covariates: Sequence[str]
    at: Sequence[Sequence[Value]]

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covariates", self.covariates if isinstance(self.covariates, str) else tuple(self.covariates)
        )
        object.__setattr__(self, "at", profiles_of(self.covariates, self.at))
        if not isinstance(self.learner, str):
            raise QueryError(expected="the name of a learner", got=repr(self.learner), hint="for instance forest.")

    @property
    def names(self) -> tuple[str, ...]:
        """What each profile's effect is called."""
        return profile_names(self.at)

    @property
    def vault_learner(self) -> str | None:
        """The name of the learner that the vault runs for the answer."""
        return self.learner

    def check_profiles(self, schema: Schema) -> None:
        """Raise unless profiles can be read as the schema declares."""
        columns = covariates_named(self.covariates, schema)
        codes_of(by_covariate(self.covariates, self.at), columns)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return *score_columns(self.covariates, schema), schema.outcome


@dataclass(frozen=True)
class BlockEffects(Asked):
    """The effects that a learner gives to public profiles, added up over blocks of units that have none in common.

    Units are put into blocks at random, each block is learned from by itself, and each effect g is kept within `limit`
    half ranges of the outcome. The answer holds for each profile the sum of g over blocks, and of what g² lacks to the
    most it can be. One unit is in one block. Proof: docs/proofs/block_effects.md.

    Attributes:
        blocks: How many blocks.
        limit: The largest effect, in half ranges of the outcome.
    """

    name: ClassVar[str] = "block_effects"
    draws: ClassVar[tuple[Draw, ...]] = ("shuffle",)
    most_units: ClassVar[int] = 10**7

    blocks: int
    limit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        blocks = isinstance(self.blocks, int) and 2 <= self.blocks <= 10**6
        if not (blocks and is_number(self.limit) and 1e-3 <= self.limit <= 2):
            raise QueryError(
                expected="2 to a million blocks, and a limit from 0.001 to 2 half ranges",
                got=f"blocks={self.blocks!r}, limit={self.limit!r}",
                hint="noise falls with the number of blocks and grows with the limit; no effect is beyond 2.",
            )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates and how far one unit can move them."""
        self.check_profiles(schema)
        tick = self.limit * outcome_tick(schema)
        deficit = {"l1": 4 * GRID, "l2": 2 * GRID}[norm]  # so large that deficits never add to what totals move
        totals = (Coordinate(name, tick, Fraction(2 * GRID)) for name in self.names)
        deficits = (Coordinate(f"deficit of {name}", tick**2 * GRID, Fraction(deficit)) for name in self.names)
        count = Fraction(len(self.at))
        bound = count if norm == "l1" else root_above(count)
        return Sensitivity(norm, (*totals, *deficits), bound * (1 + Fraction(2, GRID)))


@dataclass(frozen=True)
class InfluenceEffects(Asked):
    """The effects that a learner gives to public profiles, with noise sized by influence functions. Not proved private.

    This is Theorem 1 of Schröder, Melnychuk and Feuerriegel (2025) as printed. Influence functions tell what happens to
    large samples in the limit, not what one record can do to this one; the models are not paid for, the size of the
    noise is read off the table, and it does not grow with the number of profiles. An audit shows losses far above the
    claim. It is here to be compared with, and refused unless the data set allows it by name. Why no proof holds:
    docs/proofs/influence_effects.md.

    Attributes:
        clip: The propensity is kept within clip and 1 - clip.
    """

    name: ClassVar[str] = "influence_effects"
    most_units: ClassVar[int] = 10**6
    proof_status: ClassVar[Literal["proved", "heuristic"]] = "heuristic"

    learners: ClassVar[tuple[str, ...]] = ("forest", "linear", "network")
    """What may be second; the models of outcome and propensity are always neural networks."""

    clip: float

    def __post_init__(self) -> None:
        super().__post_init__()
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
        """What the theorem multiplies the largest influence by: the noise's standard deviation as a share of it."""
        return 5 * math.sqrt(2 * math.log(n) * math.log(2 / delta)) / (epsilon * n)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """The answer's coordinates; how far one unit can move them nobody knows."""
        self.check_profiles(schema)
        coordinates = tuple(Coordinate(name, outcome_tick(schema), None) for name in self.names)
        return Sensitivity(norm, coordinates, Fraction(1))
