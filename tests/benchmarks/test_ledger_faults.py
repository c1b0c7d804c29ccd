"""A short form of `python -m benchmarks.ledger_faults`: real processes, really killed."""

import os
from random import Random

import pytest

import dpcausal as dpc
from benchmarks import ledger_faults
from tests.support.postgres import VARIABLE

POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))


@pytest.mark.costly
@pytest.mark.timeout(600)  # where it is not alone on the machine
@pytest.mark.parametrize("backend", ["sqlite", POSTGRESQL])
def test_killed_and_racing_processes_keep_the_books(backend: str) -> None:
    if backend == "postgresql" and VARIABLE not in os.environ:
        pytest.skip(f"no PostgreSQL server: {VARIABLE} is not set; see CONTRIBUTING.md")
    found = ledger_faults.measure(backend, trials=2, races=1, seed=5)
    assert sum(found["killed_when_last_entry_was"].values()) == 2  # type: ignore[attr-defined]
    zero = ("under_counted", "double_debited", "changed_answers", "unanswered_on_retry", "chain_broken")
    assert [found[name] for name in (*zero, "races_over_cap")] == [0] * 6
    assert found["races_with_exactly_the_affordable_number"] == 1


def test_killed_processes_keep_the_books_of_a_schedule() -> None:
    found = ledger_faults.measure_schedule("sqlite", trials=2, seed=5)
    zero = ("under_counted", "double_debited", "changed_answers", "unanswered_on_retry", "chain_broken")
    assert [found[name] for name in (*zero, "looks_lost_or_stored_twice")] == [0] * 6


def test_a_ledger_that_loses_its_debits_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """The mutant: a store that forgets what it was told, so that every answer is under-counted."""
    monkeypatch.setattr(dpc.Ledger, "entries", lambda _: ())
    found = ledger_faults.kill_and_retry(f"sqlite:///{tmp_path}/ledger.db", 2, Random(1))  # noqa: S311
    assert found.double_debited == 2  # no debit where there should be one
