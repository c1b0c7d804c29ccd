"""No unit moves the counts of all bins beyond their joint bound; and edges that are the table's own are caught."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, ArmOutcomeCounts, OutcomeCounts
from dpcausal.queries.profiles import ticks_of
from dpcausal.schema import PROTECTS
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 10, missing=5))
ONE = dpc.Guarantee(epsilon=1)
DATABASE = duckdb.connect()
nan, inf = float("nan"), float("inf")
OUTCOMES = [0.0, 2.4, 2.5, 4.9, 5.0, 5.1, 10.0, -1e308, 1e308, inf, -inf, nan, None]
QUERY = OutcomeCounts([2.5, 5.0, 7.5])

Unit = tuple[int | None, float | None]


def counts(units: Sequence[Unit], query: OutcomeCounts | ArmOutcomeCounts = QUERY) -> list[int]:
    """The query's own answer, without noise."""
    arms, outcomes = zip(*units, strict=True)
    table = pa.table({"t": pa.array(arms, pa.int64()), "y": pa.array(outcomes, pa.float64())})
    engine = open_table(DATABASE.from_arrow(table), SCHEMA)
    ticks = exact_answer(query, SCHEMA, engine, ONE).ticks
    return [ticks[name] for name in query.bins]


def moved(one: Sequence[int], other: Sequence[int], norm: str) -> float:
    changes = np.subtract(one, other)
    return float(np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes))


def test_no_neighbour_moves_the_counts_beyond_the_bound() -> None:
    rest: list[Unit] = [(0, 0.0), (1, 10.0), (1, None)]
    answers = [counts([*rest, each]) for each in itertools.product((0, 1, None), OUTCOMES)]
    for norm in ("l1", "l2"):
        bound = float(QUERY.sensitivity(SCHEMA, "record", norm).bound)
        worst = max(moved(one, other, norm) for one, other in itertools.combinations(answers, 2))
        assert worst <= bound
        assert worst == pytest.approx(bound, rel=1e-9)  # so the bound is attained


def test_unit_outside_the_comparison_counts_nowhere() -> None:
    assert counts([(None, 1.0), (0, 1.0), (7, 9.0), (1, 9.0)]) == [1, 0, 0, 1]


def test_every_compared_unit_is_in_one_bin() -> None:
    for outcome in OUTCOMES:
        assert sorted(counts([(1, outcome)])) == [0, 0, 0, 1]
    assert [counts([(0, each)]).index(1) for each in OUTCOMES] == [0, 0, 1, 1, 2, 2, 3, 0, 3, 3, 0, 2, 2]


@pytest.mark.parametrize(("protects", "norm"), list(itertools.product(PROTECTS, ("l1", "l2"))))
def test_bound_does_not_depend_on_the_number_of_bins(protects: str, norm: str) -> None:
    for query in (OutcomeCounts([5.0]), QUERY, OutcomeCounts(np.linspace(0.1, 9.9, 150).tolist())):
        found = query.sensitivity(SCHEMA, protects, norm)  # type: ignore[arg-type]
        assert 2 <= found.bound ** (1 if norm == "l1" else 2) < 2 + Fraction(1, 10**9)
        assert {(at.weight, at.tick) for at in found.coordinates} == {(Fraction(1), 1.0)}


def test_bound_for_units_that_are_added_is_caught() -> None:
    """The mutant: a bound of 1, which holds where a unit is added or removed and not replaced."""
    assert moved(counts([(0, 1.0), (1, 9.0)]), counts([(0, 6.0), (1, 9.0)]), "l1") > 1


def test_edges_that_are_the_tables_own_are_caught() -> None:
    """The mutant: bins with as many units in each. One unit moves their edges for everybody."""

    def own(outcomes: list[float]) -> list[int]:
        edges = np.quantile(outcomes, [0.25, 0.5, 0.75])
        return counts([(0, each) for each in (1.0, 2.0, 3.0, 4.0, 6.0)], OutcomeCounts(edges.tolist()))

    assert (
        moved(own([1.0, 2.0, 3.0, 4.0, 6.0]), own([1.0, 2.0, 3.0, 4.0, 1.5]), "l1") > 0
    )  # although no unit moved here


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, None]), st.none() | st.floats()), min_size=1, max_size=6),
    st.tuples(st.sampled_from([0, 1, None]), st.none() | st.floats()),
    st.lists(st.floats(0.001, 9.999), min_size=1, max_size=5, unique=True),
)
def test_bound_holds_for_outcomes_of_any_kind(units: list[Unit], new: Unit, edges: list[float]) -> None:
    query = OutcomeCounts(sorted(edges))
    one, other = counts(units, query), counts([new, *units[1:]], query)
    assert moved(one, other, "l1") <= 2
    assert sum(one) == sum(arm is not None for arm, _ in units)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.floats(0.001, 9.999))
def test_counts_are_those_of_outcomes_on_the_grid(outcomes: list[float], edge: float) -> None:
    real = dpc.Real("y", 0, 10)
    below = sum(ticks_of(real, outcome) < ticks_of(real, edge) for outcome in outcomes)
    found = counts([(1, outcome) for outcome in outcomes], OutcomeCounts([edge]))
    assert found == [below, len(outcomes) - below]
    assert abs(below - sum(outcome < edge for outcome in outcomes)) <= sum(
        abs(outcome - edge) <= 10 / GRID for outcome in outcomes
    )


@pytest.mark.parametrize(
    "edges", [[], [1.0, 1.0], [2.0, 1.0], [nan], ["a"], [True, "b"], [float(at) for at in range(999)]]
)
def test_edges_that_do_not_rise_are_refused(edges: list[float]) -> None:
    with pytest.raises(QueryError, match="rising edges"):
        OutcomeCounts(edges)


@pytest.mark.parametrize("edges", [[0.0, 5.0], [5.0, 10.0], [-1.0], [11.0]])
def test_edges_beyond_the_outcome_bounds_are_refused(edges: list[float]) -> None:
    with pytest.raises(QueryError, match="between 0 and 10"):
        OutcomeCounts(edges).sensitivity(SCHEMA, "record", "l1")


def test_outcome_of_two_values_is_refused() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Binary("y"))
    with pytest.raises(QueryError, match="an outcome that is a number"):
        OutcomeCounts([0.5]).sensitivity(schema, "record", "l1")
    assert OutcomeCounts.examples(schema) == ()


def test_expected_counts_are_skewed_where_one_bound_is_near() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("cost", 0, 200_000, missing=100000))
    query = OutcomeCounts([2_000, 5_000, 40_000])
    table = dpc.Rehearsal(schema, n=10_000, outcome_mean=5_000, outcome_sd=6_500)
    found = list(table.release(query, ONE).values)
    random = np.random.default_rng(1)
    variance = np.log1p(1.69)
    drawn = np.exp(np.log(5_000) - variance / 2 + variance**0.5 * random.normal(size=200_000))
    assert found == pytest.approx(np.histogram(drawn, [0, *query.edges, 1e9])[0] / 20, rel=0.12)
    mirrored = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("cost", -200_000, 0, missing=-100000))
    table = dpc.Rehearsal(mirrored, n=10_000, outcome_mean=-5_000, outcome_sd=6_500)
    other = table.release(OutcomeCounts([-edge for edge in query.edges[::-1]]), ONE)
    assert other.values[::-1] == pytest.approx(found, abs=1)


BY_ARM = ArmOutcomeCounts(QUERY.edges)


def test_no_neighbour_moves_the_counts_of_arms_beyond_the_bound() -> None:
    rest: list[Unit] = [(0, 0.0), (1, 10.0), (1, None)]
    units = list(itertools.product((0, 1, None), OUTCOMES))
    answers = dict(zip(units, (counts([*rest, each], BY_ARM) for each in units), strict=True))
    kept = {"record": lambda _: True, "record_within_arm": lambda pair: pair[0][0] == pair[1][0]}
    for (protects, allowed), norm in itertools.product(kept.items(), ("l1", "l2")):
        bound = float(BY_ARM.sensitivity(SCHEMA, protects, norm).bound)
        pairs = filter(allowed, itertools.combinations(units, 2))
        worst = max(moved(answers[one], answers[other], norm) for one, other in pairs)
        assert worst <= bound
        assert worst == pytest.approx(bound, rel=1e-9)  # so the bound is attained


def test_every_compared_unit_is_in_one_bin_of_its_arm() -> None:
    units: list[Unit] = [(0, 1.0), (1, 1.0), (1, 9.0), (None, 9.0), (0, None)]
    assert counts(units, BY_ARM) == [1, 0, 1, 0, 1, 0, 0, 1]


def test_counts_of_arms_add_up_to_the_counts_of_all() -> None:
    units: list[Unit] = list(itertools.product((0, 1, None), OUTCOMES))
    by_arm = np.array(counts(units, BY_ARM)).reshape(2, -1)
    assert by_arm.sum(axis=0).tolist() == counts(units)


def test_cumulative_counts_of_arms_are_caught() -> None:
    """The mutant: numbers below each edge, of which one outcome moves all."""
    one, other = (np.cumsum(counts([(0, each)], BY_ARM)[:4]) for each in (1.0, 9.0))
    assert moved(one.tolist(), other.tolist(), "l1") > float(BY_ARM.sensitivity(SCHEMA, "record", "l1").bound)


def test_expected_counts_of_arms_follow_their_sizes() -> None:
    table = dpc.Rehearsal(SCHEMA, n=1_000, treated_share=0.3)
    found = np.array(table.release(BY_ARM, ONE).values).reshape(2, -1)
    assert found.sum(axis=1) == pytest.approx([700, 300], abs=3)
    assert found[1] / 3 == pytest.approx(found[0] / 7, abs=1)
