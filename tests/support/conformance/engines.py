"""What every engine must do, as one check."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcausal.errors import TableError
from dpcausal.queries import GRID
from dpcausal.schema.columns import Binary, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.testing.tables import hostile_tables, standard_schema
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import BATCH_ROWS, OUTSIDE, Batch, Engine
from tests.support.conformance.coercion import Coerced, coerced_units
from tests.support.conformance.schemas import STANDARD, random_case
from tests.support.conformance.sums import OpenEngine, compare

_COLUMNS = ("treatment", "outcome", "covariate_0", "covariate_1", "covariate_2")

_SUMS: dict[str, Callable[[Mapping[str, int]], int]] = {
    "1": lambda _: 1,
    "outcome": lambda unit: unit["outcome"],
    "CAST(outcome AS BIGINT) * covariate_1": lambda unit: unit["outcome"] * unit["covariate_1"],
    "covariate_1 - outcome": lambda unit: unit["covariate_1"] - unit["outcome"],
}
"""Expressions to add up, each with what it is of one unit."""

_CELLS: tuple[Mapping[str, int], ...] = (
    {},
    {"treatment": 3},
    {"treatment": 3, "covariate_0": 3},
    {"covariate_2": 2, "covariate_0": 3, "treatment": 3},
)
"""Columns to group by. No unit has the last value of covariate_0."""


def check_engine(open_engine: OpenEngine, schemas: int = 3) -> None:
    """Raise an AssertionError that names the broken rule, unless an engine computes what every engine must.

    An engine must add up exactly, also beyond 64 bits, whatever the order of a table; leave units outside the
    comparison out unless it is asked for the whole table; and read every cell as declared. For that, all examples of
    all queries are asked on hostile tables, and each integer that the engine adds up is compared, unit by unit, with
    one that Python finds without SQL: of cells at and beyond bounds, of NaN, infinity and text that is no number, of
    numbers of every type, of undeclared values and arms.

    Args:
        open_engine: Opens a pyarrow table, seen through a schema, with the engine. It may raise a `TableError` where
            the table has dates, times or integers without a sign. Of other types the engine lacks, choose one that
            holds the same values.
        schemas: On how many random schemas, each with a hostile table of its own, beside a few that are always the
            same.

    Example:
        >>> from dpcausal.vault.table import open_table
        >>> check_engine(open_table)
    """
    schema = standard_schema()
    table, units = _known_table()
    engine = open_engine(table, schema)
    _check_sums(engine, units, "", _CELLS)
    _check_sums(engine, units, "in a second pass, ")
    _check_folds(engine, units, "")
    _check_collects(engine, units, "")
    nobody = [0, 0, 0], [OUTSIDE] * 3
    others: dict[str, tuple[pa.Table, Coerced]] = {
        "in reverse order, ": (table.take(list(reversed(range(len(table))))), units),
        "of an empty table, ": (table.slice(0, 0), []),
        "of a table with nobody in the comparison, ": (_table_of(*nobody), _coerced(*nobody)),
    }
    for name, (other, coerced) in others.items():
        engine = open_engine(other, schema)
        _check_sums(engine, coerced, name)
        _check_folds(engine, coerced, name)
        _check_collects(engine, coerced, name)
    for case in itertools.chain(STANDARD, map(random_case, range(schemas))):
        found = compare(open_engine, case).found
        more = f" (and {len(found) - 1} more)" if found[1:] else ""
        _must(not found, f"integers are those of cells read as declared, unit by unit; {''.join(found[:1])}{more}")
    _check_coercion(open_engine)
    _check_many(open_engine)


def _must(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _known_table() -> tuple[pa.Table, Coerced]:
    """Return a table whose coerced values are known beforehand, and these values."""
    places = range(301)
    arms = [(0, 1, 1, 0, OUTSIDE)[place % 5] for place in places]
    return _table_of(places, arms), _coerced(places, arms)


def _table_of(places: Sequence[int], arms: Sequence[int]) -> pa.Table:
    return pa.table(
        {
            "treat": pa.array(arms, pa.int64()),
            "score": pa.array([(0.0, 10.0, 5.0)[place % 3] for place in places], pa.float64()),
            "ward": pa.array(["ab"[place % 7 % 2] for place in places], pa.string()),
            "age": pa.array([(90.0, 54.0, 18.0, 90.0)[place % 4] for place in places], pa.float64()),
            "smoker": pa.array([("no", "yes")[place % 11 % 2] for place in places], pa.string()),
        }
    )


def _coerced(places: Sequence[int], arms: Sequence[int]) -> Coerced:
    return [
        {
            "treatment": arm,
            "outcome": (-GRID, GRID, 0)[place % 3],
            "covariate_0": place % 7 % 2,
            "covariate_1": (GRID, 0, -GRID, GRID)[place % 4],
            "covariate_2": place % 11 % 2,
        }
        for place, arm in zip(places, arms, strict=True)
    ]


def _compared(units: Coerced) -> Coerced:
    return [unit for unit in units if unit["treatment"] < OUTSIDE]


def _check_sums(
    engine: Engine, units: Coerced, where: str, groupings: Sequence[Mapping[str, int]] = _CELLS[-1:]
) -> None:
    for cells, whole in itertools.product(groupings, (False, True)):
        found = engine.aggregate(cells, list(_SUMS), whole=whole)
        _must(found.shape == (*cells.values(), len(_SUMS)), f"{where}sums have an axis for each cell, and a last one")
        _must(all(type(value) is int for value in found.ravel()), f"{where}sums are Python integers")
        expected = np.zeros(found.shape, dtype=object)
        for unit in units if whole else _compared(units):
            expected[tuple(unit[name] for name in cells)] += [value(unit) for value in _SUMS.values()]
        read = "the whole table" if whole else "units in the comparison only"
        _must(bool((found == expected).all()), f"{where}sums are exact, of {read}, and 0 in cells without units")


def _moments(batch: Batch) -> NDArray[np.int64]:
    outcome, age = batch["outcome"], batch["covariate_1"]
    return np.array([[len(outcome), outcome.sum()], [(outcome * age).sum(), age.sum()]])


def _huge(batch: Batch) -> NDArray[np.object_]:
    return np.array([sum(2**100 + int(value) for value in batch["outcome"])], dtype=object)


def _real(batch: Batch) -> NDArray[np.float64]:
    return np.array([float(len(batch["outcome"]))])


def _sizes(batch: Batch) -> NDArray[np.int64]:
    size = len(batch["outcome"])
    return np.array([size, size > BATCH_ROWS])


def _check_folds(engine: Engine, units: Coerced, where: str) -> None:
    chosen = _compared(units)
    outcomes, ages = ([unit[name] for unit in chosen] for name in ("outcome", "covariate_1"))
    moments = [[len(chosen), sum(outcomes)], [sum(map(math.prod, zip(outcomes, ages, strict=True))), sum(ages)]]
    wanted: list[tuple[Callable[[Batch], NDArray[Any]], list[Any], str]] = [
        (_moments, moments, "a fold has the kernel's shape, and adds up over units in the comparison"),
        (_huge, [2**100 * len(chosen) + sum(outcomes)], "a fold is exact beyond 64 bits"),
        (_real, [len(chosen)], "a fold of whole numbers in floating point gives integers"),
    ]
    for kernel, expected, rule in wanted:
        found = engine.fold(("outcome", "covariate_1"), kernel)
        _must(found.tolist() == expected and all(type(value) is int for value in found.ravel()), f"{where}{rule}")


def _sorted(batch: Batch, names: Sequence[str]) -> list[tuple[int, ...]]:
    return sorted(zip(*(batch[name].tolist() for name in names), strict=True))


def _shifted(batch: Batch) -> Batch:
    return {"sum": batch["outcome"] + batch["covariate_1"], "arm": batch["treatment"] + 10}


def _check_collects(engine: Engine, units: Coerced, where: str) -> None:
    for whole in (False, True):
        chosen = units if whole else _compared(units)
        found = engine.collect(_COLUMNS, len(units), whole=whole)
        _must(list(found) == list(_COLUMNS), f"{where}the collected columns are those asked for")
        _must(all(each.dtype == np.int64 for each in found.values()), f"{where}collected columns have 64 bits")
        _must(
            _sorted(found, _COLUMNS) == sorted(tuple(unit[name] for name in _COLUMNS) for unit in chosen),
            f"{where}{'all units are' if whole else 'every unit in the comparison is'} collected once",
        )
        made = engine.collect(("treatment", "outcome", "covariate_1"), len(units), _shifted, whole=whole)
        sums = sorted((unit["outcome"] + unit["covariate_1"], unit["treatment"] + 10) for unit in chosen)
        _must(
            list(made) == ["sum", "arm"] and _sorted(made, ("sum", "arm")) == sums,
            f"{where}a kernel's columns are collected, unit by unit",
        )
    if units:
        try:
            engine.collect(("outcome",), len(units) - 1)
        except TableError:
            return
        raise AssertionError(f"{where}a table with more units than the limit is refused, those outside included")


def _check_many(open_engine: OpenEngine) -> None:
    """Check a table that is larger than a batch, and whose sums need more than 64 bits."""
    size = BATCH_ROWS + 9
    schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1))
    table = pa.table({"t": np.arange(size) % 2, "y": np.ones(size)})
    engine = open_engine(table, schema)
    odd = "CAST(outcome AS BIGINT) * outcome * outcome - 1"
    found = int(engine.aggregate({}, [odd])[0])
    _must(found == size * (GRID**3 - 1), "sums are exact beyond 64 bits")
    _must(
        engine.fold(("outcome",), _sizes).tolist() == [size, 0], f"a kernel sees at most {BATCH_ROWS:,} units at once"
    )


@dataclass(frozen=True)
class _Read:
    """A table, its schema, what is said of it, and what its cells are read as, in the order of the coerced columns."""

    table: pa.Table
    schema: Schema
    where: str
    expected: list[tuple[int, ...]]


@cache
def _read_as_declared() -> list[_Read]:
    """Return tables that every engine must read alike."""
    schema = standard_schema()
    tables = hostile_tables(schema, 50) | {"strange text": _strange_text()}
    of_schemas = [(table, schema, f"on the table {name!r}") for name, table in tables.items()]
    one_each = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1), unit=Unit("who", by="when", keep="first"))
    visits = pa.table(
        {
            "t": [0, 1, 1, 0, 1, None, 0, 1],
            "y": [0.0, 0.5, 1.0, 0.25, 0.5, 0.75, None, 1.0],
            "who": ["a", "a", "b", "b", "b", None, None, "c"],
            "when": [2, 1, None, 5, 5, 1, 1, 3],
        }
    )
    turned = visits.take(list(reversed(range(len(visits)))))
    of_schemas += [(table, one_each, "where units have several records") for table in (visits, turned)]
    totals = Schema(
        treatment=Treatment("t"),
        outcome=Real("y", -3, 10),
        covariates=[Binary("s"), Real("k", 0, 2), Real("x", 0, 1e-60)],
        unit=Unit("who", by="when", sum=["y", "s", "x"], count=["k"]),
    )
    of_schemas.append((_events(), totals, "where the records of units are added up"))
    return [
        _Read(table, seen, where, sorted(tuple(unit[name] for name in column_names(seen)) for unit in units))
        for table, seen, where in of_schemas
        for units in [coerced_units(table, seen)]
    ]


def _check_coercion(open_engine: OpenEngine) -> None:
    for each in _read_as_declared():
        columns = column_names(each.schema)
        found = open_engine(each.table, each.schema).collect(columns, len(each.table), whole=True)
        _must(_sorted(found, columns) == each.expected, f"{each.where}, cells are read as declared")


def _events() -> pa.Table:
    """Return units with none to many records, of which some are no numbers and some as large as numbers are."""
    numbers = [0.1, 2.5, -1.0, None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.3, 0.7, 9.9]
    sizes = [*range(1, 40)]
    who = [size for size in sizes for _ in range(size)]
    y = [numbers[(unit * place + place) % len(numbers)] for unit in sizes for place in range(unit)]
    tame = [0.1 * (unit % 7) if unit % 3 else number for unit, number in zip(who, y, strict=True)]
    return pa.table(
        {
            "t": pa.array([unit % 2 for unit in who]),
            "y": pa.array(tame, pa.float64()),
            "s": pa.array(["yes" if number == 0.3 else "1" if number == 0.7 else None for number in y], pa.string()),
            "k": pa.array([None if number is None else str(number) for number in y], pa.string()),
            "x": pa.array(y, pa.float64()),
            "who": pa.array(who),
            "when": pa.array([place * 7 % 11 for place in range(len(who))]),
        }
    )


def _strange_text() -> pa.Table:
    """Return a table of text for the standard schema, with cells that are not as declared."""
    numbers = ["41.5", " 54\n", "5e1", "+27", "nan", "-Infinity", "1e400", "-0", "1_0", "0x1", "", "½", None]
    arms = ["0", "1", " 1", "1.0", "2", "x", "", None]
    texts = ["a", "A", " b ", "c", "d", "'", "\\n", "", None, "no", "YES", "yes"]
    size = math.lcm(len(numbers), len(arms), 3)
    columns = {"treat": arms, "score": numbers, "ward": texts, "age": numbers[::-1], "smoker": texts[::-1]}
    return pa.table(
        {
            name: pa.array([cells[place % len(cells)] for place in range(size)], pa.string())
            for name, cells in columns.items()
        }
    )
