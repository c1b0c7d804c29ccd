"""A number in a row as ticks: from -GRID to GRID, whatever the number is, as SQL text."""

import math

from dpcausal.queries import GRID
from dpcausal.queries.profiles import grid, missing_ticks, segments
from dpcausal.schema.real import Real
from dpcausal.schema.scale import Scale
from dpcausal.vault.parsing import literal

_LEAST_PRODUCT = 1e-300
"""Far above the least positive number, so that a difference of a value and a knot times ticks is never lost."""


def as_ticks(column: Real, value: str) -> str:
    """Return a number, or a missing one, as ticks: from the middle of its range, or its score on its scale."""
    return _ticks_between_bounds(column, value) if column.scale is None else _score(column, column.scale, value)


def _ticks_between_bounds(column: Real, value: str) -> str:
    """Return ticks from the middle of the range, from -GRID to GRID whatever floating point does on the way.

    A missing value is neither below nor above anything, and NaN is above infinity.
    """
    middle, ticks_to_one = grid(column)
    low, high, missing = map(literal, (column.low, column.high, column.missing_value))
    within = (
        f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} ELSE "  # which DuckDB has done with soonest
        f"CASE WHEN {value} < {low} THEN {low} WHEN {value} <= {literal(math.inf)} THEN {high} ELSE {missing} END END"
    )
    moved = f"({within} - {literal(middle)})" if middle else without_underflow(within, ticks_to_one)
    rounded = f"FLOOR({moved} * {literal(ticks_to_one)} + {literal(0.5)})"
    ends = ((end - middle) * ticks_to_one + 0.5 for end in (column.low, column.high))
    if all(-GRID <= math.floor(end) <= GRID for end in ends):
        return rounded
    # Two bounds that differ by few of their last digits.
    return f"LEAST(GREATEST({rounded}, {literal(float(-GRID))}), {literal(float(GRID))})"


def _score(column: Real, scale: Scale, value: str) -> str:
    """Return the score of a value in ticks, rising and from -GRID to GRID whatever floating point does on the way.

    Between two knots ticks are held within those of the knots. Beyond the first and the last they are those of the end.
    """
    parts = segments(scale)
    cases = [f"WHEN {value} < {literal(parts[0].low)} THEN {literal(float(parts[0].first))}"]
    for part in parts:
        factor = part.ticks_to_one
        moved = f"({value} - {literal(part.low)})"
        if 0 < math.ulp(part.low) * factor < _LEAST_PRODUCT:
            moved = f"({without_underflow(moved, factor)})"
        rounded = f"FLOOR({moved} * {literal(factor)} + {literal(part.first + 0.5)})"
        held = f"LEAST(GREATEST({rounded}, {literal(float(part.first))}), {literal(float(part.last))})"
        cases.append(f"WHEN {value} BETWEEN {literal(part.low)} AND {literal(part.high)} THEN {held}")
    cases.append(f"WHEN {value} <= {literal(math.inf)} THEN {literal(float(parts[-1].last))}")
    return f"CASE {' '.join(cases)} ELSE {literal(float(missing_ticks(column)))} END"


def without_underflow(value: str, factor: float) -> str:
    """Return a number, or 0 where its product with a factor below 1 is at most a quarter and rounds to 0.

    PostgreSQL fails where the product of two numbers other than 0 is 0 in floating point.
    """
    if factor >= 1:
        return value
    least, most = literal(-0.25 / factor), literal(0.25 / factor)
    return f"CASE WHEN ({value}) BETWEEN {least} AND {most} THEN {literal(0.0)} ELSE ({value}) END"
