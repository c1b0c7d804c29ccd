"""Which sites a coordinator asks, and whose signatures it believes: a file that the coordinator owns."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tomli_w

from dpcausal.errors import SchemaError, StudyError
from dpcausal.federation.signatures import is_name, is_public_key
from dpcausal.validation import build


@dataclass(frozen=True)
class Member:
    """One site of a roster.

    Attributes:
        key: Its public key, received by a way that can be trusted.
        units: The number of units that it is known to have; left out where that is not known beforehand.
        revoked: Whether it is out: it is not asked, and nothing that it signed counts any more.
    """

    key: str
    units: int | None = None
    revoked: bool = False

    def __post_init__(self) -> None:
        units = self.units is None or (type(self.units) is int and self.units >= 2)
        if not is_public_key(self.key) or not units or not isinstance(self.revoked, bool):
            raise StudyError(
                expected="key: 64 hexadecimal digits; units: a number of at least 2, or none; revoked: true or false",
                got=f"key={self.key!r}, units={self.units!r}, revoked={self.revoked!r}"[:200],
                hint="the site's public key is what dpcausal site init printed there.",
            )


@dataclass(frozen=True)
class Roster:
    """The sites that a coordinator asks, by name.

    Attributes:
        sites: Each site's key, and what else is known of it.

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
                hint="take each name from the site's policy.",
            )
        keys = [member.key for member in self.sites.values()]
        if len(set(keys)) != len(keys):
            raise StudyError(
                expected="a key of its own for each site",
                got="one key twice",
                hint="a site signs with its own key only: ask both for theirs again.",
            )

    @property
    def keys(self) -> dict[str, str]:
        """The public keys of the sites that count."""
        return {site: member.key for site, member in self.sites.items() if not member.revoked}

    def to_toml(self) -> str:
        """The roster as a TOML document."""
        return tomli_w.dumps({"sites": {site: _plain(member) for site, member in self.sites.items()}})

    @classmethod
    def from_toml(cls, document: str | Path) -> Self:
        """A roster from TOML text, or from the file at a `Path`.

        Raises:
            StudyError: If it describes none.
        """
        try:
            text = document.read_text(encoding="utf-8") if isinstance(document, Path) else document
            sites = tomllib.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise StudyError(
                expected="a roster as a TOML document, or the Path of one",
                got=f"{document if isinstance(document, Path) else 'a text'} ({type(error).__name__})",
                hint="make one with: dpcausal federation init FOLDER NAME.",
            ) from None
        named = sites.get("sites", {})
        if set(sites) - {"sites"} or not isinstance(named, Mapping):
            raise StudyError(expected="a roster of sites and nothing else", got=", ".join(sites), hint=_HINT)
        try:
            return cls({site: build(f"site {site}", Member, member) for site, member in named.items()})
        except SchemaError as error:
            raise StudyError(expected=error.expected, got=error.got, hint=_HINT) from None


_HINT = "in the roster each site has a table: [sites.north], and below it key = …"


def _plain(member: Member) -> dict[str, Any]:
    units = {} if member.units is None else {"units": member.units}
    return {"key": member.key, **units, **({"revoked": True} if member.revoked else {})}
