"""Numbers and descriptions as JSON, and back: one text for each description, and its digest."""

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcausal.errors import QueryError
from dpcausal.sums.description import Sums
from dpcausal.sums.limits import DEEPEST, MOST_NODES
from dpcausal.sums.numbers import (
    Between,
    Bin,
    Clip,
    Code,
    Constant,
    Lookup,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
)

Json = Any
"""What `json` reads: lists, texts, whole numbers."""


def number_to_json(number: Number) -> Json:  # noqa: C901, PLR0911 (one case for each kind)
    """Return a number as lists that JSON writes: the name of its kind, and what it is made of."""
    match number:
        case Ticks():
            return ["ticks", number.column]
        case Code():
            return ["code", number.column, number.count]
        case Constant():
            return number.value
        case Sum():
            return ["sum", *map(number_to_json, number.terms)]
        case Product():
            return ["product", number_to_json(number.left), number_to_json(number.right)]
        case Shift():
            return ["shift", number_to_json(number.number), number.bits]
        case Clip():
            return ["clip", number_to_json(number.number), number.least, number.most]
        case Bin():
            return ["bin", number_to_json(number.number), list(number.edges)]
        case Lookup():
            return ["lookup", number_to_json(number.number), list(number.values)]
        case Where():
            given = number.condition
            return ["where", number_to_json(given.number), given.least, given.most, number_to_json(number.number)]
    raise AssertionError(f"no JSON for {type(number).__name__}")


def number_from_json(given: Json) -> Number:
    """Return the number that lists of JSON are.

    Raises:
        QueryError: If they are none.
    """
    return _Reader().number(given, DEEPEST)


class _Reader:
    """Reads a tree, and stops where it becomes too large."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def number(self, given: Json, deep: int) -> Number:  # noqa: C901, PLR0911 (one case for each kind)
        self._left -= 1
        if self._left < 0 or deep == 0:
            raise QueryError(
                expected=f"at most {MOST_NODES:,} nodes, at most {DEEPEST} deep",
                got="more",
                hint="split the number into several sums.",
            )
        match given:
            case int():
                return Constant(given)
            case ["ticks", column]:
                return Ticks(column)
            case ["code", column, count]:
                return Code(column, count)
            case ["sum", *terms]:
                return Sum(tuple(self.number(each, deep - 1) for each in terms))
            case ["product", left, right]:
                return Product(self.number(left, deep - 1), self.number(right, deep - 1))
            case ["shift", of, bits]:
                return Shift(self.number(of, deep - 1), bits)
            case ["clip", of, least, most]:
                return Clip(self.number(of, deep - 1), least, most)
            case ["bin", of, [*edges]]:
                return Bin(self.number(of, deep - 1), tuple(edges))
            case ["lookup", of, [*values]]:
                return Lookup(self.number(of, deep - 1), tuple(values))
            case ["where", of, least, most, then]:
                return Where(Between(self.number(of, deep - 1), least, most), self.number(then, deep - 1))
        raise QueryError(
            expected="a number: the name of its kind, and what it is made of",
            got=repr(given)[:80],
            hint='write for instance ["ticks", "outcome"].',
        )


def to_json(sums: Sums) -> dict[str, Json]:
    """Return a description as JSON has it."""
    return {
        "cells": [[number_to_json(factor), count] for factor, count in sums.cells.items()],
        "numbers": {name: number_to_json(each) for name, each in sums.numbers.items()},
        "whole": {name: number_to_json(each) for name, each in sums.whole.items()},
        "weights": {name: str(weight) for name, weight in sums.weights.items()},
        "everyone": sums.everyone,
        "labels": list(sums.labels),
    }


def from_json(given: Mapping[str, Json]) -> Sums:
    """Return the description that `to_json` wrote."""
    match given:
        case {
            "cells": [*factors],
            "numbers": dict(numbers),
            "whole": dict(whole),
            "weights": dict(weights),
            "everyone": bool(everyone),
            "labels": [*labels],
            **others,
        } if not others and all(isinstance(each, list) and len(each) == 2 for each in factors):
            return Sums(
                {number_from_json(factor): count for factor, count in factors},
                {name: number_from_json(each) for name, each in numbers.items()},
                {name: number_from_json(each) for name, each in whole.items()},
                {name: _weight(each) for name, each in weights.items()},
                everyone,
                _labels(labels),
            )
    raise QueryError(
        expected="a description with cells, numbers, whole, weights, everyone and labels, and nothing else",
        got=repr(given)[:200],
        hint="write it with sums.serialization.to_json.",
    )


def _labels(given: list[Json]) -> tuple[str, ...]:
    if not all(isinstance(each, str) for each in given):
        raise QueryError(expected="texts as labels of cells", got=repr(given)[:80], hint='write for instance "_0".')
    return tuple(given)


def _weight(text: Json) -> Fraction:
    try:
        return Fraction(text if isinstance(text, str) and len(text) < 1_000 and "e" not in text.lower() else "")
    except (ValueError, ZeroDivisionError):
        raise QueryError(
            expected="a weight as a fraction", got=repr(text)[:80], hint='write for instance "3/2".'
        ) from None


def digest(sums: Sums) -> str:
    """Return the SHA-256 of a description: the same for the same sums in the same order, and for no others."""
    text = json.dumps(to_json(sums), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
