"""The leaderboard as data: docs/leaderboard.csv, from the stored result."""

import csv
import io
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


def as_csv(result: Mapping[str, Any]) -> str:
    """Return the result as CSV, a cell without a value empty."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(COLUMNS.values())
    writer.writerows([line[name] for name in COLUMNS] for line in result["lines"])
    return held.getvalue()


def write(result: Mapping[str, Any], docs: Path) -> None:
    """Write the file."""
    (docs / "leaderboard.csv").write_text(as_csv(result), encoding="utf-8")
