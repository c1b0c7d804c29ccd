"""No unit moves outcome, covariates and products beyond their joint bound; bounds that are too small are caught."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, CovariateMoments, Norm
from dpcausal.vault.answers.covariate_moments import parts
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Category("k", ["p", "q", "r"]), dpc.Real("a", 0, 1), dpc.Binary("s")],
)
ONE = dpc.Guarantee(epsilon=1)
NORMS: tuple[Norm, Norm] = ("l1", "l2")
BLOCKS: dict[str, list[list[int]]] = {
    "a": [[x] for x in range(-GRID, GRID + 1, GRID // 8)],
    "s": [[-GRID], [GRID]],
    "k": [[GRID * (place == other) for other in range(3)] for place in range(3)],
}
"""The features that a unit can have of each covariate."""


@cache
def vectors(covariates: str, norm: Norm, widest: int = 1) -> NDArray[np.float64]:
    """What units from a grid with all ends add, each number in its unit; numbers may go beyond their bounds."""
    sensitivity = CovariateMoments(list(covariates)).sensitivity(SCHEMA, "record", norm)
    weights = np.array([float(at.weight or 0) for at in sensitivity.coordinates])
    outcomes = (-GRID, -GRID // 3, 0, GRID)
    blocks = list(itertools.product(*(BLOCKS[name] for name in covariates)))
    units = [(z, [x * widest for block in each for x in block]) for z in outcomes for each in blocks]
    squared = [place for place, name in enumerate(_features(covariates)) if name == "a"]
    lines = np.array([features for _, features in units], dtype=np.int64).T
    scaled: NDArray[np.float64] = parts(np.array([z for z, _ in units], dtype=np.int64), lines, squared).T / weights
    return scaled


def _features(covariates: str) -> list[str]:
    return [name for name in covariates for _ in BLOCKS[name][0]]


def farthest(points: NDArray[np.float64], norm: Norm) -> float:
    changes = (np.abs(points - point) for point in points)
    return max(
        float((change.sum(axis=1) if norm == "l1" else np.linalg.norm(change, axis=1)).max()) for change in changes
    )


def bound(covariates: str, norm: Norm) -> float:
    return float(CovariateMoments(list(covariates)).sensitivity(SCHEMA, "record", norm).bound)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("covariates", ["a", "s", "k", "as", "ak", "ask"])
def test_bound_holds_for_all_pairs_on_a_grid(covariates: str, norm: Norm) -> None:
    assert farthest(vectors(covariates, norm), norm) <= bound(covariates, norm)


@pytest.mark.parametrize(("covariates", "norm", "share"), [("as", "l1", 0.88), ("as", "l2", 0.96), ("k", "l1", 0.99)])
def test_bound_is_not_loose(covariates: str, norm: Norm, share: float) -> None:
    most = farthest(vectors(covariates, norm), norm)
    assert most > share * bound(covariates, norm)
    assert most > bound(covariates[:-1] or "a", norm) * (0.9 if len(covariates) == 1 else 1)  # one covariate less


def test_numbers_beyond_their_bounds_are_caught() -> None:
    """The mutant: values that are not clipped to the schema."""
    assert farthest(vectors("a", "l1", 2), "l1") > 1.5 * bound("a", "l1")


@pytest.mark.parametrize("norm", NORMS)
def test_search_finds_no_pair_beyond_the_bound(norm: Norm) -> None:
    chance = np.random.default_rng(4)
    ends = np.array([-GRID, -GRID + 1, -1, 0, 1, GRID // 3, GRID - 1, GRID])
    drawn = np.where(chance.random((1_500, 3)) < 0.7, chance.choice(ends, (1_500, 3)), chance.integers(-GRID, GRID))
    weights = np.array([2.0, 1, 1, 1, 1, 1, 1]) * GRID
    points = parts(drawn[:, 0], drawn[:, 1:].T, [0, 1]).T / weights
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("a", 0, 1), dpc.Real("b", 0, 1)],
    )
    assert farthest(points, norm) <= float(CovariateMoments(["a", "b"]).sensitivity(schema, "record", norm).bound)


def table_of(n: int) -> pa.Table:
    generator = np.random.default_rng(0)
    return pa.table(
        {
            "t": generator.integers(0, 2, n),
            "y": generator.uniform(0, 1, n),
            "a": generator.uniform(0, 1, n),
            "k": generator.choice(["p", "q", "r"], n),
            "s": generator.integers(0, 2, n),
        }
    )


def test_sums_are_those_of_the_formulas() -> None:
    table, query = table_of(3_000), CovariateMoments(["k", "a", "s"])
    sums = exact_answer(query, SCHEMA, open_table(table, SCHEMA), ONE).ticks
    y, a, s = (table[name].to_numpy() for name in ("y", "a", "s"))
    z, x, pair = 2 * y - 1, 2 * a - 1, 2 * s - 1
    is_q = np.array(table["k"].to_pylist()) == "q"
    wanted = {
        "outcome": z,
        "total of a": x,
        "total of s": pair,
        "total of k=q": is_q,
        "outcome * a": z * x,
        "outcome * s": z * pair,
        "outcome * k=q": z * is_q,
        "deficit of a": 1 - x**2,
    }
    for name, value in wanted.items():
        assert sums[name] / GRID == pytest.approx(value.sum(), abs=0.3)
    assert sums["compared"] == 3_000


def test_unit_moves_the_sums_by_its_own_part_only() -> None:
    table, query = table_of(70_000), CovariateMoments(["k", "a", "s"])  # more than one batch
    whole, without, alone = (
        exact_answer(query, SCHEMA, open_table(each, SCHEMA), ONE).ticks
        for each in (table, table.slice(1), table.slice(0, 1))
    )
    assert {name: whole[name] - without[name] for name in whole} == alone


def test_cost_does_not_depend_on_the_number_of_values() -> None:
    assert bound("k", "l1") == bound("a", "l1") == float(Fraction(5) + Fraction(4, GRID))


def test_features_have_a_limit() -> None:
    many = dpc.Schema(
        treatment=dpc.Treatment("t"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Category("k", list(range(300)))],
    )
    with pytest.raises(QueryError, match="at most 200"):
        CovariateMoments(["k"]).sensitivity(many, "record", "l1")
