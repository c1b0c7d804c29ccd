"""Public profiles of covariates, as the integers that a table's own values become."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError
from dpcausal.queries.query import GRID
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category, Column, Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH, TYPICAL, Scale

_QUARTILE = 0.674
"""How many standard deviations from the median quartiles are."""

Codes = Mapping[str, NDArray[np.int64]]
"""By covariate: a number as ticks, from the middle of its range or of its score, a listed value as its place."""


def grid(column: Real) -> tuple[float, float]:
    """Return the middle of a range, and ticks to one unit of measurement."""
    return column.low + (column.high - column.low) / 2, 2 * GRID / (column.high - column.low)


@dataclass(frozen=True)
class Segment:
    """A scale between two knots.

    Attributes:
        first: The score of the first knot, in ticks.
    """

    low: float
    high: float
    first: int
    last: int

    @property
    def ticks_to_one(self) -> float:
        """The ticks to one unit of measurement."""
        return (self.last - self.first) / (self.high - self.low)


def segments(scale: Scale) -> tuple[Segment, ...]:
    """Return a scale, knot by knot, with scores in ticks of which GRID make 1."""
    ticks = [(value, math.floor(score * GRID + 0.5)) for value, score in scale.knots]
    return tuple(Segment(low, high, first, last) for (low, first), (high, last) in itertools.pairwise(ticks))


def ticks_of(column: Real, value: float) -> int:
    """Return a value within the bounds in ticks: its distance from the middle of the range, or its score."""
    return int(_ticks(column, np.array([value]))[0])


def missing_ticks(column: Real) -> int:
    """Return what an absent value counts as, in ticks: on a scale, the score 0 unless `missing` is declared."""
    return 0 if column.scale is not None and column.missing is None else ticks_of(column, column.missing_value)


def _ticks(column: Real, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return numbers that are not NaN in ticks, by the same steps of floating point as the SQL text of coercion."""
    ticks: NDArray[np.float64]
    if column.scale is None:
        middle, ticks_to_one = grid(column)
        within = np.clip(numbers, column.low, column.high)
        ticks = np.clip(np.floor((within - middle) * ticks_to_one + 0.5), -GRID, GRID)
    else:
        parts = segments(column.scale)
        within = np.clip(numbers, parts[0].low, parts[-1].high)
        place = np.searchsorted([part.high for part in parts[:-1]], within)
        low, factor = (np.array([getattr(part, name) for part in parts])[place] for name in ("low", "ticks_to_one"))
        first, last = (np.array([getattr(part, name) for part in parts])[place] for name in ("first", "last"))
        ticks = np.clip(np.floor((within - low) * factor + (first + 0.5)), first, last)
    return ticks.astype(np.int64)


def shown_as(column: Real) -> tuple[str, float, float]:
    """Return what to call a number where its mean is shown, and the middle and half of its range there.

    The mean of scores is not the score of a mean, so a number that is seen by its score is shown by it.
    """
    if column.scale is not None:
        return f"{column.label or column.name} (score)", 0.0, 1.0
    return column.title, (column.low + column.high) / 2, (column.high - column.low) / 2


def value_of(column: Real, ticks: float) -> float:
    """Return the value that some ticks stand for."""
    if column.scale is not None:
        return column.scale.value_at(ticks / GRID)
    middle, ticks_to_one = grid(column)
    return middle + ticks / ticks_to_one


def codes_of(profiles: object, columns: Sequence[Column]) -> dict[str, NDArray[np.int64]]:
    """Return profiles as codes.

    Args:
        profiles: A mapping or dataframe with a column for each covariate, or a table with a column for each covariate
            in this order. A number outside its range counts as the nearer bound, an absent value as the declared
            missing value, as in a table; a value that is not listed is refused. Whether a number is missing may be left
            out: its own values tell.
    """
    follow = _left_out(profiles, columns)
    names = [column.name for column in columns if column.name not in follow]
    cells = {name: _cells(profiles, place, names) for place, name in enumerate(names)}
    if len({len(each) for each in cells.values()}) > 1:
        raise QueryError(
            expected="profiles with as many values of each covariate",
            got=", ".join(f"{len(each)} of {name}" for name, each in cells.items()),
            hint="give one value of every covariate for each profile.",
        )
    absent = {name: np.array(list(map(_absent, cells[of].tolist())), dtype=np.int64) for name, of in follow.items()}
    return {
        column.name: absent[column.name] if column.name in follow else _coded(column, cells[column.name])
        for column in columns
    }


def _left_out(profiles: object, columns: Sequence[Column]) -> dict[str, str]:
    """Return the indicators that profiles do not have, each with the covariate whose values tell."""
    names = {column.name for column in columns}
    told = {
        column.name: column.of.name for column in columns if isinstance(column, Indicator) and column.of.name in names
    }
    if isinstance(profiles, Mapping) or hasattr(profiles, "columns"):
        own = set(profiles if isinstance(profiles, Mapping) else getattr(profiles, "column_names", profiles.columns))
        return {name: of for name, of in told.items() if name not in own}
    try:
        width = np.asarray(profiles).shape[1]
    except (IndexError, TypeError, ValueError):
        return {}
    return told if width == len(columns) - len(told) else {}


def _cells(profiles: object, place: int, names: Sequence[str]) -> NDArray[Any]:
    by_name = isinstance(profiles, Mapping) or hasattr(profiles, "columns")
    try:
        if by_name:
            cells = np.asarray(profiles[names[place]])  # type: ignore[index]
        else:
            table = np.asarray(profiles)
            cells = table[:, place] if table.shape[1] == len(names) else np.zeros(())
    except (KeyError, IndexError, TypeError, ValueError):
        cells = np.zeros(())
    if cells.ndim != 1:
        raise QueryError(
            expected=f"profiles with a list of values for each of {', '.join(names)}",
            got=f"columns {', '.join(map(str, profiles))}" if by_name else type(profiles).__name__,  # type: ignore[call-overload]
            hint="give a dataframe, or a mapping from each covariate to a list.",
        )
    return cells


def _coded(column: Column, cells: NDArray[Any]) -> NDArray[np.int64]:
    if cells.dtype == object:  # what stands for an absent value in one library or another
        cells = np.array([None if _absent(each) else each for each in cells.tolist()], dtype=object)
    if isinstance(column, Binary | Category):
        return _listed(column, cells)
    try:
        numbers = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise QueryError(
            expected=f"numbers as values of {column.name!r}",
            got=repr(cells.tolist()[:3]),
            hint="give NaN for a value that is not known; it counts as the declared missing value.",
        ) from None
    absent = np.isnan(numbers)
    return np.where(absent, missing_ticks(column), _ticks(column, np.where(absent, column.low, numbers)))


def _absent(cell: object) -> bool:
    return (
        cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell))
    )


def _listed(column: Binary | Category, cells: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places of values in a list."""
    codes = np.full(len(cells), -1, dtype=np.int64)
    for code, value in enumerate(column.values):
        codes[cells == value] = code
    unknown = np.flatnonzero(codes < 0)
    strange = [each for each in cells[unknown].tolist() if not _absent(each)]
    if strange:
        raise QueryError(
            expected=f"values of {column.name!r} out of {', '.join(map(str, column.values))}",
            got=", ".join(map(repr, dict.fromkeys(map(str, strange[:5])))),
            hint="write each as the schema does; give None for a value that is not known.",
        )
    codes[unknown] = column.values.index(column.missing_value)
    return codes


def by_covariate(covariates: Sequence[str], at: Sequence[Sequence[Value]]) -> dict[str, list[Value]]:
    """Return profiles, covariate by covariate."""
    return {name: [profile[place] for profile in at] for place, name in enumerate(covariates)}


def values_of(codes: Codes, columns: Sequence[Column]) -> tuple[tuple[Value, ...], ...]:
    """Return profiles as lists of values, from their codes."""
    lines: list[list[Value]] = []
    for column in columns:
        if isinstance(column, Real):
            lines.append([value_of(column, code) for code in codes[column.name].tolist()])
        else:
            lines.append([column.values[code] for code in codes[column.name].tolist()])
    return tuple(zip(*lines, strict=True))


def examples_of(column: Column) -> tuple[Value, ...]:
    """Return a few values of a covariate: bounds and quarters of a range, or the first that are listed.

    Of a number with a scale these are about the values below which 5, 25, 50, 75 and 95 % of units are.
    """
    if not isinstance(column, Real):
        return tuple(column.values[:6])
    if column.scale is not None:
        typical = [column.scale.value_at(place / REACH) for place in (-TYPICAL, -_QUARTILE, 0.0, _QUARTILE, TYPICAL)]
        return tuple(dict.fromkeys(float(f"{value:.3g}") for value in typical))
    return tuple(column.low + (column.high - column.low) * share for share in (0.0, 0.25, 0.5, 0.75, 1.0))


def spread_out(columns: Sequence[Column], size: int) -> dict[str, NDArray[np.int64]]:
    """Return codes of profiles spread evenly over all ranges and lists: a public stand-in for the population.

    Numbers that are seen by their scores are spread as scores are: normally, with REACH standard deviations to 1.
    """
    points = even_points(len(columns), size)
    codes = {}
    for column, line in zip(columns, points.T, strict=True):
        if isinstance(column, Real) and column.scale is not None:
            normal = np.array([NormalDist().inv_cdf(each) for each in line.tolist()])
            codes[column.name] = np.rint(np.clip(normal / REACH, -1.0, 1.0) * GRID).astype(np.int64)
        elif isinstance(column, Real):
            codes[column.name] = np.rint((2 * line - 1) * GRID).astype(np.int64)
        else:
            codes[column.name] = (line * len(column.values)).astype(np.int64)
    return codes


def even_points(dimensions: int, size: int, start: int = 0) -> NDArray[np.float64]:
    """Return points spread evenly over a cube, one line a point: multiples of irrational steps (Roberts 2018)."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1, dimensions + 1)
    points: NDArray[np.float64] = (0.5 + np.outer(np.arange(start + 1, start + size + 1), steps)) % 1.0
    return points


def design_lines(codes: Codes, columns: Sequence[Column]) -> list[NDArray[np.int64]]:
    """Return covariates as numbers from -1 to 1, in ticks of which GRID make 1: features of a linear regression.

    One of two values is -1 or 1; one of more values is 1 in that value's place and -1 elsewhere, without the first.
    """
    lines = []
    for column in columns:
        line = codes[column.name]
        if isinstance(column, Real):
            lines.append(line)
        else:
            lines += [np.where(line == place, GRID, -GRID) for place in range(1, len(column.values))]
    return lines
