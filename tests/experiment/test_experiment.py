"""An experiment is one query, and its scorecard agrees with NumPy where noise vanishes."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.errors import BudgetExceededError, DpcausalError, RefusedError
from dpcausal.experiment.page import _table
from dpcausal.experiment.sample_ratio import SampleRatio
from dpcausal.uncertainty.interval import NoiseTerm, beyond, half_width, inverted_half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from tests.statistics.law import probability_within
from tests.support.metrics import metric_columns

DOCS = Path(__file__).parents[2] / "docs"
REVENUE, BEFORE = dpc.Real("revenue", 0, 60, missing=0), dpc.Real("before", 0, 60)
METRICS = (
    dpc.Metric(REVENUE, covariate=BEFORE, weight=2),
    dpc.Metric(dpc.Binary("bought", missing=0)),
    dpc.Metric(dpc.Real("clicks", 0, 30, missing=0), denominator=dpc.Real("views", 0, 40, missing=0)),
    dpc.Metric(dpc.Real("seconds", 0, 20, missing=20), name="seconds to load", lower_is_better=True),
)
EXPERIMENT = dpc.Experiment(
    name="checkout",
    question="Does it sell more?",
    treatment=dpc.Treatment("arm", arms=("old", "blue", "green"), compare="blue", labels=("old", "blue", "green")),
    metrics=METRICS,
    epsilon=1.0,
)


TABLE = metric_columns()


def run(experiment: dpc.Experiment, **budget: Any) -> dpc.Scorecard:
    allowed = dpc.Budget(epsilon=1.01 * experiment.epsilon, delta=experiment.delta, **budget)
    return experiment.run(dpc.Vault(pa.table(TABLE), experiment.schema, ledger="sqlite://", budget=allowed))


@pytest.mark.parametrize("protects", ["record", "record_within_arm"])
def test_scorecard_agrees_with_numpy_where_noise_vanishes(protects: Any) -> None:
    card = run(replace(EXPERIMENT, epsilon=100.0, protects=protects))
    arms = {arm: TABLE["arm"] == arm for arm in ("old", "blue", "green")}
    for line in card.lines:
        one, other = arms["old"], arms[line.treated]
        if line.metric == "clicks per views":
            parts = []
            for chosen in (one, other):
                clicks, views = TABLE["clicks"][chosen], TABLE["views"][chosen]
                ratio = clicks.mean() / views.mean()
                parts.append((ratio, (clicks - ratio * views).std(ddof=1) / views.mean() / len(views) ** 0.5))
            (control, first), (treated, second) = parts
            assert line.difference == pytest.approx(treated - control, abs=4 * line.privacy_sd + 1e-6)
            assert line.sampling_sd == pytest.approx(math.hypot(first, second), rel=0.05)
        elif line.metric == "revenue":
            within = [TABLE["arm"] == arm for arm in arms]
            apart = {
                name: np.concatenate([TABLE[name][at] - TABLE[name][at].mean() for at in within])
                for name in ("revenue", "before")
            }
            slope = apart["revenue"] @ apart["before"] / (apart["before"] @ apart["before"])
            adjusted = TABLE["revenue"] - slope * TABLE["before"]
            expected = adjusted[other].mean() - adjusted[one].mean()
            error = math.hypot(*(adjusted[at].std() / at.sum() ** 0.5 for at in (one, other)))
            assert line.difference == pytest.approx(expected, abs=4 * line.privacy_sd + 1e-3)
            assert line.sampling_sd == pytest.approx(error, rel=0.05)
        else:
            values = TABLE["seconds" if line.metric == "seconds to load" else line.metric]
            error = math.hypot(*(values[at].std() / at.sum() ** 0.5 for at in (one, other)))
            assert line.difference == pytest.approx(values[other].mean() - values[one].mean(), abs=4 * line.privacy_sd)
            assert line.sampling_sd == pytest.approx(error, rel=0.05)
        assert line.lift == pytest.approx(line.difference / line.control_mean)
    verdicts = {(line.metric, line.treated): line.verdict for line in card.lines}
    assert verdicts["revenue", "blue"] == verdicts["seconds to load", "blue"] == "better"
    assert verdicts["bought", "green"] == "better"
    assert verdicts["clicks per views", "green"] == "no clear difference"


@pytest.mark.parametrize("method", ["holm", "benjamini_hochberg"])
def test_limits_of_lifts_hold_as_those_of_differences_do(method: Any) -> None:
    card = replace(run(EXPERIMENT), method=method)
    shown = [(line, effect) for line, effect in zip(card.lines, card.effects, strict=True) if line.lift_low is not None]
    level = 1 - (1 - card.level) / len(card.lines) if card.simultaneous else card.level
    assert len(shown) == len(card.lines)
    for line, effect in shown:
        means = effect.compared_means()
        for lift in (line.lift_low, line.lift_high):
            along = (-1 - (lift or 0.0), 1.0)
            apart = abs(float(np.array(along) @ means.values))
            held = probability_within(apart, means.sampling_sd(along), means.noise_along(along))
            assert held == pytest.approx(level, abs=0.002)


def test_all_metrics_are_one_query_one_pass_and_one_debit(monkeypatch: pytest.MonkeyPatch) -> None:
    vault = dpc.Vault(pa.table(TABLE), EXPERIMENT.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    engine = type(vault._engine)
    passes, aggregate = [], engine.aggregate

    def counted(*words: Any, **named: Any) -> Any:
        passes.append(1)
        return aggregate(*words, **named)

    monkeypatch.setattr(engine, "aggregate", counted)
    first = EXPERIMENT.run(vault)
    assert len(passes) == 1
    assert vault.ledger.spent.epsilon == 1
    assert EXPERIMENT.run(vault) == first
    assert len(passes) == 1
    with pytest.raises(BudgetExceededError):
        replace(EXPERIMENT, epsilon=0.5).run(vault)


def test_noise_is_that_of_the_release_whatever_the_budget() -> None:
    laplace, gaussian = run(EXPERIMENT), run(replace(EXPERIMENT, delta=1e-6), rule="zcdp")
    assert laplace.effects[0].guarantee.delta == 0
    assert gaussian.effects[0].guarantee.delta == 1e-6
    assert {term.family for effect in gaussian.effects for term in effect.noise} == {"gaussian"}


def test_file_json_frame_and_page_hold_the_same() -> None:
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 (of other development tools)

    assert dpc.Experiment.from_toml(EXPERIMENT.to_toml()) == EXPERIMENT
    schema = json.loads((DOCS / "scorecard.schema.json").read_text(encoding="utf-8"))
    card, plan = run(EXPERIMENT), EXPERIMENT.rehearsed(9_000)
    for each in (card, plan):
        jsonschema.validate(json.loads(each.to_json()), schema)
        assert str(each).count("revenue") == 2
    assert plan.to_dict()["comparisons"][0]["difference"] is None
    frame = dpc.tidy(card, backend="pyarrow")
    assert frame.num_rows == len(card.lines) == 8
    assert frame.column_names == list(card.to_dict()["comparisons"][0])
    page = card.to_html()
    assert page.count("<tr") == 9
    assert "default-src 'none'" in page


def test_page_writes_all_numbers_of_a_line_with_the_same_decimals() -> None:
    page = run(EXPERIMENT).to_html()
    for line in re.findall(r"<tr><td.*</tr>", page):
        control, treated, difference = (
            re.findall(f'data-label="{name}"[^>]*>([^<]*)', line)[0] for name in ("Control", "Treated", "Difference")
        )
        limits = re.findall(r'class="arm">([^<]*) to ([^<]*)</span>', line)[0]
        numbers = [re.findall(r"[\d.]+", each)[-1] for each in (control, treated, difference, *limits)]
        assert len({len(number.partition(".")[2]) for number in numbers}) == 1
        percentages = [each for each in (control, treated) if each.endswith("%")]
        assert len(percentages) == (2 if "bought" in line else 0)
        assert difference.endswith("pp") == ("bought" in line)


def test_page_names_a_mismatch() -> None:
    made = run(EXPERIMENT)
    card, odd = (replace(made, sample_ratio=replace(made.sample_ratio, p_value=p)) for p in (0.5, 1e-9))
    assert "Sample ratio MISMATCH (p &lt; 0.001;" in odd.to_html()
    assert "MISMATCH" not in card.to_html()
    assert "Sample ratio as declared" in card.to_html()
    assert "better" in {line.verdict for line in card.lines}
    assert {line.verdict for line in odd.lines} == {"not judged"}
    assert "✓ better" not in odd.to_html()
    assert f"<b>{len(odd.lines)}</b>not judged" in odd.to_html()
    assert [line.difference for line in odd.lines] == [line.difference for line in card.lines]


def test_page_escapes_what_people_name() -> None:
    odd = replace(EXPERIMENT, name="<b>x", metrics=[replace(METRICS[1], name='"><script>alert(1)</script>')])
    page = odd.rehearsed(1_000).to_html()
    assert "<script>alert" not in page
    assert "<b>x" not in page


def test_simultaneous_intervals_are_wider_than_those_of_each() -> None:
    together, each = (EXPERIMENT, replace(EXPERIMENT, method="benjamini_hochberg"))
    widths = [[line.detectable for line in experiment.rehearsed(9_000).lines] for experiment in (together, each)]
    assert all(one > other for one, other in zip(*widths, strict=True))


def test_weight_moves_noise_from_one_metric_to_another() -> None:
    metrics = [dpc.Metric(dpc.Real("a", 0, 1, missing=0)), dpc.Metric(dpc.Real("b", 0, 1, missing=0), weight=3)]
    light, heavy = replace(EXPERIMENT, metrics=metrics).rehearsed(9_000).lines[::2]
    assert light.privacy_sd == pytest.approx(3 * heavy.privacy_sd, rel=0.01)


def test_small_arms_and_denominators_near_zero_have_no_interval() -> None:
    tiny = EXPERIMENT.rehearsed(30)
    assert {line.verdict for line in tiny.lines} == {"no interval"}
    zero = dpc.Metric(dpc.Real("clicks", 0, 30, missing=0), denominator=dpc.Real("views", -40, 40, missing=0))
    found = replace(EXPERIMENT, metrics=[zero]).rehearsed(9_000).lines[0]
    assert "may be 0" in found.no_interval
    assert found.low is None


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_sample_ratio_alarm_is_rare_where_the_allocation_is_right(family: Any) -> None:
    random, shares = np.random.default_rng(3), np.array([0.5, 0.3, 0.2])
    noise = tuple(JointNoise(family, tuple(60.0 * line)) for line in np.eye(3))
    none = ((0.0,) * 3,) * 3
    draw = random.laplace if family == "laplace" else random.normal
    found = []
    for _ in range(60):
        sizes = random.multinomial(2_000, shares) + draw(0, 60.0, 3)
        found.append(SampleRatio.of(JointEstimate(("a", "b", "c"), tuple(sizes), none, noise), shares.tolist()).p_value)
    assert 0.02 < np.mean(np.array(found) < 0.1) < 0.2
    missing = JointEstimate(("a", "b", "c"), (1_500.0, 300.0, 200.0), none, noise)
    assert SampleRatio.of(missing, shares.tolist()).mismatch


@pytest.mark.parametrize("level", [0.6, 0.95, 0.9999])
def test_inverted_half_width_holds_its_level(level: float) -> None:
    for sampling_sd in (0.05, 1.0):
        noise = [NoiseTerm("laplace", 1.0), NoiseTerm("laplace", 0.3, 4), NoiseTerm("gaussian", 0.2)]
        half = inverted_half_width(sampling_sd, noise, level)
        assert 2 * beyond(half, sampling_sd, noise) == pytest.approx(1 - level, rel=1e-5)
        assert half == pytest.approx(half_width(sampling_sd, noise, level), rel=0.15 if level > 0.99 else 0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": []}, "a list of metrics"),
        ({"metrics": [METRICS[0], METRICS[0]]}, "different names"),
        ({"metrics": [METRICS[0], dpc.Metric(dpc.Real("before", 0, 10, missing=0))]}, "declared in two ways"),
        ({"protects": "outcome"}, "record_within_arm"),
        ({"allocation": [1, 1]}, "each of the 3 arms"),
        ({"method": "none"}, "a method out of"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"name": ""}, "a text as name"),
    ],
)
def test_experiment_that_is_inconsistent_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DpcausalError, match=words):
        replace(EXPERIMENT, **change)


@pytest.mark.parametrize(
    "parts",
    [
        {"denominator": BEFORE, "covariate": dpc.Real("x", 0, 1)},
        {"covariate": REVENUE},
        {"weight": 0},
        {"covariate": dpc.Real("x", 0, 1, indicator=True)},
        {"denominator": dpc.Category("x", [1, 2])},
    ],
)
def test_metric_that_is_inconsistent_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(DpcausalError):
        dpc.Metric(REVENUE, **parts)


def test_command_runs_an_experiment_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.to_toml(), encoding="utf-8")
    pa.csv.write_csv(pa.table(TABLE).slice(0, 3_000), tmp_path / "users.csv")
    dpc.Ledger.create(f"sqlite:///{tmp_path}/ledger.db", dpc.Budget(epsilon=1), as_of="week 1")
    words = ["experiment", "run", f"{tmp_path}/experiment.toml", "--table", f"{tmp_path}/users.csv"]
    words += ["--ledger", f"{tmp_path}/ledger.db", "--as-of", "week 1", "--out", f"{tmp_path}/card.html", "--yes"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "seconds to load" in done.output
    assert json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))["as_of"] == "week 1"
    assert "costs nothing" in CliRunner().invoke(app, words).output
    plan = CliRunner().invoke(app, ["experiment", "plan", f"{tmp_path}/experiment.toml", "--n", "9000"])
    assert "detectable" in plan.output
    assert CliRunner().invoke(app, [*words[:3], *words[3:-1], "--out", "card.txt"]).exit_code == 2


def test_a_covariate_that_costs_more_noise_than_it_saves_is_named() -> None:
    """A narrow value on wide bounds: its own noise is part of the interval, and leaving it out would be better."""
    outcome, before = dpc.Real("score", 0, 15, missing=1), dpc.Real("score before", 0, 15, missing=1)
    widths, promised = {}, 0
    for covariate in (before, None):
        metric = dpc.Metric(outcome, covariate=covariate)
        trial = dpc.Experiment(name="x", treatment=dpc.Treatment("t"), metrics=[metric], epsilon=1.0)
        for n in (2_000, 2_000_000):
            (effect,) = trial.rehearsed(n, dict.fromkeys(metric.columns, (0.5, 2))).effects
            widths[n, covariate] = effect.standard_error or 0.0
            said = next((note for note in effect.notes if "narrower" in note), "")
            assert bool(said) == (covariate is not None and n == 2_000)
            if said:
                promised = int(said.split("about ")[1].split("%")[0])
    assert 100 * (1 - widths[2_000, None] / widths[2_000, before]) == pytest.approx(promised, abs=3)


def test_an_experiment_compares_every_arm_and_needs_none_named() -> None:
    three = dpc.Treatment("arm", arms=("old", "blue", "green"), labels=("old", "blue", "green"))
    for experiment in (replace(EXPERIMENT, treatment=three), EXPERIMENT):
        assert {line.treated for line in experiment.rehearsed(9_000).lines} == {"blue", "green"}
    named = EXPERIMENT.to_toml()
    unnamed = "\n".join(line for line in named.splitlines() if not line.startswith("compare ="))
    assert unnamed.count("\n") < named.count("\n")
    assert dpc.Experiment.from_toml(unnamed) == EXPERIMENT
    assert replace(EXPERIMENT, treatment=three) == EXPERIMENT


def test_plan_expects_a_share_and_says_what_it_assumes_and_what_is_next(tmp_path: Path) -> None:
    metric = dpc.Metric(dpc.Binary("bought", missing=0))
    trial = dpc.Experiment(
        name="x", treatment=dpc.Treatment("t"), metrics=[METRICS[0], metric], epsilon=1.0, delta=1e-6
    )
    for first, at in ((trial, 1), (replace(trial, metrics=[metric]), 0)):  # as covariate, and as outcome, of the schema
        line = first.rehearsed(100_000, {"bought": 0.02}).lines[at]
        assert line.sampling_sd == pytest.approx(math.sqrt(0.02 * 0.98 * 4 / 100_000), rel=0.05)
    for wrong in ({"bought": (0, 1)}, {"bought": 2}, {"bougth": 0.02}, {trial.metrics[0].columns[0]: 0.5}):
        with pytest.raises(DpcausalError, match="typical"):
            trial.rehearsed(100_000, wrong)
    (tmp_path / "x.toml").write_text(trial.to_toml(), encoding="utf-8")
    words = ["experiment", "plan", f"{tmp_path}/x.toml", "--n", "1000", "--typical", "bought:0.02"]
    said = " ".join(CliRunner().invoke(app, words).output.split())
    assert "numbers around the middle of their bounds" in said
    assert "bought." not in said.split("These are")[1].split("Next")[0]
    assert "--epsilon 1 --delta 1e-06 --as-of VERSION" in said


def test_slips_of_a_declaration_are_named_alone() -> None:
    """A team with thirty metrics is told the one that is there twice, not all of them."""
    many = [dpc.Metric(dpc.Real(f"metric {at}", 0, 1, missing=0)) for at in range(30)]
    with pytest.raises(DpcausalError, match=r"different names: metric 7\.\n"):
        replace(EXPERIMENT, metrics=[*many, many[7]])
    with pytest.raises(DpcausalError, match="names a metric twice: bought"):
        dpc.DecisionRule(goals=["bought"], guardrails=[dpc.Guardrail("bought", 0.1)])
    study = 'version = 2\nname = "x"\n'
    with pytest.raises(DpcausalError) as found:
        dpc.Experiment.from_toml(study)
    assert "Renamed" not in str(found.value)


def test_large_delta_and_small_p_values_are_said() -> None:
    card = run(replace(EXPERIMENT, delta=0.01))
    assert "delta 0.01 is not far below 1 / " in " ".join(str(card).split())
    assert "delta 0.01 is not far below" in card.to_html()
    assert "not far below" not in str(run(replace(EXPERIMENT, delta=1e-6)))
    assert "p < 1e-6" in str(replace(card.sample_ratio, p_value=0.0))
    assert not any(line.endswith("  0  better") for line in str(card).splitlines())


def test_check_reads_the_file_of_an_experiment(tmp_path: Path) -> None:
    """Amounts as text, and an arm that is not declared, before anything is paid."""
    table = pa.table(TABLE)
    place = table.column_names.index("revenue")
    table = table.set_column(place, "revenue", pa.array([f"about {each:.2f}" for each in TABLE["revenue"]]))
    pa.parquet.write_table(table, tmp_path / "users.parquet")
    (tmp_path / "x.toml").write_text(EXPERIMENT.to_toml(), encoding="utf-8")
    words = ["check", f"{tmp_path}/x.toml", "--table", f"{tmp_path}/users.parquet"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert all(line.startswith("[not private") for line in found.output.splitlines())
    assert re.search(r"outcome revenue: .*not read as declared|revenue.*not read", found.output)


def test_a_metric_that_is_hardly_known_does_not_flatten_the_others() -> None:
    card = run(EXPERIMENT)
    first, *others = card.lines
    wide = replace(first, lift=0.3, lift_low=-0.7, lift_high=90.0)
    same = [replace(line, lift=0.1, lift_low=0.05, lift_high=0.15) for line in others]
    bars = re.findall(r'<line class="[a-z]+" x1="([0-9.]+)" x2="([0-9.]+)"', _table([wide, *same]))
    drawn = [(float(low), float(high)) for low, high in bars if low != "50"]
    assert all(0 <= low <= high <= 100 for low, high in drawn)
    assert all(high - low > 5 for low, high in drawn[1:])
    assert drawn[0][1] == 100


def test_units_within_is_where_privacy_widens_an_interval_by_that_share() -> None:
    experiment = dpc.Experiment(
        name="units",
        treatment=dpc.Treatment("arm"),
        metrics=[dpc.Metric(dpc.Real("spent", 0, 100, missing=0)), dpc.Metric(dpc.Binary("bought", missing=0))],
        epsilon=1.0,
    )
    for within in (0.05, 0.2):
        units = experiment.rehearsed(10_000).units_within(within)
        for metric, n in units.items():
            (line,) = (each for each in experiment.rehearsed(n).lines if each.metric == metric)
            assert math.hypot(1, line.privacy_sd / line.sampling_sd) == pytest.approx(1 + within, rel=0.002)
    assert f"{experiment.rehearsed(10_000).units_within()['spent']:,}" in str(experiment.rehearsed(10_000))


@pytest.mark.parametrize("within", [0, -0.1, float("nan"), "5 %"])
def test_units_within_no_share_at_all_are_refused(within: float) -> None:
    experiment = dpc.Experiment(
        name="units",
        treatment=dpc.Treatment("arm"),
        metrics=[dpc.Metric(dpc.Binary("bought", missing=0))],
        epsilon=1.0,
    )
    with pytest.raises(RefusedError, match="a share above 0"):
        experiment.rehearsed(10_000).units_within(within)
