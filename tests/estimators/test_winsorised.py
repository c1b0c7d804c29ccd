"""Winsorised outcomes: bounds where noise and bias are smallest together, and intervals that allow for the bias."""

import itertools
import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, SchemaError, TableError
from dpcausal.estimators.outcome_tail import STEPS, distances, fitted_tail
from dpcausal.queries import OutcomeCounts
from dpcausal.source import RecordingSource, narrowed
from dpcausal.study.study import Study
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("cost", 0, 200_000))
EXPECTED = dpc.Rehearsal(SCHEMA, n=5_000, outcome_mean=5_000, outcome_sd=6_500)
EFFECT = -0.15 * 3_500 * math.exp(0.5)


def costs(seed: int, n: int = 5_000, sigma: float = 1.0) -> pa.Table:
    """A trial of lognormal costs, which treatment lowers by 15 %."""
    random = np.random.default_rng(seed)
    treated = random.integers(0, 2, n)
    return pa.table({"t": treated, "cost": 3_500 * np.exp(sigma * random.normal(size=n)) * (1 - 0.15 * treated)})


def half(effect: dpc.Effect) -> float:
    low, high = effect.interval()
    return (high - low) / 2


def counts_of(outcomes: np.ndarray, far: float) -> list[float]:
    edges = np.concatenate([[-1.0], distances(far), [np.inf]])
    return [float(count) for count in np.histogram(outcomes, edges)[0]]


def test_intervals_are_narrow_and_cover_the_effect_on_outcomes_as_they_are() -> None:
    covered, widths = [], []
    for seed in range(40):
        source = fresh_noise(costs(seed), SCHEMA)
        effect = dpc.Winsorised().estimate(source, epsilon=1.0)
        covered.append(abs(effect.estimate - EFFECT) <= half(effect))
        widths.append(half(effect) / half(dpc.DifferenceInMeans().estimate(source, epsilon=1.0)))
    assert np.mean(covered) >= 0.85
    assert np.median(widths) < 0.5


def test_effect_names_its_estimand_its_bias_bound_and_the_units_beyond() -> None:
    effect = dpc.Winsorised().estimate(fresh_noise(costs(1), SCHEMA), epsilon=1.0)
    assert "; cost above " in effect.estimand
    assert effect.estimand.endswith(" winsorised")
    assert effect.bias_bound > 0
    assert "bias bound" in str(effect)
    assert any("for the bias bound: outcomes above" in text for text in effect.assumptions)
    assert any("counted as that bound" in text for text in effect.notes)
    assert [(receipt.query, receipt.epsilon) for receipt in effect.receipts] == [
        ("outcome_counts", 0.0775),
        ("arm_moments", 0.89125),
        ("missing_outcomes", 0.03125),
    ]
    assert effect.guarantee == dpc.Guarantee(epsilon=1.0)
    assert dpc.Effect.from_json(effect.to_json()) == effect


def test_interval_is_wider_by_the_bias_bound_but_the_standard_error_is_not() -> None:
    effect = dpc.Winsorised().estimate(EXPECTED, epsilon=1.0)
    without = replace(effect, bias_bound=0.0)
    assert without.standard_error == effect.standard_error
    assert half(without) < half(effect) < half(without) + effect.bias_bound


def test_bounds_widen_with_the_number_of_units() -> None:
    highs = []
    for n in (2_000, 5_000, 20_000, 1_000_000):
        source = RecordingSource(replace(EXPECTED, n=n))
        effect = dpc.Winsorised().estimate(source, epsilon=1.0)
        highs.append(half(effect) * math.sqrt(n))
    assert highs == sorted(highs, reverse=True)
    assert "winsorised" not in dpc.Winsorised().estimate(replace(EXPECTED, n=10**7), epsilon=1.0).estimand


def test_narrow_public_bounds_cost_little() -> None:
    tight = dpc.Rehearsal(
        dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("score", 0, 100)), 5_000, outcome_sd=13
    )
    plain, winsorised = (each.estimate(tight, epsilon=1.0) for each in (dpc.DifferenceInMeans(), dpc.Winsorised()))
    assert half(winsorised) <= 1.1 * half(plain)


@pytest.mark.parametrize("n", [5_000, 20_000])
def test_rehearsal_foretells_the_width(n: int) -> None:
    planned = half(dpc.Winsorised().estimate(replace(EXPECTED, n=n), epsilon=1.0))
    found = [half(dpc.Winsorised().estimate(fresh_noise(costs(s, n), SCHEMA), epsilon=1.0)) for s in range(9)]
    assert 0.85 <= planned / np.median(found) <= 1.2


def test_every_average_estimator_can_be_winsorised() -> None:
    random = np.random.default_rng(2)
    age, ward = random.uniform(18, 90, 3_000), random.choice(["a", "b"], 3_000)
    table = costs(3, 3_000).append_column("age", pa.array(age)).append_column("ward", pa.array(ward))
    schema = replace(SCHEMA, covariates=[dpc.Real("age", 18, 90), dpc.Category("ward", ["a", "b"])])
    for inner in (
        dpc.Stratification(by=["ward"]),
        dpc.RegressionAdjustment(covariates=["age"]),
        dpc.InverseWeighting(covariates=["ward"]),
        dpc.DoublyRobust(covariates=["age"]),
    ):
        source = fresh_noise(table, schema)
        effect = dpc.Winsorised(inner).estimate(source, epsilon=2.0)
        assert effect.privacy_sd < 0.6 * inner.estimate(source, epsilon=2.0).privacy_sd
        assert sum(receipt.epsilon for receipt in effect.receipts) <= 2.0


def test_same_request_is_free_and_other_bounds_are_other_questions() -> None:
    vault = dpc.Vault(costs(4), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=2))
    first = dpc.Winsorised().estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == pytest.approx(1.0)
    assert dpc.Winsorised().estimate(vault, epsilon=1.0) == first
    assert vault.ledger.spent.epsilon == pytest.approx(1.0)
    query, guarantee = OutcomeCounts([1_000.0]), dpc.Guarantee(epsilon=0.1)
    narrow = vault.narrowed(0, 50_000)
    assert narrow.question(query, guarantee) != vault.question(query, guarantee)
    assert narrow.ledger is vault.ledger
    assert narrow.narrowed(0, 50_000).question(query, guarantee) == narrow.question(query, guarantee)


def test_narrowed_vault_answers_as_one_that_was_opened_with_these_bounds() -> None:
    table = costs(5, 500)
    wide, narrow = fresh_noise(table, SCHEMA), fresh_noise(table, SCHEMA.narrowed(0, 9_000))
    guarantee = dpc.Guarantee(epsilon=100)
    query = OutcomeCounts([2_000.0, 5_000.0])
    assert wide.narrowed(0, 9_000).schema == narrow.schema
    found = [source.many(query, guarantee, 40).mean(axis=0) for source in (wide.narrowed(0, 9_000), narrow)]
    assert np.round(found[0]).tolist() == np.round(found[1]).tolist()
    mean = dpc.DifferenceInMeans().estimate(wide.narrowed(0, 9_000), epsilon=100.0).control_mean
    rows = table.to_pandas()
    assert mean == pytest.approx(rows.cost[rows.t == 0].clip(0, 9_000).mean(), rel=0.01)


def test_bounds_cannot_be_widened_and_only_numbers_be_narrowed() -> None:
    with pytest.raises(SchemaError, match="narrower, not wider"):
        EXPECTED.narrowed(0, 300_000)
    yes = dpc.Rehearsal(dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Binary("y")), 100)
    with pytest.raises(SchemaError, match="outcome that is a number"):
        yes.narrowed(0, 0.5)
    with pytest.raises(SchemaError, match="without winsorising"):
        dpc.Winsorised().estimate(yes, epsilon=1.0)


def test_source_with_fixed_bounds_is_refused() -> None:
    class Fixed:
        schema, n, arm_sizes, caveats, rule, release = SCHEMA, 100, None, (), EXPECTED.rule, EXPECTED.release

    with pytest.raises(TableError, match="narrower public bounds in the schema"):
        narrowed(Fixed(), 0, 10)


@pytest.mark.parametrize(
    "wrong", [{"share": 0.0}, {"share": 1.0}, {"anchor": -1.0}, {"estimator": dpc.Winsorised()}, {"share": "x"}]
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(QueryError, match="share must be between 0 and 1"):
        dpc.Winsorised(**wrong).estimate(EXPECTED, epsilon=1.0)  # type: ignore[arg-type]


def test_noise_that_hides_the_tail_leaves_the_public_bounds() -> None:
    effect = dpc.Winsorised().estimate(replace(EXPECTED, n=100), epsilon=0.5)
    assert effect.bias_bound == 0
    assert any("not winsorised" in note for note in effect.notes)


@pytest.mark.parametrize(("low", "high", "sign"), [(-200_000, 0, -1), (-200_000, 200_000, -1), (-200_000, 200_000, 1)])
def test_lower_tails_and_both_tails_are_winsorised(low: float, high: float, sign: int) -> None:
    schema = replace(SCHEMA, outcome=dpc.Real("cost", low, high))
    table = costs(6)
    signed = table.set_column(1, "cost", pa.array(sign * table["cost"].to_numpy()))
    effect = dpc.Winsorised().estimate(fresh_noise(signed, schema), epsilon=1.0)
    assert ("cost below " in effect.estimand) or ("cost above " in effect.estimand)
    assert effect.privacy_sd < 300
    assert abs(effect.estimate - sign * EFFECT) < 4 * (effect.standard_error or 0)


@pytest.mark.parametrize("sigma", [0.5, 0.8, 1.1])
def test_excess_of_a_lognormal_tail_is_right_without_noise(sigma: float) -> None:
    law = NormalDist(math.log(3_000), sigma)
    below = [0.0, *(law.cdf(math.log(edge)) for edge in distances(200_000)), 1.0]
    counts = [400_000 * (high - low) for low, high in itertools.pairwise(below)]
    tail = fitted_tail(200_000, counts, 1.0, 400_000, all_here=True)
    assert tail is not None
    assert tail.shape == "lognormal"
    for bound, excess in zip(tail.reach, tail.excess, strict=True):
        beyond = np.linspace(bound, 200_000, 20_001)
        truth = np.trapezoid([1 - law.cdf(math.log(each)) for each in beyond], beyond)
        assert excess == pytest.approx(truth, rel=0.02, abs=0.05)


def test_power_law_and_zeros_are_not_taken_for_a_lognormal_tail() -> None:
    random = np.random.default_rng(1)
    pareto = 2_000 * (1 - random.random(100_000)) ** -0.4
    zeros = np.where(random.random(100_000) < 0.6, 0.0, 3_000 * np.exp(random.normal(size=100_000)))
    for outcomes in (pareto, zeros):
        tail = fitted_tail(500_000, counts_of(outcomes, 500_000), 20.0, 100_000)
        assert tail is not None
        assert tail.shape == "smooth"
        for bound, excess in zip(tail.reach, tail.excess, strict=True):
            truth = np.maximum(np.minimum(outcomes, 500_000) - bound, 0).mean()
            assert truth / 2 - 5 <= excess <= 2 * truth + 60


def test_counts_that_are_all_noise_have_no_tail() -> None:
    assert fitted_tail(100.0, [0.5] * (STEPS + 1), 10.0, 100) is None


def test_study_file_names_the_estimator_within() -> None:
    schema = replace(SCHEMA, covariates=[dpc.Category("ward", ["a", "b"])])
    study = Study(
        name="costs",
        question="Does treatment lower costs?",
        schema=schema,
        estimator=dpc.Winsorised(dpc.Stratification(by=("ward",)), share=0.1),
        epsilon=1.0,
    )
    text = study.to_toml()
    assert '[estimator.estimator]\nname = "stratification"' in text
    assert Study.from_toml(text) == study
    assert study.adjusts_for == ("ward",)
    assert study.advice_for_sites
