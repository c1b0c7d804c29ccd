"""The gate, `make check`: the tests, and beside them types, docs, packaging, architecture and lint one after another.

Tests that wait for a server leave a core free, which the other parts use. The tests print as they go; another part
prints when it ends, and once more at the very end if it failed. Last come the CPU seconds of each part and of the tests
by folder. Where all parts pass they are stored in `checks/seconds.json`, whose sum has a budget; commit it.

Seconds of costly tests count apart: they are not spent where nothing that the tests need changed. Those of every file
are in `checks/passed.json`, with the digest of what passed.
"""

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

from checks import passed

BESIDE = ("types", "docs", "packaging", "architecture", "lint")
"""The parts beside the tests, the longest first."""

BUDGET = 1_800
"""CPU seconds of the whole gate where no costly test runs, installation included: a quarter of an hour of two cores."""

INSTALLATION = 90
"""CPU seconds that `.ci/run` takes before the gate starts."""


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


def run(name: str, *, seconds_to: Path | None = None) -> Part:
    """Run a target of the Makefile.

    Args:
        name: Of the target.
        seconds_to: A file for the seconds of each file of tests. Such a target prints straight to the terminal, and
            others at their end.
    """
    start = time.monotonic()
    command = ["make", "--no-print-directory", name, f"PYTHON={sys.executable}"]
    pipe = None if seconds_to else subprocess.PIPE
    told = os.environ | ({"DPCAUSAL_SECONDS": str(seconds_to)} if seconds_to else {})
    with subprocess.Popen(command, env=told, text=True, stdout=pipe, stderr=pipe and subprocess.STDOUT) as process:  # noqa: S603
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


def whole(parts: Mapping[str, float]) -> float:
    """Return the CPU seconds of a whole run from those of its parts."""
    return INSTALLATION + sum(parts.values())


def main() -> None:
    """Run every part, print what failed and what each took, and fail if one did."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        file = Path(folder) / "seconds.json"
        others = [beside.submit(run, name) for name in BESIDE]
        parts = [run("test", seconds_to=file), *(other.result() for other in others)]
        told = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"tests": {}, "costly": {}}
    failed = [part for part in parts if part.code]
    for part in failed:
        print(f"\n{part.name} FAILED:\n{part.output or 'see above'}")
    tests, costly = by_folder(told["tests"]), by_folder(told["costly"])
    print("\nTests, CPU s, and those of costly tests that ran:")
    for name in {**tests, **costly}:
        print(f"{tests.get(name, 0):7.0f} {costly.get(name, 0):7.0f}  {name}")
    print("", *parts, sep="\n")
    spent = {part.name: part.cpu - (part.name == "test") * sum(costly.values()) for part in parts}
    print(f"{'sum':<12} {whole(spent):13.0f} CPU s of {BUDGET}, with {INSTALLATION} s for the installation")
    print(
        f"{'costly':<12} {sum(costly.values()):13.0f} CPU s more; where all run, about {passed.seconds_of_tests():.0f}"
    )
    if not failed:
        rounded = {name: round(seconds, 1) for name, seconds in sorted(told["tests"].items())}
        stored = {"parts": {name: round(seconds) for name, seconds in spent.items()}, "tests": rounded}
        passed.SECONDS.write_text(f"{json.dumps(stored, indent=1)}\n", encoding="utf-8")
    sys.exit(f"gate: FAILED: {', '.join(part.name for part in failed)}" if failed else None)


if __name__ == "__main__":
    main()
