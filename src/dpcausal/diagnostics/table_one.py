"""Table 1 of a trial: each covariate's mean and standard deviation, or shares, in each arm, with noise bars."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np

from dpcausal.diagnostics.diagnosis import Reading, readings, versions
from dpcausal.errors import QueryError
from dpcausal.queries import ArmRegressionMoments
from dpcausal.queries.features import covariates_named, design_names, titles_of
from dpcausal.queries.profiles import shown_as
from dpcausal.queries.query import value_names
from dpcausal.release import Release
from dpcausal.schema.real import Real
from dpcausal.source import Source
from dpcausal.utils.arrays import Array

Readings = tuple[Reading | None, ...]
"""A number for each arm; None where noise hides it."""


@dataclass(frozen=True)
class Characteristic:
    """One covariate, or one of its values, in each arm.

    Attributes:
        kind: `mean` for a number, `share` for one of several values.
        means: The mean, or the share of units, in each arm.
        sds: The standard deviation in each arm; None of a share.
    """

    name: str
    kind: Literal["mean", "share"]
    means: Readings
    sds: Readings = ()

    def text(self, arm: int) -> str:
        """Return one arm's numbers."""
        mean = self.means[arm]
        if self.kind == "share":
            return _HIDDEN if mean is None else f"{100 * mean.value:.1f} % ± {100 * mean.bar:.1f}"
        return f"{_text(mean)} (SD {_text(self.sds[arm])})"

    def bars(self, arm: int) -> str:
        """Return one arm's bars alone, for a rehearsal."""
        mean = self.means[arm]
        if self.kind == "share":
            return _HIDDEN if mean is None else f"± {100 * mean.bar:.1f} %"
        return f"{_bar(mean)} (SD {_bar(self.sds[arm])})"


@dataclass(frozen=True)
class TableOne:
    """Baseline characteristics by arm. Public: it reveals no single unit.

    Bars are for privacy noise alone, at 95 %: the table is about the units in the trial, as a Table 1 is.

    Attributes:
        arms: The arms: the two compared ones, control first, or every declared one.
        sizes: The number of units in each arm; bars are 0 where arms are public.
        rehearsed: Whether this came from a rehearsal: bars are expectations, numbers are placeholders.
    """

    arms: tuple[str, ...]
    sizes: Readings
    characteristics: tuple[Characteristic, ...]
    rehearsed: bool = False

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The table as texts: the characteristic, and what it is in each arm."""
        arms = range(len(self.arms))
        if self.rehearsed:
            expected = ((each.name, *map(each.bars, arms)) for each in self.characteristics)
            return ("units", *map(_bar, self.sizes)), *expected
        return ("units", *map(_size, self.sizes)), *(
            (each.name, *map(each.text, arms)) for each in self.characteristics
        )

    @property
    def statistics(self) -> Iterator[tuple[str, str, str, Reading | None]]:
        """Every number: its characteristic, its arm, what it is, and the number."""
        for place, arm in enumerate(self.arms):
            yield "units", arm, "number", self.sizes[place]
            for each in self.characteristics:
                yield each.name, arm, each.kind, each.means[place]
                if each.kind == "mean":
                    yield each.name, arm, "sd", each.sds[place]

    @property
    def title(self) -> str:
        """The caption."""
        title = "Table 1: characteristics by arm, with 95 % noise bars"
        return f"Rehearsal (no data read, nothing spent): {title}" if self.rehearsed else title

    def __str__(self) -> str:
        table = (("", *self.arms), *self.lines)
        widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
        lines = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in table)
        return "\n".join([self.title, "─" * len(self.title), *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        """Return the same table as HTML for a notebook."""
        head = "".join(f"<th>{escape(text)}</th>" for text in ("", *self.arms))
        cells = [(escape(name), "".join(f"<td>{escape(text)}</td>" for text in texts)) for name, *texts in self.lines]
        body = "".join(f'<tr><th style="text-align:left">{name}</th>{texts}</tr>' for name, texts in cells)
        caption = f'<caption style="text-align:left;font-weight:bold">{escape(self.title)}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table_one_from_moments(moments: Release, source: Source) -> TableOne:
    """Return Table 1 of every declared arm from moments released for adjusted contrasts: it costs nothing more.

    Args:
        moments: A release of `ArmRegressionMoments`, as `ArmContrasts` with covariates asks for.
    """
    query, schema = moments.query, source.schema
    if not isinstance(query, ArmRegressionMoments):
        raise QueryError(
            expected="a release of arm_regression_moments",
            got=query.name,
            hint="release ArmRegressionMoments(covariates=...); for two arms, Balance(...).estimate(...).table_one.",
        )
    (drawn,) = versions(moments)
    sums, arms = dict(zip(moments.names, drawn.T, strict=True)), range(len(schema.treatment.arms))
    sizes = np.array([seen(sums[f"arm_{arm}"]) for arm in arms]).T

    def mean(name: str) -> Array:
        """Return the mean of a feature, or of a deficit, version by arm."""
        found: Array = np.array([sums[f"arm_{arm} * {name}"] for arm in arms]).T / sizes
        return found

    made = []
    for column in covariates_named(query.covariates, schema):
        if isinstance(column, Real):
            name, middle, half = shown_as(column)
            own = mean(column.name)
            sds = np.sqrt(seen(1 - mean(f"deficit of {column.name}") - own**2))
            means = tuple(readings(middle + half * own))
            made.append(Characteristic(name, "mean", means, tuple(readings(half * sds))))
            continue
        shares = [(1 + mean(name)) / 2 for name in design_names([column.name], schema)]
        if len(column.values) > 2:
            shares = [1 - sum(shares, np.zeros_like(sizes)), *shares]
        names = titles_of(value_names(column)[-len(shares) :], schema)
        made += [
            Characteristic(name, "share", tuple(readings(share))) for name, share in zip(names, shares, strict=True)
        ]
    rehearsed = moments.receipt.digest is None
    return TableOne(schema.treatment.every_label, tuple(readings(sizes)), tuple(made), rehearsed)


def seen(values: Array) -> Array:
    """Return values that must be positive, and not a number where noise made them negative."""
    return np.where(values > 0, values, np.nan)


_HIDDEN = "hidden by noise"


def _size(size: Reading | None) -> str:
    if size is None:
        return _HIDDEN
    return f"{size.value:,.0f} {_bar(size)}" if size.bar else f"{size.value:,.0f}"


def _text(reading: Reading | None) -> str:
    return _HIDDEN if reading is None else str(reading)


def _bar(reading: Reading | None) -> str:
    return _HIDDEN if reading is None else f"± {float(f'{reading.bar:.2g}'):,.12g}"  # 830, not 8.3e+02
