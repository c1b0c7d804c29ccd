"""What a site stores in folders: the studies that it received, and the responses that it gave."""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpcausal.errors import StudyError
from dpcausal.release import Receipt, receipts_in
from dpcausal.utils.durable_files import create_file
from dpcausal.utils.hash_chain import digest_of_text

_MOST = 1_000
"""The number of studies of one requester that are stored."""
_SENT = ".sent"
"""The folder of the digests of studies that were not brought by hand, in a folder for each requester."""
_LONGEST = 200_000
_IS_STUDY = re.compile(r"[0-9a-f]{64}\.toml")


class Inbox:
    """Study files in one folder, each named by its digest, so that a file cannot be changed after it was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, text: str, requester: str = "") -> str:
        """Store a study until a person decides about it, and return its digest.

        Of each requester the first 1,000 are stored, so that nobody crowds out the studies of others.

        Args:
            requester: Who sent it; empty for one that was brought by hand, which is always stored.
        """
        digest = digest_of_text(text)
        file = self._folder / f"{digest}.toml"
        if not file.exists() and (not requester or (len(text) <= _LONGEST and self._counted(requester, digest))):
            _write_once(self._folder, file.name, text)
        return digest

    def _counted(self, requester: str, digest: str) -> bool:
        """Count a study that a requester sent, and return whether it is one of those that are stored."""
        sent = self._folder / _SENT / digest_of_text(requester)
        sent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sum((self._folder / f"{each.name}.toml").exists() for each in sent.iterdir()) >= _MOST:
            return False
        (sent / digest).touch(mode=0o600)
        return True

    def digests(self) -> list[str]:
        """Return the digests of all studies, oldest first."""
        return [Path(file).stem for file in sorted(self._files(), key=lambda file: file.stat().st_mtime)]

    def _files(self) -> list[os.DirEntry[str]]:
        """Return the files of all studies. A name that is not a digest may hold anything, and is not read."""
        try:
            with os.scandir(self._folder) as files:
                return [file for file in files if _IS_STUDY.fullmatch(file.name) and file.is_file()]
        except FileNotFoundError:
            return []

    def text(self, digest: str) -> str:
        """Return the study with this digest.

        Raises:
            StudyError: If there is none, if its file was changed, or if these are only some of the digits: whoever
                writes studies can make two whose digests begin alike.
        """
        names = [file.name.removesuffix(".toml") for file in self._files()]
        if digest not in names:
            raise StudyError(
                expected="the whole digest of a study that this site has: 64 digits",
                got=repr(digest)[:100],
                hint="list the studies with: dpcausal site review FOLDER.",
            )
        text = self.intact(digest)
        if text is None:
            raise StudyError(
                problem=f"{digest}.toml was changed since the study was received",
                hint="remove the file; the coordinator sends it again with its next request.",
            )
        return text

    def intact(self, digest: str) -> str | None:
        """Return the study with this digest; None where its file is absent or was changed."""
        try:
            text = (self._folder / f"{digest}.toml").read_bytes().decode()
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        return text if digest_of_text(text) == digest else None


class ResponseStore:
    """Responses in one folder, by the id of the request. The same request always has the same response."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def response(self, request: str) -> str | None:
        """Return the response to a request, if there is one."""
        file = self._folder / request
        return file.read_text(encoding="ascii") if file.exists() else None

    def receipts(self) -> tuple[Receipt, ...]:
        """Return the receipts in all responses: the site's ledger must hold them."""
        return tuple(receipt for message in self._messages() for receipt in receipts_in(message))

    def _messages(self) -> Iterator[dict[str, Any]]:
        files = (file for file in self._folder.glob("*") if not file.name.startswith("."))
        return (json.loads(file.read_text(encoding="ascii")) for file in files)

    def studies(self) -> frozenset[str]:
        """Return the digests of the studies that a response was paid for."""
        return frozenset(message["study"] for message in self._messages())

    def store(self, request: str, message: str) -> str:
        """Store a response, durably, and return the first one that was stored."""
        _write_once(self._folder, request, message)
        return self.response(request) or message


def _write_once(folder: Path, name: str, text: str) -> None:
    """Write a new file, completely or not at all. An existing file stays as it is."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        create_file(folder / name, text)
