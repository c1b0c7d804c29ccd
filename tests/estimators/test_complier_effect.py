"""The complier effect: it agrees with the closed form, and it says where an instrument is weak."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.schema import PROTECTS, Protects
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
    with pytest.raises(QueryError, match="another estimator"):
        dpc.Winsorised(dpc.ComplierEffect("took")).estimate(source()[0], epsilon=1.0)
