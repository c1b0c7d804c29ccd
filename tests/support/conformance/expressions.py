"""Integer SQL expressions evaluated in Python, whose integers have no width: what engines are compared with."""

import operator
import re
from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any

import numpy as np

Evaluate = Callable[[Mapping[str, Any]], Any]
"""What an expression is, given the coerced columns as arrays of Python integers, or as one integer each."""

_TOKEN = re.compile(r"\s*(\d+|\w+|>>|<=|>=|<>|[-+*(),=<>])")
_BETWEEN, _COMPARED, _SHIFTED, _SIGNED = "BETWEEN", 2, 3, 6
_OPERATORS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "AND": (1, operator.and_),
    "=": (_COMPARED, operator.eq),
    "<>": (_COMPARED, operator.ne),
    "<": (_COMPARED, operator.lt),
    "<=": (_COMPARED, operator.le),
    ">": (_COMPARED, operator.gt),
    ">=": (_COMPARED, operator.ge),
    ">>": (_SHIFTED, operator.rshift),
    "+": (4, operator.add),
    "-": (4, operator.sub),
    "*": (5, operator.mul),
}
"""Each operator with how strongly it binds."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "CAST": lambda value: value,
    "LEAST": lambda *values: reduce(np.minimum, values),
    "GREATEST": lambda *values: reduce(np.maximum, values),
}


@cache
def evaluator(text: str) -> Evaluate:
    """Return what evaluates an integer expression as `Engine.aggregate` takes it.

    Casts to integers change nothing, since no integer is too wide here, and a shift rounds down.

    Example:
        >>> evaluator("((CAST(outcome AS BIGINT) * outcome - 8) >> 1)")({"outcome": -1})
        -4
    """
    parser = _Parser(text)
    expression = parser.expression()
    if parser.ahead:
        raise NotImplementedError(f"no rule for {parser.ahead!r} in {text}")
    return expression


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._text, self._at = text, 0
        if "".join(self._tokens) != re.sub(r"\s", "", text):
            raise NotImplementedError(f"no rule for a sign in {text}")

    @property
    def ahead(self) -> str:
        """The next token, empty at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def expression(self, least: int = 0) -> Evaluate:
        """Take an expression up to an operator that binds less."""
        left = self._operand()
        while True:
            if self.ahead == _BETWEEN and least <= _COMPARED:
                self._take(_BETWEEN)
                low = self.expression(_SHIFTED)
                self._take("AND")
                left = _between(left, low, self.expression(_SHIFTED))
                continue
            strength, operate = _OPERATORS.get(self.ahead, (-1, operator.add))
            if strength < least:
                return left
            self._take(self.ahead)
            left = _of_two(operate, left, self.expression(strength + 1))

    def _take(self, wanted: str) -> None:
        if not self._takes(wanted):
            raise NotImplementedError(f"{wanted!r} expected, {self.ahead!r} found in {self._text}")

    def _takes(self, *wanted: str) -> bool:
        found = self.ahead in wanted
        self._at += found
        return found

    def _operand(self) -> Evaluate:
        first = self.ahead
        self._take(first)
        if first == "-":
            value = self.expression(_SIGNED)
            return lambda unit: -value(unit)
        if first == "(":
            inner = self.expression()
            self._take(")")
            return inner
        if first == "CASE":
            return self._case()
        if first.isdigit():
            return lambda _: int(first)
        return self._call(first) if self._takes("(") else lambda unit: unit[first]

    def _case(self) -> Evaluate:
        cases = []
        while self._takes("WHEN"):
            condition = self.expression()
            self._take("THEN")
            cases.append((condition, self.expression()))
        self._take("ELSE")
        value = self.expression()
        self._take("END")
        for condition, then in reversed(cases):
            value = _if(condition, then, value)
        return value

    def _call(self, name: str) -> Evaluate:
        arguments = [self.expression()]
        while self._takes(","):
            arguments.append(self.expression())
        if name not in _FUNCTIONS or (name == "CAST" and not (self._takes("AS") and self._takes("BIGINT", "INTEGER"))):
            raise NotImplementedError(f"no rule for {name} in {self._text}")
        self._take(")")
        return lambda unit: _FUNCTIONS[name](*(argument(unit) for argument in arguments))


def _if(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    return lambda unit: np.asarray(np.where(condition(unit), then(unit), otherwise(unit)), dtype=object)


def _between(value: Evaluate, low: Evaluate, high: Evaluate) -> Evaluate:
    return lambda unit: (low(unit) <= value(unit)) & (value(unit) <= high(unit))


def _of_two(operate: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda unit: operate(left(unit), right(unit))
