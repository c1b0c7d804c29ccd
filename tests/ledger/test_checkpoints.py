"""Long ledgers that nobody has touched: opened from their last checkpoint, verified in pieces, used meanwhile."""

from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import Connection

import dpcausal as dpc
from dpcausal.errors import LedgerError
from dpcausal.ledger import running_total, verification
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import Store
from tests.ledger.long_ledgers import (
    AS_OF,
    BUDGET,
    GAUSSIAN,
    LAPLACE,
    SMOOTH,
    answer,
    checkpoints,
    opens,
    tamper,
    verifies,
)
from tests.support.long_ledger import write_long_ledger

pytestmark = pytest.mark.usefixtures("close_checkpoints")


def test_checkpoints_stand_in_their_places_and_hold_the_sum(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    for place in range(5):
        answer(ledger, f"laplace {place}")
        answer(ledger, f"gaussian {place}", GAUSSIAN)
    assert checkpoints(ledger) == [10, 20, 30]
    opening, checkpoint = ledger.entries()[0], ledger.entries()[20].content
    assert checkpoint["opening"] == opening.digest
    assert checkpoint["epsilon"] == "6/5"  # three of 1/10 and three of 3/10
    assert checkpoint["delta"] == "3/10000000"
    assert checkpoint["rho"] == str(3 * (Fraction(1, 200) + Fraction(0.0712345678) ** 2 / 2))
    assert ledger.spent.epsilon == 2.0
    ledger.verify()


def test_going_on_from_a_checkpoint_is_going_on_from_the_opening() -> None:
    opening = RunningTotal().after(Entry.after(None, "open", "", {"as_of": AS_OF}))
    added, seen = opening, 0
    for place, event in enumerate([LAPLACE, GAUSSIAN, SMOOTH, GAUSSIAN] * 5):
        for entry in added.followed_by("grant", str(place), {"event": event.to_dict()}):
            added = added.after(entry)
            if entry.kind == "checkpoint":
                assert opening.at(entry) == added
                seen += 1
    assert seen == 2


def test_a_reopened_ledger_goes_on_where_it_was(url: str) -> None:
    ledger = dpc.Ledger(url)
    assert (ledger.spent.epsilon, ledger.budget, ledger.versions) == (1.1, BUDGET, {AS_OF: None})
    assert ledger.stored("r2") == '{"answer": "r2"}'
    answer(ledger, "r2")
    assert ledger.debit("r2").number == 8
    with pytest.raises(LedgerError, match="the price that was reserved"):
        ledger.grant("r2", GAUSSIAN, {})
    assert ledger.spent.epsilon == 1.1
    assert len(ledger.entries()) == 37


def entries_read(monkeypatch: pytest.MonkeyPatch, url: str) -> list[int]:
    """How many entries each look at the store brought while a ledger was opened."""
    brought, entries_from = [], Store.entries_from

    def counted(self: Store, connection: Connection, number: int, at_most: int) -> list[Entry]:
        entries = entries_from(self, connection, number, at_most)
        brought.append(len(entries))
        return entries

    with monkeypatch.context() as patch:
        patch.setattr(Store, "entries_from", counted)
        dpc.Ledger(url)
    return brought


def test_opening_reads_no_more_of_a_longer_ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    short, long = f"sqlite:///{tmp_path / 'short.db'}", f"sqlite:///{tmp_path / 'long.db'}"
    write_long_ledger(short, 30)
    write_long_ledger(long, 3000)
    assert verifies(long)
    assert sum(entries_read(monkeypatch, long)) == sum(entries_read(monkeypatch, short)) < 20
    monkeypatch.setattr(verification, "last_checkpoint_up_to", lambda _: 0)  # the mutant begins at the opening
    assert sum(entries_read(monkeypatch, long)) > 3000


def test_no_more_than_a_piece_is_held_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    write_long_ledger(url, 500)
    monkeypatch.setattr(verification, "last_checkpoint_up_to", lambda _: 0)
    assert max(entries_read(monkeypatch, url)) == 8


def test_a_ledger_can_be_used_while_it_is_verified(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    for place in range(5):
        answer(ledger, f"r{place}")
    verified = ledger._verified()
    assert next(verified).kind == "open"
    answer(ledger, "meanwhile")
    assert [entry.number for entry in verified] == list(range(1, 20))


def test_an_interrupted_request_is_taken_up_again_after_checkpoints(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    ledger.grant("granted", LAPLACE, {})
    ledger.grant("debited", LAPLACE, {})
    debit = ledger.debit("debited")
    for place in range(10):
        answer(ledger, f"r{place}")
    again = ledger if ledger_url == "sqlite://" else dpc.Ledger(ledger_url)
    for request in ("granted", "debited"):
        assert again.stored(request) is None
        answer(again, request)
    assert again.debit("debited") == debit
    assert again.spent.epsilon == 1.2
    again.verify()


@pytest.fixture
def old_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A ledger as versions without checkpoints wrote it."""
    address = f"sqlite:///{tmp_path / 'old.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(running_total, "CHECKPOINT_EVERY", 10**9)
        ledger = dpc.Ledger.create(address, BUDGET, as_of=AS_OF)
        for place in range(11):
            answer(ledger, f"r{place}")
    assert checkpoints(ledger) == []
    return address


def test_a_ledger_without_checkpoints_is_read_whole_until_it_has_one(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sum(entries_read(monkeypatch, old_url)) > 33
    ledger = dpc.Ledger(old_url)
    for place in range(11, 14):
        answer(ledger, f"r{place}")
    assert checkpoints(ledger) == [40]
    assert sum(entries_read(monkeypatch, old_url)) < 20
    assert dpc.Ledger(old_url).spent.epsilon == 1.4
    assert verifies(old_url)


def test_in_a_ledger_without_checkpoints_opening_finds_every_change(old_url: str) -> None:
    tamper(old_url, "UPDATE dpcausal_ledger SET body = replace(body, '0.1', '0.0') WHERE number = 4")
    assert not opens(old_url)


def test_a_ledger_with_checkpoints_elsewhere_is_read_whole(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_total, "CHECKPOINT_EVERY", 35)
    assert sum(entries_read(monkeypatch, url)) > 37
    assert verifies(url)
