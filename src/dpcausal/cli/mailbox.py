"""`dpcausal federation mailbox`, `federation invite`, `site join-mailbox` and `site poll`: the mailbox transport."""

import json
import os
import signal
import threading
from datetime import UTC, datetime
from shlex import quote
from typing import Annotated

import typer

from dpcausal.cli.federation import Folder as WorkspaceFolder
from dpcausal.cli.federation import federation
from dpcausal.cli.opened_mailbox import admit_joined_sites, client_of, opened_mailbox
from dpcausal.cli.options import AsJson, print_table
from dpcausal.cli.private_files import site_key
from dpcausal.cli.site import Folder as SiteFolder
from dpcausal.cli.site import site, warn_unconfirmed
from dpcausal.errors import StudyError
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.heartbeat import hold_lock, is_serving
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.federation.transports.mailbox.authority import SERVER, fingerprint_of, last_day
from dpcausal.federation.transports.mailbox.calls import CallFailedError
from dpcausal.federation.transports.mailbox.poller import Outbox, Poller, client_in, join_mailbox
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.transport import invite as send_invitation

mailbox = typer.Typer(
    name="mailbox",
    no_args_is_help=True,
    help="Run a mailbox: a server that sites poll over HTTPS.",
)

SiteName = Annotated[str, typer.Argument(help="The site's name, as in its policy.")]


@mailbox.command("init")
def create(
    folder: WorkspaceFolder,
    host: Annotated[str, typer.Option(help="The host name or address of the server, as sites reach it.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the server.")] = 8443,
    database: Annotated[
        str, typer.Option(help="The server's database: postgresql+psycopg://…, or a file of SQLite for a few sites.")
    ] = "sqlite:///mailbox.db",
    days: Annotated[int, typer.Option(min=1, help="The validity of the server's certificate.")] = 365,
) -> None:
    """Create a mailbox in a workspace: its authority, the server's certificate, and the settings."""
    names = sorted(file.stem for file in folder.glob("*.key"))
    if not names:
        raise StudyError(
            problem=f"There is no workspace with the key of a requester in {folder}",
            hint="create one with: dpcausal federation init FOLDER NAME.",
        )
    keys = {name: Workspace(folder).key(name).public for name in names}
    shown = f"[{host}]" if ":" in host else host
    made = Mailbox.create(folder / "mailbox", f"https://{shown}:{port}", database, keys, days)
    typer.echo(f"Created {folder / 'mailbox'}, for requests of {', '.join(names)}.")
    typer.echo(f"Fingerprint of its authority, which each invitation holds:\n{fingerprint_of(made.authority)}")
    typer.echo(f"Start the server with: dpcausal federation mailbox serve {quote(str(folder))}")


@mailbox.command()
def serve(
    folder: WorkspaceFolder,
    listen: Annotated[str, typer.Option(help="The interface and port to listen on; by default all, on its port.")] = "",
    workers: Annotated[int, typer.Option(min=1, help="The number of processes.")] = 2,
    threads: Annotated[
        int, typer.Option(min=1, help="The threads of a process, each with a connection to the database.")
    ] = 8,
) -> None:
    """Run the mailbox server, until stopped. It may run several times, on several machines, with one database."""
    opened = opened_mailbox(folder)
    from dpcausal.federation.transports.mailbox.serve import serve as run_server  # noqa: PLC0415 (an extra)

    run_server(opened, listen or f"0.0.0.0:{opened.port}", workers, threads)


@mailbox.command()
def renew(
    folder: WorkspaceFolder,
    days: Annotated[int, typer.Option(min=1, help="The validity of the new certificate.")] = 365,
) -> None:
    """Replace the server's key and certificate. Neither the server nor a site has to be restarted."""
    ends = opened_mailbox(folder).renew(days)
    typer.echo(f"The new certificate is valid until {ends:%Y-%m-%d}. A server with this folder uses it from now on.")


@mailbox.command()
def admit(folder: WorkspaceFolder) -> None:
    """Add sites that accepted an invitation, and new keys, to the roster; federation run --mailbox does so too."""
    for name, key in admit_joined_sites(folder).items():
        typer.echo(f"{name} joined the mailbox, and is in the roster with the key {key}.")


@mailbox.command()
def revoke(folder: WorkspaceFolder, name: SiteName) -> None:
    """Refuse a site at the server from now on; set revoked = true in the roster as well."""
    client_of(folder).call("POST", "/revocations", {"site": name})
    typer.echo(f"The server refuses {name} from now on. Set revoked = true in {folder / 'roster.toml'} as well.")


@mailbox.command()
def status(folder: WorkspaceFolder, as_json: AsJson = False) -> None:
    """Print when each site polled last, and how many requests wait for it."""
    sites = client_of(folder).call("GET", "/sites")["sites"]
    days = (last_day(folder / "mailbox" / SERVER) - datetime.now(UTC)).days
    now = datetime.now(UTC).timestamp()
    found = [
        {
            "site": each["site"],
            "seconds_since_last_call": round(now - each["seen"]) if each["seen"] else None,
            "waiting": each["waiting"],
            "revoked": each["revoked"],
        }
        for each in sites
    ]
    if as_json:
        typer.echo(json.dumps({"server": "reached", "certificate_days": days, "sites": found}, indent=1))
        return
    typer.echo(f"The server was reached; its certificate is valid for {days} days.")
    lines = [
        (each["site"], _ago(each["seconds_since_last_call"]), each["waiting"], "yes" if each["revoked"] else "")
        for each in found
    ]
    print_table(("site", "last call", "requests waiting", "revoked"), lines)


def _ago(seconds: int | None) -> str:
    return "never" if seconds is None else f"{seconds} s ago"


@federation.command()
def invite(
    folder: WorkspaceFolder,
    name: SiteName,
    hours: Annotated[int, typer.Option(min=1, help="How long the invitation is valid.")] = 72,
) -> None:
    """Invite a site to the mailbox: print a token, which it uses once."""
    authority = opened_mailbox(folder).authority
    invitation = send_invitation(client_of(folder), folder / "mailbox" / "invitations", name, authority, hours * 3600)
    typer.echo(
        f"Send this token to {name} over a channel that you trust; whoever has it can join as {name}, once:", err=True
    )
    typer.echo(invitation.token)


@site.command("join-mailbox")
def join_site_to_mailbox(
    folder: SiteFolder,
    token: Annotated[str, typer.Argument(help="The token from the coordinator.")],
) -> None:
    """Join a mailbox with the coordinator's token: send it the site's public key."""
    key = site_key(folder)
    address = join_mailbox(folder / "mailbox", token, key)
    typer.echo(
        f"{key.owner} joined the mailbox at {address}. To answer requests, run: dpcausal site poll {quote(str(folder))}"
    )


_BETWEEN_RUNS = 600.0
"""Seconds between two polls of a scheduler: the status asks for attention after three times as many."""


@site.command()
def poll(
    folder: SiteFolder,
    every: Annotated[float, typer.Option(min=1, help="Seconds between two polls, on average.")] = 30.0,
    once: Annotated[bool, typer.Option("--once", help="Poll once, and exit with status 1 if that fails.")] = False,
) -> None:
    """Poll the mailbox and answer requests for approved studies, until stopped."""
    place, pause, key = folder / "mailbox", _BETWEEN_RUNS if once else every, site_key(folder)
    client, outbox = client_in(place, key), Outbox(place / "outbox")
    warn_unconfirmed(folder)
    poller = Poller(client, outbox, lambda request: run_in_subprocess(folder, request), _print_line, pause, place)
    if once:
        held = hold_lock(place)  # so that a long answer does not look like a poller that stopped
        try:
            poller.poll()
        except CallFailedError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(1) from None
        finally:
            os.close(held)
        return
    if is_serving(place):
        raise StudyError(
            problem=f"A process polls the mailbox for {folder} already",
            hint="stop that one first, or leave it: dpcausal site status tells whether it reaches the server.",
        )
    hold_lock(place)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    poller.run(stop)


def _print_line(line: str) -> None:
    typer.echo(f"{datetime.now(UTC):%Y-%m-%d} {line}")  # the day only: a time would tell how long an answer took
