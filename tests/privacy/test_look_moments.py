"""No unit moves all looks of a schedule together beyond their bound, over versions of a table; less noise is caught."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import Cut, LookMoments, Norm, Sensitivity, payment, question
from dpcausal.queries.look_moments import FINE, running_weights, weights
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

LOOKS = 3
ARMS = ("none", "low", "high", "elsewhere")
"""The last one is not declared."""

NORMS: tuple[Norm, Norm] = ("l1", "l2")
Record = tuple[str, float]
Life = tuple[int, tuple[Record | None, ...]]
"""The cohort of a unit, and its record in each version; None where the version does not hold it."""

VALUES: list[Record] = [("low", 0.0), ("low", 0.5), ("low", 1.0), ("high", 1.0), ("elsewhere", 1.0)]
DATABASE = connect(threads=1)


def schema_for(protects: Protects, more: Sequence[Column] = (), unit: dpc.Unit | None = None) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", arms=ARMS[:3], compare="high"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Category("week", [1, 2, 3]), *more],
        protects=protects,
        entry="week",
        unit=unit,
    )


def answer(look: int, cohorts: Sequence[int], records: Sequence[Record], norm: Norm) -> dict[str, int]:
    """What the answer itself makes of one version, without noise."""
    arms, outcomes = zip(*records, strict=True)
    table = DATABASE.from_arrow(pa.table({"t": arms, "y": outcomes, "week": cohorts}))
    schema = schema_for("record")
    guarantee = dpc.Guarantee(epsilon=1, delta=1e-6 if norm == "l2" else 0.0)
    return dict(exact_answer(LookMoments(Cut("week"), look), schema, open_table(table, schema), guarantee).ticks)


@cache
def part(look: int, cohort: int, record: Record | None, norm: Norm) -> dict[str, int]:
    """What one unit adds to a look; answers add up."""
    alone = ("elsewhere", 0.5)
    return answer(look, [cohort], [record or alone], norm)


@cache
def scaled(sensitivity: Sensitivity, life: Life) -> np.ndarray:
    """What one unit adds to all looks, each coordinate in units of its weight."""
    return np.array(
        [
            float(Fraction(part(look, life[0], life[1][look - 1], sensitivity.norm)[at.name]) / (at.weight or 0))
            for look in range(1, LOOKS + 1)
            for at in sensitivity.coordinates
        ]
    )


def moved(sensitivity: Sensitivity, one: Life, other: Life) -> float:
    """The norm of the change over all looks."""
    return float(np.linalg.norm(scaled(sensitivity, one) - scaled(sensitivity, other), int(sensitivity.norm[1])))


LIVES: list[Life] = [
    (cohort, records)
    for cohort in (1, 2, 3)
    for records in itertools.product([None, *VALUES], VALUES[::2], VALUES[1::2] + VALUES[:1])
]
"""Units that come late, change their values and arms, and leave the declared arms."""


def worst(sensitivity: Sensitivity) -> float:
    """The largest move between any two lives. In which versions the unit is may differ too: more than is needed."""
    vectors = np.array([scaled(sensitivity, life) for life in LIVES])
    return max(float(np.linalg.norm(vectors - each, int(sensitivity.norm[1]), axis=1).max()) for each in vectors)


def sensitivity_of(protects: Protects, norm: Norm) -> Sensitivity:
    return LookMoments(Cut("week"), 1).sensitivity(schema_for(protects), protects, norm)


@pytest.mark.parametrize("norm", NORMS)
def test_bound_holds_over_all_looks_and_versions_and_is_attained(norm: Norm) -> None:
    sensitivity = sensitivity_of("record", norm)
    constant = [(1, (record,) * LOOKS) for record in VALUES]
    most = max(moved(sensitivity, one, other) for one, other in itertools.combinations(constant, 2))
    assert most > 0.99 * float(sensitivity.bound)  # so that 9/10 of it is not enough
    assert max(most, worst(sensitivity)) <= float(sensitivity.bound) * (1 + 1e-12)


@pytest.mark.parametrize("protects", PROTECTS[1:])
def test_narrower_protection_has_the_same_bound(protects: Protects) -> None:
    assert sensitivity_of(protects, "l2") == sensitivity_of("record", "l2")


def test_schedule_charged_as_one_look_is_caught() -> None:
    honest = sensitivity_of("record", "l2")
    alone = replace(honest, bound=Fraction(FINE))
    constant = [(1, (record,) * LOOKS) for record in VALUES]
    assert max(moved(alone, *pair) for pair in itertools.combinations(constant, 2)) > 1.15 * float(alone.bound)


def test_unit_that_changes_its_cohort_from_version_to_version_breaks_the_bound() -> None:
    """Why a unit must stay in its cohort: one that is always in the newest cohort moves every look in full."""
    sensitivity = sensitivity_of("record", "l2")
    changes = []
    for look in range(1, LOOKS + 1):
        parts = [part(look, look, record, "l2") for record in (("low", 1.0), ("high", 1.0))]
        changes += [(parts[0][at.name] - parts[1][at.name]) / float(at.weight or 0) for at in sensitivity.coordinates]
    assert np.linalg.norm(changes) > 1.3 * float(sensitivity.bound)
    several = schema_for("record", unit=dpc.Unit("who", by="day"), more=[dpc.Real("visits", 0, 9)])
    for column in (None, "day", "visits"):
        with pytest.raises(QueryError, match="the column by which units enter"):
            LookMoments(Cut("week"), 1).sensitivity(replace(several, entry=column), "record", "l2")
    with pytest.raises(QueryError, match="the column by which units enter"):
        LookMoments(Cut("visits", [3, 6]), 1).sensitivity(several, "record", "l2")


lives = st.tuples(
    st.integers(1, 3),
    st.tuples(*[st.one_of(st.none(), st.tuples(st.sampled_from(ARMS), st.floats()))] * LOOKS),
)


@settings(max_examples=15, deadline=None)
@given(lives, lives, st.sampled_from(NORMS))
def test_bound_holds_for_lives_of_any_kind(one: Life, other: Life, norm: Norm) -> None:
    """Also where a unit is missing from a version in one life only."""
    sensitivity = sensitivity_of("record", norm)
    assert moved(sensitivity, one, other) <= float(sensitivity.bound) * (1 + 1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("looks", [1, 2, 52, 400])
def test_weights_are_below_the_square_root_and_running_sums_follow_exactly(norm: Norm, looks: int) -> None:
    used = weights(looks, norm)
    assert np.allclose(np.convolve(used, running_weights(used))[:looks], FINE, rtol=1e-12)
    assert all(0 <= each <= FINE for each in used)
    if norm == "l2":
        square = np.convolve(used, used)[:looks] / FINE**2
        assert (square <= 1).all()
        assert square.min() > 0.95


def test_answer_weighs_cohorts_up_to_the_look_only() -> None:
    records = [("none", 1.0), ("low", 1.0), ("low", 0.0), ("high", 1.0), ("elsewhere", 1.0)]
    found = answer(2, [1, 1, 2, 3, 1], records, "l2")
    assert [found[f"size_{arm}"] for arm in range(3)] == [FINE // 2, FINE // 2 + FINE, 0]
    assert found["total_1"] == 2**20 * (FINE // 2 - FINE)
    pure = answer(2, [1, 1, 2, 3, 1], records, "l1")
    assert [pure[f"size_{arm}"] for arm in range(3)] == [0, FINE, 0]


def test_looks_have_no_version_and_one_payment() -> None:
    schema, guarantee = schema_for("record"), dpc.Guarantee(epsilon=1, delta=1e-6)
    looks = [LookMoments(Cut("week"), look) for look in (1, 2)]
    asked = [question(look, guarantee, schema, as_of) for look in looks for as_of in ("2025", "2026")]
    assert asked[0] == asked[1] != asked[2] == asked[3]
    assert payment(looks[0], asked[0]) == payment(looks[1], asked[2])
    with pytest.raises(QueryError, match="look 4"):
        LookMoments(Cut("week"), 4).sensitivity(schema, "record", "l2")
    with pytest.raises(QueryError, match="from 1 on"):
        LookMoments(Cut("week"), 0)
