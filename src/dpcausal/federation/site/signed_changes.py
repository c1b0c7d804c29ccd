"""Signed changes of a site: who changed its people, keys and settings, as the person's own key vouches for it.

The audit log says what changed. A signature adds that a person whose key the site knew at that time wanted exactly
this, there in the log: whoever can run commands as the site's user, but has nobody's key, cannot make or repeat one.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from dpcausal.errors import StudyError, TransportError
from dpcausal.federation.protocol.signatures import Key, claimed_body, opened
from dpcausal.federation.site.log_entry import CHANGES, LogEntry
from dpcausal.federation.site.people import People, identity, normalised

_FORMAT = "change 1"
_ADDED = re.compile(r"added as ([a-z, ]+), with key ([0-9a-f]{64})\b")
_SIGNING = {"approver", "operator"}


@dataclass(frozen=True)
class Signer:
    """A person who signs changes of one site.

    Attributes:
        requires: Whether the site's policy requires that later changes are signed.
    """

    site: str
    name: str
    key: Key
    requires: bool = False

    @classmethod
    def of(cls, site: str, people: People, key: Key, log: Iterable[LogEntry]) -> "Signer":
        """Return the person of a site who has a key.

        Args:
            log: The audit log: a key that only the file of people has may have been written there by hand.

        Raises:
            StudyError: If no approver or operator has it, or the audit log does not know that.
        """
        person = people.with_key(key.public)
        if person is None or key.public not in known_keys(log):
            raise StudyError(
                problem="This is not the key of an approver or operator whom the audit log of the site knows",
                hint="sign with the key of such a person; list them with: dpcausal site people list FOLDER.",
            )
        return cls(site, person.name, key)

    def sign(self, *, kind: str, who: str, what: str, at: str, previous: str) -> str:
        """Return a change, signed, as the audit log holds it after the line with the digest `previous`."""
        place = {"site": self.site, "previous": previous, "by": self.name, "requires": self.requires}
        change = {"format": _FORMAT, "kind": kind, "who": who, "what": what, "at": at}
        return Key(self.name, self.key.private).seal(json.dumps(change | place, sort_keys=True))


@dataclass(frozen=True)
class VerifiedChange:
    """A change in the audit log.

    Attributes:
        by: Who signed it; empty where nobody did.
        problem: Why the signature does not count; empty where it does, or where there is none.
    """

    entry: LogEntry
    by: str = ""
    problem: str = ""

    @property
    def words(self) -> str:
        """Who signed it, in words."""
        return self.problem or (f"signed by {self.by}" if self.by else "not signed")


def known_keys(log: Iterable[LogEntry]) -> dict[str, str]:
    """Return which approver or operator has which key, by the key, as the audit log says who was added and removed."""
    return reduce(_keys_after, log, {})


def _keys_after(keys: dict[str, str], entry: LogEntry) -> dict[str, str]:
    owner, added = identity(entry.who), _ADDED.match(entry.what)
    if entry.kind == "people" and entry.what.startswith("removed"):
        return {key: name for key, name in keys.items() if name != owner}
    signs = entry.kind == "people" and added and _SIGNING & {*added[1].split(", ")}
    return keys | {added[2]: owner} if signs and added else keys


def are_required(log: Iterable[LogEntry]) -> bool:
    """Return whether the last signed change in an audit log says that later ones must be signed."""
    signed = [entry.sealed for entry in log if entry.sealed and not entry.is_decision]
    return bool(signed) and bool(json.loads(claimed_body(signed[-1]))["requires"])


def verified_changes(log: Iterable[LogEntry], site: str) -> Iterator[VerifiedChange]:
    """Yield the changes in an audit log, each signature verified with the keys that the site knew before it."""
    keys = dict[str, str]()
    for entry in log:
        if entry.kind in CHANGES and entry.kind != "index":
            yield _verified(entry, site, keys)
            keys = _keys_after(keys, entry)


def _verified(entry: LogEntry, site: str, keys: dict[str, str]) -> VerifiedChange:
    if not entry.sealed:
        return VerifiedChange(entry)
    try:
        claimed = json.loads(claimed_body(entry.sealed))
        by = claimed["by"]
        own = [key for key, name in keys.items() if name == identity(by)]
        opened(entry.sealed, {by: own[0]})
    except (TransportError, ValueError, LookupError, TypeError):
        return VerifiedChange(entry, problem="signed with a key that the site did not know then")
    said = {"format": _FORMAT, "site": site, "kind": entry.kind, "who": entry.who, "what": entry.what, "at": entry.at}
    said |= {"previous": entry.previous, "by": normalised(by)}
    if claimed != said | {"requires": claimed.get("requires")}:
        return VerifiedChange(entry, problem="signed for another change")
    return VerifiedChange(entry, by)
