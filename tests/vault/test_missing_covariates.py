"""Units without a value of a number are counted, whatever their arm, and one answer serves all estimators."""

from collections.abc import Sequence
from dataclasses import replace
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
from dpcausal.queries import MissingCovariates, question
from dpcausal.queries.features import with_indicators
from dpcausal.queries.query import Norm
from dpcausal.schema.schema import Protects
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.table import open_table

AGE, DOSE = dpc.Real("age", 0, 64), dpc.Real("dose", -1, 1, missing=0.5, missing_codes=[-9])
SCHEMA = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10, missing=5), [dpc.Binary("smoker"), AGE, DOSE])
QUERY, ONE = MissingCovariates(["age", "dose"]), dpc.Guarantee(epsilon=1)
DATABASE = duckdb.connect()
CELLS = st.none() | st.sampled_from([float("nan"), float("inf"), -9.0, 0.0, 1e308]) | st.floats()

Unit = tuple[float | None, float | None]


def counts(units: Sequence[Unit], arms: Sequence[int | None]) -> Int64s:
    """Return the query's own answer, without noise."""
    ages, doses = zip(*units, strict=True)
    table = pa.table(
        {
            "t": pa.array(arms, pa.int64()),
            "y": pa.array([None, *[5.0] * (len(units) - 1)], pa.float64()),
            "smoker": [0] * len(units),
            "age": pa.array(ages, pa.float64()),
            "dose": pa.array(doses, pa.float64()),
        }
    )
    ticks = exact_answer(QUERY, SCHEMA, open_table(DATABASE.from_arrow(table), SCHEMA), ONE).ticks
    return np.array([ticks[name] for name in QUERY.own_names])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.tuples(CELLS, CELLS), st.sampled_from([None, 0, 1, 7])), min_size=2, max_size=6))
def test_units_without_a_value_count_whatever_their_arm_and_one_unit_moves_each_count_by_one(
    drawn: list[tuple[Unit, int | None]],
) -> None:
    units, arms = [unit for unit, _ in drawn], [arm for _, arm in drawn]
    found = counts(units, arms)
    absent = [[each is None or np.isnan(each) for each in unit] for unit in units]
    coded = [[False, unit[1] == -9] for unit in units]  # -9 is the code of a missing dose
    assert found.tolist() == np.logical_or(absent, coded).sum(axis=0).tolist()
    other = counts([units[1], *units[1:]], [arms[1], *arms[1:]])
    assert np.abs(found - other).max() <= 1


def test_one_unit_can_move_every_count_and_moves_none_where_covariates_are_public() -> None:
    for protects, norm, bound in (
        ("record", "l1", 2),
        ("record_within_arm", "l1", 2),
        ("record", "l2", 2**0.5),
        ("outcome", "l1", 1),  # any noise would do: nothing moves
    ):
        for schema in (SCHEMA, with_indicators(SCHEMA, ["age", "dose"])):
            sensitivity = QUERY.sensitivity(schema, *_level(protects, norm))
            assert float(sensitivity.bound) == pytest.approx(bound)
            assert {at.weight for at in sensitivity.coordinates} == {Fraction(1)}
            assert tuple(at.name for at in sensitivity.coordinates) == QUERY.own_names


def _level(protects: str, norm: str) -> tuple[Protects, Norm]:
    return protects, norm  # type: ignore[return-value]


def test_other_covariates_and_totals_are_refused() -> None:
    for names in (["smoker"], ["age", "smoker"], [], ["weight"], ["age", "age"]):
        with pytest.raises(QueryError, match="covariates"):
            MissingCovariates(names).sensitivity(SCHEMA, "record", "l1")
    totals = replace(SCHEMA, unit=dpc.Unit("who", by="day", sum=["age"]))
    with pytest.raises(QueryError, match="total over a unit's records"):
        MissingCovariates(["age"]).sensitivity(totals, "record", "l1")
    assert MissingCovariates.examples(totals) == (MissingCovariates(["dose"]),)


def test_the_question_is_the_same_for_any_outcome_arms_and_typical_values() -> None:
    others = (
        SCHEMA.narrowed(2, 5),
        replace(SCHEMA, outcome=dpc.Binary("died"), required=["age"]),
        with_indicators(SCHEMA, ["age", "dose"]),
        replace(SCHEMA, covariates=[replace(AGE, typical=(20, 50)), DOSE]),
    )
    asked = question(QUERY, ONE, SCHEMA, "2026")
    assert all(question(QUERY, ONE, other, "2026") == asked for other in others)
    assert not asked["required"]
