"""The search for a unit that moves an answer further than its noise was calibrated for."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import Claim, loss_between, worst_of_all
from dpcausal.audit.neighbours import worst_pairs
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ArmMoments
from dpcausal.schema.columns import Unit
from dpcausal.testing import standard_schema
from dpcausal.vault.table import open_table

_ROUNDING = 1e-9


def check_sensitivity(name: str, claims: Sequence[Claim], sizes: tuple[int, ...]) -> Finding:
    """Check the largest loss, as a share of the claim, over all tables of these sizes and all listed pairs.

    Exact: it cannot fail by chance.

    Where noise is in proportion to a private bound, its smoothness is a part of the loss.
    """
    most, where, tried = 0.0, "", 0
    for claim in claims:
        lost, pair, count = worst_of_all(claim, sizes)
        listed = [(loss_between(claim, each), each) for each in worst_pairs(claim.schema.protects)]
        tried += count + len(listed)
        for each, at in ((lost, pair), *listed):
            if each > most:
                most, where = each, at.name
    detail = f"{most:.4f} of the claim at most ({where}), over {tried:,} pairs"
    return Finding("sensitivity", name, most <= 1 + _ROUNDING, detail, {"loss": most, "pairs": tried})


_EVENTS: tuple[tuple[float | None, ...], ...] = (
    (0.0,),
    (10.0,),
    (10.0,) * 50,
    (-10.0,) * 50,
    (4.0, None, math.nan, 3.0),
    (math.inf, -math.inf, 1e308),
    (-1e308,) * 3,
    (None,),
)
"""The outcomes in one unit's records."""


def check_totals() -> Finding:
    """Check that a unit whose records are added up moves an answer no further than one record may.

    Between all ways to fill a unit's records, in both arms; the other units have several records too.
    """
    schema = replace(standard_schema(), unit=Unit("who", by="when", sum=["score"]))
    claim = Claim(ArmMoments(), schema, Guarantee(epsilon=1.0))
    rest = [(who, who % 2, score) for who in range(4) for score in (2.0, 5.0, -1.0)]
    units = [[(4, arm, score) for score in scores] for arm in (0, 1) for scores in _EVENTS]
    answers = [claim.answer(open_table(_records([*rest, *unit]), schema)) for unit in units]
    losses = [claim.loss(one, other) for one, other in itertools.combinations(answers, 2)]
    detail = f"{max(losses):.4f} of the claim at most, over {len(losses):,} pairs"
    numbers = {"loss": max(losses), "pairs": float(len(losses))}
    return Finding("sensitivity", "totals over a unit's records", max(losses) <= 1 + _ROUNDING, detail, numbers)


def _records(events: Sequence[tuple[int, int, float | None]]) -> pa.Table:
    size = len(events)
    return pa.table(
        {
            "who": [who for who, _, _ in events],
            "when": [*range(size)],
            "treat": [arm for _, arm, _ in events],
            "score": pa.array([score for _, _, score in events], pa.float64()),
            "ward": ["a"] * size,
            "age": [54.0] * size,
            "smoker": ["no"] * size,
        }
    )
