"""The largest sum of tables, each of which depends on a few of many choices.

A choice is numbered, and has a number of states. A table gives an integer for all states of its choices. Choices are
taken out one after another, each time the cheapest one; many choices that play the same part are counted: how many of
them are in each state is all that matters. Integers stay integers, so a largest sum of integers is exact. Where states
are too many, choices that play nearly the same part are made alike: tables are raised, and so is the largest sum.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.sums.limits import spend

Array = NDArray[Any]
Key = tuple[int, ...]

MOST_STATES = 2_000_000
"""The most states of choices that are looked at together."""

_LARGEST = 2**62
"""All tables together stay below it."""


class TooManyStatesError(Exception):
    """Too many states would have to be looked at together."""


@dataclass(frozen=True)
class ChoiceTable:
    """Numbers for all states of some choices, which are in rising order: one axis for each."""

    choices: Key
    values: Array


def largest(
    tables: Iterable[ChoiceTable],
    sizes: Mapping[int, int],
    most: int = MOST_STATES,
    *,
    keep: int = -1,
    raising: bool = False,
) -> Array:
    """Return the largest sum of tables over all states of all choices.

    Args:
        most: The most states that are looked at together.
        keep: A choice to keep: the largest sum for each of its states.
        raising: Whether tables may be raised where there are more states. Then the sum is not below the largest.

    Raises:
        TooManyStatesError: If more states would have to be looked at together.
    """
    total: Array = np.zeros((), dtype=np.int64)
    for group in tied(tables):
        total = total + _largest_of_tied(group, sizes, most, keep, raising=raising)
        if total.max() >= _LARGEST:
            raise TooManyStatesError
    return total


def tied(tables: Iterable[ChoiceTable]) -> list[list[ChoiceTable]]:
    """Return tables in groups that have no choice in common: their largest sums add up."""
    groups: list[tuple[set[int], list[ChoiceTable]]] = []
    for table in tables:
        spend(len(groups))
        choices, members, apart = set(table.choices), [table], []
        for group in groups:
            if choices.isdisjoint(group[0]):
                apart.append(group)
            else:
                choices, members = choices | group[0], [*group[1], *members]
        groups = [*apart, (choices, members)]
    return [members for _, members in groups]


def _largest_of_tied(
    tables: Iterable[ChoiceTable], sizes: Mapping[int, int], most: int, keep: int, *, raising: bool
) -> Array:
    left = _Tables(sizes)
    for table in tables:
        left.add(table.choices, table.values)
    while True:
        choices = sorted(choice for choice, keys in left.keys_of.items() if keys and choice != keep)
        if not choices:
            break
        spend(30 * len(choices))
        cost, choice = min((left.cost(choice), choice) for choice in choices)
        spend(min(cost, most) // 4)
        if cost <= most:
            left.take_out(choice)
        else:
            _Counting(left, choices, most).count(raising=raising)
    total: Array = sum((each for each in left.values.values()), np.zeros((), dtype=np.int64))
    return total


class _Tables:
    """Tables that are added up, one for each set of choices."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.values: dict[Key, Array] = {}
        self.sizes = dict(sizes)
        self.keys_of: dict[int, set[Key]] = {}
        self._costs: dict[int, int] = {}

    def add(self, key: Key, values: Array) -> None:
        """Add a table."""
        if key in self.values:
            self.values[key] = self.values[key] + values
            return
        self.values[key] = values
        for choice in key:
            self.keys_of.setdefault(choice, set()).add(key)
            self._costs.pop(choice, None)

    def pop(self, key: Key) -> Array:
        """Remove a table, and return it."""
        for choice in key:
            self.keys_of[choice].remove(key)
            self._costs.pop(choice, None)
        return self.values.pop(key)

    def cost(self, choice: int) -> int:
        """Return the number of states that are looked at together to take a choice out."""
        if choice not in self._costs:
            joined = set().union(*self.keys_of[choice])
            self._costs[choice] = math.prod(self.sizes[each] for each in joined)
        return self._costs[choice]

    def take_out(self, choice: int) -> None:
        """Take the best state of a choice, whatever the states of the others."""
        own = [(key, self.pop(key)) for key in sorted(self.keys_of[choice])]
        joined = tuple(sorted(set().union(*(key for key, _ in own))))
        best = spread(*own[0], joined)
        for key, values in own[1:]:
            best = best + spread(key, values, joined)
        self.add(tuple(each for each in joined if each != choice), best.max(axis=joined.index(choice)))


def spread(choices: Sequence[int], values: Array, joined: Sequence[int]) -> Array:
    """Return a table with an axis for each of more choices."""
    return values.reshape([values.shape[choices.index(each)] if each in choices else 1 for each in joined])


class _Counting:
    """Choices that play the same part, in sets."""

    def __init__(self, tables: _Tables, choices: Sequence[int], most: int) -> None:
        self._tables, self._most = tables, most
        spend(len(choices) ** 2 * len(tables.values))
        self._known: dict[tuple[tuple[int, ...], bytes], int] = {}
        self._turned: dict[tuple[Key, tuple[int, ...]], int] = {}
        self._sets: list[list[int]] = []
        for choice in choices:
            home = next((each for each in self._sets if self._exchangeable(each[-1], choice)), None)
            if home is None:
                self._sets.append([choice])
            else:
                home.append(choice)

    def count(self, *, raising: bool) -> None:
        """Replace the largest set of exchangeable choices by one: how many are in each state."""
        while raising and (crowded := self._crowded()):
            self._join(crowded)
        chosen = max(self._sets, key=len)
        states, count, tables = self._tables.sizes[chosen[0]], len(chosen), self._tables
        if count < 3 or self._counts(chosen) * states > self._most:
            raise TooManyStatesError
        counts = np.array(_compositions(count, states), dtype=np.int64)
        new = max(tables.sizes) + 1
        tables.sizes[new] = len(counts)
        for key in sorted(set().union(*(tables.keys_of[each] for each in chosen))):
            members, others = _members(key, chosen)
            values = tables.pop(key)
            if members == chosen[: len(members)]:  # the others of its kind are equal to it
                if math.prod(tables.sizes[each] for each in (*others, new)) > self._most:
                    raise TooManyStatesError
                last = np.moveaxis(values, [key.index(each) for each in members], range(-len(members), 0))
                tables.add((*others, new), _total(last, counts, len(members)))

    def _counts(self, members: Sequence[int]) -> int:
        """Return how many states a set of choices has together."""
        states = self._tables.sizes[members[0]]
        return math.comb(len(members) + states - 1, states - 1) if len(members) > 2 else int(states ** len(members))

    def _crowded(self) -> list[list[int]]:
        """Return sets of which tables tie each to another, and that have too many states together; none if none do."""
        left = list(self._sets)
        while left:
            tied, reached = [], {left[0][0]}
            while more := [each for each in left if not reached.isdisjoint(each)]:
                tied += more
                left = [each for each in left if each not in more]
                reached = {near for each in more for one in each for key in self._tables.keys_of[one] for near in key}
            if math.prod(map(self._counts, tied)) > self._most:
                return tied
        return []

    def _join(self, sets: Sequence[list[int]]) -> None:
        """Make two of some sets of choices alike, for which tables are raised least."""
        sizes, best = self._tables.sizes, None
        for one, other in itertools.combinations(sets, 2):
            if sizes[one[0]] == sizes[other[0]] and (raised := self._raised(sorted([*one, *other]))):
                lost = sum(float((values - self._tables.values.get(key, 0)).max()) for key, values in raised.items())
                if best is None or lost < best[0]:
                    best = lost, one, other, raised
        if best is None:
            raise TooManyStatesError
        _, one, other, raised = best
        for key, values in raised.items():
            if key in self._tables.values:
                self._tables.pop(key)
            self._tables.add(key, values)
        if sum(int(values.max()) for values in self._tables.values.values()) >= _LARGEST:
            raise TooManyStatesError
        self._sets = [each for each in self._sets if each not in (one, other)] + [sorted([*one, *other])]
        self._turned.clear()

    def _raised(self, chosen: Sequence[int]) -> dict[Key, Array]:
        """Return tables with which choices are exchangeable, each as large as any of its kind; none if none are."""
        kinds: dict[tuple[int, Key], dict[int, Array]] = {}
        for key in set().union(*(self._tables.keys_of[each] for each in chosen)):
            members, others = _members(key, chosen)
            if len(members) > 2:
                return {}
            own = [key.index(each) for each in members]
            for order in itertools.permutations(own):
                last = (*(at for at in range(len(key)) if at not in own), *order)
                found = kinds.setdefault((len(members), others), {})
                number = self._number(key, last)
                if number not in found:
                    found[number] = self._tables.values[key].transpose(last)
        raised = {}
        for (count, others), found in kinds.items():
            every = list(itertools.combinations(chosen, count))
            top = np.max(list(found.values()), axis=0)
            if any(tuple(sorted((*others, *members))) not in self._tables.values for members in every):
                top = np.maximum(top, 0)
            for each in every:
                joined = (*others, *each)
                rising = sorted(range(len(joined)), key=joined.__getitem__)
                raised[tuple(joined[at] for at in rising)] = top.transpose(rising)
        return raised

    def _number(self, key: Key, order: tuple[int, ...]) -> int:
        """Return the number of a table with its axes in some order: the same for equal ones."""
        if (key, order) not in self._turned:
            values = self._tables.values[key].transpose(order)
            self._turned[key, order] = self._known.setdefault((values.shape, values.tobytes()), len(self._known))
        return self._turned[key, order]

    def _exchangeable(self, one: int, other: int) -> bool:
        """Return whether two choices can change places and all tables are the same."""
        if self._tables.sizes[one] != self._tables.sizes[other]:
            return False
        swap = {one: other, other: one}
        for key in self._tables.keys_of[one] | self._tables.keys_of[other]:
            renamed = [swap.get(each, each) for each in key]
            order = tuple(sorted(range(len(key)), key=renamed.__getitem__))
            twin = tuple(renamed[at] for at in order)
            if twin not in self._tables.values:
                return False
            if self._number(twin, tuple(range(len(key)))) != self._number(key, order):
                return False
        return True


def _members(key: Key, chosen: Sequence[int]) -> tuple[list[int], Key]:
    """Return which choices of a table are among some, and the others."""
    return [each for each in key if each in chosen], tuple(each for each in key if each not in chosen)


def _total(values: Array, counts: Array, members: int) -> Array:
    """Return the sum of a table over all members, or pairs of members, of a set, for each count of their states."""
    if members == 1:
        return values @ counts.T
    if members > 2:
        raise TooManyStatesError
    total = np.zeros((*values.shape[:-2], len(counts)), dtype=values.dtype)
    for one, other in itertools.combinations_with_replacement(range(counts.shape[1]), 2):
        pairs = counts[:, one] * (counts[:, other] - 1) // 2 if one == other else counts[:, one] * counts[:, other]
        total += values[..., one, other, np.newaxis] * pairs
    return total


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Return all ways to divide a number among so many parts."""
    found = itertools.combinations(range(total + parts - 1), parts - 1)
    return [
        tuple(after - before - 1 for before, after in itertools.pairwise((-1, *bars, total + parts - 1)))
        for bars in found
    ]
