"""The stored results of operating a federation: nothing lost, nothing paid for twice, few errors."""

import json
from typing import Any

import pytest

from benchmarks.operation import RESULTS, SITES

FILES = {"operation.json": 0, "operation_week.json": 1}
"""The results, and how many sites were restored from a backup."""


@pytest.fixture(params=FILES)
def result(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / request.param).read_text(encoding="utf-8"))
    return found | {"restored": FILES[request.param]}


def test_every_site_answered_every_study(result: dict[str, Any]) -> None:
    asked = [event for event in result["events"] if "sites" in event]
    assert len(asked) >= result["studies"] >= 4
    assert all(event["sites"] == dict.fromkeys(SITES, "answered") for event in asked)


def test_no_study_was_paid_for_twice(result: dict[str, Any]) -> None:
    restored = [site for site, ledger in result["ledgers"].items() if ledger["restores"]]
    assert len(restored) == result["restored"]
    for site, ledger in result["ledgers"].items():
        assert ledger["whole"]
        assert ledger["debits"] == ledger["releases"]
        assert site in restored or ledger["debits"] == result["studies"]
        # What a restored ledger lacks was stated: it is counted, so that nothing is spent without being told.
        assert ledger["spent"] == pytest.approx(result["asked"])
    for event in result["events"]:
        assert event.get("same", True)


LOST_CONNECTIONS = ("cannot send to", "no callback", "missing client name", "Message sending error to target _admin_")
"""What is logged when a server or a site was killed; the last one when the requester was gone before the reply."""


def test_errors_are_about_lost_connections_and_few(result: dict[str, Any]) -> None:
    for error in result["errors"]:
        assert any(words in error for words in LOST_CONNECTIONS), error
    assert len(result["errors"]) <= 2 * result["studies"]
    assert sum(result["lines"].values()) < 60 * result["studies"]


def test_week_had_a_renewal_and_a_loss() -> None:
    events = json.loads((RESULTS / "operation_week.json").read_text(encoding="utf-8"))["events"]
    assert {event["day"] for event in events} == set(range(1, 8))
    by_name = {event["what"]: event for event in events}
    renewed = by_name["all certificates renewed"]
    assert renewed["days_before"] < 5
    assert renewed["days_after"] > 50
    lost = by_name["a site lost and restored from the backup of day 3"]
    assert (lost["stopped"], lost["ledger"]) == ("broken", "healthy")
    assert "broken" not in by_name["status in the end"]["levels"].values()
