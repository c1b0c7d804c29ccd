"""Options and arguments shared by several commands."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpcausal.errors import LedgerError, StudyError

if TYPE_CHECKING:
    from dpcausal.ledger import Ledger
    from dpcausal.study.study import Study

StudyFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The study file, for example study.toml.")]
LedgerAddress = Annotated[str, typer.Argument(help="The ledger: a file such as ledger.db, or postgresql+psycopg://…")]
WitnessAddress = Annotated[
    str,
    typer.Option("--witness", help="The ledger's witness: a file such as witness.log or witness.db, or an address."),
]
TableAddress = Annotated[
    str, typer.Option("--table", help="A .parquet or .csv file, warehouse.duckdb#visits, postgresql://…#visits.")
]
AsOf = Annotated[str, typer.Option("--as-of", help="The version of the data: a date or a name. It is public.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_FILE = "sqlite:///"


def read_study(file: Path) -> "Study":
    """Read a completed study file."""
    from dpcausal.study.study import Study  # noqa: PLC0415 (slow to load)

    try:
        text = file.read_bytes().decode()  # the exact text: sites approve its digest
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            problem=f"{file} cannot be read as a study file in UTF-8 ({type(error).__name__})",
            hint="create one with: dpcausal init TABLE.",
        ) from None
    try:
        return Study.from_toml(text)
    except StudyError as error:
        if file.suffix == ".toml":
            raise
        raise StudyError(
            problem=f"{file} is not a study ({error.problem})", hint="create one with: dpcausal init TABLE."
        ) from None


def ledger_address(place: str) -> str:
    """Return the address of a ledger that was given as an address or as a file name."""
    address = place if "://" in place else f"{_FILE}{place}"
    if not address.removeprefix(_FILE) or address == "sqlite://" or ":memory:" in address:
        raise LedgerError(
            problem=f"The ledger {place!r} is in memory, where the next command does not find it",
            hint="name a file, for example ledger.db.",
        )
    return address


def open_ledger(place: str, witness: str = "") -> "Ledger":
    """Open an existing ledger, and create none."""
    from dpcausal.ledger import Ledger  # noqa: PLC0415 (slow to load)

    return Ledger(ledger_address(place), witness=witness_address(witness))


def witness_address(place: str) -> str | None:
    """Return the address of a witness that was given as an address or as a file name; None if none was given."""
    return (place if "://" in place or place.endswith(".log") else f"{_FILE}{place}") if place else None


def print_table(headings: Iterable[str], lines: Iterable[Iterable[object]], width: int | None = None) -> None:
    """Print a table, line by line; nothing in a cell is read as markup."""
    table = Table(*headings)
    for line in lines:
        table.add_row(*(Text(str(cell)) for cell in line))
    Console(width=width).print(table)


def count_of(number: int, thing: str, things: str = "") -> str:
    """Return a count with its noun in singular or plural."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"
