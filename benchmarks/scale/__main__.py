"""The command: `python -m benchmarks.scale --help`. Each part's figures are written down as soon as it is done.

A timing belongs to the machine; what counts is the ratio of two that were taken in turns.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.parts import add_result_options, done, kept, result_file, shown
from benchmarks.scale import (
    adjustment,
    engines,
    growth,
    install,
    ledger,
    matching,
    moments,
    out_of_core,
    sizes,
    sums,
    warehouses,
)
from benchmarks.scale.options import Options
from benchmarks.scale.pictures import draw

PARTS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "sums": sums.measure,
    "moments": moments.measure,
    "rows": sizes.measure,
    "out_of_core": out_of_core.measure,
    "engines": engines.measure,
    "warehouses": warehouses.measure,
    "adjustment": adjustment.measure,
    "matching": matching.measure,
    "ledger": lambda options: ledger.measure(min(options.rows or 100_000, 100_000)),
    "install": install.measure,
    "covariates": growth.covariates,
    "strata": growth.strata,
    "threads": growth.threads,
}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=list(PARTS), help="all, if left out")
    parser.add_argument(
        "--rows", type=int, help="of the largest table of each part; if left out, as many as it is about"
    )
    parser.add_argument("--repeats", type=int, help="runs of each task")
    parser.add_argument("--folder", type=Path, help="where made-up tables are written, and removed; needs up to 14 GB")
    parser.add_argument("--peer", nargs="+", type=Path, default=[], help="interpreters that have DoubleML or EconML")
    add_result_options(parser)
    parser.add_argument("--missing", action="store_true", help="leave out parts that the file has already")
    parser.add_argument("--figures", type=Path, help="a folder to draw figures into")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(given)
    file = result_file(parser, chosen, "scale")
    options = Options(chosen.rows, chosen.repeats, chosen.folder, tuple(chosen.peer))
    parts = [part for part in chosen.part or PARTS if not (chosen.missing and part in kept(file))]
    failed = [part for part in parts if not done(part, partial(PARTS[part], options), file)]
    result = kept(file)
    if chosen.figures:
        draw(result, chosen.figures)
    print(shown(result, chosen.json))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that tables are removed then, too
    main()
