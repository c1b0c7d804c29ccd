"""What a piece of work costs: processor seconds of all its threads, seconds on the wall, and the most memory held."""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

Value = TypeVar("Value")


def clocked(work: Callable[[], Value]) -> tuple[Value, dict[str, float]]:
    """Return what the work gives, and the seconds that it took."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    value = work()
    return value, {"cpu": cpu_seconds() - cpu, "wall": time.perf_counter() - wall}


def cpu_seconds() -> float:
    """Processor seconds of this process and of all that it started, user and system."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) + sum(_seconds_of_descendants())


def peak_megabytes() -> float:
    """Return the most memory that this process has held, where possible without that of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def _seconds_of_descendants() -> Iterator[float]:
    """Of each process below this one that is still there, since Spark adds up in processes of its own."""
    found: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # gone by now
            continue
        found[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {process for process, (parent, _) in found.items() if parent in family} - family:
        family |= more
    yield from (found[process][1] for process in family - {os.getpid()})


class Watched:
    """The most megabytes of files that a folder has held while it was watched."""

    def __init__(self, folder: str | None) -> None:
        self.megabytes, self._folder, self._over = 0.0, folder, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while self._folder and not self._over.wait(0.05):
            with suppress(FileNotFoundError):  # a folder is gone by now
                sizes = [self._size(path) for path in Path(self._folder).rglob("*")]
                self.megabytes = max(self.megabytes, sum(sizes) / 1e6)

    @staticmethod
    def _size(path: Path) -> int:
        try:
            return path.stat().st_size if path.is_file() else 0
        except OSError:  # gone by now
            return 0
