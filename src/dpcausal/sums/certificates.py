"""Certificates of bounds: where ranges are cut, and the bound that follows from it in exact integers.

`bound_from` needs no search: it goes through all kinds of neighbours, and in each through all corners of all pieces.
Between corners a number bends by no more than (high - low)² / 4 for a square, and not at all for anything else. The
search in `sensitivity` only proposes cuts, and a bad proposal makes a bound larger, never wrong. The proof:
docs/proofs/sums.md.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.sums.cases import NO_CELL, Case, Domain, Form, Model, Monomial, model_of
from dpcausal.sums.description import Sums
from dpcausal.sums.intervals import Range
from dpcausal.sums.limits import spend
from dpcausal.sums.maximum import MOST_STATES, Array, Table, TooManyStatesError, largest, spread

Norm = Literal["l1", "l2"]
Cuts = Mapping[tuple[int, int], tuple[int, ...]]
"""Where the range of a variable in a case of its slot is cut: by variable and case, in rising order."""

CutsOfKinds = Mapping["Kind", Cuts]

_BITS = 58
"""All tables together are below 2^58, in integers of 64 bits."""

_MOST_CASES = 300
"""How many cases a slot may have where a unit may go from any to any other."""

OLD, NEW = 0, 1


@dataclass(frozen=True)
class Certificate:
    """A bound with what is needed to check it.

    Attributes:
        norm: The norm of changes.
        bound: No neighbour moves the sums further, in units of their weights.
        cuts: Where ranges of variables are cut, for each kind of change; none where nothing is.
    """

    norm: Norm
    bound: Fraction
    cuts: CutsOfKinds


def check(certificate: Certificate, description: Sums, domain: Domain) -> bool:
    """Return whether the bound of a certificate follows from its cuts, in exact integers."""
    return bound_from(model_of(description, domain), certificate.norm, certificate.cuts) <= certificate.bound


def bound_from(model: Model, norm: Norm, cuts: CutsOfKinds) -> Fraction:
    """Return the bound that follows from cuts.

    Raises:
        QueryError: If there are too many cases to go through.
    """
    moved = (moved_exactly(Pairs(model, kind, cuts.get(kind, {})), norm) for kind in kinds(model))
    most = max(moved, default=Fraction(0))
    return most if norm == "l1" else root_above(most)


def root_above(number: Fraction) -> Fraction:
    """Return a fraction that is not below the square root of a fraction, and hardly above it."""
    scaled = -(-number.numerator * 10**24 // number.denominator)
    root = math.isqrt(scaled)
    return Fraction(root if root * root == scaled else root + 1, 10**12)


@dataclass(frozen=True)
class Kind:
    """One way in which a unit may change.

    Attributes:
        cells: `same`: it stays in its cell. `apart`: it goes from one cell to another. `one`: it is in a cell before
            and in none after. `none`: it is in no cell, before and after.
        slot: The slot by which cells differ, where they do.
        absent: Whether it leaves the comparison, and adds nothing to any sum after.
    """

    cells: Literal["same", "apart", "one", "none"]
    slot: int = -1
    absent: bool = False


def kinds(model: Model) -> Iterator[Kind]:
    """Yield every way in which a unit may change. The reverse of a change moves sums as far."""
    yield Kind("same")
    outside = [any(NO_CELL in case.cells for case in slot.cases) for slot in model.slots]
    for place, slot in enumerate(model.slots):
        if slot.changes and len(frozenset().union(*(case.cells for case in slot.cases)) - {NO_CELL}) > 1:
            yield Kind("apart", place)
        if slot.changes and outside[place]:
            yield Kind("one", place)
    whole = any(form.whole for form in model.forms)
    if whole and any(outside):
        yield Kind("none")
    if model.leaves:
        yield Kind("one", absent=True)
        if whole and any(outside):
            yield Kind("none", absent=True)


def _may(kind: Kind, place: int, old: Case, new: Case) -> bool:
    """Return whether a unit may be in these cases of a slot before and after."""
    before, after = old.cells - {NO_CELL}, new.cells - {NO_CELL}
    if kind.cells == "none":
        return True
    if kind.cells == "same":
        return bool(before & after)
    if kind.cells == "one":
        return bool(before) and (place != kind.slot or NO_CELL in new.cells)
    if place == kind.slot:
        return len(before | after) > 1 and bool(before) and bool(after)
    return bool(before) and bool(after)


Side = tuple[int, int]
"""A variable, before (`OLD`) or after (`NEW`) the change."""


@dataclass
class Choice:
    """What is chosen together: states, and in each the value of variables and how far their squares may bend.

    Attributes:
        corners: The value of each variable in each state.
        bends: By how much the square of a variable may be below the line between the ends of its piece, in each state.
        pieces: The case and the piece of each variable that is squared, in each state.
        size: How many states there are.
    """

    corners: dict[Side, list[int]] = field(default_factory=dict)
    bends: dict[Side, list[int]] = field(default_factory=dict)
    pieces: dict[Side, list[tuple[int, Range]]] = field(default_factory=dict)
    size: int = 0

    def add(self, ranges: Mapping[Side, Range], squared: Mapping[Side, int]) -> None:
        """Add the corners of a box as states, given the cases of variables that are squared."""
        ends = [range_ if range_[0] < range_[1] else range_[:1] for range_ in ranges.values()]
        spend(20 * (1 + len(ranges)) * math.prod(map(len, ends)))
        for corner in itertools.product(*ends):
            self.size += 1
            for side, value in zip(ranges, corner, strict=True):
                self.corners.setdefault(side, []).append(value)
            for side, case in squared.items():
                low, high = ranges[side]
                self.bends.setdefault(side, []).append((high - low) ** 2 // 4)
                self.pieces.setdefault(side, []).append((case, (low, high)))


class Pairs:
    """All pairs of a unit before and after a change of one kind, as choices and forms of their states.

    Attributes:
        choices: What is chosen.
        choice_of: The place of the choice that decides on a variable.
        bent: The place of the choice whether the square of a variable bends.
        sizes: How many states each choice has.
    """

    def __init__(self, model: Model, kind: Kind, cuts: Cuts) -> None:
        self.model, self.kind, self.cuts = model, kind, cuts
        self.forms = tuple(self._forms())
        self.squared = frozenset(
            side
            for form, sides in self.forms
            for each, _ in form.terms
            for var, power in each
            if power > 1
            for side in self._sides(var, sides)
        )
        self.choices: list[Choice] = []
        self.choice_of: dict[Side, int] = {}
        for place in range(len(model.slots)):
            self._choose(place)
        self.bent = {side: len(self.choices) + at for at, side in enumerate(sorted(self._bent()))}
        uses = Counter(
            side for form, sides in self.forms for side in self._used(form, sides, squared=True) if side in self.bent
        )
        self._once = {self.bent[side] for side, count in uses.items() if count == 1}
        self.sizes = dict(enumerate([*(choice.size for choice in self.choices), *(2 for _ in self.bent)]))

    def _forms(self) -> Iterator[tuple[Form, tuple[int, ...]]]:
        """Yield what moves: differences of both units, or the part of one of them."""
        for form in self.model.forms:
            if (form.whole and not self.kind.absent) or (not form.whole and self.kind.cells == "same"):
                if form.changes:
                    yield form, (OLD, NEW)
            elif form.whole or self.kind.cells != "none":
                yield form, (OLD,)
                if self.kind.cells == "apart":
                    yield form, (NEW,)

    def _sides(self, variable: int, sides: Sequence[int]) -> list[Side]:
        shared = not self.model.slots[self.model.slot_of[variable]].changes
        return [(variable, OLD)] if shared else [(variable, side) for side in sides]

    def _choose(self, place: int) -> None:
        """Add the choices of a slot: one for both units together, or one for each where nothing ties them."""
        slot, kind = self.model.slots[place], self.kind
        together = kind.cells == "same" or place == kind.slot
        if not slot.changes:
            boxes = [{OLD: at} for at, case in enumerate(slot.cases) if _may(kind, place, case, case)]
            self._add(place, boxes)
        elif together and not kind.absent:
            if len(slot.cases) > _MOST_CASES:
                raise _too_many()
            spend(20 * len(slot.cases) ** 2)
            pairs = itertools.product(enumerate(slot.cases), repeat=2)
            self._add(place, [{OLD: at, NEW: to} for (at, old), (to, new) in pairs if _may(kind, place, old, new)])
        else:
            before = [
                {OLD: at} for at, old in enumerate(slot.cases) if any(_may(kind, place, old, new) for new in slot.cases)
            ]
            self._add(place, before)
            if not kind.absent:
                after = [
                    {NEW: to}
                    for to, new in enumerate(slot.cases)
                    if any(_may(kind, place, old, new) for old in slot.cases)
                ]
                self._add(place, after)

    def _add(self, place: int, boxes: Sequence[Mapping[int, int]]) -> None:
        """Add one choice with the corners of all pieces of some cases."""
        slot, choice = self.model.slots[place], Choice()
        for box in boxes:
            spend(40 * len(slot.variables) * len(box))
            parts = [self._parts(variable, at, slot.cases, box) for at, variable in enumerate(slot.variables)]
            spend(20 * len(slot.variables) * math.prod(map(len, parts)))
            for pieces in itertools.product(*parts):
                ranges = {side: range_ for piece in pieces for side, range_ in piece.items()}
                choice.add(ranges, {side: box[side[1]] for side in ranges if side in self.squared})
            if not slot.variables:
                choice.size += 1
        for variable in slot.variables:
            for side in boxes[0] if boxes else ():
                self.choice_of[variable, side] = len(self.choices)
        self.choices.append(choice)

    def _parts(self, variable: int, at: int, cases: Sequence[Case], box: Mapping[int, int]) -> list[dict[Side, Range]]:
        """Return the pieces of a variable's ranges, before and after."""
        ranges = {(variable, side): cases[case].ranges[at] for side, case in box.items()}
        if self.squared.isdisjoint(ranges):
            return [ranges]
        cut = {side: self._cut(side, box[side[1]], range_) for side, range_ in ranges.items()}
        if len(ranges) == 2 and max(map(len, cut.values())) > 1 and self._factors(variable):
            # The largest change is where one of both units is at an end.
            old, new = ranges
            return [
                *({old: (end, end), new: piece} for end in set(ranges[old]) for piece in cut[new]),
                *({old: piece, new: (end, end)} for end in set(ranges[new]) for piece in cut[old]),
            ]
        return [dict(zip(ranges, each, strict=True)) for each in itertools.product(*cut.values())]

    def _cut(self, side: Side, case: int, range_: Range) -> list[Range]:
        """Return the pieces of a range."""
        if side not in self.squared:
            return [range_]
        low, high = range_
        inner = [each for each in self.cuts.get((side[0], case), ()) if low < each < high]
        return list(itertools.pairwise([low, *inner, high])) or [range_]

    def _factors(self, variable: int) -> bool:
        """Return whether squares of a variable count alike before and after.

        Then they change by (u' - u)(u' + u), times what is the same before and after.
        """
        for form, sides in self.forms:
            for each, _ in form.terms:
                if dict(each).get(variable, 0) > 1:
                    others = [other for other, _ in each if other != variable]
                    if sides != (OLD, NEW) or any(self.model.slots[self.model.slot_of[o]].changes for o in others):
                        return False
        return True

    def _bent(self) -> Iterator[Side]:
        for side in self.squared:
            if side in self.choice_of and any(self.choices[self.choice_of[side]].bends[side]):
                yield side

    @property
    def possible(self) -> bool:
        """Whether there is any such pair."""
        return all(choice.size for choice in self.choices)

    def changes(self, dtype: Any, *, straight: bool = False) -> Iterator[tuple[tuple[int, ...], Array, Form]]:  # noqa: ANN401
        """Yield the largest size of the change of each form, in its own unit, for all states of its choices.

        Args:
            dtype: In what to compute: `object` for exact integers.
            straight: Whether squares do not bend: how far pairs at corners move.
        """
        bent = {} if straight else self.bent
        for form, sides in self.forms:
            involved = {self.choice_of[side] for side in self._used(form, sides)}
            involved |= {bent[side] for side in self._used(form, sides, squared=True) if side in bent}
            choices = tuple(sorted(involved))
            if (states := math.prod(self.sizes[each] for each in choices)) > MOST_STATES:
                raise _too_many()
            steps = states * (15 + len(sides) * sum(1 + len(each) for each, _ in form.terms))
            spend(steps if dtype is object else steps // 16)
            value: Array = np.zeros([1] * len(choices), dtype=dtype)
            for side in sides:
                total = sum(
                    (factor * self._monomial(each, side, choices, dtype) for each, factor in form.terms),
                    np.zeros([1] * len(choices), dtype=dtype),
                )
                value = value + (total if side == sides[0] else -total)
            low, high = form.error
            least, most = (low - high, high - low) if len(sides) > 1 else (low, high)
            size = np.asarray(np.maximum(np.abs(value + least), np.abs(value + most)), dtype=dtype)
            # A bend of no other form is chosen at once.
            own = [choices.index(bend) for bend in involved if bend in self._once]
            left = tuple(each for each in choices if each not in self._once)
            yield left, np.broadcast_to(size.max(axis=tuple(own)), [self.sizes[each] for each in left]), form

    def _used(self, form: Form, sides: Sequence[int], *, squared: bool = False) -> set[Side]:
        least = 2 if squared else 1
        used = {var for each, _ in form.terms for var, power in each if power >= least}
        return {side for var in used for side in self._sides(var, sides)}

    def _monomial(self, monomial: Monomial, at: int, choices: tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401
        value: Array = np.ones([1] * len(choices), dtype=dtype)
        for variable, power in monomial:
            (side,) = self._sides(variable, (at,))
            choice = self.choices[self.choice_of[side]]
            corner = np.array(choice.corners[side], dtype=dtype)
            factor = spread((self.choice_of[side],), corner**power, choices)
            if power > 1 and self.bent.get(side) in choices:
                _check_power(power)
                bend = np.array(choice.bends[side], dtype=dtype)
                bends = spread((self.choice_of[side],), bend, choices)
                factor = factor - bends * spread((self.bent[side],), np.array([0, 1], dtype=dtype), choices)
            value = value * factor
        return value


def _check_power(power: int) -> None:
    if power > 2:
        raise QueryError(
            expected="at most the square of a number in each sum",
            got=f"its power of {power}",
            hint="give the power a range of its own: Shift(number * number, bits) * number.",
        )


def moved_exactly(pairs: Pairs, norm: Norm) -> Fraction:
    """Return how far pairs move all sums at most, to the power of the norm; every rounding is up."""
    if not pairs.possible:
        return Fraction(0)
    power = {"l1": 1, "l2": 2}[norm]
    found = [
        (choices, sizes.shape, [int(each) ** power for each in sizes.flat], form.weight**power)
        for choices, sizes, form in pairs.changes(object)
    ]
    whole = sum((max(sizes) / weight for _, _, sizes, weight in found), Fraction(0))
    if not whole:
        return Fraction(0)
    unit = Fraction(2) ** (_BITS - math.ceil(whole).bit_length() - len(found).bit_length())
    tables = []
    for choices, shape, sizes, weight in found:
        share = unit / weight
        rounded = [-(-each * share.numerator // share.denominator) for each in sizes]
        tables.append(Table(choices, np.array(rounded, dtype=np.int64).reshape(shape)))
    try:
        return Fraction(int(largest(tables, pairs.sizes))) / unit
    except TooManyStatesError:
        raise _too_many() from None


def _too_many() -> QueryError:
    return QueryError(
        expected="sums of few columns, or of many that play the same part",
        got="too many cases to go through",
        hint="ask for fewer products of different columns, or in several queries.",
    )
