"""`dpcausal site approve`, `reject`, `people` and `create-person-key`: people decide, and sign with their own keys."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dpcausal.cli.requirements import ask_to_confirm
from dpcausal.cli.site import Folder, Sign, account, changes_of, check_out, open_site
from dpcausal.errors import StudyError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.people import Person, nobody

if TYPE_CHECKING:
    from dpcausal.federation.site.decisions import DecisionKind
    from dpcausal.federation.site.people import Role

Digest = Annotated[str, typer.Argument(help="The whole digest of the study, as the review shows it.")]
KeyFile = Annotated[Path, typer.Option("--key", exists=True, dir_okay=False, help="The file of your own key.")]
Why = Annotated[str, typer.Option(help="Your reason, for the audit log.")]
By = Annotated[str, typer.Option(help="Your name, for the audit log; otherwise that of your account.")]
Yes = Annotated[bool, typer.Option("--yes", help="Decide without confirmation, in a script.")]

people = typer.Typer(name="people", no_args_is_help=True, help="List, add and remove the people of a site.")


def add_decision_commands(site: typer.Typer) -> None:
    """Add the commands to those of a site."""
    site.command()(approve)
    site.command()(reject)
    site.command("create-person-key")(create_person_key)
    site.command("person-key")(person_key)
    site.command("export")(export)
    site.add_typer(people)


def approve(folder: Folder, digest: Digest, key: KeyFile, why: Why = "", *, yes: Yes = False) -> None:
    """Show a study, ask for confirmation, and approve it with your own key."""
    decided, status = _decide(folder, digest, "approve", key, why, yes=yes)
    typer.echo(f"Approved {decided}. Status: {status}.")


def reject(folder: Folder, digest: Digest, key: KeyFile, why: Why = "", *, yes: Yes = False) -> None:
    """Show a study, ask for confirmation, and reject it. One rejection is enough; you may approve the study later."""
    decided, status = _decide(folder, digest, "reject", key, why, yes=yes)
    typer.echo(f"Rejected {decided}. Status: {status}.")


def create_person_key(
    file: Annotated[Path, typer.Argument(dir_okay=False, help="The file to create, outside the site's folder.")],
) -> None:
    """Create your own key, which signs your decisions, and print its public part."""
    if file.exists():
        raise StudyError(problem=f"{file} exists already", hint="name another file.")
    public = Key.make("", file).public
    typer.echo(f"Created {file}. Keep it to yourself, where nobody else at the site can read it.")
    typer.echo(f"Public key, for whoever runs dpcausal site people add:\n{public}")


def person_key(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file of your own key.")],
) -> None:
    """Print the public part of your own key, for the site's list of people."""
    typer.echo(Key.read("", file).public)


def export(
    folder: Folder,
    form: Annotated[str, typer.Option("--format", help="jsonl or csv.")],
    out: Annotated[Path, typer.Option(help="The file to write, outside the site's folder.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Export the audit log, each answer with its price in the ledger and its receipts. Both are verified."""
    opened = open_site(folder)
    from dpcausal.federation.site.export import FORMATS, exported  # noqa: PLC0415 (slow to load)

    if form not in FORMATS:
        raise StudyError(expected=f"a format: {', '.join(FORMATS)}", got=repr(form), hint="correct --format.")
    check_out(out, folder, overwrite=overwrite)
    out.write_bytes(exported(opened, form))
    typer.echo(f"Wrote {out}.")


@people.command("list")
def list_people(folder: Folder) -> None:
    """List the people of a site, with their roles."""
    found = open_site(folder).people.people
    for person in found:
        typer.echo(str(person))
    if not found:
        typer.echo(
            "Nobody can decide here yet. Add a person with: "
            f"dpcausal site people add {quote(str(folder))} NAME --role …"
        )


@people.command("add")
def add(  # noqa: PLR0913, PLR0917 (options of a command)
    folder: Folder,
    name: Annotated[str, typer.Argument(help="The person's name.")],
    role: Annotated[list[str], typer.Option(help="reader, approver or operator; may be given several times.")],
    key: Annotated[str, typer.Option(help="The public key that dpcausal site create-person-key printed.")] = "",
    login: Annotated[str, typer.Option(help="The subject of the person's login at the site's console.")] = "",
    by: By = "",
    sign: Sign = None,
) -> None:
    """Add a person, who may then read, decide or operate as the roles say."""
    roles = tuple(cast("Role", each) for each in dict.fromkeys(role))  # `Person` checks them
    person = Person(name, roles, key=key, login=login)
    open_site(folder)
    changes_of(folder, sign).add_person(person, by or account())
    typer.echo(f"Added {person.name} as {', '.join(person.roles)}.")


@people.command("remove")
def remove(
    folder: Folder, name: Annotated[str, typer.Argument(help="The person's name.")], by: By = "", sign: Sign = None
) -> None:
    """Remove a person, whose approvals then count no more. The person's rejections stay."""
    open_site(folder)
    person = changes_of(folder, sign).remove_person(name, by or account())
    typer.echo(f"Removed {person.name}.")


def _decide(  # noqa: PLR0913 (what a decision consists of)
    folder: Path, digest: str, kind: "DecisionKind", key_file: Path, why: str, *, yes: bool
) -> tuple[str, str]:
    """Show a study, ask, sign and record; return the study's digest and its status."""
    opened = open_site(folder)
    from dpcausal.federation.site.decisions import sign_decision  # noqa: PLC0415

    key = Key.read("", key_file)
    person = opened.people.with_key(key.public)
    if person is None:
        raise nobody(opened.people)
    review = opened.review(digest)
    typer.echo(f"{review}\n")
    if kind == "approve" and review.consequences and review.consequences.warning:
        typer.echo(f"Warning: {review.consequences.warning}.\n", err=True)
    question = f"{kind.capitalize()} this study, digest {review.digest}, as {person.name}?"
    ask_to_confirm(question, "Nothing was decided", yes=yes)
    site = opened.policy.site
    mapping = review.policy.mapping.digest
    opened.decide(
        sign_decision(key, site=site, study=review.digest, kind=kind, by=person.name, why=why, mapping=mapping)
    )
    status, needed = opened.status(review.digest), opened.policy.approvals
    more = f": {needed} approvals by different people are needed" if kind == "approve" and status == "undecided" else ""
    return review.digest, f"{status}{more}"
