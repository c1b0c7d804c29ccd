"""Hash chains: append-only entries, each of which holds the digest of the entry before it."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Self, TypeVar


def digest_of_text(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(*parts: object) -> str:
    """Return the SHA-256 of plain values; the order of a mapping's keys does not matter."""
    return digest_of_text(json.dumps(parts, sort_keys=True, allow_nan=False))


@dataclass(frozen=True, kw_only=True)
class ChainEntry:
    """An entry of a hash chain. Subclasses add the fields that hold its content, all of them plain values.

    Attributes:
        previous: The digest of the entry before; empty in the first entry.
        digest: The digest of all other fields.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Note(ChainEntry):
        ...     text: str
        >>> first = Note.append(None, text="opened")
        >>> second = Note.append(first, text="closed")
        >>> second.follows(first), first.follows(second)
        (True, False)
    """

    previous: str
    digest: str

    @classmethod
    def append(cls, last: Self | None, **content: Any) -> Self:  # noqa: ANN401 (plain values)
        """Return the entry with this content that follows `last`; the first entry follows None."""
        linked = content | {"previous": last.digest if last else ""}
        return cls(**linked, digest=digest_of(linked))

    @property
    def is_intact(self) -> bool:
        """Whether the digest is that of all other fields."""
        return self.digest == digest_of({name: value for name, value in vars(self).items() if name != "digest"})

    def follows(self, last: Self | None) -> bool:
        """Whether this entry is intact and stands right after `last`; the first entry follows None."""
        return self.previous == (last.digest if last else "") and self.is_intact


Entry = TypeVar("Entry", bound=ChainEntry)


def dated_back(days: Iterable[str]) -> tuple[int, ...]:
    """Return the places of entries that are dated before an entry that was written before them.

    One day is tolerated: a clock that is adjusted by minutes may go back over midnight. After an entry that is dated
    back, the days are counted from there, so that a clock that was ahead once is named once.

    Args:
        days: The day of each entry, in order, as the first ten characters of an ISO date; what is no day is named too.

    Example:
        >>> dated_back(["2026-05-03", "2026-05-02", "2026-05-01", "2026-05-01", "2026-05-04"])
        (2,)
    """
    found, latest = [], date.min
    for place, text in enumerate(days):
        try:
            day = date.fromisoformat(text[:10])
        except ValueError:
            found.append(place)
            continue
        if latest.toordinal() - day.toordinal() > 1:
            found.append(place)
            latest = day
        latest = max(latest, day)
    return tuple(found)


def verify(
    entries: Iterable[Entry], broken: Callable[[int], Exception], *, last: Entry | None = None
) -> Iterator[Entry]:
    """Yield the entries of a chain, each after it was verified.

    Args:
        broken: Makes the exception to raise at the first entry that was changed, removed or inserted, from its place
            among `entries`, counted from 0.
        last: The entry before the first of them, which is trusted; None where they begin the chain.
    """
    for place, entry in enumerate(entries):
        if not entry.follows(last):
            raise broken(place)
        yield entry
        last = entry
