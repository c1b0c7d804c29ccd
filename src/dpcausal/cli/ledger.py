"""`dpcausal ledger`: create a ledger, show what was spent, verify it and restore it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.options import (
    AsJson,
    AsOf,
    LedgerAddress,
    WitnessAddress,
    count_of,
    ledger_address,
    open_ledger,
    print_table,
    witness_address,
)
from dpcausal.errors import LedgerError, StudyError

if TYPE_CHECKING:
    from dpcausal.release import Receipt
    from dpcausal.report.ledger_summary import LedgerSummary

ledger = typer.Typer(
    name="ledger", no_args_is_help=True, help="Create a ledger, and see what was spent on a table and what is left."
)

_WIDTH = 140

Files = Annotated[
    list[Path], typer.Argument(exists=True, dir_okay=False, help="Effects or releases, as JSON files with receipts.")
]


@ledger.command()
def create(  # noqa: PLR0913, PLR0917
    place: LedgerAddress,
    epsilon: Annotated[float, typer.Option(help="The total budget. It cannot be raised later.")],
    as_of: AsOf,
    delta: Annotated[float, typer.Option(help="Its delta. It cannot be raised later.")] = 0.0,
    rule: Annotated[str, typer.Option(help="How spending adds up: additive or zcdp.")] = "additive",
    witness: WitnessAddress = "",
) -> None:
    """Create the ledger of a table that was never queried before. Its budget is final."""
    from dpcausal.ledger import Budget, Ledger  # noqa: PLC0415 (slow to load)

    budget = Budget(epsilon=epsilon, delta=delta, rule=rule)  # type: ignore[arg-type]
    made = Ledger.create(ledger_address(place), budget, as_of=as_of, witness=witness_address(witness))
    typer.echo(f"Created {made.address} for data as of {as_of}, with a budget of {budget}.")
    if witness:
        typer.echo("It works only together with its witness: store the two apart, and name both.")


@ledger.command("add-version")
def add_version(place: LedgerAddress, as_of: AsOf, witness: WitnessAddress = "") -> None:
    """Declare a new version of the data. The budget stays the same: spending on all versions adds up."""
    opened = open_ledger(place, witness)
    opened.add_version(as_of)
    typer.echo(f"{opened.address} now has data as of {as_of}. Remaining budget: {opened.remaining}.")


@ledger.command()
def show(place: LedgerAddress, as_json: AsJson = False, witness: WitnessAddress = "") -> None:
    """Show what was spent, on what and when, and what is left. All entries are verified."""
    spent = _read(place, witness)
    if as_json:
        document = {name: value for name, value in asdict(spent).items() if name != "receipts_found"}
        typer.echo(json.dumps(document, allow_nan=False))
        return
    named = any(payment.study for payment in spent.payments)
    lines = [(each.at, each.query, f"{each.epsilon:g}", f"{each.delta:g}", each.study) for each in spent.payments]
    if lines:  # a digest is shown whole, on however narrow a terminal
        columns = ("when", "query", "epsilon", "delta", "study")[: 5 if named else 4]
        print_table(columns, (line[: len(columns)] for line in lines), _WIDTH if named else None)
    for label, words in (
        ("data set", spent.data_set),
        *(("version", version) for version in spent.versions),
        ("budget", str(spent.budget)),
        ("spent", str(spent.total)),
        ("left", str(spent.remaining)),
        *(("restored", restored) for restored in spent.restores),
    ):
        typer.echo(f"{label:<10}{words}")


@ledger.command()
def verify(place: LedgerAddress, as_json: AsJson = False, witness: WitnessAddress = "") -> None:
    """Verify all entries from the first to the last. Exit status 1 if one was changed, removed or inserted.

    Entries that are dated back by more than a day are named: a clock was wrong, or a date is false.
    """
    try:
        spent = _read(place, witness)
    except LedgerError as error:
        if _is_absent(place):
            raise
        typer.echo(json.dumps({"intact": False, "why": str(error)}) if as_json else f"Error: {error}", err=not as_json)
        raise typer.Exit(1) from None
    if as_json:
        found = {"entries": spent.entries, "opening": spent.opening, "head": spent.head, "dated_back": spent.dated_back}
        typer.echo(json.dumps({"intact": True, **found}))
        return
    for number in spent.dated_back:
        typer.echo(f"Entry {number} is dated more than a day before an entry before it: was the clock wrong?")
    typer.echo(f"Intact: {count_of(spent.entries, 'entry', 'entries')}, the last of which is {spent.head}.")
    typer.echo(
        "Note this digest, or use a witness: if a later check does not find this entry, the ledger was truncated."
    )


@ledger.command("check-receipts")
def check_receipts(
    place: LedgerAddress,
    files: Files,
    site: Annotated[str, typer.Option(help="For an effect of several sites: check only this site's receipts.")] = "",
    witness: WitnessAddress = "",
) -> None:
    """Check that a ledger holds the receipts of effects or releases. Exit status 1 if one is missing."""
    receipts = [receipt for file in files for receipt in _receipts_in(file) if receipt.entry is not None]
    receipts = [receipt for receipt in receipts if not site or receipt.site == site]
    opened = open_ledger(place, witness)
    missing = opened.check_receipts(receipts)
    for receipt in missing:
        typer.echo(f"Missing: {receipt.query}, entry {receipt.entry}, {receipt.digest}", err=True)
    if missing:
        typer.echo(
            f"{opened.address} does not hold {len(missing)} of {count_of(len(receipts), 'receipt')}: this ledger was "
            "truncated, restored from a copy, or is another one.\n\nHint: release nothing from it. Find the right one, "
            "or record what is lost with: dpcausal ledger restore.",
            err=True,
        )
        raise typer.Exit(1)
    typer.echo(f"{opened.address} holds all of {count_of(len(receipts), 'receipt')}.")


@ledger.command()
def restore(  # noqa: PLR0913, PLR0917
    place: LedgerAddress,
    by: Annotated[str, typer.Option(help="Who decides this: your name, as the ledger will record it.")],
    reason: Annotated[str, typer.Option(help="Why, for the ledger.")],
    copy: Annotated[str, typer.Option("--from", help="The older copy; leave it out if it is in place already.")] = "",
    receipts: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="An effect or a release, as JSON. Repeatable."),
    ] = None,
    lost_epsilon: Annotated[
        float | None, typer.Option(help="The largest total epsilon of lost answers without a receipt.")
    ] = None,
    lost_delta: Annotated[float, typer.Option(help="Their largest total delta.")] = 0.0,
    witness: WitnessAddress = "",
) -> None:
    """Restore an older copy of a ledger, on purpose. What may be spent twice is recorded and counted."""
    from dpcausal.ledger import Ledger  # noqa: PLC0415 (slow to load)

    restored = Ledger.restore(
        ledger_address(place),
        by=by,
        reason=reason,
        copy=ledger_address(copy) if copy else None,
        witness=witness_address(witness),
        receipts=[receipt for file in receipts or () for receipt in _receipts_in(file)],
        lost_epsilon=lost_epsilon,
        lost_delta=lost_delta,
    )
    typer.echo(f"Restored {restored.address}. Spent: {restored.spent}. Remaining: {restored.remaining}.")
    typer.echo("To see what was counted as spent once more: dpcausal ledger show.")


def _receipts_in(file: Path) -> "tuple[Receipt, ...]":
    from dpcausal.release import receipts_in  # noqa: PLC0415 (slow to load)

    try:
        return receipts_in(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise StudyError(
            problem=f"{file} is not an effect, a diagnosis or a release as dpcausal writes it ({type(error).__name__})",
            hint="give the file that dpcausal run wrote, or what to_json() gives in Python.",
        ) from None


def _is_absent(place: str) -> bool:
    from dpcausal.ledger.store import Store  # noqa: PLC0415 (slow to load)

    return Store(ledger_address(place)).is_absent


def _read(place: str, witness: str) -> "LedgerSummary":
    from dpcausal.report.ledger_summary import LedgerSummary  # noqa: PLC0415 (slow to load)

    return LedgerSummary.of(open_ledger(place, witness))
