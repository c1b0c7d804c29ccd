"""The command: `python -m benchmarks.federation --help`. Each part's figures are written down as soon as it is done."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import pooling
from benchmarks.data.files import add_data_option
from benchmarks.federation import attacks, faults, mailbox, many, secure, sums, wire
from benchmarks.parts import add_result_options, done, kept, result_file, shown


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=list(_parts(100, 50, None)), help="all, if left out")
    parser.add_argument("--runs", type=int, default=100, help="repetitions of experiments")
    parser.add_argument(
        "--sites", type=int, default=50, help="sites of the part `many`; `mailbox` has twenty times as many"
    )
    add_data_option(parser)
    add_result_options(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(given)
    file = result_file(parser, chosen, "federation")
    parts = _parts(chosen.runs, chosen.sites, chosen.data)
    failed = []
    for part in chosen.part or parts:
        with tempfile.TemporaryDirectory() as folder:
            if not done(part, partial(parts[part], Path(folder)), file):
                failed.append(part)
    result = kept(file)
    print(shown(result, chosen.json))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _parts(runs: int, sites: int, data: Path | None) -> dict[str, Callable[[Path], dict[str, Any]]]:
    return {
        "pooling": lambda _: {"agreement": pooling.agreement(10_000), "speed": pooling.speed()},
        "sums": lambda folder: sums.measure(folder, 2 * runs),
        "faults": faults.measure,
        "attacks": attacks.measure,
        "wire": lambda folder: wire.measure(folder, data) if data else {"skipped": "--data names no folder"},
        "many": lambda folder: many.measure(folder, sites),
        "mailbox": lambda folder: mailbox.measure(folder, 20 * sites),
        "secure": lambda folder: secure.measure(folder, sites),
    }


if __name__ == "__main__":
    main()
