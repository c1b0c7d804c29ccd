"""The matcher on a million and on ten million units, beside the sort that it begins with."""

import importlib.util
from typing import Any

from benchmarks.scale.options import Options
from benchmarks.scale.processes import beside, in_turns
from benchmarks.scale.tasks import NEIGHBOURS, Task

ROWS = 10_000_000


def measure(options: Options) -> dict[str, Any]:
    """Measure a tenth of the units, and all of them."""
    largest, repeats = options.rows or ROWS, options.repeats or 3
    lines = []
    for units in (largest // 10, largest):
        tasks = {work: Task(work, rows=units) for work in ("matcher", "sort")}
        runs = in_turns(tasks, repeats, f"matching {units:,} units")
        found = runs["matcher"][0]["value"]
        lines.append({"units": units, "matches": found} | beside("matcher", runs))
    compiled = importlib.util.find_spec("numba") is not None
    return {"neighbours": NEIGHBOURS, "compiled": compiled, "repeats": repeats, "lines": lines}
