"""Regression adjustment from files to effect, beside its moments by hand and beside libraries without privacy."""

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale.data import Study, first_files, written
from benchmarks.scale.options import Options
from benchmarks.scale.processes import Run, TooLargeError, beside, cost, in_turns, printed, run
from benchmarks.scale.tasks import Task

ROWS = 10_000_000
TARGET = 1.5
"""The most that an estimate may cost, in seconds of either kind, beside its second moments by hand."""

MOST_MEGABYTES = 8 * 1024
_FILES = 10
_SIZES = (1, 2, 5, 10)


def measure(options: Options) -> dict[str, Any]:
    """Time an estimate and its moments in turns; then peers on ever more units, and ours on as many."""
    rows, repeats = options.rows or ROWS, options.repeats or 3
    with written(Study(rows, file_rows=-(-rows // _FILES)), options.folder) as folder:
        works = ("estimate", "arrow")
        runs = in_turns({work: Task(work, str(folder)) for work in works}, repeats, "adjustment")
        with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=options.folder) as parts:
            peers = [_beside_peer(peer, folder, Path(parts), number, rows) for number, peer in enumerate(options.peers)]
    line = beside("estimate", runs)
    return {
        "rows": rows,
        "covariates": 20,
        "repeats": repeats,
        "target": TARGET,
        "by_hand": "float64, NaN and NULL counted as the middle, clipped; X'X and X'y by arm from Arrow batches",
        **line,
        "within_target": all(ratio <= TARGET for ratio in line["ratios"]["arrow"].values()),
        "found": runs["estimate"][0]["value"],
        "peers": peers or "none: see --peer",
    }


def _beside_peer(peer: Path, folder: Path, parts: Path, number: int, rows: int) -> dict[str, Any]:
    """One library on a tenth of the units, a fifth, half and all, until it holds too much; and ours on the same."""
    lines: list[dict[str, Any]] = []
    name, stopped = "", None
    for files in _SIZES:
        part = first_files(folder, files, parts / f"{number}-{files}")
        try:
            theirs: Run = printed(
                [str(peer), str(Path(__file__).with_name("peer.py")), str(part), "20"], os.environ, MOST_MEGABYTES
            )
        except TooLargeError:
            stopped = rows * files // _FILES
            break
        ours = run(Task("estimate", str(part)))
        name = theirs["value"].pop("peer")
        shares = {unit: round(ours[unit] / theirs[unit], 3) for unit in ("cpu", "wall", "peak")}
        found = {"theirs": theirs["value"], "ours": ours["value"]}
        lines.append(
            {
                "rows": rows * files // _FILES,
                "theirs": cost([theirs]),
                "ours": cost([ours]),
                "ours_to_theirs": shares,
                "found": found,
            }
        )
    return {"peer": name, "most_megabytes": MOST_MEGABYTES, "too_large_at": stopped, "sizes": lines}
