"""The stored run of fifty sites of which ten were killed, what the page says of it, and a small run."""

from pathlib import Path

import pytest

from benchmarks.federation import secure
from tests.benchmarks.test_claims import results, says


def test_sum_was_opened_without_the_dead_and_nothing_was_paid_twice() -> None:
    run = results("federation")["secure"]
    assert (run["sites"], len(run["killed"]), run["outcome"]) == (50, 10, "answered")
    assert run["in_the_sum"] >= run["honest"]
    assert run["most_debits_of_a_site"] == 1
    assert run["opened_twice"] == 0
    assert run["privacy_sd_over_one_table"] < 1.25


def test_page_reports_the_stored_figures() -> None:
    run = results("federation")["secure"]
    killed = run["killed_by_round"]
    for words in (
        f"`honest` was {run['honest']}",
        f"{killed['shares']} in round 2, {killed['masked']} in round 3, {killed['confirm']} in round 4",
        f"The sum of {run['in_the_sum']} sites was opened, in {run['seconds']:.0f} seconds",
        f"{run['sites_that_paid']} ledgers have one debit",
        f"had {run['bytes_of_requests']['masked'] / 1000:.0f} kB",
        f"{run['privacy_sd_over_one_table']:.2f} times that of one table",
        f"have {run['in_the_sum'] ** 0.5:.1f} times by theory",
    ):
        assert says("secure-sums.md", words), words


@pytest.mark.slow  # the gate lets sites fall silent in tests/federation/test_secure_sums.py
def test_small_run_is_opened_and_paid_once(tmp_path: Path) -> None:
    run = secure.measure(tmp_path, 4, {"confirm": 1}, timeout=20.0, after=5.0)
    assert (run["outcome"], run["in_the_sum"], run["opened_twice"]) == ("answered", 4, 0)
    assert run["most_debits_of_a_site"] == 1
