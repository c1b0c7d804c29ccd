"""No unit moves the moments of cells beyond their bound, for any number of arms; a bound too small is caught."""

import itertools
from collections.abc import Mapping, Sequence
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
from dpcausal.queries import (
    ArmMoments,
    ArmRegressionMoments,
    CellMoments,
    Cut,
    MetricMoments,
    Norm,
    Query,
    Sensitivity,
    question,
)
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from dpcausal.vault.table import open_table

QUERIES = [CellMoments(), CellMoments([Cut("s")])]
NORMS: tuple[Norm, Norm] = ("l1", "l2")
ARMS = ("none", "low", "high", "elsewhere")
"""The last one is not declared."""

Record = tuple[str, float, int]
RECORDS: list[Record] = list(itertools.product(ARMS, (0.0, 0.25, 0.5, 1.0), (0, 1)))
REST: list[Record] = [("none", 0.25, 0), ("high", 0.9, 1)]
DATABASE = connect(threads=1)


def schema_for(protects: Protects, **more: object) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", arms=ARMS[:3], compare="high", **more),  # type: ignore[arg-type]
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Binary("s")],
        protects=protects,
    )


def answer(query: CellMoments, records: Sequence[Record], schema: dpc.Schema) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise."""
    arms, outcomes, strata = zip(*records, strict=True)
    table = DATABASE.from_arrow(pa.table({"t": arms, "y": outcomes, "s": strata}))
    guarantee = dpc.Guarantee(epsilon=1, protects=schema.protects)
    return dict(exact_answer(query, schema, open_table(table, schema), guarantee).ticks)


def moved(sensitivity: Sensitivity, one: dict[str, int], other: dict[str, int]) -> float:
    """The norm of the change between two answers, each coordinate in units of its weight."""
    changes = [float(Fraction(one[at.name] - other[at.name]) / (at.weight or 0)) for at in sensitivity.coordinates]
    return float(np.abs(changes).sum() if sensitivity.norm == "l1" else np.linalg.norm(changes))


def are_neighbours(one: Record, other: Record, protects: Protects) -> bool:
    public = {"record": (), "record_within_arm": (0,), "outcome": (0, 2)}[protects]
    return all(one[place] == other[place] for place in public)


@cache
def answers_of(query: CellMoments) -> dict[Record, dict[str, int]]:
    """The answers for each listed record beside the rest; they do not depend on what is protected."""
    return {record: answer(query, [record, *REST], schema_for("record")) for record in RECORDS}


def worst(query: CellMoments, sensitivity: Sensitivity, protects: Protects) -> float:
    """The largest move over all neighbouring tables of three units made of the listed records."""
    answers = answers_of(query)
    pairs = itertools.combinations(RECORDS, 2)
    return max(
        moved(sensitivity, answers[old], answers[new]) for old, new in pairs if are_neighbours(old, new, protects)
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("query", QUERIES, ids=["arms", "strata"])
def test_bound_holds_and_is_attained_and_a_smaller_one_is_caught(
    query: CellMoments, protects: Protects, norm: Norm
) -> None:
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    most = worst(query, sensitivity, protects)
    assert most <= float(sensitivity.bound) * (1 + 1e-12)
    assert most > 0.99 * float(sensitivity.bound)  # so that 9/10 of it is not enough


@pytest.mark.parametrize("norm", NORMS)
def test_sizes_charged_as_if_one_alone_moved_are_caught(norm: Norm) -> None:
    honest = CellMoments().sensitivity(schema_for("record"), "record", norm)
    lighter = tuple(
        replace(at, weight=at.weight / 2) if at.weight and at.name.startswith("size") else at
        for at in honest.coordinates
    )
    assert worst(CellMoments(), replace(honest, coordinates=lighter), "record") > 1.1 * float(honest.bound)


def test_private_cells_taken_for_public_are_caught() -> None:
    arms, strata = QUERIES
    for query, protects in ((arms, "record"), (strata, "record_within_arm")):
        public = query.sensitivity(schema_for("outcome"), "outcome", "l1")
        assert worst(query, public, protects) > 2.5 * float(public.bound)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
def test_noise_in_totals_is_that_of_two_arms_however_many_there_are(protects: Protects, norm: Norm) -> None:
    def noise(query: CellMoments | ArmMoments, schema: dpc.Schema) -> set[Fraction]:
        found = query.sensitivity(schema, protects, norm)
        totals = (at for at in found.coordinates if at.name.startswith("total"))
        return {found.bound * (at.weight or 0) for at in totals}

    many = dpc.Treatment("t", arms=tuple(range(20)), compare=1)
    twenty = replace(schema_for(protects), treatment=many)
    assert noise(CellMoments(), twenty) == noise(ArmMoments(), schema_for(protects))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(PROTECTS),
    st.sampled_from(NORMS),
    st.lists(st.tuples(st.sampled_from(ARMS), st.floats(), st.integers(-1, 2)), min_size=1, max_size=6),
    st.tuples(st.sampled_from(ARMS), st.floats(), st.integers(-1, 2)),
)
def test_bound_holds_for_records_of_any_kind(
    query: CellMoments, protects: Protects, norm: Norm, records: list[Record], new: Record
) -> None:
    old = records[0]
    new = (new[0] if protects == "record" else old[0], new[1], old[2] if protects == "outcome" else new[2])
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    one, other = (answer(query, [first, *records[1:]], schema_for(protects)) for first in (old, new))
    assert moved(sensitivity, one, other) <= float(sensitivity.bound) * (1 + 1e-12)


def test_answer_counts_every_declared_arm_whichever_two_are_compared() -> None:
    records = [("none", 0.0, 0), ("low", 1.0, 0), ("low", 1.0, 1), ("high", 0.5, 1), ("elsewhere", 0.0, 0)]
    outside = answer(CellMoments(), records, schema_for("record"))
    assert [outside[f"size_{arm}"] for arm in range(3)] == [1, 2, 1]
    assert outside["total_1"] == 2 * 2**20
    sent = answer(CellMoments(), records, schema_for("record", undeclared="low"))
    assert [sent[f"size_{arm}"] for arm in range(3)] == [1, 3, 1]
    other = replace(schema_for("record"), treatment=dpc.Treatment("t", arms=ARMS[:3], reference="low", compare="high"))
    assert answer(CellMoments(), records, other) == outside


def test_question_names_every_arm_in_its_order_and_not_the_comparison() -> None:
    def asked(*arms: str, **more: str) -> object:
        schema = replace(schema_for("record"), treatment=dpc.Treatment("t", arms=arms, **more))  # type: ignore[arg-type]
        return question(CellMoments(), dpc.Guarantee(epsilon=1), schema, None)

    same = asked("none", "low", "high", compare="high"), asked("none", "low", "high", compare="low")
    assert same[0] == same[1]
    assert asked("none", "high", "low", compare="high") != same[0]
    assert asked("none", "low", "other", compare="low") != same[0]


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
