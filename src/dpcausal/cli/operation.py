"""Commands to operate a site and a coordinator: status, metrics, backup, restore, and settings of kits."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.federation import Folder as WorkspaceFolder
from dpcausal.cli.federation import federation
from dpcausal.cli.options import AsJson, count_of
from dpcausal.cli.requirements import ask_to_confirm, check_folder_exists
from dpcausal.cli.site import Folder as SiteFolder
from dpcausal.cli.site import Sign, account, changes_of, check_out, site
from dpcausal.federation.coordinator.backup import backup_workspace, restore_workspace
from dpcausal.federation.coordinator.notices import coordinator_notices
from dpcausal.federation.coordinator.status import federation_status
from dpcausal.federation.operation.channels import NotifySettings
from dpcausal.federation.operation.notices import TEST, tell
from dpcausal.federation.site.people import People
from dpcausal.federation.site.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dpcausal.federation.operation.archive import Manifest, Restored
    from dpcausal.federation.operation.health import Status
    from dpcausal.federation.operation.notices import Notice, Observed

Folder = Annotated[Path, typer.Argument(file_okay=False, help="The folder of the site, or of the coordinator.")]
Listen = Annotated[str, typer.Option(help="Serve the metrics at this address, for instance 127.0.0.1:9464.")]
Test = Annotated[bool, typer.Option("--test", help="Send a test message to everybody, and look for nothing new.")]
Out = Annotated[Path, typer.Option(dir_okay=False, help="The new file to write.")]
WithKeys = Annotated[bool, typer.Option("--with-keys", help="Include private keys and kits: store the file as a key.")]
Backup = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The backup.")]
NewFolder = Annotated[Path, typer.Argument(help="The new folder.")]


def _add_looks(group: typer.Typer, status: "Callable[[Path], Status]", drill: "Callable[[Path], Status]") -> None:
    """Add the commands that look at a site or at a coordinator, and change nothing."""

    @group.command("status")
    def print_status(folder: Folder, as_json: AsJson = False) -> None:
        """Look at what runs here, without any table. Exit status 0 healthy, 1 needs attention, 2 broken."""
        _print(status(folder), as_json=as_json)

    @group.command("metrics")
    def print_metrics(folder: Folder, listen: Listen = "") -> None:
        """Print the status as Prometheus metrics, or serve them."""
        from dpcausal.cli.metrics import exposition, serve  # noqa: PLC0415 (an extra)

        if listen:
            serve(lambda: status(folder), listen)
        typer.echo(exposition(lambda: status(folder)), nl=False)

    @group.command("drill")
    def drill_backup(file: Backup, as_json: AsJson = False) -> None:
        """Restore a backup into an empty place, and prove that it serves there. Exit status as of status.

        A coordinator's mailbox is started on this machine, and answers a signed call.
        """
        _print(drill(file), as_json=as_json)


def _site_status(folder: Path) -> "Status":
    from dpcausal.federation.site.status import site_status  # noqa: PLC0415 (slow to load)

    return site_status(folder)


def _drilled(file: Path, kind: str) -> "Status":
    from dpcausal.federation.transports.drill import drill_site, drill_workspace  # noqa: PLC0415 (slow to load)

    return drill_site(file) if kind == "site" else drill_workspace(file)


_add_looks(site, _site_status, lambda file: _drilled(file, "site"))
_add_looks(federation, federation_status, lambda file: _drilled(file, "federation"))


@site.command("notify")
def notify_site(folder: SiteFolder, test: Test = False) -> None:
    """Tell people what is new, by e-mail and webhooks, each event once. Exit status 1 if something was not sent."""
    from dpcausal.federation.site.notices import site_notices  # noqa: PLC0415 (slow to load)

    _notify(folder, f"site {Policy.read(folder).site}", lambda observed: site_notices(folder, observed), test=test)


@federation.command("notify")
def notify_federation(folder: WorkspaceFolder, test: Test = False) -> None:
    """Tell people what is new, by e-mail and webhooks, each event once. Exit status 1 if something was not sent."""
    name = f"federation {folder.resolve().name}"
    _notify(folder, name, lambda observed: coordinator_notices(folder, observed), test=test)


@site.command("backup")
def backup(folder: SiteFolder, out: Out, with_keys: WithKeys = False) -> None:
    """Write a checked backup of the site, also while it answers. The table is not in it."""
    from dpcausal.federation.site.backup import backup_site  # noqa: PLC0415 (slow to load)

    check_out(out, folder, overwrite=False)
    _report(backup_site(folder, out, with_keys=with_keys), f"Wrote {out}")


@site.command("restore")
def restore(file: Backup, folder: NewFolder) -> None:
    """Restore a site to a new folder. Exit status 1 if people must renew something before it answers."""
    from dpcausal.federation.site.backup import restore_site  # noqa: PLC0415 (slow to load)

    restored = restore_site(file, folder)
    _report_restored(restored, folder)
    if restored.stopped:
        steps = "\n".join(f"{place}. {step}." for place, step in enumerate(restored.steps, 1))
        typer.echo(f"The site does not answer yet: {restored.stopped}.\n\nTo bring it back:\n{steps}", err=True)
        raise typer.Exit(1)
    typer.echo("Nothing newer was lost: its ledger and the witness hold all that was found. The site may answer.")


@site.command("confirm")
def confirm(
    folder: SiteFolder,
    why: Annotated[str, typer.Option(help="What changed, and why, for the audit log.")],
    by: Annotated[str, typer.Option(help="Your name, for the audit log; otherwise that of your account.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Confirm without being asked, in a script.")] = False,
    sign: Sign = None,
) -> None:
    """Confirm people, requesters and settings, after an edit of the policy or a restore. The site answers only then."""
    from dpcausal.federation.site.confirmation import described  # noqa: PLC0415 (slow to load)

    changes = changes_of(folder, sign)
    found = changes.unconfirmed()
    if found is None:
        typer.echo("Everything is as it was recorded: there is nothing to confirm.")
        return
    typer.echo("\n".join((*described(folder), "", *(f"Not confirmed: {words}." for words in found.words))))
    if found.older:
        typer.echo("Decisions or people may be lost: no approval that was made before counts any more.")
    ask_to_confirm("Confirm all of this?", "Nothing was confirmed", yes=yes)
    changes.confirm(by or account(), why)
    typer.echo("Confirmed." + (" Let people approve studies again." if found.older else ""))


@federation.command("backup")
def backup_federation(folder: WorkspaceFolder, out: Out, with_keys: WithKeys = False) -> None:
    """Write a checked backup of the workspace, also while it is in use."""
    _report(backup_workspace(folder, out, with_keys=with_keys), f"Wrote {out}")


@federation.command("restore")
def restore_federation(file: Backup, folder: NewFolder) -> None:
    """Restore a workspace to a new folder. Who was revoked or removed since the backup must be so again."""
    restored = restore_workspace(file, folder)
    if (folder / "nvflare" / "server").is_dir():
        update_server_kit(folder)
    people = tuple(f"person {person}" for person in People.read(folder).people)
    _report_restored(replace(restored, found=(*restored.found, *people)), folder)
    typer.echo("Revoke again who of these was revoked or removed since the backup was made. Old passwords count again.")


@site.command("update-kit")
def update_site_kit(folder: SiteFolder) -> None:
    """Write the settings of this version of dpcausal into the site's kits: after an upgrade, or after a move."""
    from dpcausal.federation.site.status import kits_of  # noqa: PLC0415
    from dpcausal.federation.transports.nvflare.hardening import harden  # noqa: PLC0415 (slow to load)

    kits = kits_of(folder)
    for kit in kits:
        harden(kit)
        typer.echo(f"Updated {kit}.")
    if not kits:
        check_folder_exists(folder / "nvflare" / "kit", "install a kit with: dpcausal site request-kit.")


@federation.command("update-kit")
def update_server_kit(folder: WorkspaceFolder) -> None:
    """Write the settings of this version of dpcausal into the server's kit: after an upgrade, or after a move."""
    from dpcausal.federation.transports.nvflare.hardening import harden  # noqa: PLC0415 (slow to load)

    kit = folder / "nvflare" / "server"
    check_folder_exists(kit, "create the network with: dpcausal federation init FOLDER NAME --host HOST.")
    harden(kit)
    typer.echo(f"Updated {kit}.")


def _print(found: "Status", *, as_json: bool) -> None:
    typer.echo(found.to_json() if as_json else str(found))
    raise typer.Exit(found.level)


def _notify(folder: Path, name: str, observe: "Callable[[Observed], Iterable[Notice]]", *, test: bool) -> None:
    settings = NotifySettings.read(folder)
    tested = (lambda _: [TEST]) if test else observe
    sent, failed = tell(folder, name, settings.address, settings.channels, tested)
    typer.echo(f"Sent {count_of(sent, 'message')}.")
    for words in failed:
        typer.echo(f"Not sent, and tried again by the next call: {words}", err=True)
    raise typer.Exit(1 if failed else 0)


def _report_restored(restored: "Restored", folder: Path) -> None:
    _report(restored.manifest, f"Restored {folder}")
    typer.echo("\n".join(("Found in it:", *(f"  {words}" for words in restored.found))))
    for words in restored.missing:
        typer.echo(f"Missing: the secret of {words}.")


def _report(manifest: "Manifest", done: str) -> None:
    keys = "with private keys" if manifest.with_keys else "without private keys"
    typer.echo(f"{done}: {manifest.kind} {manifest.name}, {len(manifest.files)} files, {keys}.")
    for words in manifest.left_out:
        typer.echo(f"Not in it: {words}.")
