"""How far one unit can move the sums of a description: computed, and certified in exact integers."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.sums.cases import Domain, Model, model_of
from dpcausal.sums.certificates import Certificate, Cuts, Kind, Norm, Pairs, bound_from, kinds, root_above
from dpcausal.sums.description import Sums
from dpcausal.sums.limits import limited_work
from dpcausal.sums.maximum import Table, TooManyStatesError, largest

TOLERANCE = 8e-4
"""How far a bound may be above the largest move that was found, in proportion, where the search can help it."""

_ROUNDS = 14
_MOST_SEARCHED = 400_000
_MOST_ENTRIES = 60_000
_MOST_BENT = 8
"""How many states the search looks at together, how many a certificate may have, and how many squares it follows."""


_MOST_KEPT = 1_000


def sensitivity_bound(description: Sums, domain: Domain, norm: Norm) -> Certificate:
    """Return a bound of how far one unit moves the sums of a description, with its certificate.

    It is kept, and computed once.

    Raises:
        QueryError: If the description is none that the engine can bound.
    """
    told = (description.cells, description.numbers, description.whole, description.weights, domain.codes)
    key = *(tuple(each.items()) for each in told), description.everyone, domain.changes, domain.leaves, norm
    if key not in _KEPT:
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = computed_bound(description, domain, norm)
    return _KEPT[key]


def computed_bound(description: Sums, domain: Domain, norm: Norm) -> Certificate:
    """Return what `sensitivity_bound` keeps."""
    with limited_work():
        model = model_of(description, domain)
    with limited_work():
        cuts = _search(model, norm)
    with limited_work():
        return Certificate(norm, bound_from(model, norm, cuts), cuts)


_KEPT: dict[tuple[object, ...], Certificate] = {}


def together(bounds: Sequence[Fraction], norm: Norm) -> Fraction:
    """Return a bound of several descriptions' sums together, given the bound of each."""
    if norm == "l1":
        return sum(bounds, Fraction(0))
    return root_above(sum((each**2 for each in bounds), Fraction(0)))


def _search(model: Model, norm: Norm) -> dict[Kind, Cuts]:
    """Return cuts with which the bound is near the largest move. Floats may guide where to cut, and decide no bound."""
    power = {"l1": 1, "l2": 2}[norm]
    if all(times == 1 for form in model.forms for each, _ in form.terms for _, times in each):
        return {}
    try:
        tried = [_Tried(Pairs(model, kind, {}), power) for kind in kinds(model)]
    except TooManyStatesError:
        return {}
    done: set[Kind] = set()
    for _ in range(_ROUNDS):
        target = max((each.attained for each in tried), default=0.0) * (1 + power * TOLERANCE)
        target = max([target, *(each.most for each in tried if each.pairs.kind in done)])
        for place, each in enumerate(tried):
            if each.most <= target or each.pairs.kind in done:
                continue
            try:
                tried[place] = _Tried(Pairs(model, each.pairs.kind, each.more_cuts(target)), power)
            except (TooManyStatesError, QueryError):
                done.add(each.pairs.kind)
    return {each.pairs.kind: each.pairs.cuts for each in tried if each.pairs.cuts}


class _Tried:
    """Some cuts, and how far pairs may move with them, to the power of the norm.

    Attributes:
        attained: How far pairs at corners move, where squares are what they are.
        most: How far pairs may move, as far as the cuts tell.
    """

    def __init__(self, pairs: Pairs, power: int) -> None:
        self.pairs, self.attained, self.most = pairs, 0.0, 0.0
        straight, self._tables = (self._tables_of(power, straight=straight) for straight in (True, False))
        self.attained = float(largest(straight, pairs.sizes, _MOST_SEARCHED))
        self.most = float(largest(self._tables, pairs.sizes, _MOST_SEARCHED)) if pairs.bent else self.attained

    def _tables_of(self, power: int, *, straight: bool) -> list[Table]:
        tables, entries = [], 0
        for choices, sizes, form in self.pairs.changes(np.float64, straight=straight) if self.pairs.possible else ():
            entries += sizes.size
            if self.pairs.cuts and entries > _MOST_ENTRIES:
                raise TooManyStatesError
            tables.append(Table(choices, (sizes / float(form.weight)) ** power))
        return tables

    def more_cuts(self, target: float) -> Cuts:
        """Return the cuts, and one in the middle of each piece with which pairs may move further than a target."""
        parts = {place: self._part(place) for place in {self.pairs.choice_of[side] for side in self.pairs.bent}}
        alike: dict[object, int] = {}
        for place in sorted(parts):
            alike.setdefault(parts[place], place)
        if len(alike) > _MOST_BENT:
            raise TooManyStatesError
        best = {
            part: largest(self._tables, self.pairs.sizes, _MOST_SEARCHED, keep=place) for part, place in alike.items()
        }
        cuts = {key: set(each) for key, each in self.pairs.cuts.items()}
        for side in self.pairs.bent:
            place = self.pairs.choice_of[side]
            pieces = self.pairs.choices[place].pieces[side]
            for case, (low, high) in {pieces[state] for state in np.flatnonzero(best[parts[place]] > target)}:
                if high - low > 1:
                    cuts.setdefault((side[0], case), set()).add((low + high) // 2)
        return {key: tuple(sorted(each)) for key, each in cuts.items()}

    def _part(self, place: int) -> object:
        """Return what part a choice plays in all tables. Choices that play the same part are cut alike."""
        own = [table for table in self._tables if place in table.choices]
        others = (tuple(each if each != place else -1 for each in table.choices) for table in own)
        return frozenset(Counter((at, table.values.tobytes()) for at, table in zip(others, own, strict=True)).items())
