"""Effects that any learner predicts, summed over disjoint blocks of units: sample and aggregate."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.models import LearnerQuery, example_profiles
from dpcausal.queries.query import GRID, Coordinate, Draw, Norm, Sensitivity, outcome_tick
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.roots import root_above
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class BlockEffects(LearnerQuery):
    """The effects that a learner gives to public profiles, added up over blocks of units that have none in common.

    Units are put into blocks at random, each block is learned from by itself, and each effect g is clipped to `limit`
    half ranges of the outcome. The answer holds for each profile the sum of g over blocks, and of what g² lacks to the
    most it can be. One unit is in one block. Proof: docs/proofs/block_effects.md.

    Attributes:
        blocks: How many blocks.
        limit: The largest effect, in half ranges of the outcome.
    """

    name: ClassVar[str] = "block_effects"
    draws: ClassVar[tuple[Draw, ...]] = ("shuffle",)
    most_units: ClassVar[int] = 10**7
    most_blocks: ClassVar[int] = 10**6

    blocks: int
    limit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        blocks = isinstance(self.blocks, int) and 2 <= self.blocks <= self.most_blocks
        if not (blocks and is_number(self.limit) and 1e-3 <= self.limit <= 2):
            raise QueryError(
                expected="2 to a million blocks, and a limit from 0.001 to 2 half ranges",
                got=f"blocks={self.blocks!r}, limit={self.limit!r}",
                hint="noise falls with the number of blocks and grows with the limit; no effect is beyond 2.",
            )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        self.check_profiles(schema)
        tick = self.limit * outcome_tick(schema)
        deficit = {"l1": 4 * GRID, "l2": 2 * GRID}[norm]  # so large that deficits never add to what totals move
        totals = (Coordinate(name, tick, Fraction(2 * GRID)) for name in self.names)
        deficits = (Coordinate(f"deficit of {name}", tick**2 * GRID, Fraction(deficit)) for name in self.names)
        count = Fraction(len(self.at))
        bound = count if norm == "l1" else root_above(count)
        return Sensitivity(norm, (*totals, *deficits), bound * (1 + Fraction(2, GRID)))

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise and without an effect.

        Each block gives the effect as precisely as a difference in means of twice as many units in each arm.
        """
        low, high = expectations.schema.outcome_bounds
        sizes = [max(size / self.blocks, 1.0) for size in expectations.expected_sizes]
        largest = (self.limit * (high - low) / 2) ** 2
        spread = min(2 * expectations.sd**2 * (1 / sizes[0] + 1 / sizes[1]), largest)
        deficits = {f"deficit of {name}": self.blocks * (largest - spread) for name in self.names}
        return dict.fromkeys(self.names, 0.0) | deficits

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls("linear", covariates, profiles, 128, 0.1) for covariates, profiles in example_profiles(schema))
