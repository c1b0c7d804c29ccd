"""The largest sum of tables, each of which depends on a few of many choices.

A choice is numbered, and has a number of states. A table gives an integer for all states of its choices. Choices are
taken out one after another, each time the cheapest one; many choices that play the same part are counted: how many of
them are in each state is all that matters. Integers stay integers, so a largest sum of integers is exact.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.sums.limits import spend

Array = NDArray[Any]

MOST_STATES = 2_000_000
"""The most states of choices that are looked at together."""


class TooManyStatesError(Exception):
    """Too many states would have to be looked at together."""


@dataclass(frozen=True)
class Table:
    """Numbers for all states of some choices, which are in rising order: one axis for each."""

    choices: tuple[int, ...]
    values: Array


def largest(tables: Iterable[Table], sizes: Mapping[int, int], most: int = MOST_STATES, keep: int = -1) -> Array:
    """Return the largest sum of tables over all states of all choices.

    Args:
        tables: The tables.
        sizes: How many states each choice has.
        most: The most states that are looked at together.
        keep: A choice to keep: the largest sum for each of its states.

    Raises:
        TooManyStatesError: If more states would have to be looked at together.
    """
    sizes, merged = dict(sizes), _merged(tables)
    while True:
        left = sorted({choice for choices in merged for choice in choices if choice != keep})
        if not left:
            break
        spend(10 * len(left) * len(merged))
        cost, choice = min((_cost(choice, merged, sizes), choice) for choice in left)
        spend(min(cost, most) // 4)
        merged = _without(choice, merged) if cost <= most else _counted(left, merged, sizes, most)
    total: Array = sum((each for each in merged.values()), np.zeros((), dtype=np.int64))
    return total


def _merged(tables: Iterable[Table]) -> dict[tuple[int, ...], Array]:
    merged: dict[tuple[int, ...], Array] = {}
    for table in tables:
        merged[table.choices] = merged[table.choices] + table.values if table.choices in merged else table.values
    return merged


def _cost(choice: int, merged: Mapping[tuple[int, ...], Array], sizes: Mapping[int, int]) -> int:
    """Return the number of states that are looked at together to take a choice out."""
    joined = {choice}.union(*(choices for choices in merged if choice in choices))
    return math.prod(sizes[each] for each in joined)


def _without(choice: int, merged: Mapping[tuple[int, ...], Array]) -> dict[tuple[int, ...], Array]:
    """Return the tables after the best state of a choice is taken, whatever the states of the others."""
    own = [(choices, values) for choices, values in merged.items() if choice in choices]
    joined = tuple(sorted(set().union(*(choices for choices, _ in own))))
    best = spread(*own[0], joined)
    for choices, values in own[1:]:
        best = best + spread(choices, values, joined)
    rest = tuple(each for each in joined if each != choice)
    others = [Table(choices, values) for choices, values in merged.items() if choice not in choices]
    return _merged([*others, Table(rest, best.max(axis=joined.index(choice)))])


def spread(choices: Sequence[int], values: Array, joined: Sequence[int]) -> Array:
    """Return a table with an axis for each of more choices."""
    return values.reshape([values.shape[choices.index(each)] if each in choices else 1 for each in joined])


def _counted(
    left: Sequence[int], merged: Mapping[tuple[int, ...], Array], sizes: dict[int, int], most: int
) -> dict[tuple[int, ...], Array]:
    """Return the tables after the largest set of exchangeable choices has become one: how many are in each state."""
    sets: list[list[int]] = []
    spend(len(left) ** 2 * sum(values.size for values in merged.values()))
    for choice in left:
        home = next((each for each in sets if _exchangeable(each[-1], choice, merged, sizes)), None)
        if home is None:
            sets.append([choice])
        else:
            home.append(choice)
    chosen = max(sets, key=len)
    states, count = sizes[chosen[0]], len(chosen)
    if count < 3 or math.comb(count + states - 1, states - 1) * states > most:
        raise TooManyStatesError
    counts = np.array(list(_compositions(count, states)), dtype=np.int64)
    new, tables = max(sizes) + 1, []
    for choices, values in merged.items():
        members = [each for each in choices if each in chosen]
        others = tuple(each for each in choices if each not in chosen)
        if not members:
            tables.append(Table(choices, values))
        elif members == chosen[: len(members)]:  # the others of its kind are equal to it
            last = np.moveaxis(values, [choices.index(each) for each in members], range(-len(members), 0))
            tables.append(Table((*others, new), _total(last, counts, len(members))))
    sizes[new] = len(counts)
    if any(values.size > most for values in (table.values for table in tables)):
        raise TooManyStatesError
    return _merged(tables)


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


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to divide a number among so many parts."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _exchangeable(one: int, other: int, merged: Mapping[tuple[int, ...], Array], sizes: Mapping[int, int]) -> bool:
    """Return whether two choices can change places and all tables are the same."""
    if sizes[one] != sizes[other]:
        return False
    swap = {one: other, other: one}
    for choices, values in merged.items():
        if one in choices or other in choices:
            renamed = [swap.get(each, each) for each in choices]
            order = sorted(range(len(renamed)), key=renamed.__getitem__)
            twin = merged.get(tuple(sorted(renamed)))
            if twin is None or not np.array_equal(twin, values.transpose(order)):
                return False
    return True
