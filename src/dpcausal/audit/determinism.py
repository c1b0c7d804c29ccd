"""The exact part of an answer is a function of the units alone: not of their order, nor of how they are read."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import Claim
from dpcausal.audit.neighbours import Record, record, worst_pairs
from dpcausal.audit.tables import catalogue_of, table_of
from dpcausal.queries import EffectWeights, OutputPerturbedLogistic
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.schema.schema import Schema
from dpcausal.vault.context import Answer
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.table import open_table

_KINDS = 40


def check_determinism(name: str, claim: Claim, size: int, threads: Sequence[int] = (1, 2, 8)) -> Finding:
    """Check that the integers are the same for every order, number of threads, size of batches, file layout and engine.

    On two tables, one of them without a NULL: engines guess from statistics what a column can hold. A regression's
    coefficients are found by a solver in floating point and may differ by the slack that its sensitivity has for that.
    Exact: it cannot fail by chance.
    """
    moved, ways, different = 0.0, 0, []
    for nulls in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            answers = {
                way: claim.answer(engine)
                for way, engine in _ways(claim.schema, size, Path(folder), threads, nulls=nulls)
            }
        first = next(iter(answers.values()))
        apart = {way: _distance(claim, first, answer) for way, answer in answers.items()}
        moved, ways = max(moved, *apart.values()), ways + len(answers)
        different += [way for way, distance in apart.items() if distance > 1]
    detail = f"differs: {', '.join(different)}" if different else f"the same in {ways} ways, {size:,} units"
    return Finding("determinism", name, not different, detail, {"ways": ways, "units": size, "moved": moved})


def _distance(claim: Claim, one: Answer, other: Answer) -> float:
    """Return how far two answers are apart: 0 if equal, above 1 if too far; regressions have a slack between."""
    query = claim.query
    if not isinstance(query, OutputPerturbedLogistic | EffectWeights):
        return 0.0 if one == other else 2.0
    apart = [(one.ticks[name] - other.ticks[name]) * COEFFICIENT_TICK for name in one.ticks]
    pull = query.limit * query.longest(claim.schema) if isinstance(query, EffectWeights) else 1.0
    return float(np.linalg.norm(apart)) / (float(query.slack) * pull / query.penalty)


def _ways(
    schema: Schema, size: int, folder: Path, threads: Sequence[int], *, nulls: bool
) -> Iterator[tuple[str, Engine]]:
    """Yield engines that read the same units in many ways."""
    random = np.random.default_rng(3)  # which units, and in which order; noise is never drawn here
    kinds = [*(each for pair in worst_pairs(schema.protects) for each in (pair.before, pair.after)), *_plain(random)]
    kinds = [kind for kind in kinds if nulls or None not in kind.values()]
    places = random.integers(0, len(kinds), size)
    table = table_of(kinds, schema).take(pa.array(places))
    shuffled = table.take(pa.array(random.permutation(size)))
    pq.write_table(shuffled, folder / "pieces.parquet", row_group_size=1_009)
    for count in threads:
        yield f"{count} threads", open_table(table, schema, Resources(threads=count))
        yield f"another order, {count} threads", open_table(shuffled, schema, Resources(threads=count))
        yield (
            f"a file in pieces, {count} threads",
            open_table(folder / "pieces.parquet", schema, Resources(threads=count)),
        )
    for batch in (2_048, 10_000):
        yield f"batches of {batch:,}", DuckDBEngine(connect(2).from_arrow(shuffled), schema, batch)
    view = connect().read_parquet(str(folder / "pieces.parquet"))
    yield "somebody's view of a file", open_table(view, schema)
    yield "somebody's filter on a file", open_table(view.filter("age > -2e308 OR age IS NULL"), schema)
    pieces = pa.concat_tables([shuffled.slice(start, 331) for start in range(0, size, 331)])
    yield "a table in pieces", open_table(pieces, schema)
    if size <= 20_000:
        yield "unit by unit", catalogue_of(schema).assemble([kinds[place] for place in places])


def _plain(random: np.random.Generator) -> Iterator[Record]:
    """Yield units with numbers that floating point does not hold exactly."""
    for _ in range(_KINDS):
        place = int(random.integers(0, 4))
        yield record(
            place % 2,
            float(random.uniform(-1, 11)),
            ward="abcz"[place],
            age=float(random.uniform(10, 100)),
            smoker=("no", "yes", "?", None)[place],
        )
