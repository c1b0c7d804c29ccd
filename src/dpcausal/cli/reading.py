"""What several commands read: a study's file, and where a ledger is."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.errors import LedgerError, StudyError

if TYPE_CHECKING:
    from dpcausal.ledger import Ledger
    from dpcausal.study import Study

StudyFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The study's file, such as study.toml.")]
LedgerPlace = Annotated[str, typer.Argument(help="The ledger: a file such as ledger.db, or postgresql+psycopg://…")]
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


def open_ledger(place: str) -> "Ledger":
    """A ledger that is there: looking for one must not make an empty one."""
    from dpcausal.ledger import Ledger  # noqa: PLC0415 (slow to load)

    address = ledger_address(place)
    if is_absent(address):
        raise LedgerError(expected="a ledger", got=f"no file {place}", hint="check its name and the working folder.")
    return Ledger(address)


def counted(number: int, thing: str, things: str = "") -> str:
    """A number of things, in words."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def price_in_all(study: "Study") -> str:
    """What a study costs with all that must not fail before its effect is asked for."""
    epsilon = math.fsum([study.epsilon, *(epsilon for _, epsilon in study.diagnostics().values())])
    return f"epsilon {epsilon:g}, delta {study.delta:g}"


def is_absent(address: str) -> bool:
    """Whether a ledger would be in a file that is not there. Of a server nobody knows before it is asked."""
    return address.startswith(_FILE) and not Path(address.removeprefix(_FILE)).is_file()


def is_new(address: str) -> bool:
    """Whether no ledger was ever opened at an address at which one could be. Looking makes none."""
    from dpcausal.ledger.store import Store  # noqa: PLC0415 (slow to load)

    if is_absent(address):
        folder = Path(address.removeprefix(_FILE)).absolute().parent
        if not folder.is_dir():
            raise LedgerError(
                expected="a folder for the new ledger", got=f"no {folder}", hint="make it, or name another."
            )
        return True
    store = Store(address)
    with store.exclusive() as connection:
        return not store.exists(connection)
