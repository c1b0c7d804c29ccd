"""No unit moves the counts of all bins beyond their joint bound; and bins that overlap are caught."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.arrays import Int64s
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, QUERIES, CovariateCounts, MissingOutcomes, question
from dpcausal.queries.covariate_counts import COARSE, EACH, FINE
from dpcausal.queries.features import with_indicators
from dpcausal.queries.profiles import ticks_of
from dpcausal.schema import PROTECTS
from dpcausal.testing import standard_schema
from dpcausal.vault.table import open_table

AGE, DOSE = dpc.Real("age", 0, 64), dpc.Real("dose", -1, 1, missing=0.5, missing_codes=[-9])
SCHEMA = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10), [dpc.Binary("smoker"), AGE, DOSE])
QUERY, ONE = CovariateCounts(["age", "dose"]), dpc.Guarantee(epsilon=1)
DATABASE = duckdb.connect()
nan, inf = float("nan"), float("inf")
VALUES = [None, nan, -inf, -9.0, -1.0, 0.0, 0.03, 0.0625, 1.9, 2.0, 33.0, 64.0, 1e308]

Unit = tuple[float | None, float | None]


def counts(units: Sequence[Unit], query: CovariateCounts = QUERY, schema: dpc.Schema = SCHEMA) -> Int64s:
    """Return the query's own answer, without noise: a line for each covariate."""
    ages, doses = zip(*units, strict=True)
    size = len(units)
    arms = pa.array([None, 0, 1, 7][:size] + [0] * (size - 4), pa.int64())
    table = pa.table(
        {
            "t": arms,
            "y": pa.array([None, *[5.0] * (size - 1)], pa.float64()),
            "smoker": [0] * size,
            "age": pa.array(ages, pa.float64()),
            "dose": pa.array(doses, pa.float64()),
        }
    )
    ticks = exact_answer(query, schema, open_table(DATABASE.from_arrow(table), schema), ONE).ticks
    return np.array([ticks[name] for name in query.own_names]).reshape(-1, EACH)


def moved(one: Int64s, other: Int64s, norm: str) -> float:
    changes = (one - other).ravel()
    return float(np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes))


def largest_share(query: CovariateCounts = QUERY) -> dict[str, float]:
    """Return the largest move over all pairs of neighbours, as a share of the bound."""
    rest: list[Unit] = [(0.0, 0.0), (64.0, None), (None, -1.0)]
    answers = [counts([*rest, each], query) for each in itertools.product(VALUES[::2], VALUES[::3])]
    pairs = list(itertools.combinations(answers, 2))
    found = {}
    for norm in ("l1", "l2"):
        bounds = {float(query.sensitivity(SCHEMA, protects, norm).bound) for protects in PROTECTS}
        assert len(bounds) == 1
        found[norm] = max(moved(one, other, norm) for one, other in pairs) / bounds.pop()
    return found


def test_no_neighbour_moves_the_counts_beyond_the_bound() -> None:
    for query in (QUERY, CovariateCounts(["dose"])):
        for share in largest_share(query).values():
            assert share <= 1
            assert share == pytest.approx(1, rel=1e-9)  # so the bound is attained


def test_bins_that_overlap_are_caught() -> None:
    """The mutant: coarse bins that hold their neighbours' units too."""

    def overlapping(units: list[Unit]) -> Int64s:
        right = counts(units, CovariateCounts(["age"]))
        right[:, 1:COARSE] += right[:, : COARSE - 1]
        return right

    assert moved(overlapping([(1.0, 0.0)]), overlapping([(33.0, 0.0)]), "l1") > 4


def test_bound_for_one_level_is_caught() -> None:
    """The mutant: a bound of 2, which holds for the counts of one level."""
    assert moved(counts([(1.0, 0.0)]), counts([(33.0, 0.0)]), "l1") > 2


def test_bins_of_the_tables_own_range_are_caught() -> None:
    """The mutant: bins between the least and the greatest value. One unit moves everybody's bin."""

    def own(ages: list[float]) -> Int64s:
        schema = replace(SCHEMA, covariates=[SCHEMA.covariates[0], dpc.Real("age", min(ages), max(ages)), DOSE])
        return counts([(age, 0.0) for age in ages], CovariateCounts(["age"]), schema)

    ages = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert moved(own([*ages, 6.0]), own([*ages, 60.0]), "l1") > 4


def test_every_unit_with_a_value_is_in_one_bin_of_each_level_whatever_its_arm_or_outcome() -> None:
    units = [(value, value) for value in VALUES]
    found = counts(units)
    for line, missing in zip(found, (2, 3), strict=True):  # of -9, the code of a missing dose, and NaN and none of both
        coarse, fine = line[:COARSE], line[COARSE:-1]
        assert line[-1] == missing
        assert coarse.sum() == fine.sum() == len(VALUES) - missing
        assert fine.reshape(COARSE, -1).sum(axis=1).tolist() == coarse.tolist()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.floats(), min_size=1, max_size=6))
def test_a_bin_is_where_the_value_is_between_the_declared_bounds(values: list[float | None]) -> None:
    expected = np.zeros(FINE + 1, dtype=int)
    for value in values:
        if value is None or np.isnan(value):
            expected[-1] += 1
        else:
            tick = ticks_of(AGE, min(max(value, AGE.low), AGE.high))
            expected[min((tick + GRID) * FINE // (2 * GRID), FINE - 1)] += 1
    found = counts([(value, 0.0) for value in values], CovariateCounts(["age"]))
    assert found[0, COARSE:].tolist() == expected.tolist()


def test_only_numbers_are_counted() -> None:
    for names in (["smoker"], ["age", "smoker"], [], ["weight"], ["age", "age"]):
        with pytest.raises(QueryError, match="covariates"):
            CovariateCounts(names).sensitivity(SCHEMA, "record", "l1")
    assert CovariateCounts.examples(replace(SCHEMA, covariates=[dpc.Binary("smoker")])) == ()


def test_the_question_is_the_same_for_any_outcome_and_arms() -> None:
    """So that one answer serves all estimators of a data set."""
    others = (
        SCHEMA.narrowed(2, 5),
        replace(SCHEMA, outcome=dpc.Binary("died"), required=["age"]),
        replace(SCHEMA, treatment=dpc.Treatment("ward", arms=("a", "b", "c"), compare="c")),
        with_indicators(SCHEMA, ["age", "dose"]),
        replace(SCHEMA, covariates=SCHEMA.covariates[1:]),
    )
    asked = question(QUERY, ONE, SCHEMA, "2026")
    assert all(question(QUERY, ONE, other, "2026") == asked for other in others)
    wider = replace(SCHEMA, covariates=[dpc.Real("age", 0, 65), DOSE])
    assert question(QUERY, ONE, wider, "2026") != asked
    assert question(QUERY, ONE, SCHEMA, "2027") != asked


@pytest.mark.parametrize("kind", QUERIES.values(), ids=lambda kind: kind.name)
def test_every_other_query_depends_on_who_is_compared(kind: type[dpc.queries.Query]) -> None:
    """A query that does not read the treatment does not depend on what is required: its answers count all units."""
    schema = standard_schema()
    for query in kind.examples(schema):
        asked = question(query, ONE, schema, None)
        assert bool(asked["required"]) == (kind not in (CovariateCounts, MissingOutcomes))


def test_expected_counts_are_normal_between_the_bounds() -> None:
    table = dpc.Rehearsal(SCHEMA, n=10_000)
    found = np.array(list(QUERY.expected(table, ONE).values())).reshape(2, EACH)
    assert found[0].tolist() == found[1].tolist()
    coarse, fine = found[0, :COARSE], found[0, COARSE:-1]
    assert fine.reshape(COARSE, -1).sum(axis=1) == pytest.approx(coarse)
    assert coarse.sum() == pytest.approx(10_000)
    drawn = np.clip(np.random.default_rng(1).normal(0, 1 / 3, 100_000), -1, 1)
    assert coarse == pytest.approx(np.histogram(drawn, np.linspace(-1, 1, COARSE + 1))[0] / 10, abs=30)
