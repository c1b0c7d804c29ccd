"""What passed, when and with which code: `checks/passed.json`, which is committed.

A check that takes long need not run again where the digest of all that decides it is the one with which it last passed.
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")

SECONDS = FILE.with_name("seconds.json")
"""What the gate took: the CPU seconds of its parts, and of each file of tests without the costly ones."""


@dataclass(frozen=True)
class Pass:
    """A pass.

    Attributes:
        digest: Of all that decides the check.
        date: The day, of UTC.
        seconds: The CPU time that it took.
    """

    digest: str
    date: str
    seconds: float


def last_pass(name: str) -> Pass | None:
    """Return the last pass of a check; None where it never passed."""
    known = _read().get(name)
    return Pass(**known) if known else None


def has_passed(name: str, digest: str) -> bool:
    """Return whether a check passed with what has this digest."""
    last = last_pass(name)
    return last is not None and last.digest == digest


def record_pass(name: str, digest: str, seconds: float) -> None:
    """Write down that a check passed today. Parts of the gate do so side by side."""
    folder = os.open(FILE.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        known = _read() | {name: asdict(Pass(digest, datetime.now(UTC).date().isoformat(), round(seconds, 1)))}
        new = FILE.with_suffix(".new")
        new.write_text(f"{json.dumps(dict(sorted(known.items())), indent=2)}\n", encoding="utf-8")
        new.replace(FILE)
    finally:
        os.close(folder)


def seconds_of_tests() -> float:
    """Return the CPU time of all costly tests when they last passed."""
    return sum(float(known["seconds"]) for name, known in _read().items() if name.endswith(".py"))


def seconds_of_files() -> dict[str, float]:
    """Return the CPU time of each file of tests, without costly tests, where it is known."""
    return dict(json.loads(SECONDS.read_text(encoding="utf-8"))["tests"]) if SECONDS.is_file() else {}


def cpu_seconds() -> float:
    """Return the CPU time of this process, and of its children that ended."""
    return sum(os.times()[:4])


def _read() -> dict[str, dict[str, Any]]:
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.is_file() else {}
