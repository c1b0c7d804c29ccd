"""Pairs of a unit before and after a change, of every kind: what is chosen, and how far each sum moves.

The proof that these are all: docs/proofs/sums.md.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.sums.cases import NO_CELL, Case, Form, Model
from dpcausal.sums.choices import Boxes, Choice, Side
from dpcausal.sums.limits import spend
from dpcausal.sums.maximum import Array, TooManyStatesError, spread

Cuts = Mapping[tuple[int, int], tuple[int, ...]]
"""Where the range of a variable in a case of its slot is cut: by variable and case, in rising order."""

Known = dict[Boxes, Choice]
"""Choices that were made for other pairs, or with other cuts."""

_MOST_CASES = 300
"""How many cases a slot may have where a unit may go from any to any other."""

_SMALL = 2**62
"""Whole numbers below it are computed in 64 bits."""

OLD, NEW = 0, 1


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


class Change(NamedTuple):
    """How far a form changes at most, in its own unit.

    Attributes:
        straight_choices: The choices on which it depends where squares do not bend.
        straight: How far, for all states of these: pairs at corners move as far.
        choices: The choices on which it depends where they may.
    """

    straight_choices: tuple[int, ...]
    straight: Array
    choices: tuple[int, ...]
    sizes: Array
    form: Form


class Pairs:
    """All pairs of a unit before and after a change of one kind, as choices and forms of their states.

    Attributes:
        choice_of: The place of the choice that decides on a variable.
        bent: The place of the choice whether the square of a variable bends.
    """

    def __init__(self, model: Model, kind: Kind, cuts: Cuts, known: Known) -> None:
        """List the choices; those that are `known` already are not made again, and new ones are added there."""
        self.model, self.kind, self.cuts, self._known = model, kind, cuts, known
        self._shared = {variable for slot in model.slots if not slot.changes for variable in slot.variables}
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
        self._kinds: list[int] = []
        self._numbers: dict[object, int] = {}
        self.choice_of: dict[Side, int] = {}
        for place in range(len(model.slots)):
            self._choose(place)
        self.bent = {side: len(self.choices) + at for at, side in enumerate(sorted(self._bent()))}
        uses = Counter(
            side for form, sides in self.forms for side in self._used(form, sides, squared=True) if side in self.bent
        )
        self._once = {self.bent[side] for side, count in uses.items() if count == 1}
        self._rank = {side: at for choice in self.choices for at, side in enumerate(choice.corners)}
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
        return [(variable, OLD)] if variable in self._shared else [(variable, side) for side in sides]

    def _choose(self, place: int) -> None:
        """Add the choices of a slot: one for both units together, or one for each where nothing ties them."""
        slot, kind = self.model.slots[place], self.kind
        together = kind.cells == "same" or place == kind.slot
        if not slot.changes:
            boxes = [{OLD: at} for at, case in enumerate(slot.cases) if _may(kind, place, case, case)]
            self._add(place, boxes)
        elif together and not kind.absent:
            if len(slot.cases) > _MOST_CASES:
                raise TooManyStatesError
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
        slot = self.model.slots[place]
        sides = [(at, side) for at in range(len(slot.variables)) for side in (boxes[0] if boxes else ())]
        squared = frozenset((at, side) for at, side in sides if (slot.variables[at], side) in self.squared)
        cuts = tuple(
            ((at, case), self.cuts[variable, case])
            for at, variable in enumerate(slot.variables)
            for case in range(len(slot.cases))
            if (variable, case) in self.cuts
        )
        among = Boxes(
            tuple(case.ranges for case in slot.cases),
            tuple(tuple(box.items()) for box in boxes),
            squared,
            frozenset(at for at in {at for (at, _), _ in cuts} if self._factors(slot.variables[at])),
            cuts,
        )
        if among not in self._known:
            self._known[among] = among.choice()
        found = self._known[among]
        self.choice_of |= {(slot.variables[at], side): len(self.choices) for at, side in sides}
        self.choices.append(found.of(slot.variables))
        self._kinds.append(self._numbers.setdefault(found.kind, len(self._numbers)))

    def _factors(self, variable: int) -> bool:
        """Return whether squares of a variable count alike before and after, and no higher power is there.

        Then they change by (u' - u)(u' + u), times what is the same before and after.
        """
        for form, sides in self.forms:
            for each, _ in form.terms:
                power = dict(each).get(variable, 0)
                if power > 2:
                    return False
                if power == 2:
                    others = [other for other, _ in each if other != variable]
                    if sides != (OLD, NEW) or any(self.model.slots[self.model.slot_of[o]].changes for o in others):
                        return False
        return True

    def _bent(self) -> Iterator[Side]:
        for side in self.squared:
            if side in self.choice_of and any(self.choices[self.choice_of[side]].bends[side]):
                yield side

    def bent_alike(self) -> list[list[Side]]:
        """Return the variables whose squares bend, in sets of those that stand alike in all sums."""
        uses: dict[Side, list[object]] = {side: [] for side in self.bent}
        for form, sides in self.forms:
            for monomial, factor in form.terms:
                for variable, power in monomial:
                    for side in self._sides(variable, sides):
                        if side in uses:
                            uses[side].append((form.weight, factor, len(monomial), power))
        found: dict[object, list[Side]] = {}
        for side, own in uses.items():
            place = self.choice_of[side]
            key = self._kinds[place], self._rank[side], tuple(sorted(Counter(own).items()))
            found.setdefault(key, []).append(side)
        return list(found.values())

    @property
    def possible(self) -> bool:
        """Whether there is any such pair."""
        return all(choice.size for choice in self.choices)

    def changes(self, *, exact: bool, most: int) -> Iterator[Change]:
        """Yield how far each form changes at most. Forms that differ only in their choices share their tables.

        Args:
            exact: Whether to compute in whole numbers; else in floats.
            most: How many numbers different tables may have together.

        Raises:
            TooManyStatesError: If they have more.
        """
        known: dict[object, tuple[Array, Array]] = {}
        for form, sides in self.forms if self.possible else ():
            used = self._used(form, sides)
            choices = sorted({self.choice_of[side] for side in used})
            bends = sorted({self.bent[side] for side in self._used(form, sides, squared=True) if side in self.bent})
            axes = (*choices, *bends)
            key = self._likeness(form, sides, axes)
            if key not in known:
                states = math.prod(self.sizes[each] for each in axes)
                most -= states
                if most < 0:
                    raise TooManyStatesError
                steps = states * (15 + len(sides) * sum(1 + len(each) for each, _ in form.terms))
                spend(steps if exact else steps // 16)
                known[key] = self._sizes(form, sides, axes, exact=exact)
            straight, sizes = known[key]
            yield Change(tuple(choices), straight, tuple(each for each in axes if each not in self._once), sizes, form)

    def _likeness(self, form: Form, sides: Sequence[int], axes: Sequence[int]) -> object:
        """Return what tells a form's changes from others: many forms differ only in which variables they are of."""
        place = {axis: at for at, axis in enumerate(axes)}
        terms: list[int | None] = []
        for side in sides:
            for monomial, factor in form.terms:
                terms += (factor, len(monomial))
                for variable, power in monomial:
                    each = (variable, OLD) if variable in self._shared else (variable, side)
                    bent = place.get(self.bent[each]) if each in self.bent else None
                    terms += (place[self.choice_of[each]], self._rank[each], power, bent)
        kept = tuple(self._kinds[axis] if axis < len(self.choices) else axis in self._once for axis in axes)
        return tuple(terms), kept, form.error, len(sides)

    def _sizes(self, form: Form, sides: Sequence[int], axes: Sequence[int], *, exact: bool) -> tuple[Array, Array]:
        """Return how far a form changes at most, in its own unit: where squares do not bend, and where they may."""
        low, high = form.error
        least, most = (low - high, high - low) if len(sides) > 1 else (low, high)
        bends = sum(each >= len(self.choices) for each in axes)
        dtype: Any = np.float64
        if exact:
            dtype = np.int64 if self._most(form, sides) + max(-least, most, 0) < _SMALL else object
        value: Array = np.zeros([1] * len(axes), dtype=dtype)
        for side in sides:
            for monomial, factor in form.terms:
                part: Array = np.full([1] * len(axes), factor if side == sides[0] else -factor, dtype=dtype)
                for variable, power in monomial:
                    part = part * self._power(variable, power, side, axes, dtype)
                value = value + part
        size = np.broadcast_to(
            np.maximum(np.abs(value + least), np.abs(value + most)), [self.sizes[each] for each in axes]
        )
        straight = size.reshape([*size.shape[: len(axes) - bends], -1])[..., 0]  # the first state of a bend is none
        # A bend of no other form is chosen at once.
        return straight, size.max(axis=tuple(at for at, each in enumerate(axes) if each in self._once))

    def _power(self, variable: int, power: int, at: int, axes: Sequence[int], dtype: Any) -> Array:  # noqa: ANN401
        """Return a power of a variable in all states, where its square may bend."""
        (side,) = self._sides(variable, (at,))
        place = self.choice_of[side]
        choice = self.choices[place]
        factor = spread((place,), np.array(choice.corners[side], dtype=dtype) ** power, axes)
        if power > 1 and side in self.bent:
            _check_power(power)
            bends = spread((place,), np.array(choice.bends[side], dtype=dtype), axes)
            factor = factor - bends * spread((self.bent[side],), np.array([0, 1], dtype=dtype), axes)
        return factor

    def _most(self, form: Form, sides: Sequence[int]) -> int:
        """Return what no step on the way to a form's change exceeds."""
        total = 0
        for side in sides:
            for monomial, factor in form.terms:
                part = abs(factor)
                for variable, power in monomial:
                    (each,) = self._sides(variable, (side,))
                    choice = self.choices[self.choice_of[each]]
                    corner = max(map(abs, choice.corners[each])) ** power
                    part *= max(1, corner + max(choice.bends.get(each, ()), default=0))
                total += part
        return total

    def _used(self, form: Form, sides: Sequence[int], *, squared: bool = False) -> set[Side]:
        least = 2 if squared else 1
        used = {var for each, _ in form.terms for var, power in each if power >= least}
        return {side for var in used for side in self._sides(var, sides)}


def _check_power(power: int) -> None:
    if power > 2:
        raise QueryError(
            expected="at most the square of a number in each sum",
            got=f"its power of {power}",
            hint="give the power a range of its own: Shift(number * number, bits) * number.",
        )
