"""Diagnoses of several sites: sums add up exactly, and one diagnosis is made of them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered, exact_answer
from dpcausal.diagnostics import Balance, Overlap
from dpcausal.federation.coordinator.aggregate import sum_releases
from dpcausal.queries import Cells, CovariateSums, Cut, Query, ScoreCounts, StratumCounts, WeightedCovariates
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Release
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault.table import open_table

SCHEMA = standard_schema()
WHOLE = synthetic_table(SCHEMA, 900)
PARTS = [WHOLE.slice(0, 500), WHOLE.slice(500, 400)]
QUERIES: list[Query] = [
    StratumCounts(Cells([Cut("ward"), Cut("age", [40, 65])])),
    ScoreCounts(["age"], [0.2, 1.5], [0.3, 0.5, 0.7]),
    CovariateSums(["ward", "age", "smoker"]),
    WeightedCovariates(["ward", "age"], ["age"], [0.2, 1.5], "ATE", 0.1),
]


def ticks(query: Query, table: pa.Table) -> dict[str, int]:
    return dict(exact_answer(query, SCHEMA, open_table(table, SCHEMA), dpc.Guarantee(epsilon=1.0)).ticks)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_answers_of_two_sites_add_up_to_that_of_one_table(query: Query) -> None:
    assert query.adds_up
    one, other = (ticks(query, part) for part in PARTS)
    assert {name: one[name] + other[name] for name in one} == ticks(query, WHOLE)


class Sites:
    """Two sites as one source, as a coordinator would be."""

    schema, n, arm_sizes, caveats, rule = SCHEMA, len(WHOLE), None, ("two sites",), "additive"

    def __init__(self) -> None:
        self.sites = {str(place): Unmetered(open_table(part, SCHEMA), SCHEMA) for place, part in enumerate(PARTS)}

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        releases = {name: site.release(query, guarantee) for name, site in self.sites.items()}
        return sum_releases(query, guarantee, calibrate(query, SCHEMA, guarantee), releases)


@pytest.mark.parametrize("diagnosis", [Overlap(by=["ward"]), Balance(covariates=["age", "smoker"])], ids=str)
def test_a_diagnosis_of_two_sites_has_the_noise_of_both(diagnosis: Any) -> None:
    one = Unmetered(open_table(WHOLE, SCHEMA), SCHEMA)
    together, alone = (diagnosis.estimate(source, epsilon=5.0) for source in (Sites(), one))
    assert (together.n, together.notes) == (900, ("two sites",))

    def bars(found: Any) -> float:
        if isinstance(diagnosis, Overlap):
            return float(found.bins[0].control.bar)
        return float(np.mean([line.before.bar for line in found.lines]))

    assert 1.2 < bars(together) / bars(alone) < 1.6  # the root of 2, but for what the numbers themselves do
