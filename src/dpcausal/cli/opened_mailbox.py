"""The mailbox of a workspace, as commands open it."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dpcausal.federation.transports.mailbox.client import Client
    from dpcausal.federation.transports.mailbox.settings import Mailbox


def opened_mailbox(folder: Path) -> "Mailbox":
    """Return the mailbox in a workspace."""
    from dpcausal.federation.transports.mailbox.settings import Mailbox  # noqa: PLC0415 (an extra)

    return Mailbox.read(folder / "mailbox")


def client_of(folder: Path) -> "Client":
    """Return a client that signs with the key of a requester of this workspace."""
    opened = opened_mailbox(folder)
    from dpcausal.federation.transports.mailbox.transport import requester_client  # noqa: PLC0415 (an extra)

    name = next((name for name in opened.requesters if (folder / f"{name}.key").is_file()), "")
    return requester_client(folder, name)


def admit_joined_sites(folder: Path) -> dict[str, str]:
    """Add the sites that accepted an invitation to the roster, and return their keys."""
    from dpcausal.federation.coordinator.workspace import Workspace as Opened  # noqa: PLC0415 (an extra)
    from dpcausal.federation.transports.mailbox.transport import accept_rotations, admit_joined  # noqa: PLC0415

    client, workspace = client_of(folder), Opened(folder)
    joined = admit_joined(client, folder / "mailbox" / "invitations", workspace)
    for site, words in accept_rotations(client, workspace).items():
        typer.echo(f"{site} {words}", err=True)
    return joined
