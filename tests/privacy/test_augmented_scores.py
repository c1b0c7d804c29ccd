"""No unit moves the sums of scores beyond their joint bound; and scores without a limit are caught."""

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, AugmentedScores, Norm
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.scores import PREDICTOR_TICKS
from dpcausal.schema import PROTECTS
from dpcausal.vault.answers.augmented_scores import parts
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.residuals import scored
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1), dpc.Category("k", ["p", "q", "r"])],
)
QUERY = AugmentedScores(
    ["a", "k"], [0.3, -2.5, 1.0, 0.2, -0.4], [0.1, 0.5, -0.3, 0.2, 0.1], [0.4, 0.2, 0.1, -0.6, 0.3], "ATE", 0.1, 5.0
)
ONE = dpc.Guarantee(epsilon=1)
NORMS: tuple[Norm, Norm] = ("l1", "l2")
ESTIMANDS: tuple[AugmentedEstimand, ...] = get_args(AugmentedEstimand)
SENSITIVITY = {norm: QUERY.sensitivity(SCHEMA, "record", norm) for norm in NORMS}
BOUND = {norm: float(SENSITIVITY[norm].bound) for norm in NORMS}
WEIGHTS = np.array([float(at.weight or 0) for at in SENSITIVITY["l1"].coordinates])
LARGEST = [*[GRID] * 5, 1]
"""The largest of a unit's part in each sum."""

Int64s = NDArray[np.int64]


def farthest(added: tuple[Int64s, ...], norm: Norm) -> float:
    """The largest move between two of some units, from what each adds to the six sums."""
    points = np.unique(np.array(added).T, axis=0) / WEIGHTS
    most = 0.0
    for point in points:
        change = np.abs(points - point)
        most = max(most, float((change.sum(axis=1) if norm == "l1" else np.linalg.norm(change, axis=1)).max()))
    return most


def every_unit(step: int) -> tuple[Int64s, Int64s]:
    """Scores, the limit and beyond it, with all targets."""
    scores, targets = range(-2 * GRID, 2 * GRID + 1, GRID // step), range(0, GRID + 1, GRID // step)
    units = np.array(list(itertools.product(scores, targets)), dtype=np.int64)
    return units[:, 0], units[:, 1]


@pytest.mark.parametrize("norm", NORMS)
def test_bound_holds_for_all_pairs_on_a_grid(norm: Norm) -> None:
    most = farthest(parts(*every_unit(12)), norm)
    assert {"l1": 0.93, "l2": 0.99}[norm] * BOUND[norm] < most <= BOUND[norm]


@pytest.mark.parametrize("norm", NORMS)
def test_search_finds_no_pair_beyond_the_bound(norm: Norm) -> None:
    generator = np.random.default_rng(3)
    ends = np.array([0, 1, 2, GRID // 3, GRID // 2, GRID - 1, GRID, GRID + 1, 2**42])
    scores, targets = (
        generator.choice([-1, 1], 2_000) * generator.choice(ends, 2_000),
        generator.choice(ends[:7], 2_000),
    )
    anywhere = generator.random(2_000) < 0.5
    scores = np.where(anywhere, generator.integers(-3 * GRID, 3 * GRID, 2_000), scores)
    assert farthest(parts(scores, targets), norm) <= BOUND[norm]


def test_bound_is_the_sum_of_the_bounds_of_each_number() -> None:
    for protects, norm in itertools.product(PROTECTS, NORMS):
        found = QUERY.sensitivity(SCHEMA, protects, norm)
        shares = [Fraction(1, weight) for weight in QUERY.weights.values()]
        assert found == SENSITIVITY[norm]
        assert sum(shares) == Fraction(25, 16)
        assert found.bound == Fraction(25, 16) if norm == "l1" else found.bound**2 >= sum(each**2 for each in shares)


@pytest.mark.parametrize("norm", NORMS)
def test_scores_without_a_limit_are_caught(norm: Norm) -> None:
    scores, targets = every_unit(4)
    unlimited = scores, *parts(scores, targets)[1:]
    assert farthest(unlimited, norm) > 1.4 * BOUND[norm]


@pytest.mark.parametrize("norm", NORMS)
def test_half_the_bound_is_caught(norm: Norm) -> None:
    assert farthest(parts(*every_unit(4)), norm) > 1.8 * BOUND[norm] / 2


def test_unscaled_targets_are_caught() -> None:
    """Overlap in units of a quarter, as if it could reach 1."""
    scores, targets = every_unit(4)
    assert farthest(parts(scores, 4 * targets), "l1") > 1.5 * BOUND["l1"]


def units_of(seed: int, n: int = 400) -> dict[str, Int64s]:
    """Units at the ends of their ranges and next to the middle, in both arms."""
    generator = np.random.default_rng(seed)
    ends = np.array([-GRID, -1, 0, 1, GRID // 3, GRID - 1, GRID])
    return {
        "treatment": generator.integers(0, 2, n),
        "outcome": generator.choice(ends, n),
        "covariate_0": generator.choice(ends, n),
        "covariate_1": generator.integers(0, 3, n),
    }


def scored_by(query: AugmentedScores, batch: dict[str, Int64s]) -> tuple[Int64s, Int64s]:
    features = Features(query.covariates, SCHEMA)
    ticks = features.ticks(batch)
    control, treated = (
        np.clip(features.predictor(model, ticks) // (PREDICTOR_TICKS // GRID), -GRID, GRID)
        for model in (query.control, query.treated)
    )
    predictor = features.predictor(query.propensity, ticks)
    return scored(query, predictor, control, treated, batch["treatment"], batch["outcome"])


def formula(query: AugmentedScores, batch: dict[str, Int64s]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores in half ranges, and targets, as textbooks have them."""
    told = Features(query.covariates, SCHEMA)
    features = told.ticks(batch) / told.scale
    arm, y = batch["treatment"], batch["outcome"] / GRID
    predictor = np.clip(np.array(query.propensity) @ features, -16, 16)
    e = np.clip(1 / (1 + np.exp(-predictor)), query.clip, 1 - query.clip)
    control, treated = (np.clip(np.array(model) @ features, -1, 1) for model in (query.control, query.treated))
    if query.estimand == "ATT":
        return (arm - (1 - arm) * e / (1 - e)) * (y - control), arm.astype(float)
    augmented = treated - control + arm * (y - treated) / e - (1 - arm) * (y - control) / (1 - e)
    return (augmented, np.ones_like(e)) if query.estimand == "ATE" else (augmented * e * (1 - e), e * (1 - e))


MODELS = [
    ([0.0] * 5, [0.0] * 5, [0.0] * 5),
    ([0.3, -2.5, 1.0, 0.2, -0.4], [0.1, 0.5, -0.3, 0.2, 0.1], [0.4, 0.2, 0.1, -0.6, 0.3]),
    ([2e20, -2e20, 5.0, 0.0, -2e20], [-2e20, 2e20, 1.0, 2e20, 0.0], [2e20, 2e20, -1.0, 0.0, -2e20]),
]


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("clip", [0.001, 0.1, 0.499])
@pytest.mark.parametrize("limit", [0.5, 2.0, 37.0, 1e4])
def test_bound_holds_for_any_models(estimand: AugmentedEstimand, clip: float, limit: float) -> None:
    for place, models in enumerate(MODELS):
        added = parts(*scored_by(AugmentedScores(["a", "k"], *models, estimand, clip, limit), units_of(place)))
        for part, largest in zip(added, LARGEST, strict=True):
            assert np.abs(part).max() <= largest
        assert min(part.min() for part in (added[1], added[2], added[4], added[5])) >= 0
        assert all(farthest(added, norm) <= BOUND[norm] for norm in NORMS)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize(("clip", "limit"), [(0.001, 2_000.0), (0.1, 0.5), (0.1, 5.0), (0.1, 97.0), (0.3, 1e4)])
@pytest.mark.parametrize("models", MODELS[:2])
def test_scores_are_those_of_the_formulas(
    estimand: AugmentedEstimand, clip: float, limit: float, models: tuple[list[float], list[float], list[float]]
) -> None:
    query, batch = AugmentedScores(["a", "k"], *models, estimand, clip, limit), units_of(1)
    scores, targets = scored_by(query, batch)
    wanted, aims = formula(query, batch)
    assert scores / GRID * limit == pytest.approx(wanted, rel=1e-3, abs=1e-3 + 3 * limit / GRID)
    assert targets / GRID * query.largest_target == pytest.approx(aims, abs=1e-3)


@pytest.mark.parametrize("sign", [-1, 1])
def test_largest_predictors_fit_into_64_bits(sign: int) -> None:
    """80 covariates at their ends with the largest coefficients, against whole numbers of any size."""
    covariates = [dpc.Real(f"x{place}", 0, 1) for place in range(80)]
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=covariates
    )
    names, largest = [column.name for column in covariates], [2.0**20] * 81
    features = Features(names, schema)
    batch = {"treatment": np.ones(1, np.int64)} | {name: np.full(1, sign * GRID) for name in features.columns}
    fixed = round(2.0**20 / features.root * 2**16)
    assert features.predictor(largest, features.ticks(batch)).tolist() == [fixed * GRID * (1 + 80 * sign)]


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_largest_scores_fit_into_64_bits(estimand: AugmentedEstimand) -> None:
    query = replace(QUERY, estimand=estimand, clip=0.001, limit=0.5)
    far, ends = np.array([-(2**58), 2**58]), np.array([-GRID, GRID])
    for predictor, control, treated, outcome, arm in itertools.product(far, ends, ends, ends, np.array([0, 1])):
        at = (np.array([value]) for value in (predictor, control, treated, arm, outcome))
        assert np.abs(scored(query, *at)[0]).max() <= (2 * 1000 + 2) / 0.5 * GRID


def table_of(n: int) -> pa.Table:
    generator = np.random.default_rng(0)
    return pa.table(
        {
            "t": generator.integers(0, 2, n),
            "y": generator.uniform(0, 1, n),
            "a": generator.uniform(0, 1, n),
            "k": generator.choice(["p", "q", "r"], n),
        }
    )


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_unit_moves_the_sums_by_its_own_part_only(estimand: AugmentedEstimand) -> None:
    table = table_of(70_000)  # more than one batch
    query = replace(QUERY, estimand=estimand, limit=2.0)
    shuffled = table.take(pa.array(np.random.default_rng(5).permutation(70_000)))
    whole, again, without, alone = (
        exact_answer(query, SCHEMA, open_table(each, SCHEMA), ONE).ticks
        for each in (table, shuffled, table.slice(1), table.slice(0, 1))
    )
    assert whole == again
    assert {name: whole[name] - without[name] for name in whole} == alone


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_sums_are_those_of_the_formulas(estimand: AugmentedEstimand) -> None:
    query, engine = replace(QUERY, estimand=estimand, limit=2.0), open_table(table_of(3_000), SCHEMA)
    sums = exact_answer(query, SCHEMA, engine, ONE).ticks
    columns = ("treatment", "outcome", "covariate_0", "covariate_1")
    scores, targets = formula(query, dict(engine.collect(columns, 3_000)))
    f, g = np.clip(scores / 2, -1, 1), targets / query.largest_target
    wanted = {
        "score": f,
        "target_sum": g,
        "deficit": 1 - f**2,
        "product": f * g,
        "target_square_sum": g**2,
        "clipped": np.abs(scores) > 2,
    }
    size = {at.name: at.tick for at in SENSITIVITY["l1"].coordinates}
    assert list(sums) == list(wanted) == list(size)
    for name, value in wanted.items():
        grid = 1 if name == "clipped" else GRID
        assert sums[name] / grid == pytest.approx(value.sum(), abs=3.1, rel=1e-3)
    assert (sums["clipped"] > 0) == (estimand != "ATO")


def test_tick_is_in_units_of_the_outcome() -> None:
    schema = replace(SCHEMA, outcome=dpc.Real("y", 0, 10, missing=5))
    query = replace(QUERY, estimand="ATO", limit=2.0)
    ticks = {at.name: at.tick for at in query.sensitivity(schema, "record", "l1").coordinates}
    largest = {"score": 10, "target_sum": 1 / 4, "deficit": 100, "product": 10 / 4, "target_square_sum": 1 / 16}
    assert {name: step * GRID for name, step in ticks.items() if name in largest} == pytest.approx(largest)
    assert ticks["clipped"] == 1
