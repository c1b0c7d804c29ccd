"""Backups of a coordinator's workspace, taken while it is in use, and their restoration to any path."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from dpcausal.errors import StudyError, redact_errors
from dpcausal.federation.coordinator.requests import check_intact
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.archive import (
    Manifest,
    Restored,
    copy_database,
    copy_files,
    read_archive,
    staging,
    write_archive,
)
from dpcausal.federation.operation.contents import MAILBOX, Contents
from dpcausal.federation.operation.settings_secrets import copy_settings, missing_secrets, without_secrets

NETWORKS = ("nvflare",)
_MAILBOX_SETTINGS = f"{MAILBOX}/mailbox.toml"
_IN_FOLDER = "sqlite:///"
_NO_OPEN_INVITATIONS = "DELETE FROM mailbox_invitations WHERE used_by = ''"


def backup_workspace(folder: Path, out: Path, *, with_keys: bool = False) -> Manifest:
    """Write a checked backup of a workspace to a new file: key, roster, requests, network, mailbox and console.

    A mailbox loses its open invitations in the copy: one that was used later could otherwise be used again. Sessions
    of the console are not copied, so that nobody is logged in again who logged out.
    """
    workspace = Workspace(folder)
    workspace.roster  # noqa: B018 (raises unless it can be read)
    contents = Contents.of(folder, NETWORKS)
    with staging(out) as staged:
        left_out = list(_copy(workspace, staged, contents, with_keys=with_keys))
        if workspace.store.exists():
            copy_database(workspace.store, staged / workspace.store.name)
            check_intact(staged / workspace.store.name)
        about = {"kind": "federation", "name": folder.resolve().name, "with_keys": with_keys}
        lasting = contents.lasting(with_keys=with_keys)
        return write_archive(staged, out, folder, lasting, left_out=tuple(left_out), **about)


def restore_workspace(file: Path, folder: Path) -> Restored:
    """Restore a workspace from a backup to a new folder.

    What was revoked since the backup was taken is not revoked in it: `found` lists who may do what.
    """
    with read_archive(file, "federation", folder) as (place, manifest):
        workspace = Workspace(place)
        found = tuple(_found(workspace))
        if workspace.store.exists():
            check_intact(workspace.store)
    return Restored(manifest, found, tuple(missing_secrets(folder)))


def mailbox_database(folder: Path) -> Path | None:
    """Return the file of the database of a workspace's mailbox; None where it is no file in the workspace."""
    file = folder / _MAILBOX_SETTINGS
    with redact_errors(OSError, ValueError, KeyError, instead=lambda error: _unreadable(file, error)):
        address = str(tomllib.loads(file.read_text(encoding="utf-8"))["database"])
    place = (folder / MAILBOX / address.removeprefix(_IN_FOLDER)).resolve()
    inside = address.startswith(_IN_FOLDER) and place.is_relative_to((folder / MAILBOX).resolve())
    return place if inside else None


def _copy(workspace: Workspace, staged: Path, contents: Contents, *, with_keys: bool) -> Iterator[str]:
    """Copy the lasting files of a workspace and the database of its mailbox, and yield what is left out."""
    folder = workspace.folder
    copy_files(folder, staged, list(contents.lasting(with_keys=True) if with_keys else contents.public))
    if not with_keys:
        yield "private keys, the authority and the kits of the network, open invitations and passwords"
        yield from copy_settings(folder, staged, contents.settings)
    if _MAILBOX_SETTINGS not in contents.settings:
        return
    database = mailbox_database(folder)
    if database is None:
        text = (folder / _MAILBOX_SETTINGS).read_text(encoding="utf-8")
        address = tomllib.loads(text)["database"]
        yield f"the database of the mailbox, which is not in the workspace: {without_secrets(address)}"
    elif database.exists():
        name = database.relative_to(folder.resolve())
        copy_database(database, staged / name, _NO_OPEN_INVITATIONS)


def _found(workspace: Workspace) -> Iterator[str]:
    """Yield the sites of a roster, and those who may send requests through the mailbox, in words."""
    for site, member in workspace.roster.sites.items():
        yield f"site {site}: {'revoked' if member.revoked else 'not revoked'}, key {member.key}"
    file = workspace.folder / _MAILBOX_SETTINGS
    if file.exists():
        with redact_errors(ValueError, instead=lambda error: _unreadable(file, error)):
            requesters = tomllib.loads(file.read_text(encoding="utf-8")).get("requesters", {})
        for name, key in requesters.items():
            yield f"requester {name} of the mailbox: key {key}"


def _unreadable(file: Path, error: Exception) -> StudyError:
    return StudyError(
        problem=f"The settings of the mailbox cannot be read: {file} ({type(error).__name__})",
        hint="correct the file, or restore it from a backup.",
    )
