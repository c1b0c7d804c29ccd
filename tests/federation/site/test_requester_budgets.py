"""What a site's policy lets one requester spend, beside the budget for all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpcausal import Study
from dpcausal.errors import StudyError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.policy import FILE, Policy
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from tests.support.site_folders import approve_study, confirm_settings


@pytest.fixture
def capped(folder: Path) -> Path:
    """A site whose policy lets anna spend epsilon 1.5 of 3."""
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write("\n[requester_budgets]\nanna = { epsilon = 1.5 }\n")
    confirm_settings(folder)
    return folder


def answer(folder: Path, requester: Key, study: Study) -> str:
    request = Request(study=study.to_toml(), ask="releases")
    return Message.from_json(claimed_body(Site(folder).answer(requester.seal(request.to_json())))).code


def test_a_requester_spends_no_more_than_the_policy_says(capped: Path, requester: Key, study: Study) -> None:
    first, second = (replace(study, name=name, epsilon=size) for name, size in (("first", 1.0), ("second", 0.75)))
    for each in (first, second):
        approve_study(capped, each)
    site = Site(capped)
    before = site.review(site.receive(second.to_toml()))
    assert before.consequences
    assert "of the epsilon 1.5 that anna may spend, epsilon 1.5 are left" in dict(before.in_short())["what is left"]
    assert "too little left for this study beside what is committed" in before.consequences.warning  # 3 would do
    assert answer(capped, requester, first) == "answered"
    after = site.review(site.receive(second.to_toml()))
    costs = dict(after.in_short())["what it costs"]
    assert "More than is left of what anna may spend" in costs
    assert "of the epsilon 1.5 that anna may spend, epsilon 0.5 are left" in costs
    assert answer(capped, requester, second) == "no_budget"
    assert answer(capped, requester, first) == "answered"  # again, and for nothing
    ledger = site.ledger()
    assert ledger.spent.epsilon == 1.0
    budget = next(each for each in site_status(capped).checks if each.name == "budget")
    assert "of the epsilon 1.5 that anna may spend, epsilon 0.5 are left" in budget.words
    assert budget.value["left for anna"] == {"epsilon": 0.5, "delta": 0.0}


@pytest.mark.parametrize(
    "lines",
    ["ben = { epsilon = 1.5 }", "anna = 1.5", "anna = { delta = 1e-6 , rule = 'zcdp' }", "anna = { epsilon = -1 }"],
)
def test_a_share_that_would_not_hold_is_refused(folder: Path, lines: str) -> None:
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(f"\n[requester_budgets]\n{lines}\n")
    with pytest.raises(StudyError):
        Policy.read(folder)


def test_a_cap_must_fit_the_rule_of_the_budget(folder: Path) -> None:
    policy = replace(Policy.read(folder), budget={"epsilon": 3.0, "delta": 1e-6, "rule": "zcdp"})
    assert replace(policy, requester_budgets={"anna": {"epsilon": 1.5}}).requester("anna").cap
    caps: tuple[Any, ...] = ({"epsilon": 1.5, "delta": 0.0}, {"epsilon": 2000.0}, {"epsilon": True}, {"epsilon": "1"})
    for cap in caps:
        with pytest.raises(StudyError, match="that fit"):
            replace(policy, requester_budgets={"anna": cap})
