"""No unit moves counts of events beyond their bound; and a bound that is too small is caught."""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from math import inf, nan

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import Cut, EventCounts, from_dict, to_dict
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.table import open_table

DATABASE = duckdb.connect()
KINDS = ["censored", "relapse", "death"]
QUERY = EventCounts([2.0, 5.0, 10.0], "end")
STRATA = EventCounts([2.0, 5.0], "end", [Cut("site"), Cut("age", [50])])
TIMES = (-inf, -1.0, 0.0, 1.99, 2.0, 4.9, 5.0, 9.99, 10.0, 11.0, inf, nan, None)
Unit = tuple[int | None, float | None, str | None, str | None, float | None]


def schema_for(protects: Protects = "record") -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t"),
        outcome=dpc.Real("time", 0, 10, missing=5),
        covariates=[
            dpc.Category("end", KINDS, missing="censored"),
            dpc.Category("site", ["a", "b"]),
            dpc.Real("age", 20, 80),
        ],
        protects=protects,
    )


def counts(units: Sequence[Unit], query: EventCounts = QUERY) -> list[int]:
    """What the query's own answer makes of a table, without noise."""
    kinds = {"t": pa.int64(), "time": pa.float64(), "end": pa.string(), "site": pa.string(), "age": pa.float64()}
    columns = zip(*units, strict=True)
    table = pa.table({name: pa.array(cells, kind) for (name, kind), cells in zip(kinds.items(), columns, strict=True)})
    schema = schema_for()
    engine = open_table(DATABASE.from_arrow(table), schema)
    ticks = exact_answer(query, schema, engine, dpc.Guarantee(epsilon=1)).ticks
    return [ticks[at.name] for at in query.sensitivity(schema, "record", "l1").coordinates]


def moved(one: Sequence[int], other: Sequence[int], norm: str) -> float:
    changes = np.subtract(one, other)
    return float(np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes))


RECORDS: list[Unit] = [
    (arm, time, end, site, age)
    for arm, time, end, site, age in itertools.product(
        (0, 1, None), (0.0, 2.0, 7.0, 10.0, None), ("censored", "death", None), ("a", "b"), (30.0, 60.0)
    )
]


@pytest.mark.parametrize("query", [QUERY, STRATA, EventCounts([5.0])], ids=str)
def test_no_neighbour_moves_the_counts_beyond_the_bound(query: EventCounts) -> None:
    """All pairs of records, from one answer each: a table of one unit shows where it counts."""
    rest: list[Unit] = [(0, 1.0, "death", "a", 30.0), (1, 9.0, "relapse", "b", 70.0)]
    answers = {tuple(counts([*rest, each], query)) for each in RECORDS[:: 3 if query is STRATA else 7]}
    for norm in ("l1", "l2"):
        bound = float(query.sensitivity(schema_for(), "record", norm).bound)
        worst = max(moved(one, other, norm) for one, other in itertools.combinations(answers, 2))
        assert worst <= bound
        assert worst == pytest.approx(bound, rel=1e-9)  # so the bound is attained


def test_every_compared_unit_is_in_one_count() -> None:
    for time in TIMES:
        assert sorted(counts([(1, time, "death", "a", 30.0)]))[-2:] == [0, 1]
        assert sum(counts([(None, time, "death", "a", 30.0)])) == 0


def test_counts_are_where_they_belong() -> None:
    names = [at.name for at in QUERY.sensitivity(schema_for(), "record", "l1").coordinates]
    for time, end, name in (
        (0.0, "relapse", "count_1_0_1"),
        (2.0, "censored", "count_1_1_0"),
        (4.99, None, "count_1_1_0"),
        (9.9, "death", "count_1_2_2"),
        (10.0, "death", "beyond_1"),
        (99.0, "censored", "beyond_1"),
        (None, "relapse", "count_1_2_1"),
    ):
        assert names[counts([(1, time, end, "a", 30.0)]).index(1)] == name
    names = [at.name for at in STRATA.sensitivity(schema_for(), "record", "l1").coordinates]
    found = names[counts([(0, 3.0, "death", "b", 30.0)], STRATA).index(1)]
    assert found == "count_0_1_2 of site=b, age < 50"


@pytest.mark.parametrize(("protects", "norm"), list(itertools.product(PROTECTS, ("l1", "l2"))))
def test_bound_depends_on_neither_times_nor_strata(protects: Protects, norm: str) -> None:
    for query in (EventCounts([5.0]), QUERY, STRATA, EventCounts(np.linspace(0.1, 10, 60).tolist(), "end")):
        found = query.sensitivity(schema_for(protects), protects, norm)  # type: ignore[arg-type]
        assert 2 <= found.bound ** (1 if norm == "l1" else 2) < 2 + Fraction(1, 10**9)
        assert {(at.weight, at.tick) for at in found.coordinates} == {(Fraction(1), 1.0)}


def test_bound_for_units_that_are_added_is_caught() -> None:
    """The mutant: a bound of 1, which holds where a unit is added or removed and not replaced."""
    one, other = (counts([(0, time, "death", "a", 30.0)]) for time in (1.0, 6.0))
    assert moved(one, other, "l1") > 1


def test_numbers_at_risk_in_place_of_counts_are_caught() -> None:
    """The mutant: at each time the number of units still at risk, as if its bound were that of counts."""

    def at_risk(time: float) -> list[int]:
        found = counts([(0, time, "death", "a", 30.0)])
        return [sum(found[place:]) for place in range(len(found))]

    assert moved(at_risk(0.0), at_risk(10.0), "l1") > 2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, None]),
            st.none() | st.floats(),
            st.sampled_from([*KINDS, "?", None]),
            st.sampled_from(["a", "b", None]),
            st.none() | st.floats(),
        ),
        min_size=2,
        max_size=6,
    ),
    st.lists(st.floats(0.001, 10), min_size=1, max_size=5, unique=True),
    st.booleans(),
)
def test_bound_holds_for_records_of_any_kind(units: list[Unit], times: list[float], strata: bool) -> None:
    query = EventCounts(sorted(times), "end", [Cut("site"), Cut("age", [50])] if strata else ())
    new, *rest = units
    one, other = counts(rest, query), counts([new, *rest[1:]], query)
    assert moved(one, other, "l1") <= 2
    assert sum(one) == sum(unit[0] is not None for unit in rest)


@pytest.mark.parametrize(
    "times", [[], [1.0, 1.0], [2.0, 1.0], [nan], ["a"], 5, [float(at) for at in range(99)]], ids=str
)
def test_times_that_do_not_rise_are_refused(times: list[float]) -> None:
    with pytest.raises(QueryError, match="rising times"):
        EventCounts(times)


@pytest.mark.parametrize("times", [[0.0, 5.0], [5.0, 10.1], [-1.0]])
def test_times_beyond_the_outcome_bounds_are_refused(times: list[float]) -> None:
    with pytest.raises(QueryError, match="above 0 and up to 10"):
        EventCounts(times).sensitivity(schema_for(), "record", "l1")


def test_unsuitable_columns_are_refused() -> None:
    with pytest.raises(QueryError, match="covariate with listed values"):
        EventCounts([5.0], "age").sensitivity(schema_for(), "record", "l1")
    with pytest.raises(QueryError, match="covariate with listed values"):
        EventCounts([5.0], "nothing").sensitivity(schema_for(), "record", "l1")
    with pytest.raises(QueryError, match="other covariates for strata"):
        EventCounts([5.0], "end", [Cut("end")])
    fine = EventCounts(np.linspace(0.1, 10, 20).tolist(), "end", [Cut("age", np.linspace(21, 79, 500).tolist())])
    with pytest.raises(QueryError, match="at most 20,000 counts"):
        fine.sensitivity(schema_for(), "record", "l1")
    binary = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Binary("y"))
    with pytest.raises(QueryError, match="an outcome that is a time"):
        EventCounts([0.5]).sensitivity(binary, "record", "l1")
    assert EventCounts.examples(binary) == ()


def test_query_survives_its_plain_values() -> None:
    for query in (QUERY, STRATA, EventCounts([5])):
        assert from_dict(to_dict(query)) == query


def test_expected_counts_have_the_expected_mean() -> None:
    table = dpc.Rehearsal(schema_for(), n=1_000, outcome_mean=6.0)
    times = np.linspace(0.01, 10, 60)
    release = table.release(EventCounts(times.tolist(), "end"), dpc.Guarantee(epsilon=1))
    expected = dict(zip(release.names, release.values, strict=True))
    assert sum(expected.values()) == pytest.approx(1_000, rel=0.02)
    beyond = expected["beyond_0"] + expected["beyond_1"]
    reach = 1_000 - np.cumsum([sum(v for k, v in expected.items() if f"_{at}_" in k[6:]) for at in range(60)])
    assert reach[-1] == pytest.approx(beyond, rel=0.02)
    area = np.sum((np.r_[1_000, reach[:-1]] + reach) / 2 * np.diff(np.r_[0, times]))
    assert area / 1_000 == pytest.approx(6.0, rel=0.02)
