"""Changes stay within their public bounds, so no unit moves their sums further than sums of outcomes."""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, ArmMoments, ChangeMoments, Norm, Sensitivity
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.answers import change_moments
from dpcausal.vault.table import open_table

DATABASE = duckdb.connect()
NORMS: tuple[Norm, Norm] = ("l1", "l2")
QUERIES = (ChangeMoments("b", "", -5.0, 1.0), ChangeMoments("b", "", -1.0, 1.0), ChangeMoments("c", "b", -1.0, 4.0))
Record = tuple[int, float, float, int]
"""The arm, the outcome, the value before, a binary value."""

RECORDS: list[Record] = list(itertools.product((0, 1), (0.0, 1.0), (0.0, 0.5, 2.0, 5.0), (0, 1)))


def schema_for(protects: Protects) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("b", 0, 5, missing=0), dpc.Binary("c", missing=0)],
        protects=protects,
    )


def answer(query: ChangeMoments, records: list[Record]) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise, whatever is protected."""
    columns = dict(zip("tybc", map(list, zip(*records, strict=True)), strict=True))
    schema = schema_for("record")
    engine = open_table(DATABASE.from_arrow(pa.table(columns)), schema)
    return dict(exact_answer(query, schema, engine, dpc.Guarantee(epsilon=1)).ticks)


@cache
def with_unit(query: ChangeMoments, record: Record) -> dict[str, int]:
    return answer(query, [record, (0, 0.5, 1.0, 1), (1, 0.5, 4.0, 0)])


def moved(sensitivity: Sensitivity, one: dict[str, int], other: dict[str, int]) -> float:
    changes = [float(Fraction(one[at.name] - other[at.name]) / (at.weight or 0)) for at in sensitivity.coordinates]
    return float(np.abs(changes).sum() if sensitivity.norm == "l1" else np.linalg.norm(changes))


def worst(query: ChangeMoments, sensitivity: Sensitivity, protects: Protects) -> float:
    public = {"record": (), "record_within_arm": (0,), "outcome": (0, 2, 3)}[protects]
    return max(
        moved(sensitivity, with_unit(query, old), with_unit(query, new))
        for old, new in itertools.combinations(RECORDS, 2)
        if all(old[at] == new[at] for at in public)
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("query", QUERIES)
def test_bound_holds(query: ChangeMoments, protects: Protects, norm: Norm) -> None:
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    assert sensitivity.bound == ArmMoments().sensitivity(schema_for(protects), protects, norm).bound
    most = worst(query, sensitivity, protects)
    assert most <= float(sensitivity.bound) * (1 + 1e-12)
    if protects != "outcome":
        assert most >= 0.99 * float(sensitivity.bound)
    if query.after:
        assert protects != "outcome" or most == 0  # nothing that may change is read


@pytest.mark.parametrize("norm", NORMS)
def test_too_small_a_bound_is_caught(norm: Norm) -> None:
    honest = QUERIES[0].sensitivity(schema_for("record"), "record", norm)
    broken = replace(honest, bound=honest.bound * Fraction(9, 10))
    assert worst(QUERIES[0], broken, "record") > float(broken.bound)


def test_changes_beyond_their_bounds_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: narrow bounds size the noise, and changes are not moved to them."""
    query = QUERIES[1]
    sensitivity = query.sensitivity(schema_for("record"), "record", "l1")
    wide = replace(query, low=-5.0, high=1.0)
    ticks = change_moments.change_ticks

    def unlimited(_: ChangeMoments, schema: dpc.Schema) -> str:
        return f"(3 * {ticks(wide, schema)} - {2 * GRID})"  # the same change, in the narrow query's ticks

    monkeypatch.setattr(change_moments, "change_ticks", unlimited)
    with_unit.cache_clear()
    assert worst(query, sensitivity, "record") > 2 * float(sensitivity.bound)
    with_unit.cache_clear()


def test_sums_are_those_of_the_changes() -> None:
    records: list[Record] = [(0, 0.25, 1.0, 0), (1, 1.0, 0.0, 1), (1, 0.5, 4.5, 1), (0, 0.0, 0.125, 0)]
    for query, changes in (
        (QUERIES[0], [-0.75, 1.0, -4.0, -0.125]),
        (QUERIES[1], [-0.75, 1.0, -1.0, -0.125]),
        (QUERIES[2], [1.0, -1.0, 3.5, 0.125]),
    ):
        half, middle = (query.high - query.low) / 2, (query.low + query.high) / 2
        found = answer(query, records)
        for arm in (0, 1):
            own = np.array([change for change, record in zip(changes, records, strict=True) if record[0] == arm])
            assert found[f"total_{arm}"] * half / GRID == pytest.approx((own - middle).sum(), abs=1e-5)
            deficit = (half**2 - (own - middle) ** 2).sum()
            assert found[f"deficit_{arm}"] * half**2 / GRID == pytest.approx(deficit, abs=1e-4)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (("y", "", -1.0, 1.0), "holds the value before"),
        (("", "", -1.0, 1.0), "holds the value before"),
        (("b", "y", -1.0, 1.0), "holds the value before"),
        (("b", "", -6.0, 1.0), "bounds of the change"),
        (("b", "", 0.0, 0.001), "a thousandth"),
        (("b", "", 1.0, -1.0), "a lower and an upper bound"),
        (("b", "", float("nan"), 1.0), "a lower and an upper bound"),
        (("b", "", None, 1.0), "a lower and an upper bound"),
    ],
)
def test_change_that_does_not_fit_is_refused(parameters: tuple[str, str, float, float], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        ChangeMoments(*parameters).sensitivity(schema_for("record"), "record", "l1")
