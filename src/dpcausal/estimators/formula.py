"""Formulas of sums as texts, such as `total[drug] / n[drug]`: evaluated, never run as a program."""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.moments import COUNT, MOMENTS, columns_of, moment
from dpcausal.queries import CustomSums
from dpcausal.queries.quantities import middle_and_half
from dpcausal.schema.schema import Schema
from dpcausal.sums.expressions import (
    Call,
    CellReference,
    Comparison,
    Expression,
    Factors,
    Name,
    NumberLiteral,
    Power,
    Terms,
    Text,
    check_arguments,
    parse,
    parts,
)
from dpcausal.uncertainty.derivatives import Numbers
from dpcausal.utils.validation import did_you_mean

_FUNCTIONS = {"sqrt": np.sqrt, "log": np.log, "exp": np.exp}
_PUBLIC = ("middle", "half")
_TOTAL, _VARIANCE = "total", "variance"
_LARGEST_POWER = 8
_UNITS = "n"
"""The number of units in formulas, where no sum or formula has this name."""


def columns_in(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of which formulas have moments."""
    calls = (each for text in texts.values() for each in _numbers(parse(text)) if isinstance(each, Call))
    return tuple(name for call in calls if call.function in MOMENTS for name in columns_of(call))


def variances_in(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of which formulas have variances, each once."""
    calls = (each for text in texts.values() for each in _numbers(parse(text)) if isinstance(each, Call))
    columns = (columns_of(call) for call in calls if call.function == _VARIANCE)
    return tuple(dict.fromkeys(name for (name,) in columns))


def sums_for(texts: Mapping[str, str], own: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """Return the sums that formulas need, by name: one's own, and what `n` and moments need beyond these."""
    asked = {parse(text): text for text in own.values()}

    def ask(text: str) -> float:
        asked.setdefault(parse(text), text)
        return math.nan

    for each in itertools.chain.from_iterable(_numbers(parse(text)) for text in texts.values()):
        if each == Name(_UNITS) and _UNITS not in {**own, **texts}:
            ask(COUNT)
        elif isinstance(each, Call) and each.function in MOMENTS:
            moment(each, schema, ask)
        elif isinstance(each, Call) and each.function not in (*_PUBLIC, *_FUNCTIONS, _TOTAL):
            raise _unknown(each)
    if not asked:
        raise QueryError(
            problem="This formula uses neither n, nor a moment such as mean(score), nor a sum of your own",
            hint="write for instance mean(score)[drug] - mean(score)[placebo], with cells=['arm'].",
        )
    free = (name for place in itertools.count(1) if (name := f"sum{place}") not in {**own, **texts})
    further = [text for text in asked.values() if text not in own.values()]
    named = {_UNITS if text == COUNT and _UNITS not in {**own, **texts} else next(free): text for text in further}
    return {**own, **named}


def _numbers(expression: Expression) -> Iterator[Expression]:
    """Return an expression and all that it is made of, apart from columns."""
    yield expression
    if not (isinstance(expression, Call) and expression.function in (*MOMENTS, *_PUBLIC)):
        for part in parts(expression):
            yield from _numbers(part)


@dataclass(frozen=True)
class Formulas:
    """Formulas of the sums of a query, one after another: each may use the sums and the formulas before it.

    Attributes:
        schema: The schema of the tables that it is asked of.
        own: The sums that formulas may name; those of moments have names that nobody chose.
    """

    query: CustomSums
    schema: Schema
    texts: Mapping[str, str]
    own: Collection[str]

    def values(self, sums: Numbers) -> dict[str, Numbers]:
        """Return the values of the formulas.

        Args:
            sums: The sums in the order of the query's coordinates; a second axis for several sets of them.
        """
        labels = self.query.labels(self.schema)
        names = list(self.query.texts)
        table = sums.reshape(*map(len, labels), len(names), *sums.shape[1:])
        found = dict(zip(names, np.moveaxis(table, len(labels), 0), strict=True))
        known = {name: value for name, value in found.items() if name in (*self.own, _UNITS)}
        added = {parse(text): found[name] for name, text in self.query.texts.items()}
        scope = _Scope(known, added, labels, sums.ndim - 1, self.schema)
        with np.errstate(all="ignore"):  # what is no number is seen by whoever asked
            for name, text in self.texts.items():
                if name in known:
                    raise QueryError(problem=f"Two sums or formulas have the name {name!r}", hint="rename one.")
                known[name] = scope.value(parse(text))
        return {name: known[name] for name in self.texts}


@dataclass(frozen=True)
class _Scope:
    """What a formula may use: arrays with an axis for each part of the cells, and the last ones for sets of sums."""

    known: Mapping[str, Numbers]
    added: Mapping[Expression, Numbers]
    labels: Sequence[Sequence[str]]
    sets: int
    schema: Schema

    def value(self, expression: Expression) -> Numbers:  # noqa: PLR0911 (one case for each kind)
        match expression:
            case NumberLiteral():
                return np.asarray(float(expression.value))
            case Name():
                return self._named(expression.name)
            case CellReference():
                return self._cell(expression)
            case Terms():
                return sum((factor * self.value(each) for factor, each in expression.terms), np.zeros(()))
            case Factors():
                product: Numbers = np.ones(())
                for power, each in expression.factors:
                    value = self.value(each)
                    product = product * value if power > 0 else product / value
                return product
            case Power(base, NumberLiteral(exponent)) if exponent in range(1, _LARGEST_POWER + 1):
                return self.value(base) ** int(exponent)
            case Call():
                return self._call(expression)
            case Power() | Comparison() | Text():
                pass
        raise QueryError(
            expected=f"a formula of sums with + - * / and whole powers up to {_LARGEST_POWER}",
            got=type(expression).__name__.lower(),
            hint="write for instance mean(score)[drug] - mean(score)[placebo].",
        )

    def _named(self, name: str) -> Numbers:
        if name not in self.known:
            raise QueryError(
                problem=f"{name!r} is no sum or formula before this one; there are {', '.join(self.known)}"[:400],
                hint=f"{did_you_mean(name, self.known)}of columns a formula has moments: mean(score).",
            )
        return self.known[name]

    def _cell(self, cell: CellReference) -> Numbers:
        found = self.value(cell.number)
        if len(cell.labels) > min(len(self.labels), found.ndim - self.sets):
            raise QueryError(
                expected=f"at most {len(self.labels)} labels, one for each part of the cells",
                got=f"[{', '.join(cell.labels)}]"[:100],
                hint="cells are listed as in cells=[...].",
            )
        for given, known in zip(cell.labels, self.labels, strict=False):
            label = given if given in known else given.replace("<=", "≤").replace(">=", "≥")
            if label not in known:
                raise QueryError(
                    expected=f"a label out of {', '.join(known)}"[:300],
                    got=repr(label)[:80],
                    hint="labels are values of a column or its bins, in ' marks where they are no words; ≤ may be <=.",
                )
            found = found[list(known).index(label)]
        return found

    def _call(self, call: Call) -> Numbers:
        if call.function in _PUBLIC:
            check_arguments(call.function, call.arguments, "column", 1)
            (column,) = call.arguments
            if isinstance(column, Name):
                middle, half = middle_and_half(column.name, self.schema)
                return np.asarray(float(middle if call.function == "middle" else half))
        elif call.function in MOMENTS:
            return moment(call, self.schema, lambda text: self.added[parse(text)])
        elif call.function == _TOTAL or call.function in _FUNCTIONS:
            check_arguments(call.function, call.arguments, "number", 1)
            value = self.value(call.arguments[0])
            if call.function == _TOTAL:
                return value.sum(axis=tuple(range(value.ndim - self.sets)))
            found: Numbers = _FUNCTIONS[call.function](value)
            return found
        raise _unknown(call)


def _unknown(call: Call) -> QueryError:
    return QueryError(
        expected="mean(column), variance(column), covariance(column, column), middle(column), half(column), "
        "total(number), or sqrt, log or exp of a number",
        got=f"{call.function}(…)"[:80],
        hint=did_you_mean(call.function, (_TOTAL, *MOMENTS, *_PUBLIC, *_FUNCTIONS))
        + "total adds up cells; for other sums over units say in sums what a unit adds.",
    )


def one_number(value: Any, name: str, sets: int = 0) -> Numbers:  # noqa: ANN401 (an array of any shape)
    """Return the value of a formula that must be one number: not one for each cell."""
    if np.ndim(value) > sets:
        raise QueryError(
            expected=f"one number as {name}",
            got=f"{np.shape(value)[0]:,} of them: one for each cell",
            hint="name a cell, mean(score)[drug], or add up cells: total(n * mean(score)) / total(n) is the mean.",
        )
    return np.asarray(value)
