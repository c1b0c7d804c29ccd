"""The settings of a console: `console.toml` in the folder that it shows."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from dpcausal.errors import DpcausalError, StudyError
from dpcausal.federation.site.people import ROLES, Role
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import build, check_format, check_keys, is_loopback, is_number

FILE = "console.toml"
KEY = "console.key"
"""The key that signs the decisions of people who logged in."""
VERSION = 1
_HINT = f"correct {FILE}."
_OTHERS = ("provider", "notify")
"""Tables that are read apart from the rest; `notify` is read where notices are sent."""


@dataclass(frozen=True)
class Provider:
    """An OpenID Connect provider.

    Attributes:
        client_id: The name under which it knows this console.
        scope: What the console asks it to tell of a person.
        roles: For roles that a login has by its claims only: the claims, each with the value that it must be or list.
    """

    issuer: str
    client_id: str
    client_secret: str
    scope: str = "openid"
    roles: Mapping[Role, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_address("issuer", self.issuer)
        if not all(isinstance(text, str) and text for text in (self.client_id, self.client_secret)):
            raise StudyError(expected="texts for client_id and client_secret", got="none", hint=_HINT)
        if not isinstance(self.scope, str) or "openid" not in self.scope.split():
            raise StudyError(problem=f"scope must name openid, and is {self.scope!r}"[:200], hint=_HINT)
        rules = self.roles.items() if isinstance(self.roles, Mapping) else [("", {})]
        for role, claims in rules:
            texts = [*claims, *claims.values()] if isinstance(claims, Mapping) else []
            if role not in ROLES or not texts or not all(isinstance(text, str) and text for text in texts):
                raise StudyError(
                    problem=f"[provider.roles] must give each of {', '.join(ROLES)} claims with one text each",
                    hint='for instance: approver = { groups = "dpcausal-approvers" }.',
                )

    def granted(self, claims: Mapping[str, object]) -> dict[Role, str]:
        """Return the roles of [provider.roles] whose claims a login has, each with these claims in words.

        Example:
            >>> provider = Provider("https://login.example", "console", "?", roles={"reader": {"groups": "staff"}})
            >>> provider.granted({"groups": ["staff", "night"]}), provider.granted({"groups": "staffing"})
            ({'reader': 'groups: staff'}, {})
        """
        return {
            role: ", ".join(f"{name}: {value}" for name, value in wanted.items())
            for role, wanted in self.roles.items()
            if all(_has(claims.get(name), value) for name, value in wanted.items())
        }

    @property
    def origin(self) -> str:
        """The origin to which a login is sent."""
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How people reach a console and log in.

    Attributes:
        address: Its address, as people type it. Only https, unless it is on this machine.
        provider: The OpenID Connect provider; None for local accounts.
        idle_minutes: A session ends after so many minutes without a page.
        absolute_hours: A session ends after so many hours in any case.
    """

    address: str
    provider: Provider | None = None
    idle_minutes: float = 15.0
    absolute_hours: float = 8.0

    def __post_init__(self) -> None:
        _check_address("address", self.address)
        if not (is_number(self.idle_minutes) and 0 < self.idle_minutes <= 24 * 60):
            raise StudyError(problem=f"idle_minutes must be between 0 and a day, not {self.idle_minutes!r}", hint=_HINT)
        if not (is_number(self.absolute_hours) and 0 < self.absolute_hours <= 24):
            raise StudyError(
                problem=f"absolute_hours must be between 0 and 24, not {self.absolute_hours!r}", hint=_HINT
            )

    @property
    def host(self) -> str:
        """The only host name that requests may name."""
        return urlsplit(self.address).hostname or ""

    @property
    def secure(self) -> bool:
        """Whether people reach the console by TLS."""
        return self.address.startswith("https://")

    @property
    def cookie(self) -> str:
        """The name of the cookie of sessions: another one for each console, also on the same host."""
        return f"{'__Host-' if self.secure else ''}dpcausal-{digest_of_text(self.address)[:12]}"

    @classmethod
    def read(cls, folder: Path, listen: str) -> Self:
        """Read the settings in a folder; without a file, local accounts at the address that the console listens on."""
        file = folder / FILE
        if not file.exists():
            return cls(address=f"http://{listen}")
        try:
            document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
            others = file.stat().st_mode & 0o077
        except (OSError, ValueError) as error:
            raise StudyError(problem=f"{FILE} cannot be read: {file} ({type(error).__name__})", hint=_HINT) from None
        if others and "provider" in document:
            raise StudyError(
                problem=f"{FILE} holds the client's secret, and others than its owner can read it: its mode is "
                f"{file.stat().st_mode & 0o777:o}",
                hint=f"run: chmod 600 {file}.",
            )
        check_format(FILE, document, VERSION, {})
        del document["version"]
        try:
            check_keys(FILE, document, (), ("address", "provider", "idle_minutes", "absolute_hours", "notify"))
            given = document.get("provider")
            provider = build("[provider]", Provider, given) if isinstance(given, Mapping) else None
        except DpcausalError as error:
            raise StudyError(problem=error.problem, hint=_HINT) from None
        settings = cls(
            **{"address": f"http://{listen}"} | {name: document[name] for name in document if name not in _OTHERS}
        )
        return replace(settings, provider=provider)


def _has(claim: object, value: str) -> bool:
    """Return whether a claim is this text, or lists it."""
    return claim == value or (isinstance(claim, list) and value in claim)


def _check_address(what: str, address: object) -> None:
    """Raise unless this is an https address, or an http address on this machine."""
    try:
        parts = urlsplit(address) if isinstance(address, str) else urlsplit("")
        usable = bool(parts.hostname) and not parts.query and not parts.fragment and "@" not in parts.netloc
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        usable, host, parts = False, "", urlsplit("")
    if not usable or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise StudyError(
            problem=f"{what} must be an address with https, or with http on this machine, not {address!r}"[:300],
            hint="for instance https://console.hospital.example; put a proxy with TLS before the console.",
        )
