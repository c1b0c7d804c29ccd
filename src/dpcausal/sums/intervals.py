"""Between what a number is, given the ranges of its columns, and where it is between two others."""

from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

from dpcausal.errors import QueryError
from dpcausal.sums.numbers import (
    Between,
    Bin,
    Clip,
    Code,
    Constant,
    Lookup,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
)
from dpcausal.sums.table import IntegerTable
from dpcausal.utils.arrays import Int64s

Range = tuple[int, int]
Ranges = Mapping[str, Range]
"""The least and the greatest value of each column."""

_T = TypeVar("_T", int, Fraction)


def product_ends(one: tuple[int | Fraction, int | Fraction], other: tuple[_T, _T]) -> tuple[_T, _T]:
    """Return the range of a product, given the ranges of its factors."""
    found = [a * b for a in one for b in other]
    return min(found), max(found)  # type: ignore[return-value]


def interval(tree: Number, ranges: Ranges) -> Range:  # noqa: C901, PLR0911 (one case for each kind)
    """Return between what a number is, given the ranges of its columns."""
    match tree:
        case Ticks() | Code():
            return ranges[tree.column]
        case Constant():
            return tree.value, tree.value
        case Sum():
            parts = [interval(each, ranges) for each in tree.terms]
            return sum(low for low, _ in parts), sum(high for _, high in parts)
        case Product():
            one, other = interval(tree.left, ranges), interval(tree.right, ranges)
            low, high = product_ends(one, other)
            return (max(low, 0), high) if tree.left == tree.right else (low, high)
        case Shift():
            low, high = interval(tree.number, ranges)
            return low >> tree.bits, high >> tree.bits
        case Clip():
            low, high = interval(tree.number, ranges)
            return min(max(low, tree.least), tree.most), min(max(high, tree.least), tree.most)
        case Bin():
            low, high = interval(tree.number, ranges)
            return bisect_right(tree.edges, low), bisect_right(tree.edges, high)
        case Lookup():
            low, high = interval(tree.number, ranges)
            if (low, high) == (tree.number.low, tree.number.high):
                return tree.low, tree.high
            return IntegerTable(tree.values).ends(low, high)
        case Where():
            certain, possible = holds(tree.condition, interval(tree.condition.number, ranges))
            low, high = interval(tree.number, ranges)
            return (low, high) if certain else (min(0, low * possible), max(0, high * possible))
    raise QueryError(expected="a number", got=type(tree).__name__, hint="the engine knows no such kind of number.")


def holds(condition: Between, at: Range) -> Range:
    """Return 0 and 0, 0 and 1 or 1 and 1: whether a condition never, sometimes or always holds in a number's range."""
    low, high = at
    certain = condition.least <= low and high <= condition.most
    possible = low <= condition.most and condition.least <= high
    return int(certain), int(possible)


def holds_in(condition: Between, low: Int64s, high: Int64s) -> list[Range]:
    """Return what `holds` does in many ranges of a number."""
    certain = (condition.least <= low) & (high <= condition.most)
    possible = (low <= condition.most) & (condition.least <= high)
    return list(zip(certain.astype(int).tolist(), possible.astype(int).tolist(), strict=True))


def preimage(tree: Number, least: int, most: int) -> Range | None:  # noqa: PLR0911 (one case for each kind)
    """Return for which ticks of its only column a number is between two others; None where that is not known."""
    match tree:
        case Ticks():
            return least, most
        case Sum():
            moving = [each for each in tree.terms if not isinstance(each, Constant)]
            fixed = sum(each.value for each in tree.terms if isinstance(each, Constant))
            return preimage(moving[0], least - fixed, most - fixed) if len(moving) == 1 else None
        case Product(left=Constant(value=factor), right=right) if factor:
            one, other = (least, most) if factor > 0 else (most, least)
            return preimage(right, -(-one // factor), other // factor)
        case Shift():
            return preimage(tree.number, least << tree.bits, ((most + 1) << tree.bits) - 1)
        case Clip():
            inside = tree.least <= most and least <= tree.most
            low = tree.number.low if least <= tree.least else least
            high = tree.number.high if most >= tree.most else most
            return preimage(tree.number, low, high) if inside else (1, 0)
        case Bin():
            inside = least <= len(tree.edges) and most >= 0
            low = tree.number.low if least <= 0 else tree.edges[min(least, len(tree.edges)) - 1]
            high = tree.number.high if most >= len(tree.edges) else tree.edges[max(most, 0)] - 1
            return preimage(tree.number, low, high) if inside else (1, 0)
    return None
