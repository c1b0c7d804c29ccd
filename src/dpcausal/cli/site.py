"""`dpcausal site`: for the people who keep a table and decide who may ask it."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from dpcausal.cli.requirements import check_folder_exists, require_extra
from dpcausal.errors import StudyError, TransportError

if TYPE_CHECKING:
    from dpcausal.federation.protocol import Code
    from dpcausal.site.site import Site


class _FriendlyFileErrors(TyperGroup):
    """Commands that say in words which file they could not use."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Run a command; a file that is absent or somebody else's ends it as other mistakes do."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:
                raise
            raise StudyError(
                expected="a file or folder that is there, and that you may use",
                got=f"{error.filename} ({error.strerror})",
                hint="check its name and the working folder; a site's files belong to the user who made the site.",
            ) from None


site = typer.Typer(
    cls=_FriendlyFileErrors, name="site", no_args_is_help=True, help="Keep a table, and decide who may ask it what."
)

Folder = Annotated[Path, typer.Argument(file_okay=False, help="The site's folder.")]
StudyFile = Annotated[str, typer.Argument(help="The first digits of a study's digest, or the study file itself.")]
By = Annotated[str, typer.Option(help="Who decides: your name, as it is to stand in the audit log.")]
Why = Annotated[str, typer.Option(help="The reason, for the audit log.")]


@site.command()
def init(folder: Folder, name: Annotated[str, typer.Argument(help="The site's name, for instance north.")]) -> None:
    """Make a site: a key, and a policy to be filled in by hand."""
    require_extra("cryptography", "federation")
    from dpcausal.site.policy_template import new_site  # noqa: PLC0415 (slow to load)

    public = new_site(folder, name)
    typer.echo(f"Made {folder / 'policy.toml'}: open it, and fill in what is marked.")
    typer.echo(f"Then make its ledger, once: dpcausal site create-ledger {folder}")
    typer.echo(f"Public key of {name}, for the coordinator's roster:\n{public}")


@site.command("create-ledger")
def create_ledger(folder: Folder) -> None:
    """Make the site's ledger as its policy says, once. Its budget cannot be raised later."""
    made = _site(folder).create_ledger()
    typer.echo(f"Made {made.address}, with a budget of {made.budget}.")


@site.command()
def key(folder: Folder) -> None:
    """Print the site's public key, for a coordinator's roster."""
    require_extra("cryptography", "federation")
    from dpcausal.federation.signatures import Key  # noqa: PLC0415 (an extra)
    from dpcausal.site.policy import KEY, Policy  # noqa: PLC0415

    typer.echo(Key.read(Policy.read(folder).site, folder / KEY).public)


@site.command()
def review(
    folder: Folder,
    study: Annotated[str, typer.Argument(help="A study file, or the first digits of its digest.")] = "",
) -> None:
    """Show a study as this site should see it before deciding; without one, list those that were sent."""
    opened = _site(folder)
    if study:
        told = opened.review(_digest(opened, study))
        typer.echo(str(told))
        opened.check_ledger(told)
        return
    table = Table("study", "digest", "asked by", "status")
    for digest, planned, status in opened.studies():
        table.add_row(*map(Text, (planned.name, digest[:12], planned.requester, status)))
    if table.row_count:
        Console().print(table)
    else:
        typer.echo("No study was sent to this site yet.")


@site.command()
def approve(folder: Folder, study: StudyFile, by: By = "", why: Why = "") -> None:
    """Approve a study, by its digest."""
    opened = _site(folder)
    digest = opened.approve(_digest(opened, study), by=by or getpass.getuser(), why=why)
    typer.echo(f"Approved {digest}; it is now {opened.status(digest)}.")


@site.command()
def reject(folder: Folder, study: StudyFile, by: By = "", why: Why = "") -> None:
    """Reject a study, by its digest. One who rejects it is enough; whoever rejected it may approve it later."""
    opened = _site(folder)
    digest = opened.reject(_digest(opened, study), by=by or getpass.getuser(), why=why)
    typer.echo(f"Rejected {digest}.")


@site.command()
def answer(
    folder: Folder,
    request: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A request, as a file.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="Where to write the message.")],
) -> None:
    """Answer a request that was brought as a file."""
    require_extra("cryptography", "federation")
    from dpcausal.federation.protocol import MEANINGS, Message  # noqa: PLC0415 (an extra)
    from dpcausal.federation.signatures import claimed_body  # noqa: PLC0415
    from dpcausal.site.worker import run_in_subprocess  # noqa: PLC0415

    message = run_in_subprocess(folder, _request(request))
    out.write_text(message, encoding="utf-8")
    said = Message.from_json(claimed_body(message))
    typer.echo(f"{said.site} {MEANINGS[said.code]}. Written to {out}: send it to the coordinator.")
    if said.code != "answered":
        review = f"dpcausal site review {folder} {said.study[:12]}".strip()
        typer.echo(f"\nHint: {_CURES[said.code].format(review=review)}")
        raise typer.Exit(1)


@site.command("request-kit")
def request_network_kit(
    folder: Folder,
    federation: Annotated[str, typer.Argument(help="The federation's name: the name of who asks.")],
) -> None:
    """Make a key for the network, and the file to send to the coordinator."""
    require_extra("nvflare", "federation")
    from dpcausal.plugins.nvflare.provision import request_kit  # noqa: PLC0415 (slow to load)
    from dpcausal.site.policy import Policy  # noqa: PLC0415

    name_here, transport = Policy.read(folder).site, folder / "nvflare"
    if transport.exists():
        raise StudyError(
            expected="a site that has not joined yet",
            got=f"{transport}, which is there",
            hint="remove it to join anew; the coordinator must then admit the site anew.",
        )
    typer.echo(f"Send this to the coordinator: {request_kit(transport, federation, name_here)}")


@site.command("install-kit")
def install_network_kit(
    folder: Folder,
    signed: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What the coordinator sent back.")],
    fingerprint: Annotated[str, typer.Argument(help="What the coordinator said on the telephone.")],
) -> None:
    """Make the kit for the network from what the coordinator sent back."""
    require_extra("nvflare", "federation")
    from dpcausal.plugins.nvflare.provision import install_kit  # noqa: PLC0415 (slow to load)

    if (folder / "nvflare" / "kit").exists():
        raise StudyError(
            expected="a site that has joined and not entered yet",
            got=f"{folder / 'nvflare' / 'kit'}, which is there",
            hint=f"go on with: dpcausal site serve {folder}.",
        )
    check_folder_exists(folder / "nvflare" / "key", "begin with: dpcausal site request-kit FOLDER FEDERATION.")
    install_kit(folder / "nvflare", signed, fingerprint)
    typer.echo(f"Wait for requests with: dpcausal site serve {folder}")


@site.command()
def serve(folder: Folder) -> None:
    """Dial the server and answer what the site's people approved, until stopped."""
    require_extra("nvflare", "federation")
    from dpcausal.plugins.nvflare.start import start_site  # noqa: PLC0415 (slow to load)

    kit = folder / "nvflare" / "kit"
    check_folder_exists(kit, "make it with: dpcausal site request-kit, and then: dpcausal site install-kit.")
    start_site(kit, folder)


@site.command("audit-log")
def audit_log(folder: Folder) -> None:
    """Print what was decided, asked and answered here, verified from the first line to the last."""
    table = Table("when (UTC)", "what", "who", "study", "")
    for line in _site(folder).audit_log.lines():
        what = line.what
        if line.kind == "answer":
            request, _, code = what.partition(" ")
            what = f"{code} (request {request[:12]})"
        table.add_row(*map(Text, (line.at[:16].replace("T", " "), line.kind, line.who, line.study[:12], what)))
    Console().print(table)


def _site(folder: Path) -> "Site":
    require_extra("cryptography", "federation")
    from dpcausal.site.site import Site  # noqa: PLC0415 (slow to load)

    return Site(folder)


def _digest(opened: "Site", study: str) -> str:
    """The digest that a person means; a file is put into the inbox first."""
    file = Path(study)
    if file.suffix != ".toml" and not file.is_file():
        return study
    try:
        return opened.receive(file.read_bytes().decode())
    except UnicodeDecodeError:
        raise StudyError(
            expected="a study's file, as UTF-8 text", got=str(file), hint="ask the coordinator for it again."
        ) from None


def _request(file: Path) -> str:
    """The signed request in a file. Whose it is, and whether it is answered, the site says."""
    from dpcausal.federation.protocol import Request  # noqa: PLC0415 (an extra)
    from dpcausal.federation.signatures import claimed_body  # noqa: PLC0415

    text = file.read_bytes().decode(errors="replace")
    try:
        Request.from_json(claimed_body(text))
    except TransportError:
        raise StudyError(
            expected="a request as dpcausal federation ask writes it",
            got=f"{file}, which holds something else",
            hint="it is the file that ends in .request.json, and nothing may be changed in it; or this version of "
            "dpcausal is another than the coordinator's.",
        ) from None
    return text


_CURES: dict["Code", str] = {
    "unreadable": "compare the version of dpcausal here with the coordinator's.",
    "unknown_requester": "the requesters in policy.toml must have the study's requester, with the key that dpcausal federation key "
    "prints where the study is run.",
    "undecided": "look at it with: {review}, then approve or reject it, and answer again. A study that was changed after "
    "it was approved is a new one.",
    "rejected": "dpcausal site audit-log says who rejected it; that person may approve it later.",
    "not_allowed": "see what the policy does not allow with: {review}.",
    "too_few_units": "the table has fewer units than minimum_units in policy.toml.",
    "no_budget": "dpcausal ledger show tells what was spent; a budget cannot be raised.",
    "failed": "see what is wrong with the table or the ledger with: {review}.",
    "stopped": "give it more seconds or memory in policy.toml, and answer again.",
}
"""What people at a site can do about each code. Nobody else is told."""
