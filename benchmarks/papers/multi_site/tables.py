"""The tables of the multi-site paper, and how their units are spread over sites.

Outcomes are put on a scale from 0 to 1 by public bounds, as in the paper, so errors are shares of the outcome's range.
Bounds are round numbers, wide enough for the outcomes.

Two things differ from the paper. The part of the International Stroke Trial that is at hand does not have the paper's
outcome, recurrent stroke within 14 days; here it is death. And the Tennessee trial has pupils who came in later grades,
where tests have higher scales and fewer classes are small. On raw scores small classes would do harm; here a score is
measured from the lower end of its grade's range.
"""

import csv
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks import datasets
from benchmarks.data.files import data_file
from benchmarks.datasets import DataSet
from benchmarks.leaderboard import tables as leaderboard
from dpcausal.schema.schema import Protects

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

PROPORTIONS = ("1:1", "1:1:1", "3:2:1", "9:9:2", "18:1:1")
SMALLEST_COUNTRY = 500
SEED = 2024


def cells(generator: Generator, n: int, size: int, imbalance: float | None = None) -> DataSet:
    """Return the paper's Synth: one covariate with `size` values, and outcomes within 0 and 1."""
    a = generator.uniform(-1, 1) if imbalance is None else imbalance
    b = generator.uniform(0, 0.4)
    cell = generator.integers(0, size, n)
    x = cell / max(size - 1, 1)
    arm = (generator.random(n) < 1 / (1 + np.exp(-a * (2 * x - 1)))).astype(int)
    return DataSet(
        name="Synth",
        table=pa.table({"x": cell, "t": arm, "y": b * x + 0.5 * arm + generator.uniform(0, 0.1, n)}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0),
        covariates=(dpc.Category("x", list(range(size))),),
        truth=0.5,
    )


def synth(run: int) -> DataSet:
    """10,000 units in 100 cells, a new table for each run; the covariate once as a cell and once as a number."""
    data = cells(np.random.default_rng((SEED, run)), 10_000, 100)
    table = data.table.append_column("share", pa.array(data.column("x") / 99))
    return replace(
        data, table=table, covariates=(*data.covariates, dpc.Real("share", 0, 1)), strata=("x",), short=("share",)
    )


@cache
def ihdp(folder: Path | None) -> DataSet:
    """Return the first realisation, with the child's sex, and whether the mother is married or left school early."""
    whole = datasets.ihdp(folder)
    names = ("x7", "x9", "x10")
    covariates = tuple(column for column in whole.covariates if column.name in names)
    return _scaled(replace(whole, covariates=covariates, strata=names, short=names))


@cache
def lalonde(folder: Path | None) -> DataSet:
    """Lalonde's own sample of the National Supported Work trial, taken as if arms depended on age, as in the paper."""
    years = [place + 0.5 for place in range(16, 60)]
    return _scaled(
        DataSet(
            name="Lalonde",
            table=pa.csv.read_csv(data_file("lalonde/nsw_lalonde_722.csv", folder)),
            treatment=dpc.Treatment("trt", undeclared=0),
            outcome=dpc.Real("re78", 0, 60_000, missing=0),
            covariates=(dpc.Real("age", 16, 60),),
            truth=886.30,  # the trial's difference in means, as reported
            short=("age",),
            strata=(dpc.Cut("age", years),),
        )
    )


@cache
def ist(folder: Path | None) -> DataSet:
    """Return the International Stroke Trial: aspirin and death, by country."""
    whole = leaderboard.ist(folder)
    names = ["country" if name == "COUNTRY" else name for name in whole.table.column_names]
    return replace(whole, table=whole.table.rename_columns(names), short=("AGE", "SEX"))


_LOWEST = {"k": 600, "1": 720, "2": 830, "3": 890}
"""Where the range of both tests together begins in each grade; it is 660 points wide."""


@cache
def star(folder: Path | None) -> DataSet:
    """Tennessee's trial of small classes: both tests of the first grade in which a pupil sat both, by urbanity."""
    pupils = []
    with data_file("star/star_aer_11598.csv", folder).open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            grade = next((grade for grade in _LOWEST if line[f"read{grade}"] and line[f"math{grade}"]), None)
            if grade is not None:
                score = float(line[f"read{grade}"]) + float(line[f"math{grade}"])
                pupils.append(
                    {
                        "small": int(line[f"star{grade}"] == "small"),
                        "score": min(max((score - _LOWEST[grade]) / 660, 0.0), 1.0),
                        "urbanity": line[f"school{grade}"],
                        "lunch": line[f"lunch{grade}"],
                        **{name: line[name] for name in ("gender", "ethnicity")},
                    }
                )
    table = pa.Table.from_pylist(pupils)
    covariates = (
        dpc.Binary("lunch", values=("non-free", "free")),
        dpc.Binary("gender", values=("male", "female")),
        dpc.Category("ethnicity", ["cauc", "afam", "other"]),
    )
    return DataSet(
        name="STAR",
        table=table,
        treatment=dpc.Treatment("small", undeclared=0),
        outcome=dpc.Real("score", 0, 1, missing=0),
        covariates=covariates,
        truth=math.nan,
        short=tuple(column.name for column in covariates),
        randomised=True,
    )


def _scaled(data: DataSet) -> DataSet:
    """Return the same with outcomes from 0 to 1."""
    low, high = data.schema("record").outcome_bounds
    name = data.outcome.name
    outcomes = pa.array(np.clip((data.column(name) - low) / (high - low), 0, 1))
    table = data.table.set_column(data.table.column_names.index(name), name, outcomes)
    return replace(data, table=table, outcome=dpc.Real(name, 0, 1, missing=0), truth=data.truth / (high - low))


_FROM_FILES: dict[str, Callable[[Path | None], DataSet]] = {"IHDP": ihdp, "Lalonde": lalonde, "IST": ist, "STAR": star}
_FIRST_EPSILON = {"Synth": 1.0, "IHDP": 5.0, "Lalonde": 5.0, "IST": 1.0, "STAR": 1.0}


@dataclass(frozen=True)
class Setting:
    """A table and how its units are spread over sites.

    Attributes:
        name: The table.
        split: Proportions of sites to which units are assigned at random, or the column that says where a unit is.
        folder: Where the published tables are; Synth and IST need none.
    """

    name: str
    split: str
    folder: Path | None = None

    @property
    def natural(self) -> bool:
        """Whether sites are what they were in the study."""
        return ":" not in self.split

    @property
    def first_epsilon(self) -> float:
        """The epsilon of the first site."""
        return _FIRST_EPSILON[self.name]

    def table(self, run: int = 0) -> DataSet:
        """All units of all sites; a trial's own difference in means counts as the truth."""
        if self.name == "Synth":
            return synth(run)
        whole = _FROM_FILES[self.name](self.folder)
        if self.split == "country":
            places = whole.table["country"].to_pylist()
            sizes = Counter(places)
            whole = replace(whole, table=whole.table.filter([sizes[each] >= SMALLEST_COUNTRY for each in places]))
        return replace(whole, truth=difference(whole)) if whole.randomised else whole

    def sites(self, run: int = 0) -> dict[str, DataSet]:
        """Each site's table, the largest first; random splits are new for each run and the same each time."""
        whole = self.table(run)
        if self.natural:
            places = whole.table[self.split].to_pylist()
            return {
                site: replace(whole, table=whole.table.filter([place == site for place in places]))
                for site, _ in Counter(places).most_common()
            }
        shares = np.cumsum([int(share) for share in self.split.split(":")])
        # Rounded up, so that of sites with equal shares the first is the largest, as in the paper.
        ends = -(-whole.n * shares // shares[-1])
        order = np.random.default_rng((SEED, run, whole.n)).permutation(whole.n)
        parts = (np.sort(part) for part in np.split(order, ends[:-1]))
        return {f"site {place}": replace(whole, table=whole.table.take(part)) for place, part in enumerate(parts, 1)}


def settings(folder: Path | None) -> tuple[Setting, ...]:
    """All of them, or without a folder those that need no files beyond the shipped ones."""
    names = ("Synth", "IHDP", "Lalonde", "IST") if folder else ("Synth", "IST")
    random = [Setting(name, split, folder) for name in names for split in PROPORTIONS]
    natural = [Setting("IST", "country", folder), *([Setting("STAR", "urbanity", folder)] if folder else [])]
    return (*random, *natural)


def epsilons(setting: Setting, alpha: float, sites: int) -> list[float]:
    """Return the epsilon of each site: alpha^((j - 1) / (J - 1)) times that of the first."""
    return [setting.first_epsilon * alpha ** (place / (sites - 1)) for place in range(sites)]


def protected(data: DataSet) -> tuple[Protects, ...]:
    """Return what to protect: whole records; in a trial also, as in the paper, all but the arm."""
    return ("record_within_arm", "record") if data.randomised else ("record",)


def arms_of(data: DataSet) -> Int64s:
    """Return the arm of each unit, 0 or 1."""
    treated = data.treatment.compared[1]
    return np.array([int(value == treated) for value in data.table[data.treatment.name].to_pylist()])


def cells_of(data: DataSet) -> Int64s:
    """Return the stratum of each unit."""
    columns = {column.name: column for column in data.covariates}
    place = np.zeros(data.n, dtype=np.int64)
    for by in data.strata:
        if isinstance(by, dpc.Cut):
            place = place * (len(by.edges) + 1) + np.searchsorted(by.edges, data.column(by.name), side="right")
        else:
            values = list(columns[by].values)  # type: ignore[union-attr]
            place = place * len(values) + np.array([values.index(value) for value in data.table[by].to_pylist()])
    return place


def difference(data: DataSet) -> float:
    """NOT PRIVATE: the difference in means."""
    arms, outcomes = arms_of(data), data.column(data.outcome.name)
    return float(outcomes[arms == 1].mean() - outcomes[arms == 0].mean())


def matching(data: DataSet) -> float:
    """NOT PRIVATE: exact matching on strata, averaged over all ways to break its ties."""
    cells, arms, outcomes = cells_of(data), arms_of(data), data.column(data.outcome.name)
    size = int(cells.max()) + 1
    counts = np.stack([np.bincount(cells[arms == arm], minlength=size) for arm in (0, 1)])
    totals = np.stack([np.bincount(cells[arms == arm], outcomes[arms == arm], minlength=size) for arm in (0, 1)])
    both = counts.min(axis=0) > 0
    means = totals[:, both] / counts[:, both]
    return float((counts[:, both].sum(axis=0) * (means[1] - means[0])).sum() / data.n)


def reference(data: DataSet) -> float:
    """NOT PRIVATE: the paper's own estimate from all units together, which it measures errors from."""
    return difference(data) if data.randomised else matching(data)
