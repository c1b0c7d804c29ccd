"""The runs: one table and one repeat at a time, kept on disk, so that a run that was stopped goes on."""

import hashlib
import multiprocessing
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import benchmarks
import dpcausal
from benchmarks.leaderboard.contestants import CONTESTANTS, Group, scene_of
from benchmarks.leaderboard.tables import table
from benchmarks.progress import progress

LIBRARY = Path(dpcausal.__file__).parent
_HERE = Path(benchmarks.__file__).parent
TABLES = (
    _HERE / "datasets.py",
    _HERE / "accuracy" / "references.py",
    _HERE / "leaderboard" / "contestants.py",
    _HERE / "leaderboard" / "tables.py",
)


@cache
def code_version(group: Group) -> str:
    """Return a short digest of the code that a group's results depend on, so that those of other code do not mix."""
    folders = (LIBRARY,) if group == "ours" else (LIBRARY, _HERE / "peers")
    files = [*TABLES, *(path for folder in folders for path in sorted(folder.rglob("*.py")))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


@dataclass(frozen=True)
class Task:
    """One table, one epsilon and one repeat, for all contestants of a group."""

    table: str
    repeat: int
    epsilon: float
    group: Group
    folder: str | None
    results: str

    @property
    def path(self) -> Path:
        """Where its results are kept."""
        named = self.table.replace("/", "-").replace(" ", "-")
        folder = Path(self.results) / f"{self.group}-{code_version(self.group)}"
        return folder / f"{named}.{self.epsilon}.{self.repeat}.parquet"


def work(task: Task) -> Path:
    """Do one task and keep what it gave."""
    scene = scene_of(table(task.table, task.repeat, task.folder))
    runs = []
    for contestant in CONTESTANTS:
        if contestant.group != task.group or scene.data.n > contestant.most_units:
            continue
        seed = (task.repeat, zlib.crc32(contestant.label.encode()), round(1000 * task.epsilon))
        start = time.perf_counter()
        found = contestant.ask(scene, task.epsilon, np.random.default_rng(seed))
        runs.append(
            asdict(found)
            | {
                "table": task.table,
                "n": scene.data.n,
                "repeat": task.repeat,
                "epsilon": task.epsilon,
                "contestant": contestant.label,
                "group": contestant.group,
                "private": contestant.private,
                "truth": scene.data.truth,
                "seconds": time.perf_counter() - start,
                "code": code_version(task.group),
            }
        )
    task.path.parent.mkdir(parents=True, exist_ok=True)
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
        ("code", pa.string()),
    ]
)


def done(tasks: Sequence[Task], workers: int) -> pa.Table:
    """All runs, of which those kept on disk are not made again."""
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
