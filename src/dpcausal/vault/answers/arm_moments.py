"""Arm totals and arm second moments. Proof: docs/proofs/arm_moments.md."""

from dpcausal.queries import GRID, ArmMoments, ArmTotals
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Ticks
from dpcausal.vault.parsing import literal

SQUARE = "(CAST(outcome AS BIGINT) * outcome)"
"""One row's squared outcome; coerced columns are too narrow to hold it."""


def deficit_of(line: str) -> Ticks:
    """Return one row's h² - z², in ticks of h² / GRID, rounded down, where z is in ticks of h / GRID."""
    square = f"CAST({line} AS DOUBLE) * CAST({line} AS DOUBLE)"
    return Ticks(
        f"(({GRID**2} - (CAST({line} AS BIGINT) * {line})) >> {GRID.bit_length() - 1})",
        f"FLOOR(({literal(GRID**2)} - {square}) * {literal(1 / GRID)})",
    )


DEFICIT = deficit_of("outcome")


@answers(ArmTotals, ArmMoments)
def answer(context: AnswerContext[ArmTotals | ArmMoments]) -> Answer:
    """Return totals and sizes of the two arms, and deficits where they are asked for, in one pass."""
    sums: dict[str, str] = {"total": Ticks("outcome"), "size": "1"}
    sums |= {"deficit": DEFICIT} if isinstance(context.query, ArmMoments) else {}
    arms = context.engine.aggregate({"treatment": 2}, list(sums.values()))
    ticks = {f"{name}_{arm}": int(arms[arm, place]) for arm in (0, 1) for place, name in enumerate(sums)}
    return Answer(ticks | {"compared": ticks["size_0"] + ticks["size_1"]})
