"""What several commands read: a study's file, and where a ledger is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.errors import LedgerError, StudyError

if TYPE_CHECKING:
    from dpcausal.ledger import Ledger
    from dpcausal.study import Study

StudyFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The study's file, such as study.toml.")]
LedgerAddress = Annotated[str, typer.Argument(help="The ledger: a file such as ledger.db, or postgresql+psycopg://…")]
WitnessAddress = Annotated[
    str,
    typer.Option("--witness", help="The ledger's witness: a file such as witness.log or witness.db, or an address."),
]
AsOf = Annotated[str, typer.Option("--as-of", help="Which version of the data this is: a date or a name, public.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_FILE = "sqlite:///"


def read_study(file: Path) -> "Study":
    """The study in a file, all of it filled in."""
    from dpcausal.study import Study  # noqa: PLC0415 (slow to load)

    try:
        text = file.read_bytes().decode()  # to the letter: its digest is what sites approve
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            expected="a study's file, as UTF-8 text",
            got=f"{file} ({type(error).__name__})",
            hint="make one with: dpcausal init TABLE.",
        ) from None
    return Study.from_toml(text)


def ledger_address(place: str) -> str:
    """The address of a ledger that was given as one, or as a file's name."""
    address = place if "://" in place else f"{_FILE}{place}"
    if not address.removeprefix(_FILE) or address == "sqlite://" or ":memory:" in address:
        raise LedgerError(
            expected="a ledger that outlives this command",
            got=f"{place!r}, which would be one in memory",
            hint="name a file, for instance ledger.db.",
        )
    return address


def open_ledger(place: str, witness: str = "") -> "Ledger":
    """A ledger that is there: looking for one does not make one."""
    from dpcausal.ledger import Ledger  # noqa: PLC0415 (slow to load)

    return Ledger(ledger_address(place), witness=witness_address(witness))


def witness_address(place: str) -> str | None:
    """Where a witness is that was given as an address or as a file's name; None where none was."""
    return (place if "://" in place or place.endswith(".log") else f"{_FILE}{place}") if place else None


def count_of(number: int, thing: str, things: str = "") -> str:
    """A number of things, in words."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def total_price(study: "Study") -> str:
    """What a study costs with all that must not fail before its effect is asked for."""
    return f"epsilon {study.total_epsilon():g}, delta {study.delta:g}"
