"""No unit moves the weights of an effect beyond the claim; losses and ridges that would let it are caught."""

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import optimize

import dpcausal as dpc
from dpcausal.audit.bound import epsilon_of_mu
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, Basis, Cells, Cut, EffectWeights, Fourier, Norm, Polynomial, Spline
from dpcausal.queries.calibration import gaussian_sd
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.queries.models import Learner
from dpcausal.schema.schema import PROTECTS
from dpcausal.vault.answers.effect_weights import in_half_ranges, loss_sums, regression
from dpcausal.vault.answers.logistic import penalised
from dpcausal.vault.numerics.exact_gradients import as_floats, minimise
from dpcausal.vault.numerics.residuals import Residuals
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", -1, 1, missing=0),
    covariates=[dpc.Real("a", -1, 1)],
)
BASES: dict[str, Basis] = {
    "line": Polynomial(["a"]),
    "splines": Spline(["a"]),
    "waves": Fourier(["a"], 0.5, 3),
    "groups": Cells([Cut("a", [0.0])]),
}
MODELS = {
    "flat": ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    "steep": ([1.0, 3.0], [-0.7, 0.4], [0.9, -0.2]),
    "far off": ([9.0, -20.0], [-5.0, 0.0], [5.0, 0.0]),
}

Vector = NDArray[np.float64]
Unit = tuple[int, float, float]
"""Arm, outcome and covariate, the two within -1 and 1."""

CORNERS: list[Unit] = list(itertools.product((0, 1), (-1.0, 1.0), (-1.0, 0.0, 1.0)))


def asking(basis: str = "line", models: str = "flat", limit: float = 0.15, penalty: float = 2.0) -> EffectWeights:
    return EffectWeights(["a"], *MODELS[models], BASES[basis], 0.05, limit, penalty)


def batch_of(units: list[Unit]) -> dict[str, NDArray[np.int64]]:
    arms, *numbers = (np.array(part) for part in zip(*units, strict=True))
    ticks = (np.rint(part * GRID).astype(np.int64) for part in numbers)
    return {"treatment": arms.astype(np.int64)} | dict(zip(("outcome", "covariate_0"), ticks, strict=True))


def loss_derivatives(
    at: Vector,
    residuals: Residuals,
    limit: float,
    batch: dict[str, NDArray[np.int64]],
    learner: Learner = "residual",
) -> Vector:
    return in_half_ranges(as_floats(loss_sums(at, batch, residuals, limit, learner)), limit)


def fitted(query: EffectWeights, units: list[Unit], tolerance: float = 1e-9) -> Vector:
    """The minimum, far closer than the answer has it."""
    losses = partial(
        loss_derivatives,
        residuals=Residuals(query, SCHEMA),
        limit=query.limit,
        batch=batch_of(units),
        learner=query.learner,
    )
    size, bend = len(query.basis.names(SCHEMA)), 2 * query.longest(SCHEMA) / query.limit
    return minimise(penalised(losses, query.penalty, np.zeros(size)), size, tolerance, bend)


def answered(query: EffectWeights, units: list[Unit]) -> Vector:
    """The answer itself, from a table, in half ranges of the outcome."""
    arms, outcomes, covariates = (list(part) for part in zip(*units, strict=True))
    table = open_table(pa.table({"t": arms, "y": outcomes, "a": covariates}), SCHEMA)
    return np.array(list(exact_answer(query, SCHEMA, table, ONE).ticks.values())) * COEFFICIENT_TICK


def tables(seed: int, count: int) -> list[list[Unit]]:
    """No other units, all of one kind, and random ones of several sizes."""
    generator = np.random.default_rng(seed)
    alike: list[list[Unit]] = [[], *([unit] * 5 for unit in CORNERS[:6])]
    corners = [generator.integers(0, len(CORNERS), size) for size in generator.integers(1, 30, count)]
    return alike + [[CORNERS[place] for place in places] for places in corners]


def claim(query: EffectWeights) -> float:
    """What the proof says without the solver: 2 c L / penalty."""
    return 2 * query.limit * query.longest(SCHEMA) / query.penalty


@pytest.mark.parametrize("models", ["flat", "far off"])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(("limit", "penalty"), [(0.04, 1.0), (0.15, 2.0), (30.0, 4.0)])
def test_bound_holds_for_the_minimum(basis: str, models: str, limit: float, penalty: float) -> None:
    query = asking(basis, models, limit, penalty)
    for rest in tables(0, 1)[::7]:
        ends = np.array([fitted(query, [*rest, unit]) for unit in CORNERS])
        apart = np.linalg.norm(ends[:, None] - ends[None], axis=2).max()
        assert apart <= claim(query) + 2e-9 / penalty


@pytest.mark.parametrize("basis", BASES)
def test_bound_is_attained(basis: str) -> None:
    """One unit, far from what is foretold, pulls as hard one way as another that replaces it does the other way."""
    query = asking(basis, "flat", 0.02, 2.0)
    ends = np.array([fitted(query, [unit]) for unit in CORNERS])
    assert np.linalg.norm(ends[:, None] - ends[None], axis=2).max() > 0.999 * claim(query)  # so less would be caught


def augmented(basis: str, models: str, limit: float, penalty: float) -> EffectWeights:
    return replace(asking(basis, models, 0.5, 2.0), limit=limit, penalty=penalty, learner="augmented")


@pytest.mark.parametrize("models", ["flat", "far off"])
@pytest.mark.parametrize("basis", BASES)
def test_bound_holds_for_augmented_scores(basis: str, models: str) -> None:
    """Scores are far longer than residuals, and functions twice as long as flat models' residual regressors."""
    query = augmented(basis, models, 0.4, 1.0)
    for rest in tables(0, 1)[::7]:
        ends = np.array([fitted(query, [*rest, unit]) for unit in CORNERS])
        assert np.linalg.norm(ends[:, None] - ends[None], axis=2).max() <= claim(query) + 2e-9


@pytest.mark.parametrize("basis", BASES)
def test_bound_of_augmented_scores_is_attained(basis: str) -> None:
    """So the length of the residual regressors, which flat models halve, would be caught."""
    query = augmented(basis, "flat", 0.02, 20.0)
    ends = np.array([fitted(query, [unit]) for unit in CORNERS])
    moved = np.linalg.norm(ends[:, None] - ends[None], axis=2).max()
    assert moved > 0.999 * claim(query)
    assert moved > 1.9 * claim(replace(query, learner="residual"))


def test_augmented_scores_are_those_of_the_dr_learner_within_their_reach() -> None:
    query = augmented("line", "steep", 0.4, 1.0)
    units: list[Unit] = [(1, 0.5, -0.5), (0, -0.25, 0.75), (1, -1.0, 1.0)]
    _, found = regression(batch_of(units), Residuals(query, SCHEMA), "augmented")
    root = math.sqrt(2)
    for (arm, y, a), score in zip(units, found, strict=True):
        share = min(max(1 / (1 + math.exp(-(1 + 3 * a) / root)), 0.05), 0.95)
        control, treated = (-0.7 + 0.4 * a) / root, (0.9 - 0.2 * a) / root
        missed = (y - treated) / share if arm else -(y - control) / (1 - share)
        assert score == pytest.approx(treated - control + missed, abs=0.02)
    far = replace(augmented("line", "far off", 0.4, 1.0), clip=0.001)  # a score of about -2,000
    _, found = regression(batch_of([(1, -1.0, 1.0)]), Residuals(far, SCHEMA), "augmented")
    assert found.tolist() == [-EffectWeights.reach["augmented"]]


def test_augmented_scores_need_more_of_a_ridge() -> None:
    with pytest.raises(QueryError, match=r"at least 0\.4"):
        augmented("line", "flat", 0.1, 3.0)


def test_bound_holds_for_answers() -> None:
    """With the solver's tolerance and rounding, by the real engine."""
    norms: tuple[Norm, Norm] = ("l1", "l2")
    for basis, models in itertools.product(BASES, ("flat", "far off")):
        query = asking(basis, models)
        ends = [answered(query, [CORNERS[3], CORNERS[5], unit]) for unit in (CORNERS[5], CORNERS[9])]
        for norm in norms:
            sensitivity = query.sensitivity(SCHEMA, "record", norm)
            weight = float(sensitivity.coordinates[0].weight or 0) * COEFFICIENT_TICK
            change = np.abs(ends[0] - ends[1]).sum() if norm == "l1" else np.linalg.norm(ends[0] - ends[1])
            assert change <= weight * float(sensitivity.bound)


def test_sensitivity_includes_solver_and_rounding() -> None:
    for protects, (basis, models) in itertools.product(PROTECTS, itertools.product(BASES, MODELS)):
        query = asking(basis, models)
        root = math.sqrt(len(query.basis.names(SCHEMA)))
        bounds: dict[Norm, float] = {"l1": root, "l2": 1.0}
        for norm, bound in bounds.items():
            sensitivity = query.sensitivity(SCHEMA, protects, norm)
            assert float(sensitivity.bound) == pytest.approx(bound)
            for at in sensitivity.coordinates:
                charged = float(at.weight or 0) * COEFFICIENT_TICK
                assert charged >= claim(query) * (1 + float(query.slack)) + root * COEFFICIENT_TICK
                assert charged == pytest.approx(claim(query) * 1.001, rel=1e-6)


def test_derivatives_are_those_of_the_loss() -> None:
    query, generator = asking("waves", "steep", 0.15), np.random.default_rng(1)
    units = [CORNERS[place] for place in generator.integers(0, len(CORNERS), 40)]
    residuals = Residuals(query, SCHEMA)
    distance, missed = residuals.residual(batch_of(units))
    regressors = distance / GRID * residuals.functions(batch_of(units)) / 2**11

    def loss(at: Vector) -> float:
        return float((0.15**2 * np.log(np.cosh((missed / GRID - at @ regressors) / 0.15))).sum())

    for _ in range(5):
        at = generator.normal(0, 1, 7)
        found = loss_derivatives(at, residuals, 0.15, batch_of(units))
        assert found[0] == pytest.approx(optimize.approx_fprime(at, loss, 1e-7), abs=1e-4)
        steps = [loss_derivatives(at + 1e-6 * step, residuals, 0.15, batch_of(units))[0] for step in np.eye(7)]
        assert found[1:] == pytest.approx((np.array(steps) - found[0]) / 1e-6, abs=1e-3)


@pytest.mark.parametrize("models", MODELS)
def test_gradient_of_one_unit_is_bounded(models: str) -> None:
    for basis, limit in itertools.product(BASES, (0.01, 0.15, 100.0)):
        query = asking(basis, models, limit, 4.0)
        residuals, size = Residuals(query, SCHEMA), len(query.basis.names(SCHEMA))
        for unit, spread in itertools.product(CORNERS, (0.0, 1.0, 1e6)):
            at = np.random.default_rng(0).normal(0, 1, size) * spread
            found = loss_derivatives(at, residuals, limit, batch_of([unit]))
            assert np.linalg.norm(found[0]) <= limit * (query.longest(SCHEMA) + 1e-9)
            assert np.linalg.eigvalsh(found[1:]).min() >= -1e-12  # so that the ridge alone makes it strongly convex


def test_third_derivative_is_within_the_solvers_bound() -> None:
    """The third derivative of c² log cosh(x / c) is at most 2 / c times the second; with regressors, their length more.

    Along a line, the logarithm of the curvature must not change faster than that.
    """
    for limit in (0.1, 0.5, 2.0):
        query = asking("line", "flat", limit)
        residuals, bend = Residuals(query, SCHEMA), 2 * query.longest(SCHEMA) / limit
        direction, most = np.array([0.8, 0.6]), 0.0
        for unit, start in itertools.product(CORNERS, np.linspace(-4, 4, 33)):
            curvatures = [
                direction
                @ loss_derivatives((start + move) * direction, residuals, limit, batch_of([unit]))[1:]
                @ direction
                for move in (0.0, limit / 10)
            ]
            if min(curvatures) > 1e-3:  # else too few of its ticks are left
                most = max(most, abs(math.log(curvatures[1] / curvatures[0])) / (limit / 10) / bend)
        assert 0.5 < most <= 1.01


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize(("limit", "penalty"), [(0.01, 4.0), (0.15, 1.0), (100.0, 1.0), (0.15, 1e12)])
def test_solver_stops_within_its_slack(models: str, limit: float, penalty: float) -> None:
    """Also where outcomes are at their ends, many units agree, and hardly any ridge holds them."""
    generator = np.random.default_rng(3)
    crowd = [CORNERS[place] for place in generator.integers(0, len(CORNERS), 300)]
    for basis, units in (("waves", crowd), ("splines", [CORNERS[-1]] * 300), ("groups", crowd)):
        query = asking(basis, models, limit, penalty)
        near, exact = answered(query, units), fitted(query, units, 1e-4 * 5e-4 * limit * 0.5)
        paid = float(query.slack) * limit * query.longest(SCHEMA) / penalty
        assert np.linalg.norm(near - exact) <= paid + math.sqrt(len(near)) * COEFFICIENT_TICK


def test_tables_in_memory_and_tables_read_at_each_step_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(4)
    units = [
        (int(t), float(y), float(a))
        for t, y, a in zip(generator.integers(0, 2, 2_000), *generator.uniform(-1, 1, (2, 2_000)), strict=True)
    ]
    query = asking("waves", "steep")
    held = answered(query, units)
    monkeypatch.setattr("dpcausal.vault.answers.logistic.MAX_ROWS_IN_MEMORY", 0)
    assert (answered(query, units) == held).all()
    assert (answered(query, units[::-1]) == held).all()


def test_squared_loss_is_caught() -> None:
    """The mutant: least squares. What one unit pulls grows with how far off the weights are, and no limit holds it.

    Many units tell a large effect. One that is replaced had, or has, an arm that its propensity all but rules out: it
    says the opposite, and pulls by what it is off, not by the limit.
    """
    query = asking("groups", "flat", 0.15, 1.0)
    rest = [(1, 1.0, 1.0), (0, -1.0, 1.0)] * 30
    ends = (1, -1.0, 1.0), (1, 1.0, 1.0)

    def squares(units: list[Unit]) -> Vector:
        residuals = Residuals(query, SCHEMA)
        distance, missed = residuals.residual(batch_of(units))
        g = distance / GRID * residuals.functions(batch_of(units)) / 2**11
        return np.asarray(np.linalg.solve(g @ g.T + query.penalty * np.eye(2), g @ (missed / GRID)), dtype=np.float64)

    few: list[Unit] = [(1, 1.0, 1.0)]
    honest = [fitted(query, [*few, end]) for end in ends]
    careless = [squares([*few, end]) for end in ends]
    assert np.linalg.norm(honest[0] - honest[1]) <= claim(query)
    assert np.linalg.norm(careless[0] - careless[1]) > 4 * claim(query)
    assert np.linalg.norm(fitted(query, [*rest, ends[0]]) - fitted(query, [*rest, ends[1]])) <= claim(query)


def test_weight_without_a_penalty_is_caught() -> None:
    """The mutant: the constant goes free, as intercepts do elsewhere. Then one unit of two decides where it lies."""
    query = asking("line", "flat", 0.15, 50.0)

    def free(units: list[Unit]) -> Vector:
        losses = partial(loss_derivatives, residuals=Residuals(query, SCHEMA), limit=0.15, batch=batch_of(units))

        def derivatives(at: Vector) -> tuple[Vector, Vector]:
            totals, ridge = losses(at), np.diag([1e-3, query.penalty])
            return totals[0] + ridge @ at, totals[1:] + ridge

        return minimise(derivatives, 2, 1e-9, 2 * query.longest(SCHEMA) / 0.15)

    ends = [free([(1, y, 0.0)]) for y in (-1.0, 1.0)]
    assert np.linalg.norm(ends[0] - ends[1]) > 20 * claim(query)


def test_penalty_on_the_length_is_caught() -> None:
    """As in Lemma 3 (Schröder, Melnychuk and Feuerriegel 2025, equation 13): one label of a hundred flips everything.

    Theorem 2 itself has the square (equation 15).

    Absolute errors are a loss of slope 1. With labels 0 and 1 and a penalty of 0.11 of the length, what is minimised
    is linear between 0 and 1, and its slope changes sign where the 56th label turns to 1.
    """
    ridge, n = 0.11, 100

    def fit(ones: int, power: int) -> float:
        labels = np.r_[np.ones(ones), np.zeros(n - ones)]
        places = np.linspace(0, 1, 2_001)
        losses = np.abs(labels[:, None] - places).mean(axis=0) + ridge * places**power
        return float(places[losses.argmin()])

    claimed = 1 / (ridge * n)
    assert abs(fit(56, 1) - fit(55, 1)) > 10 * claimed
    assert max(abs(fit(ones + 1, 2) - fit(ones, 2)) for ones in range(40, 70)) <= claimed + 1e-3


def test_printed_constant_is_caught() -> None:
    """The root of 2 ln(2 / delta), over epsilon (Hall et al. 2013), is too small for large ones; noise here is not."""
    for epsilon in (1.0, 5.0, 15.0, 50.0):
        printed = math.sqrt(2 * math.log(2 / 1e-5)) / epsilon
        assert (epsilon_of_mu(1 / printed, 1e-5) > epsilon) == (epsilon > 10)
        assert epsilon_of_mu(1 / gaussian_sd(epsilon, 1e-5), 1e-5) <= epsilon


def test_too_long_functions_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    query = asking("groups", "flat", 0.02, 2.0)
    functions = Residuals.functions
    monkeypatch.setattr(Residuals, "functions", lambda own, batch: functions(own, batch) * 2)
    ends = [fitted(query, [(1, y, 1.0)]) for y in (-1.0, 1.0)]
    assert np.linalg.norm(ends[0] - ends[1]) > 1.9 * claim(query)


def test_half_the_penalty_is_caught() -> None:
    query = asking("splines", "flat", 0.04, 2.0)
    less = replace(query, penalty=1.0)
    ends = [fitted(less, [(1, y, 1.0)]) for y in (-1.0, 1.0)]
    assert np.linalg.norm(ends[0] - ends[1]) > 1.9 * claim(query)


def test_final_clip_is_never_reached() -> None:
    """At the minimum the ridge is no larger than the loss at 0, which is at most 2 for each unit."""
    query = asking("groups", "far off", 100.0, 1.0)
    assert np.abs(answered(query, [(1, 1.0, 1.0)] * 500)).max() < math.sqrt(4 * 500)
    assert math.sqrt(4 * EffectWeights.most_units) < 2**20


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0.0},
        {"penalty": 0.0},
        {"penalty": math.nan},
        {"limit": 0.01, "penalty": 3.0},
        {"clip": 0.5},
        {"limit": "1"},
    ],
)
def test_query_without_penalty_or_limit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="penalty"):
        replace(asking(), **wrong)
