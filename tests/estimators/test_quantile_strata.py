"""Strata at quantiles of numbers: where edges are, and the correction for confounding within bins."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.estimators import quantile_strata
from dpcausal.estimators.quantile_strata import (
    Difference,
    LeftWithin,
    QuantileStrata,
    bins_for,
    edge_scores,
    share_within,
)
from dpcausal.estimators.scale_fit import FittedScale
from dpcausal.estimators.two_means import mean_difference
from dpcausal.queries import ArmTotals, Cut, StratumContrasts
from dpcausal.queries.cuts import cuts_of
from dpcausal.schema.columns import Column
from dpcausal.source import RecordingSource
from dpcausal.uncertainty.interval import NoiseTerm

COVARIATES: list[Column] = [dpc.Binary("sex", missing=0), dpc.Real("age", 18, 100), dpc.Real("creatinine", 0, 15)]
SCHEMA = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("score", 0, 100), covariates=COVARIATES)
BY = ["sex", "age", "creatinine"]


@pytest.fixture(scope="module")
def skewed() -> pa.Table:
    """Older units and those with more creatinine are treated more often, and have higher scores. The effect is 2."""
    random = np.random.default_rng(5)
    n = 20_000
    age, log = np.clip(random.normal(62, 14, n), 18, 100), 0.4 * random.normal(size=n)
    sex = random.integers(0, 2, n)
    treat = random.random(n) < 1 / (1 + np.exp(0.8 - 1.5 * log - 0.4 * (age - 62) / 14))
    score = 50 + 10 * log + 3 * (age - 62) / 14 + 2 * treat
    columns = {"sex": sex, "age": age, "creatinine": np.exp(log), "treat": treat.astype(int), "score": score}
    return pa.table(columns)


def vault_of(table: pa.Table, schema: dpc.Schema = SCHEMA) -> dpc.Vault:
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1_000))


def contrasts_in(source: RecordingSource) -> StratumContrasts:
    return next(each.query for each in source.releases if isinstance(each.query, StratumContrasts))


@pytest.mark.parametrize("bins", [2, 3, 7, 30])
def test_share_within_is_that_of_a_normal_number(bins: int) -> None:
    values, scores = np.linspace(-8, 8, 200_001), edge_scores(bins)
    weights = np.exp(-(values**2) / 2)
    weights /= weights.sum()
    place = np.digitize(values, scores)
    means = np.bincount(place, weights * values) / np.bincount(place, weights)
    assert share_within(scores) == pytest.approx(weights @ (values - means[place]) ** 2, rel=1e-3)


def test_numbers_without_edges_are_cut_at_quantiles(skewed: pa.Table) -> None:
    source = RecordingSource(vault_of(skewed))
    effect = dpc.Stratification(by=BY, bins=10).estimate(source, epsilon=10.0)
    sex, *numbers = contrasts_in(source).by
    assert sex == Cut("sex")
    for cut in numbers:
        assert len(cut.edges) == 9
        below = [np.mean(np.asarray(skewed[cut.name]) < edge) for edge in cut.edges]
        expected = [quantile_strata._NORMAL.cdf(score) for score in edge_scores(10)]
        assert below == pytest.approx(expected, abs=0.03)
    assert "200 strata" in effect.method


def test_given_edges_stay_and_nothing_more_is_asked(skewed: pa.Table) -> None:
    source = RecordingSource(vault_of(skewed))
    effect = dpc.Stratification(by=["sex", Cut("age", [50, 70])], cap=3).estimate(source, epsilon=1.0)
    assert [each.query.name for each in source.releases] == ["stratum_contrasts", "missing_outcomes"]
    assert effect.left_in == 0


def within_bins(table: pa.Table, bins: int) -> tuple[float, float]:
    """Return the error of the estimate, and the bound for what is left in."""
    effect = dpc.Stratification(by=BY[1:], bins=bins, cap=50).estimate(vault_of(table), epsilon=100.0)
    return effect.estimate - 2, effect.left_in


@pytest.mark.parametrize("bins", [4, 8])
def test_confounding_within_bins_is_corrected_for_and_bounded(
    skewed: pa.Table, bins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, bound = within_bins(skewed, bins)
    assert abs(error) < bound + 0.02
    monkeypatch.setattr(LeftWithin, "of", lambda *_: LeftWithin())  # the mutant
    uncorrected, nothing = within_bins(skewed, bins)
    assert nothing == 0
    assert uncorrected > 2.5 * abs(error)


def test_correction_moves_with_the_unadjusted_difference_as_its_noise_says() -> None:
    strata = QuantileStrata((Cut("sex"), Cut("age", [50])), within=0.2, part=0.5)
    noise = NoiseTerm("laplace", 0.3, 2)
    assert strata.ratio == pytest.approx(0.1 / 0.9)
    source = vault_of(pa.table({name: [1, 0] for name in (*BY, "treat", "score")}))
    one, other = (LeftWithin.of(strata, Difference(value, (noise,)), 2.0, source) for value in (5.0, 6.0))
    assert other.confounding - one.confounding == pytest.approx(strata.ratio)
    assert one.noise == (NoiseTerm("laplace", strata.ratio * 0.3, 2),)
    # If the difference is 5 and a tenth of its confounding stays in strata of effect 2, the effect is 2 - 3 / 9.
    assert one.confounding == pytest.approx(3 / 9)
    # Of two covariates one is cut at quantiles. It may have all of the confounding and half as much again, or none.
    assert one.bound == pytest.approx(1.5 * one.confounding)


def test_price_is_the_whole_epsilon(skewed: pa.Table) -> None:
    vault = vault_of(skewed)
    effect = dpc.Stratification(by=BY).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == pytest.approx(1.0)
    assert sum(receipt.epsilon for receipt in effect.receipts) == pytest.approx(1.0)
    asked = ["covariate_counts", "arm_totals", "stratum_contrasts", "missing_outcomes"]
    assert [receipt.query for receipt in effect.receipts] == asked


def test_bins_grow_with_units_and_fall_with_covariates() -> None:
    both, one = cuts_of(BY), cuts_of(["creatinine"])
    counts = [bins_for(both, SCHEMA, units) for units in (10, 1_000, 20_000, 10**7)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (2, 40)
    assert bins_for(one, SCHEMA, 200) > bins_for(both, SCHEMA, 200)
    assert bins_for(both, SCHEMA, 2_000, 0.05) < bins_for(both, SCHEMA, 2_000)


@pytest.mark.parametrize("bins", [1, 0, 2.5, True, 10**6, 300])
def test_impossible_numbers_of_bins_are_refused_before_anything_is_spent(skewed: pa.Table, bins: int) -> None:
    vault = vault_of(skewed)
    with pytest.raises(QueryError, match="Hint: "):
        dpc.Stratification(by=BY, bins=bins).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0


@pytest.mark.parametrize("location", [-40.0, 0.0, 7.5, 15.0, 60.0])
@pytest.mark.parametrize("spread", [1e-9, 0.4, 50.0])
def test_edges_rise_within_the_bounds_whatever_the_scale(location: float, spread: float) -> None:
    for skewness in (-1.2, 0.0, 1.5):
        scale = FittedScale(0, 15, location, spread, skewness, found=True)
        strata = QuantileStrata.of(cuts_of(BY), SCHEMA, {"creatinine": scale}, 12)
        assert 2 <= strata.cuts[2].bins(SCHEMA) <= 12


def test_no_interval_where_noise_hides_the_values(skewed: pa.Table) -> None:
    few = vault_of(skewed.slice(0, 60))
    effect = dpc.Stratification(by=BY).estimate(few, epsilon=0.1)
    with pytest.raises(RefusedError, match="noise hides where values of"):
        effect.interval()


def test_sites_need_given_edges() -> None:
    """Each site would cut at quantiles of its own table."""
    quantiles, given = dpc.Stratification(by=BY, cap=3), dpc.Stratification(by=["sex", Cut("age", [50])], cap=3)
    assert "Cut('age', [...])" in quantiles.advice_for_sites(SCHEMA)
    assert given.advice_for_sites(SCHEMA) == ""
    assert "cap" in dpc.Stratification(by=["sex"]).advice_for_sites(SCHEMA)


def test_rehearsal_expects_the_bound_and_follows_typical_values() -> None:
    columns: list[Column] = [dpc.Real("creatinine", 0, 15, typical=(0.6, 1.6)), dpc.Real("age", 18, 100)]
    schema = dataclasses.replace(SCHEMA, covariates=columns)
    source = RecordingSource(dpc.Rehearsal(schema, 20_000, outcome_sd=10, confounding=0.4))
    plan = dpc.Stratification(by=["creatinine", "age"], bins=8).estimate(source, epsilon=1.0)
    creatinine, age = contrasts_in(source).by
    assert 0.5 < creatinine.edges[0] < creatinine.edges[-1] < 2
    middle = (age.edges[3] - 18) / (100 - 18)
    assert middle == pytest.approx(0.5, abs=0.01)
    within = share_within(edge_scores(8))
    arms = next(release for release in source.releases if isinstance(release.query, ArmTotals))
    noise = mean_difference(arms, source).noise_sd([1.0])
    assert plan.left_in == pytest.approx(0.75 * within / (1 - within) * math.hypot(4, noise), rel=1e-6)
    assert plan.estimand.startswith("average treatment effect")
