"""Claims of the code as Coq writes them: a description, what its columns may be, and the bound; with certificates."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from checks.formal_certificates import CHANGE, OTHER, OWN, Norm, Problem, Term
from checks.formal_ranges import Box, Range, Side, coq, plain, reach
from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.description import Sums
from dpcausal.sums.intervals import preimage
from dpcausal.sums.numbers import GRID, Number, Where, columns, nodes


@dataclass(frozen=True)
class Claim:
    """A description with a domain, and the bound that the code claims for it."""

    description: Sums
    domain: Domain
    norm: Norm
    bound: Fraction

    @cached_property
    def cells(self) -> list[tuple[Number, int]]:
        """The factors of cells, without bins."""
        return [(plain(factor), count) for factor, count in self.description.cells.items()]

    @cached_property
    def numbers(self) -> list[tuple[Number, Fraction]]:
        """What is added up in each cell, with the weights."""
        return [(plain(tree), self.description.weights[name]) for name, tree in self.description.numbers.items()]

    @cached_property
    def whole(self) -> list[tuple[Number, Fraction]]:
        """What is added up over all cells, with the weights."""
        return [(plain(tree), self.description.weights[name]) for name, tree in self.description.whole.items()]

    @cached_property
    def box(self) -> dict[str, Side]:
        """The ranges of all columns, in both units."""
        trees = [tree for tree, _ in (*self.cells, *self.numbers, *self.whole)]
        return {name: self._side(name) for name in columns(*trees)}

    @property
    def places(self) -> dict[str, int]:
        """Where each column is in a unit."""
        return {name: at for at, name in enumerate(self.box)}

    @property
    def leaves(self) -> bool:
        """Whether a unit may leave the comparison."""
        return self.domain.leaves and not self.description.everyone

    def text(self) -> str:
        """Return the arguments of `Claim` of `formal/Descriptions.v`."""
        written = [
            "; ".join(f"({coq(tree, self.places)}, {count}%nat)" for tree, count in self.cells),
            *(
                "; ".join(f"({coq(tree, self.places)}, {fraction(weight)})" for tree, weight in part)
                for part in (self.numbers, self.whole)
            ),
        ]
        sides = "; ".join(
            f"Side {_range(side.own)} {_range(side.other)} {str(side.shared).lower()}" for side in self.box.values()
        )
        return (
            f"(Description {' '.join(f'[{part}]' for part in written)})\n  [{sides}] {str(self.leaves).lower()} "
            f"{self.norm} {fraction(self.bound)}"
        )

    def _side(self, name: str) -> Side:
        if name in self.domain.codes:
            last = self.domain.codes[name] - 1
            if name == "treatment" and not self.description.everyone:
                last = OUTSIDE - 1
            at = (0, last)
        else:
            at = (-GRID, GRID)
        return Side(at, at, shared=name not in self.domain.changes)

    def certificates(self) -> list[str]:
        """Return a certificate for each case of `Cases`, `Missing` where none is needed.

        Raises:
            NoCertificateError: If none was found.
        """
        cells, numbers, whole, box = self.cells, self.numbers, self.whole, self.box
        terms = {
            kind: ([Term(kind, *each) for each in numbers], [Term(kind, *each) for each in whole])
            for kind in (CHANGE, OWN, OTHER)
        }
        ranges = [(reach(factor, box, {}), count) for factor, count in cells]
        fixed = all(change == (0, 0) for (_, _, change), _ in ranges)
        always = all(own[0] >= 0 and own[1] < count for (own, _, _), count in ranges)
        one = math.prod(count for _, count in cells) <= 1
        shared = {tree.column for tree, _ in cells if hasattr(tree, "column")}
        together = {name: replace(side, shared=side.shared or name in shared) for name, side in box.items()}

        def own_out(box: Box) -> bool:
            return any(_disjoint(reach(factor, box, {})[0], (0, count - 1)) for factor, count in cells)

        def other_out(box: Box) -> bool:
            return any(_disjoint(reach(factor, box, {})[1], (0, count - 1)) for factor, count in cells)

        def apart(box: Box) -> bool:
            return any(_disjoint(*reach(factor, box, {})[:2]) for factor, _ in cells)

        def never(_: Box) -> bool:
            return False

        change, own, other = terms[CHANGE], terms[OWN], terms[OTHER]
        cases: list[tuple[bool, list[Term], Box, Callable[[Box], bool]]] = [
            (True, change[0] + change[1], together, lambda box: own_out(box) or apart(box)),
            (not (fixed or one), own[0] + other[0] + change[1], box, lambda box: own_out(box) or other_out(box)),
            (not (fixed or always), own[0] + change[1], box, own_out),
            (not (not whole or always), change[1], box, never),
            (self.leaves, own[0] + own[1], box, own_out),
            (self.leaves and not (not whole or always), own[1], box, never),
        ]
        claim = self.bound if self.norm == "l1" else self.bound**2
        cuts = _thresholds([tree for tree, _ in (*cells, *numbers, *whole)])
        formed_by = frozenset(columns(*(factor for factor, _ in cells)))
        found = []
        for needed, these, where, impossible in cases:
            problem = Problem(self.norm, self.places, cuts, impossible, formed_by)
            found.append(problem.search(these, where, claim) if needed else "Missing")
        return found


def _disjoint(one: Range, other: Range) -> bool:
    return one[1] < other[0] or other[1] < one[0]


def _thresholds(trees: Sequence[Number]) -> dict[str, list[int]]:
    """Return the values of columns after which a condition on them changes."""
    found: dict[str, set[int]] = {}
    for node in (each for tree in trees for each in nodes(tree) if isinstance(each, Where)):
        names = columns(node.condition.number)
        if len(names) == 1:
            inside = preimage(node.condition.number, node.condition.least, node.condition.most)
            if inside:
                found.setdefault(names[0], set()).update((inside[0] - 1, inside[1]))
    return {name: sorted(at for at in values if -GRID <= at < GRID) for name, values in found.items()}


def _range(range_: Range) -> str:
    return f"(Range ({range_[0]}) ({range_[1]}))"


def fraction(number: Fraction) -> str:
    """Return a fraction as Coq writes it."""
    return f"({number.numerator} # {number.denominator})%Q"
