"""No unit moves sums of outcomes and treatment received beyond their bound; and a bound that is too small is caught."""

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
from dpcausal.queries import GRID, Norm, ReceivedMoments, Sensitivity
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.table import open_table

DATABASE = duckdb.connect()
QUERY = ReceivedMoments("d")
NORMS: tuple[Norm, Norm] = ("l1", "l2")
Record = tuple[int | None, float, int]
"""The arm, None for a unit outside the comparison; the outcome; the treatment received."""

OUTCOMES = (0.0, 0.0625, 0.25, 0.5, 0.9375, 1.0)
RECORDS: list[Record] = [*itertools.product((0, 1), OUTCOMES, (0, 1)), (None, 1.0, 1)]


def schema_for(protects: Protects) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Binary("d", missing=0)],
        protects=protects,
    )


@cache
def answer(records: tuple[Record, ...]) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise, whatever is protected."""
    arms, outcomes, received = zip(*records, strict=True)
    columns = {"t": pa.array(arms, pa.int64()), "y": list(outcomes), "d": list(received)}
    schema = schema_for("record")
    engine = open_table(DATABASE.from_arrow(pa.table(columns)), schema)
    return dict(exact_answer(QUERY, schema, engine, dpc.Guarantee(epsilon=1)).ticks)


def moved(sensitivity: Sensitivity, one: dict[str, int], other: dict[str, int]) -> float:
    changes = [float(Fraction(one[at.name] - other[at.name]) / (at.weight or 0)) for at in sensitivity.coordinates]
    return float(np.abs(changes).sum() if sensitivity.norm == "l1" else np.linalg.norm(changes))


def neighbours(protects: Protects) -> list[tuple[Record, Record]]:
    public = {"record": (), "record_within_arm": (0,), "outcome": (0, 2)}[protects]
    pairs = itertools.combinations(RECORDS, 2)
    return [(old, new) for old, new in pairs if all(old[at] == new[at] for at in public)]


def worst(sensitivity: Sensitivity, protects: Protects) -> float:
    rest: tuple[Record, ...] = ((0, 0.25, 1), (1, 0.9, 0))
    return max(moved(sensitivity, answer((old, *rest)), answer((new, *rest))) for old, new in neighbours(protects))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
def test_bound_holds_and_is_attained(protects: Protects, norm: Norm) -> None:
    sensitivity = QUERY.sensitivity(schema_for(protects), protects, norm)
    most = worst(sensitivity, protects)
    assert most <= float(sensitivity.bound) * (1 + 1e-12)
    assert most >= 0.99 * float(sensitivity.bound)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
def test_too_small_a_bound_is_caught(protects: Protects, norm: Norm) -> None:
    honest = QUERY.sensitivity(schema_for(protects), protects, norm)
    broken = replace(honest, bound=honest.bound * Fraction(9, 10))
    assert worst(broken, protects) > float(broken.bound)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
def test_bound_holds_for_every_outcome_on_a_grid(protects: Protects, norm: Norm) -> None:
    """The moves of one unit, computed from their definition, for 401 outcomes before and after."""
    sensitivity = QUERY.sensitivity(schema_for(protects), protects, norm)
    weight = {at.name: float(at.weight or 0) for at in sensitivity.coordinates}
    before, after = np.meshgrid(*[np.linspace(-GRID, GRID, 401).astype(np.int64)] * 2)
    power = 1 if norm == "l1" else 2

    def parts(outcome: np.ndarray, sign: int) -> dict[str, np.ndarray]:
        deficit = (GRID**2 - outcome**2) // GRID
        return {"total": outcome, "deficit": deficit, "received": 0 * outcome + sign, "product": sign * outcome}

    def size(moves: dict[str, np.ndarray]) -> np.ndarray:
        return sum(np.abs(move / weight[f"{name}_0"]) ** power for name, move in moves.items())  # type: ignore[return-value]

    limit = float(sensitivity.bound) ** power * (1 + 1e-12)
    for sign in (1, -1) if protects != "outcome" else (1,):
        one, other = parts(before, 1), parts(after, sign)
        assert size({name: one[name] - other[name] for name in one}).max() <= limit
        if protects == "record":
            sizes = (1 / weight["size_1"]) ** power
            assert (size(one) + size(other) + sizes).max() <= limit
            assert (size(one) + sizes + (1 / weight["compared"]) ** power).max() <= limit


def test_received_counted_from_zero_is_caught() -> None:
    """Counting those that received the treatment twice over: a unit that changes arms moves both counts by 2."""
    sensitivity = QUERY.sensitivity(schema_for("record"), "record", "l1")
    rest: tuple[Record, ...] = ((0, 0.25, 1), (1, 0.9, 0))

    def counted(record: Record) -> dict[str, int]:
        honest = answer((record, *rest))
        return honest | {f"received_{arm}": honest[f"received_{arm}"] + honest[f"size_{arm}"] for arm in (0, 1)}

    assert moved(sensitivity, counted((0, 1.0, 1)), counted((1, 1.0, 1))) > float(sensitivity.bound)


def test_products_at_a_quarter_of_their_weight_are_caught() -> None:
    honest = QUERY.sensitivity(schema_for("record"), "record", "l1")
    lighter = [
        replace(at, weight=at.weight / 4) if at.weight and at.name.startswith("product") else at
        for at in honest.coordinates
    ]
    broken = replace(honest, coordinates=tuple(lighter))
    assert worst(broken, "record") > float(broken.bound)


@pytest.mark.parametrize("name", ["t", "y", "nothing", ""])
def test_received_must_be_a_binary_covariate(name: str) -> None:
    with pytest.raises(QueryError, match="Binary covariate"):
        ReceivedMoments(name).sensitivity(schema_for("record"), "record", "l1")
