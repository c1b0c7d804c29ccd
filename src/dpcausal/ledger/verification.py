"""Reading a ledger's entries and verifying that they are as they were written."""

from collections import deque
from collections.abc import Iterator
from typing import TypeVar

from sqlalchemy import Connection

from dpcausal.errors import DpcausalError, LedgerError
from dpcausal.ledger.chain import Entry, Kind, broken_at, check_order, unreadable_at
from dpcausal.ledger.running_total import RunningTotal, last_checkpoint_up_to
from dpcausal.ledger.store import Store
from dpcausal.ledger.witness import Witness
from dpcausal.utils.hash_chain import verify

Running = TypeVar("Running", bound=RunningTotal)

PIECE = 900  # how many entries are in memory at once; older versions of SQLite take no more than 999 parameters


def check_count(store: Store, connection: Connection) -> int:
    """Return the number of the last entry; raise unless the number of entries agrees."""
    count, last = store.extent(connection)
    if count != last + 1:
        raise LedgerError(
            problem=f"The ledger has {count} entries, and {last + 1} by the number of the last one",
            hint="entries were removed or inserted; restore the ledger from a copy that verifies.",
        )
    return last


def entry_at(store: Store, connection: Connection, number: int) -> Entry:
    """Return the entry of this number."""
    for entry in store.entries_from(connection, number, 1):
        if entry.number == number:
            return entry
    raise broken_at(number)


def at_checkpoint_before(store: Store, connection: Connection, number: int, blank: Running) -> Running:
    """Return the running total at the last checkpoint up to an entry; where there is none, at the opening."""
    opening = blank.after(entry_at(store, connection, 0))
    place = entry_at(store, connection, last_checkpoint_up_to(number))
    if place.kind != "checkpoint":  # the opening; or checkpoints are elsewhere, and all is read
        return opening
    try:
        return opening.at(place)
    except LedgerError:
        raise
    except (LookupError, TypeError, ValueError, DpcausalError):
        raise unreadable_at(place.number) from None


def read_on(store: Store, connection: Connection, running: Running) -> tuple[Running, list[Entry]]:
    """Return the next piece of the chain, verified, and the running total after it."""
    known = [running.head] if running.head else []
    entries = store.entries_from(connection, known[0].number if known else 0, PIECE + len(known))
    if entries[: len(known)] != known:
        raise LedgerError(
            expected=f"entry {known[0].number} as it was read or written before",
            got="another or none",
            hint="the ledger was truncated or replaced while in use; restore it before releasing anything.",
        )
    new = entries[len(known) :]
    if not new:
        return running, new
    for entry in new:
        running = running.after(entry)
    for kinds in store.kinds_of(connection, {entry.request for entry in new}).values():
        check_order(kinds)
    for entry in new:
        if entry.kind == "look":
            check_look(store, connection, entry)
    return running, new


def check_look(store: Store, connection: Connection, look: Entry) -> None:
    """Raise unless the schedule of a look was debited before it, and the look before it answered."""
    content = look.content
    needed: list[tuple[Kind, str]] = [("debit", content["schedule"])]
    needed += [("look", content["previous"])] if content["previous"] else []
    for kind, request in needed:
        earlier = request_entries(store, connection, request).get(kind)
        if earlier is None or earlier.number >= look.number:
            raise LedgerError(
                expected="looks in their order, each after the debit of its schedule",
                got=f"a look at entry {look.number} without the {kind} before it",
                hint="restore the ledger from a copy that verifies; do not release anything before.",
            )


def to_the_end(store: Store, connection: Connection, running: Running) -> Running:
    """Return the running total at the last entry; all entries on the way are verified."""
    while True:
        running, entries = read_on(store, connection, running)
        if len(entries) < PIECE:
            return running


def check_witnessed(store: Store, connection: Connection, running: RunningTotal, witness: Witness) -> None:
    """Raise unless a ledger continues from the last entry that its witness recorded.

    The ledger may be ahead, if a writer stopped before it reported to the witness, and so before an answer left. It is
    never behind, since it reports to the witness after the commit.
    """
    seen, last = witness.last(running.opening), running.sighting.number
    if seen is None:
        raise LedgerError(
            problem=f"The witness {witness.address} is not the one of this ledger: it has no record of it",
            hint="name the right one. If it is lost, a person must decide: dpcausal ledger restore.",
        )
    entry = entry_at(store, connection, seen.number) if seen.number <= last else None
    if entry is None or entry.digest != seen.digest:
        raise LedgerError(
            expected=f"entry {seen.number} as the witness {witness.address} recorded it",
            got=f"a ledger that ends at entry {last}" if entry is None else "another entry",
            hint="this ledger was truncated, restored from a copy, or is another one. Nothing is released: find the "
            "right ledger, or record what is lost with dpcausal ledger restore.",
        )
    check_chain_from(store, connection, entry)


def check_chain_from(store: Store, connection: Connection, entry: Entry) -> None:
    """Raise unless every entry after this one is intact and stands right after the one before it."""
    start = entry.number + 1
    deque(verify(_entries_from(store, connection, start), lambda place: broken_at(start + place), last=entry), maxlen=0)


def _entries_from(store: Store, connection: Connection, number: int) -> Iterator[Entry]:
    while entries := store.entries_from(connection, number, PIECE):
        yield from entries
        number = entries[-1].number + 1


def request_entries(store: Store, connection: Connection, request: str) -> dict[Kind, Entry]:
    """Return the entries of one request, each intact; looked up each time, since there may be many requests."""
    entries = store.entries_of(connection, request)
    check_order([entry.kind for entry in entries])
    for entry in entries:
        entry.check_digest()
    return {entry.kind: entry for entry in entries}
