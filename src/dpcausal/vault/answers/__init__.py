"""How rows become the bounded integers that a query asks for, one file for each kind of query.

Each answer names its numbers as the query's coordinates do; the proof that one unit moves them no further than the
query says is on the page of the same name in docs/proofs.
"""

from collections.abc import Callable
from typing import Any

from dpcausal.queries import ArmMoments, ArmTotals, Query, StratumContrasts
from dpcausal.schema import Schema
from dpcausal.vault.answers.arm_moments import arm_moments
from dpcausal.vault.answers.stratum_contrasts import stratum_contrasts
from dpcausal.vault.engines import Engine

ANSWERS: dict[type[Query], Callable[[Any, Schema, Engine], dict[str, int]]] = {
    ArmTotals: arm_moments,
    ArmMoments: arm_moments,
    StratumContrasts: stratum_contrasts,
}
