"""An attack on the released numbers: with the paid noise it stays below epsilon, with less noise it does not."""

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.calibration import Noise, calibrate
from dpcausal.queries import (
    ArmMoments,
    ArmTotals,
    Cut,
    MatchedContrast,
    Query,
    StratumContrasts,
    StratumMatches,
    WeightedArms,
)
from dpcausal.schema import Protects
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.noise import add_noise
from dpcausal.vault.table import open_table

RUNS = 30_000
CONFIDENCE = 1 - 1e-6

# The unit that changes, before and after, as arm, outcome and stratum: across the range within an arm; from arm to arm;
# and from one stratum to another where it is the only treated unit.
ACROSS, BETWEEN, MOVING = ((1, 0.0, 0), (1, 1.0, 0)), ((0, 1.0, 0), (1, 1.0, 0)), ((1, 1.0, 0), (1, 0.0, 1))


def audited(query: Query, protects: Protects, pair: tuple[tuple[int, float, int], ...], shrink: float) -> float:
    """A lower bound on epsilon at delta 0, of the releases of two neighbouring tables."""
    schema = dpc.Schema(
        treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Binary("x")], protects=protects
    )
    guarantee = dpc.Guarantee(epsilon=1.0, protects=protects)
    noise = calibrate(query, schema, guarantee)
    noise = replace(noise, scales=tuple(scale * shrink for scale in noise.scales if scale is not None))
    answers = []
    for arm, outcome, stratum in pair:
        columns = {"t": [arm, 0, 0, 0, 0], "y": [outcome, 0.0, 0.0, 1.0, 1.0], "x": [stratum, 0, 0, 1, 1]}
        table = duckdb.connect().from_arrow(pa.table(columns))
        answer = ANSWERS[type(query)](query, schema, open_table(table, schema), guarantee)
        answers.append(answer.in_order(noise))
    # The likelihood ratio is the best event there is; it saturates at the largest loss that the noise allows.
    losses = [ratio(released(exact, noise), answers, noise) for exact in answers]
    threshold = np.quantile(losses[0], 0.9) - 1e-9
    more, less = (int((loss >= threshold).sum()) for loss in losses)
    low = stats.beta.ppf((1 - CONFIDENCE) / 2, more, RUNS - more + 1)
    high = stats.beta.ppf(1 - (1 - CONFIDENCE) / 2, less + 1, RUNS - less)
    return float(np.log(low / high))


def released(exact: tuple[int, ...], noise: Noise) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    many = replace(noise, scales=noise.scales * RUNS)
    return np.array(add_noise(exact * RUNS, many), dtype=float).reshape(RUNS, len(exact))


def ratio(
    draws: np.ndarray[tuple[int, ...], np.dtype[np.float64]], answers: list[tuple[int, ...]], noise: Noise
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    one, other = (
        np.abs(draws - np.array(answer, dtype=float)) / np.array(noise.scales, dtype=float) for answer in answers
    )
    losses: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = (other - one).sum(axis=1)
    return losses


CASES = [
    (ArmTotals(), "record_within_arm", ACROSS),
    (ArmTotals(), "record", BETWEEN),
    (ArmMoments(), "record_within_arm", ACROSS),
    (ArmMoments(), "record", BETWEEN),
    (StratumContrasts([Cut("x")], 1), "record", MOVING),
    (StratumMatches([Cut("x")], "global"), "record", MOVING),
    # Scores of nearly 0 and nearly 1, so that both of the unit's weights are as large as they can be.
    (WeightedArms(["x"], [0.0, 20.0], "ATE", 0.1), "record", ((1, 1.0, 0), (0, 1.0, 1))),
    (MatchedContrast(["x"], 1, None, 0.01), "outcome", ACROSS),
]


@pytest.mark.parametrize(("query", "protects", "pair"), CASES)
def test_releases_stay_below_epsilon_and_less_noise_is_caught(
    query: Query, protects: Protects, pair: tuple[tuple[int, float, int], ...]
) -> None:
    # Of stratum contrasts this pair uses up the share of the effect, seven tenths of epsilon.
    assert 0.45 < audited(query, protects, pair, shrink=1.0) <= 1.0
    assert audited(query, protects, pair, shrink=0.5) > 1.1
