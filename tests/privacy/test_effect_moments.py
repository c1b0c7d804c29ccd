"""No unit moves the sums of products beyond their joint bound; and sums with less noise than that are caught."""

import importlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, Basis, Cells, Cut, EffectMoments, Fourier, Norm, Polynomial, Spline
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.models import Learner
from dpcausal.schema.schema import PROTECTS
from dpcausal.vault.answers.effect_moments import sums
from dpcausal.vault.engines import ExactInts, exact_ints
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.residuals import Residuals, times, within
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
NORMS: tuple[Norm, Norm] = ("l1", "l2")
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1), dpc.Category("k", ["p", "q", "r"])],
)
BASES: dict[str, Basis] = {
    "line": Polynomial(["a"]),
    "squares": Polynomial(["a", "k"], 2),
    "splines": Spline(["a", "k"]),
    "one wave": Fourier(["a"], 0.4, 1),
    "waves": Fourier(["a", "k"], 0.5, 5),
    "groups": Cells([Cut("k")]),
}
MODELS = [
    ([0.0] * 5, [0.0] * 5, [0.0] * 5),
    ([0.3, -2.5, 1.0, 0.2, -0.4], [0.1, 0.5, -0.3, 0.2, 0.1], [0.4, 0.2, 0.1, -0.6, 0.3]),
    ([2e20, -2e20, 5.0, 0.0, -2e20], [-2e20, 2e20, 1.0, 2e20, 0.0], [2e20, 2e20, -1.0, 0.0, -2e20]),
]
LEARNERS: tuple[Learner, Learner] = ("residual", "augmented")
HALF = GRID // 2
MODULE = importlib.import_module("dpcausal.vault.answers.effect_moments")  # its name is that of a function in it

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]


def asking(basis: Basis, learner: Learner, models: int = 0, clip: float = 0.05, limit: float = 0.5) -> EffectMoments:
    return EffectMoments(["a", "k"], *MODELS[models], basis, learner, clip, limit)


class Few:
    """An engine over a few units, given as the integers that the door would make of them."""

    def __init__(self, units: Ticks) -> None:
        names = ("treatment", "outcome", *(f"covariate_{place}" for place in range(units.shape[1] - 2)))
        self.batch = dict(zip(names, units.T, strict=True))

    def fold(self, columns: Sequence[str], kernel: Callable[[Mapping[str, Any]], Any]) -> ExactInts:
        return exact_ints(kernel({name: self.batch[name] for name in columns}))


def added(query: EffectMoments, units: Ticks) -> Array:
    """What each unit (arm, outcome, covariates) adds to the answer."""
    engines: list[Any] = [Few(unit[None]) for unit in units]
    answers = [exact_answer(query, SCHEMA, engine, ONE).ticks for engine in engines]
    return np.array([list(answer.values()) for answer in answers], dtype=float)


def share(query: EffectMoments, points: Array, norm: Norm) -> float:
    """The largest move between two of some units as a share of the bound: more than 1 is a broken promise."""
    sensitivity = query.sensitivity(SCHEMA, "record", norm)
    points = np.unique(points / [float(at.weight or 0) for at in sensitivity.coordinates], axis=0)
    changes = (np.abs(points - point) for point in points)
    most = max((each.sum(axis=1) if norm == "l1" else np.linalg.norm(each, axis=1)).max() for each in changes)
    return float(most) / float(sensitivity.bound)


@cache
def units_of(seed: int) -> Ticks:
    """Units at ends, at middles and next to them, and anywhere."""
    generator = np.random.default_rng(seed)
    listed = itertools.product((0, 1), (-GRID, -HALF, HALF, GRID), (-GRID, 0, GRID // 4, HALF, GRID), (0, 2))
    ends = [-GRID, -1, 0, 1, GRID // 3, GRID - 1, GRID]
    numbers = np.where(generator.random((20, 2)) < 0.5, generator.choice(ends, (20, 2)), 0)
    numbers = np.where(numbers == 0, generator.integers(-GRID, GRID + 1, (20, 2)), numbers)
    others = np.column_stack([generator.integers(0, 2, 20), numbers, generator.integers(0, 3, 20)])
    return np.vstack([np.array(list(listed)), others])


@cache
def case(name: str, learner: Learner, models: int) -> tuple[EffectMoments, Array]:
    """A query, and what each of some units adds to its answer."""
    query = asking(BASES[name], learner, models, clip=(0.05, 0.3, 0.001)[models], limit=(0.5, 2.0, 0.5)[models])
    return query, added(query, units_of(0))


@pytest.mark.parametrize("models", range(len(MODELS)))
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", BASES)
def test_bound_holds_for_all_pairs(name: str, learner: Learner, models: int) -> None:
    for norm in NORMS:
        assert share(*case(name, learner, models), norm) <= 1


@pytest.mark.parametrize(
    ("name", "learner", "norm", "least"),
    [
        ("one wave", "augmented", "l2", 0.98),
        ("one wave", "residual", "l2", 0.98),
        ("splines", "augmented", "l2", 0.98),
        ("squares", "residual", "l2", 0.97),
        ("groups", "augmented", "l2", 0.99),
        ("groups", "residual", "l2", 0.99),
        ("groups", "augmented", "l1", 0.99),
        ("splines", "residual", "l1", 0.97),
        ("line", "residual", "l1", 0.7),
        ("waves", "augmented", "l1", 0.6),
    ],
)
def test_bound_is_not_loose(name: str, learner: Learner, norm: Norm, least: float) -> None:
    """Models that say the middle, or that are far off, and outcomes at ends."""
    assert least < max(share(*case(name, learner, models), norm) for models in range(len(MODELS))) <= 1


@st.composite
def any_query(draw: st.DrawFn) -> EffectMoments:
    number = st.floats(-1e7, 1e7) | st.floats(-3, 3)
    propensity, control, treated = (draw(st.lists(number, min_size=5, max_size=5)) for _ in range(3))
    basis, learner = BASES[draw(st.sampled_from(sorted(BASES)))], draw(st.sampled_from(LEARNERS))
    clip, limit = draw(st.sampled_from([0.001, 0.1, 0.499])), draw(st.sampled_from([0.5, 0.7, 3.0, 1e4]))
    return EffectMoments(["a", "k"], propensity, control, treated, basis, learner, clip, limit)


ANY_UNIT = st.tuples(st.integers(0, 1), *[st.integers(-GRID, GRID)] * 2, st.integers(0, 2))


@settings(max_examples=50)
@given(any_query(), st.lists(ANY_UNIT, min_size=2, max_size=6))
def test_search_finds_no_models_or_units_beyond_the_bound(query: EffectMoments, units: list[tuple[int, ...]]) -> None:
    points = added(query, np.array(units))
    for norm in NORMS:
        assert share(query, points, norm) <= 1


def squared(u: Array, v: Array, e: float, f: float) -> float:
    """The squared move of all products of two regressors, and of their products with the regressand."""
    return float(((np.outer(u, u) - np.outer(v, v)) ** 2).sum() + ((e * u - f * v) ** 2).sum())


def test_products_move_by_the_root_of_nine_halves_at_most() -> None:
    """The argument by itself, with numbers of any kind: vectors no longer than 1, regressands within -1 and 1."""
    generator = np.random.default_rng(0)
    most = 0.0
    for size in (1, 2, 3, 7):
        for _ in range(2_000):
            u, v = generator.normal(size=(2, size))
            u, v = (each / np.linalg.norm(each) * generator.choice([1.0, generator.random()]) for each in (u, v))
            e, f = (generator.choice([-1.0, 1.0, generator.uniform(-1, 1)]) for _ in range(2))
            moved = squared(u, v, e, f)
            most = max(most, moved)
            # What r² lacks to its most, at a quarter, never adds to that: it moves only where |r| does.
            assert moved + (e * e - f * f) ** 2 / 16 <= 4.5 + 1e-12
    assert most > 4.45
    ends = np.array([1.0, 0.0]), np.array([0.5, math.sqrt(0.75)])
    assert squared(*ends, 1.0, -1.0) == pytest.approx(4.5)


def test_products_of_two_functions_need_no_less_noise() -> None:
    """Released once, a product that stands twice in the matrix counts once: with 1/2 for its noise it would be caught.

    One unit's waves stand at right angles to the other's, where products of two functions move most.
    """
    query, honest = case("squares", "augmented", 0)
    assert Fraction(7072, 10000) ** 2 >= Fraction(1, 2)
    mixed = [place for place, (i, j) in enumerate(query.pairs(SCHEMA)) if i != j]  # products come first in the answer
    points = honest.copy()
    points[:, mixed] *= 2  # as if noise were half as large
    assert share(query, points, "l2") > 1.1


@pytest.mark.parametrize("norm", NORMS)
def test_half_the_bound_is_caught(norm: Norm) -> None:
    assert share(*case("splines", "augmented", 0), norm) > 1.8 / 2


def test_bound_for_groups_is_caught_where_functions_overlap() -> None:
    """Units of two groups move the sums by the root of 4; where functions overlap both can move further at once."""
    four = math.sqrt(4 + 1 / 16)  # and one that the limit cut off
    moved = []
    for name in ("groups", "one wave"):
        query, points = case(name, "augmented", 0)
        moved.append(share(query, points, "l2") * float(query.sensitivity(SCHEMA, "record", "l2").bound))
    assert 0.99 * four < moved[0] <= four
    assert moved[1] > 1.05 * four


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("norm", NORMS)
def test_regressand_without_a_limit_is_caught(learner: Learner, norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlimited(numbers: Ticks, limit: float) -> tuple[Ticks, Ticks]:
        ticks = np.rint(numbers / GRID * LENGTH / limit).astype(np.int64)
        return ticks, np.zeros_like(ticks)

    monkeypatch.setattr(MODULE, "within", unlimited)
    query = asking(BASES["groups"], learner, 1)
    assert share(query, added(query, units_of(0)), norm) > 1.4


@pytest.mark.parametrize("norm", NORMS)
def test_too_long_functions_are_caught(norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = Residuals.functions
    monkeypatch.setattr(Residuals, "functions", lambda own, batch: functions(own, batch) * 5 // 4)
    query = asking(BASES["splines"], "augmented")
    assert share(query, added(query, units_of(0)), norm) > 1.05


@pytest.mark.parametrize("norm", NORMS)
def test_half_the_distance_of_arm_and_propensity_is_caught(norm: Norm) -> None:
    """The mutant: noise for arms at a distance of a half, where the propensity can be at 0.05."""
    points = case("groups", "residual", 2)[1]
    assert share(asking(BASES["groups"], "residual", 0), points, norm) > 1.5


def predicted(query: EffectMoments, units: Ticks, schema: dpc.Schema = SCHEMA) -> Ticks:
    """The distances of arms from propensities."""
    found: Ticks = Residuals(query, schema).residual(Few(units).batch)[0]
    return found


def test_distance_of_arm_and_propensity_is_bounded() -> None:
    generator = np.random.default_rng(0)
    units, most = np.vstack([units_of(0), units_of(1)]), 0.0
    for spread in (1e-4, 0.01, 0.3, 3.0, 50.0):
        for _ in range(40):
            coefficients = generator.normal(0, spread, 5)
            query = replace(asking(BASES["groups"], "residual"), propensity=tuple(coefficients), clip=0.001)
            far = query.farthest_arm(SCHEMA, query.clip)
            found = np.abs(predicted(query, units)).max() / GRID
            assert found <= far <= 1 - 0.001 + 2 / GRID
            assert far >= 0.5  # which the sum of functions' sizes relies on
            most = max(most, found / far)
    assert most > 0.9999


def test_distance_without_rounding_of_propensities_is_caught() -> None:
    """The mutant: the exact logistic function at the largest predictor. Looked up, a predictor is rounded down."""
    caught = 0
    for place in range(40):
        query = replace(asking(BASES["groups"], "residual"), propensity=(-0.1 - place / 900, 0.0, 0.0, 0.0, 0.0))
        exact = 1 / (1 + math.exp(query.propensity[0] / math.sqrt(3))) + 2 / GRID
        caught += np.abs(predicted(query, units_of(0))).max() > exact * GRID
    assert caught > 20


def test_rounding_of_many_coefficients_is_inside_the_bound() -> None:
    covariates = [dpc.Real(f"x{place}", 0, 1) for place in range(400)]
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=covariates
    )
    slope = 0.501 * 2.0**-16 * math.sqrt(401)
    models = [0.0, *[slope] * 400], [0.0] * 401, [0.0] * 401
    names = [column.name for column in covariates]
    query = EffectMoments(names, *models, Polynomial(["x0"]), "residual", 0.05, 1.0)
    unit = np.array([[0, 0, *[GRID] * 400]])
    assert np.abs(predicted(query, unit, schema)).max() <= query.farthest_arm(schema, query.clip) * GRID


def test_rounding_of_regressors_is_inside_the_bound() -> None:
    """Functions times a distance, to the nearest step: as long as `longest`, in sizes as large as the l1 bound has."""
    generator = np.random.default_rng(0)
    for basis in BASES.values():
        query = asking(basis, "residual")
        far, longest = Fraction(query.farthest_arm(SCHEMA, query.clip)), query.longest(SCHEMA)
        batch = Few(units_of(0)).batch
        functions = Residuals(query, SCHEMA).functions(batch)
        distance = generator.choice([-1, 1], len(units_of(0))) * math.floor(far * GRID)
        distance[::3] = generator.integers(-distance.max(), distance.max() + 1, len(distance[::3]))
        regressors = times(distance, functions)
        assert (regressors**2).sum(axis=0).max() <= longest**2
        room = Fraction(basis.reach(SCHEMA)) + Fraction(len(functions), LENGTH)
        assert int(np.abs(regressors).sum(axis=0).max()) <= room * longest


def test_bound_without_rounding_of_regressors_is_caught() -> None:
    """Ten functions, each a little above a half step: 1 after rounding, and the length with it."""
    functions = np.full((10, 1), 647)  # 10 · 647² < LENGTH²
    distance = np.array([math.ceil((500 + 0.5) / 647 * GRID)])
    regressors = times(distance, functions)
    exact = distance / GRID * functions
    assert (regressors == 501).all()
    assert np.linalg.norm(regressors) > np.linalg.norm(exact) + 0.49 * math.sqrt(10)
    assert np.linalg.norm(regressors) <= np.linalg.norm(exact) + 0.5 * math.sqrt(10)


@pytest.mark.parametrize("limit", [0.5, 1.0, 2.0, 7.3, 1e4])
def test_regressand_is_clipped_to_its_limit(limit: float) -> None:
    numbers = np.r_[-2 * GRID : 2 * GRID + 1 : 997, 2 * GRID, -(2**32), 2**32]
    kept, cut = within(numbers, limit)
    assert np.abs(kept).max() <= LENGTH
    assert set(cut.tolist()) <= {0, 1}
    ordinary = np.abs(numbers) <= 2 * GRID
    wanted = np.clip(numbers[ordinary] / GRID / limit, -1, 1) * LENGTH
    assert kept[ordinary] == pytest.approx(wanted, rel=3e-3, abs=0.51)


def test_only_clipped_regressands_are_counted() -> None:
    """So that a unit that is cut off has no deficit."""
    kept, cut = within(np.arange(-2 * GRID, 2 * GRID + 1, 101), 0.7)
    assert set(np.abs(kept[cut == 1])) == {LENGTH}


@pytest.mark.parametrize("learner", LEARNERS)
def test_largest_scores_fit_into_64_bits(learner: Learner) -> None:
    """Everything at its ends, with the smallest clip and limit, against whole numbers of any size."""
    assert np.abs(case("groups", learner, 2)[1]).max() <= LENGTH**2


@pytest.mark.parametrize("units", [0, 1, 3_001, 65_536])
@pytest.mark.parametrize("largest", [True, False])
def test_products_in_floating_point_are_exact(units: int, largest: bool) -> None:
    generator = np.random.default_rng(units)
    shape = (12, units)
    ends = generator.choice([-LENGTH - 7, LENGTH + 7], shape)
    regressors = ends if largest else generator.integers(-LENGTH - 7, LENGTH + 8, shape)
    kept = generator.integers(-LENGTH, LENGTH + 1, units)
    found = sums(regressors, kept, (np.abs(kept) == LENGTH).astype(np.int64))
    assert (found[:12] == regressors @ regressors.T).all()
    assert (found[12] == regressors @ kept).all()
    assert found[13, 0] == (LENGTH**2 - kept**2).sum()
    assert found[14, 0] == (np.abs(kept) == LENGTH).sum()


def test_largest_sums_fit_into_64_bits() -> None:
    """Sums beyond 62 bits would be refused, and whether they are must not depend on units."""
    assert EffectMoments.most_units * (LENGTH + 8) ** 2 < 2**62


def table_of(n: int) -> pa.Table:
    generator = np.random.default_rng(0)
    columns = {"t": generator.integers(0, 2, n), "y": generator.uniform(0, 1, n), "a": generator.uniform(0, 1, n)}
    return pa.table(columns | {"k": generator.choice(["p", "q", "r"], n)})


@pytest.mark.parametrize("learner", LEARNERS)
def test_unit_moves_the_sums_by_its_own_part_only(learner: Learner) -> None:
    table = table_of(70_000)  # more than one batch
    query = asking(BASES["squares"], learner, 1)
    shuffled = table.take(pa.array(np.random.default_rng(5).permutation(70_000)))
    whole, again, without, alone = (
        exact_answer(query, SCHEMA, open_table(each, SCHEMA), ONE).ticks
        for each in (table, shuffled, table.slice(1), table.slice(0, 1))
    )
    assert whole == again
    assert {name: whole[name] - without[name] for name in whole} == alone


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("limit", [0.5, 3.0])
def test_sums_are_those_of_the_formulas(learner: Learner, limit: float) -> None:
    table, query = table_of(3_000), asking(BASES["line"], learner, 1, clip=0.1, limit=limit)
    engine = open_table(table, SCHEMA)
    batch = engine.collect(("treatment", "outcome", "covariate_0", "covariate_1"), 3_000)
    told = Features(query.covariates, SCHEMA)
    features = told.ticks(batch) / told.scale
    e = np.clip(1 / (1 + np.exp(-np.array(query.propensity) @ features)), 0.1, 0.9)
    control, treated = (np.clip(np.array(model) @ features, -1, 1) for model in (query.control, query.treated))
    arm, y = batch["treatment"], batch["outcome"] / GRID
    f = np.array([np.ones(3_000), batch["covariate_0"] / GRID]) / math.sqrt(2)
    if learner == "residual":
        g, r = (arm - e) * f, y - e * treated - (1 - e) * control
    else:
        g, r = f, treated - control + arm * (y - treated) / e - (1 - arm) * (y - control) / (1 - e)
    kept = np.clip(r, -limit, limit)
    wanted = [
        *(g @ g.T)[np.triu_indices(2)],
        *(g @ kept) / 2,
        (limit**2 - kept**2).sum() / 4,
        (np.abs(r) > limit).sum(),
    ]
    found = exact_answer(query, SCHEMA, engine, ONE).ticks
    coordinates = query.sensitivity(SCHEMA, "record", "l1").coordinates
    assert list(found) == [at.name for at in coordinates]
    values = [found[at.name] * at.tick for at in coordinates]
    assert values == pytest.approx(wanted, rel=5e-3, abs=3.0)


def test_bound_does_not_depend_on_protection() -> None:
    for norm, learner in itertools.product(NORMS, LEARNERS):
        query = asking(BASES["waves"], learner)
        assert len({query.sensitivity(SCHEMA, protects, norm) for protects in PROTECTS}) == 1


@pytest.mark.parametrize(("name", "numbers"), [("line", 3 + 2 + 2), ("groups", 3 + 3 + 2)])
def test_each_product_is_released_once_unless_it_must_be_0(name: str, numbers: int) -> None:
    assert len(asking(BASES[name], "residual").sensitivity(SCHEMA, "record", "l1").coordinates) == numbers


def test_products_of_many_covariates_have_names_of_their_own() -> None:
    covariates = [dpc.Binary(name) for name in "abcd"]
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=covariates
    )
    query = replace(asking(Polynomial(list("abcd"), 3), "residual"), covariates=list("abcd"))
    query.sensitivity(schema, "record", "l1")
