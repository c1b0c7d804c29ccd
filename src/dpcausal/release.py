"""Releases, and the receipts that show they were paid for."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcausal import queries
from dpcausal.errors import QueryError
from dpcausal.guarantee import Event, Guarantee, Rule, exact
from dpcausal.queries import CovariateCounts, MissingCovariates, Query
from dpcausal.queries.calibration import Asked, Noise
from dpcausal.schema.schema import Schema
from dpcausal.uncertainty.derivatives import Numbers, slopes
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array
from dpcausal.utils.hash_chain import digest_of
from dpcausal.utils.validation import did_you_mean

ValueOf = Callable[[str], Numbers]
"""What returns the released number of a name: itself, or where a formula is differentiated, a complex one."""

Formula = Callable[[ValueOf], Numbers]
"""From released numbers to estimates; see `derivatives`."""


@dataclass(frozen=True)
class Receipt:
    """A query, its price, and the ledger entry of its debit.

    A rehearsal writes receipts too, without a digest, because nothing was spent. A joint receipt of several sites has
    the digest of all their receipts.

    Attributes:
        query: The name of the query; of several that were paid for together, all names.
        epsilon: Its epsilon, or that of all of them.
        delta: Its delta.
        entry: The number of the debit in the ledger.
        digest: The digest of the debit.
        site: The site whose ledger it is, where there are several.
        on: The day of the debit. A stored answer has the day on which it was paid for.
        as_of: The version of the data.
        stored: Whether the answer was in the ledger already, so that the table was not read for it. Two receipts of one
            debit are equal all the same.
    """

    query: str
    epsilon: float
    delta: float
    entry: int | None = None
    digest: str | None = None
    site: str | None = None
    on: str | None = None
    as_of: str | None = None
    stored: bool = field(default=False, compare=False)

    @property
    def count(self) -> int:
        """The number of queries that the debit paid for."""
        return self.query.count(_AND) + 1


_SHOWN = 12
"""How many names an error lists."""

_AND = " + "
"""What stands between the names of queries that were paid for together."""


def joint_price(asked: Sequence[Asked]) -> Receipt:
    """Return a receipt, without a debit, for queries that are paid for together: their names and their total price.

    Example:
        >>> from dpcausal.queries import ArmMoments, CovariateSums
        >>> asked = [Asked(CovariateSums(["age"]), Guarantee(epsilon=0.1)), Asked(ArmMoments(), Guarantee(epsilon=0.2))]
        >>> print(format_receipt(joint_price(asked)))
        covariate_sums + arm_moments: epsilon 0.3, delta 0
    """
    epsilon, delta = (sum(exact(getattr(each.guarantee, part)) for each in asked) for part in ("epsilon", "delta"))
    return Receipt(_AND.join(each.query.name for each in asked), float(epsilon), float(delta))


def debits_of(
    asked: Sequence[Asked], schema: Schema, as_of: str | None, *, rule: Rule = "additive", session: str = ""
) -> dict[str, list[Event]]:
    """Return what a ledger debits for queries that it has not answered, by the request that it is debited for.

    What is asked twice is debited once, and so are all looks of a schedule.

    Args:
        session: For a secure sum, the digest of the study: its queries are debited together.
    """
    found: dict[str, list[Event]] = {}
    for each in asked:
        if session:
            found.setdefault(session_request(session), []).append(each.shared_noise(schema).event)
        else:
            bought = queries.payment(each.query, each.question(schema, as_of))
            found[digest_of(bought)] = [each.noise(schema, rule).event]
    return found


def receipts_in(document: Mapping[str, Any]) -> tuple[Receipt, ...]:
    """Return the receipts in an effect, a diagnosis, a release or a site's message, as plain values."""
    if document.get("answer"):
        if "masked" in document["answer"]:  # of a secure sum
            return (Receipt(**document["answer"]["receipt"]),)
        return tuple(receipt for release in document["answer"]["releases"] for receipt in receipts_in(release))
    found = document["receipts"] if "receipts" in document else [document["receipt"]]
    return tuple(Receipt(**receipt) for receipt in found)


def as_of(receipts: Sequence[Receipt]) -> str | None:
    """Return the version of the data behind receipts, or each site's where they differ; None without a name.

    Example:
        >>> as_of([Receipt("arm_moments", 1.0, 0.0, site="north", as_of="2026-06-30")])
        '2026-06-30'
    """
    versions = dict.fromkeys((receipt.as_of, receipt.site) for receipt in receipts if receipt.as_of)
    if len({version for version, _ in versions}) > 1:
        return ", ".join(f"{version} ({site})" for version, site in versions)
    return next((version for version, _ in versions), None)


_COUNTS = (CovariateCounts.name, MissingCovariates.name)


def stored_on(receipts: Sequence[Receipt]) -> str | None:
    """Return the days of answers that were in a ledger already; None where every answer was read from its table.

    Counts of covariates, which later estimators use again, are no result by themselves and do not matter here.

    Example:
        >>> stored_on([Receipt("arm_moments", 1.0, 0.0, on="2026-06-30", stored=True)])
        '2026-06-30'
    """
    results = [receipt for receipt in receipts if receipt.query not in _COUNTS] or receipts
    days = dict.fromkeys(receipt.on or "an earlier day" for receipt in results if receipt.stored)
    return ", ".join(days) if days else None


def units_of(
    n: int, receipts: Sequence[Receipt], outside: float = 0.0, *, noisy: bool = False, looks: bool = False
) -> list[tuple[str, str]]:
    """Return the number of units, the version of the data and whether answers were stored as lines of a table."""
    about, said = ("about ", " (noisy)") if noisy else ("", "")
    compared = f", of which {about}{n - outside:,.0f} are compared{said}" if outside else ""
    lines, version, days = [("units", f"{n:,}{compared}")], as_of(receipts), stored_on(receipts)
    lines += [("data as of", version)] if version else []
    again = "If the table changed since, open it as a new version (as_of), which is paid for again"
    again = "A look is never drawn again: what changed since counts at the next one" if looks else again
    return lines + ([("stored answer", f"made on {days}; the table was not read. {again}")] if days else [])


def format_receipt(receipt: Receipt) -> str:
    """Return a query and its price on one line."""
    site = f"{receipt.site}, " if receipt.site else ""
    price = f"{site}{receipt.query}: epsilon {receipt.epsilon:g}, delta {receipt.delta:g}"
    if receipt.digest is None:
        return price
    entry = "all sites" if receipt.entry is None else f"ledger entry {receipt.entry}"
    entry += f" of {receipt.on}" if receipt.on else ""
    return f"{price} ({entry}, {receipt.digest[:12]}{'; stored, and paid for before' if receipt.stored else ''})"


@dataclass(frozen=True)
class Noisy:
    """Integers that hold their noise. In the vault only `vault.noise.Sampler` makes them."""

    ticks: tuple[int, ...]


@dataclass(frozen=True)
class PublicValue:
    """A number that leaves without noise. Its query must have declared it."""

    name: str
    value: float
    because: str


@dataclass(frozen=True)
class Release:
    """A noisy answer: public, and the only thing that ever leaves a table.

    Attributes:
        query: What was asked.
        guarantee: What is promised about this answer.
        names: What each number is.
        values: The numbers, noise included, in the schema's own terms.
        family: The noise's family; it is independent in each coordinate.
        scales: The size of each number's noise: the scale of a Laplace, the standard deviation of a Gaussian; None
            where only the table knows it.
        public_values: Numbers without noise, made of columns that are public or of what was made noisy before.
        receipt: The debit that paid for it.
        parts: Of how many independent parts of one size the noise in each number is the sum: one for each site that
            added its own noise; of shares of noise, their variance over that of the whole noise.
        sites: The number of sites whose answers it is the sum of.
    """

    query: Query
    guarantee: Guarantee
    names: tuple[str, ...]
    values: tuple[float, ...]
    family: Literal["laplace", "gaussian"]
    scales: tuple[float | None, ...]
    public_values: Mapping[str, float]
    receipt: Receipt
    parts: float = 1
    sites: int = 1

    @classmethod
    def of(  # noqa: PLR0913 (all but three have names)
        cls,
        query: Query,
        guarantee: Guarantee,
        noise: Noise,
        *,
        noisy: Noisy,
        public_values: Sequence[PublicValue],
        receipt: Receipt,
    ) -> Self:
        """Return a release: noisy integers in the schema's own terms, and values that need no noise."""
        coordinates = noise.sensitivity.coordinates
        return cls(
            query=query,
            guarantee=guarantee,
            names=tuple([at.name for at in coordinates]),
            values=tuple([count * at.tick for count, at in zip(noisy.ticks, coordinates, strict=True)]),
            family=noise.family,
            scales=tuple(
                [
                    None if scale is None else scale * at.tick
                    for scale, at in zip(noise.scales, coordinates, strict=True)
                ]
            ),
            public_values={each.name: float(each.value) for each in public_values},
            receipt=receipt,
        )

    def value(self, name: str) -> float:
        """Return the noisy number of this name."""
        return self.values[self._place(name)]

    def scale(self, name: str) -> float:
        """Return the size of the noise in the number of this name."""
        scale = self.scales[self._place(name)]
        if scale is None:
            raise QueryError(
                expected="a number whose noise has a public size",
                got=name,
                hint="the size of this noise is private; the answer holds a noisy number about it.",
            )
        return scale

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise QueryError(
                problem=f"This release has no number named {name!r}"[:300],
                hint=f"{did_you_mean(name, self.names)}its numbers are {', '.join(self.names[:_SHOWN])}"
                + (", …" if len(self.names) > _SHOWN else "."),
            )
        return self.names.index(name)

    def variance(self, name: str) -> float:
        """Return the variance of the noise in the number of this name."""
        return (2.0 if self.family == "laplace" else 1.0) * self.scale(name) ** 2

    def noise_term(self, name: str, times: float) -> NoiseTerm:
        """Return the noise in a multiple of the number of this name."""
        return NoiseTerm(self.family, self.scale(name) * times, self.parts)

    def joint_noise(self, names: Sequence[str], slopes: Array) -> tuple[JointNoise, ...]:
        """Return the noise of several estimates, given their derivatives by the numbers of these names."""
        scales = slopes * [self.scale(name) for name in names]  # noise that moves all estimates alike is one part
        return tuple(
            JointNoise(self.family, tuple(scale * math.sqrt(count) for scale in each), self.parts * count)
            for each, count in Counter(map(tuple, scales.T.tolist())).items()
            if any(each)
        )

    def estimates(self, names: Sequence[str], formula: Formula, sampling: ArrayLike = 0.0) -> JointEstimate:
        """Return functions of the released numbers, with all noise in them to first order.

        Args:
            formula: It takes what returns the number of a name, as `value` does, and returns the estimates.
            sampling: The covariance of their sampling errors.
        """
        read: dict[str, float] = {}
        values = formula(lambda name: read.setdefault(name, self.value(name)))
        moved = slopes(lambda at: formula(dict(zip(read, at, strict=True)).__getitem__), list(read.values()))
        noise = self.joint_noise(tuple(read), moved)
        lines = tuple(map(tuple, np.broadcast_to(sampling, (len(names), len(names))).tolist()))
        return JointEstimate(tuple(names), tuple(map(float, values)), lines, noise)

    def part(self, query: Query, names: Sequence[str], own_names: Sequence[str]) -> Self:
        """Return the numbers of this release that answer another query, as that query's release.

        Args:
            query: The other query.
            names: The names of its numbers.
            own_names: The names of the same numbers here; empty for a number that is 0 of every table.
        """
        at = {name: (value, scale) for name, value, scale in zip(self.names, self.values, self.scales, strict=True)}
        found = [at[name] if name else (0.0, 0.0) for name in own_names]
        values, scales = zip(*found, strict=True)
        return replace(self, query=query, names=tuple(names), values=values, scales=scales)

    def from_ledger(self) -> Self:
        """Return this release as one that was stored before: its receipt says that the table was not read."""
        return replace(self, receipt=replace(self.receipt, stored=True))

    def of_sites(self, sites: int, parts: float) -> Self:
        """Return this release as the sum of the answers of so many sites, with so many parts of its noise."""
        root = math.sqrt(parts)
        scales = tuple(None if scale is None else scale * root for scale in self.scales) if parts != 1 else self.scales
        return replace(self, scales=scales, parts=parts, sites=sites)

    @property
    def _is_uniform(self) -> bool:
        """Whether the query names all numbers, and all have noise of one size: neither is then stored many times."""
        return bool(self.query.own_names) and self.names == self.query.own_names and len(set(self.scales)) == 1

    def to_json(self) -> str:
        """Return the release as JSON, without loss."""
        named = ("names", "values", "family", "scales", "public_values", "parts", "sites")
        document = {name: getattr(self, name) for name in named}
        if self._is_uniform:
            document |= {"names": None, "scales": self.scales[0]}
        document |= {"query": queries.to_dict(self.query), "guarantee": self.guarantee.to_dict()}
        return json.dumps(document | {"receipt": asdict(self.receipt)}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a release that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return a release from the plain values that `to_json` writes."""
        query, names, scales = queries.from_dict(document["query"]), document["names"], document["scales"]
        if names is None:  # many numbers, named by their query, with noise of one size
            names, scales = query.own_names, [scales] * len(query.own_names)
        return cls(
            query=query,
            guarantee=Guarantee(**document["guarantee"]),
            names=tuple(names),
            values=tuple(document["values"]),
            family=document["family"],
            scales=tuple(scales),
            public_values=document["public_values"],
            receipt=Receipt(**document["receipt"]),
            parts=document.get("parts", 1),
            sites=document.get("sites", 1),
        )


@dataclass(frozen=True)
class Contribution:
    """One site's masked numbers for a secure sum. They say nothing by themselves: see docs/proofs/noise_shares.md.

    Attributes:
        masked: For each coordinate, the integer with its share of noise and its mask, modulo 2^64.
    """

    masked: tuple[int, ...]
    question: str
    receipt: Receipt

    def to_json(self) -> str:
        """Return the masked numbers and their receipt as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        return cls(tuple(document["masked"]), document["question"], Receipt(**document["receipt"]))


def session_request(session: str) -> str:
    """Return the ledger's request of a session of secure sums, so that each session is paid for and answered once."""
    return digest_of({"secure session": session})
