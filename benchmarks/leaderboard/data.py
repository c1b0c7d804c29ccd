"""The leaderboard as data: docs/leaderboard.csv and docs/leaderboard.json, from the stored result."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COLUMNS = {
    "table": "table",
    "n": "units",
    "epsilon": "epsilon",
    "contestant": "estimator",
    "group": "from",
    "private": "private",
    "runs": "runs",
    "error": "mean_relative_error",
    "error_se": "standard_error_of_the_mean",
    "bias": "bias",
    "rmse": "rmse",
    "intervals": "share_with_interval",
    "coverage": "coverage",
    "width": "mean_width",
    "date": "date",
}
"""What a line of the result is called there, and in the data."""


def rows(result: Mapping[str, Any]) -> list[list[Any]]:
    """Return the lines of the result in the order of `COLUMNS`."""
    return [[line[name] for name in COLUMNS] for line in result["lines"]]


def as_csv(result: Mapping[str, Any]) -> str:
    """Return the result as CSV, a cell without a value empty."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(COLUMNS.values())
    writer.writerows(rows(result))
    return held.getvalue()


def as_json(result: Mapping[str, Any]) -> str:
    """Return the result as JSON: the names of columns, and a list for each line."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows(result))
    head = json.dumps({"delta": result["delta"], "columns": list(COLUMNS.values())})
    return f'{head[:-1]},\n"rows": [\n{lines}\n]}}\n'


def write(result: Mapping[str, Any], docs: Path) -> None:
    """Write both files."""
    (docs / "leaderboard.csv").write_text(as_csv(result), encoding="utf-8")
    (docs / "leaderboard.json").write_text(as_json(result), encoding="utf-8")
