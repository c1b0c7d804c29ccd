"""What a release costs for each row, from ten thousand rows to a hundred million."""

from contextlib import ExitStack
from typing import Any

from benchmarks.scale.data import Study, written
from benchmarks.scale.options import Options
from benchmarks.scale.processes import Run, cost, in_turns
from benchmarks.scale.tasks import Task

ROWS = 100_000_000
SMALLEST = 10_000
QUERIES = ("arm_totals", "strata", "moments")
TARGETS = {"peak": 2048, "growth": 1.3}
"""The most megabytes at the largest size, and the most that a row may cost there beside one of a hundredth as many."""


def measure(options: Options) -> dict[str, Any]:
    """All sizes, each a folder of files, and all queries in turns."""
    largest, repeats = options.rows or ROWS, options.repeats or 3
    sizes = [rows for power in range(9) if (rows := largest // 10**power) >= SMALLEST] or [largest]
    with ExitStack() as stack:
        folders = {rows: str(stack.enter_context(written(Study(rows), options.folder))) for rows in sizes}
        tasks = {(query, rows): Task("release", folders[rows], query) for rows in reversed(sizes) for query in QUERIES}
        runs = in_turns(tasks, repeats, "rows")
    lines = [{"query": query, "rows": rows} | _each_row(each, rows) for (query, rows), each in runs.items()]
    grown, peak = growth(lines), max(line["peak"] for line in lines if line["rows"] == largest)
    return {
        "covariates": Study(largest).covariates,
        "repeats": repeats,
        "targets": TARGETS,
        "lines": lines,
        "growth": grown,
        "peak": peak,
        "within_target": {
            "peak": peak <= TARGETS["peak"],
            "growth": all(each is not None and each <= TARGETS["growth"] for each in grown.values()),
        },
        "projected": [projected(lines, query, 10**9) for query in QUERIES],
    }


def _each_row(runs: list[Run], rows: int) -> dict[str, float]:
    found = cost(runs)
    return found | {f"{unit}_nanoseconds_a_row": round(found[unit] / rows * 1e9, 2) for unit in ("cpu", "wall")}


def growth(lines: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return what a row costs at the largest size over that at a hundredth of it; None where not measured."""
    each = {(line["query"], line["rows"]): line["cpu"] / line["rows"] for line in lines}
    largest = max(line["rows"] for line in lines)
    return {
        query: round(each[query, largest] / each[query, largest // 100], 3) if (query, largest // 100) in each else None
        for query in QUERIES
    }


def projected(lines: list[dict[str, Any]], query: str, rows: int) -> dict[str, Any]:
    """Return what so many rows would cost at the cost per row of the largest size: a projection, not a measurement."""
    last = max((line for line in lines if line["query"] == query), key=lambda line: int(line["rows"]))
    times = rows / last["rows"]
    return {
        "query": query,
        "rows": rows,
        "projected_from": last["rows"],
        "cpu": round(last["cpu"] * times, 1),
        "wall": round(last["wall"] * times, 1),
    }
