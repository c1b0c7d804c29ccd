import dataclasses
import math
import re
from datetime import date
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.report.remedies import interval_remedies, least_sampling_sd, planned_precision
from dpcausal.report.scale import OutcomeScale
from dpcausal.report.verdict import Verdict, verdict_on
from dpcausal.results.effect import Estimator
from dpcausal.uncertainty.interval import NoiseTerm
from tests.report.conftest import Made, interval_of


def verdict_of(effect: dpc.Effect, **given: Any) -> Verdict:
    return verdict_on(effect, interval_of(effect), **given)


@pytest.mark.parametrize(
    ("estimate", "smallest", "kind"),
    [
        (2.0, 0.0, "higher"),
        (-2.0, 0.0, "lower"),
        (0.3, 0.0, "inconclusive"),
        (2.0, 0.5, "higher"),
        (-2.0, 0.5, "lower"),
        (1.0, 0.5, "inconclusive"),
        (0.1, 5.0, "no worthwhile difference"),
        (0.0, 0.0, "inconclusive"),
    ],
)
def test_verdict_follows_the_interval(made: Made, estimate: float, smallest: float, kind: str) -> None:
    verdict = verdict_of(made(estimate=estimate), smallest=smallest)
    assert verdict.kind == kind
    assert bool(verdict.remedies) == (kind == "inconclusive")


def test_verdict_names_the_arms(made: Made) -> None:
    verdict = verdict_of(made())
    assert verdict.heading == "Higher with training"
    assert verdict.text.startswith(
        "Mean score is 2.00 higher with training than with usual care (95 % confidence interval "
    )


def test_verdict_without_an_interval_is_no_interval(made: Made) -> None:
    assert verdict_of(made(no_interval="too noisy")).kind == "no interval"
    assert verdict_of(made(sampling_sd=None)).kind == "no interval"


def test_verdict_on_a_rehearsal_is_rehearsal(made: Made) -> None:
    rehearsed = [dataclasses.replace(receipt, digest=None) for receipt in made().receipts]
    assert verdict_of(made(receipts=tuple(rehearsed))).kind == "rehearsal"


def advised(remedies: tuple[str, ...], what: str) -> float:
    """The number that a remedy advises."""
    (remedy,) = (text for text in remedies if text.startswith(what))
    return float(re.findall(r"about ([\d,.]+\d)", remedy)[0].replace(",", ""))


def with_epsilon(effect: dpc.Effect, epsilon: float) -> dpc.Effect:
    noise = tuple(dataclasses.replace(term, scale=term.scale / epsilon) for term in effect.noise)
    return dataclasses.replace(effect, noise=noise)


@pytest.mark.parametrize("smallest", [0.0, 0.2, 1.2])
def test_advised_epsilon_is_sufficient_and_not_excessive(made: Made, smallest: float) -> None:
    effect = made(estimate=0.7, noise=(NoiseTerm("laplace", 0.5),), sampling_sd=0.1)
    verdict = verdict_of(effect, smallest=smallest)
    assert verdict.kind == "inconclusive"
    epsilon = advised(verdict.remedies, "More epsilon")
    assert verdict_of(with_epsilon(effect, epsilon), smallest=smallest).kind != "inconclusive"
    assert verdict_of(with_epsilon(effect, 0.85 * epsilon), smallest=smallest).kind == "inconclusive"


def test_advised_number_of_units_is_sufficient_and_not_excessive(made: Made) -> None:
    effect = made(estimate=0.5, noise=(NoiseTerm("laplace", 0.2),), sampling_sd=0.3)
    units = advised(verdict_of(effect).remedies, "More units")

    def with_units(times: float) -> dpc.Effect:
        noise = tuple(dataclasses.replace(term, scale=term.scale / times) for term in effect.noise)
        return dataclasses.replace(effect, noise=noise, sampling_sd=0.3 / math.sqrt(times))

    assert verdict_of(with_units(units / effect.n)).kind == "higher"
    assert verdict_of(with_units(0.85 * units / effect.n)).kind == "inconclusive"


def test_no_epsilon_is_advised_if_the_sampling_error_is_too_large(made: Made) -> None:
    (remedy,) = verdict_of(made(estimate=0.3, sampling_sd=0.3), least_sampling=0.2).remedies
    assert remedy.startswith("More units")
    assert remedy.endswith("so no epsilon would be enough.")


def test_no_epsilon_is_said_to_be_enough_only_where_it_follows(made: Made, schema: dpc.Schema) -> None:
    trial = dpc.Study(name="s", question="?", schema=schema, estimator=dpc.DifferenceInMeans(), epsilon=1)
    model = dataclasses.replace(trial, estimator=dpc.DoublyRobust(covariates=["age"]))
    effect = made(estimate=0.3, sampling_sd=0.3)
    assert least_sampling_sd(effect, trial) == pytest.approx(0.8 * 0.3, rel=1e-3)
    assert 0 < least_sampling_sd(effect, model) < least_sampling_sd(effect, trial)  # scores of noisy models vary more
    noisy = made(sampling_sd=0.3, noise=(NoiseTerm("laplace", 1.0),))
    bound = made(sampling_sd=0.3, sampling_is_a_bound=True)
    assert [least_sampling_sd(*each) for each in ((noisy, trial), (bound, trial), (effect, None))] == [0.0, 0.0, 0.0]
    (remedy,) = verdict_of(effect).remedies
    assert "Whether more epsilon would be enough is not known" in remedy


def test_more_sites_are_advised_if_they_differ_too_much(made: Made) -> None:
    (remedy,) = verdict_of(made(estimate=0.3, between_sd=0.3)).remedies
    assert remedy.endswith("add sites.")


def test_estimate_at_the_threshold_has_no_remedy(made: Made) -> None:
    (remedy,) = verdict_of(made(estimate=0.0)).remedies
    assert "no realistic budget" in remedy
    assert verdict_of(made(estimate=0.0, sampling_sd=0.0, noise=())).remedies == (remedy,)


def test_remedy_beyond_the_budget_comes_last(made: Made) -> None:
    effect = made(estimate=0.5, noise=(NoiseTerm("laplace", 1.0),), sampling_sd=0.1)
    rich, poor = verdict_of(effect, remaining=9.0).remedies, verdict_of(effect, remaining=1.0).remedies
    assert rich[0].startswith("More epsilon")
    assert "9 of the budget remains" in rich[0]
    assert poor[0].startswith("More units")
    assert [text.split(":")[0] for text in poor] == ["More units", "More epsilon"]


def test_tighter_bounds_come_first_if_slightly_tighter_is_enough(made: Made, schema: dpc.Schema) -> None:
    near = made(estimate=0.5, noise=(NoiseTerm("laplace", 0.2),), sampling_sd=0.1)
    far = made(estimate=0.5, noise=(NoiseTerm("laplace", 1.0),), sampling_sd=0.1)
    assert verdict_of(near, schema=schema).remedies[0].startswith("Tighter bounds: score within a range of about")
    assert not verdict_of(far, schema=schema).remedies[0].startswith("Tighter bounds")
    binary = dataclasses.replace(schema, outcome=dpc.Binary("score"))
    assert not verdict_of(near, schema=binary).remedies[0].startswith("Tighter bounds")


def test_verdict_names_what_the_arms_differ_in(made: Made) -> None:
    effect = made(quantity="cumulative incidence of relapse at 60")
    assert verdict_of(effect).text.startswith("The cumulative incidence of relapse at 60 is 2.00 higher with")
    report = dpc.Report.of(effect, date=date(2026, 1, 31)).to_html()
    assert "The cumulative incidence of relapse at 60 is" in report
    assert "Mean score" not in report


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sampling_sd": 0.3, "noise": ()}, "sample"),
        ({"sampling_sd": 0.3, "noise": (NoiseTerm("laplace", 1.0),)}, "sample"),
        ({"sampling_sd": 0.1, "noise": (NoiseTerm("laplace", 1.0),)}, "budget"),
        ({"sampling_sd": 0.3, "sampling_is_a_bound": True}, "sample or budget"),
        ({"sampling_sd": 0.1, "noise": (), "between_sd": 0.5}, "sites"),
        ({"sampling_sd": 0.1, "noise": (NoiseTerm("laplace", 0.05),), "between_sd": 0.5}, "sites"),
        ({"sampling_sd": 0.3, "noise": (), "between_sd": 0.5}, "sample"),
        ({"no_interval": "too noisy", "unadjusted": ("age",)}, "confounding"),
        ({"no_interval": "too noisy, as confounding may be"}, "noise"),
    ],
)
def test_inconclusive_verdict_names_its_reason(made: Made, changes: dict[str, Any], reason: str) -> None:
    verdict = verdict_of(made(estimate=0.5, **changes))
    assert verdict.reason == reason
    assert verdict.heading.startswith("Inconclusive: ")


def test_reason_is_what_the_smallest_worthwhile_effect_leaves_open(made: Made) -> None:
    effect = made(estimate=1.0, sampling_sd=0.3, noise=(NoiseTerm("laplace", 0.1),))
    assert verdict_of(effect, smallest=0.5).reason == "sample"
    noisier = dataclasses.replace(effect, sampling_sd=0.2, noise=(NoiseTerm("laplace", 0.5),))
    assert verdict_of(noisier, smallest=0.5).reason == "budget"


def test_randomised_treatment_has_no_confounding(made: Made) -> None:
    effect = made(no_interval="too noisy", unadjusted=("age",))
    assert verdict_of(effect, identification="randomised").reason == "noise"
    assert verdict_of(effect, identification="adjusted").reason == "confounding"


def test_observational_study_without_adjustment_is_inconclusive(made: Made, schema: dpc.Schema) -> None:
    verdict = verdict_of(made(), identification="unadjusted")
    assert (verdict.kind, verdict.reason) == ("inconclusive", "confounding")
    assert verdict.remedies
    assert verdict_of(made(), identification="by design").kind == "higher"
    study = dpc.Study(name="s", question="?", schema=schema, estimator=dpc.DifferenceInMeans(), epsilon=1)
    assert study.identification == "unadjusted"
    assert dataclasses.replace(study, design="trial").identification == "randomised"
    cutoff = dpc.RegressionDiscontinuity(running="age", cutoff=50, bandwidth=20)
    assert dataclasses.replace(study, estimator=cutoff).identification == "by design"
    assert dataclasses.replace(study, estimator=dpc.DoublyRobust(covariates=["age"])).identification == "adjusted"


@pytest.mark.parametrize(
    ("estimator", "n", "unadjusted"),
    [
        (dpc.RegressionAdjustment(covariates=["age"]), 20, ()),  # an arm is below the noise
        (dpc.RegressionAdjustment(covariates=["age"]), 100, ("age",)),
        (dpc.RegressionAdjustment(covariates=["age"]), 20_000, ()),
        (dpc.DoublyRobust(covariates=["age"]), 200, ("age",)),
        (dpc.DoublyRobust(covariates=["age"]), 20_000, ()),
        (dpc.InverseWeighting(covariates=["age"], scores="output"), 20_000, ("age",)),
        (dpc.InverseWeighting(covariates=["age"]), 20_000, ()),
        (dpc.PropensityMatching(covariates=["age"]), 20_000, ("age",)),
        (dpc.ArmContrasts(covariates=["age"]), 150, ("age",)),
    ],
)
def test_estimators_name_the_covariates_that_noise_leaves_unadjusted(
    schema: dpc.Schema, estimator: Estimator, n: int, unadjusted: tuple[str, ...]
) -> None:
    complete = dataclasses.replace(schema, outcome=dpc.Real("score", 0, 10, missing=5))  # as matching needs it
    effect = estimator.estimate(dpc.Rehearsal(complete, n=n), epsilon=1.0)
    assert effect.unadjusted == unadjusted
    assert not effect.unadjusted or effect.no_interval
    assert dpc.Effect.from_json(effect.to_json()) == effect


def test_rehearsed_remedies_give_an_interval(made: Made, schema: dpc.Schema) -> None:
    study = dpc.Study(
        name="s",
        question="?",
        schema=schema,
        estimator=dpc.RegressionAdjustment(covariates=["age"]),
        epsilon=0.5,
    )
    n = 250
    assert study.rehearsed(n).no_interval
    epsilon, units = interval_remedies(made(n=n), study)
    (more,) = re.findall(r"More epsilon: ([\d.]+) instead of 0.5, by rehearsal", epsilon)
    assert not dataclasses.replace(study, epsilon=float(more)).rehearsed(n).no_interval
    (many,) = re.findall(r"More units: ([\d,]+) instead of 250, by rehearsal", units)
    assert not study.rehearsed(int(many.replace(",", ""))).no_interval
    (checked,) = interval_remedies(made(n=20_000), study)
    assert "check that the values in the table" in checked


def test_conclusive_verdict_has_no_reason(made: Made) -> None:
    assert verdict_of(made()).reason == ""


@pytest.mark.parametrize("what", ["units", "epsilon"])
def test_advice_reaches_the_planned_precision_and_little_more(made: Made, what: str) -> None:
    effect = made(noise=(NoiseTerm("laplace", 0.5),), sampling_sd=0.1)
    planned = 0.8
    scale = OutcomeScale.of(effect, effect.interval(), None)
    text = planned_precision(effect, effect.interval(), planned, scale)
    units, epsilon = re.findall(r"about ([\d,]+) units at this epsilon, or epsilon ([\d.]+) with", text)[0]

    def half(share: float) -> float:
        if what == "epsilon":
            changed = with_epsilon(effect, share * float(epsilon))
        else:
            times = share * float(units.replace(",", "")) / effect.n
            changed = dataclasses.replace(with_epsilon(effect, times), sampling_sd=0.1 / math.sqrt(times))
        low, high = changed.interval()
        return (high - low) / 2

    assert half(1.0) <= planned < half(0.85)


def test_precision_as_planned_needs_no_advice(made: Made) -> None:
    effect = made()
    assert planned_precision(effect, effect.interval(), 2.0, OutcomeScale.of(effect, None, None)) == ""


def test_risks_are_percentages_with_the_same_decimals(made: Made, schema: dpc.Schema) -> None:
    binary = dataclasses.replace(schema, outcome=dpc.Binary("died"))
    effect = made(outcome="died", estimate=-0.0312, sampling_sd=0.0077, noise=())
    text = verdict_of(effect, schema=binary, smallest=0.01).text
    found = re.fullmatch(
        r"The risk of died is (3\.1) percentage points lower with training than with usual care \(95 % confidence "
        r"interval \N{MINUS SIGN}(4\.\d) to \N{MINUS SIGN}(1\.\d)\), beyond 1 percentage point, the smallest "
        r"worthwhile effect\.",
        text,
    )
    assert found is not None, text
