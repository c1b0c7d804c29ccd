"""The SQL text of coercion and answers as a tree, and the same in a warehouse's spelling.

A tree is printed as it is: every CAST and every constant of it stands in the text. Numbers are computed in 64 bits.
"""

from collections.abc import Callable

import sqlglot
from sqlglot import expressions as sge

from dpcausal.schema.cells import BLANKS
from dpcausal.vault.engines.dialects import Dialect

_WIDE = sge.DataType(this=sge.DataType.Type.BIGINT)
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _not_here(expression: str) -> str:
    """Return what no warehouse reads: a column that needs it is streamed; see `warehouse.WarehouseEngine`."""
    return f"NOT_IN_WAREHOUSE({expression})"


WAREHOUSE = Dialect(
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


def parsed(text: str) -> sge.Select:
    """Return a SELECT as a tree."""
    return sqlglot.parse_one(text, dialect="duckdb", into=sge.Select)


def printed(select: sge.Select, dialect: str) -> str:
    """Return the text of a SELECT for a warehouse."""
    spelled = select.copy()
    for each in spelled.find_all(sge.Select):
        _qualify(each)
    for node in reversed(list(spelled.walk())):  # what is inside comes first
        if type(node) in _SPELLED:
            node.replace(_SPELLED[type(node)](node, dialect))
    return spelled.sql(dialect=dialect, identify=True)


def _qualify(select: sge.Select) -> None:
    """Name the table below before each column, since some warehouses would take a column for another one's new name."""
    below = select.args["from_"].this
    if isinstance(below, sge.Subquery):
        below.set("alias", sge.TableAlias(this=sge.to_identifier("rows")))
    for part in (*select.expressions, *filter(None, [select.args.get("where")])):
        for column in part.find_all(sge.Column):
            column.set("table", sge.to_identifier(below.alias_or_name))


def _literal(node: sge.Literal, _: str) -> sge.Expr:
    """Return a whole number in 64 bits, where it is one: shifts are by a number of 32 bits in PostgreSQL."""
    counts = isinstance(node.parent, sge.BitwiseRightShift) and node.arg_key == "expression"
    if node.is_string or counts or isinstance(node.parent, sge.DataTypeParam | sge.Cast | sge.Group | sge.Offset):
        return node
    return sge.Cast(this=node.copy(), to=_WIDE.copy())


def _cast(node: sge.Cast, dialect: str) -> sge.Expr:
    if node.to.this == sge.DataType.Type.INT:
        node.set("to", _WIDE.copy())
    if node.to.this == sge.DataType.Type.DOUBLE and isinstance(node.this, sge.Literal) and node.this.this == "inf":
        node.set("this", sge.Literal.string("inf" if dialect == "snowflake" else "Infinity"))
    return node


def _unhex(node: sge.Unhex, _: str) -> sge.Expr:
    return sge.Literal.string(bytes.fromhex(node.this.this).decode())


def _shift(node: sge.BitwiseRightShift, dialect: str) -> sge.Expr:
    if dialect != "clickhouse":
        return node
    return sge.Anonymous(this="bitShiftRight", expressions=[node.this, node.expression])


def _function(node: sge.Anonymous, dialect: str) -> sge.Expr:
    """Return a folded text; see `cells.folded`."""
    if node.name != "FOLDED":
        return node
    text = node.expressions[0]
    if dialect == "clickhouse":  # where this is for A to Z alone
        text = sge.Lower(this=text)
    else:
        text = sge.func("TRANSLATE", text, *map(sge.Literal.string, (_CAPITALS, _CAPITALS.lower())))
    for blank in BLANKS:
        text = sge.func("REPLACE", text, sge.Literal.string(blank.decode()), sge.Literal.string(" "))
    return sge.Trim(this=text, expression=sge.Literal.string(" "), position="BOTH")


_SPELLED: dict[type[sge.Expr], Callable[..., sge.Expr]] = {
    sge.Literal: _literal,
    sge.Cast: _cast,
    sge.Unhex: _unhex,
    sge.BitwiseRightShift: _shift,
    sge.Anonymous: _function,
}
