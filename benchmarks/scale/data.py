"""Made-up studies of any size, written to disk as a folder of parquet files and removed afterwards.

Treatment is confounded: covariates move it, and they move the outcome. A few cells are NULL, NaN or out of range, as in
real tables. All is drawn from a seed, file by file, so that a file does not depend on how many there are.
"""

import itertools
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.progress import progress
from dpcausal.schema.columns import Category, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import Treatment

GROUPS = 5
VALUES = 10
RECORDS = 3
"""So many columns of so many values to make strata of, and so many records of each unit where units have several."""

OUTCOME = (0.0, 10.0)
COVARIATE = (-3.0, 3.0)

_FILE_ROWS = 1_000_000
_GROUP_ROWS = 122_880
_ODD = 0.002


@dataclass(frozen=True)
class Study:
    """What is drawn.

    Attributes:
        rows: How many.
        covariates: How many real ones.
        file_rows: How many rows a file has at most.
        several: Whether units have several records, with the columns `unit` and `visit`.
    """

    rows: int
    covariates: int = 20
    file_rows: int = _FILE_ROWS
    several: bool = False

    @property
    def files(self) -> int:
        """How many files there are."""
        return -(-self.rows // self.file_rows)

    @property
    def bytes(self) -> int:
        """About how large they are together."""
        return self.rows * (4 * self.covariates + 4 + 1 + GROUPS + 12 * self.several)


def schema(covariates: int = 20, *, several: bool = False, protects: Protects = "record") -> Schema:
    """Return what is public about a study."""
    groups = [Category(f"g{place}", range(VALUES)) for place in range(GROUPS)]
    return Schema(
        treatment=Treatment("treat", undeclared=0),
        outcome=Real("y", *OUTCOME, missing=sum(OUTCOME) / 2),
        covariates=[*groups, *(Real(f"x{place}", *COVARIATE) for place in range(covariates))],
        unit=Unit("unit", by="visit") if several else None,
        protects=protects,
    )


@contextmanager
def written(study: Study, within: Path | None = None) -> Iterator[Path]:
    """Write a study's files, and yield their folder for as long as it is needed."""
    free = shutil.disk_usage(within or tempfile.gettempdir()).free
    if free < 1.5 * study.bytes:
        needed, there = (f"{number / 1e9:.1f} GB" for number in (1.5 * study.bytes, free))
        raise OSError(f"{study.rows:,} rows need about {needed} of free disk, and there are {there}: see --folder")
    with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=within) as folder:
        tasks = [(study, number, folder) for number in range(study.files)]
        if study.files == 1:
            _write(tasks[0])
        else:
            with multiprocessing.get_context("spawn").Pool(min(os.cpu_count() or 1, study.files)) as pool:
                for _ in progress(pool.imap_unordered(_write, tasks), study.files, f"{study.rows:,} rows, files"):
                    pass
        yield Path(folder)


def first_files(folder: Path, count: int, into: Path) -> Path:
    """Return a folder with the first so many files of another, without a copy."""
    into.mkdir()
    for path in itertools.islice(sorted(folder.glob("*.parquet")), count):
        os.link(path, into / path.name)
    return into


def drawn(study: Study, number: int) -> pa.Table:
    """One file's table."""
    random = np.random.default_rng([number, study.covariates])
    start = number * study.file_rows
    n = min(study.file_rows, study.rows - start)
    x = random.standard_normal((study.covariates, n), dtype=np.float32)
    # What covariates do fades from the first to the last; all of them confound.
    fading = (0.8 ** np.arange(study.covariates)).astype(np.float32)
    arms = random.random(n, dtype=np.float32) < 1 / (1 + np.exp(-0.6 * fading @ x))
    moves = fading * np.where(np.arange(study.covariates) % 2, np.float32(-0.5), np.float32(0.7))
    y = 5 + arms.astype(np.float32) + moves @ x + random.standard_normal(n, dtype=np.float32)
    x[-1, random.random(n, dtype=np.float32) < _ODD] = np.nan
    y[random.random(n, dtype=np.float32) < _ODD] = np.nan
    groups = random.integers(0, VALUES, (GROUPS, n), dtype=np.int8)
    columns = {
        "treat": _with_nulls(arms.astype(np.int8), random),
        "y": _with_nulls(y, random),
        **{f"g{place}": pa.array(line) for place, line in enumerate(groups[1:], start=1)},
        "g0": _with_nulls(groups[0], random),
        "x0": _with_nulls(x[0], random),
        **{f"x{place}": pa.array(line) for place, line in enumerate(x[1:], start=1)},
    }
    if study.several:  # whose records lie far apart, in different files
        places = np.arange(start, start + n, dtype=np.int64)
        units = max(study.rows // RECORDS, 1)
        columns |= {"unit": pa.array(places % units), "visit": pa.array((places // units).astype(np.int32))}
    return pa.table(columns)


def _with_nulls(cells: NDArray[np.generic], random: np.random.Generator) -> pa.Array:
    return pa.array(cells, mask=random.random(len(cells), dtype=np.float32) < _ODD)


def _write(task: tuple[Study, int, str]) -> None:
    study, number, folder = task
    listed = ["treat", *(f"g{place}" for place in range(GROUPS))]
    path = Path(folder, f"part-{number:04}.parquet")
    pq.write_table(drawn(study, number), path, row_group_size=_GROUP_ROWS, use_dictionary=listed)
