"""What every number in a SQL text can be, so that no row can make an engine fail, and all engines compute the same.

Each expression is followed from the table's columns on, with the type in which an engine computes it and its least and
greatest value. Engines compute whole numbers in the wider type of the two that they are made of, and a constant of up
to 31 bits has the narrow one. What is not shown to be within its type is refused, whatever the rows are: a product of
narrow numbers that may need more bits, a sum that may, FLOOR or CAST of a number that may be NaN, infinite or missing,
LEAST or GREATEST of one, a constant whose type an engine would choose. Only what `vault.coercion` and the answers
write is understood.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sqlglot import expressions as sge

from dpcausal.errors import EngineError
from dpcausal.vault.coercion import Family

Kind = Literal["narrow", "wide", "decimal", "double", "boolean", "text", "numeral", "date", "null", "other"]
"""What an engine computes in: integers of 32 and of 64 bits, decimals, floating point, and what is no number. A numeral
is a number written as text."""

_INTEGERS: tuple[Kind, ...] = ("narrow", "wide", "decimal")
_MOST: dict[Kind, int] = {"narrow": 2**31 - 1, "wide": 2**62, "decimal": 10**28, "double": 2**1000}
"""The largest size that a number of each type may have; the sum of 2^62 in size over 2^63 rows fits into 38 digits."""

_EXACT = 2**53
_MOST_RECORDS = 2**40
"""Of one unit."""

_SOURCES: dict[Family, Kind] = {
    "integer": "wide",
    "number": "double",
    "wide number": "decimal",
    "boolean": "boolean",
    "text": "text",
    "date": "date",
    "key": "other",
    "other": "other",
}
_TYPES: dict[str, Kind] = {
    **dict.fromkeys(("TINYINT", "INT"), "narrow"),
    "BIGINT": "wide",
    **dict.fromkeys(("DECIMAL", "BIGDECIMAL"), "decimal"),
    "DOUBLE": "double",
    **dict.fromkeys(("TEXT", "VARCHAR"), "text"),
    **dict.fromkeys(("BLOB", "BINARY", "VARBINARY"), "other"),
    "DATE": "date",
}


@dataclass(frozen=True)
class ValueRange:
    """What an expression can be.

    Attributes:
        low: Its least value; None where it may be anything of its type, NULL and NaN too.
    """

    kind: Kind
    low: float | None = None
    high: float | None = None
    whole: bool = True

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value of a number that is bounded."""
        if self.low is None or self.high is None:
            raise AssertionError("ends of a number without bounds")
        return self.low, self.high

    @property
    def is_bounded(self) -> bool:
        """Whether it is a number between two others, whatever the row."""
        return self.low is not None


Columns = Mapping[str, ValueRange]
Known: TypeAlias = tuple[tuple[sge.Expr, ValueRange], ...]
"""Expressions of which a branch of a CASE is only reached if they are in a range."""


def source_columns(families: Mapping[str, Family]) -> Columns:
    """Return what the columns of a table can be, by what their types let one do with them: anything."""
    return {name: ValueRange(_SOURCES[family], whole=family != "number") for name, family in families.items()}


@dataclass(frozen=True)
class Rules:
    """What an engine computes safely.

    Attributes:
        addends: The types that it adds up without overflow, whatever the number of rows, each with the largest size.
        signed_shifts: Whether it shifts negative numbers as if it divided them and rounded down.
    """

    addends: Mapping[Kind, int]
    signed_shifts: bool = False


def query_ranges(select: sge.Expr, source: Columns, rules: Rules) -> Columns:
    """Return what the columns of a query can be, given those of the table that it reads.

    Raises:
        EngineError: If some number is not shown to be within the type that an engine computes it in.
    """
    if not isinstance(select, sge.Select):
        raise _refused("SELECT", select)
    inner = select.args["from_"].this.unnest()
    columns = source if isinstance(inner, sge.Table) else query_ranges(inner, source, rules)
    within = _Expressions(columns, rules)
    if select.args.get("where"):
        within.range_of(select.args["where"].this)
    return {each.alias_or_name: within.range_of(each) for each in select.expressions}


class _Expressions:
    """Expressions in some columns."""

    def __init__(self, columns: Columns, rules: Rules) -> None:
        self._columns, self._rules = columns, rules

    def range_of(self, node: sge.Expr, known: Known = ()) -> ValueRange:
        """Return what an expression can be."""
        bare = node.unnest()
        for expression, found in known:
            if bare == expression:
                return found
        for kind, rule in _RULES:
            if isinstance(bare, kind):
                return rule(self, bare, known)
        raise _refused("an expression that is understood", bare)

    def _each(self, nodes: Sequence[sge.Expr], known: Known) -> list[ValueRange]:
        return [self.range_of(node, known) for node in nodes]

    def column(self, node: sge.Expr, _: Known) -> ValueRange:
        if node.name not in self._columns:
            raise _refused("a column of the query below", node)
        return self._columns[node.name]

    @staticmethod
    def literal(node: sge.Expr, _: Known) -> ValueRange:
        if node.is_string:
            return ValueRange("text")
        if not node.is_int:
            raise _refused("a constant with an explicit type", node)
        value = int(node.name)
        return _checked(ValueRange("narrow" if value <= _MOST["narrow"] else "wide", value, value), node)

    def cast(self, node: sge.Expr, known: Known) -> ValueRange:
        to = _TYPES.get(node.args["to"].this.value)
        if to is None:
            raise _refused("a type that all engines have", node)
        if isinstance(node, sge.TryCast):
            return ValueRange(to, whole=to != "double")
        if to == "double" and isinstance(node.this, sge.Literal) and node.this.is_string:
            value = float(node.this.this)
            return ValueRange("double", value, value, value.is_integer())
        given = self.range_of(node.this, known)
        if to == "text":
            return ValueRange("numeral" if given.kind in (*_INTEGERS, "double") else "text")
        if to in ("date", "other") or given.kind == "null":
            return ValueRange(to)
        return _cast_number(node, to, given)

    def negative(self, node: sge.Expr, known: Known) -> ValueRange:
        given = self.range_of(node.this, known)
        if given.kind not in (*_INTEGERS, "double") or not given.is_bounded:
            raise _refused("a number between bounds", node)
        low, high = given.ends
        return _checked(ValueRange(given.kind, -high, -low, given.whole), node)

    def arithmetic(self, node: sge.Expr, known: Known) -> ValueRange:
        first, second = self._each((node.this, node.expression), known)
        if isinstance(node, sge.Sub) and first.kind == second.kind == "date":
            return ValueRange("wide")
        kind = _common((first, second), node)
        if kind not in (*_INTEGERS, "double") or "null" in (first.kind, second.kind):
            raise _refused("numbers", node)
        if not (first.is_bounded and second.is_bounded):
            # Days of a date, less the day 0. DuckDB and Spark never fail at a sum of DOUBLEs.
            if kind == "double" and isinstance(node, sge.Add | sge.Sub):
                return ValueRange("double", whole=False)
            raise _refused("numbers between bounds, by CASE … BETWEEN", node)
        return _checked(_computed(node, kind, first, second), node)

    def shifted(self, node: sge.Expr, number: sge.Expr, by: sge.Expr, known: Known) -> ValueRange:
        given = self.range_of(number, known)
        if given.kind not in ("narrow", "wide") or not given.is_bounded or not by.is_int:
            raise _refused("a whole number between bounds to shift", node)
        if given.ends[0] < 0 and not self._rules.signed_shifts:
            raise _refused("a whole number of at least 0 to shift: engines shift others differently", node)
        low, high = (int(end) >> int(by.name) for end in given.ends)
        return ValueRange(given.kind, low, high)

    def masked(self, node: sge.Expr, known: Known) -> ValueRange:
        given, mask = self._each((node.this, node.expression), known)
        if given.kind != "wide" or not given.is_bounded or not node.expression.is_int:
            raise _refused("the last bits of a whole number between bounds", node)
        return ValueRange("wide", 0, mask.high)

    def function(self, node: sge.Expr, known: Known) -> ValueRange:
        """Return a function that the tree has no name for: a shift, or one of texts."""
        if node.name.lower() in ("bitshiftright", "bitwise_right_shift"):
            number, by = node.expressions
            return self.shifted(node, number, by, known)
        return ValueRange("text")

    def floor(self, node: sge.Expr, known: Known) -> ValueRange:
        given = self.range_of(node.this, known)
        if given.kind != "double" or not given.is_bounded:
            raise _refused("FLOOR of a number between bounds, by CASE … BETWEEN", node)
        low, high = map(math.floor, given.ends)
        return _checked(ValueRange("double", low, high), node)

    def extreme(self, node: sge.Expr, known: Known) -> ValueRange:
        given = self._each((node.this, *node.expressions), known)
        if not all(each.is_bounded for each in given):
            raise _refused("numbers between bounds: engines differ at NULL and NaN", node)
        choose = max if isinstance(node, sge.Greatest) else min
        low, high = (choose(each.ends[place] for each in given) for place in (0, 1))
        return ValueRange(_common(given, node), low, high, all(each.whole for each in given))

    def case(self, node: sge.Expr, known: Known) -> ValueRange:
        found = []
        for branch in node.args["ifs"]:
            condition = branch.this.unnest()
            self.range_of(condition, known)
            found.append(self.range_of(branch.args["true"], (*self._learned(condition, known), *known)))
        default = node.args.get("default")
        found.append(self.range_of(default, known) if default is not None else ValueRange("null"))
        kind, whole = _common(found, node), all(each.whole for each in found)
        if not all(each.is_bounded for each in found):
            return ValueRange(kind, whole=whole)
        return ValueRange(kind, min(each.ends[0] for each in found), max(each.ends[1] for each in found), whole)

    def _learned(self, condition: sge.Expr, known: Known) -> Known:
        """Return what is known where a condition holds: that a number is between two constants."""
        if not isinstance(condition, sge.Between):
            return ()
        given, low, high = self._each((condition.this, condition.args["low"], condition.args["high"]), known)
        if given.kind not in (*_INTEGERS, "double") or not (low.is_bounded and high.is_bounded):
            return ()
        least, most = low.ends[0], high.ends[1]
        if given.is_bounded:
            least, most = max(least, given.ends[0]), min(most, given.ends[1])
        return ((condition.this.unnest(), ValueRange(given.kind, least, max(least, most), given.whole)),)

    def comparison(self, node: sge.Expr, known: Known) -> ValueRange:
        others = [node.args[name] for name in ("expression", "low", "high") if node.args.get(name) is not None]
        _common(self._each((node.this, *others, *node.expressions), known), node)
        return ValueRange("boolean")

    def logic(self, node: sge.Expr, known: Known) -> ValueRange:
        self._each([each for each in (node.this, node.args.get("expression")) if each is not None], known)
        return ValueRange("boolean")

    def first_or_null(self, node: sge.Expr, known: Known) -> ValueRange:
        """NULLIF and COALESCE: one of the numbers, or none."""
        given = self._each(
            [node.this, *node.expressions, *([node.expression] if node.args.get("expression") else [])], known
        )
        return ValueRange(_common(given, node), whole=all(each.whole for each in given))

    def added(self, node: sge.Expr, known: Known) -> ValueRange:
        """Return a SUM over rows, whose number nothing bounds."""
        given = self.range_of(node.this, known)
        if (
            not given.is_bounded
            or not given.whole
            or max(map(abs, given.ends)) > self._rules.addends.get(given.kind, 0)
        ):
            raise _refused("a SUM of whole numbers that no number of rows makes overflow", node)
        return ValueRange("decimal")

    def window(self, node: sge.Expr, known: Known) -> ValueRange:
        """Return what is made of the records of one unit."""
        made = node.this
        if isinstance(made, sge.RowNumber):
            return ValueRange("wide", 1, _MOST_RECORDS)
        given = self.range_of(made.this, known)
        if isinstance(made, sge.Max) and given.is_bounded:
            return given
        if not isinstance(made, sge.Sum) or given.kind != "decimal":
            raise _refused("MAX, or SUM of decimals, of the records of a unit", node)
        low, high = given.ends
        return _checked(ValueRange("decimal", low * _MOST_RECORDS, high * _MOST_RECORDS), node)


def _cast_number(node: sge.Expr, to: Kind, given: ValueRange) -> ValueRange:
    if given.kind not in (*_INTEGERS, "double", "numeral") or (given.kind == "numeral" and to != "double"):
        raise _refused("a CAST that no cell can make fail", node)
    if to in _INTEGERS and not (given.whole and (given.is_bounded or given.kind == to == "wide")):
        raise _refused("a CAST to a whole number of one that is shown to be one, by CASE … BETWEEN and FLOOR", node)
    if (digits := node.args["to"].expressions) and to == "decimal":
        _checked(given, node, 10 ** (int(digits[0].name) - int(digits[1].name)) - 1)
    if node.args["to"].this.value == "TINYINT":
        _checked(given, node, 127)
    exact = to != "double" or (given.is_bounded and max(map(abs, given.ends)) <= _EXACT)
    return _checked(ValueRange(to, given.low, given.high, given.whole and exact), node)


def _computed(node: sge.Expr, kind: Kind, first: ValueRange, second: ValueRange) -> ValueRange:
    """Return a sum, difference, product or quotient. Floating point rounds in order, so its ends are at ends."""
    (a, b), (c, d) = first.ends, second.ends
    if kind == "double":
        a, b, c, d = map(float, (a, b, c, d))
    whole = first.whole and second.whole
    if isinstance(node, sge.Add):
        ends = (a + c, b + d)
    elif isinstance(node, sge.Sub):
        ends = (a - d, b - c)
    elif isinstance(node, sge.Mul):
        corners = (a * c, a * d, b * c, b * d)
        ends = (0 if _bare(node.this) == _bare(node.expression) else min(corners), max(corners))
    elif kind == "double" and c == d != 0:
        ends, whole = (min(a / c, b / c), max(a / c, b / c)), False
    else:
        raise _refused("a quotient of floating point and a constant", node)
    exact = kind != "double" or max(map(abs, ends)) <= _EXACT
    return ValueRange(kind, *ends, whole and exact)


def _bare(node: sge.Expr) -> sge.Expr:
    """Return an expression without the casts around it, which do not change a number within its type."""
    while isinstance(node, sge.Paren | sge.Cast):
        node = node.this
    return node


def _common(given: Sequence[ValueRange], node: sge.Expr) -> Kind:
    """Return the type of what is made of some expressions: the widest, if they are of one sort."""
    kinds = {each.kind for each in given} - {"null"}
    if not kinds:
        return "null"
    if kinds <= set(_INTEGERS):
        return max(kinds, key=_INTEGERS.index)
    if len(kinds) > 1 and not kinds <= {"text", "numeral", "other"}:
        raise _refused("numbers of one type, by an explicit CAST", node)
    return min(kinds)


def _checked(found: ValueRange, node: sge.Expr, most: int | None = None) -> ValueRange:
    if found.is_bounded and max(map(abs, found.ends)) > (_MOST[found.kind] if most is None else most):
        raise _refused(f"a number within the {found.kind} type that it is computed in", node)
    return found


def _refused(expected: str, node: sge.Expr) -> EngineError:
    return EngineError(
        expected=expected,
        got=node.sql(dialect="duckdb")[:200],
        hint="nothing was read; the query's parameters or the schema's bounds make numbers that are too large, "
        "or an answer needs a CAST.",
    )


Rule = Callable[[_Expressions, Any, Known], ValueRange]


def _constant(found: ValueRange) -> Rule:
    return lambda *_: found


_RULES: tuple[tuple[type[Any] | tuple[type[Any], ...], Rule], ...] = (
    (sge.Alias, lambda self, node, known: self.range_of(node.this, known)),
    (sge.Column, _Expressions.column),
    (sge.Literal, lambda self, node, known: self.literal(node, known)),
    (sge.Null, _constant(ValueRange("null"))),
    (sge.Boolean, _constant(ValueRange("boolean"))),
    (sge.Cast, _Expressions.cast),
    (sge.Neg, _Expressions.negative),
    ((sge.Add, sge.Sub, sge.Mul, sge.Div), _Expressions.arithmetic),
    (sge.BitwiseRightShift, lambda self, node, known: self.shifted(node, node.this, node.expression, known)),
    (sge.BitwiseAnd, _Expressions.masked),
    (sge.Anonymous, _Expressions.function),
    (sge.Floor, _Expressions.floor),
    ((sge.Least, sge.Greatest), _Expressions.extreme),
    (sge.Case, _Expressions.case),
    ((sge.And, sge.Or, sge.Not, sge.Is), _Expressions.logic),
    ((sge.Between, sge.In, sge.EQ, sge.NEQ, sge.LT, sge.LTE, sge.GT, sge.GTE), _Expressions.comparison),
    ((sge.Nullif, sge.Coalesce), _Expressions.first_or_null),
    (sge.Count, _constant(ValueRange("wide", 0, 2**62))),
    (sge.Sum, _Expressions.added),
    (sge.Window, _Expressions.window),
    (sge.UnixDate, _constant(ValueRange("wide"))),
    (sge.Collate, lambda self, node, known: self.range_of(node.this, known)),
    (sge.Func, _constant(ValueRange("text"))),  # of texts; no other function is written
)
