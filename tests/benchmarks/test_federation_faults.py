"""One row of the fault matrix, on real processes; all of them: `python -m benchmarks.federation --part faults`."""

from pathlib import Path

import pytest

from benchmarks.federation import faults

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("federation")]


def test_killed_site_leaves_the_ledger_right(tmp_path: Path) -> None:
    found = faults.measure(tmp_path, ["site killed between debit and answer"])
    whole = found.pop("in all")
    assert [name for name, row in found.items() if not row["ok"]] == []
    assert whole.pop("files_outside_with_a_patient") == [[], [], []]
    for balance in whole.values():
        assert balance["paid_twice"] == 0
        assert balance["spent"] == pytest.approx(balance["prices"])
