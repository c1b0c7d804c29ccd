"""Metrics with slopes, centres and bounds from an earlier release: one number for each unit, and less noise."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import DpcausalError
from tests.support.metrics import metric_columns

N = 9_000
COLUMNS = metric_columns() | {"week": np.sort(np.random.default_rng(2).integers(1, 3, N))}
TABLE = pa.table(COLUMNS)
CLICKS, VIEWS = dpc.Real("clicks", 0, 30, missing=0), dpc.Real("views", 0, 40, missing=0)
REVENUE, BEFORE = dpc.Real("revenue", 0, 60, missing=0), dpc.Real("before", 0, 60)
RATIO = dpc.Earlier(slope=0.2, low=-8, high=9)
SLOPE = dpc.Earlier(slope=0.5, low=-15, high=30, centre=20)
EXPERIMENT = dpc.Experiment(
    name="checkout",
    treatment=dpc.Treatment("arm", arms=("old", "blue", "green"), compare="blue"),
    metrics=[
        dpc.Metric(CLICKS, denominator=VIEWS, earlier=RATIO),
        dpc.Metric(REVENUE, covariate=BEFORE, earlier=SLOPE, name="adjusted"),
        dpc.Metric(REVENUE),
        dpc.Metric(VIEWS),
    ],
    epsilon=100.0,
)


def by_hand(name: str, arm: str) -> float:
    """What a metric is in an arm, by NumPy."""
    inside = COLUMNS["arm"] == arm
    columns = {
        each.name: np.clip(COLUMNS[each.name][inside], each.low, each.high) for each in (CLICKS, VIEWS, REVENUE, BEFORE)
    }
    if name == "clicks per views":
        mean = np.clip(columns["clicks"] - 0.2 * columns["views"], -8, 9).mean()
        return float(0.2 + mean / columns["views"].mean())
    return float(np.clip(columns["revenue"] - 0.5 * columns["before"], -15, 30).mean() + 0.5 * 20)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_means_are_those_of_the_clipped_differences(delta: float) -> None:
    asked = replace(EXPERIMENT, delta=delta)
    card = asked.run(dpc.Vault(TABLE, asked.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=1e-5)))
    for name in ("clicks per views", "adjusted"):
        for line in (each for each in card.lines if each.metric == name):
            arm = line.treated.removeprefix("arm=")
            errors = 8 * line.privacy_sd + 1e-4
            assert line.control_mean == pytest.approx(by_hand(name, "old"), abs=errors)
            assert line.treated_mean == pytest.approx(by_hand(name, arm), abs=errors)
    assert "ratio of sums, by the mean of clicks less" in card.effect("clicks per views", "arm=blue").estimand
    assert "clicks less 0.2 times views, held between -8 and 9" in str(card.effect("clicks per views", "arm=blue"))


def test_looks_take_what_is_earlier_too() -> None:
    asked = replace(EXPERIMENT, delta=1e-6, cohorts=dpc.Category("week", [1, 2]), planned_n=N)
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=100, delta=1e-5), as_of="all")
    vault = dpc.Vault(TABLE, asked.schema, ledger=ledger, as_of="all")
    card = [asked.run(vault, look) for look in (1, 2)][-1]
    line = next(each for each in card.lines if each.metric == "adjusted" and each.treated == "arm=blue")
    assert line.control_mean == pytest.approx(by_hand("adjusted", "old"), abs=8 * line.privacy_sd + 1e-4)


def test_noise_is_smaller_than_that_of_two_columns() -> None:
    usual = replace(EXPERIMENT, metrics=[replace(each, earlier=None) for each in EXPERIMENT.metrics], epsilon=1.0)
    typical = {"clicks": (0, 6), "views": (4, 25), "revenue": (2, 40), "before": (2, 40)}
    before, after = (each.rehearsed(N, typical) for each in (usual, replace(EXPERIMENT, epsilon=1.0)))
    for name in ("clicks per views", "adjusted"):
        sds = [next(line.privacy_sd for line in card.lines if line.metric == name) for card in (before, after)]
        assert sds[1] < 0.9 * sds[0]


def test_earlier_scorecard_says_what_is_needed() -> None:
    usual = replace(EXPERIMENT, metrics=[dpc.Metric(CLICKS, denominator=VIEWS), dpc.Metric(VIEWS)])
    card = usual.run(dpc.Vault(TABLE, usual.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100)))
    effect, views = card.effect("clicks per views", "arm=blue"), card.effect("views", "arm=blue")
    earlier = dpc.Earlier.ratio(effect, denominator=views.compared_means().values[0])
    inside = COLUMNS["arm"] == "old"
    clicks, seen = (np.clip(COLUMNS[name][inside], 0, most) for name, most in (("clicks", 30), ("views", 40)))
    assert earlier.slope == pytest.approx(clicks.mean() / seen.mean(), rel=0.01)
    assert earlier.high == pytest.approx(5 * np.std(clicks - earlier.slope * seen), rel=0.15)


@pytest.mark.parametrize("slope", [0.05, 0.3, 0.6])
def test_ratio_is_right_wherever_the_earlier_one_was(slope: float) -> None:
    """One ratio in all arms, and 30 % more views in one: no difference, whatever was known, and widths that say so."""
    random = np.random.default_rng(5)
    arm = random.choice(["old", "blue", "green"], 30 * N)
    views = np.minimum(random.poisson(np.where(arm == "blue", 13, 10)), 40)
    table = pa.table({"arm": arm, "views": views, "clicks": random.binomial(views, 0.3)})
    usual = dpc.Metric(CLICKS, denominator=VIEWS)
    errors = []
    for metric in (usual, replace(usual, earlier=dpc.Earlier(slope=slope, low=-25, high=25))):
        asked = replace(EXPERIMENT, metrics=[metric, dpc.Metric(VIEWS)])
        card = asked.run(dpc.Vault(table, asked.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100)))
        effect = card.effect("clicks per views", "arm=blue")
        assert effect.compared_means().values == pytest.approx((0.3, 0.3), abs=0.002)
        errors.append(effect.sampling_sd or 0.0)
        assert abs(effect.estimate) < 4 * errors[-1]
    assert 0.98 * errors[0] < errors[1] < (1.02 + 5 * abs(slope - 0.3)) * errors[0]


def test_mean_of_a_covariate_is_taken_from_before() -> None:
    adjusted = EXPERIMENT.rehearsed(N).effect("adjusted", "arm=blue")
    assert any("lifts rest on it" in each for each in adjusted.assumptions)
    rule = dpc.DecisionRule(guardrails=[dpc.Guardrail("adjusted", 0.1, relative=True)])
    with pytest.raises(DpcausalError, match="rests on an earlier mean"):
        replace(EXPERIMENT, rule=rule)


def test_only_a_ratio_says_what_is_earlier_of_one() -> None:
    card = EXPERIMENT.run(dpc.Vault(TABLE, EXPERIMENT.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100)))
    with pytest.raises(DpcausalError, match="the effect of a ratio metric"):
        dpc.Earlier.ratio(card.effect("revenue", "arm=blue"), denominator=9)


def test_file_holds_what_is_earlier() -> None:
    assert dpc.Experiment.from_toml(EXPERIMENT.to_toml()) == EXPERIMENT


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dpc.Earlier(slope=0.1, low=2, high=2), "low < high"),
        (lambda: dpc.Metric(REVENUE, earlier=SLOPE), "with a covariate"),
        (lambda: dpc.Metric(REVENUE, covariate=BEFORE, earlier=RATIO), "whose earlier mean is the centre"),
        (lambda: dpc.Metric(CLICKS, denominator=VIEWS, earlier=SLOPE), "has no centre"),
        (lambda: replace(EXPERIMENT, metrics=EXPERIMENT.metrics[:1]), "make views a metric of its own"),
        (
            lambda: dpc.Experiment(
                name="e",
                treatment=dpc.Treatment("arm"),
                metrics=[
                    dpc.Metric(CLICKS, denominator=VIEWS, earlier=replace(RATIO, low=0, high=1e-5)),
                    dpc.Metric(VIEWS),
                ],
                epsilon=1.0,
            ).rehearsed(100),
            "far narrower",
        ),
    ],
)
def test_what_cannot_be_earlier_is_refused(make: object, words: str) -> None:
    with pytest.raises(DpcausalError, match=words):
        make()  # type: ignore[operator]


def test_bounds_that_hold_many_units_widen_or_refuse() -> None:
    """Bounds at 5, 2.5 and 1 standard deviations take 0, 11 and 38 % off an effect, in units that are as large."""
    random = np.random.default_rng(6)
    arm = random.choice(["old", "blue"], 20_000)
    views, rate = np.minimum(random.poisson(random.gamma(2, 5, 20_000)), 60), random.beta(2, 6, 20_000)
    clicks = [random.binomial(views, np.minimum(rate * lift, 1)) for lift in (1, 1.15)]
    truth = (clicks[1].sum() - clicks[0].sum()) / views.sum()
    table = pa.table({"arm": arm, "views": views, "clicks": np.where(arm == "blue", clicks[1], clicks[0])})
    clicks_of, views_of = (dpc.Real(name, 0, 60, missing=0) for name in ("clicks", "views"))
    effects = []
    for bound in (12, 6, 2.5):
        earlier = dpc.Earlier(slope=0.25, low=-bound, high=bound)
        metrics = [dpc.Metric(clicks_of, denominator=views_of, earlier=earlier), dpc.Metric(views_of)]
        asked = replace(EXPERIMENT, metrics=metrics, treatment=dpc.Treatment("arm", arms=("old", "blue")))
        card = asked.run(dpc.Vault(table, asked.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100)))
        effects.append(card.effect("clicks per views", "arm=blue"))
    usual, narrow, narrowest = effects
    assert usual.bias_bound == 0
    assert not any("count as these" in note for note in usual.notes)
    assert narrow.bias_bound > 0.1 * narrow.estimate
    assert any("count as these, so that the metric moves less" in note for note in narrow.notes)
    low, high = narrow.interval(0.95)
    assert low < truth < high
    assert "beyond the earlier bounds" in narrowest.no_interval
    assert any(text.startswith("few units are beyond the bounds of clicks less 0.25") for text in usual.assumptions)


def test_a_numerator_that_is_a_metric_shows_what_bounds_take_off() -> None:
    """One unit in a hundred has 30 clicks more in one arm, which bounds hold: its mean tells."""
    random = np.random.default_rng(7)
    arm, views = random.choice(["old", "blue"], 20_000), np.minimum(random.poisson(10, 20_000), 40)
    clicks = random.binomial(views, 0.2) + 30 * (random.random(20_000) < 0.01) * (arm == "blue")
    table = pa.table({"arm": arm, "views": views, "clicks": clicks})
    column = dpc.Real("clicks", 0, 70, missing=0)
    metric = dpc.Metric(column, denominator=VIEWS, earlier=dpc.Earlier(slope=0.2, low=-8, high=8))
    effects = []
    for metrics in ([metric, dpc.Metric(VIEWS)], [metric, dpc.Metric(VIEWS), dpc.Metric(column)]):
        asked = replace(EXPERIMENT, metrics=metrics, treatment=dpc.Treatment("arm", arms=("old", "blue")))
        card = asked.run(dpc.Vault(table, asked.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100)))
        effects.append(card.effect("clicks per views", "arm=blue"))
    alone, counted = effects
    assert counted.bias_bound == pytest.approx(0.022, abs=0.003)
    assert alone.bias_bound < counted.bias_bound
    low, high = counted.interval(0.95)
    assert low < 0.03 < high
