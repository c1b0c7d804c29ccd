"""Every engine that can be run here reads the hostile tables of random schemas as Python does, unit by unit."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from fractions import Fraction
from functools import lru_cache

import pyarrow as pa
import pytest

from dpcausal.audit.tables import exact_answer
from dpcausal.errors import TableError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, MissingOutcomes, seen_by
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.scale import Scale
from dpcausal.schema.treatment import table_column
from dpcausal.vault.coercion import column_names
from tests.support.conformance.coercion import coerced_units
from tests.support.conformance.expressions import evaluator
from tests.support.conformance.schemas import STANDARD, random_case
from tests.support.conformance.sums import OpenEngine, asked_by_answers, compare
from tests.support.open_engines import OPENED, Counting, NotHereError
from tests.support.slow import marked

IN_GATE = {"duckdb": 9, "postgresql": 6, "clickhouse": 4, "spark": 0, "snowflake": 0}
"""On how many schemas each engine is compared in the gate; the sweep has hundreds."""

BOTH = (False, True)
CASES = [
    (name, place) if place < most else marked((name, place)) for name, most in IN_GATE.items() for place in range(12)
]


shared_case = lru_cache(16)(random_case)
"""Cases that one engine after another is compared on."""


class Begun(dict[str, OpenEngine]):
    """Engines that were begun, by name."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, name: str) -> OpenEngine:
        try:
            self[name] = self._stack.enter_context(OPENED[name]())
        except NotHereError as error:
            pytest.skip(str(error))
        return self[name]


@pytest.fixture(scope="module")
def begun() -> Iterator[Begun]:
    with ExitStack() as stack:
        yield Begun(stack)


@pytest.mark.xdist_group("random schemas")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize(("name", "place"), CASES)
def test_engines_agree_with_python(name: str, place: int, begun: Begun) -> None:
    case, counts = shared_case(place), Counter[str]()
    open_engine = begun[name]
    compared = compare(lambda table, schema: Counting(open_engine(table, schema), counts), case)
    assert not compared.found
    if place % 3 != 2:  # whose columns are such as a warehouse reads itself
        assert not counts["streamed"]


@pytest.mark.xdist_group("random schemas")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("name", [name if most else marked(name) for name, most in IN_GATE.items()])
def test_engines_count_missing_outcomes_as_python_does(name: str, begun: Begun) -> None:
    """Of numbers, dates and answers; the engine is opened with the declared schema, as a vault opens it."""
    cases = [case for case in map(random_case, range(24)) if case.schema.outcome_may_be_missing]
    kinds = ([case for case in cases if isinstance(case.schema.outcome, kind)] for kind in (Real, Binary))
    seen = set()
    for case in (case for each in kinds for case in each[:3]):
        units = coerced_units(case.table, seen_by(MissingOutcomes(), case.schema))
        expected = Counter((unit["treatment"], unit["outcome"] > 0) for unit in units)
        with suppress(TableError):  # of a type that the engine refuses, when it is opened
            engine = begun[name](case.table, case.schema)
            ticks = exact_answer(MissingOutcomes(), case.schema, engine, Guarantee(epsilon=1)).ticks
            assert list(ticks.values()) == [expected[arm, missing] for arm in (0, 1) for missing in (False, True)]
            seen.add((type(case.schema.outcome), bool(expected[0, True] or expected[1, True])))
    assert {(Real, True), (Binary, True)} <= seen


def test_a_case_is_the_same_at_each_draw() -> None:
    one, other = random_case(5), random_case(5)
    assert (one.schema, one.owners, one.kinds) == (other.schema, other.owners, other.kinds)
    assert repr(one.table.to_pylist()) == repr(other.table.to_pylist())  # NaN is unlike itself


def test_cases_hold_what_they_are_for() -> None:
    cases = [*STANDARD, *map(random_case, range(60))]
    kinds = {kind for case in cases for column in case.kinds.values() for kind in column}
    assert kinds >= {"at the upper bound", "just below the lower bound", "not a number", "infinity", "minus zero"}
    assert kinds >= {"subnormal", "missing", "odd text", "a code for missing", "the type's least number"}
    types = {str(field.type) for case in cases for field in case.table.schema}
    assert types >= {*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "bool", "double", "float"}
    assert types >= {"date32[day]", "timestamp[us]", "string", "decimal128(12, 5)", "decimal128(38, 0)"}
    assert any(kind.startswith("just above the knot") for kind in kinds)
    numbers = [column for case in cases for column in case.schema.covariates if isinstance(column, Real)]
    assert {(column.scale is not None, column.missing is None) for column in numbers} == {
        *itertools.product(BOTH, BOTH)
    }
    assert any(len(case.schema.treatment.arms) == 3 for case in cases)
    assert any(case.schema.unit and case.schema.unit.sum for case in cases)
    assert {case.schema.outcome in case.schema.required_columns for case in cases} == {False, True}
    assert {bool(case.schema.required) for case in cases if case.schema.unit} == {False, True}
    assert {bool(case.schema.required) for case in cases if not case.schema.unit} == {False, True}
    assert {len(case.owners) > len(set(case.owners)) for case in cases} == {False, True}


def test_ticks_are_within_half_a_tick_of_exact_arithmetic() -> None:
    """Of bounds that are far apart in floating point; the last digits of close ones are rounded on the way."""
    seen = Counter[bool]()
    for case in (*STANDARD, *map(random_case, range(60))):
        units, names = coerced_units(case.table, case.schema), column_names(case.schema)
        for name, column in zip(names, case.schema.columns, strict=False):
            kind = case.table.schema.field(table_column(column)).type
            if case.schema.unit or not isinstance(column, Real) or not pa.types.is_floating(kind):
                continue
            low, high = Fraction(column.low), Fraction(column.high)
            if (high - low) * 10**6 < max(abs(low), abs(high)):
                continue
            for unit, cell in zip(units, case.table[column.name].to_pylist(), strict=True):
                if cell is None or math.isnan(cell) or cell in column.missing_codes:
                    continue
                number = Fraction(cell) if math.isfinite(cell) else Fraction(10) ** 400 * (1 if cell > 0 else -1)
                assert abs(unit[name] - exact_ticks(column, number)) <= Fraction(1, 2) + Fraction(1, 1000)
                seen[column.scale is not None] += 1
    assert min(seen.values()) > 200, seen


def exact_ticks(column: Real, number: Fraction) -> Fraction:
    """Return ticks before they are rounded: between the bounds, or between knots whose ticks are rounded."""
    scale = column.scale or Scale([(column.low, -1), (column.high, 1)])
    knots = [(Fraction(value), Fraction(math.floor(score * GRID + 0.5))) for value, score in scale.knots]
    within = min(max(number, knots[0][0]), knots[-1][0])
    (low, first), (high, last) = next(pair for pair in itertools.pairwise(knots) if within <= pair[1][0])
    return first + (last - first) * (within - low) / (high - low)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 - 2 - 1", 4),
        ("1 + 2 * 3", 7),
        ("- 3 * 2", -6),
        ("(1 + 4 >> 1)", 2),
        ("((x - 8) >> 2)", -1),
        ("CASE WHEN x = 5 THEN 1 WHEN x > 3 THEN 2 ELSE 3 END", 1),
        ("CASE WHEN x BETWEEN 6 AND 9 THEN 1 WHEN x <= 5 AND x <> 4 THEN 2 ELSE 3 END", 2),
        ("LEAST(GREATEST(x, 7), 6) + CAST(x AS BIGINT)", 11),
    ],
)
def test_expressions_are_evaluated_as_sql(text: str, value: int) -> None:
    assert evaluator(text)({"x": 5}) == value


@pytest.mark.parametrize("text", ["x / 2", "ABS(x)", "CAST(x AS DOUBLE)", "x y", "(x", "'x'"])
def test_expressions_of_another_kind_are_refused(text: str) -> None:
    with pytest.raises(NotImplementedError):
        evaluator(text)


def test_every_query_that_needs_no_rows_is_asked() -> None:
    asked = {ask.query.name for case in STANDARD for ask in asked_by_answers(case.schema)}
    assert len(asked) >= 20
