"""Whole numbers made of a unit's coerced columns, as a tree in which every number has a range.

Trees are data: they are compared by value, written as JSON and read back, and may come from strangers. Whatever the
unit, a number is within its range, and no step on the way to it needs more than 62 bits: a tree for which this does not
hold cannot be made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise

from dpcausal.errors import QueryError
from dpcausal.sums.limits import (
    DEEPEST,
    LARGEST,
    MOST_CODES,
    MOST_NODES,
    check_column,
    check_order,
    check_whole,
)
from dpcausal.sums.table import IntegerTable

GRID = 2**20
"""Ticks from the middle of a column's range to its bounds. Values are rounded to these ticks before anything else."""


@dataclass(frozen=True, eq=False)
class Number:
    """A whole number made of a unit's columns. Numbers are compared by value, and each is hashed once."""

    low: int = field(init=False, repr=False, compare=False)
    high: int = field(init=False, repr=False, compare=False)
    nodes: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def _made(self, low: int, high: int, parts: "Iterable[Number]" = (), steps: Iterable[int] = ()) -> None:
        """Set the range, and raise where it, a step on the way or the tree is too large."""
        below = tuple(parts)
        nodes, depth = 1 + sum(each.nodes for each in below), 1 + max((each.depth for each in below), default=0)
        if nodes > MOST_NODES or depth > DEEPEST:
            raise QueryError(
                expected=f"at most {MOST_NODES:,} nodes, at most {DEEPEST} deep",
                got=f"{nodes:,} nodes, {depth} deep",
                hint="split the number into several sums.",
            )
        if (most := max(map(abs, (low, high, *steps)))) > LARGEST:
            raise QueryError(
                expected="a number of at most 62 bits on every step",
                got=f"one of up to {most.bit_length()} bits",
                hint="round a factor before it is multiplied: Shift(number, bits).",
            )
        for name, value in (("low", low), ("high", high), ("nodes", nodes), ("depth", depth)):
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number) or type(self) is not type(other):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._given == other._given)

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: not the hash, which is another one in another process."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    @cached_property
    def _given(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.compare)

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self._given))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The coerced columns that it is made of, in order of appearance."""
        return (self.column,) if isinstance(self, Ticks | Code) else columns(*parts(self))

    @property
    def size(self) -> int:
        """The largest size of the number."""
        return max(-self.low, self.high)

    def __add__(self, other: "Number | int") -> "Number":
        return added((self, number(other)))

    def __radd__(self, other: int) -> "Number":
        return added((number(other), self))

    def __neg__(self) -> "Number":
        return multiplied(Constant(-1), self)

    def __sub__(self, other: "Number | int") -> "Number":
        return added((self, -number(other)))

    def __rsub__(self, other: int) -> "Number":
        return added((number(other), -self))

    def __mul__(self, other: "Number | int") -> "Number":
        return multiplied(self, number(other))

    def __rmul__(self, other: int) -> "Number":
        return multiplied(number(other), self)


@dataclass(frozen=True, eq=False)
class Ticks(Number):
    """A coerced number: from -GRID to GRID."""

    column: str

    def __post_init__(self) -> None:
        check_column(self.column, ("outcome", "covariate"))
        self._made(-GRID, GRID)


@dataclass(frozen=True, eq=False)
class Code(Number):
    """A coerced arm or value of a list: from 0 to below `count`."""

    column: str
    count: int

    def __post_init__(self) -> None:
        check_column(self.column, ("treatment", "arm", "covariate"))
        check_whole("a count of codes", self.count, 1, MOST_CODES)
        self._made(0, self.count - 1)


@dataclass(frozen=True, eq=False)
class Constant(Number):
    """A public number."""

    value: int

    def __post_init__(self) -> None:
        check_whole("a constant", self.value, -LARGEST, LARGEST)
        self._made(self.value, self.value)


@dataclass(frozen=True, eq=False)
class Sum(Number):
    """A sum; `a + b` makes one."""

    terms: tuple[Number, ...]

    def __post_init__(self) -> None:
        _check_numbers(*self.terms)
        check_whole("the number of terms of a sum", len(self.terms), 2, MOST_NODES)
        low, high = sum(each.low for each in self.terms), sum(each.high for each in self.terms)
        self._made(low, high, self.terms, [sum(each.size for each in self.terms)])


@dataclass(frozen=True, eq=False)
class Product(Number):
    """A product; `a * b` makes one."""

    left: Number
    right: Number

    def __post_init__(self) -> None:
        _check_numbers(self.left, self.right)
        ends = [one * other for one in (self.left.low, self.left.high) for other in (self.right.low, self.right.high)]
        low = min(ends)
        if self.left == self.right:
            low = 0 if self.left.low <= 0 <= self.left.high else min(self.left.low**2, self.left.high**2)
        self._made(low, max(ends), (self.left, self.right))


@dataclass(frozen=True, eq=False)
class Shift(Number):
    """A number divided by 2^bits and rounded down."""

    number: Number
    bits: int

    def __post_init__(self) -> None:
        _check_numbers(self.number)
        check_whole("bits to shift by", self.bits, 1, 61)
        # Engines shift negative numbers differently, so a number is moved up first.
        self._made(
            self.number.low >> self.bits,
            self.number.high >> self.bits,
            [self.number],
            [self.number.size + (self.lifted << self.bits)],
        )

    @property
    def lifted(self) -> int:
        """How far the result is moved up so that nothing negative is shifted."""
        return max(0, -(self.number.low >> self.bits))


@dataclass(frozen=True, eq=False)
class Clip(Number):
    """A number held between two public ones."""

    number: Number
    least: int
    most: int

    def __post_init__(self) -> None:
        _check_numbers(self.number)
        check_order(self.least, self.most)
        low, high = (min(max(end, self.least), self.most) for end in (self.number.low, self.number.high))
        self._made(low, high, [self.number])


@dataclass(frozen=True, eq=False)
class Bin(Number):
    """How many of some rising public edges a number reaches; an edge belongs to the bin above it."""

    number: Number
    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_numbers(self.number)
        object.__setattr__(self, "edges", IntegerTable(self.edges))
        check_whole("the number of edges", len(self.edges), 1, MOST_CODES)
        for least, most in pairwise(self.edges):
            check_order(least, most)
        low, high = (sum(edge <= end for edge in self.edges) for end in (self.number.low, self.number.high))
        self._made(low, high, [self.number])


@dataclass(frozen=True, eq=False)
class Lookup(Number):
    """What stands in a public table in a number's place: the first value where the number is 0."""

    number: Number
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_numbers(self.number)
        object.__setattr__(self, "values", IntegerTable(self.values))
        if not (self.number.low >= 0 and self.number.high < len(self.values) <= MOST_CODES):
            raise QueryError(
                expected=f"a table of at most {MOST_CODES:,} values, with one for each value of its number from 0 on",
                got=f"{len(self.values):,} values for numbers from {self.number.low} to {self.number.high}",
                hint="hold the number within the table: Clip(number, 0, len(values) - 1).",
            )
        self._made(*IntegerTable(self.values).ends(self.number.low, self.number.high), [self.number])

    @property
    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """The values with the first and the last place of each, where neighbours are the same."""
        return IntegerTable(self.values).runs


@dataclass(frozen=True)
class Between:
    """Whether a number is between two public ones, ends included."""

    number: Number
    least: int
    most: int

    def __post_init__(self) -> None:
        _check_numbers(self.number)
        check_order(self.least, self.most)


@dataclass(frozen=True, eq=False)
class Where(Number):
    """A number where a condition holds, and 0 elsewhere."""

    condition: Between
    number: Number

    def __post_init__(self) -> None:
        if not isinstance(self.condition, Between):
            raise QueryError(
                expected="a condition", got=type(self.condition).__name__, hint="write Between(number, least, most)."
            )
        _check_numbers(self.number)
        low, high = min(0, self.number.low), max(0, self.number.high)
        self._made(low, high, [self.condition.number, self.number])


KINDS: tuple[type[Number], ...] = (Ticks, Code, Constant, Sum, Product, Shift, Clip, Bin, Lookup, Where)
"""Every kind of number there is."""


def _check_numbers(*given: object) -> None:
    for each in given:
        if not isinstance(each, KINDS):
            raise QueryError(expected="a number", got=type(each).__name__, hint="write for instance Ticks('outcome').")


ONE = Constant(1)


def number(value: Number | int) -> Number:
    """Return a number, given one or a constant."""
    return value if isinstance(value, KINDS) else Constant(value)  # type: ignore[arg-type]


def added(terms: Iterable[Number]) -> Number:
    """Return the sum of some numbers; its own sums are taken apart, and its constants put together at its end."""
    flat: list[Number] = []
    constant = 0
    for each in terms:
        for term in each.terms if isinstance(each, Sum) else (each,):
            if isinstance(term, Constant):
                constant += term.value
            else:
                flat.append(term)
    if constant or not flat:
        flat.append(Constant(constant))
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def multiplied(left: Number, right: Number) -> Number:
    """Return the product of two numbers; a constant comes first, and constants are put together."""
    if isinstance(right, Constant) and not isinstance(left, Constant):
        left, right = right, left
    if not isinstance(left, Constant):
        return Product(left, right)
    if isinstance(right, Constant):
        return Constant(left.value * right.value)
    if isinstance(right, Product) and isinstance(right.left, Constant):
        return multiplied(Constant(left.value * right.left.value), right.right)
    if left.value == 0:
        return left
    return right if left.value == 1 else Product(left, right)


def equals(code: Number, value: int) -> Between:
    """Return whether a number is a public one."""
    return Between(code, value, value)


def indicator(condition: Between) -> Number:
    """Return 1 where a condition holds, and 0 elsewhere."""
    return Where(condition, ONE)


def sign(code: Number) -> Number:
    """Return -1 for the first and 1 for the second of two codes."""
    if (code.low, code.high) != (0, 1):
        raise QueryError(
            expected="a code of two values", got=f"{code.low} to {code.high}", hint="write level(code, value)."
        )
    return 2 * code - 1


def level(code: Number, value: int) -> Number:
    """Return 1 where a code has a value, and -1 elsewhere."""
    return 2 * indicator(equals(code, value)) - 1


def deficit(line: Number, grid: int = GRID) -> Number:
    """Return what the square of a number from -grid to grid lacks to that of grid, in ticks of grid, rounded down."""
    return Shift(grid**2 - line * line, grid.bit_length() - 1)


def nodes(*trees: Number) -> Iterator[Number]:
    """Yield all numbers in some trees, each before its parts, and a part of several trees once."""
    seen: set[int] = set()
    left = list(reversed(trees))
    while left:
        if id(tree := left.pop()) not in seen:
            seen.add(id(tree))
            yield tree
            left.extend(reversed(parts(tree)))


def parts(tree: Number) -> tuple[Number, ...]:
    """Return the numbers that a number is made of directly."""
    match tree:
        case Sum():
            return tree.terms
        case Product():
            return tree.left, tree.right
        case Shift() | Clip() | Bin() | Lookup():
            return (tree.number,)
        case Where():
            return tree.condition.number, tree.number
    return ()


def columns(*trees: Number) -> tuple[str, ...]:
    """Return the coerced columns that some numbers are made of, in order of appearance."""
    return tuple(dict.fromkeys(name for tree in trees for name in tree.columns))
