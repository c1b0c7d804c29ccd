"""Descriptions of queries added up by an engine."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpcausal.queries.summing import SummingQuery, described
from dpcausal.schema.schema import Schema
from dpcausal.sums import numbers
from dpcausal.sums.adding import Addends, addends
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import GRID, ONE, Number
from dpcausal.sums.printing import floating_sql, is_printable, sql
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.engines import BATCH_ROWS, Batch, Engine, TickExpression, adds_products

_EXACT = 2**53
"""Up to here floating point holds all whole numbers."""


def answer(context: AnswerContext[SummingQuery]) -> Answer:
    """Return the sums of a query as its description says."""
    protects = context.schema.bounded_as(context.guarantee.protects)
    ticks: dict[str, int] = {}
    for sums in described(context.query, context.schema, protects, "l2" if context.guarantee.delta else "l1"):
        ticks |= add_up(context.engine, sums)
    return Answer(ticks)


def runs_kernel(query: SummingQuery, schema: Schema, engine: Engine) -> bool:
    """Return whether a query's sums are added up by a kernel; see `vault.context.KERNELS`."""
    found = described(query, schema, schema.protects, "l1")
    return any(_kernel(addends(each), engine) is not None for each in found)


def add_up(engine: Engine, sums: Sums) -> dict[str, int]:
    """Return the sums of a description by their names, in one pass: as SQL, or by a kernel."""
    wanted = addends(sums)
    kernel = _kernel(wanted, engine)
    if kernel is not None:
        columns = tuple(dict.fromkeys(("treatment", *numbers.columns(*wanted.factors, *wanted.numbers))))
        return wanted.totals(engine.fold(columns, kernel))
    # Where units are grouped by numbers in ticks, these must be whole ones.
    floating = any(map(_has_ticks, wanted.numbers)) and not any(map(_has_ticks, wanted.factors))
    cells: dict[str, int] = {}
    for factor, size in zip(wanted.factors, wanted.shape, strict=True):
        text = sql(factor)
        while text in cells:  # two numbers may have one text
            text = f"({text})"
        cells[text] = size
    texts = [sql_text(number) if floating else sql(number) for number in wanted.numbers]
    return wanted.totals(engine.aggregate(cells, texts, whole=sums.everyone))


def _kernel(wanted: Addends, engine: Engine) -> Callable[[Batch], Int64s] | None:
    """Return the kernel by which an engine adds numbers up: where a table is long, or products are many."""
    if wanted.sums.everyone:  # a kernel is given units in the comparison alone
        return None
    if not is_printable(*wanted.factors, *wanted.numbers):
        return partial(_added, wanted)
    products = _Products.of(wanted)
    lines = {line for pair in products.factors for line in pair} - {ONE}
    features = len(lines) - 1  # beside the outcome
    return None if not products.exact or adds_products(engine, features) else products.added


def sql_text(number: Number) -> str:
    """Return a number as SQL, with its form in floating point where it has one."""
    twin = floating_sql(number)
    if number.size <= GRID and not _has_ticks(number):  # codes are whole in any case
        twin = sql(number)
    return sql(number) if twin is None else TickExpression(sql(number), twin)


def _has_ticks(number: Number) -> bool:
    return any(isinstance(each, numbers.Ticks) for each in numbers.nodes(number))


def _added(wanted: Addends, batch: Batch) -> Int64s:
    """Return the sums over some rows."""
    lines = evaluate((*wanted.factors, *wanted.numbers), batch)
    place = _place(wanted, lines)
    totals = np.zeros((math.prod(wanted.shape), len(wanted.numbers)), dtype=np.int64)
    for at, (number, line) in enumerate(zip(wanted.numbers, lines[len(wanted.factors) :], strict=True)):
        if number.size * BATCH_ROWS <= _EXACT:
            totals[:, at] = np.bincount(place, line, len(totals))
        else:
            np.add.at(totals[:, at], place, line)
    return totals


def _place(wanted: Addends, lines: Int64s) -> Int64s:
    """Return the place of each row's group, given its codes in the first lines."""
    place = np.zeros(lines.shape[1], dtype=np.int64)
    for codes, count in zip(lines, wanted.shape, strict=False):
        place = place * count + codes
    return place


@dataclass(frozen=True)
class _Products:
    """Numbers as products of two others, which a product of matrices adds up faster than SQL where they are many."""

    wanted: Addends
    factors: tuple[tuple[Number, Number], ...]

    @classmethod
    def of(cls, wanted: Addends) -> "_Products":
        """Return numbers as products; one that is none is a product with 1."""
        return cls(
            wanted,
            tuple(
                (each.left, each.right)
                if isinstance(each, numbers.Product) and not isinstance(each.left, numbers.Constant)
                else (ONE, each)
                for each in wanted.numbers
            ),
        )

    @property
    def exact(self) -> bool:
        """Whether floating point adds up the products of a batch without rounding, in any order."""
        return all(left.size * right.size * BATCH_ROWS <= _EXACT for left, right in self.factors)

    def added(self, batch: Batch) -> Int64s:
        """Return the sums over some rows."""
        lines = tuple(dict.fromkeys(line for pair in self.factors for line in pair))
        first, second = ([lines.index(pair[at]) for pair in self.factors] for at in (0, 1))
        found = evaluate((*self.wanted.factors, *lines), batch)
        place, values = _place(self.wanted, found), found[len(self.wanted.factors) :].astype(np.float64)
        others = [values.take(np.flatnonzero(place == at), axis=1) for at in range(1, math.prod(self.wanted.shape))]
        whole, *parts = ((each @ each.T)[first, second] for each in (values, *others))
        return np.array([whole - sum(parts), *parts]).astype(np.int64)
