"""Numbers as Coq writes them, and their ranges over boxes of two units, as `formal/Numbers.v` has them.

`formal_certificates` searches with these. Nothing here has to be right for a theorem to hold: Coq computes by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpcausal.sums.limits import LARGEST
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
    added,
    indicator,
)

Range = tuple[int, int]
Triple = tuple[Range, Range, Range]
"""Between what a number is for the one unit, for the other, and its change."""


@dataclass(frozen=True)
class Side:
    """The ranges of a column in both units, and whether both have the same value."""

    own: Range
    other: Range
    shared: bool


Box = Mapping[str, Side]


def plain(tree: Number) -> Number:
    """Return a number without bins: how many edges it reaches is a sum of conditions."""
    match tree:
        case Bin():
            inner = plain(tree.number)
            return added([indicator(Between(inner, edge, LARGEST)) for edge in tree.edges])
        case Sum():
            return Sum(tuple(map(plain, tree.terms)))
        case Product():
            return Product(plain(tree.left), plain(tree.right))
        case Shift() | Clip() | Lookup():
            return replace(tree, number=plain(tree.number))
        case Where():
            return Where(replace(tree.condition, number=plain(tree.condition.number)), plain(tree.number))
    return tree


def coq(tree: Number, places: Mapping[str, int]) -> str:  # noqa: PLR0911 (one case for each kind)
    """Return a number as Coq writes it."""
    match tree:
        case Ticks() | Code():
            return f"(Column {places[tree.column]})"
        case Constant():
            return f"(Constant ({tree.value}))"
        case Sum():
            first, *rest = (coq(each, places) for each in tree.terms)
            for each in rest:
                first = f"(Plus {first} {each})"
            return first
        case Product():
            return f"(Times {coq(tree.left, places)} {coq(tree.right, places)})"
        case Shift():
            return f"(Shift {coq(tree.number, places)} {tree.bits})"
        case Clip():
            return f"(Clip {coq(tree.number, places)} ({tree.least}) ({tree.most}))"
        case Where():
            condition = tree.condition
            return (
                f"(Where {coq(condition.number, places)} ({condition.least}) ({condition.most}) "
                f"{coq(tree.number, places)})"
            )
        case Lookup():
            return f"(Lookup {coq(tree.number, places)} [{'; '.join(f'({value})' for value in tree.values)}])"
    raise AssertionError(f"no {type(tree).__name__} in Coq")


def _plus(one: Range, other: Range) -> Range:
    return one[0] + other[0], one[1] + other[1]


def _minus(one: Range, other: Range) -> Range:
    return one[0] - other[1], one[1] - other[0]


def _times(one: Range, other: Range) -> Range:
    ends = [a * b for a in one for b in other]
    return min(ends), max(ends)


def _square(one: Range) -> Range:
    a, b = one[0] ** 2, one[1] ** 2
    return (0 if one[0] <= 0 <= one[1] else min(a, b)), max(a, b)


def _meet(one: Range, other: Range) -> Range:
    return max(one[0], other[0]), min(one[1], other[1])


def _or_zero(one: Range) -> Range:
    return min(0, one[0]), max(0, one[1])


def _decided(one: Range, condition: Between) -> bool | None:
    if condition.least <= one[0] and one[1] <= condition.most:
        return True
    return False if one[1] < condition.least or condition.most < one[0] else None


def _where(decided: bool | None, one: Range) -> Range:
    return _or_zero(one) if decided is None else one if decided else (0, 0)


def reach(tree: Number, box: Box, known: dict[Number, Triple]) -> Triple:
    """Return the ranges of a number over a box of two units."""
    if tree not in known:
        known[tree] = _reach(tree, box, known)
    return known[tree]


def _reach(tree: Number, box: Box, known: dict[Number, Triple]) -> Triple:  # noqa: C901, PLR0911 (one case for each kind)
    match tree:
        case Ticks() | Code():
            side = box[tree.column]
            return side.own, side.other, (0, 0) if side.shared else _minus(side.own, side.other)
        case Constant():
            at = (tree.value, tree.value)
            return at, at, (0, 0)
        case Sum():
            every = [reach(each, box, known) for each in tree.terms]
            own, other, change = every[0]
            for a, b, c in every[1:]:
                own, other, change = _plus(own, a), _plus(other, b), _plus(change, c)
            return own, other, change
        case Product():
            (a, b, c), (d, e, f) = reach(tree.left, box, known), reach(tree.right, box, known)
            if tree.left == tree.right:
                own, other = _square(a), _square(b)
                return own, other, _meet(_minus(own, other), _times(c, _plus(a, b)))
            own, other = _times(a, d), _times(b, e)
            low, high = _plus(_times(c, _plus(d, e)), _times(_plus(a, b), f))
            return own, other, _meet(_minus(own, other), (-(-low // 2), high // 2))
        case Shift():
            down = [(low >> tree.bits, high >> tree.bits) for low, high in reach(tree.number, box, known)[:2]]
            low, high = reach(tree.number, box, known)[2]
            return down[0], down[1], _meet(_minus(down[0], down[1]), (low >> tree.bits, -(-high >> tree.bits)))
        case Clip():
            held = [
                (min(max(low, tree.least), tree.most), min(max(high, tree.least), tree.most))
                for low, high in reach(tree.number, box, known)[:2]
            ]
            return held[0], held[1], _meet(_minus(*held), _or_zero(reach(tree.number, box, known)[2]))
        case Where():
            (a, b, same), (c, d, change) = reach(tree.condition.number, box, known), reach(tree.number, box, known)
            first, second = _decided(a, tree.condition), _decided(b, tree.condition)
            own, other = _where(first, c), _where(second, d)
            if first and second:
                return own, other, change
            both = _minus(own, other)
            return own, other, _meet(both, _or_zero(change)) if same == (0, 0) else both
        case Lookup():
            (a, b, same) = reach(tree.number, box, known)
            found = [(min(tree.values[low : high + 1]), max(tree.values[low : high + 1])) for low, high in (a, b)]
            return found[0], found[1], (0, 0) if same == (0, 0) else _minus(*found)
    raise AssertionError(f"no range of {type(tree).__name__}")
