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

from dpcausal.columns import Binary, Category
from dpcausal.errors import QueryError
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.intervals import Range, Ranges, holds, interval, preimage, product_ends
from dpcausal.sums.limits import spend
from dpcausal.sums.numbers import (
    GRID,
    Between,
    Bin,
    Code,
    Constant,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
    columns,
    nodes,
)

Monomial = tuple[tuple[int, int], ...]
"""Variables with their powers, in rising order."""

OUTSIDE = 2
"""The code of the treatment column for units outside the comparison."""

ARMS = frozenset({"treatment", "arm"})
"""The columns of the arm."""

NO_CELL = -1
"""The place of a unit that is in no cell."""

_MOST_CASES, _MOST_PRODUCTS = 5_000, 5_000
_ANY = Ticks("outcome")
"""Stands for a number of several columns where its own range is all that is known of it."""


@dataclass(frozen=True)
class Domain:
    """What a unit may be, and what may change between neighbours.

    Attributes:
        codes: How many codes each column of codes has, units outside the comparison included. All other columns are
            ticks from -GRID to GRID.
        changes: The columns that may change.
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
    """Variables that are decided together.

    Attributes:
        variables: Their numbers.
        cases: The cases, of which a unit takes one.
        changes: Whether they may change between neighbours.
    """

    variables: tuple[int, ...]
    cases: tuple[Case, ...]
    changes: bool


@dataclass(frozen=True)
class Form:
    """What a unit adds to one sum: a polynomial with integer coefficients, over `weight`, give or take `error`.

    Attributes:
        terms: The polynomial.
        error: Between what the true number less the polynomial is, because the number is rounded.
        weight: The weight of the sum, in the unit of the polynomial.
        whole: Whether it is added up over all cells.
        changes: Whether it can change between neighbours.
    """

    terms: tuple[tuple[Monomial, int], ...]
    error: Range
    weight: Fraction
    whole: bool
    changes: bool


@dataclass(frozen=True)
class Model:
    """All that a unit may add: `slot_of` gives the slot of each variable."""

    forms: tuple[Form, ...]
    slots: tuple[Slot, ...]
    slot_of: Mapping[int, int]
    leaves: bool


def model_of(description: Sums, domain: Domain) -> Model:
    """Return what one unit may add to the sums of a description.

    Raises:
        QueryError: If the description has no weights, or columns that the domain has not.
    """
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
    reader = _Reader()
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
    slots, slot_of = _slots(variables, cells, every, domain)
    return Model(forms, slots, slot_of, domain.leaves and not description.everyone)


def _check_columns(trees: Iterable[Number], domain: Domain) -> None:
    for node in (each for tree in trees for each in nodes(tree)):
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


@dataclass(frozen=True)
class _Read:
    """A number as a polynomial, give or take an error, and the number's own range."""

    terms: dict[Monomial, Fraction]
    low: Fraction
    high: Fraction
    range: Range


class _Reader:
    """Reads trees as polynomials, and lists the variables that they need."""

    def __init__(self) -> None:
        self.variables: dict[Number | Between, int] = {}

    def read(self, tree: Number) -> _Read:
        """Return a number as a polynomial; a part that is none becomes a variable."""
        at = tree.low, tree.high
        match tree:
            case Constant():
                return _Read({(): Fraction(tree.value)}, Fraction(0), Fraction(0), at)
            case Sum():
                parts = [self.read(each) for each in tree.terms]
                terms = _added(parts)
                return _Read(
                    terms, sum((p.low for p in parts), Fraction()), sum((p.high for p in parts), Fraction()), at
                )
            case Product():
                return self._product(self.read(tree.left), self.read(tree.right), at)
            case Where():
                return self._product(self._variable(tree.condition, (0, 1)), self.read(tree.number), at)
            case Shift():
                inner = self.read(tree.number)
                if sum(sum(power for _, power in each) for each in inner.terms) > 1:
                    part = Fraction(1, 2**tree.bits)
                    terms = {each: factor * part for each, factor in inner.terms.items()}
                    return _Read(terms, inner.low * part - (1 - part), inner.high * part, at)
        return self._variable(tree, at)

    def _variable(self, what: Number | Between, at: Range) -> _Read:
        place = self.variables.setdefault(what, len(self.variables))
        return _Read({((place, 1),): Fraction(1)}, Fraction(0), Fraction(0), at)

    def _product(self, left: _Read, right: _Read, at: Range) -> _Read:
        """Return a product. With a = p + e and b = q + f it is pq, give or take a f + b e - e f."""
        terms: dict[Monomial, Fraction] = {}
        spend(40 * len(left.terms) * len(right.terms))
        if len(left.terms) * len(right.terms) > _MOST_PRODUCTS:
            raise QueryError(
                expected=f"a product of two numbers of at most {_MOST_PRODUCTS:,} terms when multiplied out",
                got="one of more",
                hint="multiply fewer sums.",
            )
        conditions = {place for what, place in self.variables.items() if isinstance(what, Between)}
        for (one, factor), (other, by) in itertools.product(left.terms.items(), right.terms.items()):
            powers = dict(one)
            for variable, power in other:
                # Whether a condition holds is 0 or 1: its own square.
                powers[variable] = 1 if variable in conditions else powers.get(variable, 0) + power
            key = tuple(sorted(powers.items()))
            terms[key] = terms.get(key, Fraction(0)) + factor * by
        parts = [
            product_ends(left.range, (right.low, right.high)),
            product_ends(right.range, (left.low, left.high)),
            product_ends((-left.high, -left.low), (right.low, right.high)),
        ]
        return _Read(terms, sum((p[0] for p in parts), Fraction()), sum((p[1] for p in parts), Fraction()), at)


def _added(parts: Iterable[_Read]) -> dict[Monomial, Fraction]:
    terms: dict[Monomial, Fraction] = {}
    for part in parts:
        for key, factor in part.terms.items():
            terms[key] = terms.get(key, Fraction(0)) + factor
    return {key: factor for key, factor in terms.items() if factor}


def _form(read: _Read, weight: Fraction, whole: bool, changes: bool) -> Form:
    terms = {key: factor for key, factor in read.terms.items() if factor}
    scale = math.lcm(1, *(factor.denominator for factor in terms.values()))
    error = math.floor(read.low * scale), math.ceil(read.high * scale)
    return Form(
        tuple((key, int(factor * scale)) for key, factor in terms.items()), error, weight * scale, whole, changes
    )


def _slots(
    variables: Mapping[int, Number | Between], cells: Mapping[Number, int], every: Ranges, domain: Domain
) -> tuple[tuple[Slot, ...], dict[int, int]]:
    """Return the slots: one for each column, and one for each variable and factor of cells of several columns."""
    read = {place: columns(_tree(what)) for place, what in variables.items()}
    factors = [(factor, count, columns(factor)) for factor, count in cells.items()]
    slots: list[Slot] = []
    slot_of: dict[int, int] = {}
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
        slot_of |= dict.fromkeys(own, len(slots))
        slots.append(Slot(tuple(own), _merged(found), name in domain.changes))
    shared: dict[Number, list[int]] = {factor: [] for factor, _, _ in factors}
    for place, what in variables.items():
        if place not in slot_of:
            shared.setdefault(_tree(what), []).append(place)
    for tree, own in shared.items():  # a number of several columns, and all conditions on it
        told = [replace(what, number=_ANY) if isinstance(what := variables[place], Between) else _ANY for place in own]
        keys = [(_ANY, count) for factor, count, _ in factors if factor == tree]
        found = list(_column_cases(_ANY.column, told, keys, interval(tree, every)))
        slot_of |= dict.fromkeys(own, len(slots))
        slots.append(Slot(tuple(own), _merged(found), bool(domain.changes.intersection(columns(tree)))))
    return tuple(slots), slot_of


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
    for low, high in pieces:
        ranges = {name: (low, high)}
        found = [interval(tree, ranges) for tree in trees]
        values = tuple(
            holds(what, found[place]) if isinstance(what, Between) else found[place]
            for what, place in zip(own, places, strict=True)
        )
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
        yield values, cell


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
