"""Seconds of processor time and the most memory that one estimate takes, in a process of its own.

`python -m benchmarks.papers.private.cost label Synth`
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import BUDGET, load
from benchmarks.papers.private import synthesis
from benchmarks.papers.private.methods import METHODS, Ask

VAULTED = {"label": "outcome", "sample": "record"}
"""Methods that are measured as a user has them: a vault is opened, and its ledger is written."""


def measured(name: str, folder: str | None, key: str) -> dict[str, Any]:
    """Return the cost of one estimate."""
    command = [sys.executable, "-m", "benchmarks.papers.private.cost", key, name]
    given = [] if folder is None else ["--folder", folder]
    done = subprocess.run([*command, *given], check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


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
    parser.add_argument("data")
    parser.add_argument("--folder")
    chosen = parser.parse_args()
    load(chosen.data, chosen.folder)
    seconds = []
    for _ in range(1 if chosen.method in synthesis.ALGORITHMS else 2):  # the first also compiles
        start = time.process_time()
        once(chosen.data, chosen.folder, chosen.method)
        seconds.append(time.process_time() - start)
    megabytes = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps({"seconds": float(f"{seconds[-1]:.3g}"), "megabytes": megabytes}))


if __name__ == "__main__":
    main()
