"""What a part of the suite is told."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What a part of the suite is told.

    Attributes:
        rows: The size of the largest table; the part's own choice if None.
        repeats: How often each task is run; the part's own choice if None.
        folder: Where made-up tables are written; the system's folder for temporary files if None.
        peers: Interpreters that have DoubleML or EconML.
    """

    rows: int | None = None
    repeats: int | None = None
    folder: Path | None = None
    peers: tuple[Path, ...] = ()
