"""Files that only their owner reads: written completely or not at all, and on disk when the call returns."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(file: Path, text: str) -> None:
    """Write a file, in the place of one of that name if there is one."""
    with _written_beside(file, text) as partial:
        partial.replace(file)


def create_file(file: Path, text: str) -> None:
    """Write a new file.

    Raises:
        FileExistsError: If there is a file of that name, which stays as it is.
    """
    with _written_beside(file, text) as partial:
        os.link(partial, file)


@contextmanager
def locked(file: Path) -> Iterator[int]:
    """Open a file for reading and appending, made where there is none, and exclude all others that lock it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _written_beside(file: Path, text: str) -> Iterator[Path]:
    """Give a file with the text in the folder of another, and wait until the folder is on disk too."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".")  # its mode is 0600
    partial = Path(name)
    try:
        write_through(descriptor, text.encode())
        yield partial
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(file.parent)


def write_through(descriptor: int, content: bytes) -> None:
    """Write to an open file, wait until it is on disk, and close it."""
    with os.fdopen(descriptor, "wb") as output:
        output.write(content)
        output.flush()
        os.fsync(output.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
