"""An experiment that takes caps, linearised ratios and shares of its budget from an earlier scorecard."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import StudyError
from dpcausal.experiment.informed import shares
from dpcausal.experiment.scorecard import Scorecard
from dpcausal.guarantee import Rule
from tests.support.metrics import metric_columns

N = 60_000
COLUMNS = metric_columns(N)
TABLE = pa.table(COLUMNS)
EXPERIMENT = dpc.Experiment(
    name="checkout",
    treatment=dpc.Treatment("arm", arms=("old", "blue", "green"), compare="blue"),
    metrics=[
        dpc.Metric(dpc.Real("seconds", 0, 200, missing=20), lower_is_better=True),
        dpc.Metric(dpc.Real("revenue", 0, 60, missing=0), weight=2),
        dpc.Metric(dpc.Binary("bought", missing=0)),
        dpc.Metric(dpc.Real("clicks", 0, 300, missing=0), denominator=dpc.Real("views", 0, 400, missing=0)),
        dpc.Metric(dpc.Real("views", 0, 400, missing=0)),
        dpc.Metric(dpc.Real("revenue", 0, 60, missing=0), covariate=dpc.Real("before", 0, 60), name="adjusted"),
    ],
    epsilon=2.0,
    delta=1e-6,
)


def run(experiment: dpc.Experiment) -> Scorecard:
    budget = dpc.Budget(epsilon=experiment.epsilon, delta=1e-6, rule="zcdp")
    return experiment.run(dpc.Vault(TABLE, experiment.schema, ledger="sqlite://", budget=budget))


FIRST = run(EXPERIMENT)


SCALES = {name: COLUMNS[name].std() for name in ("seconds", "revenue", "bought", "views")} | {
    "clicks per views": (COLUMNS["clicks"] - 0.3 * COLUMNS["views"]).std() / COLUMNS["views"].mean(),
    "adjusted": (COLUMNS["revenue"] - 0.9 * COLUMNS["before"]).std(),
}
"""The standard deviation of each metric from unit to unit."""


def noise(card: Scorecard) -> dict[str, float]:
    """Return the privacy noise of each metric in its standard deviations."""
    return {line.metric: line.privacy_sd / SCALES[line.metric] for line in card.lines}


def test_noise_goes_where_it_does_least_harm() -> None:
    later = EXPERIMENT.informed_by(FIRST)
    before, after = noise(FIRST), noise(run(later))
    assert before["seconds"] > 2 * after["seconds"]
    assert before["clicks per views"] > 2 * after["clicks per views"]
    assert sum(each**2 for each in after.values()) < 0.3 * sum(each**2 for each in before.values())
    assert later.epsilon == EXPERIMENT.epsilon
    assert dpc.Experiment.from_toml(later.to_toml()) == later


@pytest.mark.parametrize(("rule", "delta"), [("zcdp", 1e-6), ("additive", 0.0)])
def test_shares_are_those_of_least_variance(rule: Rule, delta: float) -> None:
    """With no aim for single metrics, no exchange of a tenth between two makes the sum of variances smaller."""
    alone = replace(EXPERIMENT, metrics=[replace(each, weight=1.0) for each in EXPERIMENT.metrics[:3]], delta=delta)
    best = alone.informed_by(run(replace(alone, epsilon=100.0, delta=1e-6)), spread=math.inf, within=0)

    def variance(weights: list[float]) -> float:
        asked = replace(best, metrics=[replace(m, weight=w) for m, w in zip(best.metrics, weights, strict=True)])
        return sum(each**2 for each in noise(asked.run(dpc.Rehearsal(asked.schema, N, rule=rule))).values())

    weights = [each.weight for each in best.metrics]
    least = variance(weights)
    for one in range(3):
        for other in range(3):
            moved = list(weights)
            moved[one] += 0.1 * weights[other]
            moved[other] *= 0.9
            assert variance(moved) > 0.999 * least
    assert least < 0.9 * variance([1.0, 1.0, 1.0])


@pytest.mark.parametrize("least", [0.0, 4 / 9, 2 / 3])
def test_as_many_as_possible_have_the_share_that_they_need(least: float) -> None:
    """No choice of metrics that fits beside the least shares has more, and nothing is left over or without a share."""
    random = np.random.default_rng(0)
    for _ in range(300):
        metrics = int(random.integers(1, 9))
        fair = random.dirichlet(np.ones(metrics))
        needs = random.lognormal(-math.log(metrics), 1.0, metrics)
        needs[random.random(metrics) < 0.1] = math.inf
        given = np.array(shares(fair.tolist(), needs.tolist(), [1.0] * metrics, least))
        assert given.sum() == pytest.approx(1)
        assert (given >= least * fair - 1e-12).all()
        have = (given >= needs - 1e-12).sum()
        assert have >= (fair >= needs).sum()
        more = np.sort(np.maximum(needs - least * fair, 0))
        most = (np.cumsum(more) <= 1 - least + 1e-12).sum()
        if most >= metrics / 2:
            assert have == most
        else:
            assert given == pytest.approx(fair)


def test_weight_counts_in_what_is_brought_within_reach() -> None:
    """One metric with most of the weight comes before two that need less together."""
    assert shares([1 / 3] * 3, [0.9, 0.3, 0.3], [8.0, 1.0, 1.0], 0.0) == pytest.approx([0.9, 0.05, 0.05])
    assert shares([1 / 3] * 3, [0.9, 0.3, 0.3], [1.0, 1.0, 1.0], 0.0) == pytest.approx([0.4, 0.3, 0.3])


def test_the_next_size_decides_what_can_be_reached() -> None:
    weeks, known = dpc.Category("week", [1, 2]), run(replace(EXPERIMENT, epsilon=100.0))

    def weights(n: int, within: float) -> list[float]:
        planned = replace(EXPERIMENT, cohorts=weeks, planned_n=n).informed_by(known, within=within)
        return [each.weight for each in planned.metrics]

    fair = weights(1_000, 0.0)
    assert weights(1_000, 0.05) == fair  # hardly any metric can come near
    assert weights(10**6, 0.05) != pytest.approx(fair, rel=0.1)
    assert weights(10**9, 0.05) == pytest.approx(fair)  # all are near already
    wrong: list[Any] = [-0.1, math.nan, math.inf, "much"]
    for within in wrong:
        with pytest.raises(StudyError, match="within="):
            EXPERIMENT.informed_by(FIRST, within=within)


def test_caps_are_some_standard_deviations_from_the_mean() -> None:
    later = {
        each.label: each for each in EXPERIMENT.informed_by(run(replace(EXPERIMENT, epsilon=100.0)), spread=4).metrics
    }
    seconds: Any = later["seconds"].column
    inside = COLUMNS["seconds"][COLUMNS["arm"] == "old"]
    assert seconds.low == 0
    assert seconds.high == pytest.approx(max(inside.mean() + 4 * inside.std(), 20), rel=0.3)
    earlier = later["clicks per views"].earlier
    assert earlier is not None
    assert earlier.slope == pytest.approx(0.3, abs=0.01)
    assert earlier.centre is None
    residual = COLUMNS["clicks"] - 0.3 * COLUMNS["views"]
    assert 3.9 * residual.std() < earlier.high < 8 * residual.std()
    # Columns of two metrics keep one declaration, and importance its say.
    assert later["views"].column == EXPERIMENT.metrics[4].column
    assert later["revenue"].column == EXPERIMENT.metrics[1].column
    same = EXPERIMENT.informed_by(FIRST, spread=math.inf)
    assert [each.declared for each in same.metrics] == [each.declared for each in EXPERIMENT.metrics]


@pytest.mark.parametrize(
    ("card", "spread"),
    [(EXPERIMENT.rehearsed(1_000), 5.0), (FIRST, 0.0), (FIRST, math.nan), (replace(FIRST, kinds={"other": "mean"}), 5)],
)
def test_what_says_nothing_is_refused(card: Scorecard, spread: float) -> None:
    with pytest.raises(StudyError):
        EXPERIMENT.informed_by(card, spread=spread)


def test_caps_do_not_shrink_from_scorecard_to_scorecard() -> None:
    """The standard deviation of what is capped is too small for another cap."""
    spent = np.random.default_rng(3).lognormal(0, 2, N)
    table = TABLE.append_column("spent", pa.array(spent))
    asked = replace(EXPERIMENT, metrics=[dpc.Metric(dpc.Real("spent", 0, 5_000, missing=0))], epsilon=50.0)
    caps = []
    for _ in range(4):
        budget = dpc.Budget(epsilon=50, delta=1e-6)
        card = asked.run(dpc.Vault(table, asked.schema, ledger="sqlite://", budget=budget))
        asked = asked.informed_by(card)
        column = asked.metrics[0].column
        assert isinstance(column, dpc.Real)
        caps.append(column.high)
    assert caps[0] < 1_000
    assert caps[2] == caps[3] > 0.4 * caps[0]
    last = asked.run(dpc.Vault(table, asked.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=50, delta=1e-6)))
    assert f"values held between 0 and {caps[-1]:g}" in last.effects[0].estimand


def test_denominator_is_found_by_its_column_whatever_its_metric_is_called() -> None:
    clicks, views = EXPERIMENT.metrics[3], EXPERIMENT.metrics[4]
    other = dpc.Metric(dpc.Real("seconds", 0, 200, missing=20), name="views")
    asked = replace(EXPERIMENT, metrics=[clicks, replace(views, name="seen"), other], epsilon=100.0)
    later = asked.informed_by(run(asked))
    both = replace(asked, metrics=[clicks, views, replace(other, name="seconds")])
    known, expected = later.metrics[0].earlier, both.informed_by(run(both)).metrics[0].earlier
    assert known is not None
    assert expected is not None
    assert (known.slope, known.high) == pytest.approx((expected.slope, expected.high), rel=0.5)
    alone = replace(asked, metrics=[clicks, other])
    assert alone.informed_by(run(alone)).metrics[0].earlier is None


def test_the_json_of_a_scorecard_says_the_same(tmp_path: Path) -> None:
    """The next experiment is declared in another quarter, by another process."""
    FIRST.save(tmp_path / "checkout.json")
    assert EXPERIMENT.informed_by(tmp_path / "checkout.json") == EXPERIMENT.informed_by(FIRST)
    EXPERIMENT.rehearsed(N).save(tmp_path / "plan.json")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (tmp_path / "text.json").write_text('{"comparisons": [{}], "sample_ratio": 1}', encoding="utf-8")
    wrong: list[Any] = [tmp_path / name for name in ("plan.json", "list.json", "text.json", "none.json")]
    for other in [*wrong, "checkout.json", None]:
        with pytest.raises(StudyError):
            EXPERIMENT.informed_by(other)
