"""Main effects and interactions of two crossed factors are those of the cells' means, from one query."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc

N = 20_000
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("heparin", arms=("none", "low", "high"), compare="low"),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Binary("aspirin", values=("no", "yes"))],
)


def estimated(epsilon: float) -> tuple[dpc.Effect, Any]:
    random = np.random.default_rng(3)
    heparin, aspirin = random.choice(3, N, p=[0.5, 0.25, 0.25]), random.integers(0, 2, N)
    y = np.clip(0.3 + 0.05 * heparin + 0.1 * aspirin * (1 + (heparin == 2)) + random.normal(0, 0.1, N), 0, 1)
    names = {"heparin": np.array(["none", "low", "high"])[heparin], "aspirin": np.array(["no", "yes"])[aspirin]}
    vault = dpc.Vault(pa.table(names | {"y": y}), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=epsilon))
    cells = np.array([[y[(heparin == a) & (aspirin == b)].mean() for a in range(3)] for b in range(2)])
    return dpc.FactorialEffects(factor="aspirin").estimate(vault, epsilon=epsilon), cells


def test_effects_are_those_of_the_cells_where_noise_vanishes() -> None:
    effect, cells = estimated(100.0)
    contrasts, means = effect.contrasts, effect.arm_means
    assert contrasts is not None
    assert means is not None
    apart = cells[1] - cells[0]
    expected = {
        "heparin=low against heparin=none": cells[:, 1].mean() - cells[:, 0].mean(),
        "heparin=high against heparin=none": cells[:, 2].mean() - cells[:, 0].mean(),
        "aspirin=yes against aspirin=no": apart.mean(),
        "interaction of heparin=low and aspirin=yes": apart[1] - apart[0],
        "interaction of heparin=high and aspirin=yes": apart[2] - apart[0],
    }
    assert dict(zip(contrasts.names, contrasts.values, strict=True)) == pytest.approx(expected, abs=2e-4)
    assert effect.estimate == pytest.approx(expected["heparin=low against heparin=none"], abs=2e-4)
    assert means.value("heparin=high, aspirin=yes") == pytest.approx(cells[1, 2], abs=2e-4)
    assert means.value("heparin=high") == pytest.approx(cells[:, 2].mean(), abs=2e-4)


def test_intervals_hold_what_is_true_and_find_the_interaction() -> None:
    effect, _ = estimated(1.0)
    assert effect.contrasts is not None
    intervals = dict(zip(effect.contrasts.names, effect.contrasts.intervals(), strict=True))
    low, high = intervals["interaction of heparin=high and aspirin=yes"]
    assert low > 0
    assert low < 0.1 < high
    low, high = intervals["interaction of heparin=low and aspirin=yes"]
    assert low < 0 < high
    assert "main effect" in effect.estimand
