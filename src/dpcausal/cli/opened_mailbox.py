"""The mailbox of a workspace, as commands open it."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.transport import accept_rotations, admit_joined, requester_client

if TYPE_CHECKING:
    from dpcausal.federation.transports.mailbox.client import Client


def opened_mailbox(folder: Path) -> "Mailbox":
    """Return the mailbox in a workspace."""
    return Mailbox.read(folder / "mailbox")


def client_of(folder: Path) -> "Client":
    """Return a client that signs with the key of a requester of this workspace."""
    opened = opened_mailbox(folder)

    name = next((name for name in opened.requesters if (folder / f"{name}.key").is_file()), "")
    return requester_client(folder, name)


def admit_joined_sites(folder: Path) -> dict[str, str]:
    """Add the sites that accepted an invitation to the roster, and return their keys."""
    client, workspace = client_of(folder), Workspace(folder)
    joined = admit_joined(client, folder / "mailbox" / "invitations", workspace)
    for site, words in accept_rotations(client, workspace).items():
        typer.echo(f"{site} {words}", err=True)
    return joined
