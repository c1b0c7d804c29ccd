"""Secure sums of many sites: a small run, and what the stored ones show."""

import json
from typing import Any

import pytest

from benchmarks.parts import PUBLISHED
from benchmarks.secure_sites import BOTH, SIZES, measure
from dpcausal.federation.protocol.messages import STEPS
from dpcausal.federation.transports.mailbox.calls import LONGEST_REQUEST


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    result: dict[str, Any] = json.loads((PUBLISHED / "secure_sites.json").read_text(encoding="utf-8"))
    return {name: run for name, run in result.items() if name != "machine"}


def test_light_and_whole_sites_open_a_sum_together() -> None:
    """Any wrong mask, share or digest of a light site would close it."""
    run = measure(9, dropouts=True)
    assert (run["in_the_sum"], sum(run["silent"].values())) == (7, 2)


def test_all_sizes_are_stored_with_silent_sites_in_every_round(stored: dict[str, Any]) -> None:
    assert {(run["sites"], any(run["silent"].values())) for run in stored.values()} == {
        (sites, silent) for sites in SIZES for silent in ((False, True) if sites <= BOTH else (True,))
    }
    for run in stored.values():
        silent = [run["silent"][step] for step in STEPS]
        assert all(silent) or not any(silent) or run["sites"] == min(SIZES)
        assert run["in_the_sum"] >= run["threshold"]


def test_requests_grow_with_the_number_of_sites_and_fit_into_calls(stored: dict[str, Any]) -> None:
    for run in stored.values():
        assert run["largest_call"] <= LONGEST_REQUEST
        assert run["largest_request"] < 3_000 + 1_400 * run["sites"]
