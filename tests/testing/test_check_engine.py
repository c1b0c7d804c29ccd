"""Engines that compute what they must pass the one check, and engines that break a rule do not."""

# ruff: noqa: ARG002 (broken on purpose)

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.vault.engines import Batch, Engine, ExactInts, exact_ints
from dpcausal.vault.engines.progress import ProgressEngine
from dpcausal.vault.table import open_table
from tests.support.conformance import check_engine

Kernel = Callable[[Batch], NDArray[Any]]


class Delegating:
    """An engine that passes everything on to DuckDB. Subclasses break one rule each."""

    def __init__(self, table: pa.Table, schema: dpc.Schema) -> None:
        self.size, self.engine = len(table), open_table(table, schema)

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        return self.engine.aggregate(cells, sums, whole=whole)

    def fold(self, columns: Sequence[str], kernel: Kernel) -> ExactInts:
        return self.engine.fold(columns, kernel)

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        return self.engine.collect(columns, limit, kernel, whole=whole)


class SumsWrapAround(Delegating):
    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        found = super().aggregate(cells, sums, whole=whole)
        return exact_ints(np.array([(value + 2**63) % 2**64 - 2**63 for value in found.ravel()])).reshape(found.shape)


class SumsInFloatingPoint(Delegating):
    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        return exact_ints(super().aggregate(cells, sums, whole=whole).astype(float))


class SumsOfNumpy(Delegating):
    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        return super().aggregate(cells, sums, whole=whole).astype(float)


class SumsTheWholeTable(Delegating):
    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        return super().aggregate(cells, sums, whole=True)


class LeavesUnitsOut(Delegating):
    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        return super().aggregate(cells, sums)


class SwapsAxes(Delegating):
    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        found = super().aggregate(cells, sums, whole=whole)
        return found.swapaxes(0, 1).reshape(found.shape) if found.ndim > 2 else found


class ReadsOnce(Delegating):
    passes = 0

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        self.passes += 1
        found = super().aggregate(cells, sums, whole=whole)
        return found if self.passes <= 8 else found * 0


class DependsOnOrder(Delegating):
    def __init__(self, table: pa.Table, schema: dpc.Schema) -> None:
        first_is_last = len(table) > 2 and table.column_names[0] == "treat" and table["treat"][0] != table["treat"][1]
        super().__init__(table if first_is_last else table.slice(1), schema)


class FoldsTheWholeTable(Delegating):
    def fold(self, columns: Sequence[str], kernel: Kernel) -> ExactInts:
        return exact_ints(kernel(self.engine.collect(columns, 10**9, whole=True)))


class FoldsInOneBatch(Delegating):
    def fold(self, columns: Sequence[str], kernel: Kernel) -> ExactInts:
        return exact_ints(kernel(self.engine.collect(columns, 10**9)))


class FoldsIn64Bits(Delegating):
    def fold(self, columns: Sequence[str], kernel: Kernel) -> ExactInts:
        found = super().fold(columns, kernel)
        return exact_ints(np.array([value % 2**63 for value in found.ravel()])).reshape(found.shape)


class FoldsFlat(Delegating):
    def fold(self, columns: Sequence[str], kernel: Kernel) -> ExactInts:
        return super().fold(columns, kernel).ravel()


class FoldsNothingOfNobody(Delegating):
    def fold(self, columns: Sequence[str], kernel: Kernel) -> ExactInts:
        found = super().fold(columns, kernel)
        return found if found.any() else found.ravel()[:0]


class CollectsDistinct(Delegating):
    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        found = super().collect(columns, limit, kernel, whole=whole)
        distinct = sorted(set(zip(*(column.tolist() for column in found.values()), strict=True)))
        return {name: np.array([unit[at] for unit in distinct], dtype=np.int64) for at, name in enumerate(found)}


class CollectsBeyondTheLimit(Delegating):
    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        return super().collect(columns, 10**9, kernel, whole=whole)


class CollectsBeside(Delegating):
    """Each column is there, but in an order of its own."""

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        return {name: np.sort(each) for name, each in super().collect(columns, limit, kernel, whole=whole).items()}


class CollectsNarrow(Delegating):
    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        found = super().collect(columns, limit, kernel, whole=whole)
        return {name: each.astype(np.int32) for name, each in found.items()}


class IgnoresKernels(Delegating):
    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        return super().collect(columns, limit, whole=whole)


class ReadsMissingAsZero(Delegating):
    def __init__(self, table: pa.Table, schema: dpc.Schema) -> None:
        name = schema.outcome.name
        if pa.types.is_floating(table.schema.field(name).type):
            table = table.set_column(table.column_names.index(name), name, pc.fill_null(table[name], 0.0))
        super().__init__(table, schema)


class CountsRecords(Delegating):
    def __init__(self, table: pa.Table, schema: dpc.Schema) -> None:
        if schema.unit:
            schema = dpc.Schema(treatment=schema.treatment, outcome=schema.outcome)
        super().__init__(table, schema)


BROKEN = {
    SumsWrapAround: "sums are exact beyond 64 bits",
    SumsInFloatingPoint: "sums are exact beyond 64 bits",
    SumsOfNumpy: "sums are Python integers",
    SumsTheWholeTable: "units in the comparison only",
    LeavesUnitsOut: "of the whole table",
    SwapsAxes: "sums are exact",
    ReadsOnce: "in a second pass",
    DependsOnOrder: "sums are exact",
    FoldsTheWholeTable: "adds up over units in the comparison",
    FoldsInOneBatch: "a kernel sees at most",
    FoldsIn64Bits: "a fold",
    FoldsFlat: "a fold has the kernel's shape",
    FoldsNothingOfNobody: "a fold",
    CollectsDistinct: "collected once",
    CollectsBeyondTheLimit: "more units than the limit is refused",
    CollectsBeside: "collected once",
    CollectsNarrow: "64 bits",
    IgnoresKernels: "a kernel's columns",
    ReadsMissingAsZero: r"coerced from Real.*\(missing\)",
    CountsRecords: "several records",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_broken_engine_is_caught_by_the_rule_it_breaks(broken: type[Delegating]) -> None:
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        check_engine(broken, schemas=0)


def opened_with_progress(table: pa.Table, schema: dpc.Schema) -> Engine:
    return ProgressEngine(open_table(table, schema))


@pytest.mark.parametrize("open_engine", [opened_with_progress, Delegating])
def test_engines_that_conform_pass(open_engine: Callable[[pa.Table, dpc.Schema], Engine]) -> None:
    check_engine(open_engine, schemas=0)
