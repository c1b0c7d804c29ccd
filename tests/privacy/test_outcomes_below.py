"""No unit moves a count of outcomes by more than one; and one that counts more than once is caught."""

import itertools
from dataclasses import replace
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, OutcomesBelow
from dpcausal.queries.profiles import ticks_of
from dpcausal.schema import PROTECTS
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10))
ONE = dpc.Guarantee(epsilon=1)
DATABASE = duckdb.connect()
nan, inf = float("nan"), float("inf")
OUTCOMES = [0.0, 4.9, 5.0, 5.1, 10.0, -1e308, 1e308, inf, -inf, nan, None]
THRESHOLDS = [0.0, 2.5, 5.0, 7.5, 10.0]


def below(outcomes: list[float | None], threshold: float) -> int:
    """The query's own answer, without noise."""
    table = pa.table({"t": [0] * len(outcomes), "y": pa.array(outcomes, pa.float64())})
    engine = open_table(DATABASE.from_arrow(table), SCHEMA)
    return exact_answer(OutcomesBelow(threshold), SCHEMA, engine, ONE).ticks["units"]


def test_unit_counts_once_or_not_at_all() -> None:
    rest: list[float | None] = [0.0, 10.0, None]
    for threshold in THRESHOLDS:
        counts = [below([*rest, outcome], threshold) for outcome in OUTCOMES]
        alone = [below([outcome], threshold) for outcome in OUTCOMES]
        assert set(alone) <= {0, 1}
        assert [count - below(rest, threshold) for count in counts] == alone
        assert max(counts) - min(counts) == (threshold > 0)  # so the bound is attained
    assert [below([outcome], 5.0) for outcome in OUTCOMES] == [1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0]


def test_unit_without_an_outcome_is_on_neither_side() -> None:
    for schema, units in ((SCHEMA, 9), (replace(SCHEMA, outcome=dpc.Real("y", 0, 10, missing=5)), 11)):
        table = pa.table({"t": [0] * len(OUTCOMES), "y": pa.array(OUTCOMES, pa.float64())})
        engine = open_table(DATABASE.from_arrow(table), schema)
        for threshold in THRESHOLDS:
            sides = (OutcomesBelow(threshold, at_least=at_least) for at_least in (False, True))
            assert sum(exact_answer(side, schema, engine, ONE).ticks["units"] for side in sides) == units


@pytest.mark.parametrize(("protects", "norm"), list(itertools.product(PROTECTS, ("l1", "l2"))))
def test_bound_is_one(protects: str, norm: str) -> None:
    found = OutcomesBelow(5.0).sensitivity(SCHEMA, protects, norm)  # type: ignore[arg-type]
    assert found.bound == 1
    assert [(at.weight, at.tick) for at in found.coordinates] == [(Fraction(1), 1.0)]


def test_too_small_a_bound_is_caught() -> None:
    """The mutant: a bound of nine tenths."""
    moved = abs(below([1.0, 9.0], 5.0) - below([9.0, 9.0], 5.0))
    assert moved > float(OutcomesBelow(5.0).sensitivity(SCHEMA, "record", "l1").bound * Fraction(9, 10))


def test_unit_that_counts_twice_is_caught() -> None:
    """The mutant: records of a unit counted one by one, where the schema does not say that they belong together."""
    columns = {"who": [1, 1, 2], "when": [1, 2, 1], "t": [0, 0, 1]}
    tables = [pa.table(columns | {"y": [outcome, outcome, 9.0]}) for outcome in (1.0, 9.0)]
    each = dpc.Schema(treatment=SCHEMA.treatment, outcome=SCHEMA.outcome, unit=dpc.Unit("who", by="when"))
    moved = []
    for schema in (each, SCHEMA):
        counts = [exact_answer(OutcomesBelow(5.0), schema, open_table(at, schema), ONE).ticks for at in tables]
        moved.append(counts[0]["units"] - counts[1]["units"])
    assert moved == [1, 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.floats(), min_size=1, max_size=6), st.none() | st.floats(), st.floats(0, 10))
def test_bound_holds_for_outcomes_of_any_kind(
    outcomes: list[float | None], new: float | None, threshold: float
) -> None:
    assert abs(below(outcomes, threshold) - below([new, *outcomes[1:]], threshold)) <= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.floats(0, 10))
def test_count_is_that_of_outcomes_on_the_grid(outcomes: list[float], threshold: float) -> None:
    real = dpc.Real("y", 0, 10)
    ticks = [ticks_of(real, outcome) for outcome in outcomes]
    assert below([*outcomes], threshold) == sum(step < ticks_of(real, threshold) for step in ticks)
    sure = sum(outcome < threshold - 10 / GRID for outcome in outcomes)
    assert sure <= below([*outcomes], threshold) <= sum(outcome < threshold + 10 / GRID for outcome in outcomes)


@pytest.mark.parametrize("threshold", [-0.1, 10.1])
def test_threshold_beyond_the_outcome_bounds_is_refused(threshold: float) -> None:
    with pytest.raises(QueryError, match="from 0 to 10"):
        OutcomesBelow(threshold).sensitivity(SCHEMA, "record", "l1")


def test_outcome_of_two_values_is_refused() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Binary("y"))
    with pytest.raises(QueryError, match="an outcome that is a number"):
        OutcomesBelow(0.5).sensitivity(schema, "record", "l1")
