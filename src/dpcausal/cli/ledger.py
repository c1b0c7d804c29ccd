"""`dpcausal ledger`: what was spent on a table, and whether the book that says so is whole."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from dpcausal.cli.reading import AsJson, LedgerPlace, counted, is_absent, ledger_address, open_ledger
from dpcausal.errors import LedgerError

if TYPE_CHECKING:
    from dpcausal.report.spent import Spent

ledger = typer.Typer(name="ledger", no_args_is_help=True, help="See what was spent on a table, and what is left.")


@ledger.command()
def show(place: LedgerPlace, as_json: AsJson = False) -> None:
    """What was spent, on what and when, and what is left. All entries are verified on the way."""
    spent = _read(place)
    if as_json:
        document = {name: value for name, value in asdict(spent).items() if name != "found"}
        typer.echo(json.dumps(document, allow_nan=False))
        return
    table = Table("when", "question", "epsilon", "delta")
    for payment in spent.payments:
        table.add_row(f"{payment.when:%Y-%m-%d %H:%M}", payment.query, f"{payment.epsilon:g}", f"{payment.delta:g}")
    if spent.payments:
        Console().print(table)
    unproved = "" if spent.standing == "proved" else " (a part of it without proof)"
    for label, words in (
        ("data set", spent.data_set),
        ("budget", str(spent.budget)),
        ("spent", f"{spent.total}{unproved}"),
        ("left", str(spent.left)),
    ):
        typer.echo(f"{label:<10}{words}")


@ledger.command()
def verify(place: LedgerPlace, as_json: AsJson = False) -> None:
    """Walk through all entries from the first to the last. Exits with 1 if one was changed, removed or put in."""
    try:
        spent = _read(place)
    except LedgerError as error:
        if is_absent(ledger_address(place)):
            raise
        typer.echo(json.dumps({"whole": False, "why": str(error)}) if as_json else f"Error: {error}", err=not as_json)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps({"whole": True, "entries": spent.entries, "opening": spent.opening, "head": spent.head}))
        return
    typer.echo(f"Whole: {counted(spent.entries, 'entry', 'entries')}, the last of which is {spent.head}.")
    typer.echo("Write that down: a later look must still find this entry, or entries were cut off the end.")


def _read(place: str) -> "Spent":
    from dpcausal.report.spent import Spent  # noqa: PLC0415 (slow to load)

    return Spent.of(open_ledger(place))
