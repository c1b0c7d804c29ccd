"""Answers of queries by their descriptions, compared with those of the vault's own functions."""

from collections.abc import Iterable, Iterator

from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, Norm, Query, seen_by
from dpcausal.schema import Schema
from dpcausal.sums.evaluation import totals
from dpcausal.vault.adding import add_up
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import Engine, with_schema

NORMS: tuple[Norm, ...] = ("l1", "l2")


def described(schema: Schema) -> Iterator[Query]:
    """Yield every example of every query that is described, of those that the schema allows."""
    for kind in QUERIES.values():
        for query in kind.examples(schema):
            try:
                seen = seen_by(query, schema)
                query.sensitivity(seen, seen.protects, "l1")
            except QueryError:
                continue
            if query.sums(seen, seen.protects, "l1"):
                yield query


def disagreements(engine: Engine, schema: Schema, queries: Iterable[Query], norms: Iterable[Norm] = NORMS) -> list[str]:
    """Return where a description, as SQL or by NumPy, gives another integer than the answer, or other coordinates."""
    found = []
    for query in queries:
        seen = seen_by(query, schema)
        table = engine if seen is schema else with_schema(engine, seen)
        for norm in norms:
            guarantee = Guarantee(epsilon=1.0, delta=1e-6 if norm == "l2" else 0.0, protects=schema.protects)
            answer = exact_answer(query, schema, engine, guarantee).ticks
            by_sql: dict[str, int] = {}
            by_numpy: dict[str, int] = {}
            for sums in query.sums(seen, schema.protects, norm):
                by_sql |= add_up(table, sums)
                by_numpy |= totals(sums, table.collect(column_names(seen), 10**6, whole=sums.everyone))
            names = {at.name for at in query.sensitivity(seen, schema.protects, norm).coordinates}
            for way, sums_by_name in (("SQL", by_sql), ("NumPy", by_numpy)):
                if set(sums_by_name) != names:
                    found.append(f"{query} {norm}: {way} has {sorted(set(sums_by_name) ^ names)[:5]}")
                found += [
                    f"{query} {norm}: {name} is {answer[name]}, by {way} {value}"
                    for name, value in sums_by_name.items()
                    if name in names and value != answer[name]
                ]
    return found
