"""How engines spell what they do not spell alike. Everything else in the SQL text is the same for all of them."""

from collections.abc import Callable
from dataclasses import dataclass

from dpcausal.schema.cells import BLANKS


@dataclass(frozen=True)
class Dialect:
    """One engine's spelling; expressions come in and go out as SQL text.

    Attributes:
        source: The name under which the SQL text knows the table.
        column: A column of the table, from its name.
        text: The bytes of a text. Bytes are compared and ordered alike everywhere, whatever collation the text has.
        number: A text read as DOUBLE; NULL where it is none.
        folded: A text as `cells.folded` has it, in letters that every function for texts is safe with, whatever bytes
            the text is made of.
        written: Bytes as they stand in a folded text.
        pattern: A pattern as a constant, from one whose every quantifier that could be possessive is.
        days: A date, or a time without time zone, as days since 1970-01-01, a DOUBLE.
    """

    source: str
    column: Callable[[str], str]
    text: Callable[[str], str]
    number: Callable[[str], str]
    folded: Callable[[str], str]
    written: Callable[[bytes], str]
    quoted: Callable[[str], str]
    pattern: Callable[[str], str]
    days: Callable[[str], str]


def _duckdb_column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb_text(expression: str) -> str:
    return f"encode(CAST({expression} AS VARCHAR))"


def _duckdb_number(expression: str) -> str:
    """DuckDB reads 1_000 as a number, but some longer ones wrongly: a text with an underscore is none here."""
    text = f"CAST({expression} AS VARCHAR)"
    return f"CASE WHEN NOT contains({text}, '_') THEN TRY_CAST({text} AS DOUBLE) END"


def _duckdb_folded(expression: str) -> str:
    r"""DuckDB writes bytes as text of ASCII letters, \xC3 for those beyond: its functions fail at text that is broken.

    Signs that are escaped are rare, and blanks are looked for only where there is one.
    """
    plain = f"lower(CAST({_duckdb_text(expression)} AS VARCHAR))"
    spaced = plain
    for blank in BLANKS:
        spaced = f"replace({spaced}, {_duckdb_quoted(_duckdb_written(blank))}, ' ')"
    return f"trim(CASE WHEN contains({plain}, '\\') THEN {spaced} ELSE {plain} END, ' ')"


_ESCAPED = b"\\'\""


def _duckdb_written(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in _ESCAPED else f"\\x{byte:02x}" for byte in data)


def _duckdb_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb_pattern(pattern: str) -> str:
    """RE2 takes no longer for any text, and has no possessive quantifiers."""
    for sign in "*?+}":
        pattern = pattern.replace(f"{sign}+", sign)
    return _duckdb_quoted(pattern)


def _duckdb_days(expression: str) -> str:
    return f"CAST(CAST({expression} AS DATE) - DATE '1970-01-01' AS DOUBLE)"


DUCKDB = Dialect(
    "dpcausal_source",
    column=_duckdb_column,
    text=_duckdb_text,
    number=_duckdb_number,
    folded=_duckdb_folded,
    written=_duckdb_written,
    quoted=_duckdb_quoted,
    pattern=_duckdb_pattern,
    days=_duckdb_days,
)


_SPACES = r"[ \t\n\x0B\f\r]*+"
_DIGITS = r"(?:[0-9]++[.]?+[0-9]*+|[.][0-9]++)(?:e[+-]?+[0-9]++)?+"
_NUMBER = (
    rf"(?i)^{_SPACES}[+]?+(?:-(?=nan))?+(-?+(?:inf(?:inity)?+|nan|{_DIGITS}))(?:(?<=nan)[(][a-z0-9]*+[)])?+{_SPACES}\z"
)
"""What DuckDB takes for a number. Java, left alone, would take more for one: it is given only the part that the first
brackets catch. Nothing in the pattern is tried twice, so that no text takes long or is too deep."""


def _spark_column(name: str) -> str:
    """Return a plain name, made of any: the engine gives it to the column, and no setting reads it otherwise."""
    return f"column_{name.encode().hex()}"


def _spark_text(expression: str) -> str:
    return f"CAST({expression} AS BINARY)"


def _spark_quoted(text: str) -> str:
    return f"CAST(unhex('{text.encode().hex()}') AS STRING)"  # settings decide what a backslash is


def _spark_number(expression: str) -> str:
    text = f"CAST({expression} AS STRING) COLLATE UTF8_BINARY"
    return f"TRY_CAST(regexp_extract({text}, {_spark_quoted(_NUMBER)}, 1) AS DOUBLE)"


def _spark_folded(expression: str) -> str:
    """Return one letter of Latin-1 for each byte: Java would put one sign in the place of all that is broken."""
    spaced = f"decode({_spark_text(expression)}, 'ISO-8859-1') COLLATE UTF8_BINARY"
    spaced = f"translate({spaced}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"
    for blank in BLANKS:
        spaced = f"replace({spaced}, {_spark_quoted(_spark_written(blank))}, ' ')"
    return f"trim(BOTH ' ' FROM {spaced})"


def _spark_written(data: bytes) -> str:
    return data.decode("latin-1")


def _spark_days(expression: str) -> str:
    return f"CAST(unix_date(CAST({expression} AS DATE)) AS DOUBLE)"


SPARK = Dialect(
    "{dpcausal_source}",
    column=_spark_column,
    text=_spark_text,
    number=_spark_number,
    folded=_spark_folded,
    written=_spark_written,
    quoted=_spark_quoted,
    pattern=_spark_quoted,
    days=_spark_days,
)
