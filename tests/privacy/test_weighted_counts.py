"""No unit moves weighted counts beyond their bound; and a bound that is too small is caught."""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, Norm, WeightedCounts, from_dict, to_dict
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.answers.weighted_counts import parts
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


def moved(one: NDArray[np.int64], other: NDArray[np.int64], norm: Norm) -> float:
    """Return how far a replaced unit moves the sums, each in its unit."""
    units = np.array([1.0] * (len(one) - 2) + [8.0, 8.0]) * GRID
    changes = (one - other) / units
    return float(np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes))


ENDS = (0, 1, 3, GRID // 3, GRID // 2, GRID // 2 + 1, 3 * GRID // 4, GRID - 1, GRID)


def one_unit(weight: int, arm: int, within: int) -> NDArray[np.int64]:
    return parts(np.array([weight]), np.array([arm]), np.array([within]), 3)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("protects", PROTECTS)
def test_bound_holds_for_all_pairs_of_units_and_is_attained(protects: Protects, norm: Norm) -> None:
    """All pairs of weights, arms and cells that a level allows; a weight of 0 is a unit outside the comparison."""
    bound = float(QUERY.sensitivity(schema_for(protects), protects, norm).bound)
    worst = 0.0
    for weight, other, arm, place in itertools.product(ENDS, ENDS, (0, 1), (0, 2)):
        if protects != "record" and arm:
            continue
        if protects == "outcome" and weight != other:
            continue
        worst = max(worst, moved(one_unit(weight, 0, 0), one_unit(other, arm, place), norm))
    assert bound * (1 - 1e-9) <= worst <= bound


def test_bound_of_one_arm_where_arms_are_private_is_caught() -> None:
    """The mutant: squares of the arm that a unit leaves, and not of the one that it joins."""
    one, other = one_unit(GRID, 0, 0), one_unit(GRID, 1, 0)
    for norm in ("l1", "l2"):
        assert moved(one, other, norm) > float(QUERY.sensitivity(schema_for(), "record_within_arm", norm).bound)


def test_unclipped_weights_are_caught() -> None:
    """The mutant: a score near 0 gives a weight beyond what was paid for."""
    bound = float(QUERY.sensitivity(schema_for(), "record", "l1").bound)
    assert moved(one_unit(3 * GRID, 0, 0), one_unit(3 * GRID, 1, 1), "l1") > bound


def test_bound_depends_neither_on_edges_nor_on_codes() -> None:
    fine = WeightedCounts(["age"], [0.0, 1.0], "ATO", 0.1, np.linspace(0.1, 9.9, 60).tolist(), "end")
    for query in (QUERY, fine, WeightedCounts(["age"], [0.0, 1.0], "ATT", 0.01, [5.0])):
        found = query.sensitivity(schema_for(), "record", "l1")
        assert found.bound == Fraction(9, 4)
        assert {at.weight for at in found.coordinates} == {Fraction(GRID), Fraction(8 * GRID)}


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


def test_unit_moves_the_sums_by_its_own_part_only() -> None:
    """Also across batches, and where it is outside the comparison."""
    table = table_of(units(70_000))
    whole, without, alone = answer(table), answer(table.slice(1)), answer(table.slice(0, 1))
    assert {name: whole[name] - without[name] for name in whole} == alone
    outside = table_of([(None, 3.0, "death", 40.0, "a"), (0, 3.0, "death", 40.0, "a")])
    assert answer(outside) == answer(outside.slice(1))
    assert sum(value > 0 for value in alone.values()) == 2


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
