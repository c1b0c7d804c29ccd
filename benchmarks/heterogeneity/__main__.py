"""The command: `python -m benchmarks.heterogeneity --help`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.heterogeneity.figures import draw
from benchmarks.heterogeneity.suite import PLANS, heterogeneity, tables_for


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heterogeneity", description=__doc__)
    parser.add_argument("--data", help="the folder that holds ihdp; without it IHDP is left out")
    parser.add_argument("--tables", nargs="+", choices=list(PLANS), help="all, if left out")
    parser.add_argument("--quick", action="store_true", help="the smallest size, one epsilon, one repeat")
    parser.add_argument("--kept", type=Path, help="a file that keeps runs, so that a run that was stopped goes on")
    parser.add_argument("--result", type=Path, help="print and draw this result, and measure nothing")
    parser.add_argument("--figures", type=Path, help="a folder to draw figures into")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(given)
    names = chosen.tables or tables_for(chosen.data)
    if not set(names) <= set(tables_for(chosen.data)):
        parser.error("IHDP is read from files: give --data FOLDER")
    if chosen.result:
        result = json.loads(chosen.result.read_text(encoding="utf-8"))
    else:
        result = heterogeneity(names, chosen.data, quick=chosen.quick, kept=chosen.kept)
    if chosen.figures:
        draw(result, chosen.figures)
    print(json.dumps(result, indent=1) if chosen.json else "\n".join(_text(result)))


def _text(result: dict[str, Any]) -> list[str]:
    lines = []
    for row in result["rows"]:
        epsilon = "-" if row["epsilon"] is None else f"{row['epsilon']:g}"
        covered = "-" if row["coverage"] is None else f"{row['coverage']:.0%}"
        place = f"{row['table']:27}{row['n']:>7,}{epsilon:>5}  {row['contestant']:57}"
        lines.append(f"{place}{row['pehe']:9.3f}{covered:>6}{row['seconds']:8.2f} s{row['repeats']:>4}")
    return lines


if __name__ == "__main__":
    main()
