"""The gate, `make check`: the tests, and beside them types, docs, packaging, architecture and lint one after another.

Tests that wait for a server leave a core free, which the other parts use. The tests print as they go; another part
prints when it ends, and once more at the very end if it failed.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

BESIDE = ("types", "docs", "packaging", "architecture", "lint")
"""The parts beside the tests, the longest first."""


@dataclass(frozen=True)
class Part:
    """A part that ended; `output` is what it printed, unless that went straight to the terminal."""

    name: str
    code: int
    seconds: float
    output: str

    def __str__(self) -> str:
        return f"{self.name:<12} {self.seconds:5.0f} s  {'FAILED' if self.code else 'passed'}"


def run(name: str, *, straight: bool = False) -> Part:
    """Run a target of the Makefile, with its output straight to the terminal or at its end."""
    start = time.monotonic()
    command = ["make", "--no-print-directory", name, f"PYTHON={sys.executable}"]
    pipe = None if straight else subprocess.PIPE
    done = subprocess.run(command, check=False, text=True, stdout=pipe, stderr=pipe and subprocess.STDOUT)  # noqa: S603
    part = Part(name, done.returncode, time.monotonic() - start, done.stdout or "")
    print(f"\n{part.output}{part}", flush=True)
    return part


def main() -> None:
    """Run every part, print what failed and how long each took, and fail if one did."""
    with ThreadPoolExecutor(1) as beside:
        others = [beside.submit(run, name) for name in BESIDE]
        parts = [run("test", straight=True), *(other.result() for other in others)]
    failed = [part for part in parts if part.code]
    for part in failed:
        print(f"\n{part.name} FAILED:\n{part.output or 'see above'}")
    print("", *parts, sep="\n")
    sys.exit(f"gate: FAILED: {', '.join(part.name for part in failed)}" if failed else None)


if __name__ == "__main__":
    main()
