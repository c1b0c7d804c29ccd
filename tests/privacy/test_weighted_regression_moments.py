"""No unit moves weighted sums of products beyond their joint bound; and sums with less noise than that are caught."""

import importlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, Norm, RegressionMoments, WeightedRegressionMoments
from dpcausal.queries.regression_moments import FINE, FIRST_FEATURE
from dpcausal.queries.weighted_regression_moments import SIGNED, WHOLE, deficit_name, sum_name
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import Schema
from dpcausal.sums.evaluation import evaluate
from dpcausal.vault.engines import ExactInts, exact_ints

ONE = dpc.Guarantee(epsilon=1)
NORMS: tuple[Norm, Norm] = ("l1", "l2")
MODULE = importlib.import_module("dpcausal.vault.answers.weighted_regression_moments")
NUMBERS: list[Column] = [dpc.Real("a", 0, 1), dpc.Real("b", 0, 1), dpc.Real("c", 0, 1)]
COLUMNS: dict[str, list[Column]] = {
    "one number": NUMBERS[:1],
    "three numbers": NUMBERS,
    "one of two": [dpc.Binary("s")],
    "one of five": [dpc.Category("k", list("pqrst"))],
    "all sorts": [*NUMBERS[:2], dpc.Binary("s"), dpc.Category("k", ["p", "q", "r"])],
}
CASES = [*itertools.product(COLUMNS, (False, True))]

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]


def schema_of(name: str, *, leaving: bool) -> Schema:
    """A schema whose units may leave the comparison, or may not."""
    treatment = dpc.Treatment("t") if leaving else dpc.Treatment("t", undeclared=0)
    outcome = dpc.Real("y", 0, 1) if leaving else dpc.Real("y", 0, 1, missing=0.5)
    return Schema(treatment=treatment, outcome=outcome, covariates=COLUMNS[name])


def asking(name: str) -> WeightedRegressionMoments:
    return WeightedRegressionMoments([column.name for column in COLUMNS[name]])


class Few:
    """An engine over a few units, given as the integers that the door would make of them."""

    def __init__(self, units: Ticks) -> None:
        names = ("treatment", "outcome", *(f"covariate_{place}" for place in range(units.shape[1] - 2)))
        self.batch = dict(zip(names, units.T, strict=True))

    def fold(self, columns: Sequence[str], kernel: Callable[[Mapping[str, Any]], Any]) -> ExactInts:
        return exact_ints(kernel({name: self.batch[name] for name in columns}))


def added(name: str, units: Ticks, *, leaving: bool) -> Array:
    """What each unit (arm, outcome, covariates) adds to the answer; the last line is of one outside the comparison."""
    query, schema = asking(name), schema_of(name, leaving=leaving)
    engines: list[Any] = [Few(unit[None]) for unit in units]
    lines = [list(exact_answer(query, schema, engine, ONE).ticks.values()) for engine in engines]
    return np.array([*lines, *([[0] * len(lines[0])] if leaving else [])], dtype=float)


def share(name: str, points: Array, norm: Norm, *, leaving: bool) -> float:
    """The largest move between two of some units as a share of the bound: more than 1 is a broken promise."""
    query = asking(name)
    sensitivity = query.sensitivity(schema_of(name, leaving=leaving), "record", norm)
    points = np.unique(points / [float(at.weight or 0) for at in sensitivity.coordinates], axis=0)
    changes = (np.abs(points - point) for point in points)
    most = max((each.sum(axis=1) if norm == "l1" else np.linalg.norm(each, axis=1)).max() for each in changes)
    return float(most) / float(sensitivity.bound)


def units(name: str, seed: int, count: int = 150) -> Ticks:
    """Units at ends, where weights begin to fall, and anywhere."""
    generator = np.random.default_rng(seed)
    edge = int(GRID / 2.6)
    ends = [-GRID, -edge - 700, -edge, -GRID // 4, 0, 511, GRID // 3, edge, edge + 700, GRID]
    columns = [generator.integers(0, 2, count), generator.choice([-GRID, -GRID, 0, GRID, GRID], count)]
    for column in COLUMNS[name]:
        if isinstance(column, dpc.Real):
            drawn = generator.integers(-GRID, GRID + 1, count)
            columns.append(np.where(generator.random(count) < 0.7, generator.choice(ends, count), drawn))
        else:
            columns.append(generator.integers(0, len(column.values), count))
    return np.column_stack(columns)


@cache
def case(name: str, *, leaving: bool) -> Array:
    return added(name, units(name, 0), leaving=leaving)


@pytest.mark.parametrize(("name", "leaving"), CASES)
def test_bound_holds_for_all_pairs(name: str, leaving: bool) -> None:
    for norm in NORMS:
        assert share(name, case(name, leaving=leaving), norm, leaving=leaving) <= 1


@pytest.mark.parametrize("name", COLUMNS)
def test_bound_is_not_loose(name: str) -> None:
    """Units of different arms move products as far as can be, and features at opposite ends as well."""
    points = case(name, leaving=False)
    assert share(name, points, "l2", leaving=False) > 0.97
    assert share(name, points, "l1", leaving=False) > 0.4


@st.composite
def any_pair(draw: st.DrawFn) -> tuple[str, Ticks]:
    name = draw(st.sampled_from(sorted(COLUMNS)))
    tick = st.integers(-GRID, GRID)
    cells = [
        tick if isinstance(column, dpc.Real) else st.integers(0, len(column.values) - 1) for column in COLUMNS[name]
    ]
    unit = st.tuples(st.integers(0, 1), tick, *cells)
    return name, np.array(draw(st.lists(unit, min_size=2, max_size=5)))


@settings(max_examples=60)
@given(any_pair(), st.booleans())
def test_search_finds_no_units_beyond_the_bound(drawn: tuple[str, Ticks], leaving: bool) -> None:
    name, found = drawn
    points = added(name, found, leaving=leaving)
    for norm in NORMS:
        assert share(name, points, norm, leaving=leaving) <= 1


def moved(points: Array, weights: Array) -> float:
    return float(np.linalg.norm((points[0] - points[1]) / weights))


@pytest.mark.parametrize("name", ["three numbers", "all sorts"])
def test_climbing_finds_no_neighbours_beyond_the_bound(name: str) -> None:
    """From drawn pairs uphill, one cell at a time: within the bound, and nearly there."""
    sensitivity = asking(name).sensitivity(schema_of(name, leaving=False), "record", "l2")
    weights = np.array([float(at.weight or 0) for at in sensitivity.coordinates])
    generator, most = np.random.default_rng(2), 0.0
    for start in range(3):
        pair = units(name, 10 + start, 2)
        best = moved(added(name, pair, leaving=False), weights)
        for _ in range(250):
            other = pair.copy()
            line, place = generator.integers(2), generator.integers(pair.shape[1])
            other[line, place] = units(name, int(generator.integers(10**6)), 1)[0, place]
            if (found := moved(added(name, other, leaving=False), weights)) > best:
                pair, best = other, found
        most = max(most, best)
    assert 0.97 * float(sensitivity.bound) < most <= float(sensitivity.bound)


def test_products_of_two_units_never_point_apart() -> None:
    """The argument by itself: for signs s and t, (1 + k² s t) (u · v)² is at least 0, so moves are at most √2 long."""
    generator = np.random.default_rng(0)
    for _ in range(2_000):
        k = float(SIGNED)
        u, v = generator.normal(size=(2, 4))
        s, t = generator.choice([-1, 1], 2)
        first, second = (
            np.r_[np.outer(w, w).ravel(), k * sign * np.outer(w, w).ravel()] for w, sign in ((u, s), (v, t))
        )
        assert first @ second == pytest.approx((1 + k * k * s * t) * (u @ v) ** 2, abs=1e-9)
        assert first @ second >= -1e-9


def lines_and_weights(name: str, found: Ticks) -> tuple[Ticks, Ticks]:
    query, schema = asking(name), schema_of(name, leaving=False)
    lines = evaluate(query.lines(schema), Few(found).batch)
    return lines, MODULE.weights(query, schema, lines)


def length(name: str, lines: Ticks) -> list[Fraction]:
    """The exact squared length of each unit's sized numbers, in ticks²."""
    sizes = asking(name).sizes(schema_of(name, leaving=False))
    return [
        sum((Fraction(int(line) ** 2 * size, FINE**2) for line, size in zip(unit, sizes, strict=True)), Fraction(0))
        for unit in lines.T
    ]


@pytest.mark.parametrize("name", COLUMNS)
def test_no_weighted_unit_is_longer_than_declared(name: str) -> None:
    """With its rounding; and a unit with the outcome at an end and a weight below 1 is hardly shorter."""
    most = asking(name).most(schema_of(name, leaving=False))
    lines, weights = lines_and_weights(name, units(name, 3, 2_000))
    lengths = [int(weight) * each for weight, each in zip(weights, length(name, lines), strict=True)]
    assert max(lengths) <= WHOLE * most
    assert max(lengths) > WHOLE * most * Fraction(995, 1000)


def test_weights_rounded_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a weight one tick too large."""
    monkeypatch.setattr(MODULE, "weights", lambda *given, of=MODULE.weights: np.minimum(of(*given) + 1, WHOLE))
    name = "three numbers"
    lines, weights = lines_and_weights(name, units(name, 3, 2_000))
    lengths = [int(weight) * each for weight, each in zip(weights, length(name, lines), strict=True)]
    assert max(lengths) > WHOLE * asking(name).most(schema_of(name, leaving=False))


def test_weights_depend_on_features_alone() -> None:
    """So that weighted least squares is right where least squares is."""
    name = "all sorts"
    found = units(name, 4)
    other = found.copy()
    other[:, 0], other[:, 1] = 1 - other[:, 0], -other[:, 1] // 3
    weights = lines_and_weights(name, found)[1]
    assert (weights == lines_and_weights(name, other)[1]).all()
    assert len(set(weights.tolist())) > 20
    assert weights.max() == WHOLE


def test_sums_are_those_of_the_formula() -> None:
    name = "all sorts"
    found = units(name, 5, 60)
    query, schema = asking(name), schema_of(name, leaving=True)
    engine: Any = Few(found)
    answer = exact_answer(query, schema, engine, ONE).ticks
    lines, weights = lines_and_weights(name, found)
    sign = 2 * found[:, 0] - 1
    for moment, at in zip(query.moments(schema), query.names(schema), strict=True):
        product = lines[moment.first] * lines[moment.second] * weights * (sign if moment.signed else 1)
        assert answer[at] == product.sum()
    names = RegressionMoments(query.covariates).numbers(schema)[FIRST_FEATURE:]
    assert [answer[sum_name(each)] for each in names] == lines[FIRST_FEATURE:].sum(axis=1).tolist()
    deficits = [FINE**2 - lines[place] ** 2 for place in (FIRST_FEATURE, FIRST_FEATURE + 1)]
    assert [answer[deficit_name(each)] for each in ("a", "b")] == [each.sum() for each in deficits]
    assert answer["compared"] == len(found)


@pytest.mark.parametrize("norm", NORMS)
def test_units_without_weights_are_caught(norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "weights", lambda *given: np.full(given[-1].shape[1], WHOLE))
    name = "three numbers"
    points = added(name, units(name, 0), leaving=False)
    assert share(name, points, norm, leaving=False) > 1.1


def test_weights_that_forget_the_outcome_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the length of the constant and the features alone."""
    sizes = WeightedRegressionMoments.sizes

    def forgetful(query: Any, schema: Any, lines: Any) -> Any:
        own = np.array(sizes(query, schema))
        squares = lines[FIRST_FEATURE:] ** 2 * own[FIRST_FEATURE:, None]
        return np.minimum(WHOLE, WHOLE * query.most(schema) // (own[0] + squares.sum(axis=0) // FINE**2))

    monkeypatch.setattr(MODULE, "weights", forgetful)
    name = "three numbers"
    assert share(name, added(name, units(name, 0), leaving=False), "l2", leaving=False) > 1.05


def test_products_of_two_numbers_need_no_less_noise() -> None:
    """Released once, a product that stands twice in the matrix counts once: with less for its noise it is caught."""
    name, points = "all sorts", case("all sorts", leaving=False).copy()
    query, schema = asking(name), schema_of(name, leaving=False)
    mixed = [place for place, each in enumerate(query.moments(schema)) if each.first != each.second]
    points[:, mixed] *= 2**0.5
    assert share(name, points, "l2", leaving=False) > 1.1


def test_signed_sums_need_no_less_noise() -> None:
    name, points = "all sorts", case("all sorts", leaving=False).copy()
    query, schema = asking(name), schema_of(name, leaving=False)
    signed = [place for place, each in enumerate(query.moments(schema)) if each.signed]
    points[:, signed] *= 2  # the noise of plain ones
    assert share(name, points, "l2", leaving=False) > 1.1


@pytest.mark.parametrize("norm", NORMS)
def test_half_the_bound_is_caught(norm: Norm) -> None:
    assert share("all sorts", case("all sorts", leaving=False), norm, leaving=False) > 1.05 / 2


def test_sums_of_features_need_their_part_of_the_bound() -> None:
    """The mutant: a tenth of their noise. They are sums of their own, which weights do not bound."""
    name = "three numbers"
    points = case(name, leaving=False).copy()
    points[:, -2 * len(COLUMNS[name]) : -len(COLUMNS[name])] *= 10
    assert share(name, points, "l2", leaving=False) > 1.5


def test_deficits_of_features_need_as_much() -> None:
    """They are next to free, because a unit that moves a feature most does not move its square."""
    ends = np.linspace(-1, 1, 401)
    x, y = np.meshgrid(ends, ends)
    for weight, holds in ((0.5, True), (0.3, False)):  # their squared noise beside that of the feature
        assert bool(((x - y) ** 2 + (x**2 - y**2) ** 2 / weight).max() <= 4 + 1e-12) is holds
        assert bool((x**2 + (1 - x**2) ** 2 / weight).max() <= 2 + 1e-12) is holds
    assert (np.abs(x - y) + np.abs(x**2 - y**2) / 0.7072).max() <= 2.6
    assert (np.abs(x) + (1 - x**2) / 0.7072).max() <= 1.6


def test_bound_of_every_schema_allows_for_leaving() -> None:
    """One unit's part is no longer than the bound, the number of units included."""
    for name in COLUMNS:
        points = case(name, leaving=True)
        assert (points[-1] == 0).all()
        for norm in NORMS:
            sensitivity = asking(name).sensitivity(schema_of(name, leaving=True), "record", norm)
            weights = np.array([float(at.weight or 0) for at in sensitivity.coordinates])
            sized = np.abs(points / weights)
            most = (sized.sum(axis=1) if norm == "l1" else np.linalg.norm(sized, axis=1)).max()
            assert 0 < most <= float(sensitivity.bound)


def test_scores_on_a_scale_are_bounded_alike() -> None:
    """A scale changes which ticks a value has, and nothing about the bound."""
    plain = schema_of("three numbers", leaving=False)
    numbers = [dpc.Real(column.name, 0, 1, typical=(0.4, 0.6)) for column in NUMBERS]
    typical = replace(plain, covariates=numbers)
    for norm in NORMS:
        bounds = {asking("three numbers").sensitivity(each, "record", norm).bound for each in (plain, typical)}
        assert len(bounds) == 1
