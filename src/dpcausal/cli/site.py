"""`dpcausal site`: for the people who keep a table and decide who may ask it."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpcausal.cli.needs import check_there, needs
from dpcausal.errors import StudyError

if TYPE_CHECKING:
    from dpcausal.site.site import Site

site = typer.Typer(name="site", no_args_is_help=True, help="Keep a table, and decide who may ask it what.")

Folder = Annotated[Path, typer.Argument(file_okay=False, help="The site's folder.")]
StudyFile = Annotated[str, typer.Argument(help="The first digits of a study's digest, or the study file itself.")]
By = Annotated[str, typer.Option(help="Who decides: your name, as it is to stand in the diary.")]
Why = Annotated[str, typer.Option(help="The reason, for the diary.")]


@site.command()
def init(folder: Folder, name: Annotated[str, typer.Argument(help="The site's name, for instance north.")]) -> None:
    """Make a site: a key, and a policy to be filled in by hand."""
    needs("cryptography", "federation")
    from dpcausal.site.new import new_site  # noqa: PLC0415 (slow to load)

    public = new_site(folder, name)
    typer.echo(f"Made {folder / 'policy.toml'}: open it, and fill in what is marked.")
    typer.echo(f"Public key of {name}, for the coordinator's roster:\n{public}")


@site.command()
def key(folder: Folder) -> None:
    """Print the site's public key, for a coordinator's roster."""
    typer.echo(_site(folder).public_key)


@site.command()
def review(
    folder: Folder,
    study: Annotated[str, typer.Argument(help="A study file, or the first digits of its digest.")] = "",
) -> None:
    """Show a study as this site should see it before deciding; without one, list those that were sent."""
    opened = _site(folder)
    if study:
        typer.echo(str(opened.review(_digest(opened, study))))
        return
    table = Table("study", "digest", "asked by", "standing")
    for digest, planned, standing in opened.studies():
        table.add_row(*map(Text, (planned.name, digest[:12], planned.asker, standing)))
    if table.row_count:
        Console().print(table)
    else:
        typer.echo("No study was sent to this site yet.")


@site.command()
def approve(folder: Folder, study: StudyFile, by: By = "", why: Why = "") -> None:
    """Approve a study, by its digest."""
    opened = _site(folder)
    digest = opened.approve(_digest(opened, study), by=by or getpass.getuser(), why=why)
    typer.echo(f"Approved {digest}; it is now {opened.standing(digest)}.")


@site.command()
def deny(folder: Folder, study: StudyFile, by: By = "", why: Why = "") -> None:
    """Deny a study, by its digest. One who denies it is enough; whoever denied it may approve it later."""
    opened = _site(folder)
    digest = opened.deny(_digest(opened, study), by=by or getpass.getuser(), why=why)
    typer.echo(f"Denied {digest}.")


@site.command()
def answer(
    folder: Folder,
    request: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A request, as a file.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="Where to write the message.")],
) -> None:
    """Answer a request that was brought as a file."""
    from dpcausal.federation.protocol import MEANINGS, Message  # noqa: PLC0415 (an extra)
    from dpcausal.federation.signatures import claimed_body  # noqa: PLC0415
    from dpcausal.site.apart import answer_apart  # noqa: PLC0415

    message = answer_apart(folder, request.read_text(encoding="utf-8"))
    out.write_text(message, encoding="utf-8")
    said = Message.from_json(claimed_body(message))
    typer.echo(f"{said.site} {MEANINGS[said.code]}. Written to {out}: send it to the coordinator.")
    raise typer.Exit(0 if said.code == "answered" else 1)


@site.command()
def join(
    folder: Folder,
    federation: Annotated[str, typer.Argument(help="The federation's name: the name of who asks.")],
) -> None:
    """Make a key for the network, and the file to send to the coordinator."""
    needs("nvflare", "federation")
    from dpcausal.federation.flare.provision import request_kit  # noqa: PLC0415 (slow to load)
    from dpcausal.site.policy import Policy  # noqa: PLC0415

    name_here, road = Policy.read(folder).site, folder / "nvflare"
    if road.exists():
        raise StudyError(
            expected="a site that has not joined yet",
            got=f"{road}, which is there",
            hint="remove it to join anew; the coordinator must then admit the site anew.",
        )
    typer.echo(f"Send this to the coordinator: {request_kit(road, federation, name_here)}")


@site.command()
def enter(
    folder: Folder,
    signed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What the coordinator sent back.")],
    fingerprint: Annotated[str, typer.Argument(help="What the coordinator said on the telephone.")],
) -> None:
    """Make the kit for the network from what the coordinator sent back."""
    needs("nvflare", "federation")
    from dpcausal.federation.flare.provision import receive_kit  # noqa: PLC0415 (slow to load)

    check_there(folder / "nvflare" / "key", "begin with: dpcausal site join FOLDER FEDERATION.")
    receive_kit(folder / "nvflare", signed, fingerprint)
    typer.echo(f"Wait for requests with: dpcausal site listen {folder}")


@site.command()
def listen(folder: Folder) -> None:
    """Dial the server and answer what the site's people approved, until stopped."""
    needs("nvflare", "federation")
    from dpcausal.federation.flare.start import start_site  # noqa: PLC0415 (slow to load)

    kit = folder / "nvflare" / "kit"
    check_there(kit, "make it with: dpcausal site join, and then: dpcausal site enter.")
    start_site(kit, folder)


@site.command()
def diary(folder: Folder) -> None:
    """Print what was decided, asked and answered here, verified from the first line to the last."""
    table = Table("when", "what", "who", "study", "")
    for line in _site(folder).diary.lines():
        table.add_row(*map(Text, (line.at, line.kind, line.who, line.study[:12], line.what)))
    Console().print(table)


def _site(folder: Path) -> "Site":
    needs("cryptography", "federation")
    from dpcausal.site.site import Site  # noqa: PLC0415 (slow to load)

    return Site(folder)


def _digest(opened: "Site", study: str) -> str:
    """The digest that a person means; a file is put into the inbox first."""
    file = Path(study)
    return opened.receive(file.read_bytes().decode()) if file.suffix == ".toml" else study
