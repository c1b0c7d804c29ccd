"""`dpcausal site`: commands for the custodians of a table."""

import contextlib
import getpass
import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.private_files import PrivateFiles, site_key
from dpcausal.cli.requirements import check_folder_exists
from dpcausal.errors import LedgerError, StudyError, TransportError
from dpcausal.federation.protocol.messages import MEANINGS, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.protocol.transport import parted, read_bounded
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.policy_template import new_site
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.utils.documents import write_text
from dpcausal.utils.hash_chain import dated_back

if TYPE_CHECKING:
    from dpcausal.federation.protocol.messages import Code
    from dpcausal.federation.site.changes import Changes
    from dpcausal.federation.site.site import Site


class _FriendlyFileErrors(PrivateFiles):
    """Commands that report an unusable file without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Run a command; report a missing or forbidden file as an error of dpcausal."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            if error.filename is None:
                raise StudyError(
                    problem=f"A file cannot be read or written ({error.strerror or type(error).__name__})",
                    hint="free disk space, and try again.",
                ) from None
            raise StudyError(
                problem=f"{error.filename} cannot be used ({error.strerror})",
                hint="check its name and the working folder; a site's files belong to the user who created the site.",
            ) from None


site = typer.Typer(
    cls=_FriendlyFileErrors,
    name="site",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(file_okay=False, help="The site's folder.")]
Sign = Annotated[
    Path | None,
    typer.Option("--sign", exists=True, dir_okay=False, help="The file of your own key, which signs this change."),
]
Network = Annotated[str, typer.Option(help="The federation, if this site is in several networks.")]


@site.command()
def init(folder: Folder, name: Annotated[str, typer.Argument(help="The site's name, for instance north.")]) -> None:
    """Create a site: a key, and a policy to fill in."""
    public = new_site(folder, name)
    typer.echo(f"Created {folder / 'policy.toml'}. Open it and fill in the marked lines.")
    typer.echo(f"Then create the ledger, once: dpcausal site create-ledger {quote(str(folder))}")
    typer.echo(
        f"Then add who decides: dpcausal site people add {quote(str(folder))} NAME --role approver --key PUBLIC_KEY"
    )
    typer.echo(f"Public key of {name}, for the coordinator's roster:\n{public}")


@site.command("create-ledger")
def create_ledger(folder: Folder, sign: Sign = None) -> None:
    """Create the site's ledger with the budget in its policy, once. The budget cannot be raised later."""
    site_key(folder)
    if not Policy.read(folder).columns:
        raise StudyError(
            problem=f"{folder / 'policy.toml'} lists no columns yet, and the budget in it cannot be raised later",
            hint="fill in the marked lines first: the columns that studies may read, the budget, and who may ask.",
        )
    ledger = changes_of(folder, sign).create_ledger(account())
    typer.echo(f"Created {ledger.address}, with a budget of {ledger.budget}.")


@site.command()
def key(folder: Folder) -> None:
    """Print the site's public key, for a coordinator's roster."""
    typer.echo(site_key(folder).public)


@site.command()
def review(
    folder: Folder,
    study: Annotated[str, typer.Argument(help="A study file, or its whole digest.")] = "",
) -> None:
    """Show a study for a decision; without a study, list those that this site received."""
    opened = open_site(folder)
    if study:
        reviewed = opened.review(_digest(opened, study))
        typer.echo(str(reviewed))
        opened.check_ledger(reviewed)
        return
    received = opened.studies()
    for each in received:
        by = f", requested by {each.requester}" if each.requester else ""
        price = "" if each.status == "changed" else f", {each.price}"
        typer.echo(f"{each.digest}\n    {each.words}: {each.name or 'unknown'}{by}{price}")
    if not received:
        typer.echo("This site has not received a study yet.")


@site.command()
def answer(
    folder: Folder,
    request: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The request file.")],
    out: Annotated[Path, typer.Option(help="The file to write the message to, outside the site's folder.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing message.")] = False,
) -> None:
    """Answer a request from a file."""
    signed = _request(request)
    check_out(out, folder, overwrite=overwrite)
    site_key(folder)
    message = run_in_subprocess(folder, signed)
    write_text(out, message)
    response = Message.from_json(claimed_body(message))
    typer.echo(f"{response.site} {MEANINGS[response.code]}. Send {out} to the coordinator.")
    if response.code != "answered":
        review = f"dpcausal site review {quote(str(folder))} {response.study}".strip()
        typer.echo(f"\nHint: {_REMEDIES[response.code].format(review=review)}")
        raise typer.Exit(1)


@site.command("end-session")
def end_session(folder: Folder, study: Annotated[str, typer.Argument(help="The whole digest of the study.")]) -> None:
    """Erase the secrets of a secure sum that will not be finished. This site takes no further part in it."""
    open_site(folder).end_session(study)
    typer.echo(f"Erased the secrets of study {study}. What was paid for it is spent.")


@site.command("request-kit")
def request_network_kit(
    folder: Folder,
    federation: Annotated[str, typer.Argument(help="The federation's name, as the coordinator gave it.")],
) -> None:
    """Create a key for a network, and the request to send to the coordinator. A site may be in several networks."""
    from dpcausal.federation.transports.nvflare.networks import new_network  # noqa: PLC0415 (slow to load)
    from dpcausal.federation.transports.nvflare.provision import request_kit  # noqa: PLC0415

    name = Policy.read(folder).site
    request = request_kit(new_network(folder, federation), federation, name)
    typer.echo(f"Send this file to the coordinator: {request}")


@site.command("install-kit")
def install_network_kit(
    folder: Folder,
    signed: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The signed request from the coordinator.")
    ],
    fingerprint: Annotated[str, typer.Argument(help="The whole fingerprint, as the coordinator read it out.")],
    network: Network = "",
) -> None:
    """Install the kit for the network from the signed request, or renew it."""
    from dpcausal.federation.transports.nvflare.networks import network_of  # noqa: PLC0415 (slow to load)
    from dpcausal.federation.transports.nvflare.provision import install_kit  # noqa: PLC0415

    install_kit(network_of(folder, network, pending=True), signed, fingerprint)
    typer.echo(f"Installed. To answer requests, run: dpcausal site serve {quote(str(folder))}")


@site.command()
def serve(folder: Folder, network: Network = "") -> None:
    """Connect to the server and answer requests for approved studies, until stopped.

    Exit status 3 if the certificate has expired or is not valid yet, at the start or later.
    """
    from dpcausal.federation.transports.nvflare.networks import network_of  # noqa: PLC0415 (slow to load)
    from dpcausal.federation.transports.nvflare.start import start_site  # noqa: PLC0415

    kit = network_of(folder, network) / "kit"
    check_folder_exists(kit, "install a kit with: dpcausal site request-kit, then: dpcausal site install-kit.")
    site_key(folder)
    warn_unconfirmed(folder)
    start_site(kit, folder)


@site.command("audit-log")
def audit_log(
    folder: Folder,
    rebuild_index: Annotated[
        bool, typer.Option("--rebuild-index", help="Make a lost index anew. The audit log records that you did.")
    ] = False,
) -> None:
    """Verify the audit log, and print its decisions, requests and answers."""
    from dpcausal.federation.site.signed_changes import verified_changes  # noqa: PLC0415 (slow to load)

    opened = open_site(folder)
    log = opened.audit_log
    if rebuild_index:
        log.rebuild_index(account())
    days = list[str]()
    entries = log.entries()
    signed = {each.entry.digest: f" ({each.words})" for each in verified_changes(entries, opened.policy.site)}
    for entry in entries:
        days.append(entry.at)
        what = (entry.code or entry.what) + (signed.get(entry.digest, "") if entry.sealed else "")
        words = (entry.at[:16].replace("T", " "), entry.kind, entry.who, f": {what}" if what else "")
        typer.echo("{:16}  {:7}  {}{}".format(*words))
        for label, digest in (("study", entry.study), ("request", entry.request)):
            if digest:
                typer.echo(f"{'':18}{label:7}  {digest}")
    for place in dated_back(days):
        typer.echo(f"Line {place + 1} is dated more than a day before a line above it: was the clock wrong?")
    for day, number in log.forged().items():
        typer.echo(f"Requests without a valid signature on {day}: {number:,}.")


def warn_unconfirmed(folder: Path) -> None:
    """Say, where a service starts, which edits nobody confirmed: the site does not answer before."""
    from dpcausal.federation.site.changes import Changes  # noqa: PLC0415 (slow to load)

    with contextlib.suppress(LedgerError):  # each answer names it in the audit log
        if found := Changes(folder).unconfirmed():
            hint = f"Confirm it with: dpcausal site confirm {quote(str(folder))}"
            typer.echo(f"Warning: the site does not answer: {found}. {hint} --by NAME --why WHY.", err=True)


def account() -> str:
    """Return the name of the account that runs a command, for the audit log; its number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container without such an account
        return f"account {os.getuid()}"


def changes_of(folder: Path, sign: Path | None) -> "Changes":
    """Return the changes of a site, signed by the key in a file, if one is given."""
    from dpcausal.federation.site.changes import Changes  # noqa: PLC0415 (slow to load)

    return Changes(folder, Key.read("", sign) if sign else None)


def open_site(folder: Path) -> "Site":
    """Open the site in a folder."""
    from dpcausal.federation.site.site import Site  # noqa: PLC0415 (slow to load)

    site_key(folder)
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
            problem=f"{file} is not a study file in UTF-8", hint="ask the coordinator for the file again."
        ) from None


def check_out(out: Path, folder: Path, *, overwrite: bool) -> None:
    """Raise if writing to a file would harm the site, or replace a file that may not be replaced."""
    if out.resolve().is_relative_to(folder.resolve()):
        raise StudyError(
            problem=f"{out} is in the site's folder, which holds its policy, keys and ledger",
            hint="name a file in another folder.",
        )
    if out.exists() and not (overwrite and out.is_file()):
        raise StudyError(
            problem=f"{out} exists already",
            hint="name another file, or replace an earlier file of this command with --overwrite.",
        )


def _request(file: Path) -> str:
    """Read a signed request from a file. The site checks the signature."""
    text = read_bounded(file)
    try:
        Request.from_json(claimed_body(parted(text)[0]))
    except TransportError as error:
        raise StudyError(
            problem=f"{error.problem}, in {file}",
            hint=f"use the unchanged file that ends in .request.json; {error.hint}",
        ) from None
    return text


# Advice for each code, printed at the site only.
_REMEDIES: dict["Code", str] = {
    "unreadable": "run the same version of dpcausal as the coordinator.",
    "unknown_requester": "add the study's requester to [requesters] in policy.toml, with the key that dpcausal "
    "federation key prints at the coordinator, and confirm it with dpcausal site confirm.",
    "undecided": "review the study with: {review}, then approve or reject it, and answer again. A study that was "
    "changed after its approval is a new study, and approvals may have expired. After a restore or an edit of the "
    "policy: dpcausal site status says what must be confirmed.",
    "rejected": "dpcausal site audit-log shows who rejected it; that person may approve it later.",
    "not_allowed": "see what the policy does not allow with: {review}.",
    "too_few_units": "the table has fewer units than minimum_units in policy.toml.",
    "no_budget": "dpcausal ledger show prints what was spent; a budget cannot be raised.",
    "failed": "check the table and the ledger with: {review}.",
    "stopped": "raise seconds or memory in policy.toml, confirm it with dpcausal site confirm, and answer again.",
    "expired": "its deadline is over: the coordinator asks again with a new one. Is the clock of this machine right?",
    "withdrawn": "its requester withdrew the study: there is nothing to do.",
    "refused_step": "this site answers each round of a secure sum once, for sites whose keys the study lists; a new "
    "attempt needs a new study text.",
}
