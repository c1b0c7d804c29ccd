"""Units with a value are in one bin of each level, whatever their arm, and one answer serves all estimators."""

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, QUERIES, CovariateCounts, MissingCovariates, question
from dpcausal.queries.covariate_counts import COARSE, EACH, FINE
from dpcausal.queries.features import with_indicators
from dpcausal.queries.profiles import ticks_of
from dpcausal.testing import standard_schema
from dpcausal.utils.arrays import Int64s
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
        of_all_units = kind in (CovariateCounts, MissingCovariates) or kind.counts_missing
        assert bool(asked["required"]) != of_all_units


def test_expected_counts_are_normal_between_the_bounds() -> None:
    table = dpc.Rehearsal(SCHEMA, n=10_000)
    found = np.array(list(QUERY.expected(table, ONE).values())).reshape(2, EACH)
    assert found[0].tolist() == found[1].tolist()
    coarse, fine = found[0, :COARSE], found[0, COARSE:-1]
    assert fine.reshape(COARSE, -1).sum(axis=1) == pytest.approx(coarse)
    assert coarse.sum() == pytest.approx(10_000)
    drawn = np.clip(np.random.default_rng(1).normal(0, 1 / 3, 100_000), -1, 1)
    assert coarse == pytest.approx(np.histogram(drawn, np.linspace(-1, 1, COARSE + 1))[0] / 10, abs=30)
