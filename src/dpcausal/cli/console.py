"""`dpcausal site console` and `dpcausal federation console`: pages for people, and the accounts that open them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dpcausal.cli.site import Sign, account, changes_of, open_site
from dpcausal.errors import StudyError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.settings import KEY
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.people import People, Person, add_person

if TYPE_CHECKING:
    from dpcausal.federation.site.people import Role

SiteFolder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The site's folder.")]
WorkspaceFolder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The coordinator's workspace.")]
Listen = Annotated[str, typer.Option(help="The address and port to listen on.")]
BehindProxy = Annotated[
    bool, typer.Option("--behind-proxy", help="A proxy with TLS is before the console; console.toml has its address.")
]
AccountName = Annotated[str, typer.Argument(metavar="LOGIN", help="The person's login, as in the list of people.")]


def add_site_console(site: typer.Typer) -> None:
    """Add the commands to those of a site."""
    site.command("console")(site_console)
    site.command("create-console-key")(create_console_key)
    site.command("set-password")(set_password)


def add_coordinator_console(federation: typer.Typer) -> None:
    """Add the commands to those of a coordinator."""
    federation.command("console")(coordinator_console)
    federation.command("add-person")(add_coordinator_person)
    federation.command("set-password")(set_coordinator_password)


def site_console(folder: SiteFolder, listen: Listen = "127.0.0.1:8480", *, behind_proxy: BehindProxy = False) -> None:
    """Serve the pages of a site, until stopped: review, decide, look at the budget and at what left."""
    from dpcausal.federation.console.server import serve  # noqa: PLC0415 (slow to load)

    serve("site", folder, listen, behind_proxy=behind_proxy)


def coordinator_console(
    folder: WorkspaceFolder, listen: Listen = "127.0.0.1:8481", *, behind_proxy: BehindProxy = False
) -> None:
    """Serve the pages of a coordinator, until stopped: studies and sites, certificates, effects."""
    from dpcausal.federation.console.server import serve  # noqa: PLC0415 (slow to load)

    serve("coordinator", folder, listen, behind_proxy=behind_proxy)


def create_console_key(folder: SiteFolder, sign: Sign = None) -> None:
    """Create the key with which the console signs the decisions of people who logged in."""
    open_site(folder)
    if (folder / KEY).exists():
        raise StudyError(
            problem=f"The site's console has a key already: {folder / KEY}",
            hint="approvals that it signed count only as long as it is the console's key. To replace it, remove it.",
        )
    changes = changes_of(folder, sign)
    changes.signer()  # raises before there is a key, if it may not be recorded
    changes.set_console_key(Key.make("console", folder / KEY).public, account())
    typer.echo(f"Created {folder / KEY}. The console may now sign decisions of people with a login.")


def set_password(folder: SiteFolder, login: AccountName, sign: Sign = None) -> None:
    """Set the password of a local account at the console; asked for, or read from standard input."""
    changes = changes_of(folder, sign)
    signer = changes.signer()
    person, password = _asked_password(folder, login, "dpcausal site people add FOLDER NAME --role … --login LOGIN")
    with changes.recorded():
        _set_password(folder, person, password)
        changes.audit_log.write("people", "", person.name, "given a new password at the console", signer)


def set_coordinator_password(folder: WorkspaceFolder, login: AccountName) -> None:
    """Set the password of a local account at the coordinator's console; asked for, or read from standard input."""
    person, password = _asked_password(
        folder, login, "dpcausal federation add-person FOLDER NAME --role … --login LOGIN"
    )
    _set_password(folder, person, password)


def add_coordinator_person(
    folder: WorkspaceFolder,
    name: Annotated[str, typer.Argument(help="The person's name.")],
    role: Annotated[list[str], typer.Option(help="reader or operator; may be given several times.")],
    login: Annotated[str, typer.Option(help="The person's login at the console.")],
) -> None:
    """Add a person who may log in to the coordinator's console."""
    _ = Workspace(folder).roster  # raises unless this is a workspace
    person = Person(name, cast("tuple[Role, ...]", tuple(dict.fromkeys(role))), login=login)  # which checks the roles
    add_person(folder, person)
    typer.echo(f"Added {person.name} as {', '.join(person.roles)}.")


def _asked_password(folder: Path, login: str, add: str) -> "tuple[Person, str]":
    """Return the person of a folder with this login, and the new password."""
    person = People.read(folder).with_login(login)
    if person is None:
        raise StudyError(
            problem=f"{login!r} is not the login of a person of this folder", hint=f"add the person with: {add}."
        )
    if sys.stdin.isatty():
        return person, typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return person, sys.stdin.readline().rstrip("\n")


def _set_password(folder: Path, person: "Person", password: str) -> None:
    Accounts(folder).set_password(person.login, password)
    typer.echo(f"Set the password of {person.name}.")
