"""Ledgers of any length, written at once: to ask so many questions would take all day."""

import itertools
from collections.abc import Iterator

import pyarrow as pa
from sqlalchemy import insert

import dpcausal as dpc
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import ENTRIES, Store
from dpcausal.utils.hash_chain import digest_of

PRICE = 0.01


def short_ledger() -> tuple[Entry, ...]:
    """Return the entries of a ledger that answered one question of a trial: opening, grant, debit and release."""
    table = pa.table({"arm": [0, 1] * 500, "y": [0.25, 0.75] * 500})
    schema = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 1))
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1000))
    dpc.DifferenceInMeans().estimate(vault, epsilon=PRICE)
    opening, _, *request = vault.ledger.entries()  # without the entry that ties it to its table
    return opening, *request


def long_chain(opening: Entry, *request: Entry) -> Iterator[Entry]:
    """Yield the entries of a ledger that goes on answering such questions, without end."""
    running = RunningTotal().after(opening)
    yield opening
    for question in itertools.count():
        for entry in request:
            for written in running.followed_by(entry.kind, digest_of(question), entry.content):
                running = running.after(written)
                yield written


def write_long_ledger(url: str, entries: int) -> None:
    """Write a ledger of so many entries in one transaction."""
    store = Store(url)
    chain = itertools.islice(long_chain(*short_ledger()), entries)
    with store.exclusive() as connection:
        store.create(connection)
        connection.execute(insert(ENTRIES), [vars(entry) for entry in chain])
