"""Weighted counts are those of the formulas, and parameters that do not fit are refused."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, WeightedCounts, from_dict, to_dict
from dpcausal.schema import Protects
from dpcausal.vault.table import open_table

KINDS = ["censored", "relapse", "death"]
QUERY = WeightedCounts(["age", "site"], [0.3, -2.5, 1.0], "ATE", 0.1, [2.0, 5.0, 10.0], "end")
ONE = dpc.Guarantee(epsilon=1)
Unit = tuple[int | None, float, str, float, str]


def schema_for(protects: Protects = "record", undeclared: int | None = None) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=undeclared),
        outcome=dpc.Real("time", 0, 10, missing=5),
        covariates=[
            dpc.Category("end", KINDS, missing="censored"),
            dpc.Real("age", 20, 80),
            dpc.Category("site", ["a", "b"]),
        ],
        protects=protects,
    )


def table_of(units: Sequence[Unit]) -> pa.Table:
    return pa.table(dict(zip(("t", "time", "end", "age", "site"), map(list, zip(*units, strict=True)), strict=True)))


def answer(table: pa.Table, query: WeightedCounts = QUERY) -> dict[str, int]:
    schema = schema_for()
    ticks = exact_answer(query, schema, open_table(table, schema), ONE).ticks
    assert list(ticks) == [at.name for at in query.sensitivity(schema, "record", "l1").coordinates]
    return dict(ticks)


ENDS = (0, 1, 3, GRID // 3, GRID // 2, GRID // 2 + 1, 3 * GRID // 4, GRID - 1, GRID)


def units(n: int, seed: int = 0) -> list[Unit]:
    random = np.random.default_rng(seed)
    return [
        (int(random.integers(0, 2)), float(random.uniform(0, 12)), KINDS[random.integers(3)], age, "ab"[at % 2])
        for at, age in enumerate(random.uniform(15, 85, n).tolist())
    ]


def test_sums_are_those_of_the_formulas() -> None:
    table = table_of(units(3_000))
    sums = answer(table)
    t, time, age = (table[name].to_numpy() for name in ("t", "time", "age"))
    end, site = (np.array(table[name].to_pylist()) for name in ("end", "site"))
    features = np.array([np.ones(len(t)), (np.clip(age, 20, 80) - 50) / 30, 2.0 * (site == "b") - 1]) / np.sqrt(3)
    score = np.clip(1 / (1 + np.exp(-np.array(QUERY.coefficients) @ features)), 0.1, 0.9)
    weights = np.where(t == 1, 1 / score, 1 / (1 - score)) / QUERY.largest
    place = np.searchsorted(QUERY.edges, time, side="right")
    for arm in (0, 1):
        for at, (kind, name) in itertools.product(range(3), enumerate(KINDS)):
            wanted = weights[(t == arm) & (place == at) & (end == name)].sum()
            assert sums[f"count_{arm}_{at}_{kind}"] / GRID == pytest.approx(wanted, rel=1e-3)
        assert sums[f"beyond_{arm}"] / GRID == pytest.approx(weights[(t == arm) & (place == 3)].sum(), rel=1e-3)
        assert sums[f"squares_{arm}"] / GRID == pytest.approx((weights[t == arm] ** 2).sum(), rel=1e-3)


def test_wrong_parameters_are_refused() -> None:
    values: tuple[dict[str, Any], ...] = (
        {"edges": []},
        {"edges": [5.0, 2.0]},
        {"edges": np.linspace(0.1, 9.9, 61).tolist()},
        {"clip": 0.5},
        {"estimand": "ate"},
        {"event": "age"},
    )
    for change in values:
        with pytest.raises(QueryError):
            from_dict(to_dict(QUERY) | change)
    unsuitable: tuple[dict[str, Any], ...] = ({"coefficients": [0.0]}, {"edges": [5.0, 11.0]}, {"event": "nothing"})
    for change in unsuitable:
        with pytest.raises(QueryError):
            from_dict(to_dict(QUERY) | change).sensitivity(schema_for(), "record", "l1")
    assert from_dict(to_dict(QUERY)) == QUERY
    binary = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Binary("y"), covariates=[dpc.Real("age", 0, 1)])
    assert WeightedCounts.examples(binary) == ()
