"""SQL text as Ibis expressions, which Ibis spells for each warehouse.

Only what `vault.coercion` and the answers write is understood. Anything else raises, whatever rows there are.
"""

from collections.abc import Callable, Sequence
from typing import Any

import ibis
import sqlglot
from ibis.expr import types as ir
from sqlglot import expressions as sge

from dpcausal.cells import BLANKS
from dpcausal.vault.engines.dialects import Dialect

_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _not_here(expression: str) -> str:
    """Return what no warehouse reads: a column that needs it is streamed; see `warehouse.runs_in_warehouse`."""
    return f"NOT_IN_WAREHOUSE({expression})"


IBIS = Dialect(
    "dpcausal_source",
    column=_quoted,
    text=lambda expression: expression,
    number=_not_here,
    folded=lambda expression: f"FOLDED({expression})",
    written=lambda data: data.decode("utf-8", "surrogateescape"),
    quoted=lambda text: "'" + text.replace("'", "''") + "'",
    pattern=lambda pattern: "'" + pattern.replace("'", "''") + "'",
    days=_not_here,
)
"""Texts are compared as texts: warehouses hold them in Unicode, or compare their bytes."""


def stages(text: str) -> list[list[sge.Expression]]:
    """Return the columns of nested SELECTs, from the innermost to the outermost."""
    found, select = [], sqlglot.parse_one(text, dialect="duckdb")
    while isinstance(select, sge.Select):
        found.append(select.expressions)
        select = select.args["from_"].this.unnest()
    return found[::-1]


def selected(table: ir.Table, columns: list[sge.Expression]) -> ir.Table:
    """Return a table with the columns of one SELECT."""
    return table.select(**{column.alias: _translated(column.this, table) for column in columns})


def values(texts: Sequence[str], table: ir.Table) -> list[ir.Value]:
    """Return SQL expressions in the columns of a table."""
    select = sqlglot.parse_one(f"SELECT {', '.join(texts)}", dialect="duckdb")
    return [_translated(each, table) for each in select.expressions]


def _translated(node: sge.Expression, table: ir.Table) -> Any:  # noqa: ANN401 (Ibis finds out what can be done with it)
    if type(node) not in _RULES:
        raise NotImplementedError(f"no rule for {node.sql(dialect='duckdb')}")
    return _RULES[type(node)](node, lambda each: _translated(each, table), table)


Inner = Callable[[sge.Expression], Any]


def _column(node: sge.Column, _: Inner, table: ir.Table) -> ir.Value:
    column = table[node.name]
    return column.cast("string") if column.type().is_unknown() else column


def _literal(node: sge.Literal, _: Inner, __: ir.Table) -> ir.Value:
    return ibis.literal(node.this) if node.is_string else ibis.literal(int(node.this))


def _cast(node: sge.Cast, inner: Inner, _: ir.Table) -> ir.Value:
    kind = {"DOUBLE": "float64", "BIGINT": "int64", "INT": "int32"}[node.to.sql(dialect="duckdb")]
    if isinstance(node.this, sge.Literal) and node.this.is_string:
        return ibis.literal(float(node.this.this), type=kind)
    cell = inner(node.this)
    if cell.type().is_boolean():
        one, zero = (ibis.literal(number, type=kind) for number in (1, 0))
        return ibis.cases((cell, one), (~cell, zero), else_=ibis.null(kind))
    return cell.cast(kind)


def _case(node: sge.Case, inner: Inner, _: ir.Table) -> ir.Value:
    cases = [(inner(each.this), inner(each.args["true"])) for each in node.args["ifs"]]
    return ibis.cases(*cases, else_=inner(node.args["default"]))


def _in(node: sge.In, inner: Inner, _: ir.Table) -> ir.Value:
    return inner(node.this).isin([inner(each) for each in node.expressions])


def _unhex(node: sge.Unhex, _: Inner, __: ir.Table) -> ir.Value:
    return ibis.literal(bytes.fromhex(node.this.this).decode())


def _function(node: sge.Anonymous, inner: Inner, _: ir.Table) -> ir.Value:
    """Return a folded text; see `cells.folded`."""
    if node.name != "FOLDED":
        raise NotImplementedError(f"no rule for {node.name}")
    text = inner(node.expressions[0]).translate(_CAPITALS, _CAPITALS.lower())
    for blank in BLANKS:
        text = text.replace(blank.decode(), " ")
    return text.strip()


def _extreme(choose: Callable[..., ir.Value]) -> Callable[..., ir.Value]:
    return lambda node, inner, _: choose(*(inner(each) for each in (node.this, *node.expressions)))


def _of_two(operation: Callable[[Any, Any], Any]) -> Callable[..., ir.Value]:
    return lambda node, inner, _: operation(inner(node.this), inner(node.expression))


_RULES: dict[type[sge.Expression], Callable[..., ir.Value]] = {
    sge.Column: _column,
    sge.Literal: _literal,
    sge.Cast: _cast,
    sge.Case: _case,
    sge.In: _in,
    sge.Unhex: _unhex,
    sge.Anonymous: _function,
    sge.Paren: lambda node, inner, _: inner(node.this),
    sge.Neg: lambda node, inner, _: -inner(node.this),
    sge.Floor: lambda node, inner, _: inner(node.this).cast("float64").floor(),
    sge.Between: lambda node, inner, _: inner(node.this).between(inner(node.args["low"]), inner(node.args["high"])),
    sge.Least: _extreme(ibis.least),
    sge.Greatest: _extreme(ibis.greatest),
    sge.Add: _of_two(lambda a, b: a + b),
    sge.Sub: _of_two(lambda a, b: a - b),
    sge.Mul: _of_two(lambda a, b: a * b),
    sge.Nullif: _of_two(lambda a, b: a.nullif(b)),
    sge.BitwiseRightShift: _of_two(lambda a, b: a >> b),
    sge.EQ: _of_two(lambda a, b: a == b),
    sge.LT: _of_two(lambda a, b: a < b),
    sge.LTE: _of_two(lambda a, b: a <= b),
    sge.GT: _of_two(lambda a, b: a > b),
    sge.GTE: _of_two(lambda a, b: a >= b),
}
