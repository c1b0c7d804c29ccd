"""A secure sum of sites in one process, step by step."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpcausal.federation.secure.coordinator import open_sum
from dpcausal.federation.secure.session import SiteSession

STUDY = "5a" * 32
"""The digest of a study."""


def site_names(count: int) -> list[str]:
    """Return the names of sites, in order."""
    return [f"site{index:02}" for index in range(count)]


def received_by(name: str, shares: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the ciphertexts for one site, by sender."""
    made = {sender: body.get("ciphertexts", {}) for sender, body in shares.items()}
    return {sender: each[name] for sender, each in made.items() if name in each}


def masked_by(session: SiteSession, shares: Mapping[str, Mapping[str, Any]], count: int) -> list[int]:
    """Return a site's mask from the `shares` bodies of the members, as a coordinator divides them."""
    return session.mask(shares, count, received_by(session.name, shares))


class SecureSum:
    """The sites of one study and all that they answered.

    Attributes:
        threshold: The smallest number of sites in a sum.
        sessions: Each site's session.
        keys: Each site's `keys` body.
        shares: The `shares` bodies so far.
        confirmed: The `confirm` bodies so far.
    """

    def __init__(self, sites: int, threshold: int, study: str = STUDY) -> None:
        names = site_names(sites)
        self.threshold = threshold
        self.sessions = {name: SiteSession.new(study, name, names, threshold) for name in names}
        self.keys = {name: session.keys() for name, session in self.sessions.items()}
        self.shares: dict[str, dict[str, Any]] = {}
        self.confirmed: dict[str, dict[str, Any]] = {}

    @property
    def names(self) -> list[str]:
        """The names of all sites."""
        return list(self.sessions)

    def share(self, names: Iterable[str] | None = None, *, named: bool = True) -> None:
        """Let sites share their secrets among each other."""
        among = self.names if names is None else list(names)
        keys = {name: self.keys[name] for name in among}
        self.shares |= {name: self.sessions[name].shares(keys, named=named) for name in among}

    def mask(self, numbers: Mapping[str, Sequence[int]], members: Iterable[str] | None = None) -> dict[str, list[int]]:
        """Return the numbers of some sites, masked among the members: by default all that shared."""
        shares = {name: self.shares[name] for name in (self.shares if members is None else members)}
        return {
            name: [
                (number + mask) % 2**64
                for number, mask in zip(own, masked_by(self.sessions[name], shares, len(own)), strict=True)
            ]
            for name, own in numbers.items()
        }

    def headers(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return what goes with the masked numbers of sites."""
        return {name: {"members_digest": self.sessions[name].members_digest} for name in names}

    def confirm(self, summed: Sequence[str], by: Iterable[str] | None = None) -> None:
        """Let sites confirm a sum: by default all that are in it."""
        headers = self.headers(summed)
        self.confirmed |= {name: self.sessions[name].confirm(headers) for name in (summed if by is None else by)}

    def unmask(self, by: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the shares that sites reveal when all confirmations so far are shown to them."""
        return {name: self.sessions[name].unmask(self.confirmed) for name in by}

    def open(self, masked: Mapping[str, Sequence[int]], unmasked: Mapping[str, Mapping[str, Any]]) -> list[int]:
        """Open the sum as a coordinator does."""
        return open_sum(masked, self.keys, unmasked, self.threshold)
