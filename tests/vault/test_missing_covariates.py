"""Units without a value of a covariate are counted, whatever their arm, and one answer serves all estimators."""

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
WARD = dpc.Category("ward", ["a", "b"], missing="b")
SCHEMA = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10, missing=5), [dpc.Binary("smoker"), AGE, DOSE, WARD])
NAMES = ["age", "dose", "smoker", "ward"]
QUERY, ANY, ONE = MissingCovariates(NAMES), MissingCovariates(NAMES, each=False), dpc.Guarantee(epsilon=1)
DATABASE = duckdb.connect()
CELLS = st.none() | st.sampled_from([float("nan"), float("inf"), -9.0, 0.0, 1e308]) | st.floats()

SMOKERS, WARDS = st.sampled_from([None, 0, 1, 2, -1]), st.sampled_from([None, "a", " B ", "c", "", "unknown"])

UNITS = st.tuples(CELLS, CELLS, SMOKERS, WARDS)

Unit = tuple[float | None, float | None, int | None, str | None]


def counts(query: MissingCovariates, units: Sequence[Unit], arms: Sequence[int | None]) -> Int64s:
    """Return the query's own answer, without noise."""
    ages, doses, smokers, wards = zip(*units, strict=True)
    table = pa.table(
        {
            "t": pa.array(arms, pa.int64()),
            "y": pa.array([None, *[5.0] * (len(units) - 1)], pa.float64()),
            "smoker": pa.array(smokers, pa.int64()),
            "ward": pa.array(wards, pa.string()),
            "age": pa.array(ages, pa.float64()),
            "dose": pa.array(doses, pa.float64()),
        }
    )
    ticks = exact_answer(query, SCHEMA, open_table(DATABASE.from_arrow(table), SCHEMA), ONE).ticks
    return np.array([ticks[name] for name in query.own_names])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(UNITS, st.sampled_from([None, 0, 1, 7])), min_size=2, max_size=6))
def test_units_without_a_value_count_whatever_their_arm_and_one_unit_moves_each_count_by_one(
    drawn: list[tuple[Unit, int | None]],
) -> None:
    units, arms = [unit for unit, _ in drawn], [arm for _, arm in drawn]
    found = counts(QUERY, units, arms)
    absent = [
        [
            age is None or np.isnan(age),
            dose is None or np.isnan(dose) or dose == -9,  # the code of a missing dose
            smoker not in (0, 1),
            ward not in ("a", " B "),
        ]
        for age, dose, smoker, ward in units
    ]
    assert found.tolist() == np.sum(absent, axis=0).tolist()
    some = counts(ANY, units, arms)
    assert some.tolist() == [np.any(absent, axis=1).sum()]
    units, arms = [units[1], *units[1:]], [arms[1], *arms[1:]]
    assert np.abs(found - counts(QUERY, units, arms)).max() <= 1
    assert abs(some - counts(ANY, units, arms)) <= 1


def test_one_unit_can_move_every_count_and_moves_none_where_covariates_are_public() -> None:
    for protects, norm, bound in (
        ("record", "l1", 4),
        ("record_within_arm", "l1", 4),
        ("record", "l2", 2),
        ("outcome", "l1", 1),  # any noise would do: nothing moves
    ):
        for schema in (SCHEMA, with_indicators(SCHEMA, NAMES)):
            sensitivity = QUERY.sensitivity(schema, *_level(protects, norm))
            assert float(ANY.sensitivity(schema, *_level(protects, norm)).bound) == 1
            assert float(sensitivity.bound) == pytest.approx(bound)
            assert {at.weight for at in sensitivity.coordinates} == {Fraction(1)}
            assert tuple(at.name for at in sensitivity.coordinates) == QUERY.own_names


def _level(protects: str, norm: str) -> tuple[Protects, Norm]:
    return protects, norm  # type: ignore[return-value]


def test_strange_covariates_and_totals_are_refused() -> None:
    for names in ([], ["weight"], ["age", "age"], ["age is missing"]):
        with pytest.raises(QueryError, match="covariates"):
            MissingCovariates(names).sensitivity(SCHEMA, "record", "l1")
    totals = replace(SCHEMA, unit=dpc.Unit("who", by="day", sum=["age"]))
    with pytest.raises(QueryError, match="total over a unit's records"):
        MissingCovariates(["age"]).sensitivity(totals, "record", "l1")
    rest = ["smoker", "dose", "ward"]
    several = MissingCovariates(rest[:1]), MissingCovariates(rest), MissingCovariates(rest, each=False)
    assert MissingCovariates.examples(totals) == several


def test_the_question_is_the_same_for_any_outcome_arms_and_typical_values() -> None:
    others = (
        SCHEMA.narrowed(2, 5),
        replace(SCHEMA, outcome=dpc.Binary("died"), required=["age"]),
        with_indicators(SCHEMA, NAMES),
        replace(SCHEMA, covariates=[dpc.Binary("smoker"), replace(AGE, typical=(20, 50)), DOSE, WARD]),
    )
    asked = question(QUERY, ONE, SCHEMA, "2026")
    assert all(question(QUERY, ONE, other, "2026") == asked for other in others)
    assert not asked["required"]
