"""Whether DuckDB and Spark add up the same integers, query by query, on a million hostile rows; and at what cost."""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.progress import progress
from benchmarks.scale.agreement import QUERIES, write_hostile
from benchmarks.scale.options import Options
from benchmarks.scale.processes import ONE_THREAD, Run, printed

ROWS = 1_000_000
PARTITIONS = (1, 3, 7)


def measure(options: Options) -> dict[str, Any]:
    """DuckDB once, and Spark with each number of partitions."""
    if importlib.util.find_spec("pyspark") is None:
        return {"absent": "pyspark is not installed"}
    rows = options.rows or ROWS
    with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=options.folder) as folder:
        write_hostile(Path(folder), rows)
        ways = (0, *PARTITIONS)
        found = {way: _asked(folder, way) for way in progress(ways, len(ways), "engines")}
    lines = [compared(query.name, found) for query in QUERIES]
    return {
        "rows": rows,
        "partitions": PARTITIONS,
        "queries": lines,
        "all_identical": all(line["identical"] for line in lines),
    }


def _asked(folder: str, partitions: int) -> Run:
    command = [sys.executable, "-m", "benchmarks.scale.agreement", folder, str(partitions)]
    return printed(command, os.environ | ONE_THREAD)


def compared(name: str, found: dict[int, Run]) -> dict[str, Any]:
    """One query's numbers and costs, by the number of partitions, which is 0 for DuckDB."""
    own = found[0][name]
    differs = [partitions for partitions in PARTITIONS if found[partitions][name]["said"] != own["said"]]
    return {
        "query": name,
        "numbers": len(own["said"]),
        "identical": not differs,
        "differs_with_partitions": differs,
        "duckdb_cpu": round(own["cpu"], 3),
        "spark_cpu": {str(partitions): round(found[partitions][name]["cpu"], 3) for partitions in PARTITIONS},
        "spark_to_duckdb": round(found[PARTITIONS[1]][name]["cpu"] / own["cpu"], 2),
    }
