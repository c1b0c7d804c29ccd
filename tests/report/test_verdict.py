import dataclasses
import math
import re
from datetime import date
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.interval import NoiseTerm
from dpcausal.report.verdict import Verdict, verdict_on
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
    assert verdict_of(made()).text == "Mean score is higher with training than with usual care."


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
    (remedy,) = verdict_of(made(estimate=0.3, sampling_sd=0.3)).remedies
    assert remedy.startswith("More units")
    assert remedy.endswith("so no epsilon would be enough.")


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
    assert verdict_of(effect).text.startswith("The cumulative incidence of relapse at 60 is higher with training")
    report = dpc.Report.of(effect, date=date(2026, 1, 31)).to_html()
    assert "The estimated cumulative incidence of relapse at 60 is" in report
    assert "mean of score" not in report
