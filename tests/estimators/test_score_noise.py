"""What noise in a private score does to a weighted effect is as large as its effect says."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered
from dpcausal.estimators.influence_weights import InfluenceWeights
from dpcausal.estimators.propensity import ScoreQuery, expected_imbalance, score_query
from dpcausal.estimators.score_noise import CovariateSpread, PrivateScore
from dpcausal.queries import BoundedInfluenceLogistic, CovariateMoments, ObjectivePerturbedLogistic
from dpcausal.queries.features import Estimand
from dpcausal.utils.arrays import Array
from tests.support.engines import CachedEngine, fresh_noise
from tests.support.slow import marked

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[
        dpc.Real("x", 0, 1, typical=(0.1, 0.9), transform="linear"),
        dpc.Category("k", ["p", "q", "r"]),
        dpc.Binary("b"),
    ],
)
OF = ["x", "k", "b"]


def table_of(n: int, seed: int = 0) -> pa.Table:
    """Confounded by x, which the outcome depends on; an effect of 0.1."""
    generator = np.random.default_rng(seed)
    x, k, b = generator.uniform(0, 1, n), generator.integers(0, 3, n), generator.integers(0, 2, n)
    t = (generator.random(n) < 1 / (1 + np.exp(-1.5 * (2 * x - 1) - 0.4 * (k == 1)))).astype(int)
    y = 0.1 + 0.5 * x + 0.1 * (k == 2) + 0.1 * t + generator.uniform(0, 0.2, n)
    return pa.table({"t": t, "x": x, "y": y, "k": np.array(["p", "q", "r"])[k], "b": b})


def vault_of(table: pa.Table) -> dpc.Vault:
    return dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1000))


def spread_at(epsilon: float) -> CovariateSpread:
    vault, query = vault_of(table_of(20_000)), CovariateMoments(OF)
    return CovariateSpread.of(query, vault.release(query, dpc.Guarantee(epsilon=epsilon)), vault)


def test_moments_without_much_noise_are_those_of_the_table() -> None:
    spread = spread_at(100.0)
    assert spread.means == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0], abs=0.03)
    assert spread.variances == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3, 1], abs=0.02)
    slopes = spread.slopes(0.35)
    assert slopes.mean[0] == pytest.approx(0.53, abs=0.05)  # a quarter of 2 for half ranges, and what the effect adds
    assert slopes.mean[3] - slopes.mean[1] == pytest.approx(0.2, abs=0.04)
    assert slopes.mean[4] == pytest.approx(0, abs=0.02)


def test_slopes_fall_back_on_the_prior_where_noise_hides_them() -> None:
    spread = spread_at(0.001)
    slopes = spread.slopes(0.35)
    prior = 0.25 * 0.35**2 * np.array([1, 1 / 3, 1 / 3, 1 / 3, 1]) / 3 / spread.variances
    assert slopes.mean == pytest.approx(np.zeros(5), abs=0.05)
    assert slopes.variance == pytest.approx(prior, rel=0.2)


@pytest.mark.parametrize("asked", [ObjectivePerturbedLogistic(["x"]), BoundedInfluenceLogistic(["x"])])
def test_ridge_is_undone(asked: ScoreQuery) -> None:
    """A regression with the ridge and without a tilt, turned back into one without either."""
    vault, epsilon = vault_of(table_of(1_500)), 0.5
    release = vault.release(asked, dpc.Guarantee(epsilon=epsilon))
    query = CovariateMoments(["x"])
    spread = CovariateSpread.of(query, vault.release(query, dpc.Guarantee(epsilon=100.0)), vault)
    x, t = 2 * table_of(1_500)["x"].to_numpy() - 1, table_of(1_500)["t"].to_numpy()
    plain, ridge = fits_of(asked, SCHEMA, epsilon, np.column_stack([np.ones(1_500), x]), t)
    score = PrivateScore.of(replace(release, values=tuple(ridge * np.sqrt(2))), SCHEMA, spread, 1_500)
    assert ridge[1] < 0.98 * plain[1]
    assert score.coefficients[1] == pytest.approx(plain[1], rel=0.01)


def fits_of(asked: ScoreQuery, schema: dpc.Schema, epsilon: float, features: Array, t: Array) -> list[Array]:
    """Regressions without a tilt, without the ridge and with it."""
    ridges, fits = asked.perturbation(epsilon, schema).ridges, []
    sizes = asked.sizes(schema) if isinstance(asked, BoundedInfluenceLogistic) else np.eye(1, features.shape[1])[0]
    lengths = np.linalg.norm(features * sizes, axis=1)
    for penalties in (0 * ridges, ridges):
        at = np.zeros(len(ridges))
        for _ in range(20):
            e = 1 / (1 + np.exp(-features @ at))
            curvature = (features * (e * (1 - e) / lengths)[:, None]).T @ features + np.diag(penalties)
            at -= np.linalg.solve(curvature, features.T @ ((e - t) / lengths) + penalties * at)
        fits.append(at)
    return fits


@pytest.mark.parametrize("query", [ObjectivePerturbedLogistic, BoundedInfluenceLogistic])
def test_ridge_is_undone_where_many_covariates_tell_the_arms_apart(query: type[ScoreQuery]) -> None:
    """Units far out say little of how strong the predictor is: without that, half of the shrinkage would stay."""
    random, n, epsilon = np.random.default_rng(2), 20_000, 0.35
    x = np.clip(random.normal(0, 0.38, (n, 10)), -1, 1)
    t = (random.random(n) < 1 / (1 + np.exp(-1.8 * x.sum(axis=1)))).astype(int)
    names = [f"x{place}" for place in range(10)]
    schema = dpc.Schema(
        dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 1), [dpc.Real(name, -1, 1) for name in names]
    )
    table = pa.table(dict(zip(names, x.T, strict=True)) | {"t": t, "y": np.zeros(n)})
    vault, asked, moments = fresh_noise(table, schema), query(names), CovariateMoments(names)
    spread = CovariateSpread.of(moments, vault.release(moments, dpc.Guarantee(epsilon=100.0)), vault)
    release = vault.release(asked, dpc.Guarantee(epsilon=epsilon))
    plain, ridge = fits_of(asked, schema, epsilon, np.column_stack([np.ones(n), x]), t)
    score = PrivateScore.of(replace(release, values=tuple(ridge * np.sqrt(11))), schema, spread, n)
    shrunk = (plain - ridge)[1:].mean()
    assert shrunk > 0.08 * plain[1:].mean()
    assert abs((plain - score.coefficients)[1:].mean()) < 0.15 * shrunk


def test_weights_leave_the_information_that_a_table_shows() -> None:
    """Of normal and skewed numbers with means other than 0, and of what is one of two values."""
    random, n = np.random.default_rng(3), 200_000
    a, b = np.clip(random.normal(0.3, 0.3, n), -1, 1), np.clip(random.gamma(3, 0.15, n) - 0.6, -1, 1)
    c = np.where(random.random(n) < 0.2, 1.0, -1.0)
    schema = dpc.Schema(
        dpc.Treatment("t"), dpc.Binary("y"), [dpc.Real("a", -1, 1), dpc.Real("b", -1, 1), dpc.Binary("c")]
    )
    query, features = BoundedInfluenceLogistic(["a", "b", "c"]), np.column_stack([np.ones(n), a, b, c])
    lengths = np.linalg.norm(features * query.sizes(schema), axis=1)
    means, variances = features[:, 1:].mean(axis=0), features[:, 1:].var(axis=0)
    found = InfluenceWeights.of(query.perturbation(1.0, schema), means, variances)
    squares = (features - np.concatenate([[0.0], means])) ** 2
    first, second = ((squares / lengths[:, None] ** power).mean(axis=0) / squares.mean(axis=0) for power in (1, 2))
    assert found.information == pytest.approx(first, rel=0.06)
    assert found.loss == pytest.approx(second / first**2 - 1, abs=0.02)
    assert np.all(found.loss > 0.005)
    plain = InfluenceWeights.of(ObjectivePerturbedLogistic(["a"]).perturbation(1.0, schema), means[:1], variances[:1])
    assert plain.information.tolist() == [1.0, 1.0]
    assert plain.loss.tolist() == [0.0, 0.0]


def test_query_with_the_least_expected_noise_is_asked() -> None:
    """Numbers are far shorter than their bounds allow; listed values alone are not."""
    numbers = [dpc.Real(f"x{place}", 0, 1) for place in range(4)]
    values = [dpc.Binary(f"b{place}") for place in range(4)]
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Binary("y"), [*numbers, *values])
    names = [column.name for column in schema.covariates]
    assert isinstance(score_query(names[:4], schema), BoundedInfluenceLogistic)
    assert isinstance(score_query(names, schema), BoundedInfluenceLogistic)
    assert isinstance(score_query(names[4:], schema), ObjectivePerturbedLogistic)
    ball, cube = (
        expected_imbalance(query(names[:4]), schema) for query in (BoundedInfluenceLogistic, ObjectivePerturbedLogistic)
    )
    assert ball < 0.65 * cube


@pytest.mark.parametrize("estimand", ["ATE", marked("ATO")])  # tests/statistics compares both without chance
def test_privacy_noise_is_as_large_as_printed(estimand: Estimand) -> None:
    table = CachedEngine.of(table_of(4_000), SCHEMA)
    source, estimator = Unmetered(table, SCHEMA), dpc.InverseWeighting(covariates=OF, estimand=estimand)
    effects = [estimator.estimate(source, epsilon=1.0) for _ in range(50)]
    sd = np.std([effect.estimate for effect in effects])
    printed = np.sqrt(np.mean([effect.privacy_sd**2 for effect in effects]))
    assert 0.75 < printed / sd < 1.4
    sums = np.sqrt(np.mean([sum(term.variance for term in effect.noise[:-1]) for effect in effects]))
    assert sums < 0.75 * sd  # without the score's part it would be too small


def test_clip_that_is_used_is_printed_with_the_share_beyond_it() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 1, 20_000)
    t = (generator.random(20_000) < 1 / (1 + np.exp(2.5 - 2 * (2 * x - 1)))).astype(int)
    table = pa.table({"t": t, "x": x, "y": 0.2 + 0.2 * x + 0.1 * t, "k": ["p"] * 20_000, "b": [0] * 20_000})
    uneven = dpc.InverseWeighting(covariates=["x"]).estimate(vault_of(table), epsilon=1.0)
    assert "% of units are beyond the clip" in uneven.notes[0]
    assert uneven.estimate == pytest.approx(0.1, abs=0.05)
    overlap = dpc.InverseWeighting(covariates=["x"], estimand="ATO").estimate(vault_of(table), epsilon=1.0)
    assert "clipped to 0.01 and 0.99" in overlap.method
    assert overlap.treated_mean is not None
    assert overlap.control_mean is not None
    assert overlap.treated_mean - overlap.control_mean == pytest.approx(overlap.estimate)


def test_delta_is_not_spent_where_laplace_noise_is_narrower() -> None:
    vault = dpc.Vault(table_of(2_000), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1, delta=1e-6))
    effect = dpc.InverseWeighting(covariates=OF).estimate(vault, epsilon=1.0, delta=1e-6)
    assert effect.guarantee.delta == 0
    assert vault.ledger.spent.delta == 0


def test_interval_as_wide_as_all_effects_is_refused() -> None:
    effect = dpc.InverseWeighting(covariates=OF).estimate(vault_of(table_of(300)), epsilon=0.3)
    assert "noise" in effect.no_interval
