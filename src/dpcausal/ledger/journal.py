"""The journal of a ledger: entries are appended to a store, verified when read, and reported to a witness."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from dpcausal.ledger import refusals, verification
from dpcausal.ledger.budget import Budget
from dpcausal.ledger.chain import Entry, Kind, unreadable_at
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import Store
from dpcausal.ledger.witness import Sighting, Witness


def begin(store: Store, connection: Connection, witness: Witness | None, content: dict[str, Any]) -> Entry:
    """Write the first entry of a ledger where there is none, and report it to the witness."""
    if store.exists(connection):
        raise refusals.there_already(store)
    store.create(connection)
    opening = Entry.after(None, "open", "", content | {"witness": witness.address if witness else None})
    store.append(connection, opening)
    if witness is not None:
        witness.write(opening.digest, Sighting(0, opening.digest))
    return opening


Running = TypeVar("Running", bound=RunningTotal)


class Journal(Generic[Running]):
    """The entries of one ledger, and their running total."""

    _running: Running

    def _blank(self) -> Running:
        """Return the running total before the first entry."""
        raise NotImplementedError

    def _open(self, store: Store, witness: Witness | None, *, restoring: bool = False) -> None:
        self._store, self._witness, self._restoring = store, witness, restoring
        self._lock, self._running = threading.Lock(), self._blank()
        if store.is_absent:
            raise refusals.absent(store, "no file")
        with store.exclusive() as connection:
            if not store.exists(connection):
                raise refusals.absent(store, "a database without a ledger")
            last = verification.check_count(store, connection)
            if last < 0:
                raise refusals.absent(store, "a ledger without its entries: somebody emptied it")
            start = verification.at_checkpoint_before(store, connection, last, self._blank())
            self._running = verification.to_the_end(store, connection, start)
            opening = verification.entry_at(store, connection, 0).content
            try:
                self._budget, named = Budget(**opening["budget"]), opening["witness"]
                self._read_opening(opening)
            except (LookupError, TypeError):
                raise unreadable_at(0) from None
            if bool(named) != bool(witness):
                raise refusals.other_witness(named)
            self._check_witnessed(connection)

    def _read_opening(self, opening: dict[str, Any]) -> None:
        """Read what only this kind of ledger has in its first entry."""

    @property
    def budget(self) -> Budget:
        """The most that may ever be spent. It is part of the ledger, and cannot be changed."""
        return self._budget

    @property
    def address(self) -> str:
        """Where the ledger is, in full and without a password."""
        return self._store.address

    @property
    def forgets(self) -> bool:
        """Whether the ledger is in memory."""
        return self._store.forgets

    @property
    def opening(self) -> str:
        """The digest of the first entry, which no other ledger has."""
        return self._running.opening

    def _current(self) -> Running:
        with self._transaction():
            return self._running

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Read what others appended, allow appending, commit; then report to the witness, before anything leaves."""
        with self._lock:
            seen = self._running
            try:
                with self._store.exclusive() as connection:
                    seen = self._running = verification.to_the_end(self._store, connection, seen)
                    self._check_witnessed(connection)
                    yield connection
            except BaseException:
                self._running = seen  # what was appended may not have been committed
                raise
            if self._witness is not None and not self._restoring:
                self._witness.write(self.opening, self._running.sighting)

    def _check_witnessed(self, connection: Connection) -> None:
        if self._witness is not None and not self._restoring:
            verification.check_witnessed(self._store, connection, self._running, self._witness)

    def _append(self, connection: Connection, kind: Kind, request: str, content: dict[str, Any]) -> Entry:
        """Write an entry, and with it the checkpoint that is due before it: both or none of them."""
        entries = self._running.followed_by(kind, request, content)
        for entry in entries:
            self._store.append(connection, entry)
            self._running = self._running.after(entry)
        return entries[-1]

    def _request(self, connection: Connection, request: str) -> dict[Kind, Entry]:
        return verification.request_entries(self._store, connection, request)

    def entries(self) -> tuple[Entry, ...]:
        """Return every entry, verified from the first to the last."""
        return tuple(self._verified())

    def verify(self) -> None:
        """Raise unless every entry, from the first to the last, is as it was written.

        Needs little memory, and others may use the ledger meanwhile.

        Raises:
            LedgerError: If an entry was changed, removed or inserted, or a checkpoint differs from the running total
                of the entries before it.
        """
        deque(self._verified(), maxlen=0)

    def _verified(self) -> Iterator[Entry]:
        running = self._blank()
        while True:
            with self._transaction() as connection:  # what this process has seen before is part of what is verified
                running, entries = verification.read_on(self._store, connection, running)
                if not entries:
                    verification.check_count(self._store, connection)
                    return
            yield from entries

    def _put_back(self, store: Store, content: dict[str, Any], entries: Sequence[Entry]) -> None:
        """Write a restore entry after this chain, in one transaction with a copy of it where the store is another."""
        with self._lock, store.exclusive() as connection:
            if entries:
                if store.exists(connection):
                    raise refusals.there_already(store)
                store.create(connection)
            elif verification.to_the_end(store, connection, self._running) != self._running:
                raise refusals.in_use(store)
            following = self._running.followed_by("restore", str(self._running.sighting.number + 1), content)
            for entry in (*entries, *following):
                store.append(connection, entry)
        if self._witness is not None:
            self._witness.write(self.opening, Sighting(following[-1].number, following[-1].digest), anew=True)
