"""The gate, `make check`: the tests, and beside them types, docs, packaging, architecture and lint one after another.

Tests that wait for a server leave a core free, which the other parts use. The tests print as they go; another part
prints when it ends, and once more at the very end if it failed. Last come the CPU seconds of each part and of the tests
by folder. `python -m checks.gate --write` also stores them in `checks/seconds.json`, whose sum has a budget.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

BESIDE = ("types", "docs", "packaging", "architecture", "lint")
"""The parts beside the tests, the longest first."""

BUDGET = 1_800
"""CPU seconds of the whole gate, installation included: a quarter of an hour of two cores."""

INSTALLATION = 90
"""CPU seconds that `.ci/run` takes before the gate starts."""

STORED = Path(__file__).with_name("seconds.json")


@dataclass(frozen=True)
class Part:
    """A part that ended; `output` is what it printed, unless that went straight to the terminal."""

    name: str
    code: int
    seconds: float
    cpu: float
    output: str

    def __str__(self) -> str:
        return f"{self.name:<12} {self.seconds:5.0f} s {self.cpu:5.0f} CPU s  {'FAILED' if self.code else 'passed'}"


def run(name: str, *, straight: bool = False) -> Part:
    """Run a target of the Makefile, with its output straight to the terminal or at its end."""
    start = time.monotonic()
    command = ["make", "--no-print-directory", name, f"PYTHON={sys.executable}"]
    pipe = None if straight else subprocess.PIPE
    process = subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe and subprocess.STDOUT)  # noqa: S603
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    part = Part(name, process.returncode, seconds, usage.ru_utime + usage.ru_stime, output)
    print(f"\n{part.output}{part}", flush=True)
    return part


def by_folder(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of files of tests by folder, the largest first."""
    found: dict[str, float] = defaultdict(float)
    for file, each in seconds.items():
        found["/".join(Path(file).parent.parts[:2]) or file] += each
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    """Run every part, print what failed and what each took, and fail if one did."""
    parser = argparse.ArgumentParser(prog="python -m checks.gate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="store the seconds where all parts pass")
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        file = Path(folder) / "seconds.json"
        os.environ["DPCAUSAL_SECONDS"] = str(file)
        others = [beside.submit(run, name) for name in BESIDE]
        parts = [run("test", straight=True), *(other.result() for other in others)]
        tests = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    failed = [part for part in parts if part.code]
    for part in failed:
        print(f"\n{part.name} FAILED:\n{part.output or 'see above'}")
    print("\nTests, CPU s:")
    for name, seconds in by_folder(tests).items():
        print(f"{seconds:7.0f}  {name}")
    print("", *parts, f"{'sum':<12} {sum(part.cpu for part in parts):13.0f} CPU s of {BUDGET}", sep="\n")
    if chosen.write and not failed:
        spent = {part.name: round(part.cpu) for part in parts}
        rounded = {name: round(seconds, 1) for name, seconds in sorted(tests.items())}
        STORED.write_text(f"{json.dumps({'parts': spent, 'tests': rounded}, indent=1)}\n", encoding="utf-8")
    sys.exit(f"gate: FAILED: {', '.join(part.name for part in failed)}" if failed else None)


if __name__ == "__main__":
    main()
