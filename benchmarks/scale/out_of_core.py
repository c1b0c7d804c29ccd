"""Tables larger than the memory that the engine may hold: it must get through, with what it cannot keep on disk."""

import tempfile
from functools import partial
from typing import Any

from benchmarks.scale.data import RECORDS, Study, written
from benchmarks.scale.options import Options
from benchmarks.scale.processes import cost, in_turns
from benchmarks.scale.tasks import Task

ROWS = 45_000_000
MEMORY = "1 GB"

_SEVERAL = 3
"""Covariates of the table whose units have several records: all of a unit's columns are sorted, so a few will do."""


def measure(options: Options) -> dict[str, Any]:
    """Measure sums that pass over the files, and one that has to sort them by unit."""
    rows, repeats = options.rows or ROWS, options.repeats or 1
    study = Study(rows, several=True)
    with (
        written(study, options.folder) as folder,
        tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=options.folder) as spill,
    ):
        size = sum(path.stat().st_size for path in folder.iterdir())
        limited = partial(Task, "release", str(folder), memory=MEMORY, spill=spill)
        tasks = {query: limited(query) for query in ("arm_totals", "strata", "moments")}
        several = limited("arm_totals", covariates=_SEVERAL, several=True)
        runs = in_turns(tasks | {"arm_totals of units with several records": several}, repeats, "out of core")
    lines = [
        {"query": query, **cost(each), "spilled_megabytes": round(max(run["spilled"] for run in each), 1)}
        for query, each in runs.items()
    ]
    return {
        "rows": rows,
        "records_of_a_unit": RECORDS,
        "gigabytes": round(size / 1e9, 2),
        "memory": MEMORY,
        "lines": lines,
    }
