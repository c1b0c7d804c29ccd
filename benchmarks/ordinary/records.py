"""Runs on disk: a file of JSON lines for each table, size and estimator, to which runs are added."""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dpcausal
from benchmarks.ordinary.runs import Run

FOLDER = Path("ordinary-runs")


@cache
def code() -> str:
    """Return which code runs: the version, and a digest of the package's sources."""
    root = Path(dpcausal.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{dpcausal.__version__}+{digest.hexdigest()[:8]}"


def file_of(folder: Path, table: str, n: int, estimator: str) -> Path:
    words = f"{table} {n} {estimator}".replace(",", "").replace("/", "-")
    return folder / f"{words.replace(' ', '_')}.jsonl"


def add(folder: Path, table: str, n: int, estimator: str, run: Run) -> None:
    """Add one run of the code that runs now."""
    folder.mkdir(parents=True, exist_ok=True)
    with file_of(folder, table, n, estimator).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"code": code(), **run}, separators=(",", ":")) + "\n")


def read(folder: Path, table: str, n: int, estimator: str, version: str) -> list[Run]:
    """Return the runs of one version of the code, each once, in order."""
    file = file_of(folder, table, n, estimator)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    runs = (json.loads(line) for line in lines if line.endswith("}"))
    found = {run["run"]: run for run in runs if run["code"] == version}
    return [found[run] for run in sorted(found)]


def sizes(folder: Path, table: str, estimator: str) -> Iterator[int]:
    """Yield the numbers of units for which there are runs."""
    start, _, end = file_of(folder, table, 0, estimator).name.rpartition("_0_")
    for file in sorted(folder.glob("*.jsonl")):
        middle = file.name.removeprefix(f"{start}_").removesuffix(f"_{end}")
        if file.name == f"{start}_{middle}_{end}" and middle.isdecimal():
            yield int(middle)
