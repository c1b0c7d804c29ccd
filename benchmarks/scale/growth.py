"""What a release costs as covariates, strata or threads become more."""

from typing import Any

from benchmarks.scale.data import GROUPS, VALUES, Study, written
from benchmarks.scale.options import Options
from benchmarks.scale.processes import beside, cost, in_turns
from benchmarks.scale.tasks import Task

ROWS = 1_000_000
COVARIATES = (5, 10, 20, 40, 60)
THREADS = (1, 2)
QUERIES = ("arm_totals", "strata", "moments")


def covariates(options: Options) -> dict[str, Any]:
    """All second moments of 5 to 60 covariates: a release, SQL by hand, numpy by hand."""
    rows, repeats = options.rows or ROWS, options.repeats or 3
    lines = []
    with written(Study(rows, max(COVARIATES)), options.folder) as folder:
        for number in COVARIATES:
            tasks = {
                work: Task(work, str(folder), "moments", covariates=number) for work in ("release", "plain", "arrow")
            }
            found = beside("release", in_turns(tasks, repeats, f"{number} covariates"))
            lines.append({"covariates": number} | found)
    return {"rows": rows, "repeats": repeats, "lines": lines}


def strata(options: Options) -> dict[str, Any]:
    """Ten to a hundred thousand strata: a release, and the same integers by SQL."""
    rows, repeats = options.rows or ROWS, options.repeats or 3
    lines = []
    with written(Study(rows, covariates=1), options.folder) as folder:
        for groups in range(1, GROUPS + 1):
            tasks = {
                work: Task(work, str(folder), "groups", covariates=1, groups=groups) for work in ("release", "fixed")
            }
            found = beside("release", in_turns(tasks, repeats, f"{VALUES**groups:,} strata"))
            lines.append({"strata": VALUES**groups} | found)
    return {"rows": rows, "repeats": repeats, "lines": lines}


def threads(options: Options) -> dict[str, Any]:
    """Time the engine with one thread and with two."""
    rows, repeats = options.rows or 10 * ROWS, options.repeats or 3
    with written(Study(rows), options.folder) as folder:
        tasks = {
            f"{query}, {number}": Task("release", str(folder), query, threads=number)
            for query in QUERIES
            for number in THREADS
        }
        runs = in_turns(tasks, repeats, "threads")
    lines = [
        {"query": query, "threads": number} | cost(runs[f"{query}, {number}"])
        for query in QUERIES
        for number in THREADS
    ]
    return {"rows": rows, "repeats": repeats, "lines": lines}
