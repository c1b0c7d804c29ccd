"""The stored run of a thousand sites over a mailbox, and what the documentation says of it."""

from pathlib import Path

import pytest

from benchmarks.federation import mailbox
from tests.benchmarks.test_claims import results, says


def test_all_sites_answered_although_the_server_was_killed() -> None:
    light, real = (results("federation")["mailbox"][part] for part in ("light", "real"))
    assert (light["sites"], light["answered"], light["kills"]) == (1000, 1000, 20)
    assert (real["sites"], real["answered"]) == (30, 30)
    for each in (light, real):
        assert each["computed"] == each["sites"]  # nothing was computed twice
        assert each["left_in_outboxes"] == 0
        assert each["database"].startswith("postgresql")


def test_page_reports_the_stored_figures() -> None:
    light, real = (results("federation")["mailbox"][part] for part in ("light", "real"))
    memory = real["megabytes_of_sites"]
    took = f"{light['seconds_for_the_study']:.0f} seconds"
    for words in (
        f"{light['answered']:,} of {light['sites']:,} answered, in {took}",
        f"half of them within {light['seconds_until_half_had_answered']:.0f} seconds",
        f"killed {light['kills']} times and was down for {light['seconds_without_a_server']:.0f} seconds",
        f"at most {light['megabytes_of_server']:.0f} MB",
        f"{real['answered']} of {real['sites']} answered, in {real['seconds_for_the_study']:.0f} seconds",
        f"uses {memory['resident']:.0f} MB ({memory['own']:.0f} of them unshared)",
        f"killed {real['kills']} times meanwhile",
    ):
        assert says("mailbox.md", words), words


@pytest.mark.slow  # the gate kills the server at each step in tests/federation/transports/mailbox/test_network.py
def test_small_run_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "PROCESSES", 1)
    found = mailbox.measure(tmp_path, sites=4, kills=1, real=0)["light"]
    assert (found["answered"], found["kills"]) == (4, 1)
    assert (found["computed"], found["left_in_outboxes"]) == (4, 0)
