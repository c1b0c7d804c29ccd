"""Certificates for the checker of `formal/Certificates.v`: found here, and believed only there.

A bound is claimed by the code. This module searches for boxes and rules from which the claim follows. Whether it does,
Coq computes: nothing here has to be right for a theorem to hold.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from checks.formal_ranges import Box, Range, Side, Triple, coq, reach
from dpcausal.sums.numbers import Constant, Number, Product, columns, nodes

Norm = Literal["l1", "l2"]
CHANGE, OWN, OTHER = "Change", "Own", "Other"
_MOST_LEAVES, _FEW, _MANY = 8_000, 8, 40
"""How many leaves a certificate may have, how many values a column that is split first, and what are many terms."""


class NoCertificateError(Exception):
    """No certificate was found: the claim may be wrong, or too near the truth for these rules."""


@dataclass(frozen=True)
class Term:
    """What is bounded: a number's change, or the number of one of both units."""

    kind: str
    number: Number
    weight: Fraction


@dataclass
class Problem:
    """One case of a description: the terms, the claim to the power of the norm, and what cannot be.

    Attributes:
        norm: The norm.
        places: Where each column is in a unit.
        cuts: Values of columns at which conditions change.
        impossible: Whether no two units of a box are of this case.
        formed_by: The columns by which cells are formed.
        leaves: How many leaves the certificate has so far.
    """

    norm: Norm
    places: Mapping[str, int]
    cuts: Mapping[str, Sequence[int]]
    impossible: Callable[[Box], bool]
    formed_by: frozenset[str]
    leaves: int = 0

    def cost(self, size: int, weight: Fraction) -> Fraction:
        """Return what a coordinate costs that moves by so much."""
        share = Fraction(size) / weight
        return share if self.norm == "l1" else share * share

    def by_ranges(self, terms: Sequence[Term], box: Box) -> Fraction:
        """Return what terms cost at most over a box, by their ranges."""
        known: dict[Number, Triple] = {}
        total = Fraction(0)
        for term in terms:
            low, high = reach(term.number, box, known)[(OWN, OTHER, CHANGE).index(term.kind)]
            total += self.cost(max(-low, high), term.weight)
        return total

    def search(self, terms: Sequence[Term], box: Box, claim: Fraction) -> str:
        """Return a certificate of a claim over a box."""
        if self.by_ranges(terms, box) <= claim:
            return self._leaf("ByRanges")
        if self.impossible(box):
            return self._leaf("Empty")
        for way in (self.apart, self.by_parts):
            with suppress(NoCertificateError):
                if found := way(terms, box, claim):
                    return found
        return self.split(terms, box, claim)

    def _leaf(self, text: str) -> str:
        self.leaves += 1
        if self.leaves > _MOST_LEAVES:
            raise NoCertificateError(f"more than {_MOST_LEAVES:,} boxes")
        return text

    def split(self, terms: Sequence[Term], box: Box, claim: Fraction) -> str:
        """Return a certificate of two halves of a box: cut where it helps most."""
        best = min(self._cuts(terms, box), key=lambda cut: cut[0], default=None)
        if best is None:
            raise NoCertificateError(
                f"a single pair of units moves by {float(self.by_ranges(terms, box))}, not {float(claim)}"
            )
        _, first, name, at, below, above = best
        lower, upper = self.search(terms, below, claim), self.search(terms, above, claim)
        return f"(Split {str(first).lower()} {self.places[name]} ({at}) {lower} {upper})"

    def _cuts(self, terms: Sequence[Term], box: Box) -> Iterator[tuple[tuple[float, float], bool, str, int, Box, Box]]:
        used = {name for term in terms for name in columns(term.number)} | self.formed_by
        ranges = {
            (name, first): box[name].own if first else box[name].other
            for name in sorted(used)
            for first in ((True,) if box[name].shared else (True, False))
        }
        widths = {each: high - low for each, (low, high) in ranges.items() if high > low}
        codes = [each for each, width in widths.items() if width <= _FEW]
        for name, first in codes[:1] or widths:
            low, high = ranges[name, first]
            inner = [at for at in self.cuts.get(name, ()) if low <= at < high]
            for at in inner or [(low + high) // 2]:
                below, above = narrowed(box, name, (low, at), first), narrowed(box, name, (at + 1, high), first)
                found = [
                    0.0 if self.impossible(half) else float(self.by_ranges(terms, half)) for half in (below, above)
                ]
                yield (max(found), sum(found)), first, name, at, below, above

    def by_parts(self, terms: Sequence[Term], box: Box, claim: Fraction) -> str | None:
        """Return a certificate that bounds products at vertices, and other terms apart; None if there is none."""
        products = [factors_of(term.number) for term in terms]
        simple = [len(set(factors)) == len(factors) and not any(map(_bends, factors)) for _, factors in products]
        if sum(simple) < 2 or len({f for is_, (_, fs) in zip(simple, products, strict=True) if is_ for f in fs}) < 2:
            return None
        chosen = [term for term, here in zip(terms, simple, strict=True) if here]
        others = [term for term, here in zip(terms, simple, strict=True) if not here]
        value, text = self.by_vertices(chosen, box)
        if not others:
            return self._leaf(text) if value <= claim else None
        rest = self._each(others, _apart(others, self.formed_by), box, claim - value)
        return f"(Parts [{_mask(simple)}] {self._leaf(text)} {rest})" if rest else None

    def apart(self, terms: Sequence[Term], box: Box, claim: Fraction) -> str | None:
        """Return a certificate that bounds terms apart which have nothing in common; None if there is none."""
        if len(terms) > _MANY:
            return None
        groups: list[tuple[set[tuple[str, bool]], list[Term]]] = []
        for term in terms:
            sides = {(name, first) for name in columns(term.number) for first in self._sides(term, box[name])}
            own = [group for group in groups if group[0] & sides]
            groups = [group for group in groups if not group[0] & sides]
            joined = [each for each in terms if each is term or any(each is one for group in own for one in group[1])]
            groups.append((sides.union(*(group[0] for group in own)), joined))
        few = all(len(sides) <= _FEW for sides, _ in groups)
        return self._each(terms, [group for _, group in groups], box, claim) if few and len(groups) > 1 else None

    @staticmethod
    def _sides(term: Term, side: Side) -> Iterator[bool]:
        if (term.kind != OTHER or side.shared) and side.own[0] < side.own[1]:
            yield True
        if term.kind != OWN and not side.shared and side.other[0] < side.other[1]:
            yield False

    def _each(self, terms: Sequence[Term], groups: Sequence[Sequence[Term]], box: Box, claim: Fraction) -> str | None:
        """Return a certificate for groups of terms, each with its share of what the claim leaves."""
        least = [self._attained(group, box) for group in groups]
        slack = (claim - sum(least)) / len(groups)
        if slack < 0:
            return None
        text, left = "", list(terms)
        for group, at in zip(groups[:-1], least[:-1], strict=True):
            proof = self.search(group, box, at + slack)
            here = [any(each is one for one in group) for each in left]
            text += f"(Parts [{_mask(here)}] {proof} "
            left = [each for each, inside in zip(left, here, strict=True) if not inside]
        return text + self.search(left, box, least[-1] + slack) + ")" * (len(groups) - 1)

    def by_vertices(self, terms: Sequence[Term], box: Box) -> tuple[Fraction, str]:
        """Return the largest cost of products at vertices, with its certificate."""
        known: dict[Number, Triple] = {}
        products = [factors_of(term.number) for term in terms]
        factors = [*dict.fromkeys(factor for _, every in products for factor in every)]
        sizes, turns = [], []
        for factor in factors:
            own, other, change = reach(factor, box, known)
            sizes.append(max(-own[0], own[1], -other[0], other[1]))
            turns.append(change != (0, 0))
        alone, items = Fraction(0), []
        for term, (constant, every) in zip(terms, products, strict=True):
            size = abs(constant) * math.prod(sizes[factors.index(each)] for each in every)
            if term.kind == CHANGE:
                items.append((self.cost(2 * size, term.weight), tuple(sorted(factors.index(each) for each in every))))
            else:
                alone += self.cost(size, term.weight)
        groups = _groups([at for at, turn in enumerate(turns) if turn], items)
        best = Fraction(0)
        for counts in itertools.product(*(range(len(group) + 1) for group in groups)):
            turned = {at for group, count in zip(groups, counts, strict=True) for at in group[:count]}
            best = max(best, sum((cost for cost, every in items if len(turned.intersection(every)) % 2), Fraction(0)))
        written = "; ".join(coq(each, self.places) for each in factors)
        lists = "; ".join(f"[{'; '.join(map(str, group))}]" for group in groups)
        return alone + best, f"(ByVertices [{written}] [{lists}]%nat)"

    def _attained(self, terms: Sequence[Term], box: Box) -> Fraction:
        """Return how far some units of a box move terms: no claim can be below it."""
        names = [*dict.fromkeys(name for term in terms for name in columns(term.number))]
        points = [
            sorted(
                {(u, v) for u in _some(box[name].own) for v in _some(box[name].other) if u == v or not box[name].shared}
            )
            for name in names
        ]
        best = Fraction(0)
        for chosen in itertools.product(*points):
            exact = {name: Side((u, u), (v, v), shared=False) for name, (u, v) in zip(names, chosen, strict=True)}
            best = max(best, self.by_ranges(terms, exact))
        return best


def _some(range_: Range) -> list[int]:
    low, high = range_
    return sorted({low, high, (low + high) // 2, *([0] if low <= 0 <= high else [])})


def _mask(here: Sequence[bool]) -> str:
    return "; ".join(str(each).lower() for each in here)


def narrowed(box: Box, name: str, to: Range, first: bool) -> Box:
    """Return a box in which a column of the one unit, or of both where it is shared, has a narrower range."""
    side = box[name]
    if side.shared:
        return {**box, name: Side(to, to, shared=True)}
    return {**box, name: replace(side, own=to) if first else replace(side, other=to)}


def factors_of(tree: Number) -> tuple[int, tuple[Number, ...]]:
    """Return a number as a constant and factors."""
    match tree:
        case Constant():
            return tree.value, ()
        case Product():
            (one, left), (other, right) = factors_of(tree.left), factors_of(tree.right)
            return one * other, left + right
    return 1, (tree,)


def _bends(factor: Number) -> bool:
    """Return whether a factor is itself made of products, such as a deficit."""
    return any(isinstance(each, Product) and not isinstance(each.left, Constant) for each in nodes(factor))


def _apart(terms: Sequence[Term], common: frozenset[str]) -> list[list[Term]]:
    """Return terms in groups by the columns that they are made of, those of cells and arms not counted."""
    groups: dict[frozenset[str], list[Term]] = {}
    for term in terms:
        groups.setdefault(frozenset(columns(term.number)) - common - {"treatment", "arm"}, []).append(term)
    return [*groups.values()]


Item = tuple[Fraction, tuple[int, ...]]


def _groups(turning: Sequence[int], items: Sequence[Item]) -> list[list[int]]:
    """Return factors that may turn, those that play the same part together."""
    known = sorted(items)
    groups: list[list[int]] = []
    for at in turning:
        for group in groups:
            swap = {group[-1]: at, at: group[-1]}
            if sorted((cost, tuple(sorted(swap.get(each, each) for each in every))) for cost, every in items) == known:
                group.append(at)
                break
        else:
            groups.append([at])
    return groups
