"""The common part of all diagnoses: numbers with noise bars, and a verdict at a public threshold."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np

from dpcausal.guarantee import Guarantee
from dpcausal.release import Receipt, Release, units_of
from dpcausal.results.printed import PrintedResult
from dpcausal.uncertainty.interval import simulated
from dpcausal.utils.arrays import Array
from dpcausal.utils.documents import json_of, read_as
from dpcausal.utils.text import format_number

LEVEL = 0.95
"""The probability that a bar contains the number without noise."""

_DRAWS = 4_000


@dataclass(frozen=True)
class Reading:
    """A noisy number with a bar for its privacy noise.

    Attributes:
        bar: The half width of its 95 % noise bar.
    """

    value: float
    bar: float

    def __str__(self) -> str:
        if not 0 < self.bar < math.inf:
            return f"{format_number(self.value)} ± {format_number(self.bar)}"
        decimals = max(0, 1 - math.floor(math.log10(self.bar)))  # the bar has two digits, the number no more than it
        return f"{self.value:,.{decimals}f} ± {self.bar:,.{decimals}f}"


def versions(*releases: Release) -> list[Array]:
    """Return, for each release, its values and below them many copies with simulated noise of the same size added.

    The effect of added noise on a result estimates the effect of the noise that is already in it.
    """
    scales = [release.scale(name) for release in releases for name in release.names]
    noise = simulated(releases[0].family, scales, _DRAWS)
    ends = np.cumsum([len(release.names) for release in releases])[:-1]
    parts = zip(releases, np.split(np.vstack([np.zeros(len(scales)), noise]), ends, axis=1), strict=True)
    return [np.array(release.values) + more for release, more in parts]


def readings(results: Array) -> list[Reading | None]:
    """Return results with bars, from versions of them: one version a line, the first without added noise.

    A result that is not a number counts as infinitely far off; where that is common there is no reading.
    """
    found: list[Reading | None] = []
    for first, *others in results.T:
        errors = np.abs(np.array(others) - first)
        bar = float(np.quantile(np.where(np.isnan(errors), np.inf, errors), LEVEL, method="higher"))
        found.append(Reading(float(first), bar) if math.isfinite(bar) else None)
    return found


@dataclass(frozen=True, kw_only=True)
class Diagnosis(PrintedResult, ABC):
    """The result of a diagnosis. Public: it reveals no single unit."""

    arms: tuple[str, str]
    n: int
    method: str
    guarantee: Guarantee
    receipts: tuple[Receipt, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the diagnosis: overlap or balance."""
        return type(self).__name__.removesuffix("Table").lower()

    @property
    @abstractmethod
    def passes(self) -> bool | None:
        """Whether the threshold is met, whatever the noise; None where noise decides."""

    @property
    @abstractmethod
    def found(self) -> str:
        """The finding, in one sentence."""

    @property
    @abstractmethod
    def remedy(self) -> str:
        """What to do if it fails."""

    @property
    def verdict(self) -> str:
        """The value of `passes`, in words."""
        return {True: "passes", False: "fails", None: "inconclusive"}[self.passes]

    def _name(self) -> str:
        return f"{self.name.capitalize()} of {self.arms[1]} and {self.arms[0]}"

    def _table(self) -> list[tuple[str, str]]:
        table = [] if self.rehearsed else [("verdict", f"{self.verdict}: {self.found}")]
        table += [*self._lines(), *units_of(self.n, self.receipts)]
        return [*table, ("method", self.method), ("privacy", str(self.guarantee)), *self._last_lines()]

    @abstractmethod
    def _lines(self) -> Sequence[tuple[str, str]]:
        """Return the lines of the printed table that only this kind has."""

    def to_json(self) -> str:
        """Return the diagnosis as JSON, without loss."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | Path) -> Self:
        """Read a diagnosis that `to_json` wrote, from its text or from the file at a `Path`."""
        diagnosis: Self = read_as(cls, json_of("a diagnosis", cls, text))
        return diagnosis
