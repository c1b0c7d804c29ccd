"""Ledgers with checkpoints close together, so that short ones have several; and ways to spoil them."""

import json

from sqlalchemy import Executable, create_engine, delete, insert, select, text

import dpcausal as dpc
from dpcausal.errors import LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger import DataSet
from dpcausal.ledger.chain import Entry, Kind
from dpcausal.ledger.store import ENTRIES

AS_OF = "2026-06-30"
FACTS = DataSet("record")
BUDGET = dpc.Budget(epsilon=100, delta=1e-3)
LAPLACE = Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0)
GAUSSIAN = Event(family="gaussian", epsilon=0.3, delta=1e-7, mu=0.0712345678)
SMOOTH = Event(family="smooth", epsilon=0.1, delta=1e-7, mu=0.0)


def answer(ledger: dpc.Ledger, request: str, event: Event = LAPLACE) -> None:
    ledger.grant(request, event, {})
    ledger.debit(request)
    ledger.store(request, json.dumps({"answer": request}))


def checkpoints(ledger: dpc.Ledger) -> list[int]:
    return [entry.number for entry in ledger.entries() if entry.kind == "checkpoint"]


def opens(url: str) -> bool:
    try:
        dpc.Ledger(url)
    except LedgerError:
        return False
    return True


def verifies(url: str) -> bool:
    try:
        dpc.Ledger(url).verify()
    except LedgerError:
        return False
    return True


def tamper(url: str, *changes: str | Executable) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for change in changes:
            connection.execute(text(change) if isinstance(change, str) else change)
    engine.dispose()


def forge(url: str, number: int, **said: str) -> None:
    """Make an entry say something else, and chain all that follows to it again."""
    engine = create_engine(url)
    with engine.begin() as connection:
        chosen = select(ENTRIES).where(ENTRIES.c.number >= number - 1).order_by(ENTRIES.c.number)
        before, *following = [Entry(**found._mapping) for found in connection.execute(chosen)]
        connection.execute(delete(ENTRIES).where(ENTRIES.c.number >= number))
        for entry in following:
            content = entry.content | said if entry.number == number else entry.content
            before = Entry.after(before, entry.kind, entry.request, content)
            connection.execute(insert(ENTRIES).values(**vars(before)))
    engine.dispose()


def chain_to_the_end(url: str, *following: tuple[Kind, str]) -> None:
    """Chain entries to the end that no ledger would write, in a table that lets them in."""
    *_, head = dpc.Ledger(url).entries()
    loosened = (
        "CREATE TABLE loose AS SELECT * FROM dpcausal_ledger",
        "DROP TABLE dpcausal_ledger",
        "ALTER TABLE loose RENAME TO dpcausal_ledger",
    )
    tamper(url, *loosened)
    for kind, request in following:
        head = Entry.after(head, kind, request, {"event": LAPLACE.to_dict()})
        tamper(url, insert(ENTRIES).values(**vars(head)))
