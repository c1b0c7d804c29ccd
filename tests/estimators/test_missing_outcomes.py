"""Results show the share of missing outcomes in each arm, pay for it out of epsilon, and warn where arms differ."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.missing_outcomes import counting_price, differing_shares, missing_shares
from dpcausal.queries import MissingOutcomes
from dpcausal.release import Release
from dpcausal.results.curve import EffectCurve
from dpcausal.source import OwnQueriesSource
from dpcausal.uncertainty.joint_estimate import JointEstimate

UNITS = 20_000
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 10), covariates=[dpc.Real("x", 0, 1), dpc.Binary("z")]
)
COMPLETE = replace(SCHEMA, outcome=dpc.Real("y", 0, 10, missing=5))
ESTIMATORS = [
    dpc.DifferenceInMeans(),
    dpc.RegressionAdjustment(covariates=["x"]),
    dpc.Stratification(by=["z"]),
    dpc.Winsorised(dpc.DifferenceInMeans()),
    dpc.SubgroupEffects(by=["z"]),
]


def vault_of(control: float, treated: float, schema: dpc.Schema = SCHEMA) -> dpc.Vault:
    random = np.random.default_rng(0)
    arm, x = random.integers(0, 2, UNITS), random.uniform(0, 1, UNITS)
    outcome = np.where(random.random(UNITS) < np.where(arm == 1, treated, control), np.nan, 4 + x + arm)
    table = pa.table({"t": arm, "y": pa.array(outcome, from_pandas=True), "x": x, "z": random.integers(0, 2, UNITS)})
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=9, delta=1e-5))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_every_result_shows_the_shares_and_pays_for_them_out_of_its_epsilon(estimator: dpc.DifferenceInMeans) -> None:
    vault = vault_of(0.05, 0.2)
    result = estimator.estimate(vault, epsilon=1.0)
    assert [receipt.query for receipt in result.receipts].count("missing_outcomes") == 1
    assert math.fsum(receipt.epsilon for receipt in result.receipts) == pytest.approx(1.0)
    assert result.guarantee.epsilon == 1.0 >= vault.ledger.spent.epsilon
    warning = "outcomes are missing more often with t=1"
    if isinstance(result, EffectCurve):
        assert result.notes[0].startswith(warning)
        assert result.notes[1].startswith("missing outcomes: t=0: about ")
        return
    assert result.missing_outcomes is not None
    assert result.missing_outcomes.values == pytest.approx((0.05, 0.2), abs=0.05)
    assert result.warnings[-1].startswith(warning)
    assert "t=0: about " in str(result)
    assert dpc.Effect.from_json(result.to_json()) == result
    assert warning in str(result).partition("estimand")[0]  # before anything else


def test_arms_with_equal_shares_have_no_warning() -> None:
    effect = dpc.DifferenceInMeans().estimate(vault_of(0.1, 0.1), epsilon=1.0)
    assert effect.missing_outcomes is not None
    assert not any("missing more often" in text for text in effect.warnings)


def test_other_estimates_find_the_counts_stored() -> None:
    vault = vault_of(0.1, 0.1)
    first, second = (
        estimator.estimate(vault, epsilon=epsilon)
        for estimator, epsilon in ((dpc.DifferenceInMeans(), 1.0), (dpc.RegressionAdjustment(covariates=["x"]), 1.9))
    )
    assert first.missing_outcomes == second.missing_outcomes
    price = first.receipts[-1].epsilon
    assert vault.ledger.spent.epsilon == pytest.approx(1.0 + 1.9 - price)
    assert "stored answer" not in str(second)  # the estimate's own answer is new


def test_nothing_is_asked_where_no_outcome_can_be_missing_or_noise_would_hide_it() -> None:
    for source in (vault_of(0.1, 0.1, COMPLETE), dpc.Rehearsal(SCHEMA, n=1_000)):
        effect = dpc.DifferenceInMeans().estimate(source, epsilon=1.0)
        assert effect.missing_outcomes is None
        assert [receipt.query for receipt in effect.receipts] == ["arm_moments"]
        assert effect.receipts[0].epsilon == 1.0


@pytest.mark.parametrize("n", [10, 5_000, 20_000, 10**6, 10**10])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 0.7, 1.0, 3.3, 50.0])
def test_price_is_a_small_power_of_two_and_noise_hides_little(n: int, epsilon: float) -> None:
    price = counting_price(dpc.Rehearsal(SCHEMA, n=n), dpc.Guarantee(epsilon=epsilon, delta=1e-6))
    noise_sd = 2 * math.sqrt(2) / (n / 2)
    if price is None:
        assert noise_sd / (epsilon / 32) > 0.02 or epsilon < 1e-4
        return
    assert math.log2(price.epsilon).is_integer()
    assert price.epsilon <= epsilon / 32
    assert price.delta == 0
    assert noise_sd / price.epsilon <= 0.04
    assert noise_sd / price.epsilon >= 0.0075 or price.epsilon == 2**-19  # no more is paid than is of use


def test_answers_that_are_added_up_over_sites_have_the_estimators_own_queries_only() -> None:
    effect = dpc.DifferenceInMeans().estimate(OwnQueriesSource(vault_of(0.1, 0.1)), epsilon=1.0)
    assert effect.missing_outcomes is None
    assert [receipt.query for receipt in effect.receipts] == ["arm_moments"]


def counts(*values: float) -> Release:
    release = dpc.Rehearsal(SCHEMA, n=1_000).release(MissingOutcomes(), dpc.Guarantee(epsilon=0.5))
    return replace(release, values=values)


def test_shares_and_their_noise_agree_with_arithmetic() -> None:
    values = np.array([880.0, 120.0, 820.0, 180.0])  # with and without an outcome, control first
    shares = missing_shares(counts(*values), ("usual", "new"))
    assert shares.values == pytest.approx((0.12, 0.18))
    for place, own in enumerate(((0, 1), (2, 3))):
        line = [float(at == place) for at in (0, 1)]
        assert shares.sampling_sd(line) ** 2 == pytest.approx(shares.values[place] * (1 - shares.values[place]) / 1000)
        slopes = []
        for which in own:
            moved = values.copy()
            moved[which] += 0.01
            slopes.append(
                (missing_shares(counts(*moved), ("usual", "new")).values[place] - shares.values[place]) / 0.01
            )
        assert shares.noise_sd(line) == pytest.approx(math.sqrt(2) * 4 * math.hypot(*slopes), rel=1e-3)


@pytest.mark.parametrize(
    ("shares", "noise_sd", "warned"),
    [((0.10, 0.11), 1e-4, False), ((0.10, 0.13), 1e-4, True), ((0.13, 0.10), 1e-4, True), ((0.10, 0.16), 0.02, False)],
)
def test_a_difference_is_warned_of_where_it_is_material_and_beyond_its_error(
    shares: tuple[float, float], noise_sd: float, *, warned: bool
) -> None:
    noise = [dpc.uncertainty.joint_estimate.JointNoise("gaussian", line) for line in ((noise_sd, 0.0), (0.0, noise_sd))]
    found = differing_shares(JointEstimate(("a", "b"), shares, ((1e-6, 0.0), (0.0, 1e-6)), tuple(noise)))
    assert bool(found) == warned
    assert not warned or f"({100 * max(shares):.0f} %) than with" in found[0]


def test_counts_far_from_any_share_are_no_error() -> None:
    for values in ((0.0, 0.0, 0.0, 0.0), (-50.0, 40.0, 10.0, -60.0), (0.0, 30.0, 0.0, 5.0)):
        shares = missing_shares(counts(*values), ("a", "b"))
        assert all(map(math.isfinite, (*shares.values, shares.standard_error([-1.0, 1.0]))))


def test_pooled_effect_has_the_shares_of_all_units() -> None:
    effects = {name: dpc.DifferenceInMeans().estimate(vault_of(*each), epsilon=1.0) for name, each in SITES.items()}
    pooled = dpc.pool(effects, "sample_size")
    assert pooled.missing_outcomes is not None
    assert pooled.missing_outcomes.values == pytest.approx((0.1, 0.2), abs=0.05)
    assert pooled.missing_outcomes.noise_sd([1.0, 0.0]) < effects["north"].missing_outcomes.noise_sd([1.0, 0.0])  # type: ignore[union-attr]


SITES = {"north": (0.05, 0.15), "south": (0.15, 0.25)}
