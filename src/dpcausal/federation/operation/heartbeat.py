"""The heartbeat of a serving process: a small file beside its kit that says whether it runs and whom it reaches.

The process holds a lock while it runs, which the kernel releases however the process ends. So `is_serving` is right
after a kill and after a power cut, and also across containers that share the folder.
"""

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

FILE = "heartbeat.json"
LOCK = "serving.lock"
FRESH_SECONDS = 60.0
"""A contact is recent for this long. NVFlare's sites send a heartbeat every 10 seconds."""


@dataclass(frozen=True)
class Heartbeat:
    """What a serving process last wrote about itself.

    Attributes:
        started: When the process started, in seconds since 1970.
        contact: When it last had an answer of the server, or as a server last heard from a site; 0 if never.
        clock_offset: The clock of the server minus that of this machine, in seconds, if the server told its time.
        server_version: The version of dpcausal at the server, if the server told it.
        sites: At a server, when each site was last heard from.
        every: The seconds between two contacts.
    """

    started: float
    contact: float = 0.0
    clock_offset: float | None = None
    server_version: str = ""
    sites: Mapping[str, float] = field(default_factory=dict)
    every: float = 0.0

    def write(self, folder: Path) -> None:
        """Write the heartbeat, so that a reader sees the old one or the new one. A full disk does not stop a site."""
        with contextlib.suppress(OSError):
            descriptor, partial = tempfile.mkstemp(dir=folder, prefix=f".{FILE}")
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(asdict(self), file)
            Path(partial).replace(folder / FILE)

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the last heartbeat; None if there is none, or if it is damaged."""
        try:
            document: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="ascii"))
            return cls(**document)
        except (OSError, ValueError, TypeError):
            return None

    def is_recent(self, now: float | None = None) -> bool:
        """Return whether the process had contact within the last minute, or within three times its usual pause."""
        return (time.time() if now is None else now) - self.contact <= max(FRESH_SECONDS, 3.0 * self.every)


def hold_lock(folder: Path) -> int:
    """Take the lock of a serving process, for as long as this process runs."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(BlockingIOError):  # a second process: the lock of the first one says as much
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def is_serving(folder: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
