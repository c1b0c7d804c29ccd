"""Arm totals and arm second moments. Proof: docs/proofs/arm_moments.md."""

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, ArmMoments, ArmTotals
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Engine

DEFICIT = f"CAST(FLOOR(({GRID**2} - outcome * outcome) / {GRID}) AS BIGINT)"
"""One row's h² - z², in steps of h² / GRID; division by a power of two is exact."""


def arm_moments(_: ArmTotals | ArmMoments, __: Schema, engine: Engine, ___: Guarantee) -> Answer:
    """Totals, deficits and sizes of the two arms, in one pass; a query takes the ones it is about."""
    arms = engine.aggregate({"treatment": 2}, ["outcome", DEFICIT, "1"])
    names = ("total", "deficit", "size")
    return Answer({f"{name}_{arm}": int(arms[arm, place]) for arm in (0, 1) for place, name in enumerate(names)})
