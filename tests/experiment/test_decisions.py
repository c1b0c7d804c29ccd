"""The decision rule: what it says, and how often it is wrong."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import DpcausalError
from dpcausal.uncertainty.anytime import LooksSoFar
from tests.support.decisions import CARD, EXPERIMENT, RULE, shown, simulated

SAME = {"revenue": (20.0, 20.0), "bought": (0.5, 0.5), "seconds": (2.0, 2.0)}


@pytest.mark.parametrize(
    ("moved", "action", "words"),
    [
        ({"revenue": (20.0, 21.0)}, "ship", "revenue is better; bought and seconds are within their margins"),
        ({}, "stop", "no look is left; revenue not shown to be better"),
        ({"revenue": (20.0, 21.0), "bought": (0.5, 0.45)}, "stop", "no look is left; bought not shown to be within"),
        ({"revenue": (20.0, 21.0), "bought": (0.5, 0.3)}, "stop", "bought is worse by more than its margin"),
        ({"revenue": (20.0, 21.0), "seconds": (2.0, 2.5)}, "stop", "seconds is worse by more than its margin"),
        ({"revenue": (20.0, 21.0), "seconds": (2.0, 1.0)}, "ship", "revenue is better"),
        ({"revenue": (20.0, 19.0)}, "stop", "revenue is worse"),
    ],
)
def test_decision_follows_the_rule(moved: dict[str, tuple[float, float]], action: str, words: str) -> None:
    card = shown(SAME | moved)
    (decision,) = card.decisions
    assert decision.action == action
    assert words in str(decision)
    assert decision.harm == ("worse" in words)
    for check in decision.checks:
        sign = -1 if check.metric == "seconds" else 1
        assert check.worst is not None
        assert check.best is not None
        assert sign * check.worst < sign * check.best
        assert (check.status in {"better", "within its margin"}) == (sign * (check.worst - check.limit) > 0)
    assert str(decision) in " ".join(str(card).split())
    page = card.to_html()
    assert {"ship": "✓ Ship", "stop": "✕ Stop"}[action] in page
    assert "At worst" in page


def test_mismatch_stops_and_an_early_look_waits() -> None:
    card = shown(SAME, looks=LooksSoFar(2, 8, 0.25))
    assert [each.action for each in card.decisions] == ["wait"]
    odd = replace(card, sample_ratio=replace(card.sample_ratio, p_value=1e-9))
    (decision,) = odd.decisions
    assert (decision.action, decision.harm) == ("stop", False)
    assert {check.status for check in decision.checks} == {"not judged"}
    assert "within its margin" not in odd.to_html()
    hidden = replace(card, effects=tuple(replace(each, no_interval="too small") for each in card.effects))
    assert {check.status for check in hidden.decisions[0].checks} == {"no interval"}
    assert [each.action for each in hidden.decisions] == ["wait"]


def test_rehearsal_says_what_could_be_shown_and_decides_nothing() -> None:
    assert [each.action for each in CARD.decisions] == ["not decided"]
    assert "detectable" in str(CARD).split("decided on")[1]
    assert CARD.to_dict()["decisions"] == []
    assert "Decision</strong>" not in CARD.to_html()


def test_rule_is_part_of_file_and_json() -> None:
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 (of other development tools)

    assert dpc.Experiment.from_toml(EXPERIMENT.to_toml()) == EXPERIMENT
    schema = json.loads((Path(__file__).parents[2] / "docs" / "scorecard.schema.json").read_text(encoding="utf-8"))
    for card in (CARD, shown(SAME)):
        jsonschema.validate(json.loads(card.to_json()), schema)
        assert card.to_dict()["rule"]["alpha"] == 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        {"goals": ["sales"]},
        {"goals": ["bought"]},
        {"goals": "revenue"},
        {"goals": (), "guardrails": ()},
        {"alpha": 0.5},
        {"guardrails": [("seconds", 0.2)]},
    ],
)
def test_rule_that_is_inconsistent_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DpcausalError):
        replace(EXPERIMENT, rule=replace(RULE, **wrong))


def test_margin_must_mean_something() -> None:
    for margin, relative in ((0, False), (-1, False), (1.0, True), (math.inf, False)):
        with pytest.raises(DpcausalError, match="margin"):
            dpc.Guardrail("seconds", margin, relative=relative)
    metric = dpc.Metric(dpc.Real("balance", -5, 5, missing=0))
    rule = dpc.DecisionRule(guardrails=[dpc.Guardrail("balance", 0.1, relative=True)])
    with pytest.raises(DpcausalError, match="negative"):
        replace(EXPERIMENT, metrics=[metric], rule=rule)


def share_of(what: Callable[[dpc.ArmDecision], bool], moved: dict[str, Any], looks: int, runs: int) -> float:
    """Return the share of simulated experiments with such a decision at any look."""
    many = itertools.islice(simulated(np.random.default_rng(5), SAME | moved, looks), runs)
    return sum(any(map(what, decisions)) for decisions in many) / runs


BETTER = {"revenue": (20.0, 25.0), "bought": (20.0, 20.0)}


@pytest.mark.parametrize("looks", [1, 8])
@pytest.mark.parametrize("moved", [{"bought": (20.0, 18.0)}, {"seconds": (2.0, 2.2)}])
def test_shipping_harm_at_the_margin_is_rare(moved: dict[str, Any], looks: int) -> None:
    """At a single look the error is alpha; at several it is at most alpha, which bounds noise look by look."""
    easy = {"bought": (20.0, 20.0), "seconds": (2.0, 1.0)}
    wrong = share_of(lambda each: each.action == "ship", BETTER | easy | moved, looks, 300 if looks == 1 else 120)
    assert wrong <= 0.09 if looks == 1 else wrong <= 0.05
    assert wrong >= 0.02 or looks > 1


def test_stopping_for_harm_without_harm_is_rare_at_all_looks() -> None:
    same = {"bought": (20.0, 20.0), "seconds": (2.0, 2.0)}
    assert share_of(lambda each: each.harm, same, 8, 120) <= 0.05
    assert share_of(lambda each: each.action == "ship", same, 8, 120) <= 0.05
    assert share_of(lambda each: each.harm, BETTER | same | {"bought": (20.0, 15.0)}, 8, 20) == 1
