"""What `dpcausal experiment watch` reads: experiments, their ledgers and their last scorecards."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dpcausal.cli.options import ledger_address, open_ledger
from dpcausal.errors import DpcausalError, LedgerError, StudyError
from dpcausal.experiment.watch import Watched, watch_document, watch_page
from dpcausal.release import Receipt

if TYPE_CHECKING:
    from dpcausal.experiment import Experiment
    from dpcausal.ledger import Ledger


def watched(
    folder: Path,
    ledgers: Mapping[str, str],
    databases: Sequence[str],
    read: Callable[[Path], "Experiment"],
    beside: Path,
) -> tuple[Watched, ...]:
    """Return the state of every experiment in a folder, by the names of their files; pages as links from `beside`.

    Args:
        ledgers: Where ledgers are, by the names of the experiments' files.
        databases: Where populations are. Their experiments' ledgers are found by name.
    """
    files = sorted(file for file in folder.glob("*.toml") if _is_experiment(file))
    if strange := set(ledgers) - {file.stem for file in files}:
        raise StudyError(
            problem=f"There is no experiment in {folder} named {', '.join(sorted(strange))}",
            hint="name the experiment's file without .toml.",
        )
    if not files:
        raise StudyError(
            problem=f"{folder} holds no file of an experiment",
            hint="write one with: dpcausal experiment init TABLE.",
        )
    named = _named_ledgers(databases) if databases else None

    def place_of(file: Path, name: str) -> str:
        own = file.with_suffix(".db")
        if file.stem in ledgers or named is None or (own.exists() and not {name, file.stem} & named.keys()):
            return ledgers.get(file.stem) or str(own)
        return _only(named, name if name in named else file.stem)

    return tuple(_state(file, place_of, read, beside) for file in files)


def _named_ledgers(databases: Sequence[str]) -> dict[str, list[str]]:
    """Return the addresses of the ledgers in some databases, by the names of their experiments."""
    from dpcausal.ledger.store import NAMED_ENTRIES, Store, named  # noqa: PLC0415 (slow to load)

    found: dict[str, list[str]] = {}
    for address in map(ledger_address, databases):
        store, names = Store(address), list[str]()
        if not store.is_absent:  # a connection would create the file
            with store.exclusive() as connection:
                if connection.dialect.has_table(connection, NAMED_ENTRIES.name):
                    names = list(
                        connection.execute(
                            NAMED_ENTRIES.select().with_only_columns(NAMED_ENTRIES.c.ledger).distinct()
                        ).scalars()
                    )
        if not names:
            raise LedgerError(
                problem=f"There is no population at {store.address}",
                hint="for the ledger of one experiment, write its name first: --ledger checkout=ADDRESS.",
            )
        for name in sorted(names):
            population, _, experiment = name.partition("/")
            if experiment:
                found.setdefault(experiment, []).append(named(address, f"{population}/{experiment}"))
    return found


def _only(ledgers: Mapping[str, Sequence[str]], name: str) -> str:
    """Return the address of the one ledger of this name."""
    found = ledgers.get(name, ())
    if len(found) != 1:
        raise LedgerError(
            problem=f"The populations have {'no ledger' if not found else f'{len(found)} ledgers'} named {name}; they "
            f"have {', '.join(sorted(ledgers)) or 'none of an experiment'}",
            hint=f"name it: --ledger {name}=ADDRESS, with the address that allocate printed.",
        )
    return found[0]


def _is_experiment(file: Path) -> bool:
    """Return whether a file describes an experiment, and no study or catalogue; also where it cannot be read.

    An experiment with a slip in its file is shown with what is wrong. Left out, it would be missed by nobody.
    """
    try:
        document = tomllib.loads(file.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return True
    return isinstance(document.get("metrics"), list) or "treatment" in document


def _state(
    file: Path, place_of: Callable[[Path, str], str], read: Callable[[Path], "Experiment"], beside: Path
) -> Watched:
    name, looks = file.stem, None
    try:
        experiment = read(file)
        name, looks = experiment.name, len(experiment.cohorts.values) if experiment.cohorts else None
        ledger = open_ledger(place_of(file, name))
        card = _scorecard(file.with_suffix(".json"), name, ledger)
        spent, budget = ledger.spent, ledger.budget
    except DpcausalError as error:
        return Watched(file=file.name, name=name, looks=looks, problem=str(error).partition("\n")[0])
    return Watched(
        file=file.name,
        name=name,
        question=experiment.question,
        looks=looks,
        metrics=len(experiment.metrics),
        spent=spent.epsilon,
        budget=budget.epsilon,
        delta=budget.delta,
        scorecard=card,
        page=_link(file.with_suffix(".html"), beside) if file.with_suffix(".html").exists() else "",
    )


def _link(page: Path, beside: Path) -> str:
    """Return the address of a page as a file in a folder names it."""
    return quote(Path(os.path.relpath(page.absolute(), beside.absolute())).as_posix())


def _scorecard(file: Path, name: str, ledger: "Ledger") -> dict[str, Any] | None:
    """Return the last scorecard of an experiment, if its ledger paid for it; None where there is none yet."""
    if not file.exists():
        return None
    try:
        card = json.loads(file.read_bytes().decode())
        receipt = Receipt(**card["receipt"])
        is_of = card["name"] == name
        shown = [Watched(file=file.name, name=name, scorecard=card)]
        _ = watch_document(shown), watch_page(shown)  # these read all that is shown of it
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            problem=f"{file.name} is not a scorecard that dpcausal wrote ({type(error).__name__})",
            hint="run the experiment again: answered looks cost nothing.",
        ) from None
    if not is_of or receipt.entry is None or ledger.check_receipts([receipt]):
        raise StudyError(
            problem=f"The scorecard in {file.name} was not paid for by this experiment's ledger",
            hint="run the experiment again: answered looks cost nothing.",
        )
    return dict(card)
