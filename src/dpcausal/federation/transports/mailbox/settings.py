"""A mailbox in a folder: its settings, its authority and the server's certificate."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import tomli_w

from dpcausal.errors import StudyError, redact_errors
from dpcausal.federation.transports.mailbox.authority import AUTHORITY, create_authority, issue_server_certificate
from dpcausal.utils.validation import check_format, is_name, is_public_key

FILE = "mailbox.toml"
VERSION = 1


@dataclass(frozen=True)
class Mailbox:
    """A mailbox in a folder: its settings, its authority and the server's certificate.

    Attributes:
        address: The address under which sites and coordinators call the server.
        database: The SQLAlchemy address of the database; the file of a relative one is in the folder.
        requesters: The public keys of those who may send requests, by name.
    """

    folder: Path
    address: str
    database: str
    requesters: Mapping[str, str]

    @classmethod
    def create(cls, folder: Path, address: str, database: str, requesters: Mapping[str, str], days: int) -> Self:
        """Create a mailbox in a new folder."""
        if (folder / FILE).exists():
            raise StudyError(
                problem=f"The workspace {folder} has a mailbox already", hint="use it, or remove this folder first."
            )
        mailbox = cls(folder, address, database, dict(requesters))
        with redact_errors(OSError, instead=lambda error: _unusable(folder, error)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_authority(folder)
            issue_server_certificate(folder, mailbox.host, days)
            text = tomli_w.dumps(
                {"version": VERSION, "address": address, "database": database, "requesters": mailbox.requesters}
            )
            descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT, 0o600)  # it may hold a password
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        return mailbox

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the mailbox in a folder."""
        with redact_errors(OSError, ValueError, instead=lambda error: _absent(folder, error)):
            document = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
        check_format(FILE, document, VERSION, {})
        mailbox = cls(folder, *(document.get(name) for name in ("address", "database", "requesters")))  # type: ignore[arg-type]
        parsed = urlsplit(mailbox.address) if isinstance(mailbox.address, str) else None
        keys = mailbox.requesters.items() if isinstance(mailbox.requesters, dict) else [("", "")]
        if not (
            parsed
            and parsed.scheme == "https"
            and parsed.hostname
            and isinstance(mailbox.database, str)
            and all(is_name(name) and is_public_key(key) for name, key in keys)
        ):
            raise _absent(folder, ValueError())
        return mailbox

    @property
    def host(self) -> str:
        """The host name of the server."""
        return urlsplit(self.address).hostname or ""

    @property
    def authority(self) -> str:
        """The certificate of the authority, in PEM."""
        return (self.folder / AUTHORITY).read_text(encoding="ascii")

    def renew(self, days: int) -> datetime:
        """Replace the key and the certificate of the server, and return the new certificate's last day."""
        return issue_server_certificate(self.folder, self.host, days)

    @property
    def port(self) -> int:
        """The port of the server."""
        return urlsplit(self.address).port or 443

    @property
    def database_address(self) -> str:
        """The address of the database, with an absolute path."""
        relative = self.database.removeprefix("sqlite:///")
        inside = relative != self.database and not relative.startswith("/")
        return f"sqlite:///{self.folder.absolute() / relative}" if inside else self.database


def _absent(folder: Path, error: Exception) -> StudyError:
    return StudyError(
        problem=f"{FILE} with version, address, database and [requesters] cannot be read in {folder} "
        f"({type(error).__name__})",
        hint="create a mailbox with: dpcausal federation mailbox init FOLDER --host HOST.",
    )


def _unusable(folder: Path, error: Exception) -> StudyError:
    return StudyError(problem=f"{folder} cannot be written ({type(error).__name__})", hint="choose another folder.")
