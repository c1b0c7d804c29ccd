"""No unit moves the regression moments of several arms beyond their bound; a bound too small is caught."""

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
from dpcausal.queries import ArmRegressionMoments, Norm, Sensitivity
from dpcausal.queries.regression_moments import FINE
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

QUERIES = [ArmRegressionMoments(["x"]), ArmRegressionMoments(["x", "k"])]
NORMS: tuple[Norm, Norm] = ("l1", "l2")
ARMS = ("none", "low", "high", "elsewhere")
"""The last one is not declared."""

Record = tuple[str, float, float, str]
RECORDS: list[Record] = list(itertools.product(ARMS[1:], (0.0, 0.3, 0.5, 1.0), (0.0, 0.5, 1.0), "pqr"))
DATABASE = connect(threads=1)


def schema_for(protects: Protects, arms: Sequence[str] = ARMS[:3]) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", arms=arms, compare=arms[-1]),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("x", 0, 1), dpc.Category("k", ["p", "q", "r"])],
        protects=protects,
    )


def answer(query: ArmRegressionMoments, records: Sequence[Record]) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise; it does not depend on what is protected."""
    schema = schema_for("record")
    t, y, x, k = zip(*records, strict=True)
    table = DATABASE.from_arrow(pa.table({"t": t, "y": y, "x": x, "k": k}))
    return dict(exact_answer(query, schema, open_table(table, schema), dpc.Guarantee(epsilon=1)).ticks)


@cache
def answers_of(query: ArmRegressionMoments) -> np.ndarray:
    return np.array([list(answer(query, [record]).values()) for record in RECORDS], dtype=float)


def worst(query: ArmRegressionMoments, sensitivity: Sensitivity, protects: Protects) -> float:
    """The largest move between any two of the listed records that may replace each other."""
    public = {"record": (), "record_within_arm": (0,), "outcome": (0, 2, 3)}[protects]
    points = answers_of(query) / [float(at.weight or 0) for at in sensitivity.coordinates]
    changes = np.abs(points[:, None] - points)
    moves = changes.sum(axis=2) if sensitivity.norm == "l1" else np.sqrt((changes**2).sum(axis=2))
    keys = [tuple(record[place] for place in public) for record in RECORDS]
    return float(np.where([[one == other for one in keys] for other in keys], moves, 0.0).max())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("query", QUERIES, ids=["one", "mixed"])
def test_bound_holds_and_is_nearly_attained(query: ArmRegressionMoments, protects: Protects, norm: Norm) -> None:
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    most = worst(query, sensitivity, protects)
    assert most <= float(sensitivity.bound) * (1 + 1e-12)
    assert most > (0.999 if (protects, norm) == ("record", "l1") else 0.77) * float(sensitivity.bound)


@pytest.mark.parametrize("norm", NORMS)
def test_one_block_charged_where_two_move_is_caught(norm: Norm) -> None:
    honest = QUERIES[0].sensitivity(schema_for("record"), "record", norm)
    half = replace(honest, bound=honest.bound / 2)
    assert worst(QUERIES[0], half, "record") > 1.7 * float(half.bound)


def test_private_arms_taken_for_public_are_caught() -> None:
    for query in QUERIES:
        public = query.sensitivity(schema_for("record_within_arm"), "record_within_arm", "l1")
        assert worst(query, public, "record") > 1.2 * float(public.bound)


def test_private_covariates_taken_for_public_are_caught() -> None:
    for query, norm in itertools.product(QUERIES, NORMS):
        public = query.sensitivity(schema_for("outcome"), "outcome", norm)
        assert worst(query, public, "record_within_arm") > 1.5 * float(public.bound)


@pytest.mark.parametrize("norm", NORMS)
def test_deficits_as_light_as_the_number_itself_are_caught(norm: Norm) -> None:
    """The proof gives deficits nothing of their own where a unit moves, because they weigh enough."""
    honest = QUERIES[0].sensitivity(schema_for("record"), "record", norm)
    lighter = [
        replace(at, weight=Fraction(at.weight or 0) / (8 if "deficit" in at.name else 1)) for at in honest.coordinates
    ]
    found = worst(QUERIES[0], replace(honest, coordinates=tuple(lighter)), "record")
    assert found > 1.2 * float(honest.bound)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
def test_noise_does_not_depend_on_the_number_of_arms(protects: Protects, norm: Norm) -> None:
    def noise(arms: Sequence[str]) -> set[tuple[str, Fraction]]:
        found = QUERIES[1].sensitivity(schema_for(protects, arms), protects, norm)
        return {(at.name.partition(" * ")[2], found.bound * (at.weight or 0)) for at in found.coordinates}

    assert noise(tuple("abcdefghijklmnopqrst")) == noise(ARMS[:2])


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(PROTECTS),
    st.sampled_from(NORMS),
    st.lists(
        st.tuples(st.sampled_from(ARMS), st.floats(), st.floats(0, 1), st.sampled_from("pqrs")), min_size=2, max_size=5
    ),
)
def test_bound_holds_for_records_of_any_kind(
    query: ArmRegressionMoments, protects: Protects, norm: Norm, records: list[Record]
) -> None:
    old, new = records[:2]
    kept = {"record": new[:1], "record_within_arm": old[:1], "outcome": old[:1]}[protects]
    new = (*kept, new[1], *(old if protects == "outcome" else new)[2:])
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    one, other = (answer(query, [first, *records[2:], ("none", 0.5, 0.5, "p")]) for first in (old, new))
    changes = [float((one[at.name] - other[at.name]) / (at.weight or 0)) for at in sensitivity.coordinates]
    moved = np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes)
    assert moved <= float(sensitivity.bound) * (1 + 1e-12)


def test_sums_are_those_of_the_formulas() -> None:
    random = np.random.default_rng(0)
    t, k = random.choice(ARMS, 2_000), random.choice(["p", "q", "r"], 2_000)
    y, x = random.uniform(0, 1, (2, 2_000))
    found = answer(QUERIES[1], list(zip(t.tolist(), y.tolist(), x.tolist(), k.tolist(), strict=True)))
    numbers = {"outcome": 2 * y - 1, "x": 2 * x - 1}
    numbers |= {f"k={value}": np.where(k == value, 1.0, -1.0) for value in "qr"}
    wanted: dict[str, float] = {}
    for place, arm in enumerate(ARMS[:3]):
        here = t == arm
        wanted[f"arm_{place}"] = here.sum() / FINE**2
        wanted |= {f"arm_{place} * {name}": each[here].sum() for name, each in numbers.items()}
        wanted |= {f"arm_{place} * deficit of {name}": (1 - each[here] ** 2).sum() for name, each in numbers.items()}
        wanted |= {
            f"arm_{place} * {one} * {two}": (numbers[one] * numbers[two])[here].sum()
            for one, two in itertools.combinations(numbers, 2)
        }
    assert set(found) == set(wanted)
    for name, each in wanted.items():
        assert found[name] / FINE**2 == pytest.approx(each, abs=0.2)  # numbers are rounded to 1 / 1024


def test_too_many_features_are_refused() -> None:
    schema = replace(schema_for("record"), covariates=[dpc.Category("k", list(range(40)))])
    with pytest.raises(QueryError, match="at most 30 features"):
        ArmRegressionMoments(["k"]).sensitivity(schema, "record", "l1")
