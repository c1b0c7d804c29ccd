"""How many outcomes lie below a threshold. Proof: docs/proofs/outcomes_below.md."""

from typing import TYPE_CHECKING

from dpcausal.guarantee import Guarantee
from dpcausal.queries import OutcomesBelow
from dpcausal.queries.profiles import ticks_of
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Engine

if TYPE_CHECKING:
    from dpcausal.columns import Real


def outcomes_below(query: OutcomesBelow, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The count, of all units: the outcome's range is that of the whole table."""
    outcome: Real = schema.outcome  # type: ignore[assignment]
    sums = engine.aggregate(
        {}, [f"CASE WHEN outcome < {ticks_of(outcome, query.threshold)} THEN 1 ELSE 0 END"], whole=True
    )
    return Answer({"below": int(sums[0])})
