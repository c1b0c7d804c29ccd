import dataclasses
import math
import re

import pytest

import dpcausal as dpc
from dpcausal.interval import NoiseTerm
from dpcausal.report.verdict import verdict_on
from tests.report.conftest import Made


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
def test_the_interval_decides(made: Made, estimate: float, smallest: float, kind: str) -> None:
    verdict = verdict_on(made(estimate=estimate), smallest=smallest)
    assert verdict.kind == kind
    assert bool(verdict.remedies) == (kind == "inconclusive")


def test_arms_are_named(made: Made) -> None:
    assert verdict_on(made()).text == "Mean score is higher with training than with usual care."


def test_without_an_interval_nothing_is_concluded(made: Made) -> None:
    assert verdict_on(made(no_interval="too noisy")).kind == "no interval"
    assert verdict_on(made(sampling_sd=None)).kind == "no interval"


def test_a_rehearsal_concludes_nothing(made: Made) -> None:
    rehearsed = [dataclasses.replace(receipt, digest=None) for receipt in made().receipts]
    assert verdict_on(made(receipts=tuple(rehearsed))).kind == "rehearsal"


def named(remedies: tuple[str, ...], what: str) -> float:
    """The number that a remedy advises."""
    (remedy,) = (text for text in remedies if text.startswith(what))
    return float(re.findall(r"about ([\d,.]+\d)", remedy)[0].replace(",", ""))


def with_epsilon(effect: dpc.Effect, epsilon: float) -> dpc.Effect:
    noise = tuple(dataclasses.replace(term, scale=term.scale / epsilon) for term in effect.noise)
    return dataclasses.replace(effect, noise=noise)


@pytest.mark.parametrize("smallest", [0.0, 0.2, 1.2])
def test_the_epsilon_it_names_is_enough_and_not_far_too_much(made: Made, smallest: float) -> None:
    effect = made(estimate=0.7, noise=(NoiseTerm("laplace", 0.5),), sampling_sd=0.1)
    verdict = verdict_on(effect, smallest=smallest)
    assert verdict.kind == "inconclusive"
    epsilon = named(verdict.remedies, "More epsilon")
    assert verdict_on(with_epsilon(effect, epsilon), smallest=smallest).kind != "inconclusive"
    assert verdict_on(with_epsilon(effect, 0.85 * epsilon), smallest=smallest).kind == "inconclusive"


def test_the_units_it_names_are_enough_and_not_far_too_many(made: Made) -> None:
    effect = made(estimate=0.5, noise=(NoiseTerm("laplace", 0.2),), sampling_sd=0.3)
    units = named(verdict_on(effect).remedies, "More units")

    def with_units(times: float) -> dpc.Effect:
        noise = tuple(dataclasses.replace(term, scale=term.scale / times) for term in effect.noise)
        return dataclasses.replace(effect, noise=noise, sampling_sd=0.3 / math.sqrt(times))

    assert verdict_on(with_units(units / effect.n)).kind == "higher"
    assert verdict_on(with_units(0.85 * units / effect.n)).kind == "inconclusive"


def test_where_sampling_error_is_too_large_no_epsilon_is_advised(made: Made) -> None:
    (remedy,) = verdict_on(made(estimate=0.3, sampling_sd=0.3)).remedies
    assert remedy.startswith("More units")
    assert remedy.endswith("no epsilon would do.")


def test_where_sites_differ_too_much_more_sites_are_advised(made: Made) -> None:
    (remedy,) = verdict_on(made(estimate=0.3, between_sd=0.3)).remedies
    assert "more sites would help" in remedy


def test_an_estimate_of_nothing_cannot_be_settled(made: Made) -> None:
    (remedy,) = verdict_on(made(estimate=0.0)).remedies
    assert "no budget" in remedy
    assert verdict_on(made(estimate=0.0, sampling_sd=0.0, noise=())).remedies == (remedy,)


def test_what_the_budget_cannot_pay_comes_last(made: Made) -> None:
    effect = made(estimate=0.5, noise=(NoiseTerm("laplace", 1.0),), sampling_sd=0.1)
    rich, poor = verdict_on(effect, left=9.0).remedies, verdict_on(effect, left=1.0).remedies
    assert rich[0].startswith("More epsilon")
    assert "has 9 left" in rich[0]
    assert poor[0].startswith("More units")
    assert [text.split(":")[0] for text in poor] == ["More units", "More epsilon"]


def test_bounds_come_first_where_a_little_tighter_is_enough(made: Made, schema: dpc.Schema) -> None:
    near = made(estimate=0.5, noise=(NoiseTerm("laplace", 0.2),), sampling_sd=0.1)
    far = made(estimate=0.5, noise=(NoiseTerm("laplace", 1.0),), sampling_sd=0.1)
    assert verdict_on(near, schema=schema).remedies[0].startswith("Tighter bounds: score within a range of about")
    assert not verdict_on(far, schema=schema).remedies[0].startswith("Tighter bounds")
    binary = dataclasses.replace(schema, outcome=dpc.Binary("score"))
    assert not verdict_on(near, schema=binary).remedies[0].startswith("Tighter bounds")
