"""What every answer asks an engine to add up, compared with Python unit by unit."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcausal.errors import QueryError, TableError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, Query, seen_by
from dpcausal.queries.features import with_indicators
from dpcausal.schema.columns import Category, Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn, table_column
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.coercion import column_names
from dpcausal.vault.context import AnswerContext, runs_kernel
from dpcausal.vault.engines import OUTSIDE, Batch, Engine, ExactInts, TickExpression, exact_ints
from tests.support.conformance.coercion import Coerced, coerced_units
from tests.support.conformance.expressions import evaluator
from tests.support.conformance.schemas import SchemaCase

OpenEngine = Callable[[pa.Table, Schema], Engine]
"""Opens a table, seen through a schema, with the engine to check."""

_MOST_NOTED, _MOST_OTHERS = 3, 8
"""How many expressions that fail in one reading are noted, and of how many units tables of their own are made."""

_NUMBER = "number of the unit"
"""The covariate by which units are told apart."""


@dataclass(frozen=True)
class EngineRequest:
    """What an answer asks of an engine; see `Engine.aggregate`."""

    query: Query
    cells: Mapping[str, int]
    sums: Sequence[str]
    whole: bool


class ReferenceEngine:
    """Units added up in Python. It remembers what it is asked for."""

    most_sql_features = math.inf

    def __init__(self, units: Coerced, schema: Schema) -> None:
        self._columns = {name: np.array([unit[name] for unit in units], dtype=object) for name in column_names(schema)}
        self.asked: list[tuple[Mapping[str, int], Sequence[str], bool]] = []
        self._known: dict[tuple[tuple[tuple[str, int], ...], tuple[str, ...], bool], ExactInts] = {}

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of units; see `Engine.aggregate`."""
        self.asked.append((dict(cells), tuple(sums), whole))
        key = tuple(cells.items()), tuple(sums), whole
        if key not in self._known:
            self._known[key] = self._added_up(cells, sums, whole=whole)
        return self._known[key].copy()

    def _added_up(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool) -> ExactInts:
        columns = self._chosen(whole=whole)
        size = len(columns["treatment"])
        place = np.zeros(size, dtype=np.int64)
        for key, count in cells.items():
            place = place * count + evaluator(key)(columns).astype(np.int64)
        totals: ExactInts = np.zeros((math.prod(cells.values()), len(sums)), dtype=object)
        for at, number in enumerate(sums):
            np.add.at(totals[:, at], place, np.broadcast_to(evaluator(number)(columns), size))
        return totals.reshape(*cells.values(), len(sums))

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """Return what a kernel makes of all units; see `Engine.fold`."""
        return exact_ints(kernel(self.collect(columns, 0)))

    def collect(
        self,
        columns: Sequence[str],
        limit: int,  # noqa: ARG002 (tables here are small)
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        """Return all units at once; see `Engine.collect`."""
        chosen = self._chosen(whole=whole)
        units = {name: chosen[name].astype(np.int64) for name in columns}
        return kernel(units) if kernel else units

    def _chosen(self, *, whole: bool) -> dict[str, Any]:
        kept = (self._columns["treatment"] < OUTSIDE) | whole
        return {name: column[kept] for name, column in self._columns.items()}


def asked_by_answers(schema: Schema) -> list[EngineRequest]:
    """Return what the answers to all examples of all queries ask an engine to add up, whatever the table is.

    Columns are numbered as in `indicated(schema)`: some queries see indicators that a schema does not declare.
    """
    schema = indicated(schema)
    engine, asks = ReferenceEngine([], schema), []
    guarantee = Guarantee(epsilon=1.0, delta=1e-6, protects=schema.protects)
    for kind in QUERIES.values():
        for query in kind.examples(schema):
            engine.asked.clear()
            # A vault refuses a query that the schema does not allow before it reads.
            with suppress(QueryError):
                if runs_kernel(query, schema, engine):
                    continue
                seen = seen_by(query, schema)
                ANSWERS[kind](AnswerContext(query, seen, engine, guarantee, sampler=None))  # type: ignore[arg-type]
            asks += [EngineRequest(query, *each) for each in engine.asked]
    return asks


def indicated(schema: Schema) -> Schema:
    """Return a schema with an indicator for every number that can be missing."""
    return with_indicators(schema, [column.name for column in schema.covariates])


@dataclass
class EngineComparison:
    """How an engine's integers compare with Python's on one case.

    Attributes:
        examples: How many examples of queries ask for sums.
        expressions: How many different expressions were compared for every unit.
        units: How many units there are.
        differing: How many integers differ.
        failing: How many expressions fail for some cells and not for others; of one reading the first few count.
        broken: How many expressions fail for any cells.
        refused: Whether the table's types were refused when it was opened.
        found: What differs or fails, in words.
    """

    examples: int = 0
    expressions: int = 0
    units: int = 0
    differing: int = 0
    failing: int = 0
    broken: int = 0
    refused: bool = False
    found: list[str] = field(default_factory=list)


def compare(open_engine: OpenEngine, case: SchemaCase, asked: int = 5) -> EngineComparison:
    """Compare what an engine makes of a hostile table with what the documentation says, unit by unit.

    Args:
        open_engine: Opens a table with the engine.
        case: The schema and the table.
        asked: How many sums to ask for once more with the cells that answers have; other cases ask for others.
    """
    expected = _expected(case)
    case, asks, table, schema, units = expected.case, expected.asks, expected.table, expected.schema, expected.units
    found = EngineComparison(len({repr(ask.query) for ask in asks}), units=len(units))
    try:
        engine = open_engine(table, schema)
    except TableError:
        if not case.has_rare_types:
            raise
        found.refused = True
        return found
    asker = _Asker(open_engine, engine, case, expected.reference, found)
    each = {f"covariate_{len(schema.covariates) - 1}": len(units)}
    for sums in expected.batches:
        found.expressions += len(sums)
        asker.ask(each, sums, asks, whole=True)
    asker.ask(each, ["1", "outcome"], asks, whole=False)
    for ask in (asks[(case.place * asked + place) % len(asks)] for place in range(asked)):
        asker.ask(ask.cells, ask.sums, [ask], whole=ask.whole)
    asker.collect(column_names(schema))
    return found


@dataclass(frozen=True)
class _Expected:
    """What any engine is compared with on one case.

    Attributes:
        case: The case, with an indicator for every number that can be missing.
        asks: What answers ask for.
        table: The table with the number of each unit.
        schema: Its schema.
        units: Its units in plain Python.
        reference: Adds them up.
        batches: All expressions, as they are asked for together.
    """

    case: SchemaCase
    asks: list[EngineRequest]
    table: pa.Table
    schema: Schema
    units: Coerced
    reference: ReferenceEngine
    batches: list[list[str]]


@lru_cache(16)  # many engines, and many broken ones, see the same cases
def _expected(case: SchemaCase) -> _Expected:
    case = replace(case, schema=indicated(case.schema))
    asks = asked_by_answers(case.schema)
    table, schema = _numbered(case)
    units = coerced_units(table, schema)
    return _Expected(case, asks, table, schema, units, ReferenceEngine(units, schema), _batches(asks, case))


def _numbered(case: SchemaCase) -> tuple[pa.Table, Schema]:
    """Return the table and its schema with one covariate more, by which units are told apart."""
    number = Category(_NUMBER, range(len(set(case.owners))))
    table = case.table.append_column(_NUMBER, pa.array(case.owners, pa.int32()))
    return table, replace(case.schema, covariates=[*case.schema.covariates, number])


def _batches(asks: Sequence[EngineRequest], case: SchemaCase) -> list[list[str]]:
    """Return all coerced columns and all expressions, each once.

    Those that read only columns of numbers as such and of listed texts are apart from the others: what a warehouse
    reads itself, and what is streamed. Those that may be added up in floating point are apart from the others too.
    """
    names = column_names(case.schema)
    easy = {
        name
        for name, columns in _columns_behind(case.schema).items()
        if all(_is_easy(column, case.table) for column in columns)
    }
    batches: dict[tuple[bool, bool], dict[str, None]] = {}
    every = (*names, *(each for ask in asks for each in (*ask.cells, *ask.sums)))
    for each in every:
        key = set(re.findall(r"\w+", each)) & set(names) <= easy, isinstance(each, TickExpression)
        batches.setdefault(key, {}).setdefault(each)
    return [list(batch) for batch in batches.values()]


def _columns_behind(schema: Schema) -> dict[str, Sequence[TableColumn]]:
    """Return of which declared columns each coerced one is made, its own first."""
    arms: Sequence[TableColumn] = (schema.treatment, *schema.required_columns)
    others = ([column] for column in schema.columns[1:])
    return dict(zip(column_names(schema), (arms, *others, arms), strict=True))


_MOST_DIGITS = 15
"""Of a decimal number that is certainly one division of two whole numbers which a DOUBLE holds."""


def _is_easy(column: TableColumn, table: pa.Table) -> bool:
    """Return whether a warehouse can read a column as it stands."""
    held, kind = column.of if isinstance(column, Indicator) else column, table.schema.field(table_column(column)).type
    if pa.types.is_string(kind):
        return not isinstance(held, Real) and isinstance(held.values[0], str)
    wide = pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS
    return not (wide or pa.types.is_temporal(kind) or pa.types.is_uint64(kind))


class _Asker:
    """Asks an engine and Python for the same, and notes what is not."""

    def __init__(
        self,
        open_engine: OpenEngine,
        engine: Engine,
        case: SchemaCase,
        reference: ReferenceEngine,
        found: EngineComparison,
    ) -> None:
        self._open, self._engine, self._case, self._reference, self._found = open_engine, engine, case, reference, found

    def ask(self, cells: Mapping[str, int], sums: Sequence[str], asks: Sequence[EngineRequest], *, whole: bool) -> None:
        """Ask for sums; `asks` says whose they are."""
        expected = self._reference.aggregate(cells, sums, whole=whole)
        try:
            found = self._engine.aggregate(cells, sums, whole=whole)
        except Exception as error:  # noqa: BLE001 (whatever it is, an engine must not)
            self._note_failure(cells, sums, asks, error, whole=whole)
            return
        unlike = np.argwhere(found != expected)
        self._found.differing += len(unlike)
        noted = set()
        for at in unlike:
            *place, which = at.tolist()
            if which not in noted:
                noted.add(which)
                wrong = f"is {found[tuple(at)]}, and must be {expected[tuple(at)]}"
                self._note(cells, place, sums[which], asks, wrong)

    def collect(self, columns: Sequence[str]) -> None:
        """Ask for the units themselves."""
        try:
            read = self._engine.collect(columns, len(self._case.table), whole=True)
        except Exception as error:  # noqa: BLE001 (as above)
            self._found.broken += 1
            self._found.found.append(f"{self._case.name}: collecting units fails ({type(error).__name__})")
            return
        known = self._reference.collect(columns, 0, whole=True)
        found, expected = (
            sorted(zip(*(each[name].tolist() for name in columns), strict=True)) for each in (read, known)
        )
        unlike = sum(one != other for one, other in zip(found, expected, strict=False)) or int(found != expected)
        if unlike:
            self._found.differing += unlike
            self._found.found.append(f"{self._case.name}: {unlike} collected units are not read as declared")

    def _note_failure(
        self,
        cells: Mapping[str, int],
        sums: Sequence[str],
        asks: Sequence[EngineRequest],
        error: Exception,
        *,
        whole: bool,
    ) -> None:
        others = list(self._others())
        for each in itertools.islice(self._failing(cells, sums, whole=whole), _MOST_NOTED):
            passing = [unit for unit, engine in others if not self._fails(engine, cells, [each], whole=whole)]
            failing = [unit for unit, _ in others if unit not in passing]
            self._found.failing += bool(passing)
            self._found.broken += not passing
            if passing and failing:
                self._note(cells, [failing[0]], each, asks, f"fails ({type(error).__name__}), and does not for others")
            else:
                why = "fails for all of these units together" if passing else "fails for any unit"
                self._note(cells, [], each, asks, f"{why} ({type(error).__name__})")

    def _failing(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool) -> Iterator[str]:
        """Yield those of some expressions that fail, given that they fail together."""
        if len(sums) == 1:
            yield sums[0]
            return
        halves = sums[: len(sums) // 2], sums[len(sums) // 2 :]
        alone = [half for half in halves if self._fails(self._engine, cells, half, whole=whole)]
        for half in alone:
            yield from self._failing(cells, half, whole=whole)
        if not alone:
            yield sums[0]  # which fails only beside the others

    def _others(self) -> Iterator[tuple[int, Engine]]:
        """Yield tables of a single unit each, of a few units."""
        table, schema = _numbered(self._case)
        owners = np.array(self._case.owners)
        for unit in range(_MOST_OTHERS):
            yield unit, self._open(table.filter(pa.array(owners == unit)), schema)

    def _fails(self, engine: Engine, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool) -> bool:
        try:
            engine.aggregate(cells, sums, whole=whole)
        except Exception:  # noqa: BLE001
            return True
        return False

    def _note(
        self, cells: Mapping[str, int], place: Sequence[int], expression: str, asks: Sequence[EngineRequest], wrong: str
    ) -> None:
        """Note what is wrong with an expression, in a unit where units are told apart."""
        names = column_names(self._case.schema)
        columns = _columns_behind(self._case.schema)
        askers = [repr(ask.query) for ask in asks if expression in (*ask.sums, *ask.cells)]
        if expression in columns:
            what = f"{expression}, coerced from {columns[expression][0]!r},"
        else:
            what = f"{expression!r}, which {askers[0] if askers else 'nothing'} asks for,"
        used = [name for name in names if name in re.findall(r"\w+", " ".join((expression, *cells)))]
        if list(cells) == [f"covariate_{len(self._case.schema.covariates)}"]:
            read = dict.fromkeys(column for name in used for column in columns[name])
            where = "; ".join(self._described(column, unit) for unit in place for column in read)
        else:
            where = f"the cell {tuple(place)} of {', '.join(cells) or 'the whole table'}"
        self._found.found.append(f"{self._case.name}: {what} {wrong}: {where or 'any cell'}")

    def _described(self, column: TableColumn, unit: int) -> str:
        """Return the cells of a unit in a column, and what is hostile about them."""
        name = table_column(column)
        places = [place for place, owner in enumerate(self._case.owners) if owner == unit]
        cells = (f"{self._case.table[name][place].as_py()!r} ({self._case.kinds[name][place]})" for place in places)
        return f"{name!r}, {self._case.table.schema.field(name).type}: {', '.join(cells)}"
