"""The complier effect: it agrees with the closed form, and it says where an instrument is weak."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.federation.coordinator.aggregate import sum_releases
from dpcausal.queries import Query
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Release
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.source import WrappedSource
from tests.support.engines import fresh_noise


def source(
    protects: Protects = "record", share: float = 0.7, n: int = 4_000
) -> tuple[dpc.Source, dict[str, np.ndarray]]:
    random = np.random.default_rng(3)
    arm = np.arange(n) % 2
    kind = random.choice(3, n, p=[share, (1 - share) / 2, (1 - share) / 2])
    took = np.where(kind == 0, arm, kind == 1).astype(int)
    score = np.clip(random.normal(4 + took + 1.5 * (kind == 1), 1.2), 0, 10)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm"),
        outcome=dpc.Real("score", 0, 10),
        covariates=[dpc.Binary("took")],
        protects=protects,
    )
    columns = {"arm": arm, "score": score, "took": took}
    return fresh_noise(pa.table(columns), schema), columns


@pytest.mark.parametrize("protects", PROTECTS)
def test_estimate_and_error_are_those_of_the_wald_ratio(protects: Protects) -> None:
    vault, columns = source(protects)
    effect = dpc.ComplierEffect("took").estimate(vault, epsilon=100.0)
    arm, y, d = columns["arm"], columns["score"], columns["took"]
    first = d[arm == 1].mean() - d[arm == 0].mean()
    wald = (y[arm == 1].mean() - y[arm == 0].mean()) / first
    residual = y - wald * d
    error = np.sqrt(sum(residual[arm == each].var() / (arm == each).sum() for each in (0, 1))) / first
    assert effect.estimate == pytest.approx(wald, abs=0.01)
    assert effect.sampling_sd == pytest.approx(error, rel=0.02)
    assert effect.contrasts is not None
    assert effect.contrasts.value("share of compliers") == pytest.approx(first, abs=0.01)


@pytest.mark.slow  # tests/statistics compares the same without chance
def test_noise_is_as_large_as_it_says() -> None:
    vault, _ = source()
    effects = [dpc.ComplierEffect("took").estimate(vault, epsilon=1.0) for _ in range(300)]
    spread = np.std([effect.estimate for effect in effects])
    assert spread == pytest.approx(np.mean([effect.privacy_sd for effect in effects]), rel=0.2)


def test_interval_is_fieller_s_and_inverts_the_test() -> None:
    vault, _ = source(share=0.15, n=1_000)
    effect = dpc.ComplierEffect("took").estimate(vault, epsilon=5.0)
    low, high = effect.interval(0.95)
    assert low < effect.estimate < high
    assert abs((high - effect.estimate) / (effect.estimate - low) - 1) > 0.02  # not symmetric
    for limit in (low, high):
        assert effect.p_value(limit) == pytest.approx(0.05, abs=0.01)
    assert dpc.Effect.from_json(effect.to_json()) == effect


def test_weak_instrument_warns_and_irrelevant_one_has_no_interval() -> None:
    unmetered, columns = source(share=0.0, n=400)
    vault = dpc.Vault(pa.table(columns), unmetered.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
    none = [dpc.ComplierEffect("took").estimate(vault, epsilon=1 + place / 1000) for place in range(20)]
    refused = [effect for effect in none if effect.no_interval]
    assert len(refused) > 12
    for effect in refused:
        assert any("weak instrument" in text for text in effect.warnings)
        assert 0 <= effect.p_value() <= 1  # the test needs no strong instrument
        with pytest.raises(RefusedError, match="share of compliers"):
            effect.interval()
    unmetered, columns = source()
    vault = dpc.Vault(pa.table(columns), unmetered.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
    assert not dpc.ComplierEffect("took").estimate(vault, epsilon=1.0).warnings


def test_received_must_be_declared() -> None:
    with pytest.raises(QueryError, match="Binary covariate"):
        dpc.ComplierEffect("drug").estimate(source()[0], epsilon=1.0)


def test_winsorising_a_ratio_is_refused() -> None:
    with pytest.raises(QueryError, match="one to run on the winsorised outcomes"):
        dpc.Winsorised(dpc.ComplierEffect("took")).estimate(source()[0], epsilon=1.0)


NAMES = ("age", "smoker")


AGE = dpc.Real("age", -1, 1)
DECLARED = dpc.Real("age", -1, 1, typical=(-0.9, 0.9), transform="linear")
"""The same without counts of it, so that a table is read once."""


def adjusted_source(
    protects: Protects = "record", n: int = 6_000, declared: dpc.Real = AGE
) -> tuple[dpc.Source, dict[str, np.ndarray]]:
    """An assignment that depends on age and smoking, which also predict the outcome and who complies."""
    random = np.random.default_rng(4)
    age, smoker = random.uniform(-1, 1, n), random.integers(0, 2, n)
    arm = (random.random(n) < 0.5 + 0.2 * age).astype(int)
    complies, always = random.random(n) < 0.6 + 0.2 * age, random.random(n) < 0.5
    took = np.where(complies, arm, always).astype(int)
    score = np.clip(random.normal(4 + age + smoker + took + (always & ~complies), 0.8), 0, 10)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm"),
        outcome=dpc.Real("score", 0, 10),
        covariates=[dpc.Binary("took"), declared, dpc.Binary("smoker")],
        protects=protects,
    )
    columns = {"arm": arm, "score": score, "took": took, "age": age, "smoker": smoker}
    return fresh_noise(pa.table(columns), schema), columns


@pytest.mark.parametrize("protects", PROTECTS)
def test_without_interaction_it_is_two_stage_least_squares(protects: Protects) -> None:
    vault, columns = adjusted_source(protects)
    effect = dpc.ComplierEffect("took", covariates=NAMES, interaction=False).estimate(vault, epsilon=100.0)
    shared = [np.ones(len(columns["arm"])), *(columns[name] for name in NAMES)]
    instruments, regressors = (np.column_stack([*shared, columns[name]]) for name in ("arm", "took"))
    inverse = np.linalg.inv(instruments.T @ regressors)
    solution = inverse @ instruments.T @ columns["score"]
    residuals = columns["score"] - regressors @ solution
    error = (inverse @ (instruments.T * residuals**2) @ instruments @ inverse.T)[-1, -1] ** 0.5
    assert effect.estimate == pytest.approx(solution[-1], abs=0.01)
    assert effect.sampling_sd == pytest.approx(error, rel=0.03)


def test_with_interaction_it_is_the_ratio_of_standardised_differences() -> None:
    vault, columns = adjusted_source()
    effect = dpc.ComplierEffect("took", covariates=NAMES).estimate(vault, epsilon=100.0)
    features = np.column_stack([np.ones(len(columns["arm"])), *(columns[name] for name in NAMES)])
    effects = []
    for response in ("score", "took"):
        fits = [
            np.linalg.lstsq(features[columns["arm"] == arm], columns[response][columns["arm"] == arm])[0]
            for arm in (0, 1)
        ]
        effects.append(float((features @ (fits[1] - fits[0])).mean()))
    assert effect.estimate == pytest.approx(effects[0] / effects[1], abs=0.01)
    assert effect.contrasts is not None
    assert effect.contrasts.values == pytest.approx(effects, abs=0.01)
    wald = dpc.ComplierEffect("took").estimate(vault, epsilon=100.0)
    assert abs(wald.estimate - 1) > 5 * abs(effect.estimate - 1)  # without covariates it is confounded


def test_noise_with_covariates_is_as_large_as_it_says_and_shared() -> None:
    vault, _ = adjusted_source(declared=DECLARED)
    effects = [dpc.ComplierEffect("took", covariates=NAMES).estimate(vault, epsilon=1.0) for _ in range(80)]
    spread = np.std([effect.estimate for effect in effects])
    assert spread == pytest.approx(np.mean([effect.privacy_sd for effect in effects]), rel=0.2)
    assert all(effect.contrasts is not None for effect in effects)
    seen = np.cov([effect.contrasts.values for effect in effects if effect.contrasts], rowvar=False)
    joint = np.mean([e.contrasts.covariance - np.array(e.contrasts.sampling) for e in effects if e.contrasts], axis=0)
    assert seen[1, 1] == pytest.approx(joint[1, 1], rel=0.4)
    assert abs(seen[0, 1] - joint[0, 1]) < 0.3 * (joint[0, 0] * joint[1, 1]) ** 0.5


def test_weak_instrument_with_covariates_warns_and_keeps_its_test() -> None:
    unmetered, columns = source(share=0.0, n=400)
    table = pa.table(columns | {"age": np.linspace(-1, 1, 400)})
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm"),
        outcome=unmetered.schema.outcome,
        covariates=[dpc.Binary("took"), dpc.Real("age", -1, 1)],
    )
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
    hidden, effect = (
        dpc.ComplierEffect("took", covariates=["age"]).estimate(vault, epsilon=epsilon) for epsilon in (1.0, 50.0)
    )
    for each in (hidden, effect):
        assert any("weak instrument" in text for text in each.warnings)
        assert each.no_interval
    assert 0 <= effect.p_value() <= 1
    with pytest.raises(RefusedError, match="noise hides how age varies"):
        hidden.p_value()


class Summed(WrappedSource):
    """Two tables whose releases are added up, as a coordinator does."""

    def __init__(self, sources: Sequence[dpc.Source]) -> None:
        super().__init__(sources[0])
        self.sources = sources

    @property
    def n(self) -> int:
        return sum(each.n for each in self.sources)

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        releases = {str(at): each.release(query, guarantee) for at, each in enumerate(self.sources)}
        return sum_releases(query, guarantee, calibrate(query, self.schema, guarantee), releases)


@pytest.mark.parametrize("covariates", [(), NAMES])
def test_sums_over_sites_keep_the_interval_of_fieller_and_pooling_says_that_it_does_not(
    covariates: tuple[str, ...],
) -> None:
    whole, columns = adjusted_source()
    parts = [{name: values[at::2] for name, values in columns.items()} for at in (0, 1)]
    sites = [fresh_noise(pa.table(part), whole.schema) for part in parts]
    estimator = dpc.ComplierEffect("took", covariates=covariates)
    summed = estimator.estimate(Summed(sites), epsilon=5.0)
    assert summed.ratio
    assert summed.n == whole.n
    assert summed.estimate == pytest.approx(estimator.estimate(whole, epsilon=5.0).estimate, abs=0.1)
    assert summed.p_value(summed.interval(0.95)[0]) == pytest.approx(0.05, abs=0.01)
    pooled = dpc.pool({str(at): estimator.estimate(site, epsilon=5.0) for at, site in enumerate(sites)})
    assert not pooled.ratio
    assert any("Fieller" in note for note in pooled.notes)
