"""Weights are those of the clipped score, and weighted sums those of the formulas."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, WeightedArms
from dpcausal.queries.features import Estimand
from dpcausal.queries.scores import weight_table
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1), dpc.Category("k", ["p", "q", "r"])],
)
QUERY = WeightedArms(["a", "k"], [0.3, -2.5, 1.0, 0.2, -0.4], "ATE", 0.1)


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
