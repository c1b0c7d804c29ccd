"""Sums that a study describes: what a unit adds to each is an expression over the schema's columns."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import exact
from dpcausal.queries.coerced import TREATMENT, strata
from dpcausal.queries.cuts import Cut, cuts_of, double_cut
from dpcausal.queries.quantities import Quantity, quantity
from dpcausal.queries.query import Norm, plain_value
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.cells import Value
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.cases import domain_of
from dpcausal.sums.description import Sums
from dpcausal.sums.expressions import Expression, is_constant, parse
from dpcausal.sums.expressions import names as names_in
from dpcausal.sums.numbers import Number, columns
from dpcausal.utils.validation import is_number

MOST_NUMBERS, MOST_COORDINATES = 64, 10_000
"""How many sums may be described, and how many there may be in all cells together."""

_LARGEST_WEIGHT = 1_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True)
class CustomSums(SummingQuery):
    """Sums over units of expressions, in cells.

    An expression is a text over the names of the schema's columns, which stand in ` marks where they are no words. It
    is made of constants, `+`, `-` and `*`, and of these functions:

    - `centred(column)`: a number, measured from the middle of its range in its own unit. A column of two values, such
      as the treatment, is -1/2 for the first and 1/2 for the second of them.
    - `deficit(column)`: what the square of `centred(column)` lacks to that of half the range, the largest it can be. It
      says the same as the square, and costs less.
    - `where(condition, number)`: the number where a condition holds, and 0 elsewhere. Conditions are `age >= 65`,
      `between(age, 40, 65)` with both ends, and `sex == 'f'`.
    - `clip(number, low, high)`: the number, held between two constants.

    The bound on what one unit moves is computed from the expressions, and certified. Proof: docs/proofs/sums.md.
    Units outside the comparison add nothing. A unit that lacks a value of a named column is outside, unless the column
    declares `missing`.

    Attributes:
        expressions: What a unit adds to each sum, by the name of the sum.
        cells: Columns whose values make cells, the treatment among them, and cuts of numbers. Each sum is added up in
            each cell. Empty for one sum over all units.
        weights: How much noise a sum has, by its name, in proportion to the default, which is the most that one unit
            can move it. Others then have less, or more.
    """

    name: ClassVar[str] = "custom_sums"

    expressions: Mapping[str, str]
    cells: Sequence[str | Cut] = ()
    weights: Mapping[str, float] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for part in ("expressions", "weights"):
            object.__setattr__(self, part, _pairs(part, getattr(self, part)))
        object.__setattr__(self, "cells", cuts_of(self.cells) if self.cells else ())
        names = tuple(self.texts)
        if not 1 <= len(names) <= MOST_NUMBERS or not all(map(_NAME.fullmatch, names)):
            raise QueryError(
                expected=f"1 to {MOST_NUMBERS} sums, each with a name of up to 40 letters, digits and _",
                got=f"{len(names)}: {', '.join(names)}"[:200],
                hint="write for instance expressions={'n': '1', 'total': 'centred(score)'}.",
            )
        for name, weight in dict(self.weights).items():
            if name not in names or not is_number(weight) or not 1 / _LARGEST_WEIGHT <= weight <= _LARGEST_WEIGHT:
                raise QueryError(
                    expected=f"weights from {1 / _LARGEST_WEIGHT} to {_LARGEST_WEIGHT} of the sums {', '.join(names)}"[
                        :300
                    ],
                    got=f"{name}: {weight!r}"[:100],
                    hint="a weight of 2 is twice the noise of the default.",
                )
        _ = self._parsed

    @property
    def texts(self) -> dict[str, str]:
        """The expressions, by the names of the sums."""
        return dict(self.expressions)

    @cached_property
    def _parsed(self) -> dict[str, Expression]:
        return {name: parse(text) for name, text in self.texts.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it reads, apart from the treatment's."""
        named = (name for each in self._parsed.values() for name in names_in(each))
        return tuple(dict.fromkeys((*named, *(cut.name for cut in self._cuts))))

    @property
    def _cuts(self) -> tuple[Cut, ...]:
        return self.cells  # type: ignore[return-value]

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: a unit that lacks one is outside, unless it declares `missing`."""
        return self.columns

    def labels(self, schema: Schema) -> tuple[tuple[str, ...], ...]:
        """Return the labels of cells by each part of `cells`: values as texts, and bins of numbers by their bounds."""
        return tuple(_labels(cut, schema) for cut in self._cuts)

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of all sums: cell by cell, as `total[drug]`."""
        (sums,) = self.sums(schema, schema.protects, "l1")
        return sums.names

    def quantities(self, schema: Schema) -> dict[str, Quantity]:
        """Return what a unit adds to each sum, with the size of its tick."""
        return {name: quantity(each, schema) for name, each in self._parsed.items()}

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        cells: dict[Number, int] = {}
        for cut in self._cuts:
            cells |= {TREATMENT: 2} if cut == Cut(schema.treatment.name) else strata([cut], schema)
        numbers = {name: each.number for name, each in self.quantities(schema).items()}
        if math.prod(cells.values()) * len(numbers) > MOST_COORDINATES:
            raise QueryError(
                expected=f"at most {MOST_COORDINATES:,} sums in all cells",
                got=f"{math.prod(cells.values()):,} cells with {len(numbers)} sums each",
                hint="use fewer columns, or wider bins.",
            )
        labels = tuple(f"[{', '.join(each)}]" for each in itertools.product(*self.labels(schema))) if cells else ()
        own, domain = dict(self.weights), domain_of(schema, protects)
        leaves = domain.leaves or not domain.changes.isdisjoint(columns(*cells))
        weights = {
            name: exact(float(own.get(name, 1.0))) * _largest_move(each, domain.changes, leaves=leaves)
            for name, each in numbers.items()
        }
        return (Sums(cells, numbers, {}, weights, labels=labels),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return {name: float(each.tick) for name, each in self.quantities(schema).items()}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        arm, outcome = quoted(schema.treatment.name), quoted(schema.outcome.name)
        total = {"n": "1", "total": f"centred({outcome})"}
        made = [cls(total, [schema.treatment.name]), cls({**total, "contrast": f"centred({arm}) * centred({outcome})"})]
        made += [cls(total, [schema.treatment.name, *cuts], {"n": 0.5}) for cuts in double_cut(schema)]
        numbers = [column for column in schema.covariates if isinstance(column, Real) and column.scale is None]
        for column in numbers[:1]:
            x, middle = quoted(column.name), column.low + (column.high - column.low) / 2
            products = {"x": f"centred({x})", "xx": f"deficit({x})", "xy": f"centred({x}) * centred({outcome})"}
            above, clipped = (
                f"where({x} >= {middle!r}, 1 - 2 * centred({arm}))",
                f"clip(2 * centred({outcome}), 0, 1e80)",
            )
            made += [cls({**total, **products}), cls({"clipped": clipped}, [schema.treatment.name])]
            if is_constant(Fraction(middle)):
                made.append(cls({**total, "above": above}, [schema.treatment.name]))
        return tuple(made)


def quoted(name: str) -> str:
    """Return the name of a column as expressions have it."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name}`"


def _pairs(what: str, given: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 (whatever a stranger wrote)
    """Return a mapping, or the list of pairs that JSON makes of one, as pairs."""
    listed = list(given.items()) if isinstance(given, Mapping) else given
    pairs = isinstance(listed, list | tuple) and all(
        isinstance(each, list | tuple) and len(each) == 2 for each in listed
    )
    if not pairs or not all(isinstance(name, str) for name, _ in listed) or len(dict(listed)) != len(listed):
        raise QueryError(
            expected=f"{what} by the names of sums, each name once",
            got=repr(given)[:100],
            hint="write for instance expressions={'n': '1', 'total': 'centred(score)'}.",
        )
    return tuple((name, value) for name, value in listed)


def _largest_move(number: Number, changes: AbstractSet[str], *, leaves: bool) -> Fraction:
    """Return how far one unit can move a sum by itself: to another value, or out of its cell. It is at least a tick."""
    moves = number.high - number.low if changes & set(columns(number)) else 0
    return Fraction(max(moves, number.size if leaves else 0, 1))


def _labels(cut: Cut, schema: Schema) -> tuple[str, ...]:
    if cut == Cut(schema.treatment.name):
        return tuple(map(label_of, schema.treatment.compared))
    names = cut.bin_names(schema)
    column = next(column for column in schema.covariates if column.name == cut.name)
    return names if isinstance(column, Real) else tuple(map(label_of, column.values))


def label_of(value: Value) -> str:
    """Return a value as the label of its cell: a number by its meaning, however it was written."""
    return value if isinstance(value, str) else str(plain_value(value)).removesuffix(".0")
