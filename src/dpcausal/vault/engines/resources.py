"""What reading a table may take of the machine."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dpcausal.errors import TableError
from dpcausal.utils.other_names import Constructor

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([MGT]B)")
_MEGABYTES = {"MB": 1, "GB": 10**3, "TB": 10**6}
_LEAST_MEGABYTES = 100


@dataclass(frozen=True)
class Resources(metaclass=Constructor):
    """How much memory and how many cores a vault may take, and whether it shows how far it is.

    What does not fit into memory is written to a folder that only you may read, and removed with the vault. For a table
    that comes with an engine of its own, a DuckDB relation or a Spark frame, memory, threads and spill are set there.

    Attributes:
        memory: The most that DuckDB holds in memory, such as `1 GB`; four fifths of the machine's if left out. Python,
            Arrow and numpy come on top, with about 200 MB.
        threads: How many cores are used; all of them, or as many as the memory is enough for, if left out.
        spill: The folder in which the private folder is made: a local disk with room for the table. The system's folder
            for temporary files if left out.
        progress: Whether passes over the table that take longer than two seconds show a bar on stderr. It is for the
            person who runs the vault and may see the table: how long something takes, and how many passes it takes, is
            not protected. A bar tells time, and the share of the public number of units that was seen; nothing else.

    Example:
        >>> Resources(memory="1 GB", progress=True)
        Resources(memory='1 GB', threads=None, spill=None, progress=True)
    """

    _example = 'Resources(memory="1 GB", threads=4)'

    memory: str | None = None
    threads: int | None = None
    spill: str | Path | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.memory is not None and not _is_enough(self.memory):
            raise TableError(
                expected="memory such as '500 MB' or '1.5 GB', 100 MB or more",
                got=repr(self.memory),
                hint="write a number and MB, GB or TB, or leave it out for four fifths of the machine's memory.",
            )
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise TableError(
                expected="threads as a whole number, 1 or more",
                got=repr(self.threads),
                hint="leave it out to use every core.",
            )
        if self.spill is not None and not isinstance(self.spill, str | Path):
            raise TableError(
                expected="spill as the path of a folder",
                got=type(self.spill).__name__,
                hint="name a folder on a local disk, or leave it out for the system's temporary one.",
            )
        if not isinstance(self.progress, bool):
            raise TableError(
                expected="progress as True or False", got=repr(self.progress), hint="write progress=True for a bar."
            )

    @property
    def folder(self) -> str | Path:
        """Where the private folder is made."""
        return tempfile.gettempdir() if self.spill is None else self.spill

    @property
    def are_asked_for(self) -> bool:
        """Whether anything but progress is asked for."""
        return (self.memory, self.threads, self.spill) != (None, None, None)


def _is_enough(memory: object) -> bool:
    size = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
    return size is not None and float(size[1]) * _MEGABYTES[size[2]] >= _LEAST_MEGABYTES
