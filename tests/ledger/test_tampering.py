"""Long ledgers that were spoiled: what opening finds, what only `verify` finds, and what is found on use."""

from pathlib import Path

import pytest
from sqlalchemy import update

import dpcausal as dpc
from dpcausal.errors import LedgerError
from dpcausal.ledger import verification
from dpcausal.ledger.chain import Entry, Kind
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import ENTRIES
from tests.ledger.long_ledgers import (
    AS_OF,
    BUDGET,
    LAPLACE,
    SMOOTH,
    answer,
    chain_to_the_end,
    forge,
    opens,
    tamper,
    verifies,
)

# Request r1 is entries 4 to 6, the last checkpoint is entry 30, the last entry is 36.
CHANGED = [
    "UPDATE dpcausal_ledger SET body = replace(body, '0.1', '0.0') WHERE number = 4",
    "UPDATE dpcausal_ledger SET digest = previous WHERE number = 5",
    "UPDATE dpcausal_ledger SET body = replace(body, 'r1', 'r9') WHERE number = 6",
    "UPDATE dpcausal_ledger SET request = 'other' WHERE number = 6",
    "UPDATE dpcausal_ledger SET kind = 'else' WHERE number = 6",
    "UPDATE dpcausal_ledger SET number = -1 WHERE number = 6",
    "UPDATE dpcausal_ledger SET body = replace(body, '3/10', '1/10') WHERE number = 10",
]
REMOVED = [
    "DELETE FROM dpcausal_ledger WHERE number = 6",
    "DELETE FROM dpcausal_ledger WHERE number = 0",
    "DELETE FROM dpcausal_ledger WHERE number BETWEEN 1 AND 9",
    "DELETE FROM dpcausal_ledger WHERE number = 20",
    "DELETE FROM dpcausal_ledger WHERE number = 30",
    "DELETE FROM dpcausal_ledger WHERE number = 35",
]
PUT_IN_FRONT = "INSERT INTO dpcausal_ledger SELECT -1, 'else', '', '', '', digest FROM dpcausal_ledger WHERE number = 6"
CHANGED_AT_AN_END = [
    "UPDATE dpcausal_ledger SET body = replace(body, '100', '900') WHERE number = 0",
    "UPDATE dpcausal_ledger SET body = replace(body, '9/10', '1/10') WHERE number = 30",
    "UPDATE dpcausal_ledger SET kind = 'grant' WHERE number = 30",
    "UPDATE dpcausal_ledger SET body = replace(body, '0.1', '0.0') WHERE number = 31",
    "INSERT INTO dpcausal_ledger SELECT 37, 'debit', 'x', body, previous, digest FROM dpcausal_ledger WHERE number = 6",
]


@pytest.mark.parametrize("tampering", CHANGED)
def test_a_change_before_the_last_checkpoint_is_found_by_verify(url: str, tampering: str) -> None:
    ledger = dpc.Ledger(url)
    tamper(url, tampering)
    assert opens(url)
    assert not verifies(url)
    for reading in (ledger.verify, ledger.entries, lambda: ledger.tight_epsilon(1e-6)):
        with pytest.raises(LedgerError):
            reading()


@pytest.mark.parametrize("tampering", CHANGED[:-1])
def test_a_changed_entry_is_not_used(url: str, tampering: str) -> None:
    ledger = dpc.Ledger(url)
    tamper(url, tampering)
    for each in (ledger, dpc.Ledger(url)):
        with pytest.raises(LedgerError):  # noqa: PT012 (one or the other: the answer, or the asking for another)
            assert each.stored("r1") is None
            each.grant("r1", LAPLACE, {})


@pytest.mark.parametrize("tampering", [*REMOVED, PUT_IN_FRONT, *CHANGED_AT_AN_END])
def test_what_was_removed_or_changed_at_an_end_is_found_on_opening_and_by_verify(url: str, tampering: str) -> None:
    ledger = dpc.Ledger(url)
    tamper(url, tampering)
    assert not opens(url)
    with pytest.raises(LedgerError):
        ledger.verify()


@pytest.mark.usefixtures("close_checkpoints")
def test_every_place_that_holds_a_ledger_tells_the_same(ledger_url: str) -> None:
    if ledger_url == "sqlite://":
        pytest.skip("only this process can reach a ledger in memory")
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    for place in range(4):
        answer(ledger, f"r{place}")
    assert verifies(ledger_url)
    tamper(ledger_url, CHANGED[2])
    assert opens(ledger_url)
    assert not verifies(ledger_url)
    with pytest.raises(LedgerError, match="entry 6"):
        ledger.stored("r1")
    tamper(ledger_url, REMOVED[0])
    assert not opens(ledger_url)
    with pytest.raises(LedgerError):
        ledger.grant("r1", LAPLACE, {})


def test_a_ledger_that_does_not_count_is_caught(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant verifies a ledger with an entry before the first, and opens one with a hole in it."""
    monkeypatch.setattr(verification, "check_count", lambda store, connection: store.extent(connection)[1])
    tamper(url, PUT_IN_FRONT)
    assert verifies(url)
    tamper(url, REMOVED[0])
    assert opens(url)


LIES = [{"epsilon": "1/10"}, {"delta": "0"}, {"rho": "1/8"}]


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_checkpoint_is_found_by_verify(url: str, lie: dict[str, str]) -> None:
    forge(url, 30, **lie)
    assert opens(url)  # the last checkpoint is taken at its word, as docs/proofs/ledger_chain.md says
    assert not verifies(url)


@pytest.mark.parametrize("lie", LIES)
def test_a_ledger_that_takes_every_checkpoint_at_its_word_is_caught(
    url: str, lie: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant of `RunningTotal.after`: it does not compare, so its `verify` does not find."""
    honest = RunningTotal.after

    def trusting(self: RunningTotal, entry: Entry) -> RunningTotal:
        return self.at(entry) if entry.kind == "checkpoint" else honest(self, entry)

    forge(url, 30, **lie)
    monkeypatch.setattr(RunningTotal, "after", trusting)
    assert verifies(url)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.usefixtures("close_checkpoints")
def test_a_lying_checkpoint_is_found_by_whoever_was_there_before(tmp_path: Path, lie: dict[str, str]) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    for place in range(3):
        answer(ledger, f"r{place}", SMOOTH)
    other = dpc.Ledger(url)
    answer(other, "r3")
    forge(url, 10, **lie)
    with pytest.raises(LedgerError, match="a checkpoint at entry 10"):
        ledger.stored("r1")


def test_another_opening_with_a_digest_of_its_own_is_refused(url: str) -> None:
    """A larger budget in the opening entry, which is whole; but the last checkpoint names the one that stood there."""
    larger = {"budget": dpc.Budget(epsilon=900).to_dict()}
    opening = Entry.after(None, "open", "", dpc.Ledger(url).entries()[0].content | larger)
    tamper(url, update(ENTRIES).where(ENTRIES.c.number == 0).values(**vars(opening)))
    with pytest.raises(LedgerError, match="the opening entry"):
        dpc.Ledger(url)


def test_another_answer_with_a_digest_of_its_own_is_found_by_verify(url: str) -> None:
    debit, release = dpc.Ledger(url).entries()[5:7]
    other = Entry.after(debit, "release", "r1", release.content | {"release": {"answer": "another"}})
    tamper(url, update(ENTRIES).where(ENTRIES.c.number == 6).values(**vars(other)))
    assert dpc.Ledger(url).stored("r1") == '{"answer": "another"}'  # it is whole: use does not tell
    assert not verifies(url)


HIDDEN = [REMOVED[0], *CHANGED[3:6]]


@pytest.mark.parametrize("tampering", HIDDEN)
def test_a_request_whose_answer_was_lost_is_not_answered_again(url: str, tampering: str) -> None:
    ledger = dpc.Ledger(url)
    tamper(url, tampering)
    with pytest.raises(LedgerError):
        ledger.grant("r1", LAPLACE, {})


@pytest.mark.parametrize("tampering", HIDDEN[:2])
def test_a_ledger_that_takes_up_any_reservation_is_caught(
    url: str, tampering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant is paid once and tells two answers."""
    monkeypatch.setattr(dpc.Ledger, "_check_unanswered_since", lambda *_: None)
    ledger = dpc.Ledger(url)
    tamper(url, tampering)
    ledger.grant("r1", LAPLACE, {})
    assert ledger.store("r1", '{"answer": "another"}') == '{"answer": "another"}'
    assert ledger.spent.epsilon == 1.1


OUT_OF_ORDER = [
    [("debit", "new")],
    [("release", "new")],
    [("grant", "r1")],
    [("debit", "r1")],
    [("release", "r1")],
    [("debit", "new"), ("grant", "new")],
    [("grant", "new"), ("release", "new")],
    [("open", "")],
    [("else", "new")],
]


@pytest.mark.parametrize("entries", OUT_OF_ORDER)
def test_entries_out_of_order_are_found_across_checkpoints(url: str, entries: list[tuple[Kind, str]]) -> None:
    ledger = dpc.Ledger(url)
    chain_to_the_end(url, *entries)
    assert not opens(url)
    with pytest.raises(LedgerError):
        ledger.stored("r2")


@pytest.mark.parametrize("entries", OUT_OF_ORDER[:7])
def test_a_ledger_that_does_not_look_at_the_order_is_caught(
    url: str, entries: list[tuple[Kind, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "check_order", lambda _: None)
    chain_to_the_end(url, *entries)
    assert verifies(url)
