import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.schema.schema import PROTECTS, Protects
from tests.support.engines import fresh_noise
from tests.support.slow import sampled

LALONDE = Path(__file__).parents[3] / "shared" / "data" / "lalonde" / "nsw_dw_445.csv"


def schema_of(protects: Protects) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Real("score", 0, 10, missing=5), protects=protects
    )


def estimate(table: pa.Table, protects: Protects, epsilon: float, delta: float = 0.0) -> dpc.Effect:
    budget = dpc.Budget(epsilon=100, delta=1e-5)
    vault = dpc.Vault(table, schema_of(protects), ledger="sqlite://", budget=budget)
    return dpc.DifferenceInMeans().estimate(vault, epsilon=epsilon, delta=delta)


def plain(table: pa.Table) -> tuple[float, float]:
    """The textbook difference in means and its standard error."""
    frame = table.to_pandas()
    one, other = frame.score[frame.treat == 1], frame.score[frame.treat == 0]
    return one.mean() - other.mean(), math.sqrt(one.var() / len(one) + other.var() / len(other))


@pytest.mark.parametrize(("protects", "delta"), list(itertools.product(PROTECTS, (0.0, 1e-6))))
def test_with_hardly_any_noise_it_is_the_textbook_estimator(table: pa.Table, protects: Protects, delta: float) -> None:
    effect = estimate(table, protects, 100.0, delta)
    difference, error = plain(table)
    assert effect.estimate == pytest.approx(difference, abs=8 * effect.privacy_sd + 1e-5)
    assert effect.sampling_sd == pytest.approx(error, rel=0.05)
    assert effect.privacy_sd < 0.2 * error


@pytest.mark.parametrize(("protects", "delta"), sampled(itertools.product(PROTECTS, (0.0, 1e-6)), 3))
def test_the_privacy_sd_is_the_spread_over_noise(table: pa.Table, protects: Protects, delta: float) -> None:
    source = fresh_noise(table, schema_of(protects))
    effects = [dpc.DifferenceInMeans().estimate(source, epsilon=1.0, delta=delta) for _ in range(300)]
    spread = float(np.std([effect.estimate for effect in effects]))
    expected = float(np.median([effect.privacy_sd for effect in effects]))
    assert spread == pytest.approx(expected, rel=0.2)


def test_public_arms_cost_less_noise_than_private_ones(table: pa.Table) -> None:
    public, private = (estimate(table, protects, 1.0) for protects in ("record_within_arm", "record"))
    assert public.privacy_sd < 0.75 * private.privacy_sd
    assert "public" in public.method
    assert "noisy" in private.method


def test_second_moments_add_almost_no_noise(schema: dpc.Schema) -> None:
    source = dpc.Rehearsal(schema, n=1000)
    with_interval = dpc.DifferenceInMeans().estimate(source, epsilon=1.0)
    without = dpc.DifferenceInMeans(with_interval=False).estimate(source, epsilon=1.0)
    assert with_interval.privacy_sd == pytest.approx(without.privacy_sd, rel=1e-3)
    assert without.sampling_sd is None
    with pytest.raises(RefusedError, match="not asked for"):
        without.interval()
    assert "sampling error not asked for" in str(without)


def test_a_yes_or_no_outcome(table: pa.Table) -> None:
    died = pa.array(np.asarray(table["score"]) > 5)
    schema = dpc.Schema(treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Binary("died"))
    vault = dpc.Vault(table.append_column("died", died), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=50))
    frame = pd.DataFrame({"died": died.to_numpy(zero_copy_only=False), "treat": np.asarray(table["treat"])})
    risks = frame.groupby("treat").died.mean()
    effect = dpc.DifferenceInMeans().estimate(vault, epsilon=50.0)
    assert effect.estimate == pytest.approx(risks[1] - risks[0], abs=0.02)


@pytest.mark.skipif(not LALONDE.exists(), reason=f"the Lalonde file is not beside the checkout ({LALONDE.name})")
def test_the_lalonde_trial(tmp_path: Path) -> None:
    """Ten lines of a user: an effect from a file with a ledger on disk, and the same again for nothing."""
    schema = dpc.Schema(treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Real("re78", 0, 60_000))
    url = f"sqlite:///{tmp_path / 'nsw.db'}"
    dpc.Ledger.create(url, dpc.Budget(epsilon=60, delta=1e-6), as_of="1978")
    vault = dpc.Vault(LALONDE, schema, ledger=url, as_of="1978")
    effect = dpc.DifferenceInMeans().estimate(vault, epsilon=50.0)
    assert vault.n == 445
    assert effect.estimate == pytest.approx(1794.34, abs=250)  # the trial's difference in means
    again = dpc.DifferenceInMeans().estimate(dpc.Vault(LALONDE, schema, ledger=url, as_of="1978"), epsilon=50.0)
    assert again == effect
    assert "data as of        1978" in str(again)
    assert vault.ledger.spent.epsilon == 50
