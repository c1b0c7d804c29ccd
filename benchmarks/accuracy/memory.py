"""The most memory that one matching estimate takes, in a process of its own.

`python -m benchmarks.accuracy.memory --dataset Synth --protects outcome`
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import get_args

from benchmarks.accuracy.entries import ENTRIES
from benchmarks.accuracy.published import MEGABYTES
from benchmarks.accuracy.runs import Cell, timed
from benchmarks.datasets import NAMES
from dpcausal.schema import Protects


def measured(names: Sequence[str], folder: str | None) -> list[dict[str, object]]:
    """Peak memory of matching at both levels, and the paper's figure beside it.

    A process counts as its own what the one that started it held at that moment, so this is called before any data are
    loaded.
    """
    table: list[dict[str, object]] = []
    for name in names:
        for protects, published in MEGABYTES.items():
            command = [sys.executable, "-m", "benchmarks.accuracy.memory", "--dataset", name, "--protects", protects]
            given = [] if folder is None else ["--data", folder]
            done = subprocess.run([*command, *given], check=True, capture_output=True, text=True)  # noqa: S603
            table.append(
                {"data": name, "protects": protects, "megabytes": float(done.stdout), "paper": published[name]}
            )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", choices=NAMES, required=True)
    parser.add_argument("--protects", choices=get_args(Protects), required=True)
    parser.add_argument("--data")
    chosen = parser.parse_args()
    key = f"{chosen.protects}: propensity matching"
    assert key in ENTRIES
    timed((Cell(chosen.dataset, key, 1.0), chosen.data))
    print(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


if __name__ == "__main__":
    main()
