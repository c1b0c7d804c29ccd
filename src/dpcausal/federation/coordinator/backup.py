"""Backups of a coordinator's workspace, taken while it is in use, and their restoration to any path."""

from pathlib import Path

from dpcausal.federation.coordinator.requests import check_intact
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.archive import (
    Manifest,
    copy_database,
    copy_files,
    network_files,
    read_archive,
    staging,
    write_archive,
)
from dpcausal.federation.operation.settings_secrets import copy_settings

_KEYS_LEFT_OUT = "private keys, the authority and the kits of the network"


def backup_workspace(folder: Path, out: Path, *, with_keys: bool = False) -> Manifest:
    """Write a checked backup of a workspace to a new file.

    Raises:
        StudyError: If there is no roster in the folder, or the file cannot be written.
        LedgerError: If the store of requests is damaged.
    """
    workspace = Workspace(folder)
    workspace.roster  # noqa: B018 (raises unless it can be read)
    with staging(out) as staged:
        settings = [file.name for file in folder.glob("*.toml")]
        names, left_out = list[str](), list[str]()
        if with_keys:
            names += settings
            names += [file.name for file in folder.glob("*.key")]
            names += network_files(folder, workspace.network.name)
        else:
            left_out += [_KEYS_LEFT_OUT, *copy_settings(folder, staged, settings)]
        copy_files(folder, staged, names)
        if workspace.store.exists():
            copy_database(workspace.store, staged / workspace.store.name)
            check_intact(staged / workspace.store.name)
        about = {"kind": "federation", "name": folder.resolve().name, "with_keys": with_keys}
        return write_archive(staged, out, folder, left_out=tuple(left_out), **about)


def restore_workspace(file: Path, folder: Path) -> Manifest:
    """Restore a workspace from a backup to a new folder.

    Raises:
        StudyError: If the file is not a backup of a workspace, or was changed, or the folder holds files.
        LedgerError: If the store of requests in it is damaged.
    """
    with read_archive(file, "federation", folder) as (place, manifest):
        workspace = Workspace(place)
        workspace.roster  # noqa: B018 (raises unless it can be read)
        if workspace.store.exists():
            check_intact(workspace.store)
    return manifest
