"""`dpcausal federation`: send a study to many sites, over a network or by files."""

import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from dpcausal.cli.opened_mailbox import admit_joined_sites
from dpcausal.cli.options import AsJson, read_study
from dpcausal.cli.private_files import PrivateFiles, unlocked
from dpcausal.cli.requirements import check_folder_exists
from dpcausal.errors import DpcausalError, RefusedError, StudyError, TransportError
from dpcausal.federation.coordinator.workspace import Workspace, check_name
from dpcausal.federation.protocol.messages import MEANINGS, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.protocol.transport import FileTransport, read_bounded
from dpcausal.federation.transports.mailbox.transport import MailboxTransport, requester_client
from dpcausal.utils.plain_text import is_plain_text

if TYPE_CHECKING:
    from dpcausal.federation.coordinator.coordinator import Coordinator
    from dpcausal.federation.protocol.transport import Transport
    from dpcausal.results.effect import Effect

federation = typer.Typer(
    cls=PrivateFiles,
    name="federation",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(file_okay=False, help="The coordinator's workspace.")]
StudyFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The study file.")]
Files = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="Exchange files: requests in its folder out, messages in its folder in."),
]
Kit = Annotated[
    Path | None, typer.Option(file_okay=False, help="Use NVFlare with this kit instead of the workspace's.")
]
ByMailbox = Annotated[bool, typer.Option("--mailbox", help="Use the workspace's mailbox.")]

Days = Annotated[float, typer.Option(help="For how many days a site may answer. Later ones refuse, and pay nothing.")]
Protocol = Annotated[
    int | None,
    typer.Option(help="The version of the protocol, for files to sites that know only the one before: 4."),
]

_CREATE_NETWORK = "create the network with: dpcausal federation init FOLDER NAME --host HOST."


@federation.command()
def init(  # noqa: PLR0913, PLR0917
    folder: Folder,
    requester: Annotated[str, typer.Argument(help="The requester that studies name, for instance anna.")],
    name: Annotated[str, typer.Option(help="The name of the federation; without it, the requester's name.")] = "",
    host: Annotated[str, typer.Option(help="Create an NVFlare network: the host name of its server.")] = "",
    port: Annotated[int, typer.Option(help="The port of that server.")] = 8002,
    days: Annotated[int, typer.Option(min=1, help="The validity of the server's and requester's certificates.")] = 365,
) -> None:
    """Create a workspace: a key and a roster, and with --host the authority and the server of a network."""
    if host:
        import dpcausal.federation.transports.nvflare  # noqa: F401, PLC0415 (raises before a file is written)

    check_name(name or requester)
    workspace = Workspace.new(folder, requester)
    typer.echo(f"Public key of {requester}, for [requesters] in each site's policy:\n{workspace.key(requester).public}")
    if host:
        from dpcausal.federation.transports.nvflare.provision import create_authority  # noqa: PLC0415 (slow to load)

        fingerprint = create_authority(workspace.network, name or requester, host, port, days)
        typer.echo(f"Name of the federation: {name or requester}")
        typer.echo(f"Fingerprint of the network; give it to each site by telephone, not by file:\n{fingerprint}")
        typer.echo(f"Start the server with: dpcausal federation serve {quote(str(folder))}")


@federation.command()
def key(
    folder: Folder,
    requester: Annotated[str, typer.Argument(help="The requester, if the workspace has several.")] = "",
) -> None:
    """Print a requester's public key, for the table of requesters in a site's policy."""
    names = [requester] if requester else sorted(file.stem for file in folder.glob("*.key"))
    if len(names) != 1:
        raise StudyError(
            expected=f"the key of one requester in {folder}",
            got=", ".join(names) or "none",
            hint="name one: dpcausal federation key FOLDER REQUESTER; or create a workspace: dpcausal federation init.",
        )
    typer.echo(Workspace(folder).key(names[0]).public)


@federation.command()
def fingerprint(folder: Folder) -> None:
    """Print the fingerprint of the network, to read out to each site by telephone."""
    from dpcausal.federation.transports.nvflare.provision import fingerprint_of  # noqa: PLC0415 (an extra)

    network = Workspace(folder).network
    check_folder_exists(network / "authority", _CREATE_NETWORK)
    typer.echo(fingerprint_of(network))


@federation.command()
def admit(  # noqa: PLR0913, PLR0917
    folder: Folder,
    site: Annotated[str, typer.Argument(help="The site's name.")],
    key: Annotated[str, typer.Argument(help="Its public key, received over a trusted channel.")],
    units: Annotated[
        int | None, typer.Option(help="Its number of units, as agreed on: an answer with another number is invalid.")
    ] = None,
    units_unknown: Annotated[
        bool, typer.Option("--units-unknown", help="Take the number of units on the site's word.")
    ] = False,
    request: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="For NVFlare: the file that `site request-kit` created."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="For NVFlare: the validity of its certificate.")] = 365,
) -> None:
    """Add a site to the roster, and with --request admit it to the network."""
    workspace = Workspace(folder)
    known = workspace.roster.sites.get(site)
    if known and units is None and not units_unknown:  # its certificate is renewed
        units, units_unknown = known.units, known.units is None
    if (units is None) != units_unknown:
        raise StudyError(
            expected="--units with the site's number of units, or --units-unknown",
            got="both" if units_unknown else "neither",
            hint="ask the site for its number of units: a site that may claim any number may take any weight.",
        )
    if _is_of_a_requester(folder, key):
        raise StudyError(
            problem=f"This is the public key of a requester in {folder}, not of a site",
            hint="dpcausal site key FOLDER prints the public key at the site.",
        )
    signed = None
    if request:
        from dpcausal.federation.transports.nvflare.provision import sign  # noqa: PLC0415 (slow to load)

        signed = sign(workspace.network, request, site, days)
    try:
        workspace.admit(site, key, units)
    except StudyError:
        if signed:
            signed.unlink()
        raise
    typer.echo(f"{site} is in the roster.")
    if signed:
        typer.echo(f"Send this file back to {site}: {signed}")


def _is_of_a_requester(folder: Path, key: str) -> bool:
    """Return whether a public key is that of a key file in a workspace, as far as it can be read."""
    for file in folder.glob("*.key"):
        with suppress(DpcausalError):
            if Key.read("", file).public == key:
                return True
    return False


@federation.command()
def sites(folder: Folder) -> None:
    """Print the tables of sites and settings that a study with secure sums needs, from the roster."""
    keys = Workspace(folder).roster.keys
    if len(keys) < 2:
        raise StudyError(
            expected="a roster with at least 2 sites",
            got=f"{len(keys)}",
            hint="add the sites first: dpcausal federation admit.",
        )
    honest = max(2, -(-2 * len(keys) // 3))
    typer.echo('aggregation = "secure"   # among the first lines of the study, with pooling = "sums"\n')
    typer.echo("[secure]")
    typer.echo(f"honest = {honest}   # the noise of so many honest sites is the whole noise: two thirds of all")
    colluding = 1 if honest < len(keys) else 0
    typer.echo(f"colluding = {colluding}   # sites that may collude; one that reads the result counts as such\n")
    typer.echo("[sites]")
    for site, public in sorted(keys.items()):
        typer.echo(f'{site} = "{public}"')


@federation.command()
def serve(folder: Folder) -> None:
    """Run the server of the network, until stopped.

    Sites that are revoked in the roster are disconnected within seconds. Exit status 3 if the certificate has expired
    or is not valid yet, at the start or later.
    """
    from dpcausal.federation.transports.nvflare.start import start_server  # noqa: PLC0415 (slow to load)

    workspace = Workspace(folder)
    kit = workspace.network / "server"
    check_folder_exists(kit, _CREATE_NETWORK)
    start_server(kit, workspace.roster_file)


@federation.command("plan")
def plan_weights(
    folder: Folder,
    study: StudyFile,
    site: Annotated[
        list[str] | None, typer.Option(help="A site with its number of units, as NAME=UNITS; before the roster's.")
    ] = None,
) -> None:
    """Show the weight that each site would have, and which sites would pay for a weight of 0. Asks nobody.

    Numbers of units are those of the roster. Exit status 1 if a site would pay for a weight of 0.
    """
    members = Workspace(folder).roster.sites.items()
    sizes = {name: member.units for name, member in members if member.units and not member.revoked}
    sizes |= dict(map(_sized, site or ()))
    unknown = [name for name, member in members if not member.revoked and name not in sizes]
    if unknown or not sizes:
        raise StudyError(
            problem=f"The number of units is not known of {', '.join(unknown) or 'any site'}",
            hint=f"add for instance: --site {(unknown or ['north'])[0]}=1200.",
        )
    read = read_study(study)
    effect = read.rehearsed_pool(sizes)
    weights = {share.site: share.weight or 0.0 for share in effect.sites} or dict.fromkeys(sizes, 1.0)
    for name, n in sizes.items():
        typer.echo(f"{name}: {n:,} units, price {read.price(name)}, expected weight {weights[name]:.1%}")
    typer.echo(f"Expected standard error of the effect: {effect.standard_error:.4g}, of {effect.n:,} units.")
    if unused := [name for name, weight in weights.items() if weight == 0.0]:
        typer.echo(
            f"{', '.join(unused)} would pay for a weight of 0: leave them out of this study, raise their epsilons, or "
            'choose pooling = "inverse_variance", "random_effects" or "robust", in which every site has a weight.'
        )
        raise typer.Exit(1)


def _sized(text: str) -> tuple[str, int]:
    """Return the name of a site and its number of units."""
    name, _, units = text.partition("=")
    if not (name and units.isascii() and units.isdigit() and int(units) >= 2):
        raise StudyError(
            problem=f"{text!r} is not a site with its number of units", hint="for instance --site north=1200."
        )
    return name, int(units)


@federation.command()
def ask(  # noqa: PLR0913, PLR0917
    folder: Folder,
    study: StudyFile,
    files: Files = None,
    mailbox: Annotated[
        bool, typer.Option("--mailbox", help="Leave it in the workspace's mailbox, and do not wait.")
    ] = False,
    days: Days = 30.0,
    protocol: Protocol = None,
) -> None:
    """Write a study's request to a file, for sites without a network, or leave it in the mailbox."""
    from dpcausal.federation.coordinator.dispatch import SILENT  # noqa: PLC0415 (an extra)

    if mailbox == (files is not None):
        raise StudyError(
            expected="--files FOLDER or --mailbox",
            got="both" if mailbox else "neither",
            hint="over the network of NVFlare sites are asked by: dpcausal federation run.",
        )
    if files is None:
        post = _mailbox_transport(folder, study)
        coordinator = _coordinator(folder, study, post, days=days, timeout=0.0, attempts=1, **_versions(protocol))
        deadline = Request.from_json(claimed_body(coordinator.sealed)).deadline
        for site, words in coordinator.post().items():
            typer.echo(f"{site} {'was asked' if words == SILENT else words}")
        again = f"dpcausal federation run {quote(str(folder))} {quote(str(study))} --mailbox"
        until = f"until {datetime.fromtimestamp(deadline, UTC).date()}" if deadline else "at any time"
        typer.echo(f"A site may answer {until}. Collect the answers with: {again}")
        return
    transport = FileTransport(files)
    coordinator = _coordinator(folder, study, transport, days=days, **_versions(protocol))
    typer.echo(f"Send this file to every site: {transport.write(coordinator.sealed)}")
    typer.echo(f"Put their messages into {files / 'in'}, in files that end in .message.json.")


@federation.command()
def run(  # noqa: PLR0913, PLR0917
    folder: Folder,
    study: StudyFile,
    files: Files = None,
    kit: Kit = None,
    mailbox: ByMailbox = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to wait in each attempt: 60; with --mailbox 120, with --files 0."),
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts for a site that does not answer.")] = 3,
    min_sites: Annotated[
        int, typer.Option(min=1, help="The smallest number of answers to compute an effect from.")
    ] = 1,
    days: Days = 30.0,
    protocol: Protocol = None,
    as_json: AsJson = False,
) -> None:
    """Ask every site that has not answered yet, and print the effect.

    Required diagnostics and secondary analyses are printed before it. Exit status 1 if too few sites answered, or a
    required diagnostic failed.
    """
    transport, waits = _transport(folder, study, files, kit, timeout, mailbox=mailbox)
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        line = progress.add_task("asking", total=None)

        def print_response(site: str, words: str) -> None:
            progress.console.print(f"{site} {words}", highlight=False, markup=False)
            progress.update(line, description="waiting")

        try:
            often = 1 if files else attempts
            settings = {"timeout": waits, "attempts": often, "min_sites": min_sites, "on_response": print_response}
            coordinator = _coordinator(folder, study, transport, days=days, **_versions(protocol), **settings)
            for words in _stray_files(files / "in", coordinator.request_ids) if files else ():
                progress.console.print(words, highlight=False, markup=False, soft_wrap=True)
            effect, others = _evaluated(coordinator)
        except RefusedError as error:
            progress.stop()
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(1) from None
    for each in others:
        typer.echo(f"{each}\n", err=as_json)
    typer.echo(effect.to_json() if as_json else str(effect))


@federation.command()
def withdraw(  # noqa: PLR0913, PLR0917
    folder: Folder,
    study: StudyFile,
    files: Files = None,
    kit: Kit = None,
    mailbox: ByMailbox = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds to wait: as for run.")] = None,
) -> None:
    """Withdraw a study: sites that have not answered it refuse from then on, and pay nothing. Nobody is asked again.

    Exit status 1 if a site does not know of it yet: run the command again later. A site of protocol 4 never does.
    """
    transport, waits = _transport(folder, study, files, kit, timeout, mailbox=mailbox)

    found = _coordinator(folder, study, transport, timeout=waits, attempts=1).withdraw()
    for site, words in found.items():
        typer.echo(f"{site} {words}")
    if files:
        typer.echo(f"Send the file in {files / 'out'} to every site.")
    if any(words != MEANINGS["withdrawn"] for words in found.values()):
        typer.echo("Sites that do not know of it yet may still answer: run this command again later.", err=True)
        raise typer.Exit(1)


def _versions(protocol: int | None) -> dict[str, int]:
    """Return the argument of a coordinator for a version of the protocol that was chosen."""
    return {} if protocol is None else {"protocol": protocol}


def _evaluated(coordinator: "Coordinator") -> tuple["Effect", list[object]]:
    """Return the effect, and what else a study of sums gives: required diagnostics and secondary analyses."""
    if coordinator.study.pooling != "sums":
        return coordinator.run(), []
    result = coordinator.result()
    return result.checked_effect(), [*result.diagnoses.values(), *result.secondary.values()]


def _transport(  # noqa: PLR0913 (options of a command)
    folder: Path, study: Path, files: Path | None, kit: Path | None, timeout: float | None, *, mailbox: bool
) -> "tuple[Transport, float]":
    """Return what carries requests, and for how many seconds to wait for answers."""
    if mailbox:
        return _mailbox_transport(folder, study), 120.0 if timeout is None else timeout
    if files and kit:
        raise StudyError(expected="--files or --kit", got="both", hint="choose one of the two.")
    if files:
        return FileTransport(files), timeout or 0.0
    kit = kit or Workspace(folder).kit(read_study(study).requester)
    check_folder_exists(
        kit, "pass --files FOLDER or --mailbox, or create a network: dpcausal federation init FOLDER NAME --host HOST."
    )
    from dpcausal.federation.transports.nvflare.certificates import check_certificate  # noqa: PLC0415 (slow to load)
    from dpcausal.federation.transports.nvflare.transport import FlareTransport  # noqa: PLC0415

    check_certificate(kit)
    return FlareTransport(kit), 60.0 if timeout is None else timeout


def _mailbox_transport(folder: Path, study: Path) -> "Transport":
    """Return the transport of the workspace's mailbox, after the sites that joined it were added to the roster."""
    for site in admit_joined_sites(folder):
        typer.echo(f"{site} joined the mailbox, and is in the roster.", err=True)
    return MailboxTransport(requester_client(folder, read_study(study).requester))


def _coordinator(folder: Path, study: Path, transport: "Transport", **settings: Any) -> "Coordinator":  # noqa: ANN401
    from dpcausal.federation.coordinator.coordinator import Coordinator  # noqa: PLC0415 (slow to load)

    workspace = Workspace(folder)
    requester = read_study(study).requester
    if (file := workspace.key_file(requester)).is_file():
        unlocked(requester, file)
    key = workspace.key(requester)
    return Coordinator(study, workspace.roster, key, transport, store=workspace.store, **settings)


def _stray_files(folder: Path, requests: Collection[str]) -> Iterator[str]:
    """Yield a line for each file that is not a message to one of these requests, with the reason."""
    for file in sorted(folder.glob("*")):
        name = str(file) if is_plain_text(str(file)) else ascii(str(file))
        try:
            answered = Message.from_json(claimed_body(read_bounded(file))).request
        except (OSError, TransportError):
            yield f"{name} does not count: it holds no message of a site"
            continue
        if answered not in requests:
            yield f"{name} does not count: it answers another study, or another version of this one"
        elif not file.name.endswith(".message.json"):
            yield f"{name} does not count: its name does not end in .message.json"
