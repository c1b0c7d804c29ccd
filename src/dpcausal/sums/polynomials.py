"""Numbers as polynomials in variables: columns, conditions, and parts that are known by their range alone."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpcausal.errors import QueryError
from dpcausal.sums.intervals import Range, product_ends
from dpcausal.sums.limits import spend
from dpcausal.sums.numbers import Between, Constant, Number, Product, Shift, Sum, Where

Monomial = tuple[tuple[int, int], ...]
"""Variables with their powers, in rising order."""

_MOST_PRODUCTS = 5_000
"""How many terms a product may have when it is multiplied out."""


@dataclass(frozen=True)
class IntegerPolynomial:
    """A number as a polynomial over 2^bits, give or take an error, and the number's own range.

    Attributes:
        low: The least error, over 2^bits too.
        bits: What both are divided by. Rounding divides by powers of two, and nothing else divides.
    """

    terms: Mapping[Monomial, int]
    low: int
    high: int
    bits: int
    range: Range


class Reader:
    """Reads trees as polynomials, and lists the variables that they need."""

    def __init__(self) -> None:
        self.variables: dict[Number | Between, int] = {}
        self._conditions: set[int] = set()
        self._known: dict[int, IntegerPolynomial] = {}

    def read(self, tree: Number) -> IntegerPolynomial:
        """Return a number as a polynomial; a part that is none becomes a variable."""
        if id(tree) not in self._known:  # many sums are made of the same parts, which live as long as their description
            self._known[id(tree)] = self._read(tree)
        return self._known[id(tree)]

    def _read(self, tree: Number) -> IntegerPolynomial:
        at = tree.low, tree.high
        match tree:
            case Constant():
                return IntegerPolynomial({(): tree.value}, 0, 0, 0, at)
            case Sum():
                return _added([self.read(each) for each in tree.terms], at)
            case Product():
                return self._product(self.read(tree.left), self.read(tree.right), at)
            case Where():
                return self._product(self._variable(tree.condition, (0, 1)), self.read(tree.number), at)
            case Shift():
                inner = self.read(tree.number)
                if sum(sum(power for _, power in each) for each in inner.terms) > 1:
                    lost = (2**tree.bits - 1) * 2**inner.bits  # rounding takes off less than 1
                    return IntegerPolynomial(inner.terms, inner.low - lost, inner.high, inner.bits + tree.bits, at)
        return self._variable(tree, at)

    def _variable(self, what: Number | Between, at: Range) -> IntegerPolynomial:
        place = self.variables.setdefault(what, len(self.variables))
        if isinstance(what, Between):
            self._conditions.add(place)
        return IntegerPolynomial({((place, 1),): 1}, 0, 0, 0, at)

    def _product(self, left: IntegerPolynomial, right: IntegerPolynomial, at: Range) -> IntegerPolynomial:
        """Return a product. With a = p + e and b = q + f it is pq, give or take a f + b e - e f."""
        terms: dict[Monomial, int] = {}
        spend(40 * len(left.terms) * len(right.terms))
        if len(left.terms) * len(right.terms) > _MOST_PRODUCTS:
            raise QueryError(
                expected=f"a product of two numbers of at most {_MOST_PRODUCTS:,} terms when multiplied out",
                got="one of more",
                hint="multiply fewer sums.",
            )
        for (one, factor), (other, by) in itertools.product(left.terms.items(), right.terms.items()):
            powers = dict(one)
            for variable, power in other:
                # Whether a condition holds is 0 or 1: its own square.
                powers[variable] = 1 if variable in self._conditions else powers.get(variable, 0) + power
            key = tuple(sorted(powers.items()))
            terms[key] = terms.get(key, 0) + factor * by
        errors = [
            product_ends((left.range[0] << left.bits, left.range[1] << left.bits), (right.low, right.high)),
            product_ends((right.range[0] << right.bits, right.range[1] << right.bits), (left.low, left.high)),
            product_ends((-left.high, -left.low), (right.low, right.high)),
        ]
        low, high = (sum(ends) for ends in zip(*errors, strict=True))
        return IntegerPolynomial(terms, low, high, left.bits + right.bits, at)


def _added(parts: Sequence[IntegerPolynomial], at: Range) -> IntegerPolynomial:
    bits, low, high = max(part.bits for part in parts), 0, 0
    terms: dict[Monomial, int] = {}
    for part in parts:
        more = bits - part.bits
        low, high = low + (part.low << more), high + (part.high << more)
        for key, factor in part.terms.items():
            terms[key] = terms.get(key, 0) + (factor << more)
    return IntegerPolynomial({key: factor for key, factor in terms.items() if factor}, low, high, bits, at)
