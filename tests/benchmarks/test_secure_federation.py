"""A small run of secure sums over real processes; the stored one of fifty sites is in `test_secure_sums`."""

from pathlib import Path

import pytest

from benchmarks.federation import secure


@pytest.mark.slow  # the gate lets sites fall silent in tests/federation/test_secure_sums.py
def test_small_run_is_opened_and_paid_once(tmp_path: Path) -> None:
    run = secure.measure(tmp_path, 4, {"confirm": 1}, timeout=20.0, after=5.0)
    assert (run["outcome"], run["in_the_sum"], run["opened_twice"]) == ("answered", 4, 0)
    assert run["most_debits_of_a_site"] == 1
