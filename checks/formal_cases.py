"""What the machine-checked proofs are compared for: schemas, queries, and the numbers that each bound depends on.

A comparison that asked the code how many cells an answer has, or whether a unit may move between them, would agree with
code that has both wrong. So everything here is written down or counted by itself. From the code under test come only
the weights and bounds that are compared, and the constructors of queries and schemas.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.queries import (
    ArmMoments,
    ArmOutcomeCounts,
    ArmTotals,
    CellMoments,
    Cells,
    ChangeMoments,
    ClusterMoments,
    Coordinate,
    CovariateCounts,
    Cut,
    CutoffMoments,
    EventCounts,
    MissingOutcomes,
    Norm,
    OutcomeCounts,
    Query,
    ReceivedMoments,
    ScoreCounts,
    StratumCounts,
    SubgroupMoments,
    WeightedArms,
    WeightedCounts,
)
from dpcausal.schema.columns import Binary, Category, Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import Treatment

PROTECTS: tuple[Protects, ...] = ("record", "record_within_arm", "outcome")
NORMS: tuple[Norm, ...] = ("l1", "l2")
_COVARIATES: tuple[Column, ...] = (
    Category("ward", ["a", "b", "c"]),
    Real("age", 18, 90),
    Binary("smoker", values=("no", "yes")),
)

_HEIGHT = Real("height", 1, 2)


@dataclass(frozen=True)
class Setting:
    """A table for which constants are compared.

    Attributes:
        treatment: Its treatment.
        covariates: Its covariates.
        arms: How many arms are declared.
        outside: Whether a unit can be in neither of the two arms that are compared.
        lacks: Whether a unit without an outcome is outside the comparison.
    """

    treatment: Treatment
    covariates: tuple[Column, ...]
    arms: int
    outside: bool
    lacks: bool = False

    def schema(self, protects: Protects) -> Schema:
        """Return the schema with what is protected."""
        outcome = Real("score", 0, 10, missing=None if self.lacks else 5)
        return Schema(self.treatment, outcome, self.covariates, protects=protects)

    def bounded_as(self, protects: Protects) -> Protects:
        """Return whose bounds hold: a unit that can leave by its outcome is bounded as if its whole record changed."""
        return "record" if self.lacks else protects

    def leaves(self, protects: Protects) -> bool:
        """Return whether one unit's change may take it out of the comparison: by a private arm, or by its outcome."""
        return protects == "record" and (self.outside or self.lacks)


SETTINGS = (
    Setting(Treatment("treat"), _COVARIATES, arms=2, outside=True),
    Setting(Treatment("treat", undeclared=0), _COVARIATES[:2], arms=2, outside=False),
    Setting(
        Treatment("treat", arms=("none", "low", "high"), compare="high"),
        (*_COVARIATES, _HEIGHT),
        arms=3,
        outside=True,
    ),
    Setting(Treatment("treat", undeclared=0), _COVARIATES, arms=2, outside=False, lacks=True),
)


@dataclass(frozen=True)
class Case:
    """One query, and the parameters of its theorem.

    Attributes:
        query: The query.
        parameters: Numbers that its bound and weights depend on apart from the level of protection and the norm.
        moves: The levels of protection at which a unit may move between cells; None where the theorem does not ask.
        each_arm: Whether the parameters count the cells of one arm, and the answer has those of every declared arm.
        only: The levels of protection and norms at which bounds are compared; None for all. At others the computed
            bound is below the formula of the theorem, and rests on docs/proofs/sums.md alone.
    """

    query: Query
    parameters: Sequence[int] = ()
    moves: Sequence[Protects] | None = None
    each_arm: bool = False
    only: Sequence[tuple[Protects, Norm]] | None = None

    def numbers(self, setting: Setting, protects: Protects) -> list[int]:
        """Return the parameters of the theorem, in its order."""
        moves = [] if self.moves is None else [int(protects in self.moves)]
        return moves + [number * (setting.arms if self.each_arm else 1) for number in self.parameters]


_RECORDS: tuple[tuple[Protects, Norm], ...] = tuple((protects, norm) for protects in PROTECTS[:2] for norm in NORMS)
"""All but where only outcomes are protected: they move these answers less, or not at all."""

_SIDES: tuple[tuple[Protects, Norm], ...] = (
    ("record", "l1"),
    ("record_within_arm", "l1"),
    ("outcome", "l1"),
    ("outcome", "l2"),
)

_WARDS, _AGES, _SMOKERS = Cut("ward"), Cut("age", [42, 66]), Cut("smoker")
_AGE, _EXTREME, _OTHER = ["age"], [0.0, 20.0], [5.0, -20.0]

CASES: dict[str, list[Case]] = {
    "arm_totals": [Case(ArmTotals())],
    "arm_moments": [Case(ArmMoments())],
    "change_moments": [
        Case(ChangeMoments("age", "", -90, -8), only=_RECORDS),
        Case(ChangeMoments("age", "", -69.5, -28.5), only=_RECORDS),
    ],
    "cell_moments": [
        # Without strata, cells are the arms; within strata a unit moves also where arms are public.
        Case(CellMoments(), [1], moves=["record"], each_arm=True),
        Case(CellMoments([_WARDS]), [3], moves=["record", "record_within_arm"], each_arm=True),
        Case(CellMoments([_WARDS, _AGES]), [3 * 3], moves=["record", "record_within_arm"], each_arm=True),
    ],
    "subgroup_moments": [
        Case(SubgroupMoments(Cells([_WARDS])), [2 * 3], moves=["record", "record_within_arm"]),
        Case(SubgroupMoments(Cells([_WARDS, _AGES])), [2 * 3 * 3], moves=["record", "record_within_arm"]),
    ],
    "cluster_moments": [Case(ClusterMoments("ward", ["b"]), [3], moves=["record", "record_within_arm"])],
    "outcome_counts": [Case(OutcomeCounts([1.25, 2.5, 5.0]), [4]), Case(OutcomeCounts([5.0]), [2])],
    "arm_outcome_counts": [Case(ArmOutcomeCounts([1.25, 2.5, 5.0]), [2 * 4]), Case(ArmOutcomeCounts([5.0]), [2 * 2])],
    "missing_outcomes": [Case(MissingOutcomes(), [2 * 2])],
    "event_counts": [
        # In each of two arms: a count for each interval and kind of end, and those beyond the last time.
        Case(EventCounts([2.5, 5.0, 10.0]), [2 * (3 + 1)]),
        Case(EventCounts([2.5, 5.0], "ward"), [2 * (2 * 3 + 1)]),
    ],
    "stratum_counts": [
        Case(StratumCounts(Cells([_WARDS])), [2 * 3], only=_RECORDS),
        Case(StratumCounts(Cells([_WARDS, _AGES])), [2 * 3 * 3], only=_RECORDS),
    ],
    "covariate_counts": [Case(CovariateCounts(_AGE), [1, 32, 1024], only=_RECORDS)],
    "score_counts": [Case(ScoreCounts(_AGE, _EXTREME, [0.1, 0.9]), [2 * 3], only=_RECORDS)],
    "weighted_counts": [
        Case(WeightedCounts(_AGE, _EXTREME, "ATE", 0.1, [2.5, 5.0]), [2 + 1]),
        Case(WeightedCounts(_AGE, _OTHER, "ATT", 0.1, [2.5, 5.0]), [2 + 1]),
        Case(WeightedCounts(_AGE, _EXTREME, "ATE", 0.1, [2.5, 5.0, 10.0], "ward"), [3 * 3 + 1]),
    ],
    "received_moments": [],
    "cutoff_moments": [
        Case(CutoffMoments("age", 54, 18, treated_below=False), only=_SIDES),
        Case(CutoffMoments("age", 54, 72, treated_below=True), only=_SIDES),
    ],
    # Milder scores, overlap weights and outcomes from a centre have bounds below those for any weights.
    "weighted_arms": [
        Case(WeightedArms(_AGE, extreme, estimand, 0.1), only=[(protects, "l1") for protects in PROTECTS])
        for estimand in ("ATE", "ATT", "ATC")
        for extreme in (_EXTREME, _OTHER)
    ],
}
"""The cases of each query with a theorem that every setting allows."""

WITH_SMOKERS: dict[str, list[Case]] = {
    "received_moments": [Case(ReceivedMoments("smoker"))],
    "event_counts": [
        Case(EventCounts([2.5, 5.0], "smoker"), [2 * (2 * 2 + 1)]),
        Case(EventCounts([2.5, 5.0, 10.0], "smoker", [_WARDS]), [3 * 2 * (3 * 2 + 1)]),
    ],
    "stratum_counts": [Case(StratumCounts(Cells([_SMOKERS, _AGES])), [2 * 2 * 3], only=_RECORDS)],
    "weighted_counts": [Case(WeightedCounts(_AGE, _EXTREME, "ATE", 0.1, [2.5, 5.0, 10.0], "smoker"), [3 * 2 + 1])],
}
"""Further cases where there is a covariate with two values."""


WITH_HEIGHT: dict[str, list[Case]] = {
    "covariate_counts": [Case(CovariateCounts(["age", "height"]), [2, 32, 1024], only=_RECORDS)]
}
"""Further cases where there is a second number."""


_SIZES = ("size_1", "compared")
ORDERS: dict[str, tuple[str, ...]] = {
    "arm_totals": ("total_0", "total_1", *_SIZES),
    "arm_moments": ("total_0", "total_1", "deficit_0", "deficit_1", *_SIZES),
    "change_moments": ("total_0", "total_1", "deficit_0", "deficit_1", *_SIZES),
    "received_moments": (
        *(f"{part}_{arm}" for part in ("total", "deficit", "received", "product") for arm in (0, 1)),
        *_SIZES,
    ),
    "cutoff_moments": tuple(
        f"{part}_{arm}" for part in ("total", "product", "distance", "size", "spread", "deficit") for arm in (0, 1)
    ),
    "cell_moments": ("total", "deficit", "size"),
    "subgroup_moments": ("size", "total", "deficit"),
    "cluster_moments": ("size", "total", "deficit"),
    "weighted_counts": ("count", "beyond", "squares"),
    "weighted_arms": (
        "weighted_difference",
        "weighted_sum",
        "weight_difference",
        "weight_sum",
        "deficit",
        "weight_square_sum",
        "compared",
    ),
}
"""How the names of an answer's numbers begin, in the order of its theorem. An answer that is not listed has one weight,
or is in the order of its theorem."""

BY_CELL = frozenset({"cell_moments", "subgroup_moments", "cluster_moments"})
"""Where the theorem has all numbers of a cell, and then those of the next; what follows in a name is the cell."""


def in_order(name: str, coordinates: Sequence[Coordinate]) -> list[Coordinate]:
    """Return the numbers of an answer in the order of its theorem."""
    if name not in ORDERS:
        return [*coordinates]
    order = ORDERS[name]
    parts = {at.name: next(part for part in order if at.name.startswith(part)) for at in coordinates}
    cells = list(dict.fromkeys(name.removeprefix(part) for name, part in parts.items()))

    def place(at: Coordinate) -> tuple[int, int]:
        part = parts[at.name]
        return cells.index(at.name.removeprefix(part)) if name in BY_CELL else 0, order.index(part)

    return sorted(coordinates, key=place)


def cases(name: str, setting: Setting) -> list[Case]:
    """Return the cases of a query for a setting."""
    further = ((WITH_SMOKERS, _COVARIATES[2]), (WITH_HEIGHT, _HEIGHT))
    return CASES[name] + [
        case for more, column in further if column in setting.covariates for case in more.get(name, [])
    ]
