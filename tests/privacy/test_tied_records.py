"""Where records of a unit tie for the one that counts, neither outcome nor covariate decides on the unit's arm."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import ArmRegressionMoments, CellMoments, MetricMoments, Query
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from dpcausal.vault.table import open_table

DATABASE = connect(threads=1)


def test_tie_between_records_of_a_unit_does_not_let_an_outcome_decide_on_an_arm() -> None:
    def sizes(first: float, second: float) -> list[int]:
        treatment = dpc.Treatment("t", arms=("a", "b", "c", "d"), compare="b")
        schema = dpc.Schema(treatment, dpc.Real("y", 0, 1), unit=dpc.Unit("who", by="day"), protects="outcome")
        table = pa.table({"t": ["c", "d", "a"], "y": [first, second, 0.0], "who": [1, 1, 2], "day": [1, 1, 1]})
        engine = open_table(DATABASE.from_arrow(table), schema)
        found = exact_answer(CellMoments(), schema, engine, dpc.Guarantee(epsilon=1, protects="outcome")).ticks
        return [found[f"size_{arm}"] for arm in range(4)]

    assert sizes(0.0, 1.0) == sizes(1.0, 0.0) == [1, 0, 1, 0]


TIED: list[Query] = [CellMoments(), MetricMoments([["y"]], [1.0]), ArmRegressionMoments(["x"])]


def moved_by_tied_covariates(query: Query) -> float:
    """Return how far the answer moves, as a share of its bound, if covariates of two tied records change places."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", arms=("a", "b", "c", "d"), compare="b"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("x", 0, 1)],
        unit=dpc.Unit("who", by="day"),
        protects="record_within_arm",
    )

    def answer(first: float, second: float) -> Mapping[str, int]:
        columns = {"t": ["c", "d", "a"], "y": [1.0, 1.0, 0.0], "x": [first, second, 0.5]}
        table = pa.table(columns | {"who": [1, 1, 2], "day": [1, 1, 1]})
        engine = open_table(DATABASE.from_arrow(table), schema)
        return exact_answer(query, schema, engine, dpc.Guarantee(epsilon=1, protects="record_within_arm")).ticks

    one, other = answer(0.2, 0.8), answer(0.8, 0.2)
    sensitivity = query.sensitivity(schema, "record_within_arm", "l1")
    moves = [abs(one[at.name] - other[at.name]) / at.weight for at in sensitivity.coordinates if at.weight]
    return float(sum(moves) / sensitivity.bound)


@pytest.mark.parametrize("query", TIED)
def test_tie_between_records_of_a_unit_does_not_let_a_covariate_decide_on_an_arm(query: Query) -> None:
    assert moved_by_tied_covariates(query) <= 1


@pytest.mark.parametrize("query", TIED)
def test_tie_that_a_covariate_decides_is_caught(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    coerced, ties = (
        DuckDBEngine._coerced,
        ("treatment, arm, covariate_0, outcome", "treatment, covariate_0, arm, outcome"),
    )
    monkeypatch.setattr(DuckDBEngine, "_coerced", lambda *given, **how: coerced(*given, **how).replace(*ties))
    assert moved_by_tied_covariates(query) > 2
