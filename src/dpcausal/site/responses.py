"""What a site has said, kept for ever: the same request has the same answer, to the letter."""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from dpcausal.release import Receipt, receipts_in


class ResponseStore:
    """Messages in one folder, by the ids of the requests that they answer. Signatures always come out the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def kept(self, request: str) -> str | None:
        """The message that answers a request, if there is one."""
        file = self._folder / request
        return file.read_text(encoding="ascii") if file.exists() else None

    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts in all messages: what the site's ledger must hold."""
        files = (file for file in self._folder.glob("*") if not file.name.startswith("."))
        messages = (json.loads(file.read_text(encoding="ascii")) for file in files)
        return tuple(receipt for message in messages for receipt in receipts_in(message))

    def keep(self, request: str, message: str) -> str:
        """Keep a message, durably, and return the one that is kept: the first."""
        written(self._folder, request, message)
        return self.kept(request) or message


def written(folder: Path, name: str, text: str) -> None:
    """Write a new file, whole or not at all; one that is there already stays as it is."""
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor, waiting = tempfile.mkstemp(dir=folder, prefix=".")
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        os.link(waiting, folder / name)
    Path(waiting).unlink()
