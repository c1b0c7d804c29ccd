"""An experiment with a look after each cohort: one payment, sums so far, and intervals that hold at all looks."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.errors import DpcausalError
from dpcausal.uncertainty.anytime import anytime_half_width, anytime_p_value, mixture_limit, two_sided_alpha
from dpcausal.uncertainty.interval import NoiseTerm
from tests.support.metrics import metric_columns

WEEKS = [1, 2, 3]
COLUMNS = metric_columns() | {"week": np.sort(np.random.default_rng(2).integers(1, 4, 9_000))}
TABLE = pa.table(COLUMNS)
THREE = dpc.Treatment("arm", arms=("old", "blue", "green"), compare="blue", labels=("old", "blue", "green"))
EXPERIMENT = dpc.Experiment(
    name="checkout",
    treatment=THREE,
    metrics=[
        dpc.Metric(dpc.Real("revenue", 0, 60, missing=0), covariate=dpc.Real("before", 0, 60), weight=2),
        dpc.Metric(dpc.Binary("bought", missing=0)),
        dpc.Metric(dpc.Real("clicks", 0, 30, missing=0), denominator=dpc.Real("views", 0, 40, missing=0)),
    ],
    epsilon=90.0,
    delta=1e-6,
    cohorts=dpc.Category("week", WEEKS),
    planned_n=9_000,
)


def looks(experiment: dpc.Experiment) -> tuple[list[dpc.Scorecard], dpc.Ledger]:
    """Run an experiment after each week, on the users so far."""
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=100, delta=1e-5), as_of="week 1")
    cards = []
    for week in WEEKS:
        if week > 1:
            ledger.add_version(f"week {week}")
        so_far = TABLE.filter(pa.compute.less_equal(TABLE["week"], week))
        cards.append(experiment.run(dpc.Vault(so_far, experiment.schema, ledger=ledger, as_of=f"week {week}"), week))
    return cards, ledger


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_look_is_of_all_units_so_far_and_the_first_pays(delta: float) -> None:
    cards, ledger = looks(replace(EXPERIMENT, delta=delta))
    for week, card in zip(WEEKS, cards, strict=True):
        seen = COLUMNS["week"] <= week
        assert card.effects[0].n == seen.sum()
        assert card.looks
        assert (card.looks.look, card.looks.all) == (week, 3)
        assert card.looks.progress == pytest.approx(seen.sum() / 9_000, abs=0.01)
        one, other = (seen & (COLUMNS["arm"] == arm) for arm in ("old", "green"))
        bought = next(line for line in card.lines if line.metric == "bought" and line.treated == "green")
        values = COLUMNS["bought"]
        expected = values[other].mean() - values[one].mean()
        assert bought.difference == pytest.approx(expected, abs=4 * bought.privacy_sd + 1e-4)
        error = math.hypot(*(values[at].std() / at.sum() ** 0.5 for at in (one, other)))
        assert bought.sampling_sd == pytest.approx(error, rel=0.05)
        ratio = next(line for line in card.lines if line.metric == "clicks per views" and line.treated == "green")
        rates = [COLUMNS["clicks"][at].sum() / COLUMNS["views"][at].sum() for at in (one, other)]
        assert ratio.difference == pytest.approx(rates[1] - rates[0], abs=4 * ratio.privacy_sd + 1e-4)
    assert [entry.kind for entry in ledger.entries()].count("debit") == 1
    assert ledger.spent.epsilon <= 90


def test_intervals_and_p_values_hold_at_all_looks() -> None:
    """They are those of `anytime_interval` at the level of each comparison, and wider than those of one look."""
    (*_, card), _ = looks(EXPERIMENT)
    alone = replace(card, looks=None)
    each = 0.05 / len(card.lines)
    for effect, line, narrow in zip(card.effects, card.lines, alone.lines, strict=True):
        assert card.looks
        planned = round(effect.n / card.looks.progress)
        low, high = dpc.anytime_interval(effect, look=3, tuned_n=planned, alpha=each)
        assert (line.low, line.high) == pytest.approx((low, high), rel=1e-3, abs=1e-4)
        assert narrow.low is not None
        assert narrow.high is not None
        assert low < narrow.low < narrow.high < high
        assert line.p_value is not None
        assert line.p_value >= (narrow.p_value or 0)
        assert (line.p_value < each) == (not low <= 0 <= high)


def test_effect_of_a_look_has_no_interval_that_is_for_one_look() -> None:
    (*_, card), _ = looks(EXPERIMENT)
    for effect in (card.effect("bought", "green"), dpc.Effect.from_json(card.effect("bought", "green").to_json())):
        assert effect.looks == card.looks
        assert card.looks
        tuned = {"look": 3, "tuned_n": round(effect.n / card.looks.progress)}
        assert effect.interval() == pytest.approx(dpc.anytime_interval(effect, **tuned), rel=1e-3)
        alone = replace(effect, looks=None)
        for measure in ("risk_ratio", "relative_lift", "odds_ratio", "number_needed_to_treat"):
            wide, narrow = (getattr(each, measure)() for each in (effect, alone))
            assert (wide.low < narrow.low) == (narrow.high < wide.high)
            assert wide.estimate == narrow.estimate
        for alternative in ("two-sided", "greater", "less"):
            assert effect.p_value(0.03, alternative) >= alone.p_value(0.03, alternative)
        assert (effect.p_value(effect.interval()[0], "greater")) < 0.03
        assert "hold at all of them" in str(effect)
    with pytest.raises(DpcausalError, match="one look"):
        dpc.pool({"a": effect, "b": effect})


def test_one_sided_limits_hold_at_all_looks() -> None:
    """Random walks that are stopped at the first estimate beyond the upper limit, at any of 200 looks."""
    random, alpha = np.random.default_rng(8), 0.1
    n = np.arange(1, 201) * 25.0
    walks = random.normal(0, 5, (4_000, len(n))).cumsum(axis=1)  # of 25 units of variance 1 between looks
    limits = np.array([mixture_limit(units / 2_500, two_sided_alpha(alpha)) for units in n]) * np.sqrt(n)
    beyond = (walks > limits).any(axis=1).mean()
    assert 0.4 * alpha < beyond <= alpha


@pytest.mark.parametrize("noise", [[], [NoiseTerm("gaussian", 0.6)], [NoiseTerm("laplace", 0.4, 2)]])
def test_p_value_is_the_level_whose_interval_ends_at_0(noise: list[NoiseTerm]) -> None:
    for estimate in (0.5, 2.0, 4.0, 6.0):
        tuned: dict[str, Any] = {"look": 4, "progress": 0.3, "tuned_alpha": 0.01}
        p_value = anytime_p_value(estimate, 1.0, noise, **tuned)
        if p_value < 1:
            halves = [anytime_half_width(1.0, noise, p_value * share, **tuned) for share in (1.0, 0.98)]
            assert halves[0] <= estimate + 0.01
            assert halves[1] >= estimate - 0.01
        else:
            assert anytime_half_width(1.0, noise, 0.99, **tuned) >= estimate


def test_smaller_alpha_means_wider_with_one_tuning() -> None:
    for progress in (0.01, 0.3, 1.0, 30.0):
        halves = [
            anytime_half_width(1.0, [], alpha, look=2, progress=progress, tuned_alpha=0.01)
            for alpha in (0.9, 0.3, 0.05, 0.01, 1e-4, 1e-8)
        ]
        assert halves == sorted(halves)


def test_plan_is_that_of_the_last_look() -> None:
    (*_, card), _ = looks(replace(EXPERIMENT, epsilon=2.0))
    plan = replace(EXPERIMENT, epsilon=2.0).rehearsed(
        9_000, {"revenue": (1, 25), "before": (1, 25), "clicks": (0, 6), "views": (4, 14)}
    )
    assert plan.looks is not None
    assert plan.looks.look == 3
    for planned, line in zip(plan.lines, card.lines, strict=True):
        assert planned.privacy_sd == pytest.approx(line.privacy_sd, rel=0.5)


def test_file_page_and_json(tmp_path: Path) -> None:
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 (of other development tools)

    assert dpc.Experiment.from_toml(EXPERIMENT.to_toml()) == EXPERIMENT
    (card, *_), _ = looks(EXPERIMENT)
    schema = json.loads((Path(__file__).parents[2] / "docs" / "scorecard.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(card.to_json()), schema)
    assert "at all 3 looks" in str(card)
    assert "Look 1 of 3." in card.to_html()
    pa.parquet.write_table(TABLE, tmp_path / "users.parquet")
    (tmp_path / "experiment.toml").write_text(replace(EXPERIMENT, epsilon=1.0).to_toml(), encoding="utf-8")
    run = CliRunner()
    words = ["ledger", "create", f"{tmp_path}/ledger.db", "--epsilon", "1", "--delta", "1e-6", "--as-of", "w2"]
    assert run.invoke(app, words).exit_code == 0
    words = ["experiment", "run", f"{tmp_path}/experiment.toml", "--table", f"{tmp_path}/users.parquet", "--yes"]
    words += ["--ledger", f"{tmp_path}/ledger.db", "--as-of", "w2", "--look", "2", "--out", f"{tmp_path}/card.html"]
    found = run.invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "2 of 3" in found.output


@pytest.mark.parametrize(
    "wrong",
    [
        {"planned_n": None},
        {"cohorts": None},
        {"entry": "week"},
        {"planned_n": 0},
        {"cohorts": dpc.Category("bought", [0, 1])},
    ],
)
def test_what_concerns_looks_is_declared_whole(wrong: dict[str, Any]) -> None:
    with pytest.raises(DpcausalError, match="cohorts"):
        replace(EXPERIMENT, **wrong)
    alone = replace(EXPERIMENT, cohorts=None, planned_n=None)
    with pytest.raises(DpcausalError, match="no look"):
        alone.run(dpc.Rehearsal(alone.schema, 9_000), look=1)


def command(folder: Path, *words: str) -> Any:
    """Run the experiment in a folder."""
    asked = ["experiment", "run", f"{folder}/experiment.toml", "--ledger", f"{folder}/ledger.db", "--yes", *words]
    return CliRunner().invoke(app, asked)


def test_a_look_that_is_not_named_draws_nothing(tmp_path: Path) -> None:
    """Left out, all looks would be drawn from the first week's table, and later weeks would be in none of them."""
    vault = dpc.Vault(TABLE, EXPERIMENT.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=1e-5))
    with pytest.raises(DpcausalError, match="3 looks, and none was named"):
        EXPERIMENT.run(vault)
    assert vault.ledger.spent.epsilon == 0
    (tmp_path / "experiment.toml").write_text(replace(EXPERIMENT, epsilon=1.0).to_toml(), encoding="utf-8")
    ledger = dpc.Ledger.create(f"sqlite:///{tmp_path}/ledger.db", dpc.Budget(epsilon=1, delta=1e-6), as_of="week 1")
    pa.parquet.write_table(TABLE, tmp_path / "users.parquet")
    found = command(tmp_path, "--table", f"{tmp_path}/users.parquet", "--as-of", "week 2", "--new-version")
    assert found.exit_code != 0
    assert list(ledger.versions) == ["week 1"]


def test_a_new_version_that_has_not_grown_is_not_drawn(tmp_path: Path) -> None:
    """The job of week 2 ran before its table was there."""
    (tmp_path / "experiment.toml").write_text(replace(EXPERIMENT, epsilon=1.0).to_toml(), encoding="utf-8")
    ledger = dpc.Ledger.create(f"sqlite:///{tmp_path}/ledger.db", dpc.Budget(epsilon=1, delta=1e-6), as_of="week 1")
    for week in (1, 2):
        so_far = TABLE.filter(pa.compute.less_equal(TABLE["week"], week))
        pa.parquet.write_table(so_far, tmp_path / f"{week}.parquet")
    first, *second = [f"{tmp_path}/1.parquet", "--new-version", "--as-of", "week 2", "--look", "2"]
    assert command(tmp_path, "--table", first, "--as-of", "week 1", "--look", "1").exit_code == 0
    for _ in range(2):  # schedulers try again
        found = command(tmp_path, "--table", first, *second)
        assert found.exit_code != 0
        assert "nobody has entered" in found.output.replace("\n", " ")
    answers = [entry.kind for entry in ledger.entries()]
    grown = ["--new-version", "--as-of", "week 2 again", "--look", "2"]
    found = command(tmp_path, "--table", f"{tmp_path}/2.parquet", *grown)
    assert found.exit_code == 0, found.output
    assert "look 2 of 3" in found.output.replace("\n", " ")
    same = ["--table", f"{tmp_path}/2.parquet", "--new-version", "--as-of", "week 3", "--look", "3"]
    assert command(tmp_path, *same).exit_code != 0
    assert command(tmp_path, *same, "--unchanged").exit_code == 0
    assert "count in none" not in found.output.replace("\n", " ")  # it was drawn from the table that had grown
    assert answers.count("debit") == [entry.kind for entry in ledger.entries()].count("debit") == 1


def test_units_of_no_declared_arm_and_of_no_look_so_far_are_counted() -> None:
    """An arm that is left out of the declaration does not move the ratio of the others."""
    arms = dpc.Treatment("arm", arms=("old", "blue"))
    two = replace(EXPERIMENT, treatment=arms, cohorts=None, planned_n=None)
    for experiment, outside in ((two, (COLUMNS["arm"] == "green").sum()), (replace(two, treatment=THREE), None)):
        vault = dpc.Vault(TABLE, experiment.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=1e-5))
        card = experiment.run(vault)
        assert card.sample_ratio.units == 9_000
        if outside is None:
            assert card.sample_ratio.outside is None
            assert "outside" not in str(card)
        else:
            assert card.sample_ratio.outside == pytest.approx(outside, abs=5)
            assert not card.sample_ratio.mismatch
            assert "count in none of the arms" in " ".join(str(card).split())
            assert "count in none of the arms" in card.to_html().partition("Verdicts")[0]
            assert json.loads(card.to_json())["sample_ratio"]["outside"] == card.sample_ratio.outside
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=100, delta=1e-5), as_of="week 1")
    first = dpc.Vault(TABLE, EXPERIMENT.schema, ledger=ledger, as_of="week 1")
    early = " ".join(str(EXPERIMENT.run(first, look=1)).split())
    assert "that the table is the one of this look" in early
    assert "never drawn again" in " ".join(str(EXPERIMENT.run(first, look=1)).split())


def test_noise_alone_is_not_counted_as_units_outside() -> None:
    """At a small epsilon the sizes add up to another number than n, by noise."""
    experiment = replace(EXPERIMENT, epsilon=0.02, delta=0.0, cohorts=None, planned_n=None)
    for _ in range(20):
        vault = dpc.Vault(TABLE, experiment.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
        assert experiment.run(vault).sample_ratio.outside is None
