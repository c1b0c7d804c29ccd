"""Witnesses: a second place that records the length of a ledger, so that truncation or an older copy is detected.

A witness records the number and digest of the last entry after each commit and before anything leaves. It only grows:
the account that writes it needs the right to read and to add, and none to change or to remove.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, func, insert, inspect, select

from dpcausal.errors import LedgerError, redact_errors
from dpcausal.ledger.database import Database
from dpcausal.utils.durable_files import locked

SIGHTINGS = Table(
    "dpcausal_witness",
    MetaData(),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("opening", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
)
_LINE = re.compile(rb"([0-9a-f]{64}) ([0-9]+) ([0-9a-f]{64})\n")
_TAIL = 2**16


@dataclass(frozen=True)
class Sighting:
    """The last entry that a witness recorded."""

    number: int
    digest: str


def open_witness(place: str) -> "Witness":
    """Return the witness at a place: a text file whose name ends in .log, or a database by its address."""
    if "://" not in place and place.endswith(".log"):
        return LogWitness(Path(place))
    witness = DatabaseWitness(place)
    if witness.forgets:
        raise LedgerError(
            expected="a witness that outlives this process",
            got="one in memory",
            hint="name a file that ends in .log, an SQLite file or a PostgreSQL database, on another disk or server.",
        )
    return witness


class LogWitness:
    """A text file to which one line is added for each sighting: opening, number and digest."""

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self.address = str(self._file)

    def last(self, opening: str, up_to: int | None = None) -> Sighting | None:
        """Return the newest line about a ledger; a line that a power cut left half never counted."""
        if not self._file.is_file():
            return None
        with self._locked() as descriptor:
            return self._last(descriptor, opening, up_to)

    def since(self, opening: str, number: int) -> list[Sighting]:
        """Return the lines about a ledger after the last one of entries up to a number, in order."""
        if not self._file.is_file():
            return []
        with self._locked() as descriptor:
            lines = _LINE.findall(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
        found = [Sighting(int(seen), digest.decode()) for ledger, seen, digest in lines if ledger == opening.encode()]
        return _after(found, number)

    def write(self, opening: str, seen: Sighting, *, anew: bool = False) -> None:
        """Add a line unless a later one is there, and wait until it is on the disk; `anew` after a restore."""
        with self._locked() as descriptor:
            if not anew and _is_known(seen, self._last(descriptor, opening, None)):
                return
            size = os.fstat(descriptor).st_size
            half = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            line = b"\n" * half + f"{opening} {seen.number} {seen.digest}\n".encode()
            if os.write(descriptor, line) < len(line):
                raise OSError("the disk is full")
            os.fsync(descriptor)

    @staticmethod
    def _last(descriptor: int, opening: str, up_to: int | None) -> Sighting | None:
        size = os.fstat(descriptor).st_size
        for start in (max(0, size - _TAIL), 0):  # nearly always the end is enough
            text = os.pread(descriptor, size - start, start)
            for ledger, number, digest in reversed(_LINE.findall(text)):
                if ledger == opening.encode() and (up_to is None or int(number) <= up_to):
                    return Sighting(int(number), digest.decode())
        return None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        unusable = redact_errors(OSError, instead=lambda error: _unusable(self.address, error))
        with unusable, locked(self._file) as descriptor:
            yield descriptor


class DatabaseWitness(Database):
    """A table in an SQLite file or a PostgreSQL database to which one line is added for each sighting."""

    lock = 0x64706377  # another than a ledger's, during whose transactions a witness is read

    def last(self, opening: str, up_to: int | None = None) -> Sighting | None:
        """Return the newest line about a ledger."""
        if self.is_absent:
            return None
        with self.exclusive() as connection:
            return self._last(connection, opening, up_to)

    def since(self, opening: str, number: int) -> list[Sighting]:
        """Return the lines about a ledger after the last one of entries up to a number, in order."""
        if self.is_absent:
            return []
        with self.exclusive() as connection:
            if not inspect(connection).has_table(SIGHTINGS.name):
                return []
            chosen = select(SIGHTINGS.c.number, SIGHTINGS.c.digest).where(SIGHTINGS.c.opening == opening)
            lines = connection.execute(chosen.order_by(SIGHTINGS.c.place)).all()
        return _after([Sighting(*line) for line in lines], number)

    def write(self, opening: str, seen: Sighting, *, anew: bool = False) -> None:
        """Add a line unless a later one is there, and wait until it is on the disk; `anew` after a restore."""
        with self.exclusive() as connection:
            SIGHTINGS.create(connection, checkfirst=True)
            if anew or not _is_known(seen, self._last(connection, opening, None)):
                place = connection.execute(select(func.coalesce(func.max(SIGHTINGS.c.place), -1))).scalar_one() + 1
                connection.execute(insert(SIGHTINGS).values(place=place, opening=opening, **vars(seen)))

    @staticmethod
    def _last(connection: Connection, opening: str, up_to: int | None) -> Sighting | None:
        if not inspect(connection).has_table(SIGHTINGS.name):
            return None
        chosen = select(SIGHTINGS.c.number, SIGHTINGS.c.digest).where(SIGHTINGS.c.opening == opening)
        if up_to is not None:
            chosen = chosen.where(SIGHTINGS.c.number <= up_to)
        found = connection.execute(chosen.order_by(SIGHTINGS.c.place.desc()).limit(1)).first()
        return Sighting(*found) if found else None


Witness = LogWitness | DatabaseWitness
"""A record of the lengths of ledgers, each identified by the digest of its opening entry."""


def _after(found: list[Sighting], number: int) -> list[Sighting]:
    shared = [place for place, seen in enumerate(found) if seen.number <= number]
    return found[shared[-1] + 1 :] if shared else found


def _is_known(seen: Sighting, last: Sighting | None) -> bool:
    return last is not None and last.number >= seen.number


def _unusable(address: str, error: Exception) -> LedgerError:
    return LedgerError(
        expected=f"a witness that can be read and added to at {address}",
        got=type(error).__name__,
        hint="check that the place exists, is writable and not full; nothing was released.",
    )
