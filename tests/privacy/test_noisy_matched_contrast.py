"""Noisy matched contrasts: scores and arms get the noise they are charged for; outcomes move the rest as claimed."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, NoisyMatchedContrast
from dpcausal.queries.matched_contrast import MOVES
from dpcausal.vault.noise import Sampler
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("x", 0, 1)],
)
NOISY = NoisyMatchedContrast(["x"], [0.1, 0.5], 2, None, 0.001, [0.05, 0.75, 0.2])


def table() -> dict[str, NDArray[np.float64]]:
    generator = np.random.default_rng(1)
    x = np.round(generator.uniform(0, 1, 60), 1)  # ties
    return {"t": (generator.random(60) < x).astype(float), "y": generator.uniform(0, 1, 60), "x": x}


def test_one_unit_moves_the_sum_as_one_outcome_where_scores_and_arms_are_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise on scores and arms held fixed, a unit that changes moves the sum as one outcome does."""
    one = dpc.Guarantee(epsilon=1)
    generator = np.random.default_rng(3)
    scores, arms = generator.integers(0, 50, 60).tolist(), generator.integers(0, 2, 60).tolist()
    monkeypatch.setattr(Sampler, "laplace", lambda *_: scores)
    monkeypatch.setattr(Sampler, "randomised_response", lambda *_: arms)
    columns = table()
    first = exact_answer(NOISY, SCHEMA, open_table(pa.table(columns), SCHEMA), one)
    for place in range(60):
        changed = {name: values.copy() for name, values in columns.items()}
        changed["t"][place], changed["x"][place] = 1 - columns["t"][place], 1 - columns["x"][place]
        changed["y"][place] = float(columns["y"][place] < 0.5)
        second = exact_answer(NOISY, SCHEMA, open_table(pa.table(changed), SCHEMA), one)
        assert first.public_values == second.public_values
        assert abs(first.ticks["effect"] - second.ticks["effect"]) <= MOVES


def test_scores_arms_and_outcomes_get_the_noise_of_their_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, float] = {}

    def scores(_: Sampler, ticks: list[int], scale: float) -> list[int]:
        seen["score"] = GRID / scale
        assert all(0 <= tick <= GRID for tick in ticks)
        return ticks

    def arms(_: Sampler, given_arms: list[int], epsilon: Fraction) -> list[int]:
        seen["arm"] = float(epsilon)
        return given_arms

    monkeypatch.setattr(Sampler, "laplace", scores)
    monkeypatch.setattr(Sampler, "randomised_response", arms)
    guarantee = dpc.Guarantee(epsilon=2)
    exact_answer(NOISY, SCHEMA, open_table(pa.table(table()), SCHEMA), guarantee)
    weight = NOISY.sensitivity(SCHEMA, "record", "l1").coordinates[0].weight or Fraction(0)
    outcome = 2 * MOVES / float(weight)
    assert seen["score"] + seen["arm"] + outcome <= 2 * (1 + 1e-12)
    assert (seen["score"], seen["arm"], outcome) == pytest.approx((0.1, 1.5, 0.4))
