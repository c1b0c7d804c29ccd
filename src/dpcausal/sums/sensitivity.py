"""How far one unit can move the sums of a description: computed, and certified in exact integers."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpcausal.sums.cases import Domain, Model, model_of
from dpcausal.sums.certificates import Certificate, Norm, Pairs, bound_from, kinds, root_above
from dpcausal.sums.description import Sums
from dpcausal.sums.maximum import Table, TooManyStatesError, largest
from dpcausal.sums.serialization import digest

TOLERANCE = 4e-4
"""How far a bound may be above the largest move that was found, in proportion, where the search can help it."""

_ROUNDS = 14
_MOST_SEARCHED = 100_000
_MOST_ENTRIES = 10_000
_MOST_BENT = 8
"""How many states the search looks at together, how many a certificate may have, and how many squares it follows."""


_MOST_KEPT = 1_000


def sensitivity_bound(description: Sums, domain: Domain, norm: Norm) -> Certificate:
    """Return a bound of how far one unit moves the sums of a description, with its certificate.

    It is kept by the description's digest, and computed once.

    Raises:
        QueryError: If the description is none that the engine can bound.
    """
    key = digest(description), tuple(sorted(domain.codes.items())), domain.changes, domain.leaves, norm
    if key not in _KEPT:
        model = model_of(description, domain)
        cuts = _search(model, norm)
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = Certificate(norm, bound_from(model, norm, cuts), cuts)
    return _KEPT[key]


_KEPT: dict[tuple[object, ...], Certificate] = {}


def together(bounds: Sequence[Fraction], norm: Norm) -> Fraction:
    """Return a bound of several descriptions' sums together, given the bound of each."""
    if norm == "l1":
        return sum(bounds, Fraction(0))
    return root_above(sum((each**2 for each in bounds), Fraction(0)))


Found = dict[tuple[int, int], tuple[int, ...]]


def _search(model: Model, norm: Norm) -> Found:
    """Return cuts with which the bound is near the largest move. Floats may guide where to cut, and decide no bound."""
    power = {"l1": 1, "l2": 2}[norm]
    tolerance = 1 + power * TOLERANCE
    cuts: Found = {}
    tried: Found = {}
    for _ in range(_ROUNDS):
        every = [Pairs(model, kind, tried) for kind in kinds(model)]
        every = [pairs for pairs in every if pairs.possible]
        try:
            attained = max((_attained(pairs, power) for pairs in every), default=0.0)
            more: Found = {}
            for pairs in every:
                _cut(pairs, power, attained * tolerance, more)
        except TooManyStatesError:
            return cuts
        cuts = tried
        if not more:
            break
        tried = {key: tuple(sorted({*cuts.get(key, ()), *more.get(key, ())})) for key in {*cuts, *more}}
    return cuts


def _tables(pairs: Pairs, power: int) -> list[Table]:
    """Return the tables of some pairs in floats.

    Raises:
        TooManyStatesError: If a certificate would have too many states to go through.
    """
    tables, entries = [], 0
    for choices, sizes, form in pairs.changes(np.float64):
        entries += sizes.size
        if pairs.cuts and entries > _MOST_ENTRIES:
            raise TooManyStatesError
        tables.append(Table(choices, (sizes / float(form.weight)) ** power))
    return tables


def _attained(pairs: Pairs, power: int) -> float:
    """Return how far a pair at corners moves, where squares are what they are."""
    sizes = pairs.sizes
    tables = []
    for table in _tables(pairs, power):
        values = table.values
        for axis, choice in enumerate(table.choices):
            if choice >= len(pairs.choices):
                values = values.take([0], axis=axis)
        tables.append(Table(table.choices, values))
    sizes |= {choice: 1 for choice in sizes if choice >= len(pairs.choices)}
    return float(largest(tables, sizes, _MOST_SEARCHED))


def _cut(pairs: Pairs, power: int, target: float, more: Found) -> None:
    """Add a cut in the middle of each piece with which pairs may move further than the target."""
    tables = _tables(pairs, power)
    if not pairs.bent or float(largest(tables, pairs.sizes, _MOST_SEARCHED)) <= target:
        return
    if len(pairs.bent) > _MOST_BENT:
        raise TooManyStatesError
    for side in pairs.bent:
        place = pairs.choice_of[side]
        best = largest(tables, pairs.sizes, _MOST_SEARCHED, keep=place)
        for state in np.flatnonzero(best > target):
            case, (low, high) = pairs.choices[place].pieces[side][state]
            if high - low > 1:
                key = side[0], case
                more[key] = (*more.get(key, ()), (low + high) // 2)
