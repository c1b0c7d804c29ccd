"""No unit moves the moments beyond their joint bound; wider features, and a bound for less than changes, are caught."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, Norm, RegressionMoments
from dpcausal.queries.regression_moments import FINE, WEIGHTS
from dpcausal.schema import PROTECTS, Protects
from dpcausal.sums.roots import root_above
from dpcausal.vault.answers.regression_moments import products
from dpcausal.vault.engines import ExactInts, exact_ints
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
POWERS: dict[Norm, int] = {"l1": 1, "l2": 2}
MIXED = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1), dpc.Category("k", ["p", "q", "r"]), dpc.Binary("b")],
)
CASES = list(itertools.product((True, False), PROTECTS, POWERS))

Array = NDArray[np.float64]


def plain_schema(features: int) -> dpc.Schema:
    covariates = [dpc.Real(f"x{place}", 0, 1) for place in range(features)]
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=covariates
    )


def asking(schema: dpc.Schema, *, interaction: bool) -> RegressionMoments:
    return RegressionMoments([column.name for column in schema.covariates], interaction)


class Few:
    """An engine over a few units, given as the integers that the door would make of them."""

    def __init__(self, units: NDArray[np.int64], features: int) -> None:
        names = ("treatment", "outcome", *(f"covariate_{place}" for place in range(features)))
        self.batch = dict(zip(names, units.T, strict=True))

    def fold(self, columns: Sequence[str], kernel: Callable[[Mapping[str, Any]], Any]) -> ExactInts:
        return exact_ints(kernel({name: self.batch[name] for name in columns}))


def vectors(query: RegressionMoments, schema: dpc.Schema, units: NDArray[np.int64]) -> Array:
    """What each unit (arm, outcome, covariates) adds to the answer, each number in units of its weight."""
    weights = [float(at.weight or 0) for at in query.sensitivity(schema, "record", "l1").coordinates]
    engines: list[Any] = [Few(unit[None], len(schema.covariates)) for unit in units]
    answers = [exact_answer(query, schema, engine, ONE).ticks for engine in engines]
    return np.array([list(answer.values()) for answer in answers], dtype=float) / weights


def sizes(changes: Array, norm: Norm) -> Array:
    lengths: Array = np.abs(changes).sum(axis=1) if norm == "l1" else np.linalg.norm(changes, axis=1)
    return lengths


def farthest(points: Array, units: NDArray[np.int64], protects: Protects, norm: Norm) -> float:
    """The largest move between two units that may replace each other."""
    public: dict[Protects, list[int]] = {"record": [], "record_within_arm": [0]}
    kept = public.get(protects, [0, *range(2, units.shape[1])])
    most = 0.0
    for point, unit in zip(points, units, strict=True):
        allowed = (units[:, kept] == unit[kept]).all(axis=1)
        most = max(most, float(sizes(points[allowed] - point, norm).max()))
    return most


def corners(features: int) -> NDArray[np.int64]:
    """All units whose numbers are at the ends of their ranges."""
    ends = (-GRID, GRID)
    return np.array(list(itertools.product((0, 1), *[ends] * (features + 1))))


def deficits(features: int, protects: Protects, norm: Norm) -> float:
    """What the proof adds for deficits: half of their shares."""
    kinds = [(False, 2, 0), (True, 2, 0)] + [(False, 0, 2), (True, 0, 2)] * (0 if protects == "outcome" else features)
    return sum((0.5 / WEIGHTS[kind]) ** POWERS[norm] for kind in kinds)


@pytest.mark.parametrize("features", [1, 2, 3, 4])
@pytest.mark.parametrize(("interaction", "protects", "norm"), CASES)
def test_bound_on_products_is_attained_at_corners(
    features: int, interaction: bool, protects: Protects, norm: Norm
) -> None:
    schema, units = plain_schema(features), corners(features)
    query = asking(schema, interaction=interaction)
    bound = float(query.sensitivity(schema, protects, norm).bound)
    most = farthest(vectors(query, schema, units), units, protects, norm)
    assert {"l1": 0.86, "l2": 0.98}[norm] * bound < most <= bound
    assert most ** POWERS[norm] == pytest.approx(bound ** POWERS[norm] - deficits(features, protects, norm))


@pytest.mark.parametrize("features", [1, 2, 3, 4])
@pytest.mark.parametrize(("interaction", "protects", "norm"), CASES)
def test_search_finds_no_pair_beyond_the_bound(
    features: int, interaction: bool, protects: Protects, norm: Norm
) -> None:
    """Among units anywhere, at the middle, next to ends, and where the grid of products rounds."""
    schema, generator = plain_schema(features), np.random.default_rng(features)
    query = asking(schema, interaction=interaction)
    ends = [-GRID, -GRID + FINE // 2, -1, 0, FINE // 2 - 1, FINE // 2, GRID // 2, GRID - FINE // 2 - 1, GRID]
    shape = (120, features + 1)
    anywhere = np.where(generator.random(shape) < 0.2, generator.integers(-GRID, GRID + 1, shape), 0)
    numbers = np.where(anywhere == 0, generator.choice(ends, shape), anywhere)
    if protects == "outcome":
        numbers[:, 1:] = numbers[generator.integers(0, 5, 120), 1:]  # so that units share their covariates
    units = np.column_stack([generator.integers(0, 2, 120), numbers])
    bound = float(query.sensitivity(schema, protects, norm).bound)
    assert farthest(vectors(query, schema, units), units, protects, norm) <= bound


@pytest.mark.parametrize(("interaction", "protects", "norm"), CASES)
def test_bound_holds_for_categories_and_pairs_of_values(interaction: bool, protects: Protects, norm: Norm) -> None:
    query = asking(MIXED, interaction=interaction)
    numbers = (-GRID, 0, GRID)
    units = np.array(list(itertools.product((0, 1), numbers, numbers, range(3), range(2))))
    bound = float(query.sensitivity(MIXED, protects, norm).bound)
    most = farthest(vectors(query, MIXED, units), units, protects, norm)
    assert 0.85 * bound < most <= bound


@pytest.mark.parametrize(("interaction", "protects", "norm"), CASES)
def test_half_the_bound_is_caught(interaction: bool, protects: Protects, norm: Norm) -> None:
    schema, units = plain_schema(2), corners(2)
    query = asking(schema, interaction=interaction)
    bound = float(query.sensitivity(schema, protects, norm).bound)
    assert farthest(vectors(query, schema, units), units, protects, norm) > 1.7 * bound / 2


@pytest.mark.parametrize("norm", POWERS)
def test_bound_for_outcomes_is_caught_where_records_change(norm: Norm) -> None:
    schema, units = plain_schema(4), corners(4)
    query = asking(schema, interaction=True)
    bound = float(query.sensitivity(schema, "outcome", norm).bound)
    assert farthest(vectors(query, schema, units), units, "record", norm) > 1.05 * bound


@pytest.mark.parametrize("norm", POWERS)
def test_unclipped_features_are_caught(norm: Norm) -> None:
    """A covariate half as far again from the middle as its bounds are."""
    schema, units = plain_schema(2), corners(2)
    query = asking(schema, interaction=True)
    units[:, 2:] = units[:, 2:] * 3 // 2
    bound = float(query.sensitivity(schema, "record", norm).bound)
    assert farthest(vectors(query, schema, units), units, "record", norm) > 1.1 * bound


@pytest.mark.parametrize("norm", POWERS)
def test_uncentred_numbers_are_caught(norm: Norm) -> None:
    """From 0 to 2 in place of -1 to 1: then products move twice as far, and squares lack nothing to 1."""
    schema, units = plain_schema(2), corners(2)
    query = asking(schema, interaction=True)
    units[:, 1:] += GRID
    bound = float(query.sensitivity(schema, "record", norm).bound)
    assert farthest(vectors(query, schema, units), units, "record", norm) > 1.2 * bound


@pytest.mark.parametrize("norm", POWERS)
@pytest.mark.parametrize("factors", [(2, 0), (0, 2)])
def test_signed_deficit_is_inside_the_bound_for_a_change_of_arms(norm: Norm, factors: tuple[int, int]) -> None:
    """A signed deficit can move twice as far as a plain one, while the plain one does not; the proof relies on this."""
    plain, signed = (Fraction(1, 2 * WEIGHTS[(sign, *factors)]) ** POWERS[norm] for sign in (False, True))
    assert 2 ** POWERS[norm] * signed <= plain + signed


def test_rounding_keeps_every_number_within_its_ticks() -> None:
    every = np.arange(-GRID, GRID + 1)
    rounded = (every + GRID // FINE // 2) // (GRID // FINE)
    assert (rounded.min(), rounded.max()) == (-FINE, FINE)
    ends = products(every[[0, -1]], [every[[0, -1]]], np.array([0, 1]))
    assert ends[0].tolist() == [[2 * FINE**2, 0, 0], [0, 2 * FINE**2, 2 * FINE**2], [0, 2 * FINE**2, 2 * FINE**2]]


@pytest.mark.parametrize(("features", "units"), [(80, 0), (80, 1), (80, 3_001), (12, 65_536)])
@pytest.mark.parametrize("largest", [True, False])
def test_products_in_floating_point_are_exact(features: int, units: int, largest: bool) -> None:
    generator = np.random.default_rng(units)
    shape = (features + 1, units)
    numbers = generator.choice([-GRID, GRID], shape) if largest else generator.integers(-GRID, GRID + 1, shape)
    arms = generator.integers(0, 2, units)
    rounded = (np.vstack([np.full(units, GRID), numbers]) + 512) // 1024
    wanted = np.array([rounded @ rounded.T, (rounded * (2 * arms - 1)) @ rounded.T])
    found = products(numbers[0], list(numbers[1:]), arms)
    assert (found == wanted).all()
    assert np.abs(found).max(initial=0) <= units * FINE**2  # below 2^62 for fewer than 2^41 units


def test_products_of_fractions_depend_on_the_order() -> None:
    """The mutant: the same sums of numbers that floating point has to round."""
    numbers = np.random.default_rng(0).uniform(-1, 1, 60_000)
    orders = [np.random.default_rng(seed).permutation(60_000) for seed in range(8)]
    assert len({float(numbers[order] @ numbers[order]) for order in orders}) > 1


@pytest.mark.parametrize(
    "number", [Fraction(2), Fraction(1, 3), Fraction(49, 4), Fraction(10**30, 7), Fraction(1, 10**30)]
)
def test_root_above_is_not_below_the_root(number: Fraction) -> None:
    assert number <= root_above(number) ** 2 <= number * (1 + Fraction(1, 10**9)) + Fraction(1, 10**20)


def table_of(n: int) -> pa.Table:
    generator = np.random.default_rng(0)
    return pa.table(
        {
            "t": generator.integers(0, 2, n),
            "y": generator.uniform(0, 1, n),
            "a": generator.uniform(0, 1, n),
            "k": generator.choice(["p", "q", "r"], n),
            "b": generator.integers(0, 2, n),
        }
    )


def test_unit_moves_the_sums_by_its_own_part_only() -> None:
    table = table_of(70_000)  # more than one batch
    query = asking(MIXED, interaction=True)
    shuffled = table.take(pa.array(np.random.default_rng(5).permutation(70_000)))
    whole, again, without, alone = (
        exact_answer(query, MIXED, open_table(each, MIXED), ONE).ticks
        for each in (table, shuffled, table.slice(1), table.slice(0, 1))
    )
    assert whole == again
    assert {name: whole[name] - without[name] for name in whole} == alone


@pytest.mark.parametrize("interaction", [True, False])
def test_sums_are_those_of_the_formulas(interaction: bool) -> None:
    table = table_of(3_000)
    query = asking(MIXED, interaction=interaction)
    sums = exact_answer(query, MIXED, open_table(table, MIXED), ONE).ticks
    t, y, a, b = (table[name].to_numpy() for name in ("t", "y", "a", "b"))
    k = np.array(table["k"].to_pylist())
    sign, numbers = 2 * t - 1, {"outcome": 2 * y - 1, "a": 2 * a - 1, "b": 2 * b - 1}
    numbers |= {f"k={value}": np.where(k == value, 1.0, -1.0) for value in "qr"}
    wanted = {"arm": sign} | {f"arm * {name}": sign * number for name, number in numbers.items()} | numbers
    squares = {f"deficit of {name}": 1 - number**2 for name, number in numbers.items()}
    order = ["outcome", "a", "k=q", "k=r", "b"]
    squares |= {f"{one} * {two}": numbers[one] * numbers[two] for one, two in itertools.combinations(order, 2)}
    wanted |= squares | ({f"arm * {name}": sign * each for name, each in squares.items()} if interaction else {})
    assert set(sums) == set(wanted)
    assert set(sums) == {at.name for at in query.sensitivity(MIXED, "record", "l1").coordinates}
    for name, each in wanted.items():
        assert sums[name] / FINE**2 == pytest.approx(each.sum(), abs=0.2)  # numbers are rounded to 1 / 1024


def test_features_have_the_names_of_the_moments() -> None:
    batch = {"treatment": np.zeros(2, int), "covariate_0": np.array([5, -5]), "covariate_1": np.array([0, 2])}
    design = Features(["k", "a"], MIXED).design(batch)
    assert [line.tolist() for line in design] == [[-GRID, -GRID], [-GRID, GRID], [5, -5]]
    assert RegressionMoments(["k", "a"]).moments(MIXED)[-1].second == 1 + len(design)
