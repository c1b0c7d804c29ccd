"""Random schemas, and for each a hostile table: any engine must read it as declared."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category, Column, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.scale import LEAST_GAP, Scale
from dpcausal.schema.schema import PROTECTS, Schema
from dpcausal.schema.treatment import TableColumn, Treatment, table_column
from tests.support.conformance.cells import Cell, hostile_cells

T = TypeVar("T")

_NAMES = (
    *("a", "Zeta", "x y", "select", "order", "outcome", "treatment", "covariate_0", "arm", "cell_0", "read_1", "unit"),
    *("é", 'quo"te', "back\\slash", "{x}", "$1", "%s", "_", "9", "t.u", "it's", "`tick`", "sum_0", "place", "step_0"),
    *("aa", "zz", "b2", "Y", "m", "n1", "k", "w", "v", "u", "q"),
)
_BOUNDS = (
    *((0.0, 1.0), (18.0, 90.0), (-5.0, 5.0), (-1.0, 3.0), (0.0, 1e-60), (0.0, 1e70), (-1e70, 1e70), (1e9, 1e9 + 1)),
    *((-3.0, 1e6), (0.1, 0.3), (-1e-3, 1e-3), (0.0, 2.0**21), (-(2.0**20), 2.0**20), (0.1, 1e60), (-7e-90, 1e-90)),
    *((0.0, 3650.0), (0.3, 0.30000000000000004 + 1e-9), (-200.0, 100.0)),
)
_TEXT_VALUES: tuple[Sequence[Value], ...] = (
    ("a", "b", "c"),
    ("low", "Mid", "HIGH"),
    ("é", "Å", "ß"),
    ("no", "yes"),
    ("x y", "'", "z"),
    ("ja", "nein"),
)
_NUMBER_VALUES: tuple[Sequence[Value], ...] = (
    *(
        (0, 1),
        (1, 2, 3),
        (0, 1, 2, 3),
        (-2, -1, 0),
        (5, 1, 3),
        (1, 2, 4),
        (10**9, 5),
        (2**40, 1),
        (False, True),
        (1, 0),
    ),
    *((0.5, 1.5, 2.5), (0.1, 0.2, 0.30000000000000004), (1.0, 2.0, 3.0), (-1.5, 2.25), (3.0, 4.0, 5.0, 6.0)),
)
_WIDTHS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_DECIMALS = (pa.decimal128(12, 5), pa.decimal128(15, 3), pa.decimal128(25, 19), pa.decimal128(38, 0))
_NUMBER_TYPES = (
    *(pa.float64(),) * 7,
    *(pa.float32(),) * 2,
    *_WIDTHS,
    *_WIDTHS,
    *_UNSIGNED,
    *_DECIMALS,
    pa.bool_(),
    *(pa.string(),) * 3,
)
_EASY_TYPES = (*(pa.float64(),) * 6, *(pa.float32(),) * 2, *_WIDTHS, *_DECIMALS[:2], *_UNSIGNED[:3], pa.bool_())
_WRITTEN: tuple[dict[str, Any], ...] = (
    *({},) * 4,
    {"decimal": ","},
    {"thousands": ","},
    {"thousands": " "},
    {"decimal": ",", "thousands": "."},
    {"strip": ["mg", "€", "$"]},
    {"strip": ["%"]},
    {"percent": True},
)
_DATES: tuple[dict[str, Any], ...] = ({}, {"date_format": "%d.%m.%Y"}, {"date_format": ["%Y%m%d", "%d/%m/%Y"]})


@dataclass(frozen=True, eq=False)
class SchemaCase:
    """A schema, and a hostile table for it. A case is equal to itself alone.

    Attributes:
        place: Its place in the sequence of cases.
        schema: What is declared.
        table: The table.
        owners: Which unit each record belongs to, from 0.
        kinds: What is hostile about each cell, by the table's columns.
    """

    place: int
    schema: Schema
    table: pa.Table
    owners: Sequence[int]
    kinds: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        """What to call it."""
        return f"case {self.place}"

    @property
    def has_rare_types(self) -> bool:
        """Whether a column is of a type that not every warehouse has: dates, times and integers without a sign."""
        kinds = [field.type for field in self.table.schema]
        return any(pa.types.is_temporal(kind) or pa.types.is_unsigned_integer(kind) for kind in kinds)


def random_case(place: int, units: int = 48) -> SchemaCase:
    """Return one of endlessly many cases: at one place the same one always.

    Args:
        place: Which one.
        units: How many units its table has.
    """
    draw = _Draw(np.random.default_rng(place), easy=place % 3 != 2)
    name, *names = draw.some(_NAMES)
    treatment = draw.treatment(name)
    outcome = draw.number(names.pop()) if draw.chance(0.75) else draw.binary(names.pop())
    covariates = [draw.covariate(names.pop()) for _ in range(draw.integer(1, 4))]
    unit = draw.unit(names.pop(), names.pop(), [outcome, *covariates]) if draw.chance(0 if draw.easy else 0.4) else None
    schema = Schema(treatment, outcome, covariates, unit, draw.one(PROTECTS))
    schema = schema.requiring([each.name for each in covariates if draw.chance(0.3)])
    if place % 2:
        schema = _Draw(np.random.default_rng((place, 1)), easy=draw.easy).scaled(schema)
    return draw.case(place, schema, {}, units)


class _Draw:
    """Draws from one generator.

    Attributes:
        easy: Whether only such columns are drawn as warehouses read themselves, without units of several records.
    """

    def __init__(self, generator: np.random.Generator, *, easy: bool) -> None:
        self._generator, self.easy = generator, easy

    def case(self, place: int, schema: Schema, given: Mapping[str, pa.DataType], units: int) -> SchemaCase:
        """Return a case of a schema; types that are not given are drawn."""
        columns = {column.name: column for column in schema.columns if column.name == table_column(column)}
        types = {name: given.get(name) or self.type_of(column) for name, column in columns.items()}
        step = {column.name: 4 for column in schema.required_columns} | {schema.treatment.name: 2}
        cells = {name: self.cells(columns[name], kind, units, step.get(name)) for name, kind in types.items()}
        # Of units with several records, the others repeat cells of other units.
        extra = self.integers(units, units) if schema.unit else []
        owners, records = [*range(units), *extra], [*range(units), *self.integers(units, len(extra))]
        arrays = {name: pa.array([cells[name][record][1] for record in records], kind) for name, kind in types.items()}
        if schema.unit is not None:
            arrays[schema.unit.name] = pa.array(
                [None if owner == 0 else f"id {owner}" for owner in owners], pa.string()
            )
            arrays[schema.unit.by] = self.times(schema.unit, len(owners))
        table = pa.table({name: arrays[name] for name in self.some(list(arrays))})
        kinds = {name: [cells[name][record][0] for record in records] for name in types}
        return SchemaCase(place, schema, table, owners, kinds)

    def one(self, of: Sequence[T]) -> T:
        return of[int(self._generator.integers(len(of)))]

    def some(self, of: Sequence[T]) -> list[T]:
        """Return all in random order."""
        return [of[place] for place in self._generator.permutation(len(of))]

    def integer(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high + 1))

    def integers(self, below: int, size: int) -> list[int]:
        return self._generator.integers(0, below, size).tolist()  # type: ignore[no-any-return]

    def chance(self, share: float) -> bool:
        return bool(self._generator.random() < share)

    def treatment(self, name: str) -> Treatment:
        arms = self.some(self.one((*_TEXT_VALUES, *_NUMBER_VALUES)))[:3]
        reference, compare = self.some(arms)[:2]
        undeclared = self.one(arms) if self.chance(0.4) else None
        return Treatment(name, arms, reference, compare, undeclared=undeclared, strict=self.chance(0.2))

    def number(self, name: str, *, indicator: bool = False) -> Real:
        if self.chance(0 if self.easy else 0.25):
            first, length = self.one(((0, 3650), (-400, 31), (18000, 36525)))
            return Real(name, first, first + length, since="2015-01-31", indicator=indicator, **self.one(_DATES))
        low, high = self.one(_BOUNDS)
        missing = self.one((None, None, low, high, low + 0.3 * (high - low)))
        codes = self.one(((), (), (), (-9.0, 999.0), (low, 0.30000000000000004)))
        return Real(
            name,
            low,
            high,
            missing,
            missing_codes=codes,
            indicator=indicator,
            **self.one(_WRITTEN[: 1 if self.easy else None]),
        )

    def binary(self, name: str) -> Binary:
        pair = self.some(self.one((*_TEXT_VALUES, *_NUMBER_VALUES)))[:2]
        return Binary(name, (pair[0], pair[1]), missing=self.one((None, *pair)), strict=self.chance(0.2))

    def category(self, name: str) -> Category:
        values = self.one((*_TEXT_VALUES, *_NUMBER_VALUES))
        values = values if self.chance(0.7) else self.some(values)
        aliases = {values[0]: ["another", "Ä b"]} if self.chance(0.3) else {}
        return Category(name, values, self.one((None, *values)), aliases=aliases, strict=self.chance(0.2))

    def scaled(self, schema: Schema) -> Schema:
        """Return a schema with scales of its numeric covariates, and further indicators."""
        numbers = [each for each in schema.covariates if isinstance(each, Real)]
        added = schema.unit.added if schema.unit else ()
        indicators = [each.name for each in numbers if each.name not in added and self.chance(0.3)]
        return schema.scaled({each.name: self.scale(each) for each in numbers if self.chance(0.7)}, indicators)

    def scale(self, column: Real) -> Scale:
        """Return a scale between some values within the bounds, of which two may be next to each other."""
        shares = self._generator.random(self.integer(2, 6)) ** self.one((1, 8))
        values = {column.low + (column.high - column.low) * float(share) for share in shares}
        values |= {column.low, column.high} if self.chance(0.4) else set()
        values |= {0.0} if column.low <= 0 <= column.high and self.chance(0.5) else set()
        values |= {min(math.nextafter(each, math.inf), column.high) for each in values if self.chance(0.3)}
        rising: list[float] = []
        for value in sorted(values):
            rising += [value] if not rising or value - rising[-1] >= LEAST_GAP else []
        rising = rising if rising[1:] else [column.low, column.high]
        scores = sorted(self._generator.uniform(-1, 1, len(rising)).tolist())
        return Scale(list(zip(rising, scores, strict=True)))

    def covariate(self, name: str) -> Column:
        kind = self.integer(0, 3)
        if kind < 2:
            return self.number(name, indicator=self.chance(0.25))
        return self.binary(name) if kind == 2 else self.category(name)

    def unit(self, name: str, by: str, columns: Sequence[Column]) -> Unit:
        numbers = [each for each in columns if isinstance(each, Real) and not (each.since or each.indicator)]
        added = [each.name for each in columns if each in numbers or isinstance(each, Binary)]
        counted = [each.name for each in numbers if not each.missing_codes]
        count = [self.one(counted)] if counted and self.chance(0.5) else []
        total = [name for name in added if name not in count and self.chance(0.5)]
        form = self.one((None, None, "%d.%m.%Y"))
        return Unit(name, by, self.one(("first", "last")), sum=total, count=count, date_format=form)

    def times(self, unit: Unit, size: int) -> pa.Array:
        """Return what orders records, with ties and gaps."""
        if unit.formats:
            days = ["01.02.2020", "1.2.2020", "31.01.2021", "30.02.2020", "x", None]
            return pa.array([self.one(days) for _ in range(size)], pa.string())
        if self.chance(0.5):
            texts = ["9", "10", "1e1", "a", "B", "nan", "-1", "", "2020-01-02", None]
            return pa.array([self.one(texts) for _ in range(size)], pa.string())
        return pa.array([self.one((1, 2, 3, -5, 2**60, None)) for _ in range(size)], pa.int64())

    def type_of(self, column: TableColumn) -> pa.DataType:
        if isinstance(column, Real) and column.since:
            return self.one((pa.date32(), pa.timestamp("us"), pa.string(), pa.string()))
        if isinstance(column, Real) and (column.percent or column.strip or not column.reads_either_comma):
            return pa.string()
        if not isinstance(column, Real) and isinstance(column.values[0], str):
            return pa.string()
        return self.one(_EASY_TYPES if self.easy else _NUMBER_TYPES)

    def cells(self, column: TableColumn, kind: pa.DataType, units: int, step: int | None) -> list[Cell]:
        """Return a cell for each unit: both bounds first, and in steps, if given, listed values where such are."""
        high, low, *others = hostile_cells(column, kind, self._generator)
        strange = self.some(others)[: units - 2]
        cells = [high, low, *strange, *(self.one((high, low, *others)) for _ in range(units - 2 - len(strange)))]
        if step and not isinstance(column, Real):
            cells[2::step] = [self.one((high, low, *others[: len(column.values) - 2])) for _ in cells[2::step]]
        return cells


def _standard(place: int, schema: Schema, types: Mapping[str, pa.DataType]) -> SchemaCase:
    return _Draw(np.random.default_rng(place), easy=True).case(-place, schema, types, 80)


_TOUCHING = Scale([(0.2, -1), (1, -0.1), (math.nextafter(1, 2), 0), (4, 0.9)])
_FAR = Scale([(-1e70, -1), (0, 0), (1e-90, 0.3), (1e70, 1)])
STANDARD = (
    _standard(
        1,
        Schema(
            Treatment("m", ("none", "Low", "high"), reference="Low", compare="high"),
            Real("outcome", 18, 90, missing=20),
            [
                Category("zz", [0.1, 0.2, 0.30000000000000004], missing=0.2),
                Category("aa", [1.0, 2.0, 3.0, 4.0]),
                Real("q", -(2.0**20), 2.0**20, missing_codes=[-9, 3], indicator=True),
                Binary("a", ("no", "yes"), missing="yes"),
                Real("k", 0, 15),
                Real("v", -1e70, 1e70, missing=3),
            ],
            required=["q"],
        ).scaled({"k": _TOUCHING, "v": _FAR}, indicators=["k"]),
        dict.fromkeys(("outcome", "zz", "aa", "q", "k", "v"), pa.float64()),
    ),
    _standard(
        2,
        Schema(
            Treatment("b", (2, 0, 1), compare=0, undeclared=1),
            Binary("y"),
            [
                Binary("a", (1, 0)),
                Real("c", -7, 5e9),
                Real("x", -1e-3, 2e-3, missing=-1e-3),
                Category("z", [3, 1, 2], missing=1),
                Category("w", [-1, 0, 1], missing=0),
            ],
            protects="outcome",
            required=["a"],
        ),
        {
            "b": pa.int64(),
            "y": pa.bool_(),
            "a": pa.int8(),
            "c": pa.int64(),
            "x": pa.decimal128(12, 5),
            "z": pa.float32(),
            "w": pa.int16(),
        },
    ),
)
"""Cases that are always the same, with most of what can be declared and held."""
