"""Backups as files: a tar archive with a manifest of digests, written whole or not at all, and checked when read."""

import hashlib
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from dpcausal.errors import StudyError, redact_errors
from dpcausal.utils.durable_files import replace_file

LAST_BACKUP = "last_backup.json"
"""What a folder notes about its last backup."""
MANIFEST = "manifest.json"
FORMAT = 1
"""The version of the format of a backup."""

_RUNNING = ("jobs", "snapshots", "transfer")
_PASSING = (".lock", ".log", ".pid", ".sock", ".index-journal", ".partial")
_LOGS = ("log.json", "log.txt", "error_log.txt", "log_fl.txt", "heartbeat.json", "pid.fl", "daemon_pid.fl")


@dataclass(frozen=True)
class Manifest:
    """What a backup says about itself.

    Attributes:
        kind: `site` or `federation`.
        name: The name of the site, or of the coordinator's folder.
        at: When it was taken, in seconds since 1970.
        files: The SHA-256 of each file.
    """

    kind: str
    name: str
    at: float
    dpcausal: str
    with_keys: bool
    files: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    format: int = FORMAT


@dataclass(frozen=True)
class Restored:
    """A site or a workspace that was restored.

    Attributes:
        found: Who may do what in it, and of a site the last decisions, in words.
        missing: The settings whose secrets the backup does not hold.
        stopped: Why a site does not answer yet; empty if it does.
        steps: What brings it back into service, in order.
    """

    manifest: Manifest
    found: tuple[str, ...]
    missing: tuple[str, ...] = ()
    stopped: str = ""
    steps: tuple[str, ...] = ()


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """Give an empty folder beside a file, to collect what goes into it.

    Raises:
        StudyError: If the file exists, or its folder cannot be written.
    """
    if out.exists():
        raise StudyError(problem=f"{out} exists already", hint="choose another name.")
    with (
        redact_errors(OSError, sqlite3.Error, instead=lambda error: _unusable(out, error)),
        tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=".backup") as folder,
    ):
        yield Path(folder)


def copy_files(source: Path, target: Path, names: list[str]) -> None:
    """Copy files, where they exist, by their names relative to a folder."""
    for name in names:
        if (source / name).is_file() and not (source / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def network_files(folder: Path, root: str) -> list[str]:
    """Return the files of a network that a backup holds: keys, certificates and settings, and no work files."""
    files = (file.relative_to(folder) for file in sorted((folder / root).rglob("*")) if file.is_file())
    return [file.as_posix() for file in files if not _is_work(file)]


def copy_database(source: Path, target: Path, *commands: str) -> None:
    """Copy an SQLite file as it is between two transactions, while others use it; the commands change the copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=60.0)
    writing = sqlite3.connect(target)
    try:
        reading.backup(writing)
        for command in commands:
            writing.execute(command)
        writing.commit()
    finally:
        reading.close()
        writing.close()


def write_archive(
    staged: Path,
    out: Path,
    folder: Path,
    lasting: Sequence[str],
    **about: Any,  # noqa: ANN401 (of a manifest)
) -> Manifest:
    """Write what was collected to a new file that only its owner can read, and note in the folder what it holds.

    Args:
        lasting: The names of its lasting files: the note lists those of them that the backup holds.
    """
    names = sorted(file.relative_to(staged).as_posix() for file in staged.rglob("*") if file.is_file())
    digests = {name: _digest(staged / name) for name in names}
    manifest = Manifest(at=time.time(), dpcausal=version("dpcausal"), files=digests, **about)
    (staged / MANIFEST).write_text(json.dumps(vars(manifest), sort_keys=True, indent=1), encoding="ascii")
    partial = staged / ".archive"
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in (MANIFEST, *names):
                archive.add(staged / name, name, recursive=False, filter=_plain)
        file.flush()
        os.fsync(file.fileno())
    os.link(partial, out)
    holds = [name for name in lasting if name in digests]
    done = {
        "at": manifest.at,
        "file": out.name,
        "digest": _digest(out),
        "with_keys": manifest.with_keys,
        "holds": holds,
    }
    replace_file(folder / LAST_BACKUP, json.dumps(done))
    return manifest


@contextmanager
def read_archive(file: Path, kind: str, target: Path) -> Iterator[tuple[Path, Manifest]]:
    """Give a folder with the checked files of a backup; it becomes the target when the block ends without an error."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StudyError(
            problem=f"{target} holds files, and must be a new or an empty folder",
            hint="choose another path.",
        )
    with redact_errors(OSError, instead=lambda error: _unusable(target, error)):
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=".restore") as temporary:
            folder = Path(temporary) / "folder"
            folder.mkdir(mode=0o700)
            yield folder, _extract(file, kind, folder)
            folder.replace(target)


def _extract(file: Path, kind: str, folder: Path) -> Manifest:
    try:
        with tarfile.open(file, mode="r:gz") as archive:
            members = archive.getmembers()
            if not all(member.isfile() and _is_inside(member.name) for member in members):
                raise _not_a_backup(file, kind)
            archive.extractall(folder, filter="data")
        manifest = Manifest(**json.loads((folder / MANIFEST).read_text(encoding="ascii")))
    except (OSError, EOFError, tarfile.TarError, ValueError, TypeError):
        raise _not_a_backup(file, kind) from None
    if manifest.format != FORMAT or manifest.kind != kind:
        raise _not_a_backup(file, kind)
    (folder / MANIFEST).unlink()
    found = {each.relative_to(folder).as_posix(): _digest(each) for each in folder.rglob("*") if each.is_file()}
    if found != manifest.files:
        raise StudyError(
            problem=f"{file} does not hold what the manifest of the backup lists",
            hint="this file was changed or damaged: use another backup.",
        )
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)
    return manifest


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _is_work(file: Path) -> bool:
    in_job = any(len(part) == 36 and part.count("-") == 4 for part in file.parts)
    return in_job or any(part in _RUNNING for part in file.parts) or file.suffix in _PASSING or file.name in _LOGS


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _not_a_backup(file: Path, kind: str) -> StudyError:
    return StudyError(
        problem=f"{file} is not a backup that dpcausal {kind} backup wrote, in format {FORMAT}",
        hint="use the file as it was written.",
    )


def _unusable(path: Path, error: Exception) -> StudyError:
    return StudyError(
        problem=f"A file cannot be read or written: {path} ({getattr(error, 'strerror', None) or error})",
        hint="check the disk and the owner of the folders; nothing was changed.",
    )
