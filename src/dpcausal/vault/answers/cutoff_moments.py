"""Sums of the outcome and of the distance on both sides of a cutoff. Proof: docs/proofs/cutoff_moments.md."""

from dpcausal.queries import GRID, CutoffMoments
from dpcausal.queries.cutoff_moments import FINE
from dpcausal.vault.context import Answer, AnswerContext, answers

_SHIFT = 30
_COARSE = GRID // FINE

# Negative numbers are not shifted: engines may round them differently.
_OUTCOME = f"(((CAST(outcome AS BIGINT) + {GRID + _COARSE // 2}) >> {_COARSE.bit_length() - 1}) - {FINE})"
"""One row's outcome, rounded to ticks of which FINE make a half range."""


@answers(CutoffMoments)
def answer(context: AnswerContext[CutoffMoments]) -> Answer:
    """Return the sums of both sides, in one pass."""
    query = context.query
    cutoff, bandwidth = query.window(context.schema)
    beyond = f"(CAST(covariate_{query.place(context.schema)} AS BIGINT) - ({cutoff}))"
    times = (2 * FINE << _SHIFT) // bandwidth
    sums: dict[str, str] = {}
    for above in (False, True):
        steps = beyond if above else f"(0 - {beyond})"
        distance = f"((({steps} * {times}) >> {_SHIFT}) - {FINE})"
        inside = within(steps, 0 if above else 1, bandwidth)
        parts = {
            "total": _OUTCOME,
            "product": f"({distance} * {_OUTCOME})",
            "distance": distance,
            "size": "1",
            "spread": f"({FINE**2} - {distance} * {distance})",
            "deficit": f"({FINE**2} - {_OUTCOME} * {_OUTCOME})",
        }
        arm = int(above != query.treated_below)
        sums |= {f"{name}_{arm}": f"CASE WHEN {inside} THEN {part} ELSE 0 END" for name, part in parts.items()}
    arms = context.engine.aggregate({"treatment": 2}, list(sums.values()))
    return Answer({name: int(arms[0, place]) + int(arms[1, place]) for place, name in enumerate(sums)})


def within(steps: str, least: int, most: int) -> str:
    """Return as SQL whether a row is in the window of a side."""
    return f"{steps} BETWEEN {least} AND {most}"
