"""How engines spell what they do not spell alike. Everything else in the SQL text is the same for all of them."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """One engine's spelling; expressions come in and go out as SQL text.

    Attributes:
        source: The name under which the SQL text knows the table.
        column: A column of the table, from its name.
        text: The bytes of a text. Bytes are compared and ordered alike everywhere, whatever collation the text has.
        number: A text read as DOUBLE; NULL where it is none.
    """

    source: str
    column: Callable[[str], str]
    text: Callable[[str], str]
    number: Callable[[str], str]


def _duckdb_column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb_text(expression: str) -> str:
    return f"encode(CAST({expression} AS VARCHAR))"


def _duckdb_number(expression: str) -> str:
    """DuckDB reads 1_000 as a number, but some longer ones wrongly: a text with an underscore is none here."""
    text = f"CAST({expression} AS VARCHAR)"
    return f"CASE WHEN NOT contains({text}, '_') THEN TRY_CAST({text} AS DOUBLE) END"


DUCKDB = Dialect("dpcausal_source", _duckdb_column, _duckdb_text, _duckdb_number)


_BLANKS = r"[ \t\n\x0B\f\r]*+"
_DIGITS = r"(?:[0-9]++[.]?+[0-9]*+|[.][0-9]++)(?:e[+-]?+[0-9]++)?+"
_NUMBER = (
    rf"(?i)^{_BLANKS}[+]?+(?:-(?=nan))?+(-?+(?:inf(?:inity)?+|nan|{_DIGITS}))(?:(?<=nan)[(][a-z0-9]*+[)])?+{_BLANKS}\z"
)
"""What DuckDB takes for a number. Java, left alone, would take more for one: it is given only the part that the first
brackets catch. Nothing in the pattern is tried twice, so that no text takes long or is too deep."""


def _spark_column(name: str) -> str:
    """A plain name, made of any: the engine gives it to the column, and no setting reads it otherwise."""
    return f"column_{name.encode().hex()}"


def _spark_text(expression: str) -> str:
    return f"CAST({expression} AS BINARY)"


def _spark_number(expression: str) -> str:
    pattern = f"CAST(unhex('{_NUMBER.encode().hex()}') AS STRING)"  # settings decide what a backslash is
    text = f"CAST({expression} AS STRING) COLLATE UTF8_BINARY"
    return f"TRY_CAST(regexp_extract({text}, {pattern}, 1) AS DOUBLE)"


SPARK = Dialect("{dpcausal_source}", _spark_column, _spark_text, _spark_number)
