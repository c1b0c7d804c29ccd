"""Expressions over a schema's columns as whole numbers of a unit, each with the size of its tick.

A quantity is what a unit adds to a sum, in the schema's units: a whole number of ticks. Ticks of products, sums and
multiples follow from those of the columns, and numbers that would need too many bits are rounded, so that whoever
writes an expression need not know about ticks.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcausal.errors import QueryError
from dpcausal.guarantee import exact
from dpcausal.queries.coerced import OUTCOME, TREATMENT, covariate
from dpcausal.queries.features import is_measured
from dpcausal.queries.profiles import ticks_of
from dpcausal.queries.query import GRID, plain_value
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn, Treatment
from dpcausal.sums import expressions, numbers
from dpcausal.sums.expressions import Call, Comparison, Expression, Factors, Name, NumberLiteral, Power, Terms, Text
from dpcausal.sums.numbers import Between, Clip, Code, Number, Shift, Where, added, sign
from dpcausal.utils.validation import did_you_mean

_BITS = 40
"""How many bits a quantity may have: products with more are made of rounded factors."""

_STEP_BITS = 60
"""How many bits a step on the way to it may have."""

_LARGEST_TICK = Fraction(10) ** 250
_HIGHEST_POWER = 2
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Quantity:
    """A whole number of ticks, and the size of a tick in the schema's units."""

    number: Number
    tick: Fraction


def quantity(expression: Expression, schema: Schema) -> Quantity:
    """Return what an expression is for a unit of a schema's tables."""
    found = _value(expression, schema)
    made = _coarser(found if isinstance(found, Quantity) else _constant(found), _BITS)
    if not 1 / _LARGEST_TICK <= made.tick <= _LARGEST_TICK:
        raise QueryError(
            expected="a number of a unit whose ticks are of a usual size",
            got="one beyond 1e250, or below 1e-250",
            hint="use smaller constants, or measure columns in other units.",
        )
    return made


def middle_and_half(name: str, schema: Schema) -> tuple[Fraction, Fraction]:
    """Return the middle of a column's range, and half the length of the range."""
    column = _column(name, schema)
    if isinstance(column, Real):
        low, high = exact(column.low), exact(column.high)
        return (low + high) / 2, (high - low) / 2
    return _HALF, _HALF


def _value(expression: Expression, schema: Schema) -> Quantity | Fraction:
    match expression:
        case NumberLiteral():
            return expression.value
        case Terms():
            return _added([(factor, _value(each, schema)) for factor, each in expression.terms])
        case Factors():
            return _multiplied([(power, _value(each, schema)) for power, each in expression.factors])
        case Power(base, NumberLiteral(exponent)) if exponent in range(1, _HIGHEST_POWER + 1):
            return _multiplied([(1, _value(base, schema))] * int(exponent))
        case Power():
            raise QueryError(
                expected=f"a power of at most {_HIGHEST_POWER}",
                got="another one",
                hint="one unit moves higher powers too far; clip the number, or ask for products of different columns.",
            )
        case Call() if expression.function in _FUNCTIONS:
            wanted, call = _FUNCTIONS[expression.function]
            expressions.check_arguments(expression.function, expression.arguments, wanted, wanted.count(",") + 1)
            return call(expression.arguments, schema)
        case Call():
            raise QueryError(
                problem=f"There is no function {expression.function!r}; there are {', '.join(_FUNCTIONS)}"[:300],
                hint=f"{did_you_mean(expression.function, _FUNCTIONS)}divide, or take roots and logarithms, in the "
                "formula of sums.",
            )
    raise QueryError(
        expected="a number of a unit: constants and columns with + - *",
        got=_words(expression),
        hint="write centred(dose) for a column of numbers, and where(sex == 'f', 1) for a condition.",
    )


def _words(expression: Expression) -> str:
    return f"the column {expression.name!r}"[:80] if isinstance(expression, Name) else type(expression).__name__.lower()


def _constant(value: Fraction) -> Quantity:
    if not value:
        raise QueryError(expected="a number other than 0", got="0", hint="a sum of zeros tells nothing: leave it out.")
    return Quantity(numbers.Constant(1 if value > 0 else -1), abs(value))


def _bits(number: Number) -> int:
    return max(number.size - 1, 0).bit_length()


def _coarser(given: Quantity, most: int) -> Quantity:
    """Return a quantity rounded to so many bits."""
    bits = _bits(given.number) - most
    if bits <= 0:
        return given
    return Quantity(Shift(given.number + (1 << (bits - 1)), bits), given.tick * 2**bits)


def _added(terms: Sequence[tuple[int, Quantity | Fraction]]) -> Quantity | Fraction:
    """Return a sum. Its tick is the largest of which all ticks are multiples; constants are rounded to it."""
    constant = sum((factor * each for factor, each in terms if isinstance(each, Fraction)), Fraction(0))
    others = [(factor, each) for factor, each in terms if isinstance(each, Quantity)]
    if not others:
        return constant
    tick = others[0][1].tick
    for _, each in others[1:]:
        tick = _common(tick, each.tick)
    times = [factor * int(each.tick / tick) for factor, each in others]
    whole = round(constant / tick)
    if abs(whole) + sum(abs(by) * each.number.size for by, (_, each) in zip(times, others, strict=True)) >> _STEP_BITS:
        raise QueryError(
            expected="numbers of a unit with ranges that have a common measure, and constants of their size",
            got="others",
            hint="declare bounds in rounder numbers, or ask for each term as a sum of its own and add in the formula.",
        )
    parts = [by * each.number for by, (_, each) in zip(times, others, strict=True)]
    return Quantity(added([*parts, numbers.Constant(whole)]), tick)


def _common(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest number of which both are multiples."""
    return Fraction(
        math.gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )


def _multiplied(factors: Sequence[tuple[int, Quantity | Fraction]]) -> Quantity | Fraction:
    """Return a product; constants change the tick alone."""
    constant, product = Fraction(1), None
    for power, each in factors:
        if isinstance(each, Quantity):
            if power < 0:
                raise QueryError(
                    expected="division by constants",
                    got="division by a number of a unit",
                    hint="sums are divided in the formula, after noise is added.",
                )
            product = each if product is None else _product(product, each)
        elif power < 0 and not each:
            raise QueryError(expected="a divisor other than 0", got="0", hint="correct the expression.")
        else:
            constant *= each**power
    if product is None or not constant:
        return constant
    return Quantity(product.number if constant > 0 else -product.number, product.tick * abs(constant))


def _product(one: Quantity, other: Quantity) -> Quantity:
    """Return the product of two quantities; where it needs too many bits, the finer one is rounded first."""
    fine, coarse = (one, other) if _bits(one.number) >= _bits(other.number) else (other, one)
    fine = _coarser(fine, max(_BITS - _bits(coarse.number), _BITS // 2))
    coarse = _coarser(coarse, _BITS - _bits(fine.number))
    return Quantity(fine.number * coarse.number, fine.tick * coarse.tick)


def _column(name: str, schema: Schema) -> TableColumn:
    columns = {column.name: column for column in schema.columns}
    if name not in columns:
        raise QueryError(
            problem=f"There is no column {name!r}; there are {', '.join(columns)}"[:400],
            hint=f"{did_you_mean(name, columns)}expressions name columns as the schema does.",
        )
    return columns[name]


def _named(expression: Expression, schema: Schema) -> TableColumn:
    if not isinstance(expression, Name):
        raise QueryError(
            expected="the name of a column", got=_words(expression), hint="write for instance centred(dose)."
        )
    column = _column(expression.name, schema)
    if isinstance(column, Real) and not is_measured(column):
        raise QueryError(
            expected="a number in its own unit", got=f"{column.name!r} on a scale", hint="leave out its scale."
        )
    return column


def _tree(column: TableColumn, schema: Schema) -> Number:
    """Return a column as engines have it: ticks from the middle of its range, or the place of its value."""
    if isinstance(column, Treatment):
        return TREATMENT
    return OUTCOME if column is schema.outcome else covariate(column.name, schema)


def _centred(arguments: Sequence[Expression], schema: Schema) -> Quantity:
    column = _named(arguments[0], schema)
    tree = _tree(column, schema)
    if isinstance(tree, Code) and tree.count > 2:
        raise QueryError(
            expected="a column of numbers or of two values to measure from its middle",
            got=f"{column.name!r}, which has {tree.count} values",
            hint=f"count each value, where({column.name} == 'value', 1), or declare numbers as Real.",
        )
    _, half = middle_and_half(column.name, schema)
    return Quantity(sign(tree), half) if isinstance(tree, Code) else Quantity(tree, half / GRID)


def _deficit(arguments: Sequence[Expression], schema: Schema) -> Quantity:
    column = _named(arguments[0], schema)
    if not isinstance(column, Real):
        raise QueryError(
            expected="a column of numbers, whose square lacks something to that of half its range",
            got=repr(column.name),
            hint="the square of a column of two values is public: leave it out.",
        )
    _, half = middle_and_half(column.name, schema)
    return Quantity(numbers.deficit(_tree(column, schema)), half**2 / GRID)


def _clip(arguments: Sequence[Expression], schema: Schema) -> Quantity:
    given, *ends = (_value(each, schema) for each in arguments)
    if not isinstance(given, Quantity) or not all(isinstance(end, Fraction) for end in ends) or ends[0] >= ends[1]:  # type: ignore[operator]
        raise QueryError(
            expected="clip(number, low, high) of a number of a unit and two constants, low < high",
            got="something else",
            hint="write for instance clip(centred(dose) * centred(score), -10, 10).",
        )
    tree = given.number
    least, most = (min(max(round(end / given.tick), tree.low), tree.high) for end in ends)  # type: ignore[operator]
    return Quantity(Clip(tree, least, most), given.tick)


def _where(arguments: Sequence[Expression], schema: Schema) -> Quantity:
    condition, value = _condition(arguments[0], schema), _value(arguments[1], schema)
    then = value if isinstance(value, Quantity) else _constant(value)
    return Quantity(Where(condition, then.number), then.tick)


def _condition(expression: Expression, schema: Schema) -> Between:
    match expression:
        case Comparison(sign="==", left=left, right=right):
            return _equal(_named(left, schema), right, schema)
        case Comparison(sign=compared, left=left, right=right):
            column, tree, (at,) = _thresholds(left, [right], schema)
            least, most = {"<": (-GRID, at - 1), "<=": (-GRID, at), ">": (at + 1, GRID), ">=": (at, GRID)}[compared]
        case Call(function="between", arguments=(left, low, high)):
            column, tree, (least, most) = _thresholds(left, [low, high], schema)
        case _:
            raise QueryError(
                expected="a condition: a comparison of a column with a constant, or between(column, low, high)",
                got=_words(expression),
                hint="write for instance where(age >= 65, 1), or where(sex == 'f', 1).",
            )
    if not -GRID <= least <= most <= GRID:
        raise QueryError(
            expected=f"a condition on {column.name!r} that can hold",
            got="one that cannot",
            hint="correct its constants.",
        )
    return Between(tree, least, most)


def _thresholds(
    name: Expression, given: Sequence[Expression], schema: Schema
) -> tuple[TableColumn, Number, tuple[int, ...]]:
    """Return a column of numbers, and public values of it in ticks."""
    column = _named(name, schema)
    found = [_value(each, schema) for each in given]
    if not isinstance(column, Real) or not all(
        isinstance(each, Fraction) and exact(column.low) <= each <= exact(column.high) for each in found
    ):
        raise QueryError(
            expected="a column of numbers to be compared with constants within its bounds",
            got=repr(column.name)[:80],
            hint="compare a column of listed values by ==, with its value in ' marks where it is a text.",
        )
    return column, _tree(column, schema), tuple(ticks_of(column, float(each)) for each in found)  # type: ignore[arg-type]


def _equal(column: TableColumn, value: Expression, schema: Schema) -> Between:
    """Return whether a column of listed values has one of them."""
    listed = (
        [] if isinstance(column, Real) else list(column.compared if isinstance(column, Treatment) else column.values)
    )
    plain = [each if isinstance(each, str) else exact(float(plain_value(each))) for each in listed]
    wanted = value.text if isinstance(value, Text) else _value(value, schema)
    if isinstance(wanted, Quantity) or wanted not in plain:
        raise QueryError(
            expected=f"a value of {column.name!r} out of {', '.join(map(repr, listed)) or 'none: it is a number'}"[
                :300
            ],
            got=repr(value.text)[:80] if isinstance(value, Text) else "another number",
            hint="write a text in ' marks: sex == 'f'. Numbers are compared by < <= > >= or between.",
        )
    place = plain.index(wanted)
    tree = _tree(column, schema)
    if isinstance(column, Binary) and not isinstance(tree, Code):  # an outcome
        place = GRID * (2 * place - 1)
    return numbers.equals(tree, place)


_Call = Callable[[Sequence[Expression], Schema], Quantity]
_FUNCTIONS: dict[str, tuple[str, _Call]] = {
    "centred": ("column", _centred),
    "deficit": ("column", _deficit),
    "clip": ("number, low, high", _clip),
    "where": ("condition, number", _where),
}
"""The functions of a unit's columns, with what their arguments are."""
