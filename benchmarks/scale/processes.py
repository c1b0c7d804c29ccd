"""Tasks in processes of their own, in turns, so that all meet the same weather; what counts is their ratio."""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.progress import progress
from benchmarks.scale.tasks import Task

Label = TypeVar("Label")

Run = dict[str, Any]
"""What one process printed: cpu and wall in seconds, peak in megabytes, and the value that the work gave."""

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A product of small matrices gains nothing from more, and waiting threads would count as work."""


class TooLargeError(Exception):
    """A process held more memory than it was to."""


def run(task: Task) -> Run:
    """One task, once; what it leaves behind where it was ended is removed."""
    beside = str(Path(task.table).parent) if task.table else None
    with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=beside) as scratch:
        environment = os.environ | ONE_THREAD | {"TMPDIR": scratch}
        return printed([sys.executable, "-m", "benchmarks.scale.tasks", task.to_json()], environment)


def printed(command: Sequence[str], environment: Mapping[str, str], most: float = math.inf) -> Run:
    """Return what a process prints as JSON; it is ended when it holds more than so many megabytes."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:  # noqa: S603
        try:
            while most < math.inf and process.poll() is None:
                if _megabytes(process.pid) > most:
                    raise TooLargeError(f"more than {most:,.0f} MB")
                time.sleep(0.05)
            text, complaint = process.communicate()
        finally:
            process.kill()
    if process.returncode:
        raise RuntimeError(f"a task failed: {' '.join(command)}\n{complaint}")
    found: Run = json.loads(text.splitlines()[-1])
    return found


def in_turns(tasks: Mapping[Label, Task], repeats: int, what: str) -> dict[Label, list[Run]]:
    """Every task so many times, in rounds, each round beginning with another task."""
    labels = list(tasks)
    rounds = [label for turn in range(repeats) for label in labels[turn % len(labels) :] + labels[: turn % len(labels)]]
    found: dict[Label, list[Run]] = {label: [] for label in labels}
    for label in progress(rounds, len(rounds), what):
        found[label].append(run(tasks[label]))
    return found


def beside(ours: str, runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Return what each task cost, and how often as much ours did."""
    return {
        "costs": {label: cost(each) for label, each in runs.items()},
        "ratios": {label: ratios(runs[ours], each) for label, each in runs.items() if label != ours},
    }


def cost(runs: Sequence[Run]) -> dict[str, float]:
    """Return the medians of the seconds, and the largest peak."""
    medians = {name: round(statistics.median(each[name] for each in runs), 4) for name in ("cpu", "wall")}
    return medians | {"peak": round(max(each["peak"] for each in runs), 1)}


def ratios(ours: Sequence[Run], theirs: Sequence[Run]) -> dict[str, float]:
    """Return the medians over rounds of how often as long ours took."""
    pairs = list(zip(ours, theirs, strict=True))
    return {name: round(statistics.median(a[name] / b[name] for a, b in pairs), 3) for name in ("cpu", "wall")}


def _megabytes(process: int) -> float:
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")), 0.0)
