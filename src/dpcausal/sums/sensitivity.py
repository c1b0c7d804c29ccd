"""How far one unit can move the sums of a description: computed, and certified in exact integers."""

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcausal.sums.cases import Domain, Model, model_of
from dpcausal.sums.certificates import POWERS, Certificate, Norm, bound_from
from dpcausal.sums.description import Sums
from dpcausal.sums.limits import TooMuchWorkError, limited_work
from dpcausal.sums.maximum import Array, ChoiceTable, TooManyStatesError, largest, tied
from dpcausal.sums.pairs import Cuts, Kind, Known, Pairs, kinds
from dpcausal.sums.roots import root_above

TOLERANCE = 8e-4
"""How far a bound may be above the largest move that was found, in proportion, where the search can help it."""

_ROUNDS = 14
_MOST_SEARCHED = 400_000
_MOST_ENTRIES = 100_000
"""How many states the search looks at together, and how many a certificate may have."""

_PARTS = 4
"""In how many a piece is cut; in 2 where these are too many."""


def sensitivity_bound(description: Sums, domain: Domain, norm: Norm) -> Certificate:
    """Return a bound of how far one unit moves the sums of a description, with its certificate.

    It is kept by what a unit may add, and computed once for all descriptions of which that is the same.
    """
    return _kept_bound(_model(description, domain), norm)


def computed_bound(description: Sums, domain: Domain, norm: Norm) -> Certificate:
    """Return what `sensitivity_bound` keeps."""
    return _computed(_model(description, domain), norm)


def _model(description: Sums, domain: Domain) -> Model:
    with limited_work():
        return model_of(description, domain)


def _computed(model: Model, norm: Norm) -> Certificate:
    known: Known = {}
    with limited_work():
        cuts = _search(model, norm, known)
    with limited_work():
        return Certificate(norm, bound_from(model, norm, cuts, known=known), cuts)


_kept_bound = lru_cache(1_000)(_computed)


def together(bounds: Sequence[Fraction], norm: Norm) -> Fraction:
    """Return a bound of several descriptions' sums together, given the bound of each."""
    if norm == "l1":
        return sum(bounds, Fraction(0))
    return root_above(sum((each**2 for each in bounds), Fraction(0)))


def _search(model: Model, norm: Norm, known: Known) -> dict[Kind, Cuts]:
    """Return cuts with which the bound is near the largest move. Floats may guide where to cut, and decide no bound."""
    if all(times == 1 for form in model.forms for each, _ in form.terms for _, times in each):
        return {}
    tried: list[_Tried] = []
    with suppress(TooMuchWorkError):  # then the cuts so far are all
        _try_cuts(model, norm, known, tried)
    return {each.pairs.kind: each.pairs.cuts for each in tried if each.pairs.cuts}


def _try_cuts(model: Model, norm: Norm, known: Known, tried: list["_Tried"]) -> None:
    """Cut further and further, for each kind of change: what was tried last is in the list."""
    power = POWERS[norm]
    for kind in kinds(model):
        with suppress(TooManyStatesError):
            tried.append(_Tried(Pairs(model, kind, {}, known), power))
    parts = dict.fromkeys((each.pairs.kind for each in tried), _PARTS)
    for _ in range(_ROUNDS):
        target = max((each.attained for each in tried), default=0.0) * (1 + power * TOLERANCE)
        target = max([target, *(each.most for each in tried if not parts[each.pairs.kind])])
        for place, each in enumerate(tried):
            kind = each.pairs.kind
            if each.most <= target or not parts[kind]:
                continue
            try:
                tried[place] = _Tried(Pairs(model, kind, each.more_cuts(target, parts[kind]), known), power)
            except TooManyStatesError:
                parts[kind] = 2 if parts[kind] > 2 else 0


class _Tried:
    """Some cuts, and how far pairs may move with them, to the power of the norm.

    Attributes:
        attained: How far pairs at corners move, where squares are what they are.
        most: How far pairs may move, as far as the cuts tell.
    """

    def __init__(self, pairs: Pairs, power: int) -> None:
        self.pairs = pairs
        found = list(pairs.changes(exact=False, most=_MOST_ENTRIES if pairs.cuts else _MOST_SEARCHED))
        shares: dict[tuple[int, Fraction], Array] = {}
        for change in found:
            for sizes in (change.straight, change.sizes):
                key = id(sizes), change.form.weight
                if key not in shares:
                    shares[key] = (sizes / float(change.form.weight)) ** power
        weights = [change.form.weight for change in found]
        straight = [
            ChoiceTable(change.straight_choices, shares[id(change.straight), weight])
            for change, weight in zip(found, weights, strict=True)
        ]
        self._groups = tied(
            ChoiceTable(change.choices, shares[id(change.sizes), weight])
            for change, weight in zip(found, weights, strict=True)
        )
        self.attained = float(largest(straight, pairs.sizes, _MOST_SEARCHED))
        self._mosts = [float(largest(each, pairs.sizes, _MOST_SEARCHED)) for each in self._groups if pairs.bent]
        self.most = sum(self._mosts) if pairs.bent else self.attained

    def more_cuts(self, target: float, parts: int) -> Cuts:
        """Return the cuts, and those of each piece with which pairs may move further than a target into some parts."""
        cuts = {key: set(each) for key, each in self.pairs.cuts.items()}
        for sides in self.pairs.bent_alike():
            place = self.pairs.choice_of[sides[0]]
            at = next(at for at, group in enumerate(self._groups) if any(place in each.choices for each in group))
            best = largest(self._groups[at], self.pairs.sizes, _MOST_SEARCHED, keep=place) + self.most - self._mosts[at]
            pieces = self.pairs.choices[place].pieces[sides[0]]
            for case, (low, high) in {pieces[state] for state in np.flatnonzero(best > target)}:
                inner = {low + (high - low) * part // parts for part in range(1, parts)} - {low, high}
                for variable, _ in sides:
                    cuts.setdefault((variable, case), set()).update(inner)
        return {key: tuple(sorted(each)) for key, each in cuts.items()}
