"""One clock of the day for all processes of a run, which can be set forward: a library of C, loaded into each of them.

Only dates are set forward. Other clocks stay as they are, so that timeouts and pauses are real. libfaketime cannot do
this: where it leaves the monotonic clock alone, `time.sleep` fails.
"""

import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

_FILE = "DPCAUSAL_CLOCK"
_DAY = 86_400


def restart_with_clock() -> None:
    """Start this command again with a clock of its own; return at once where it has one."""
    if _FILE in os.environ:
        return
    folder = Path(tempfile.mkdtemp())
    file, library = folder / "clock", folder / "clock.so"
    file.write_bytes(struct.pack("l", 0))
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)  # noqa: S603, S607
    # Hundreds of processes follow, which need not compile the package each time.
    compiled = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    clock = {"LD_PRELOAD": str(library), _FILE: str(file)} | compiled
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | clock)  # noqa: S606


class Clock:
    """The clock of this run."""

    def __init__(self) -> None:
        self._file = Path(os.environ[_FILE])
        self.day = 0

    def advance_to(self, day: int) -> None:
        """Set the clock of all processes forward to a day of the year."""
        if day < self.day:
            raise ValueError("clocks are only set forward")
        self.day = day
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
            page[:] = struct.pack("l", day * _DAY)

    def remove(self) -> None:
        """Remove the clock."""
        shutil.rmtree(self._file.parent)

    @property
    def now(self) -> datetime:
        """The time now."""
        return datetime.now(UTC)
