"""The private logistic regression: what one unit moves, and what the printed versions would let it move."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import dpcausal as dpc
from dpcausal.audit.densities import Law, largest_ratio
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, BoundedInfluenceLogistic, ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.vault.answers.logistic import lengths, loss_sums, penalised, weighted_loss_sums
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.exact_gradients import as_floats, minimise
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.table import open_table
from tests.support.unit_losses import by_units

Vector = NDArray[np.float64]
Unit = tuple[int, float, float]
"""Arm and two covariates within -1 and 1."""

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", -1, 1), dpc.Real("b", -1, 1)],
)
FEATURES = Features(["a", "b"], SCHEMA)
CORNERS: list[Unit] = [(t, a, b) for t in (0, 1) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]


def batch_of(units: list[Unit]) -> dict[str, NDArray[np.int64]]:
    arms, *covariates = (np.array(part) for part in zip(*units, strict=True))
    ticks = {f"covariate_{place}": np.rint(part * GRID).astype(np.int64) for place, part in enumerate(covariates)}
    return {"treatment": arms.astype(np.int64)} | ticks


def loss_derivatives(at: Vector, units: list[Unit]) -> Vector:
    return as_floats(loss_sums(at, batch_of(units), FEATURES))


def fitted(units: list[Unit], penalty: float) -> Vector:
    derivatives = penalised(lambda at: loss_derivatives(at, units), penalty, np.zeros(3))
    return minimise(derivatives, 3, 1e-6 * penalty)


def tables(generator: np.random.Generator, count: int) -> list[list[Unit]]:
    """All of one kind, and random ones of several sizes."""
    alike = [[unit] * size for unit in CORNERS for size in (1, 4, 20)]
    corners = [generator.integers(0, len(CORNERS), size) for size in generator.integers(1, 30, count)]
    return alike + [[CORNERS[place] for place in places] for places in corners]


@pytest.mark.parametrize("penalty", [0.5, 2.0, 20.0])
def test_bound_holds_for_coefficients(penalty: float) -> None:
    claimed, most = 2 / penalty, 0.0
    for rest in tables(np.random.default_rng(0), 40):
        ends = [fitted([*rest, unit], penalty) for unit in CORNERS]
        most = max(most, *(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(ends, 2)))
    assert most <= claimed
    assert most > 0.3 * claimed  # the claim is not idle


def test_sensitivity_includes_the_slack() -> None:
    query = OutputPerturbedLogistic(["a", "b"], 4.0)
    sensitivity = query.sensitivity(SCHEMA, "record", "l2")
    for at in sensitivity.coordinates:
        assert float(at.weight or 0) * COEFFICIENT_TICK == pytest.approx(0.5 * 1.001, rel=1e-6)
    assert query.sensitivity(SCHEMA, "record", "l1").bound >= math.sqrt(3)


def test_unpenalised_constant_is_caught() -> None:
    """The mutant: the usual logistic regression, whose intercept one unit moves however strong the ridge is."""
    x, penalty = np.full(200, 0.5), 100.0

    def loss(at: Vector, arms: NDArray[np.int64]) -> float:
        margin = (2 * arms - 1) * (at[0] + at[1] * x)
        return float(np.logaddexp(0, -margin).sum() + penalty / 2 * at[1] ** 2)

    none = np.zeros(200, dtype=np.int64)
    one, two = none.copy(), none.copy()
    one[:1], two[:2] = 1, 1
    ends = [optimize.minimize(loss, np.zeros(2), args=(arms,), method="BFGS").x for arms in (one, two)]
    assert np.linalg.norm(ends[0] - ends[1]) > 20 * 2 / penalty


def test_length_taken_from_the_table_is_caught() -> None:
    """The mutant: covariates divided by the largest length among the units, so that one outlier moves all of them."""
    generator = np.random.default_rng(0)
    x, penalty = generator.uniform(-1, 1, (1000, 2)), 100.0
    arms = (x[:, 0] > 0).astype(np.int64)

    def scaled_fit(values: Vector) -> Vector:
        scaled = values / np.linalg.norm(values, axis=1).max()
        return fitted([(int(t), float(a), float(b)) for t, (a, b) in zip(arms, scaled, strict=True)], penalty)

    outlier = x.copy()
    outlier[0] = 1000.0
    assert np.linalg.norm(scaled_fit(x) - scaled_fit(outlier)) > 20 * 2 / penalty


@pytest.mark.parametrize("of", [Law.cube, Law.ball])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_objective_perturbation_keeps_epsilon_at_every_coefficient(of: Callable[[float], Law], epsilon: float) -> None:
    law = by_units(of(epsilon))
    shares = float(law.query.shares["curvature"] + law.query.shares["gradient"])
    most, _ = largest_ratio(law, epsilon, (1, 2))
    assert 0.5 * epsilon < most <= shares * epsilon
    assert shares + 2 * float(law.query.shares["slack"]) <= 1


def test_answer_uses_the_tilt_and_ridge_of_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else these could be right and the regression made with others."""
    epsilon, seen = 0.5, []
    units = [*CORNERS, *CORNERS[:3]]

    def drawn(_: Sampler, dimensions: int, scale: float) -> Vector:
        seen.append((dimensions, scale))
        return np.array([3.0, -2.0, 1.0])

    monkeypatch.setattr(Sampler, "cube", drawn)
    columns = dict(zip(("t", "a", "b"), (list(part) for part in zip(*units, strict=True)), strict=True))
    table = pa.table(columns | {"y": [0.5] * len(units)})
    query = ObjectivePerturbedLogistic(["a", "b"])
    answer = exact_answer(query, SCHEMA, open_table(table, SCHEMA), dpc.Guarantee(epsilon=epsilon))
    at = np.array([answer.ticks[name] for name in ("intercept", "a", "b")]) * COEFFICIENT_TICK
    assert seen == [(3, query.tilt_scale(epsilon, 3))]
    losses = loss_derivatives(at, units)[0]
    assert losses + query.penalty(epsilon) * at == pytest.approx([-3.0, 2.0, -1.0], abs=1e-4)


@pytest.mark.parametrize("of", [Law.cube, Law.ball])
def test_losses_of_a_table_are_those_of_its_units(of: Callable[[float], Law]) -> None:
    """So that the search may add them up unit by unit: exactly, in tables of any size."""
    law, random = of(0.5), np.random.default_rng(4)
    for size in (1, 2, 3_000):
        units = random.integers(-GRID, GRID + 1, (3, size))
        batch = {"treatment": units[0] % 2, "covariate_1": units[1], "covariate_2": units[2] % 2}
        (losses,), (unit_by_unit,) = law.losses, by_units(law).losses
        at = random.normal(0, 5, 3)
        assert (losses(at, batch) == unit_by_unit(at, batch)).all()


@pytest.mark.parametrize("of", [Law.cube, Law.ball])
def test_half_the_tilt_or_a_tiny_ridge_is_caught(of: Callable[[float], Law]) -> None:
    law = by_units(of(0.5))
    assert largest_ratio(replace(law, scale=law.scale / 2), 0.5, (1, 2))[0] > 0.5
    assert largest_ratio(replace(law, penalty=law.penalty / 50), 0.5, (1, 2))[0] > 0.5


# Losses divided by lengths.

MIXED = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", -1, 1), dpc.Real("b", -1, 1), dpc.Binary("c"), dpc.Category("k", ["p", "q", "r"])],
)
BOUNDED = BoundedInfluenceLogistic(["a", "b", "c", "k"])
SIZES = [Fraction(1, 2), Fraction(1), Fraction(1), *[Fraction(1, 2)] * 4]


def mixed_units(count: int) -> dict[str, NDArray[np.int64]]:
    """Units with the constant alone, nearly so, at the corners, and anywhere."""
    random, near = np.random.default_rng(3), np.array([0, 1, -1, 2, GRID - 1, GRID, -GRID, GRID // 3])
    spread = random.integers(-GRID, GRID + 1, (2, count))
    numbers = np.where(random.random((2, count)) < 0.5, random.choice(near, (2, count)), spread)
    return {
        "treatment": random.integers(0, 2, count),
        "covariate_0": numbers[0],
        "covariate_1": numbers[1],
        "covariate_2": random.integers(0, 2, count),
        "covariate_3": random.integers(0, 3, count),
    }


def gradients(at: Vector, units: dict[str, NDArray[np.int64]]) -> Vector:
    """Each unit's share of the gradient."""
    features, sizes = Features(BOUNDED.covariates, MIXED), BOUNDED.sizes(MIXED)
    ones = ({name: column[[place]] for name, column in units.items()} for place in range(len(units["treatment"])))
    return np.array([as_floats(weighted_loss_sums(at, one, features, sizes))[0] for one in ones])


def test_no_unit_pulls_further_than_a_length_of_1() -> None:
    units, random = mixed_units(300), np.random.default_rng(5)
    ats = [np.zeros(7), *random.normal(0, 3, (3, 7)), *random.normal(0, 300, (3, 7))]
    long = np.array([np.linalg.norm(gradients(at, units), axis=1) for at in ats])
    assert long.max() <= 1 + 2.0**-49  # roundings to ticks, which the proof counts apart
    assert long.max() > 1 - 1e-6
    assert np.median(long.max(axis=0)) > 0.9  # and most pull as far as they may: nothing is given away


def test_gradient_is_the_exact_fraction_of_what_the_proof_has() -> None:
    """Feature by feature in exact fractions, with lengths rounded up to whole ticks and the arm's pull by floats."""
    units = mixed_units(60)
    lines = Features(BOUNDED.covariates, MIXED).ticks(units)
    at = np.random.default_rng(6).normal(0, 1, 7)
    for place, found in enumerate(gradients(at, units)):
        features = [size * Fraction(int(tick), GRID) for size, tick in zip(SIZES, lines[:, place], strict=True)]
        squares = sum(each**2 for each in features) * (2 * GRID) ** 2
        length = math.isqrt(int(squares) - 1) + 1
        assert (length - 1) ** 2 < squares <= length**2
        score = 1 / (1 + math.exp(-sum(float(each) * b for each, b in zip(features, at, strict=True))))
        pull = score - int(units["treatment"][place])
        expected = [float(each * 2 * GRID / length) * pull for each in features]
        assert found == pytest.approx(expected, abs=1e-14)


def test_lengths_are_rounded_up() -> None:
    """Just above a square too, for the largest there are: with 2^52 and more that would go wrong."""
    assert lengths(np.array([[0, 3, 1], [1, 4, 1]])).tolist() == [1, 5, 2]
    most = 2**26 - 1
    assert most**2 >= 999 * (2 * GRID) ** 2 + GRID**2
    large = np.concatenate([np.random.default_rng(9).integers(2**20, most, 10_000), np.arange(most - 1_000, most + 1)])
    assert np.array_equal(lengths(np.array([large, 0 * large])), large)
    assert np.array_equal(lengths(np.array([large, 0 * large + 1])), large + 1)
    assert np.ceil(np.sqrt(np.array([2**54 + 1]))) == 2**27


def test_largest_length_is_that_of_a_corner_and_sizes_are_those_of_the_proof() -> None:
    assert BOUNDED.sizes(MIXED).tolist() == [float(size) for size in SIZES]
    assert BOUNDED.longest(MIXED) ** 2 == pytest.approx(0.25 + 1 + 1 + 0.25 + 0.25, rel=1e-8)
    assert BOUNDED.penalty(0.5, MIXED) == pytest.approx(BOUNDED.longest(MIXED) / 4 / math.expm1(0.065), rel=1e-8)
    law = BOUNDED.perturbation(0.5, MIXED)
    assert law.fixed == 0.75
    assert law.tilt_sds[1] == pytest.approx(2 / 0.415 * math.sqrt(9))  # seven entries of a vector of eight
    assert law.tilt_sds[0] == pytest.approx(2 * law.tilt_sds[1])
    assert law.ridges[0] == pytest.approx(4 * law.ridges[1])


def test_curvature_of_a_unit_is_within_the_ridge() -> None:
    """Its largest eigenvalue is at most a quarter of the largest length, which the ridge is made for."""
    units = mixed_units(300)
    features, sizes = Features(BOUNDED.covariates, MIXED), BOUNDED.sizes(MIXED)
    ones = ({name: column[[place]] for name, column in units.items()} for place in range(300))
    most = max(
        float(np.linalg.norm(as_floats(weighted_loss_sums(np.zeros(7), one, features, sizes))[1:], 2)) for one in ones
    )
    assert most <= BOUNDED.longest(MIXED) / 4 * (1 + 1e-4)
    assert most > 0.9 * BOUNDED.longest(MIXED) / 4


def test_unweighted_losses_are_caught() -> None:
    """The mutant: the same noise for losses that are not divided by lengths."""
    law = by_units(Law.ball(0.5))
    (losses,) = law.losses
    doubled = replace(law, losses=(lambda at, batch: 2 * losses(at, batch),))
    assert largest_ratio(doubled, 0.5, (1, 2))[0] > 0.5


def test_bounded_answer_uses_the_tilt_and_ridge_of_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else these could be right and the regression made with others."""
    epsilon, seen = 0.5, []
    units = [*CORNERS, *CORNERS[:3]]

    def drawn(_: Sampler, dimensions: int, scale: float) -> Vector:
        seen.append((dimensions, scale))
        return np.array([3.0, -2.0, 1.0])

    monkeypatch.setattr(Sampler, "ball", drawn)
    columns = dict(zip(("t", "a", "b"), (list(part) for part in zip(*units, strict=True)), strict=True))
    table = pa.table(columns | {"y": [0.5] * len(units)})
    query = BoundedInfluenceLogistic(["a", "b"])
    answer = exact_answer(query, SCHEMA, open_table(table, SCHEMA), dpc.Guarantee(epsilon=epsilon))
    sizes = query.sizes(SCHEMA)
    at = np.array([answer.ticks[name] for name in ("intercept", "a", "b")]) * COEFFICIENT_TICK / sizes / math.sqrt(3)
    assert seen == [(3, query.tilt_scale(epsilon))]
    losses = as_floats(weighted_loss_sums(at, batch_of(units), FEATURES, sizes))[0]
    assert losses + query.penalty(epsilon, SCHEMA) * at == pytest.approx([-3.0, 2.0, -1.0], abs=1e-4)


def test_slack_of_bounded_influence_is_in_the_terms_that_are_released() -> None:
    query = BoundedInfluenceLogistic(["a", "b"])
    sensitivity = query.sensitivity(SCHEMA, "record", "l1")
    moved = math.sqrt(3) * 2e-6 / COEFFICIENT_TICK + math.sqrt(3)
    for at in sensitivity.coordinates:
        assert float(at.weight or 0) == pytest.approx(moved / 0.02, rel=1e-4)
        assert float(at.weight or 0) >= moved / 0.02
    assert sensitivity.bound >= math.sqrt(3)


def test_weights_do_not_bias_a_logistic_model_that_is_right() -> None:
    """Without noise and nearly without a ridge, both queries find the coefficients that units were treated by."""
    random, n = np.random.default_rng(8), 20_000
    a, b = random.uniform(-1, 1, (2, n)) * random.choice([0.1, 1.0], (2, n))
    t = random.random(n) < 1 / (1 + np.exp(0.3 - 1.2 * a + 0.8 * b))
    units = {"treatment": t.astype(np.int64)} | {
        f"covariate_{place}": np.rint(each * GRID).astype(np.int64) for place, each in enumerate((a, b))
    }
    sizes = BoundedInfluenceLogistic(["a", "b"]).sizes(SCHEMA)
    fits = [
        minimise(penalised(lambda at: as_floats(loss_sums(at, units, FEATURES)), 0.01, np.zeros(3)), 3, 1e-6)
        / FEATURES.root,
        minimise(
            penalised(lambda at: as_floats(weighted_loss_sums(at, units, FEATURES, sizes)), 0.01, np.zeros(3)), 3, 1e-6
        )
        * sizes,
    ]
    for fit in fits:
        assert fit == pytest.approx([-0.3, 1.2, -0.8], abs=0.12)  # four standard errors
    assert fits[0] != pytest.approx(fits[1], abs=1e-4)


@pytest.mark.parametrize("penalty", [0.5, 50.0])
def test_solver_stops_within_its_slack(penalty: float) -> None:
    for rest in tables(np.random.default_rng(2), 20):
        at = fitted(rest, penalty)
        gradient = loss_derivatives(at, rest)[0] + penalty * at
        assert np.linalg.norm(gradient) / penalty <= 1e-5


def test_tables_in_memory_and_tables_read_at_each_step_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(4)
    columns = {"t": generator.integers(0, 2, 3_000), "y": np.zeros(3_000)}
    table = pa.table(columns | {name: generator.uniform(-1, 1, 3_000) for name in ("a", "b")})
    query, one = OutputPerturbedLogistic(["a", "b"], 1.0), dpc.Guarantee(epsilon=1)
    held = exact_answer(query, SCHEMA, open_table(table, SCHEMA), one).ticks
    monkeypatch.setattr("dpcausal.vault.answers.logistic.MAX_ROWS_IN_MEMORY", 0)
    read = exact_answer(query, SCHEMA, open_table(table, SCHEMA), one).ticks
    assert held == read


@pytest.mark.statistical
def test_cube_noise_has_its_distribution() -> None:
    draws = np.array([Sampler().cube(4, 3.0) for _ in range(2_000)])
    largest = np.abs(draws).max(axis=1)
    # The largest entry of a vector with density exp(-largest / scale) in 4 dimensions is a Gamma variable of shape 4.
    assert stats.kstest(largest, stats.gamma(4, scale=3.0).cdf).pvalue > 1e-9
    assert stats.kstest(largest, stats.gamma(4, scale=2.4).cdf).pvalue < 1e-9
    assert stats.kstest(largest, stats.gamma(5, scale=3.0).cdf).pvalue < 1e-9
    assert abs(np.corrcoef(draws.T)[np.triu_indices(4, 1)]).max() < 0.2  # nine standard errors


@pytest.mark.statistical
@pytest.mark.parametrize("dimensions", [4, 3])
def test_ball_noise_has_its_distribution(dimensions: int) -> None:
    draws = np.array([Sampler().ball(dimensions, 3.0) for _ in range(2_000)])
    even = dimensions + dimensions % 2
    assert draws.shape == (2_000, dimensions)
    assert draws.var() == pytest.approx(9 * (even + 1), rel=0.25)
    if dimensions == even:
        # The length of a vector with density exp(-length / scale) in 4 dimensions is a Gamma variable of shape 4.
        long = np.linalg.norm(draws, axis=1)
        assert stats.kstest(long, stats.gamma(4, scale=3.0).cdf).pvalue > 1e-9
        assert stats.kstest(long, stats.gamma(4, scale=2.4).cdf).pvalue < 1e-9
        assert stats.kstest(long, stats.gamma(5, scale=3.0).cdf).pvalue < 1e-9
        # An entry of a uniform direction in 4 dimensions: (1 + entry) / 2 has a Beta law.
        for entry in (draws / long[:, None]).T:
            assert stats.kstest((1 + entry) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-9
    for first, second in itertools.combinations(draws.T, 2):  # every direction in a plane is as frequent
        angles = np.arctan2(first, second) / (2 * math.pi) + 0.5
        assert stats.kstest(angles, "uniform").pvalue > 1e-9


@pytest.mark.statistical
def test_randomised_response_flips_with_the_probability_of_epsilon() -> None:
    answers = [1] * 20_000
    kept = sum(Sampler().randomised_response(answers, dpc.guarantee.exact(1.0)))
    share = math.e / (1 + math.e)
    assert stats.binomtest(kept, len(answers), share).pvalue > 1e-9
    assert stats.binomtest(kept, len(answers), math.exp(1.2) / (1 + math.exp(1.2))).pvalue < 1e-6


@pytest.mark.statistical
def test_noise_for_each_has_its_scale() -> None:
    draws = np.array(Sampler().laplace([5] * 20_000, 1000.0), dtype=float) - 5
    assert stats.kstest(draws, stats.laplace(scale=1000).cdf).pvalue > 1e-9
    assert stats.kstest(draws, stats.laplace(scale=800).cdf).pvalue < 1e-4


def test_features_with_the_same_name_are_refused() -> None:
    """Answers go by name: two coefficients of one name would go out as the same number with twice the noise budget."""
    listed: list[list[dpc.Real | dpc.Binary | dpc.Category]] = [
        [dpc.Real("intercept", 0, 1)],
        [dpc.Category("a", ["1", "2", "3"]), dpc.Real("a=1", 0, 1)],
    ]
    for covariates in listed:
        schema = dpc.Schema(
            treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=covariates
        )
        names = [column.name for column in covariates]
        for query in (
            OutputPerturbedLogistic(names, 1.0),
            ObjectivePerturbedLogistic(names),
            BoundedInfluenceLogistic(names),
        ):
            with pytest.raises(QueryError, match="a name of its own"):
                query.sensitivity(schema, "record", "l1")


def test_column_is_the_same_feature_however_it_is_declared() -> None:
    """A request goes by what columns mean, so what they become may depend on nothing else."""
    batch = {"treatment": np.array([0, 1]), "covariate_0": np.array([0, 1])}
    lines = []
    for column in (dpc.Binary("b"), dpc.Category("b", [0, 1], missing=0)):
        schema = dpc.Schema(
            treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=[column]
        )
        lines.append(Features(["b"], schema).ticks(batch).tolist())
    assert lines[0] == lines[1]
