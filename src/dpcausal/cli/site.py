"""`dpcausal site`: commands for the custodians of a table."""

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
    """Commands that report an unusable file without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Run a command; report a missing or forbidden file as an error of dpcausal."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:
                raise
            raise StudyError(
                expected="an existing file or folder that you may use",
                got=f"{error.filename} ({error.strerror})",
                hint="check its name and the working folder; a site's files belong to the user who created the site.",
            ) from None


site = typer.Typer(
    cls=_FriendlyFileErrors,
    name="site",
    no_args_is_help=True,
    help="Run a site: review studies, approve them, answer requests.",
)

Folder = Annotated[Path, typer.Argument(file_okay=False, help="The site's folder.")]
StudyFile = Annotated[str, typer.Argument(help="A study file, or the first digits of its digest.")]
By = Annotated[str, typer.Option(help="Your name, for the audit log.")]
Why = Annotated[str, typer.Option(help="Your reason, for the audit log.")]


@site.command()
def init(folder: Folder, name: Annotated[str, typer.Argument(help="The site's name, for instance north.")]) -> None:
    """Create a site: a key, and a policy to fill in."""
    require_extra("cryptography", "federation")
    from dpcausal.site.policy_template import new_site  # noqa: PLC0415 (slow to load)

    public = new_site(folder, name)
    typer.echo(f"Created {folder / 'policy.toml'}. Open it and fill in the marked lines.")
    typer.echo(f"Then create the ledger, once: dpcausal site create-ledger {folder}")
    typer.echo(f"Public key of {name}, for the coordinator's roster:\n{public}")


@site.command("create-ledger")
def create_ledger(folder: Folder) -> None:
    """Create the site's ledger with the budget in its policy, once. The budget cannot be raised later."""
    ledger = _site(folder).create_ledger()
    typer.echo(f"Created {ledger.address}, with a budget of {ledger.budget}.")


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
    """Show a study for a decision; without a study, list those that this site received."""
    opened = _site(folder)
    if study:
        reviewed = opened.review(_digest(opened, study))
        typer.echo(str(reviewed))
        opened.check_ledger(reviewed)
        return
    table = Table("study", "digest", "requester", "status")
    for digest, planned, status in opened.studies():
        table.add_row(*map(Text, (planned.name, digest[:12], planned.requester, status)))
    if table.row_count:
        Console().print(table)
    else:
        typer.echo("This site has not received a study yet.")


@site.command()
def approve(folder: Folder, study: StudyFile, by: By = "", why: Why = "") -> None:
    """Approve a study."""
    opened = _site(folder)
    digest = opened.approve(_digest(opened, study), by=by or getpass.getuser(), why=why)
    typer.echo(f"Approved {digest}. Status: {opened.status(digest)}.")


@site.command()
def reject(folder: Folder, study: StudyFile, by: By = "", why: Why = "") -> None:
    """Reject a study. One rejection is enough; the same person may approve the study later."""
    opened = _site(folder)
    digest = opened.reject(_digest(opened, study), by=by or getpass.getuser(), why=why)
    typer.echo(f"Rejected {digest}.")


@site.command()
def answer(
    folder: Folder,
    request: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The request file.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file to write the message to.")],
) -> None:
    """Answer a request from a file."""
    require_extra("cryptography", "federation")
    from dpcausal.federation.protocol import MEANINGS, Message  # noqa: PLC0415 (an extra)
    from dpcausal.federation.signatures import claimed_body  # noqa: PLC0415
    from dpcausal.site.worker import run_in_subprocess  # noqa: PLC0415

    message = run_in_subprocess(folder, _request(request))
    out.write_text(message, encoding="utf-8")
    response = Message.from_json(claimed_body(message))
    typer.echo(f"{response.site} {MEANINGS[response.code]}. Send {out} to the coordinator.")
    if response.code != "answered":
        review = f"dpcausal site review {folder} {response.study[:12]}".strip()
        typer.echo(f"\nHint: {_REMEDIES[response.code].format(review=review)}")
        raise typer.Exit(1)


@site.command("request-kit")
def request_network_kit(
    folder: Folder,
    federation: Annotated[str, typer.Argument(help="The federation's name: the name of its requester.")],
) -> None:
    """Create a key for the network, and the request to send to the coordinator."""
    require_extra("nvflare", "federation")
    from dpcausal.plugins.nvflare.provision import request_kit  # noqa: PLC0415 (slow to load)
    from dpcausal.site.policy import Policy  # noqa: PLC0415

    name, network = Policy.read(folder).site, folder / "nvflare"
    if network.exists():
        raise StudyError(
            expected="a site that has not requested a kit yet",
            got=f"{network}, which exists",
            hint="to request another kit, remove this folder; the coordinator must then admit the site again.",
        )
    typer.echo(f"Send this file to the coordinator: {request_kit(network, federation, name)}")


@site.command("install-kit")
def install_network_kit(
    folder: Folder,
    signed: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The signed request from the coordinator.")
    ],
    fingerprint: Annotated[str, typer.Argument(help="The fingerprint, as the coordinator read it out.")],
) -> None:
    """Install the kit for the network from the signed request."""
    require_extra("nvflare", "federation")
    from dpcausal.plugins.nvflare.provision import install_kit  # noqa: PLC0415 (slow to load)

    if (folder / "nvflare" / "kit").exists():
        raise StudyError(
            expected="a site without a kit",
            got=f"{folder / 'nvflare' / 'kit'}, which exists",
            hint=f"continue with: dpcausal site serve {folder}.",
        )
    check_folder_exists(folder / "nvflare" / "key", "start with: dpcausal site request-kit FOLDER FEDERATION.")
    install_kit(folder / "nvflare", signed, fingerprint)
    typer.echo(f"Installed. To answer requests, run: dpcausal site serve {folder}")


@site.command()
def serve(folder: Folder) -> None:
    """Connect to the server and answer requests for approved studies, until stopped."""
    require_extra("nvflare", "federation")
    from dpcausal.plugins.nvflare.start import start_site  # noqa: PLC0415 (slow to load)

    kit = folder / "nvflare" / "kit"
    check_folder_exists(kit, "install a kit with: dpcausal site request-kit, then: dpcausal site install-kit.")
    start_site(kit, folder)


@site.command("audit-log")
def audit_log(folder: Folder) -> None:
    """Verify the audit log, and print its decisions, requests and answers."""
    table = Table("time (UTC)", "event", "who", "study", "detail")
    for entry in _site(folder).audit_log.entries():
        what = entry.what
        if entry.kind == "answer":
            request, _, code = what.partition(" ")
            what = f"{code} (request {request[:12]})"
        table.add_row(*map(Text, (entry.at[:16].replace("T", " "), entry.kind, entry.who, entry.study[:12], what)))
    Console().print(table)


def _site(folder: Path) -> "Site":
    require_extra("cryptography", "federation")
    from dpcausal.site.site import Site  # noqa: PLC0415 (slow to load)

    return Site(folder)


def _digest(opened: "Site", study: str) -> str:
    """Return the digest of a study; store a study file in the inbox first."""
    file = Path(study)
    if file.suffix != ".toml" and not file.is_file():
        return study
    try:
        return opened.receive(file.read_bytes().decode())
    except UnicodeDecodeError:
        raise StudyError(
            expected="a study file in UTF-8", got=str(file), hint="ask the coordinator for the file again."
        ) from None


def _request(file: Path) -> str:
    """Read a signed request from a file. The site checks the signature."""
    from dpcausal.federation.protocol import Request  # noqa: PLC0415 (an extra)
    from dpcausal.federation.signatures import claimed_body  # noqa: PLC0415

    text = file.read_bytes().decode(errors="replace")
    try:
        Request.from_json(claimed_body(text))
    except TransportError as error:
        raise StudyError(
            expected=f"{error.expected}, in a file that dpcausal federation ask wrote",
            got=f"{error.got}, in {file}",
            hint=f"use the unchanged file that ends in .request.json; {error.hint}",
        ) from None
    return text


# Advice for each code, printed at the site only.
_REMEDIES: dict["Code", str] = {
    "unreadable": "run the same version of dpcausal as the coordinator.",
    "unknown_requester": "add the study's requester to [requesters] in policy.toml, with the key that dpcausal "
    "federation key prints at the coordinator.",
    "undecided": "review the study with: {review}, then approve or reject it, and answer again. A study that was "
    "changed after its approval is a new study.",
    "rejected": "dpcausal site audit-log shows who rejected it; that person may approve it later.",
    "not_allowed": "see what the policy does not allow with: {review}.",
    "too_few_units": "the table has fewer units than minimum_units in policy.toml.",
    "no_budget": "dpcausal ledger show prints what was spent; a budget cannot be raised.",
    "failed": "check the table and the ledger with: {review}.",
    "stopped": "raise seconds or memory in policy.toml, and answer again.",
}
