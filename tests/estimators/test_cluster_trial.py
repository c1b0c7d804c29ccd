"""Cluster trials agree with the textbook where noise is small, and their plans with what happens."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.estimators.average.cluster_trial import _unequal
from dpcausal.schema.schema import Protects
from tests.support.engines import fresh_noise

CLUSTERS = [f"c{place}" for place in range(24)]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm", undeclared=0),
    outcome=dpc.Real("y", 0, 100),
    covariates=[dpc.Category("cluster", CLUSTERS)],
)
TRIAL = dpc.ClusterTrial("cluster", treated=CLUSTERS[1::2])


def columns(icc: float = 0.1, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(24), random.integers(30, 90, 24))
    arm = cluster % 2
    between = random.normal(0, 15 * icc**0.5, 24)
    y = 45 + 6 * arm + between[cluster] + random.normal(0, 15 * (1 - icc) ** 0.5, len(cluster))
    return cluster, arm, np.clip(y, 0, 100)


def source(protects: Protects = "record") -> dpc.Source:
    cluster, arm, y = columns()
    cells = pa.table({"arm": arm, "y": y, "cluster": [CLUSTERS[each] for each in cluster]})
    return fresh_noise(cells, replace(SCHEMA, protects=protects))


@pytest.mark.parametrize("protects", ["record", "record_within_arm", "outcome"])
def test_effect_and_error_are_the_textbooks_where_noise_vanishes(protects: Protects) -> None:
    cluster, arm, y = columns()
    effect = TRIAL.estimate(source(protects), epsilon=100.0)
    means = [y[arm == each].mean() for each in (0, 1)]
    assert effect.estimate == pytest.approx(means[1] - means[0], abs=0.05)
    assert (effect.control_mean, effect.treated_mean) == pytest.approx(means, abs=0.05)
    low, high = effect.interval(0.95)
    assert (high - low) / 2 == pytest.approx(half_width(cluster, arm, y), rel=0.02)


def half_width(cluster: np.ndarray, arm: np.ndarray, y: np.ndarray) -> float:
    """Return Student's half width without noise, with residuals scaled up by what unequal clusters take from them."""
    variance, equal = 0.0, 0.0
    for each in (0, 1):
        mean, places = y[arm == each].mean(), np.unique(cluster[arm == each])
        residuals = np.array([(y - mean)[cluster == one].sum() for one in places])
        shares = np.array([(cluster == one).sum() for one in places]) / (arm == each).sum()
        # The expected square of a residual, where the variance of a cluster's total is its share squared.
        expected = shares**2 * (1 - 2 * shares) + shares**2 * (shares**2).sum()
        variance += (residuals**2).sum() / (arm == each).sum() ** 2 * (shares**2).sum() / expected.sum()
        equal += 1 / (shares**2).sum()
    return float(stats.t.ppf(0.975, round(equal) - 2) * variance**0.5)


def unequal(largest: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a trial of 24 clusters of 40 persons, of which the last one has more."""
    random = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(24), [40] * 23 + [largest])
    y = 45 + random.normal(0, 5, 24)[cluster] + random.normal(0, 10, len(cluster))
    return cluster, cluster % 2, np.clip(y, 0, 100)


def test_interval_allows_for_a_large_cluster() -> None:
    sets = [unequal(1_000, seed) for seed in range(40)]
    covered, plain = 0, 0
    for cluster, arm, y in sets:
        cells = pa.table({"arm": arm, "y": y, "cluster": [CLUSTERS[each] for each in cluster]})
        effect = TRIAL.estimate(fresh_noise(cells, SCHEMA), epsilon=20.0)
        low, high = effect.interval(0.95)
        assert (high - low) / 2 == pytest.approx(half_width(cluster, arm, y), rel=0.05)
        covered += low <= 0 <= high
        means = [y[arm == each].mean() for each in (0, 1)]
        spread = 0.0
        for each in (0, 1):
            residuals = np.array([(y - means[each])[cluster == one].sum() for one in range(each, 24, 2)])
            spread += 12 / 11 * (residuals**2).sum() / (arm == each).sum() ** 2
        plain += abs(means[1] - means[0]) < stats.t.ppf(0.975, 22) * spread**0.5
    assert covered >= 36 > plain + 2  # without the correction far fewer


def test_arm_of_one_large_cluster_has_no_interval() -> None:
    cluster, arm, y = unequal(8_000)
    cells = pa.table({"arm": arm, "y": y, "cluster": [CLUSTERS[each] for each in cluster]})
    effect = TRIAL.estimate(fresh_noise(cells, SCHEMA), epsilon=20.0)
    assert "nearly all persons" in effect.no_interval
    assert effect.sampling_sd is None


def test_noise_in_sizes_does_not_make_equal_clusters_unequal() -> None:
    random = np.random.default_rng(3)
    assert _unequal(40 + random.laplace(0, 4, 200), 32.0)[0] > 190
    assert _unequal(np.full(8, 40.0), 32.0) == (8.0, 0.875)
    sizes = np.exp(random.normal(4, 1, 200))
    noisy = _unequal(sizes + random.laplace(0, 10, 200), 200.0)
    assert noisy == pytest.approx(_unequal(sizes, 0.0), rel=0.05)


def test_interval_is_as_wide_as_students_for_any_noise() -> None:
    effect = TRIAL.estimate(dpc.Rehearsal(SCHEMA, n=1_200, outcome_sd=15), epsilon=1.0)
    low, high = effect.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.96 * (effect.standard_error or 0.0), rel=0.01)
    # A plan allows for the icc: 50 persons in a cluster, and 12 clusters in each arm.
    sampling = (2 * 15**2 * (1 + 49 * 0.05) / 600) ** 0.5
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, 22) * np.hypot(sampling, effect.privacy_sd), rel=0.02)


def test_plan_follows_the_expected_icc() -> None:
    trial = dpc.Rehearsal(SCHEMA, n=4_800, outcome_sd=15)
    plans = [replace(TRIAL, icc=icc).estimate(trial, epsilon=1.0) for icc in (0.0, 0.05, 0.1)]
    widths = [plan.sampling_sd or 0.0 for plan in plans]
    assert widths == sorted(widths)
    assert "intracluster correlation 0.100" in replace(TRIAL, icc=0.1).estimate(trial, epsilon=1.0).notes[0]


def test_icc_is_found_where_noise_is_small() -> None:
    notes = TRIAL.estimate(source(), epsilon=50.0).notes[0]
    found, error = (
        float(each.strip(" ,")) for each in notes.removeprefix("intracluster correlation").split(",")[0].split("±")
    )
    assert abs(found - 0.1) < 3 * error < 0.2


def test_arm_with_one_cluster_has_no_interval() -> None:
    effect = dpc.ClusterTrial("cluster", ["c0"]).estimate(dpc.Rehearsal(SCHEMA, n=1_000), epsilon=1.0)
    assert "one cluster" in effect.no_interval
    assert effect.sampling_sd is None
