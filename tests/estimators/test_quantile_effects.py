"""Quantile effects agree with plain quantiles where noise is small, and their intervals account for noise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, SchemaError
from dpcausal.estimators.distributions import isotonic
from dpcausal.federation.coordinator.aggregate import sum_releases
from dpcausal.queries import Query
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Release
from dpcausal.report.verdict import verdict_on
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 100))


def table(n: int = 4_000, seed: int = 1) -> tuple[pa.Table, list[np.ndarray]]:
    random = np.random.default_rng(seed)
    arm = random.integers(0, 2, n)
    y = np.clip(random.normal(45 + 5 * arm, 12 + 2 * arm), 0, 100)
    return pa.table({"arm": arm, "y": y}), [y[arm == each] for each in (0, 1)]


@pytest.mark.parametrize("protects", ["record", "record_within_arm", "outcome"])
def test_quantiles_are_those_of_the_table_where_noise_vanishes(protects: dpc.schema.schema.Protects) -> None:
    cells, arms = table()
    source = fresh_noise(cells, replace(SCHEMA, protects=protects))
    effect = dpc.QuantileEffects(quantiles=[0.1, 0.5, 0.9]).estimate(source, epsilon=100.0)
    plain = [float(np.quantile(arms[1], level) - np.quantile(arms[0], level)) for level in (0.1, 0.5, 0.9)]
    assert effect.contrasts is not None
    assert effect.contrasts.names == ("0.1 quantile", "median", "0.9 quantile")
    assert effect.contrasts.values == pytest.approx(plain, abs=0.35)  # within a bin of 1.6 the curve is not straight
    assert effect.estimate == effect.contrasts.value("median")
    # Of a normal outcome, a median has a standard error of sqrt(pi / 2) times that of a mean.
    sd = sum(np.pi / 2 * arm.var() / len(arm) for arm in arms) ** 0.5
    assert effect.sampling_sd == pytest.approx(sd, rel=0.15)


def test_distribution_functions_come_with_bands() -> None:
    cells, arms = table()
    effect = dpc.QuantileEffects().estimate(fresh_noise(cells, SCHEMA), epsilon=1.0)
    (curves,) = effect.curves
    assert (curves.quantity, curves.along, curves.arms) == ("distribution", "y", effect.arms)
    for arm, outcomes in zip(curves.arms, arms, strict=True):
        true = np.array([(outcomes < edge).mean() for edge in curves.grid])
        low, high = curves.band(arm)
        assert ((low <= true) & (true <= high)).all()
        assert (high - low).max() < 0.12


def test_whole_values_have_an_interpolated_median_and_the_interval_covers_it() -> None:
    """A plain median of whole days is a whole number, which a note is about, and the estimate is not."""
    outcome, levels = dpc.Real("y", 0, 60), np.arange(61.0)
    weights = [np.exp(-((levels - mean) ** 2) / 50) for mean in (12.3, 14.6)]
    shares = [weight / weight.sum() for weight in weights]
    edges = np.arange(0.5, 60)
    grid = np.array([0.0, *edges, 60.0])
    truths = [float(np.interp(0.5, np.cumsum([0.0, *share]), grid)) for share in shares]
    plain = [float(levels[np.searchsorted(np.cumsum(share), 0.5)]) for share in shares]
    covered, covered_plain, names = [], [], set()
    for seed in range(40):
        random = np.random.default_rng(seed)
        arm = random.integers(0, 2, 3_000)
        y = np.where(arm, *(random.choice(levels, 3_000, p=share) for share in reversed(shares)))
        schema, budget = replace(SCHEMA, outcome=outcome), dpc.Budget(epsilon=2)
        vault = dpc.Vault(pa.table({"arm": arm, "y": y}), schema, ledger="sqlite://", budget=budget)
        effect = dpc.QuantileEffects([0.5], edges=tuple(edges)).estimate(vault, epsilon=2.0)
        low, high = effect.interval()
        covered.append(low <= truths[1] - truths[0] <= high)
        (note,) = (note for note in effect.notes if note.startswith("not interpolated, the median"))
        least, most = map(float, note.partition("difference ")[2].removesuffix(" (95 %)").split(" to "))
        covered_plain.append((least <= plain[1] - plain[0] <= most, low <= plain[1] - plain[0] <= high))
        names.add((effect.quantity, effect.estimand.partition(":")[0]))
    assert sum(covered) >= 34  # of 40, where 95 % would be 38
    assert sum(wide for wide, _ in covered_plain) >= 38  # edges of bins are conservative
    assert sum(interpolated for _, interpolated in covered_plain) < 34
    assert names == {("interpolated median of y", "difference in the interpolated median of the outcome")}


def test_first_quantile_is_the_effect_where_the_median_is_not_asked_for() -> None:
    effect = dpc.QuantileEffects(quantiles=[0.25]).estimate(dpc.Rehearsal(SCHEMA, n=2_000), epsilon=1.0)
    assert "0.25 quantile" in effect.estimand
    assert effect.contrasts is None


def test_interval_of_the_effect_is_its_standard_error_times_the_normal_quantile() -> None:
    effect = dpc.QuantileEffects().estimate(dpc.Rehearsal(SCHEMA, n=2_000, outcome_sd=12), epsilon=1.0)
    low, high = effect.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.96 * (effect.standard_error or 0.0), rel=0.01)
    assert effect.contrasts is not None
    assert effect.contrasts.standard_error([0, 1, 0]) == pytest.approx(effect.standard_error, rel=1e-9)


def test_more_bins_mean_more_noise_and_more_epsilon_means_less() -> None:
    trial = dpc.Rehearsal(SCHEMA, n=2_000, outcome_sd=12)
    few, many = (dpc.QuantileEffects(bins=bins).estimate(trial, epsilon=1.0).privacy_sd for bins in (32, 128))
    assert many == pytest.approx(2 * few, rel=0.1)
    assert dpc.QuantileEffects(bins=32).estimate(trial, epsilon=2.0).privacy_sd == pytest.approx(few / 2, rel=0.05)


@pytest.mark.parametrize(("n", "epsilon", "bins"), [(400, 1.0, 16), (2_000, 1.0, 32), (2_000, 4.0, 64)])
def test_default_number_of_bins_follows_units_and_epsilon(n: int, epsilon: float, bins: int) -> None:
    effect = dpc.QuantileEffects().estimate(dpc.Rehearsal(SCHEMA, n=n), epsilon=epsilon)
    assert f"on {bins} public bins" in effect.method


def test_small_arm_has_no_interval_for_an_outer_quantile() -> None:
    effect = dpc.QuantileEffects(quantiles=[0.02]).estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=0.5)
    assert "outcome's bounds" in effect.no_interval


@pytest.mark.parametrize(
    "parameters",
    [
        {"quantiles": []},
        {"quantiles": [0.0]},
        {"quantiles": [0.5, 0.5]},
        {"quantiles": "median"},
        {"bins": 1},
        {"bins": 1_000},
        {"bins": 8, "edges": [50]},
    ],
)
def test_unusable_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(QueryError, match="different quantiles between 0 and 1"):
        dpc.QuantileEffects(**parameters).estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)  # type: ignore[arg-type]


def test_binary_outcome_is_refused() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Binary("died"))
    with pytest.raises(SchemaError, match="this needs a number"):
        dpc.QuantileEffects().estimate(dpc.Rehearsal(schema, n=100), epsilon=1.0)


def test_edges_beyond_the_bounds_are_left_out() -> None:
    trial = dpc.Rehearsal(SCHEMA, n=2_000)
    inside, more = (
        dpc.QuantileEffects(edges=edges).estimate(trial, epsilon=1.0) for edges in ([40, 50], [0, 40, 50, 100, 200])
    )
    assert inside == replace(more, estimator=inside.estimator, defining=inside.defining)
    with pytest.raises(QueryError, match="edges between 0 and 100"):
        dpc.QuantileEffects(edges=[200]).estimate(trial, epsilon=1.0)


class Sites:
    """Two sites as one source, as a coordinator would be."""

    schema, arm_sizes, caveats, rule = SCHEMA, None, ("two sites",), "additive"

    def __init__(self, whole: pa.Table) -> None:
        self.n, half = len(whole), len(whole) // 2
        parts = whole.slice(0, half), whole.slice(half)
        self.sites = {str(place): fresh_noise(part, SCHEMA) for place, part in enumerate(parts)}

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        releases = {name: site.release(query, guarantee) for name, site in self.sites.items()}
        return sum_releases(query, guarantee, calibrate(query, SCHEMA, guarantee), releases)


def test_counts_of_two_sites_are_those_of_one_table_with_the_noise_of_both() -> None:
    cells, _ = table()
    estimator = dpc.QuantileEffects(bins=32)
    sources: list[Any] = [Sites(cells), fresh_noise(cells, SCHEMA)]
    together, alone = (estimator.estimate(each, epsilon=20.0) for each in sources)
    assert together.estimate == pytest.approx(alone.estimate, abs=0.1)
    assert together.privacy_sd == pytest.approx(2**0.5 * alone.privacy_sd, rel=0.1)
    assert together.noise[0].parts > 1.5 * alone.noise[0].parts


def test_several_sites_need_the_same_bins() -> None:
    assert "bins or edges" in dpc.QuantileEffects().advice_for_sites
    assert not dpc.QuantileEffects(bins=32).advice_for_sites


def test_verdict_is_about_the_quantile() -> None:
    cells, _ = table()
    vault = dpc.Vault(cells, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=20))
    effect = dpc.QuantileEffects().estimate(vault, epsilon=20.0)
    assert verdict_on(effect, effect.interval()).heading == "Higher with arm=1"


def test_isotonic_values_rise_and_keep_their_mean() -> None:
    values = np.array([0.1, 0.3, 0.2, 0.2, 0.5, 0.4])
    found = isotonic(values)
    assert (np.diff(found) >= 0).all()
    assert found.mean() == pytest.approx(values.mean())
    assert isotonic(found) == pytest.approx(found)


def test_weighted_quantiles_are_those_without_confounding() -> None:
    random = np.random.default_rng(3)
    x = random.uniform(-1, 1, 20_000)
    arm = (random.random(20_000) < 1 / (1 + np.exp(-1.2 * x))).astype(int)
    y = np.clip(45 + 5 * arm + 15 * x + random.normal(0, 8, 20_000), 0, 100)
    schema = replace(SCHEMA, covariates=[dpc.Real("x", -1, 1)])
    source = fresh_noise(pa.table({"arm": arm, "y": y, "x": x}), schema)
    effects = [
        dpc.QuantileEffects(bins=50, covariates=covariates).estimate(source, epsilon=50.0) for covariates in ([], ["x"])
    ]
    plain, weighted = (effect.contrasts for effect in effects)
    assert plain is not None
    assert weighted is not None
    assert min(plain.values) > 7
    assert weighted.values == pytest.approx([5.0] * 3, abs=1.2)
    for name in weighted.names:
        low, high = weighted.interval(name)
        assert low <= 5 <= high
    assert effects[1].curves[0].arms == effects[1].arms


def test_weighted_quantiles_have_fewer_bins() -> None:
    schema = replace(SCHEMA, covariates=[dpc.Real("x", -1, 1)])
    for n, bins in ((4_000, 16), (20_000, 32), (1_000_000, 48)):
        effect = dpc.QuantileEffects(covariates=["x"]).estimate(dpc.Rehearsal(schema, n=n), epsilon=1.0)
        assert f"on {bins} public bins, weighted for the ATE" in effect.method
