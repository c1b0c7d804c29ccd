"""Answers that engines add up, compared with what NumPy makes of the same descriptions."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, Norm, seen_by
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.schema import Schema
from dpcausal.sums.evaluation import totals
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import Engine, with_schema
from tests.vault.sql_texts import corners


def uneven() -> pa.Table:
    """Return the far cells of three arms, each combination another number of times: sums of even ones may be 0."""
    table = corners()
    places = np.arange(table.num_rows)
    return table.take(np.repeat(places, places * 7_919 % 5))


NORMS: tuple[Norm, ...] = ("l1", "l2")


def described(schema: Schema) -> Iterator[SummingQuery]:
    """Yield every example of every query that is described, of those that the schema allows."""
    for kind in QUERIES.values():
        for query in kind.examples(schema) if issubclass(kind, SummingQuery) else ():
            try:
                query.sums(seen_by(query, schema), schema.protects, "l1")
            except QueryError:
                continue
            yield query


def disagreements(
    engine: Engine, schema: Schema, queries: Iterable[SummingQuery], norms: Iterable[Norm] = NORMS
) -> list[str]:
    """Return where an answer has another integer than its description by NumPy."""
    found = []
    for query in queries:
        seen = seen_by(query, schema)
        units: dict[bool, dict[str, np.ndarray]] = {}
        for norm in norms:
            guarantee = Guarantee(epsilon=1.0, delta=1e-6 if norm == "l2" else 0.0, protects=schema.protects)
            answer = exact_answer(query, schema, engine, guarantee).ticks
            by_numpy: dict[str, int] = {}
            for sums in query.sums(seen, seen.bounded_as(schema.protects), norm):
                if sums.everyone not in units:
                    table = engine if seen is schema else with_schema(engine, seen)
                    units[sums.everyone] = dict(table.collect(column_names(seen), 10**6, whole=sums.everyone))
                by_numpy |= totals(sums, units[sums.everyone])
            found += [
                f"{query} {norm}: {name} is {answer.get(name)}, by NumPy {value}"
                for name, value in by_numpy.items()
                if answer.get(name) != value
            ]
    return found
