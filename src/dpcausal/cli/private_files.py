"""Files that only their owner can read: commands that create them, and the passphrase of a key file."""

import os
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.signatures import PASSPHRASE_FILE, Key
from dpcausal.federation.site.policy import KEY, Policy


class PrivateFiles(TyperGroup):
    """Commands that create files and folders for the owner only."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Run a command."""
        before = os.umask(0o077)
        try:
            return super().invoke(ctx)
        finally:
            os.umask(before)


def unlocked(owner: str, file: Path) -> Key:
    """Return a key; ask for its passphrase at a terminal if it needs one and the environment names no file with it.

    A passphrase that was typed stays in the memory of this process, where the processes that it starts can read it, and
    is never on disk.
    """
    try:
        return Key.read(owner, file)
    except TransportError:
        if os.environ.get(PASSPHRASE_FILE) or not file.is_file() or not sys.stdin.isatty():
            raise
        memory = os.memfd_create("passphrase", 0)  # inherited, also by a process that replaces this one
        os.write(memory, typer.prompt(f"Passphrase of {file}", hide_input=True, err=True).encode())
        os.environ[PASSPHRASE_FILE] = f"/proc/{os.getpid()}/fd/{memory}"
        return Key.read(owner, file)


def site_key(folder: Path) -> Key:
    """Return the key of a site; ask for its passphrase as `unlocked` does."""
    return unlocked(Policy.read(folder).site, folder / KEY)
