"""Descriptions of queries added up by an engine."""

from functools import partial

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema import Schema
from dpcausal.sums import numbers
from dpcausal.sums.adding import Addends, addends
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import GRID, Number
from dpcausal.sums.printing import floating_sql, is_printable, sql
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.engines import Batch, Engine, Ticks


def answer(context: AnswerContext[SummingQuery]) -> Answer:
    """Return the sums of a query as its description says."""
    protects = context.schema.bounded_as(context.guarantee.protects)
    ticks: dict[str, int] = {}
    for sums in context.query.sums(context.schema, protects, "l2" if context.guarantee.delta else "l1"):
        ticks |= add_up(context.engine, sums)
    return Answer(ticks)


def runs_kernel(query: SummingQuery, schema: Schema, engine: Engine) -> bool:  # noqa: ARG001
    """Return whether a query's sums are added up by a kernel; see `vault.context.KERNELS`."""
    described = (addends(each) for each in query.sums(schema, schema.protects, "l1"))
    return not all(is_printable(*each.factors, *each.numbers) for each in described)


def add_up(engine: Engine, sums: Sums) -> dict[str, int]:
    """Return the sums of a description by their names, in one pass: as SQL, or by a kernel where a table is long."""
    wanted = addends(sums)
    if not is_printable(*wanted.factors, *wanted.numbers):
        columns = tuple(dict.fromkeys(("treatment", *numbers.columns(*wanted.factors, *wanted.numbers))))
        return wanted.totals(engine.fold(columns, partial(_added, wanted)))
    # Where units are grouped by numbers in ticks, these must be whole ones.
    floating = any(map(_has_ticks, wanted.numbers)) and not any(map(_has_ticks, wanted.factors))
    cells = dict(zip(map(sql, wanted.factors), wanted.shape, strict=True))
    texts = [_text(number, floating=floating) for number in wanted.numbers]
    return wanted.totals(engine.aggregate(cells, texts, whole=sums.everyone))


def _text(number: Number, *, floating: bool) -> str:
    """Return a number as SQL, with its form in floating point where it has one."""
    twin = floating_sql(number) if floating else None
    if floating and number.size <= GRID and not _has_ticks(number):  # codes are whole in any case
        twin = sql(number)
    return sql(number) if twin is None else Ticks(sql(number), twin)


def _has_ticks(number: Number) -> bool:
    return any(isinstance(each, numbers.Ticks) for each in numbers.nodes(number))


def _added(wanted: Addends, batch: Batch) -> Int64s:
    """Return the sums over some rows."""
    lines = evaluate((*wanted.factors, *wanted.numbers), batch)
    place = np.zeros(lines.shape[1], dtype=np.int64)
    for codes, count in zip(lines, wanted.shape, strict=False):
        place = place * count + codes
    totals = np.zeros((int(np.prod(wanted.shape)), len(wanted.numbers)), dtype=np.int64)
    for total, line in zip(totals.T, lines[len(wanted.factors) :], strict=True):
        np.add.at(total, place, line)
    return totals
