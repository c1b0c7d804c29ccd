"""Seconds of processor time and the most memory that one estimate takes, each method in a process of its own.

`python -m benchmarks.papers.private.cost label Synth`

Data sets follow each other from the smallest to the largest: memory is the most up to there.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import BUDGET, load
from benchmarks.papers.private import synthesis
from benchmarks.papers.private.methods import METHODS, Ask

VAULTED = {"label": "outcome", "sample": "record"}
"""Methods that are measured as a user has them: a vault is opened, and its ledger is written."""


def measured(names: Sequence[str], folder: str | None, key: str) -> dict[str, Any]:
    """Return the cost of one estimate for each data set."""
    command = [sys.executable, "-m", "benchmarks.papers.private.cost", key, *names]
    given = [] if folder is None else ["--folder", folder]
    done = subprocess.run([*command, *given], check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def most_memory() -> int:
    """Return the most megabytes that this process held; `getrusage` would count what its parent held too."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)


def once(name: str, folder: str | None, key: str) -> None:
    """Estimate at epsilon 1."""
    data = load(name, folder)
    if key in synthesis.ALGORITHMS:
        synthesis.estimate(data, key, 1.0)
    elif key in VAULTED:
        level = VAULTED[key]
        vault = dpc.Vault(data.relation(), data.schema(level), ledger="sqlite://", budget=BUDGET)  # type: ignore[arg-type]
        dpc.PropensityMatching(covariates=data.names).estimate(vault, epsilon=1.0)
    else:
        METHODS[key].estimates(Ask(name, folder, 1.0, 1, np.random.default_rng(0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=[*METHODS, *synthesis.ALGORITHMS])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--folder")
    chosen = parser.parse_args()
    found = {}
    for name in sorted(chosen.data, key=lambda name: load(name, chosen.folder).n):
        once(name, chosen.folder, chosen.method)  # which compiles what has to be
        start = time.process_time()
        once(name, chosen.folder, chosen.method)
        seconds = float(f"{time.process_time() - start:.3g}")
        found[name] = {"seconds": seconds, "megabytes": most_memory()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
