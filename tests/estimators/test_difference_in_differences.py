"""Differences in differences: they agree with the closed form, and placebos are told apart."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from tests.support.engines import fresh_noise

N = 6_000
RANDOM = np.random.default_rng(5)
ARM = RANDOM.integers(0, 2, N)
LEVEL = RANDOM.normal(4 + ARM, 1.0)
EARLIER, BEFORE = (LEVEL + RANDOM.normal(0, 0.5, N) for _ in range(2))
AFTER = LEVEL - 0.5 + 0.4 * ARM + RANDOM.normal(0, 0.5, N)
WAVE = RANDOM.integers(0, 3, N)
COLUMNS = {"arm": ARM, "after": AFTER, "before": BEFORE, "earlier": EARLIER, "wave": WAVE}
COLUMNS = {
    name: np.clip(values, 0, 10) if name in ("after", "before", "earlier") else values
    for name, values in COLUMNS.items()
}
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm"),
    outcome=dpc.Real("after", 0, 10),
    covariates=[dpc.Real("before", 0, 10), dpc.Real("earlier", 0, 10), dpc.Category("wave", [0, 1, 2])],
)
SOURCE = fresh_noise(pa.table(COLUMNS), SCHEMA)


def test_change_agrees_with_numpy() -> None:
    effect = dpc.DifferenceInDifferences(before="before").estimate(SOURCE, epsilon=100.0)
    change = COLUMNS["after"] - COLUMNS["before"]
    one, other = change[ARM == 1], change[ARM == 0]
    assert effect.estimate == pytest.approx(one.mean() - other.mean(), abs=0.005)
    assert effect.sampling_sd == pytest.approx(np.sqrt(one.var() / len(one) + other.var() / len(other)), rel=0.02)


def test_bounds_of_the_change_narrow_the_noise_and_cut_what_is_beyond() -> None:
    wide = dpc.DifferenceInDifferences(before="before").estimate(SOURCE, epsilon=1.0)
    narrow = dpc.DifferenceInDifferences(before="before", change=(-2, 2)).estimate(SOURCE, epsilon=1.0)
    assert narrow.privacy_sd < wide.privacy_sd / 2
    cut = dpc.DifferenceInDifferences(before="before", change=(-0.1, 0.1)).estimate(SOURCE, epsilon=100.0)
    change = np.clip(COLUMNS["after"] - COLUMNS["before"], -0.1, 0.1)
    assert cut.estimate == pytest.approx(change[ARM == 1].mean() - change[ARM == 0].mean(), abs=0.001)


def test_placebo_costs_its_share_and_is_near_zero() -> None:
    estimator = dpc.DifferenceInDifferences(before="before", earlier="earlier", change=(-3, 3))
    effect = estimator.estimate(SOURCE, epsilon=30.0)
    assert effect.contrasts is not None
    ((low, high),) = effect.contrasts.intervals(0.99)
    assert low < 0 < high
    own, placebo, missing = (receipt.epsilon for receipt in effect.receipts)
    assert own + placebo + missing == pytest.approx(30.0)
    assert own == pytest.approx(2 * placebo)


def test_periods_agree_with_numpy() -> None:
    effect = dpc.DifferenceInDifferences(period="wave").estimate(SOURCE, epsilon=100.0)
    after = COLUMNS["after"]
    mean = {(arm, wave): after[(arm == ARM) & (wave == WAVE)].mean() for arm in (0, 1) for wave in range(3)}
    truth = mean[1, 2] - mean[0, 2] - mean[1, 1] + mean[0, 1]
    assert effect.estimate == pytest.approx(truth, abs=0.01)
    assert effect.contrasts is not None
    assert effect.contrasts.values[0] == pytest.approx(mean[1, 1] - mean[0, 1] - mean[1, 0] + mean[0, 0], abs=0.01)
    assert [receipt.query for receipt in effect.receipts] == ["subgroup_moments", "missing_outcomes"]


def test_empty_cells_have_no_interval() -> None:
    table = pa.table(COLUMNS | {"wave": np.where(ARM == 1, 2, WAVE)})
    effect = dpc.DifferenceInDifferences(period="wave").estimate(fresh_noise(table, SCHEMA), epsilon=1.0)
    assert "few units" in effect.no_interval


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"before": "before", "period": "wave"},
        {"period": "wave", "earlier": "earlier"},
        {"before": "before", "change": (1,)},
        {"before": "before", "change": (5, -5)},
        {"before": "before", "earlier": "earlier", "placebo_share": 1.0},
        {"before": "after"},
        {"period": "before"},
    ],
)
def test_unusable_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(QueryError):
        dpc.DifferenceInDifferences(**parameters).estimate(SOURCE, epsilon=1.0)
