"""The terms of a secure sum: which sites take part, and how many of them must be honest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from dpcausal.errors import StudyError
from dpcausal.utils.validation import is_name, is_public_key


@dataclass(frozen=True)
class SecureSettings:
    """The terms under which the sums of several sites are opened. They are part of the study that people approve.

    Two different sets of sites can never both be opened: each needs `honest` honest sites that confirm it, a site
    confirms one set only, and 2 honest + colluding exceeds the number of sites.

    Attributes:
        sites: The public signing key of each site that takes part, by name.
        honest: The number of honest sites whose shares of the noise add up to the whole noise.
        colluding: The number of sites that may collude with the coordinator.

    Example:
        >>> terms = SecureSettings({name: digit * 64 for name, digit in (("a", "1"), ("b", "2"), ("c", "3"))}, 2, 0)
        >>> terms.threshold, terms.silent, terms.exposing
        (2, 1, 1)
    """

    sites: Mapping[str, str]
    honest: int
    colluding: int

    def __post_init__(self) -> None:
        named = isinstance(self.sites, Mapping) and all(
            is_name(site) and is_public_key(key) for site, key in self.sites.items()
        )
        if not named or len(set(self.sites.values())) != len(self.sites):
            raise StudyError(
                problem="[sites] needs, for each site that takes part, its name and its own public key of 64 digits, "
                f"not {repr(self.sites)[:100]}",
                hint="dpcausal federation sites FOLDER prints this table from the roster.",
            )
        sizes = type(self.honest) is int and type(self.colluding) is int
        if not sizes or not self._hold:
            raise StudyError(
                expected=f"in [secure], with {len(self.sites)} sites: 2 <= honest, 0 <= colluding, honest + colluding "
                f"<= {len(self.sites)} and 2 honest + colluding > {len(self.sites)}",
                got=f"honest {self.honest!r}, colluding {self.colluding!r}"[:100],
                hint=f"for instance honest = {max(2, -(-2 * len(self.sites) // 3))} and colluding = "
                f"{1 if len(self.sites) > 2 else 0}. With fewer "
                "honest sites, two different sets of sites could be opened, and their difference shows one site.",
            )

    @property
    def _hold(self) -> bool:
        count = len(self.sites)
        return (
            self.honest >= 2
            and self.colluding >= 0
            and self.threshold <= count
            and 2 * self.honest + self.colluding > count
        )

    @property
    def threshold(self) -> int:
        """The smallest number of sites whose sum is opened."""
        return self.honest + self.colluding

    @property
    def silent(self) -> int:
        """The number of sites that may fall silent."""
        return len(self.sites) - self.threshold

    @property
    def exposing(self) -> int:
        """The number of colluding sites with which a lying coordinator can open every single site's numbers.

        They confirm two different sums, each with half of the other sites. It always exceeds `colluding`.
        """
        return 2 * self.threshold - len(self.sites)


def secure_settings(aggregation: object, secure: object, sites: object) -> SecureSettings | None:
    """Return the terms in a study's options; None where sums are plain."""
    if aggregation not in ("plain", "secure"):
        raise StudyError(
            expected="aggregation: plain or secure", got=repr(aggregation)[:100], hint='or leave it out: "plain".'
        )
    if aggregation == "plain":
        if secure or sites:
            raise StudyError(
                expected='aggregation = "secure" with the tables [secure] and [sites]',
                got="[secure] or [sites] without it",
                hint='write aggregation = "secure", or leave both tables out.',
            )
        return None
    if not isinstance(secure, Mapping) or set(secure) != {"honest", "colluding"}:
        raise StudyError(
            expected="a table [secure] with honest and colluding",
            got=repr(secure)[:100],
            hint="honest is the number of honest sites whose noise is enough, for instance two thirds of all sites; "
            "colluding is 1 or more where sites read the result.",
        )
    return SecureSettings(cast("Mapping[str, str]", sites), **secure)
