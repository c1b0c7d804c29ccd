"""Sums of derivatives that do not depend on the order of rows, on batches or on the machine."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, BoundedInfluenceLogistic, ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.vault.answers.logistic import loss_sums
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.exact_gradients import (
    GRADIENT_TICKS,
    as_floats,
    derivative_sums,
    minimise,
    over_blocks,
    predictor,
    sigmoid,
)
from dpcausal.vault.numerics.features import Features

Int64s = NDArray[np.int64]

NAMES = [f"x{place}" for place in range(20)]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real(name, -1, 1) for name in NAMES],
)
FEATURES = Features(NAMES, SCHEMA)
AT = np.random.default_rng(1).normal(0, 3, FEATURES.size)


def batch_of(size: int) -> dict[str, Int64s]:
    generator = np.random.default_rng(0)
    covariates = {name: generator.integers(-GRID, GRID, size, endpoint=True) for name in FEATURES.columns}
    return {"treatment": generator.integers(0, 2, size)} | covariates


def parts(batch: dict[str, Int64s], cuts: list[int]) -> list[dict[str, Int64s]]:
    return [
        dict(zip(batch, part, strict=True))
        for part in zip(*(np.split(each, cuts) for each in batch.values()), strict=True)
    ]


def test_the_logistic_function_is_as_exact_as_told() -> None:
    exponents = np.concatenate([np.random.default_rng(0).normal(0, 8, 100_000), np.linspace(-41, 41, 1_001)])
    assert np.abs(sigmoid(exponents) - special.expit(np.clip(exponents, -40, 40))).max() <= 2.0**-51
    assert sigmoid(np.array([0.0, -1e9, 1e9])).tolist() == [0.5, float(special.expit(-40.0)), 1.0]


def test_the_logistic_function_of_one_number_is_that_of_the_same_among_others() -> None:
    exponents = np.random.default_rng(0).normal(0, 8, 1_001)
    together = sigmoid(exponents)
    assert all(sigmoid(exponents[place : place + 1])[0] == together[place] for place in range(0, 1_001, 7))
    assert (sigmoid(exponents[::-1]) == together[::-1]).all()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e5])
def test_the_predictor_is_exact_but_for_its_last_bit(size: float) -> None:
    at = AT * size
    ticks = FEATURES.ticks(batch_of(50))
    exact = [sum(Fraction(a) * x for a, x in zip(at.tolist(), line, strict=True)) for line in ticks.T.tolist()]
    for lines in (ticks, ticks.astype(float)):
        for found, wanted in zip(predictor(at, lines), exact, strict=True):
            assert abs(Fraction(float(found)) - wanted) <= abs(wanted) * Fraction(1, 2**53) + Fraction(size) / 2**50


def test_products_of_the_widest_score_add_up_exactly_in_any_order() -> None:
    """Rows that are alike are at every place of a product of matrices; the widest sums stay whole numbers to 2^53."""
    at = np.random.default_rng(3).normal(0, 1, 1_000) * 10.0 ** np.random.default_rng(4).integers(-9, 9, 1_000)
    row = np.random.default_rng(5).choice([-GRID, GRID, GRID - 1, 1 - GRID], 1_000)
    exact = sum(Fraction(a) * x for a, x in zip(at.tolist(), row.tolist(), strict=True))
    for width in (1, 2, 7, 1_024):
        found = predictor(at, np.repeat(row[:, None], width, axis=1))
        assert len(set(found.tolist())) == 1
        assert abs(Fraction(float(found[0])) - exact) <= abs(exact) * Fraction(1, 2**52)


def test_sums_do_not_depend_on_order_or_batches() -> None:
    batch = batch_of(5_000)
    whole = loss_sums(AT, batch, FEATURES)
    order = np.random.default_rng(2).permutation(5_000)
    shuffled = {name: column[order] for name, column in batch.items()}
    assert (loss_sums(AT, shuffled, FEATURES) == whole).all()
    for cuts in ([1], [17, 18, 1_024, 1_025, 4_999], [0, 2_500]):
        assert np.sum([loss_sums(AT, part, FEATURES) for part in parts(batch, cuts)], axis=0).tolist() == whole.tolist()


def test_sums_in_floating_point_would() -> None:
    """The mutant: what products of matrices and a library's exponential give."""
    unit = FEATURES.ticks(batch := batch_of(5_000)) / FEATURES.scale

    def gradient(places: Int64s) -> list[float]:
        lines = unit[:, places]
        found: list[float] = (lines @ (1 / (1 + np.exp(-AT @ lines)) - batch["treatment"][places])).tolist()
        return found

    orders = [np.random.default_rng(seed).permutation(5_000) for seed in range(5)]
    assert len({tuple(gradient(order)) for order in orders}) > 1


def test_sums_are_those_of_the_formula() -> None:
    batch = batch_of(3_000)
    unit = FEATURES.ticks(batch) / FEATURES.scale
    share = special.expit(AT @ unit)
    found = as_floats(loss_sums(AT, batch, FEATURES))
    assert found[0] == pytest.approx(unit @ (share - batch["treatment"]), abs=1e-10)
    assert found[1:] == pytest.approx((unit * (share * (1 - share))) @ unit.T, abs=3_000 * 2.0**-17)


def test_the_largest_sums_there_can_be_do_not_overflow() -> None:
    def ends(block: Batch) -> Int64s:
        ones = np.ones((2, len(block["treatment"])))
        return derivative_sums(ones, -ones[0], ones[0])

    size = 2**17 + 1
    total = over_blocks({"treatment": np.zeros(size, dtype=np.int64)}, ends)
    assert total[0].tolist() == [-size * int(GRADIENT_TICKS)] * 2
    assert as_floats(total).tolist() == [[-size] * 2, [size] * 2, [size] * 2]


def test_no_row_adds_nothing() -> None:
    assert not loss_sums(AT, batch_of(0), FEATURES).any()


def test_the_solver_asks_eight_times_where_whole_steps_converge() -> None:
    batch, points = batch_of(2_000), []

    def derivatives(at: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        points.append(at)
        sums = as_floats(loss_sums(at, batch, FEATURES))
        return sums[0] + at, sums[1:] + np.eye(len(at))

    found = minimise(derivatives, FEATURES.size, 1e-9)
    assert len(points) == 8
    assert np.linalg.norm(derivatives(found)[0]) <= 1e-9


def distant(at: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A loss that is almost straight where the solver begins: a whole Newton step from there is ten times too long."""
    return np.tanh(at - 5) + 1e-3 * at, np.diag(1 - np.tanh(at - 5) ** 2) + 1e-3


def test_the_solver_shortens_steps_where_whole_ones_lead_away() -> None:
    assert np.linalg.norm(distant(minimise(distant, 1, 1e-9, 2.0))[0]) <= 1e-9


def test_whole_steps_alone_would_not_end() -> None:
    """The mutant."""
    at = np.zeros(1)
    for _ in range(1_000):
        gradient, curvature = distant(at)
        at -= np.linalg.solve(curvature, gradient)
    assert np.linalg.norm(distant(at)[0]) > 0.1


def test_scores_wider_than_is_certified_are_refused() -> None:
    wide = dpc.Category("k", [str(place) for place in range(1_001)])
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=[wide])
    for query in (
        OutputPerturbedLogistic(["k"], 20.0),
        ObjectivePerturbedLogistic(["k"]),
        BoundedInfluenceLogistic(["k"]),
    ):
        with pytest.raises(QueryError, match="1,000 features"):
            query.sensitivity(schema, "record", "l1")
