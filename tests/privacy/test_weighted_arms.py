"""No unit moves the weighted sums beyond their joint bound; and sums that are not clipped are caught."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, Norm, WeightedArms
from dpcausal.queries.features import Estimand
from dpcausal.queries.scores import weight_table
from dpcausal.vault.answers.weighted_arms import centred, parts
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1), dpc.Category("k", ["p", "q", "r"])],
)
QUERY = WeightedArms(["a", "k"], [0.3, -2.5, 1.0, 0.2, -0.4], "ATE", 0.1)
WEIGHTS = np.array(list(QUERY.weights.values()), dtype=float) * GRID
BOUND = {norm: float(QUERY.sensitivity(SCHEMA, "record", norm).bound) for norm in ("l1", "l2")}
NORMS: tuple[Norm, Norm] = ("l1", "l2")

Int64s = NDArray[np.int64]


def vectors(weights: Int64s, arms: Int64s, outcomes: Int64s) -> NDArray[np.float64]:
    """What units add to the six sums, each in units of its weight."""
    scaled: NDArray[np.float64] = np.array(parts(weights, arms, outcomes)).T / WEIGHTS
    return scaled


def farthest(points: NDArray[np.float64], norm: Norm) -> float:
    most = 0.0
    for point in points:
        change = np.abs(points - point)
        most = max(most, float((change.sum(axis=1) if norm == "l1" else np.linalg.norm(change, axis=1)).max()))
    return most


def every_unit(step: int) -> tuple[Int64s, Int64s, Int64s]:
    """Both arms, with weights and outcomes over a grid that holds both ends."""
    weights, outcomes = range(0, GRID + 1, GRID // step), range(-GRID, GRID + 1, GRID // step)
    units = np.array(list(itertools.product(weights, (0, 1), outcomes)), dtype=np.int64)
    return units[:, 0], units[:, 1], units[:, 2]


@pytest.mark.parametrize("norm", NORMS)
def test_bound_holds_for_all_pairs_on_a_grid(norm: Norm) -> None:
    most = farthest(vectors(*every_unit(16)), norm)
    assert 0.99 * BOUND[norm] < most <= BOUND[norm]


@pytest.mark.parametrize("norm", NORMS)
def test_search_finds_no_pair_beyond_the_bound(norm: Norm) -> None:
    chance = random.Random(3)  # noqa: S311 (a search)
    ends = [0, 1, 2, GRID // 3, GRID // 2, GRID - 1, GRID]
    drawn = [
        (
            chance.choice([*ends, chance.randint(0, GRID)]),
            chance.randint(0, 1),
            chance.choice((-1, 1)) * chance.choice(ends),
        )
        for _ in range(2_000)
    ]
    weights, arms, outcomes = np.array(drawn, dtype=np.int64).T
    assert farthest(vectors(weights, arms, outcomes), norm) <= BOUND[norm]


@pytest.mark.parametrize("centre", [-1.0, -0.3, 1e-6, 1.0])
@pytest.mark.parametrize("norm", NORMS)
def test_bound_holds_for_outcomes_from_any_centre(centre: float, norm: Norm) -> None:
    query = replace(QUERY, centre=centre)
    weights, arms, outcomes = every_unit(8)
    shifted = centred(outcomes, query.centre_ticks)
    assert np.abs(shifted).max() == GRID
    assert farthest(vectors(weights, arms, shifted), norm) <= float(query.sensitivity(SCHEMA, "record", norm).bound)


def test_centre_without_its_reach_is_caught() -> None:
    """The mutant: outcomes are moved to the centre, and not divided by how far they then reach."""
    weights, arms, outcomes = every_unit(4)
    assert farthest(vectors(weights, arms, outcomes + GRID), "l1") > 1.3 * BOUND["l1"]


def test_unclipped_weights_are_caught() -> None:
    """The mutant, the paper's algorithm as printed: a score near 0 gives a weight beyond what was paid for."""
    weights, arms, outcomes = every_unit(4)
    assert farthest(vectors(weights * 3, arms, outcomes), "l1") > 2 * BOUND["l1"]


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC", "ATO"])
def test_weights_are_those_of_the_clipped_score(estimand: Estimand) -> None:
    query = replace(QUERY, estimand=estimand)
    predictor = np.array([-9.0, -1.0, 0.0, 0.75, 9.0])
    score = np.clip(1 / (1 + np.exp(-predictor)), 0.1, 0.9)
    wanted = {
        "ATE": (1 / (1 - score), 1 / score),
        "ATT": (score / (1 - score), np.ones(5)),
        "ATC": (np.ones(5), (1 - score) / score),
        "ATO": (score, 1 - score),
    }[estimand]
    for arm, sign in ((0, 1), (1, -1)):
        table = weight_table(query.estimand, query.clip, query.largest, treated=bool(arm))
        places = np.rint((sign * predictor + 16) * 4096).astype(int)
        assert table[places] / GRID * query.largest == pytest.approx(wanted[arm], rel=1e-3)
        assert table.min() >= 0
        assert table.max() <= GRID


def table_of(n: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "t": generator.integers(0, 2, n),
            "y": generator.uniform(0, 1, n),
            "a": generator.uniform(0, 1, n),
            "k": generator.choice(["p", "q", "r"], n),
        }
    )


def test_unit_moves_the_sums_by_its_own_part_only() -> None:
    """Also across batches: every unit's part is made of integers from that unit alone."""
    table = table_of(70_000)  # more than one batch
    query, one = replace(QUERY, shrink=0.2), dpc.Guarantee(epsilon=1)
    shuffled = table.take(pa.array(np.random.default_rng(5).permutation(70_000)))
    whole, again, without = (
        exact_answer(query, SCHEMA, open_table(each, SCHEMA), one).ticks for each in (table, shuffled, table.slice(1))
    )
    alone = exact_answer(query, SCHEMA, open_table(table.slice(0, 1), SCHEMA), one).ticks
    assert whole == again
    assert {name: whole[name] - without[name] for name in whole} == alone


@pytest.mark.parametrize("centre", [0.0, -0.6])
def test_sums_are_those_of_the_formulas(centre: float) -> None:
    table = table_of(3_000)
    query = replace(QUERY, centre=centre)
    sums = exact_answer(query, SCHEMA, open_table(table, SCHEMA), dpc.Guarantee(epsilon=1)).ticks
    t, y, a = (table[name].to_numpy() for name in ("t", "y", "a"))
    k = np.array(table["k"].to_pylist())
    features = np.array([np.ones(3_000), 2 * a - 1, k == "p", k == "q", k == "r"]) / np.sqrt(3)
    score = np.clip(1 / (1 + np.exp(-np.array(QUERY.coefficients) @ features)), 0.1, 0.9)
    weight, z = np.where(t == 1, 1 / score, 1 / (1 - score)) / QUERY.largest, (2 * y - 1 - centre) / (1 + abs(centre))
    wanted = {
        "weighted_difference": (2 * t - 1) * weight * z,
        "weighted_sum": weight * z,
        "weight_difference": (2 * t - 1) * weight,
        "weight_sum": weight,
        "deficit": weight * (1 - z**2),
        "weight_square_sum": weight**2,
    }
    for name, value in wanted.items():
        assert sums[name] / GRID == pytest.approx(value.sum(), abs=0.3, rel=1e-3)
