"""The runs: one table and one repeat at a time, kept on disk, so that a run that was stopped goes on."""

import hashlib
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import benchmarks
import dpcausal
from benchmarks.leaderboard.contestants import CONTESTANTS, scene_of
from benchmarks.leaderboard.tables import table
from benchmarks.progress import progress


@cache
def code_version() -> str:
    """Return a short digest of the library and of the benchmarks, so that results of different code do not mix."""
    roots = (Path(dpcausal.__file__).parent, Path(benchmarks.__file__).parent)
    texts = (path.read_bytes() for root in roots for path in sorted(root.rglob("*.py")))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


@dataclass(frozen=True)
class Task:
    """One table and one repeat, for all contestants and epsilons."""

    table: str
    repeat: int
    epsilons: tuple[float, ...]
    folder: str | None
    results: str

    @property
    def path(self) -> Path:
        """Where its results are kept."""
        named = self.table.replace("/", "-").replace(" ", "-")
        return (
            Path(self.results) / code_version() / f"{named}.{'-'.join(map(str, self.epsilons))}.{self.repeat}.parquet"
        )


def work(task: Task) -> Path:
    """Do one task and keep what it gave."""
    scene = scene_of(table(task.table, task.repeat, task.folder))
    runs = []
    for place, contestant in enumerate(CONTESTANTS):
        if scene.data.n > contestant.most_units:
            continue
        for epsilon in task.epsilons:
            generator = np.random.default_rng((task.repeat, place, round(1000 * epsilon)))
            start = time.perf_counter()
            found = contestant.ask(scene, epsilon, generator)
            runs.append(
                asdict(found)
                | {
                    "table": task.table,
                    "n": scene.data.n,
                    "repeat": task.repeat,
                    "epsilon": epsilon,
                    "contestant": contestant.label,
                    "group": contestant.group,
                    "private": contestant.private,
                    "truth": scene.data.truth,
                    "seconds": time.perf_counter() - start,
                }
            )
    part = task.path.with_suffix(".part")
    pa.parquet.write_table(pa.Table.from_pylist(runs, schema=SCHEMA), part)
    part.rename(task.path)
    return task.path


SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("n", pa.int64()),
        ("repeat", pa.int64()),
        ("epsilon", pa.float64()),
        ("contestant", pa.string()),
        ("group", pa.string()),
        ("private", pa.bool_()),
        ("truth", pa.float64()),
        ("estimate", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("sampling_sd", pa.float64()),
        ("privacy_sd", pa.float64()),
        ("method", pa.string()),
        ("delta", pa.float64()),
        ("seconds", pa.float64()),
    ]
)


def done(tasks: Sequence[Task], workers: int) -> pa.Table:
    """All runs, of which those kept on disk are not made again."""
    tasks[0].path.parent.mkdir(parents=True, exist_ok=True)
    missing = [task for task in tasks if not task.path.exists()]
    for _ in progress(_made(missing, workers), len(missing), "tables"):
        pass
    return pa.concat_tables([pa.parquet.read_table(task.path) for task in tasks])


def _made(tasks: Sequence[Task], workers: int) -> Iterator[Path]:
    if workers == 0:
        yield from map(work, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=20) as pool:
        yield from pool.imap_unordered(work, tasks)
