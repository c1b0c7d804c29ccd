"""Health of a site or a coordinator: checks with a level each, as text, as JSON, as an exit status and as metrics."""

import json
import shutil
import ssl
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cryptography import x509

from dpcausal.federation.operation.archive import LAST_BACKUP
from dpcausal.federation.operation.contents import Contents
from dpcausal.federation.operation.heartbeat import Heartbeat, is_serving
from dpcausal.federation.protocol.messages import VERSION

HEALTHY, ATTENTION, BROKEN = 0, 1, 2
LEVELS = ("healthy", "attention", "broken")
"""The levels in words. Their places are the exit statuses."""

DAYS_LEFT = 30
"""A certificate with fewer days left needs attention."""
BACKUP_DAYS = 7
"""A backup that is older needs attention."""

_CALL_SECONDS = 5.0
_LOW_DISK, _NO_DISK = 1_000_000_000, 50_000_000
_CLOCK_SECONDS = 60.0
_DAY = 86_400.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: Its name, as in the JSON and in the metrics.
        level: 0 healthy, 1 attention, 2 broken.
        value: What was found as a plain value; None if unknown.
    """

    name: str
    level: int
    words: str
    value: Any = None


@dataclass(frozen=True)
class Status:
    """The health of one site or coordinator."""

    kind: str
    name: str
    checks: Sequence[Check]

    @property
    def level(self) -> int:
        """The worst level of all checks: the exit status."""
        return max((check.level for check in self.checks), default=HEALTHY)

    def to_json(self) -> str:
        """Return the status as JSON."""
        checks = {
            check.name: {"level": LEVELS[check.level], "words": check.words, "value": check.value}
            for check in self.checks
        }
        document = {"kind": self.kind, "name": self.name, "level": LEVELS[self.level], "checks": checks}
        return json.dumps(document, allow_nan=False)

    def __str__(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = (f"{check.name:<{width}}  {LEVELS[check.level]:<9}  {check.words}" for check in self.checks)
        return "\n".join([f"{self.kind} {self.name}: {LEVELS[self.level]}", *lines])


def check_serving(kit: Path) -> Iterator[Check]:
    """Yield whether a process serves a kit; for that of a site also whether it reaches the server, and its clock."""
    beat = Heartbeat.read(kit)
    if beat is None or not is_serving(kit):
        since = f"; last contact {_time(beat.contact)}" if beat and beat.contact else ""
        yield Check("serving", BROKEN, f"no process serves {kit}{since}", value=False)
        return
    yield Check("serving", HEALTHY, f"since {_time(beat.started)}", value=True)
    if (kit / "startup" / "fed_client.json").exists():
        recent = beat.is_recent()
        words = f"last contact {_time(beat.contact)}" if beat.contact else "no contact with the server yet"
        yield Check("connected", HEALTHY if recent else ATTENTION, words, value=recent)
        yield _clock(beat)


def check_polling(mailbox: Path) -> Iterator[Check]:
    """Yield whether a process polls the mailbox that a site joined in this folder, and whether it reaches the server.

    A scheduler may poll instead, by `dpcausal site poll --once`: then nothing runs between two polls.
    """
    beat = Heartbeat.read(mailbox)
    if beat is None or not (is_serving(mailbox) or beat.is_recent()):
        since = f"; last contact {_time(beat.contact)}" if beat and beat.contact else ""
        words = f"no process polls the mailbox: start dpcausal site poll{since}"
        yield Check("polling", BROKEN, words, value=False)
        return
    yield Check("polling", HEALTHY, f"since {_time(beat.started)}", value=True)
    recent = beat.is_recent()
    words = f"last contact {_time(beat.contact)}" if beat.contact else "no contact with the server yet"
    yield Check("mailbox", HEALTHY if recent else ATTENTION, words, value=recent)


def check_mailbox_server(mailbox: Path) -> Check:
    """Return whether a server with a certificate of this mailbox answers at its address, wherever it runs."""
    try:
        address = str(tomllib.loads((mailbox / "mailbox.toml").read_text(encoding="utf-8"))["address"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(mailbox / "authority.pem")
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        opener.open(f"{address}/health", timeout=_CALL_SECONDS).close()
    except (OSError, ValueError, KeyError, HTTPException) as error:
        words = f"no server of the mailbox answers ({type(error).__name__}): see its log, and start or renew it"
        return Check("serving_mailbox", BROKEN, words, value=False)
    return Check("serving_mailbox", HEALTHY, f"a server answers at {address}", value=True)


def certificates_of(kit: Path) -> tuple[Path, Path]:
    """Return the files of a kit's own certificate and of its authority's."""
    startup = kit / "startup"
    return min(startup.glob("[cs]*.crt"), default=startup / "client.crt"), startup / "rootCA.pem"


def validity_of(*files: Path) -> tuple[datetime, datetime]:
    """Return from when to when all of these certificates are valid."""
    found = [x509.load_pem_x509_certificate(file.read_bytes()) for file in files]
    return max(each.not_valid_before_utc for each in found), min(each.not_valid_after_utc for each in found)


def check_certificate(kit: Path, name: str = "certificate") -> Check:
    """Return how many days the certificate of a kit is valid for."""
    return check_certificates(name, *certificates_of(kit))


def check_certificates(name: str, *files: Path) -> Check:
    """Return for how many days all of these certificates are valid."""
    try:
        start, end = validity_of(*files)
    except (OSError, ValueError):
        return Check(name, BROKEN, f"no readable certificate in {files[-1].parent}")
    now = datetime.now(UTC)
    days = int((end - now).total_seconds() // _DAY)
    if now < start:
        return Check(name, BROKEN, f"valid only from {start.date()}: check the clock", days)
    if days < 0:
        return Check(name, BROKEN, f"expired on {end.date()}", days)
    return Check(name, ATTENTION if days < DAYS_LEFT else HEALTHY, f"{days} days left, until {end.date()}", days)


def check_disk(folder: Path) -> Check:
    """Return how much room is left on the disk of a folder."""
    free = shutil.disk_usage(folder).free
    level = BROKEN if free < _NO_DISK else ATTENTION if free < _LOW_DISK else HEALTHY
    return Check("disk", level, f"{free / 1e9:.1f} GB free", free)


def check_backup(folder: Path, contents: Contents) -> Check:
    """Return when the last backup was taken, and which of the lasting files of the folder it lacks."""
    try:
        last = json.loads((folder / LAST_BACKUP).read_text(encoding="ascii"))
        at, with_keys, holds = float(last["at"]), bool(last.get("with_keys")), set(last.get("holds", ()))
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return Check("backup", ATTENTION, "never")
    lacks = [name for name in contents.lasting(with_keys=with_keys) if name not in holds]
    words = _time(at) + (", without keys" if contents.secret and not with_keys else "")
    if lacks:
        more = f" and {len(lacks) - 1} more files" if len(lacks) > 1 else ""
        words += f"; it lacks {lacks[0]}{more}: make another one"
    old = time.time() - at > BACKUP_DAYS * _DAY
    return Check("backup", ATTENTION if old or lacks else HEALTHY, words, int(at))


def check_versions(formats: dict[str, int], server_version: str = "") -> Check:
    """Return the versions of this package, of the protocol and of files."""
    here = version("dpcausal")
    found: dict[str, Any] = {"dpcausal": here, "protocol": VERSION, **formats}
    words = [f"dpcausal {here}", f"protocol {VERSION}"]
    words += [f"{name.replace('_', ' ')} {number}" for name, number in formats.items()]
    if server_version:
        found["server"] = server_version
        words.append(f"server {server_version}")
    return Check("versions", HEALTHY, ", ".join(words), found)


def _clock(beat: Heartbeat) -> Check:
    if beat.clock_offset is None:
        return Check("clock", HEALTHY, "unknown: the server did not tell its time")
    level = ATTENTION if abs(beat.clock_offset) > _CLOCK_SECONDS else HEALTHY
    return Check("clock", level, f"{beat.clock_offset:+.1f} s to the server", round(beat.clock_offset, 3))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
