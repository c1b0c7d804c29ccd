"""Augmented scores are those of the formulas."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, AugmentedScores
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.scores import predictor
from dpcausal.sums.evaluation import evaluate
from dpcausal.vault.numerics.features import Features
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
ESTIMANDS: tuple[AugmentedEstimand, ...] = get_args(AugmentedEstimand)

Int64s = NDArray[np.int64]


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
    scores, targets = evaluate(query.score(SCHEMA), batch)
    return scores, targets


def formula(query: AugmentedScores, batch: dict[str, Int64s]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores in half ranges, and targets, as textbooks have them."""
    told = Features(query.covariates, SCHEMA)
    features = told.ticks(batch) / told.scale
    arm, y = batch["treatment"], batch["outcome"] / GRID
    exponent = np.clip(np.array(query.propensity) @ features, -16, 16)
    e = np.clip(1 / (1 + np.exp(-exponent)), query.clip, 1 - query.clip)
    control, treated = (np.clip(np.array(model) @ features, -1, 1) for model in (query.control, query.treated))
    if query.estimand == "ATT":
        return (arm - (1 - arm) * e / (1 - e)) * (y - control), arm.astype(float)
    augmented = treated - control + arm * (y - treated) / e - (1 - arm) * (y - control) / (1 - e)
    return (augmented, np.ones_like(e)) if query.estimand == "ATE" else (augmented * e * (1 - e), e * (1 - e))


MODELS = [
    ([0.0] * 5, [0.0] * 5, [0.0] * 5),
    ([0.3, -2.5, 1.0, 0.2, -0.4], [0.1, 0.5, -0.3, 0.2, 0.1], [0.4, 0.2, 0.1, -0.6, 0.3]),
]


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize(("clip", "limit"), [(0.001, 2_000.0), (0.1, 0.5), (0.1, 5.0), (0.1, 97.0), (0.3, 1e4)])
@pytest.mark.parametrize("models", MODELS)
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
    units = {f"covariate_{place}": np.full(1, sign * GRID) for place in range(80)}
    (line,) = evaluate([predictor(largest, names, schema)], units)
    assert line.tolist() == [round(2.0**20 / 9 * 2**16) * GRID * (1 + 80 * sign)]


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
    assert list(sums) == list(wanted)
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
