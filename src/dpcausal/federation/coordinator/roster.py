"""The roster: the sites that a coordinator asks, and their public keys. The coordinator owns this file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import tomli_w

from dpcausal.errors import SchemaError, StudyError
from dpcausal.utils.validation import build, is_name, is_public_key


@dataclass(frozen=True)
class Member:
    """One site of a roster.

    Attributes:
        key: Its public key, received over a trusted channel.
        units: Its number of units, where that was agreed on beforehand.
        revoked: Whether the site is excluded: it is not asked, and nothing that it signed counts.
        former: Its keys before, each with the time at which it was replaced here. What they signed counts only if it
            was received before that.
    """

    key: str
    units: int | None = None
    revoked: bool = False
    former: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        units = self.units is None or (type(self.units) is int and self.units >= 2)
        former = isinstance(self.former, Mapping) and all(
            is_public_key(key) and isinstance(until, str) for key, until in self.former.items()
        )
        if not is_public_key(self.key) or not units or not isinstance(self.revoked, bool) or not former:
            raise StudyError(
                expected="key: 64 hexadecimal digits; units: a number of at least 2, or none; revoked: true or false",
                got=f"key={self.key!r}, units={self.units!r}, revoked={self.revoked!r}"[:200],
                hint="dpcausal site key prints the public key at the site.",
            )


@dataclass(frozen=True)
class Roster:
    """The sites that a coordinator asks, by name.

    Attributes:
        sites: Each site's public key, number of units, and whether it is revoked.

    Example:
        >>> roster = Roster({"north": Member("ab" * 32, units=1200), "south": Member("cd" * 32, revoked=True)})
        >>> Roster.from_toml(roster.to_toml()) == roster
        True
        >>> list(roster.keys)
        ['north']
    """

    sites: Mapping[str, Member]

    def __post_init__(self) -> None:
        if wrong := [site for site in self.sites if not is_name(site)]:
            raise StudyError(
                expected="names of sites made of letters, digits, - and _",
                got=", ".join(map(repr, wrong)),
                hint="use the name in the site's policy.",
            )
        keys = [key for member in self.sites.values() for key in (member.key, *member.former)]
        if len(set(keys)) != len(keys):
            raise StudyError(
                problem="Two sites have the same key",
                hint="ask both sites for their public keys again: dpcausal site key.",
            )

    @property
    def keys(self) -> dict[str, str]:
        """The public keys of the sites that are not revoked."""
        return {site: member.key for site, member in self.sites.items() if not member.revoked}

    def keys_at(self, at: str) -> list[dict[str, str]]:
        """Return what each site that is not revoked may have signed with when a message was received: newest first."""
        found = [self.keys]
        for site in self.keys:
            found += [{site: key} for key, until in self.sites[site].former.items() if at <= until]
        return found

    def to_toml(self) -> str:
        """Return the roster as a TOML document."""
        return tomli_w.dumps({"sites": {site: _plain(member) for site, member in self.sites.items()}})

    @classmethod
    def from_toml(cls, document: str | Path) -> Self:
        """Read a roster from TOML text, or from the file at a `Path`.

        Raises:
            StudyError: If the document is not a roster.
        """
        try:
            text = document.read_text(encoding="utf-8") if isinstance(document, Path) else document
            sites = tomllib.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise StudyError(
                problem=f"{document if isinstance(document, Path) else 'The text'} cannot be read as a roster in TOML "
                f"({type(error).__name__})",
                hint="create one with: dpcausal federation init FOLDER NAME.",
            ) from None
        named = sites.get("sites", {})
        if set(sites) - {"sites"} or not isinstance(named, Mapping):
            raise StudyError(expected="a roster that holds only the table [sites]", got=", ".join(sites), hint=_HINT)
        try:
            return cls({site: build(f"site {site}", Member, member) for site, member in named.items()})
        except SchemaError as error:
            raise StudyError(problem=error.problem, hint=_HINT) from None


_HINT = "each site needs a table such as [sites.north] with a line key = …"


def _plain(member: Member) -> dict[str, Any]:
    units = {} if member.units is None else {"units": member.units}
    revoked = {"revoked": True} if member.revoked else {}
    return {"key": member.key, **units, **revoked, **({"former": dict(member.former)} if member.former else {})}
