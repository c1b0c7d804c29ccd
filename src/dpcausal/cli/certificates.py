"""Commands for the life of certificates and keys: `dpcausal federation renew`, `dpcausal site renew` and others."""

from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from dpcausal.cli.federation import Folder as WorkspaceFolder
from dpcausal.cli.federation import federation
from dpcausal.cli.private_files import site_key, unlocked
from dpcausal.cli.requirements import check_folder_exists
from dpcausal.cli.site import Folder as SiteFolder
from dpcausal.cli.site import Network, Sign, account, site
from dpcausal.errors import StudyError
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.heartbeat import is_serving
from dpcausal.federation.protocol.signatures import PASSPHRASE_FILE, Key, check_passphrase
from dpcausal.federation.protocol.transport import read_bounded
from dpcausal.federation.site.policy import KEY, Policy
from dpcausal.federation.transports.mailbox.poller import announce_rotation

Days = Annotated[int, typer.Option(min=1, help="The validity of the certificates, in days.")]

KeyFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="A file with the new passphrase; without it, you are asked."),
]


@federation.command("renew")
def renew_network(folder: WorkspaceFolder, days: Days = 365) -> None:
    """Give the server and the requesters new certificates. The fingerprint stays, and sites need nothing new."""
    from dpcausal.federation.transports.nvflare.provision import renew  # noqa: PLC0415 (slow to load)

    network = Workspace(folder).network
    check_folder_exists(
        network / "authority", "create the network with: dpcausal federation init FOLDER NAME --host HOST."
    )
    for kit in renew(network, days):
        typer.echo(f"{kit.relative_to(network)}: {_validity(kit)}")
    typer.echo(f"Restart the server with: dpcausal federation serve {quote(str(folder))}")


@federation.command("add-requester")
def add_requester(
    folder: WorkspaceFolder,
    requester: Annotated[str, typer.Argument(help="The requester that studies name, for instance ben.")],
    days: Days = 365,
) -> None:
    """Create a key for another requester and, if there is a network, a kit for it."""
    workspace = Workspace(folder)
    public = workspace.add_requester(requester).public
    typer.echo(f"Public key of {requester}, for [requesters] in each site's policy:\n{public}")
    if workspace.network.is_dir():
        from dpcausal.federation.transports.nvflare.provision import add_requester as add  # noqa: PLC0415 (slow to load)

        kit = add(workspace.network, requester, days)
        typer.echo(f"{kit.relative_to(workspace.network)}: {_validity(kit)}")


@site.command("renew")
def renew_site(folder: SiteFolder, network: Network = "") -> None:
    """Request a new certificate for the network. The old one works until install-kit installs the new one."""
    from dpcausal.federation.transports.nvflare.networks import network_of  # noqa: PLC0415 (slow to load)
    from dpcausal.federation.transports.nvflare.provision import request_renewal  # noqa: PLC0415

    place = network_of(folder, network)
    check_folder_exists(place / "kit", "install a kit with: dpcausal site install-kit.")
    typer.echo(f"Send this file to the coordinator: {request_renewal(place)}")
    typer.echo("Install what comes back with: dpcausal site install-kit")


@site.command("rotate-key")
def rotate_site_key(
    folder: SiteFolder, by: Annotated[str, typer.Option(help="Your name, for the audit log.")] = "", sign: Sign = None
) -> None:
    """Replace the site's key by a new one, which the old one vouches for. Stop poll first, and start it again after."""
    from dpcausal.federation.site.rotation import rotate_key  # noqa: PLC0415 (slow to load)

    site_key(folder)
    mailbox = folder / "mailbox"
    if is_serving(mailbox):
        raise StudyError(
            problem=f"A process polls the mailbox for {folder}, with the key that is to be replaced",
            hint="stop dpcausal site poll first, and start it again afterwards.",
        )

    def announce(record: str, *keys: "Key") -> None:
        if mailbox.is_dir():
            announce_rotation(mailbox, record, *keys)
            typer.echo("The mailbox knows the new key; the coordinator learns it from there.")

    record = rotate_key(folder, by or account(), announce, Key.read("", sign) if sign else None)
    typer.echo(f"Replaced the key of the site. Send this file to coordinators without that mailbox: {record}")
    typer.echo("They run: dpcausal federation accept-key FOLDER FILE")


@federation.command("accept-key")
def accept_site_key(
    folder: WorkspaceFolder,
    record: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file that a site's rotation wrote.")],
) -> None:
    """Record the new key of a site in the roster, if the key in the roster vouches for it."""
    rotation = Workspace(folder).accept_key(read_bounded(record))
    if rotation is None:
        typer.echo("The roster has this key already, or had it before.")
        return
    typer.echo(f"{rotation.site} has the key {rotation.new}, signed for at {rotation.at} with the one before.")


@site.command("encrypt-key")
def encrypt_site_key(folder: SiteFolder, key_file: KeyFile = None) -> None:
    """Encrypt the site's key with a passphrase, or change the passphrase."""
    _encrypt(Policy.read(folder).site, folder / KEY, key_file)


@federation.command("encrypt-key")
def encrypt_requester_key(
    folder: WorkspaceFolder,
    requester: Annotated[str, typer.Argument(help="The requester.")],
    key_file: KeyFile = None,
) -> None:
    """Encrypt a requester's key with a passphrase, or change the passphrase."""
    _encrypt(requester, Workspace(folder).key_file(requester), key_file)


def _encrypt(owner: str, file: Path, key_file: Path | None) -> None:
    """Encrypt a key file with the passphrase in a file, or with one that is typed."""
    key = unlocked(owner, file)
    if key_file:
        secret = key_file.read_text("utf-8").partition("\n")[0]
    else:
        secret = typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True)
    check_passphrase(secret)
    partial = file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    key.write(partial, secret.encode())
    partial.replace(file)
    typer.echo(f"Encrypted {file}. From now on, set {PASSPHRASE_FILE} to a file with the passphrase.")


def _validity(kit: Path) -> str:
    from dpcausal.federation.transports.nvflare.certificates import Validity  # noqa: PLC0415 (slow to load)

    validity = Validity.of(kit)
    return f"valid until {validity.end:%Y-%m-%d}, {validity.days_left(datetime.now(UTC))} days"
