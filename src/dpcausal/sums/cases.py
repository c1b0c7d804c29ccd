"""What one unit may add to the sums of a description, as polynomials in variables that a unit chooses.

A variable is a column, whether a condition holds, or a part of a tree that is no polynomial and is known by its range
alone. Variables of one column stand together in a `Slot`, which lists its cases: codes, or intervals between the
thresholds of conditions. A unit takes one case in each slot, and any number within its ranges: at least all that a
unit of a table can be, which is what a bound from above needs.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.intervals import Range, Ranges, holds_in, interval, preimage
from dpcausal.sums.limits import spend
from dpcausal.sums.numbers import (
    GRID,
    Between,
    Bin,
    Code,
    Number,
    Ticks,
    Where,
    columns,
    nodes,
)
from dpcausal.sums.polynomials import IntegerPolynomial, Monomial, Reader

OUTSIDE = 2
"""The code of the treatment column for units outside the comparison."""

ARMS = frozenset({"treatment", "arm"})
"""The columns of the arm."""

NO_CELL = -1
"""The place of a unit that is in no cell."""

_MOST_CASES = 5_000
_ANY = Ticks("outcome")
"""Stands for a number of several columns where its own range is all that is known of it."""


@dataclass(frozen=True)
class Domain:
    """What a unit may be, and what may change between neighbours.

    Attributes:
        codes: How many codes each column of codes has, units outside the comparison included. All other columns are
            ticks from -GRID to GRID.
        leaves: Whether a change may take a unit out of the comparison.
    """

    codes: Mapping[str, int]
    changes: frozenset[str]
    leaves: bool


def domain_of(schema: Schema, protects: Protects) -> Domain:
    """Return what a unit of a schema's tables may be, and what may change between neighbours."""
    lists = {f"covariate_{at}": column for at, column in enumerate(schema.covariates)}
    codes = {name: len(column.values) for name, column in lists.items() if isinstance(column, Binary | Category)}
    changes = {
        "record": ARMS | {"outcome", *lists},
        "record_within_arm": frozenset({"outcome", *lists}),
        "outcome": frozenset({"outcome"}),
    }[protects]
    codes |= {"treatment": OUTSIDE + 1, "arm": len(schema.treatment.arms) + 1}
    return Domain(codes, changes, schema.units_may_leave(protects))


@dataclass(frozen=True)
class Case:
    """One case of a slot.

    Attributes:
        ranges: The least and the greatest value of each variable of the slot.
        cells: The places among the cells that a unit may have in this case, `NO_CELL` for none.
    """

    ranges: tuple[Range, ...]
    cells: frozenset[int]


@dataclass(frozen=True)
class Slot:
    """Variables that are decided together."""

    variables: tuple[int, ...]
    cases: tuple[Case, ...]
    changes: bool


@dataclass(frozen=True)
class Form:
    """What a unit adds to one sum: a polynomial with integer coefficients, over `weight`, give or take `error`.

    Attributes:
        error: Between what the true number less the polynomial is, because the number is rounded.
        weight: The weight of the sum, in the unit of the polynomial.
        whole: Whether it is added up over all cells.
    """

    terms: tuple[tuple[Monomial, int], ...]
    error: Range
    weight: Fraction
    whole: bool
    changes: bool


@dataclass(frozen=True)
class Model:
    """All that a unit may add: what it chooses, what follows from that, and whether it may leave the comparison."""

    forms: tuple[Form, ...]
    slots: tuple[Slot, ...]
    leaves: bool

    @cached_property
    def slot_of(self) -> Mapping[int, int]:
        """The slot of each variable."""
        return {variable: place for place, slot in enumerate(self.slots) for variable in slot.variables}


def model_of(description: Sums, domain: Domain) -> Model:
    """Return what one unit may add to the sums of a description."""
    trees = (*description.cells, *description.numbers.values(), *description.whole.values())
    if description.everyone and domain.leaves:  # a unit outside the comparison is added up, and has no arm
        domain = replace(domain, changes=domain.changes | ARMS)
    elif not description.everyone:
        domain = replace(domain, codes={**domain.codes, "treatment": OUTSIDE})
    _check_columns(trees, domain)
    if not description.weights:
        raise QueryError(
            expected="a weight for each sum", got="none", hint="a bound is of changes in proportion to weights."
        )
    every = {name: _column_range(name, domain) for name in columns(*trees)}
    reader = Reader()
    read = {name: reader.read(tree) for name, tree in (*description.numbers.items(), *description.whole.items())}
    forms = tuple(
        _form(
            read[name], description.weights[name], name in description.whole, bool(domain.changes & set(columns(tree)))
        )
        for name, tree in (*description.numbers.items(), *description.whole.items())
    )
    used = {variable for form in forms for each, _ in form.terms for variable, _ in each}
    variables = {place: what for what, place in reader.variables.items() if place in used}
    cells = description.cells if description.numbers else {}
    return Model(forms, _slots(variables, cells, every, domain), domain.leaves and not description.everyone)


def loosened(model: Model) -> Model:
    """Return a model of at least as many units, of fewer cases: variables of one column are free of each other.

    Slots that decide on cells stay as they are, and keep their places.
    """
    slots, more = list(model.slots), list[Slot]()
    for place, slot in enumerate(model.slots):
        if len(slot.variables) > 1 and all(case.cells == {0} for case in slot.cases):
            ranges = [_hull(case.ranges[at] for case in slot.cases) for at in range(len(slot.variables))]
            free = [
                Slot((variable,), (Case((each,), frozenset({0})),), slot.changes)
                for variable, each in zip(slot.variables, ranges, strict=True)
            ]
            slots[place] = free[0]
            more += free[1:]
    return replace(model, slots=(*slots, *more))


def _hull(ranges: Iterable[Range]) -> Range:
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _check_columns(trees: Iterable[Number], domain: Domain) -> None:
    for node in nodes(*trees):
        wrong = (isinstance(node, Ticks) and node.column in domain.codes) or (
            isinstance(node, Code) and domain.codes.get(node.column) != node.count
        )
        if wrong:
            raise QueryError(
                expected="columns as the schema declares them",
                got=repr(node),
                hint="Ticks for numbers; Code for lists, with the number of their values.",
            )


def _column_range(name: str, domain: Domain) -> Range:
    return (0, domain.codes[name] - 1) if name in domain.codes else (-GRID, GRID)


def _form(read: IntegerPolynomial, weight: Fraction, whole: bool, changes: bool) -> Form:
    terms = {key: factor for key, factor in read.terms.items() if factor}
    scale = 2**read.bits // math.gcd(2**read.bits, *terms.values())
    over = 2**read.bits // scale
    error = read.low // over, -(-read.high // over)
    return Form(tuple((key, factor // over) for key, factor in terms.items()), error, weight * scale, whole, changes)


def _slots(
    variables: Mapping[int, Number | Between], cells: Mapping[Number, int], every: Ranges, domain: Domain
) -> tuple[Slot, ...]:
    """Return the slots: one for each column, and one for each variable and factor of cells of several columns."""
    read = {place: columns(_tree(what)) for place, what in variables.items()}
    factors = [(factor, count, columns(factor)) for factor, count in cells.items()]
    slots: list[Slot] = []
    for name, at in every.items():
        own = [place for place, names in read.items() if names == (name,)]
        keys = [(factor, count) for factor, count, names in factors if names == (name,)]
        if not own and not keys:
            continue
        told = [variables[place] for place in own]
        found = list(_column_cases(name, told, keys, at))
        if any(cell is None for _, cell in found):  # cells that no threshold decides are a slot of their own
            found = list(_column_cases(name, told, [], at))
        else:
            factors = [each for each in factors if each[2] != (name,)]
        slots.append(Slot(tuple(own), _merged(found), name in domain.changes))
    shared: dict[Number, list[int]] = {factor: [] for factor, _, _ in factors}
    decided = {variable for slot in slots for variable in slot.variables}
    for place, what in variables.items():
        if place not in decided:
            shared.setdefault(_tree(what), []).append(place)
    for tree, own in shared.items():  # a number of several columns, and all conditions on it
        told = [replace(what, number=_ANY) if isinstance(what := variables[place], Between) else _ANY for place in own]
        keys = [(_ANY, count) for factor, count, _ in factors if factor == tree]
        found = list(_column_cases(_ANY.column, told, keys, interval(tree, every)))
        slots.append(Slot(tuple(own), _merged(found), bool(domain.changes.intersection(columns(tree)))))
    return tuple(slots)


def _tree(what: Number | Between) -> Number:
    return what.number if isinstance(what, Between) else what


def _column_cases(
    name: str, own: Sequence[Number | Between], keys: Sequence[tuple[Number, int]], at: Range
) -> Iterator[tuple[tuple[Range, ...], int | None]]:
    """Yield the ranges of a column's variables, and its place among the cells, code by code or interval by interval."""
    trees = list(dict.fromkeys(map(_tree, own)))
    places = [trees.index(_tree(what)) for what in own]
    pieces = _pieces(own, keys, at)
    spend(20 * len(pieces) * (len(own) + sum(tree.nodes for tree in (*trees, *(factor for factor, _ in keys)))))
    values = _values(own, places, [[interval(tree, {name: piece}) for piece in pieces] for tree in trees], len(pieces))
    for piece, found in zip(pieces, values, strict=True):
        ranges = {name: piece}
        cell: int | None = 0
        for factor, count in keys:
            least, most = interval(factor, ranges)
            if least >= count:
                cell = NO_CELL
            elif least != most:
                cell = None
            if cell is None or cell == NO_CELL:
                break
            cell = cell * count + least
        yield found, cell


def _values(
    own: Sequence[Number | Between], places: Sequence[int], found: Sequence[Sequence[Range]], pieces: int
) -> Iterable[tuple[Range, ...]]:
    """Return the ranges of variables, piece by piece, given those of their trees."""
    if not own:
        return [()] * pieces
    ends = [np.array(each, dtype=np.int64).T for each in found]
    return zip(
        *(
            holds_in(what, *ends[place]) if isinstance(what, Between) else found[place]
            for what, place in zip(own, places, strict=True)
        ),
        strict=True,
    )


def _pieces(own: Sequence[Number | Between], keys: Sequence[tuple[Number, int]], at: Range) -> list[Range]:
    """Return the codes of a column, or the intervals between the thresholds of its conditions and cells."""
    low, high = at
    thresholds = [each for what in (*own, *(factor for factor, _ in keys)) for each in _thresholds(what)]
    thresholds += [(factor, place, place) for factor, count in keys for place in range(min(count, _MOST_CASES))]
    if low == 0 and high < _MOST_CASES:  # codes
        return [(code, code) for code in range(high + 1)]
    starts = {low}
    for tree, least, most in thresholds:
        found = preimage(tree, least, most)
        if found and found[0] <= found[1]:
            starts |= {each for each in (found[0], found[1] + 1) if low < each <= high}
    if len(starts) > _MOST_CASES:
        raise QueryError(
            expected=f"at most {_MOST_CASES:,} thresholds of a column", got=f"{len(starts):,}", hint="use fewer."
        )
    ordered = sorted(starts)
    return [(start, end - 1) for start, end in itertools.pairwise([*ordered, high + 1])]


def _thresholds(what: Number | Between) -> Iterator[tuple[Number, int, int]]:
    """Yield all numbers of which it matters whether they are between two others, with these."""
    if isinstance(what, Between):
        yield what.number, what.least, what.most
    for each in nodes(_tree(what)):
        if isinstance(each, Where):
            yield each.condition.number, each.condition.least, each.condition.most
        elif isinstance(each, Bin):
            yield from ((each, place, place) for place in range(len(each.edges) + 1))


def _merged(found: Iterable[tuple[tuple[Range, ...], int | None]]) -> tuple[Case, ...]:
    """Return cases; those that differ in their cell alone are one."""
    cells: dict[tuple[Range, ...], set[int]] = {}
    for ranges, cell in found:
        cells.setdefault(ranges, set()).update((0, 1, NO_CELL) if cell is None else (cell,))
    return tuple(Case(ranges, frozenset(each)) for ranges, each in cells.items())
