"""One change to the SQL of an engine, and its check fails: for each rule of how cells are read and sums are made."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dpcausal.vault.table
from dpcausal.errors import EngineError
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.readers.postgres import PostgresTable
from dpcausal.vault.table import open_table
from tests.support.conformance import check_engine
from tests.support.open_engines import OPENED, NotHereError
from tests.support.slow import sampled

NUMBER = r"CAST\('([^']*)' AS DOUBLE\)"
COVARIATE = r"AS INTEGER\) AS covariate_"
VALUE = r"(?:-?\d+|CAST\('[^']*' AS DOUBLE\))"
WITHIN = f"BETWEEN {VALUE} AND {VALUE}"
LISTED = rf"(?:IN \((?:[^()]|\([^()]*\))*\)|{WITHIN}(?: OR read_\d+ {WITHIN})+)"
CONDITION = rf"(<= CAST\('[^']*' AS [A-Z ]*\)|{LISTED})"
REQUIRED = "CASE WHEN {} {} THEN (?=CASE WHEN)"
"""What an arm depends on: that a required value reads as declared."""


@dataclass(frozen=True)
class Mutant:
    """What is changed in the text of every sum that is asked for, and what the check says of it."""

    pattern: str
    instead: str | Callable[["re.Match[str]"], str]
    found: str = "coerced from"
    error: type[Exception] = AssertionError


def scaled(number: str, factor: float) -> str:
    return f"CAST('{float(number) * factor!r}' AS DOUBLE)"


def shortened(match: "re.Match[str]") -> str:
    return f"CAST('{float(match[1]):.15g}' AS DOUBLE)"


def single(match: "re.Match[str]") -> str:
    number = float(match[1])
    return f"CAST('{float(np.float32(number)) if abs(number) < 1e38 else number!r}' AS DOUBLE)"


FURTHEST = r"1099511627776\.0"
MUTANTS = {
    "clip taken out": Mutant(
        rf"CASE WHEN (read_\d+) BETWEEN {NUMBER} AND {NUMBER} THEN read_\d+ ELSE CASE WHEN .*? "
        rf"WHEN .*? THEN .*? ELSE {NUMBER} END END",
        r"COALESCE(GREATEST(LEAST(\1, 1e6), -1e6), CAST('\4' AS DOUBLE))",
        "coerced from Real",
    ),
    "upper bound off": Mutant(
        rf"(<= CAST\('inf' AS DOUBLE\) THEN) {NUMBER}", lambda match: f"{match[1]} {scaled(match[2], 0.9999)}"
    ),
    "lower bound off": Mutant(
        rf"(read_\d+ < {NUMBER} THEN) {NUMBER}", lambda match: f"{match[1]} {scaled(match[3], 0.9999)}"
    ),
    "missing value off": Mutant(rf"ELSE {NUMBER} END END", r"ELSE \1 + 0.01 END END"),
    "infinity as missing": Mutant(r"<= CAST\('inf' AS DOUBLE\)", "< CAST('inf' AS DOUBLE)", "infinity"),
    "infinity below as missing": Mutant(
        rf"(WHEN (read_\d+) < {NUMBER}) THEN", r"\1 AND \2 > CAST('-inf' AS DOUBLE) THEN"
    ),
    "NaN as the upper bound": Mutant(
        r"WHEN (read_\d+) <= CAST\('inf' AS DOUBLE\) THEN CAST",
        r"WHEN \1 <= CAST('inf' AS DOUBLE) OR isnan(\1) THEN CAST",
        "not a number",
    ),
    "halves rounded to even": Mutant(
        r"FLOOR\((\(?CASE .*?) \+ CAST\('0.5' AS DOUBLE\)\)", r"round_even(\1, 0)", "half a tick|asks for"
    ),
    "halves rounded to zero": Mutant(
        r"FLOOR\((\(?CASE .*?) \+ CAST\('0.5' AS DOUBLE\)\)",
        r"trunc(\1 + CAST('0.5' AS DOUBLE))",
        "sums are exact|coerced from Real",
    ),
    "ticks not rounded": Mutant(r" \+ CAST\('0.5' AS DOUBLE\)\)", ")", "coerced from Real"),
    "slope of a scale off": Mutant(
        rf"(\(read_\d+ - {NUMBER}\)) \* {NUMBER}",
        lambda match: f"{match[1]} * {scaled(match[3], 1.00001)}",
        "coerced from Real",
    ),
    "knot in the wrong place": Mutant(
        rf"\(read_(\d+) - {NUMBER}\) \*", r"(read_\1 - CAST('\2' AS DOUBLE) * 1.001) *", "coerced from Real"
    ),
    "missing score off": Mutant(
        rf"(<= CAST\('inf' AS DOUBLE\) THEN {NUMBER} ELSE {NUMBER}) END AS INTEGER", r"\1 + 5 END AS INTEGER"
    ),
    "literals of 15 digits": Mutant(NUMBER, shortened),
    "literals of 32 bits": Mutant(NUMBER, single),
    "numbers read in 32 bits": Mutant(r"CAST\((cell_\d+) AS DOUBLE\)", r"CAST(\1 AS FLOAT)"),
    "codes for missing ignored": Mutant(r"NULLIF\((CAST\(cell_\d+ AS DOUBLE\)), [^)]*\)", r"\1"),
    "indicator inverted": Mutant(
        r"THEN 0 ELSE 1 END (AS INTEGER\) AS covariate_3)", r"THEN 1 ELSE 0 END \1", "Indicator"
    ),
    "an arm left out": Mutant(r"(CASE) WHEN \S+ = \S+ THEN 0 (.*? AS treatment)", r"\1 \2", "sums are exact"),
    "an arm too few": Mutant(r" WHEN read_\d+ = \S+ THEN 2( ELSE 3 END.*? AS INTEGER\) AS arm)", r"\1", "Treatment"),
    "an undeclared arm compared": Mutant(
        r"ELSE 2 (END(?: ELSE 2 END)* AS INTEGER\) AS treatment)", r"ELSE 1 \1", "sums are exact|Treatment"
    ),
    "who lacks an outcome compared": Mutant(
        REQUIRED.format(r"(read_1)", CONDITION), "CASE WHEN TRUE THEN ", r"coerced from Treatment.*\(missing\)"
    ),
    "who lacks a covariate compared": Mutant(
        REQUIRED.format(r"(read_[2-9])", CONDITION), "CASE WHEN TRUE THEN ", "coerced from Treatment"
    ),
    "only who lacks a value compared": Mutant(
        REQUIRED.format(r"(read_\d+)", CONDITION), r"CASE WHEN (\1 \2) IS NOT TRUE THEN ", "sums are exact"
    ),
    "who has infinity not compared": Mutant(
        REQUIRED.format(r"(read_\d+)", rf"<= {NUMBER}"),
        r"CASE WHEN \1 < CAST('\2' AS DOUBLE) THEN ",
        r"coerced from Treatment.*\(infinity\)",
    ),
    "who has NaN compared": Mutant(
        REQUIRED.format(r"(read_\d+)", rf"<= {NUMBER}"),
        r"CASE WHEN \1 IS NOT NULL THEN ",
        r"coerced from Treatment.*\(not a number\)",
    ),
    "who has an undeclared value compared": Mutant(
        REQUIRED.format(r"(read_\d+)", LISTED), r"CASE WHEN \1 IS NOT NULL THEN ", "coerced from Treatment"
    ),
    "units outside compared": Mutant(r"WHERE treatment < 2", "WHERE TRUE", "units in the comparison only"),
    "codes from 1": Mutant(rf"({COVARIATE}1)\b", r"+ 1 \1", "sums are exact|coerced from"),
    "undeclared as the first value": Mutant(rf"ELSE [12] (END {COVARIATE})", r"ELSE 0 \1"),
    "undeclared as the last value": Mutant(rf"ELSE 0 (END {COVARIATE})", r"ELSE 1 \1", "sums are exact|coerced from"),
    "numbers between values": Mutant(
        r"CASE WHEN (read_\d+) = FLOOR\(read_\d+\) THEN FLOOR\(read_\d+\) ELSE .*? END",
        r"FLOOR(\1)",
        "coerced from Category",
    ),
    "values nearly equal": Mutant(
        rf"WHEN (read_\d+) = {NUMBER} THEN", r"WHEN abs(\1 - CAST('\2' AS DOUBLE)) < 1e-9 THEN", "just above"
    ),
    "capitals apart": Mutant(r"lower\(", "("),
    "blanks apart": Mutant(r"\btrim\((CASE .*? END), ' '\)", r"\1", "blanks?"),
    "blanks of spreadsheets apart": Mutant(r"'\\xc2\\xa0'", r"'\\xff'", "spreadsheets"),
    "yes or no outcome off": Mutant(r"2097152 \* \((.*?)\) - 1048576", r"1048576 * (\1)", "coerced from Binary"),
    "cast lost": Mutant(r"CAST\((outcome|covariate_\d+) AS BIGINT\)", r"\1", "withheld", EngineError),
    "cast to 32 bits": Mutant(
        r"CAST\((outcome|covariate_\d+) AS BIGINT\)", r"CAST(\1 AS INTEGER)", "withheld", EngineError
    ),
    "shift rounds up": Mutant(r">> (\d+)\)", r">> \1) + 1", "asks for"),
    "shift too short": Mutant(r">> 10\)", ">> 9)", "asks for"),
    "bin edges in the bin below": Mutant(r"(outcome|covariate_\d+) >= (-?\d+) THEN", r"\1 > \2 THEN", "asks for"),
    "clip of changes taken out": Mutant(
        rf"LEAST\(GREATEST\((\(.*?\)), CAST\('-{FURTHEST}' AS DOUBLE\)\), CAST\('{FURTHEST}' AS DOUBLE\)\)",
        r"\1",
        "asks for",
    ),
    "deficit in floating point rounded up": Mutant(
        r"FLOOR\(\(CAST\('1099511627776.0'", "CEIL((CAST('1099511627776.0'", "asks for"
    ),
    "counts of known cells": Mutant(r"COUNT\(\*\)", "COUNT(NULLIF(treatment, 0))", "sums are exact"),
    "sums of different numbers": Mutant(r"\bSUM\(outcome\)", "SUM(DISTINCT outcome)", "sums are exact"),
}


@pytest.mark.parametrize("name", sampled(MUTANTS, 2))
def test_a_change_of_the_sql_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, changed = MUTANTS[name], []

    class Mutated(DuckDBEngine):
        """Adds up by another text; rows that are read are as before."""

        def _fetched(self, text: str) -> list[tuple[Any, ...]]:
            other = re.sub(mutant.pattern, mutant.instead, text)
            changed.append(other != text)
            return super()._fetched(other)

    monkeypatch.setattr(dpcausal.vault.table, "DuckDBEngine", Mutated)
    with pytest.raises(mutant.error, match=mutant.found):
        check_engine(open_table, schemas=0)
    assert any(changed)


READ, CAST = r'("rows"\."read_\d+")', r"CAST\('[^']*' AS DOUBLE PRECISION\)"
SERVED = {
    "clip taken out": Mutant(
        rf"CASE WHEN {READ} < {CAST} THEN {CAST} WHEN {READ} <= {CAST} THEN {CAST} ELSE ({CAST}) END",
        r"CASE WHEN \1 BETWEEN -1e6 AND 1e6 THEN \1 ELSE \3 END",
        "coerced from Real",
    ),
    "numbers between values": Mutant(
        rf"CASE WHEN {READ} = FLOOR\({READ}\) THEN FLOOR\({READ}\) ELSE {CAST} END",
        r"FLOOR(\1)",
        "coerced from Category",
    ),
    "who lacks a covariate compared": Mutant(
        REQUIRED.format(READ, CONDITION), "CASE WHEN TRUE THEN ", "coerced from Treatment"
    ),
    "products of 32 bits": Mutant(
        r'"(outcome|covariate_\d+)" AS BIGINT\)|AS BIGINT\) AS "(outcome|covariate_\d+)"',
        lambda match: match[0].replace("BIGINT", "INT"),
        "withheld",
        EngineError,
    ),
}
"""Changes of what PostgreSQL is sent; rows that it sends are as before."""


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("name", SERVED)
def test_a_change_of_what_a_server_is_sent_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, changed, own = SERVED[name], [], PostgresTable._lines

    def lines(self: PostgresTable, text: str, names: Sequence[str]) -> list[Any]:
        other = re.sub(mutant.pattern, mutant.instead, text)
        changed.append(other != text)
        return own(self, other, names)

    monkeypatch.setattr(PostgresTable, "_lines", lines)
    try:
        with OPENED["postgresql"]() as open_engine, pytest.raises(mutant.error, match=mutant.found):
            check_engine(open_engine, schemas=0)
    except NotHereError as error:
        pytest.skip(str(error))
    assert any(changed)
