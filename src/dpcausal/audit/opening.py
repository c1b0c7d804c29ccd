"""Opening a table tells of no record: not by an error, an exit code, a printed or logged line, or a file."""

import contextlib
import csv
import gzip
import io
import itertools
import json
import logging
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.audit.finding import Finding
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.ledger import Budget, Ledger
from dpcausal.schema.columns import Binary, Category, Column, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.study.study import Study
from dpcausal.vault import Vault

Record = Mapping[str, Any]

_BUDGET = Budget(epsilon=3.0)
_VERSION = "2026-06-30"
_WARDS = ("a", "b", "c")


def _record(place: int, **others: Any) -> Record:  # noqa: ANN401 (cells are of any type)
    cells = {"who": f"p{place:02}", "treat": place % 2, "score": float(place % 11), "ward": _WARDS[place % 3]}
    return cells | {"age": 30.0 + place, "smoker": ("no", "yes")[place % 2], "note": "none"} | others


RECORDS = tuple(_record(place) for place in range(12))

CHANGES: tuple[tuple[int, Record], ...] = (
    (0, _record(0, treat=1, score=10.0, ward="b", age=88.0, smoker="yes", note="HIV")),
    (11, _record(11, who="p99", treat=None, score=None, ward=None, age=None, smoker=None, note=None)),
    (5, _record(5, treat=7, score=-1e308, ward="z", age=1e308, smoker="?", note="1,5; 7")),
)
"""Which record is replaced, and by what."""


def neighbours(opening: "Opening") -> tuple[list[Record], list[Record]]:
    """Return two tables that differ in one record, as far as the schema lets neighbours differ."""
    (place, other), schema = CHANGES[opening.change], _schemas()[opening.schema]
    kept = {name: RECORDS[place][name] for name in schema.public_columns}
    if schema.unit is not None and opening.schema not in _NEEDS_ITS_LEDGER:
        kept[schema.unit.name] = RECORDS[place][schema.unit.name]
    return list(RECORDS), [dict(other) | kept if at == place else each for at, each in enumerate(RECORDS)]


# The forms in which a table may be stored.

Form = Callable[[Sequence[Record], Path], object]
"""From records and a folder to what a vault is given."""


def _arrow(records: Sequence[Record], _: Path) -> pa.Table:
    numbers = ("treat", "score", "age")
    kinds = {name: pa.float64() if name in numbers else pa.string() for name in RECORDS[0]}
    return pa.table({name: pa.array([each[name] for each in records], kind) for name, kind in kinds.items()})


def _lines(records: Sequence[Record], header: Sequence[str] | None, separator: str = ",") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    if header is not None:
        writer.writerow(header)
    writer.writerows(each.values() for each in records)
    return text.getvalue()


def _file(name: str, content: Callable[[Sequence[Record], Path], bytes]) -> Form:
    def form(records: Sequence[Record], folder: Path) -> str:
        (folder / name).write_bytes(content(records, folder))
        return str(folder / name)

    return form


def _csv(header: Sequence[str] | None, separator: str = ",") -> Callable[[Sequence[Record], Path], bytes]:
    return lambda records, _: _lines(records, header, separator).encode()


def _parquet(records: Sequence[Record], folder: Path) -> bytes:
    pq.write_table(_arrow(records, folder), folder / "made.parquet")
    made = (folder / "made.parquet").read_bytes()
    (folder / "made.parquet").unlink()
    return made


def _cut_off(records: Sequence[Record], _: Path) -> bytes:
    *whole, last = _lines(records, _NAMES).encode().splitlines(keepends=True)
    return b"".join([*whole, last[:5]])


_NAMES = list(RECORDS[0])
_TWICE = [*_NAMES[:-1], "score"]
_FORMS: dict[str, Form] = {
    "a frame": _arrow,
    "parquet": _file("table.parquet", _parquet),
    "parquet, cut off": _file("table.parquet", lambda records, folder: _parquet(records, folder)[:-40]),
    "parquet, called csv": _file("table.csv", _parquet),
    "csv": _file("table.csv", _csv(_NAMES)),
    "csv, compressed": _file(
        "table.csv.gz", lambda records, _: gzip.compress(_lines(records, _NAMES).encode(), mtime=0)
    ),
    "csv, compressed and cut off": _file(
        "table.csv.gz", lambda records, _: gzip.compress(_lines(records, _NAMES).encode(), mtime=0)[:60]
    ),
    "csv without a header": _file("table.csv", _csv(None)),
    "csv with a declared column twice": _file("table.csv", _csv(_TWICE)),
    "csv with an undeclared column twice": _file("table.csv", _csv([*_NAMES[:-2], "note", "note"])),
    "csv in capitals": _file("table.csv", _csv([name.upper() for name in _NAMES])),
    "csv with semicolons": _file("table.csv", _csv(_NAMES, ";")),
    "csv without a header, with semicolons": _file("table.csv", _csv(None, ";")),
    "csv, its last line cut off": _file("table.csv", _cut_off),
    "csv with a short header": _file("table.csv", _csv(_NAMES[:4])),
    "csv, called parquet": _file("table.parquet", _csv(_NAMES)),
    "an empty file": _file("table.csv", lambda _, __: b""),
    "no file": lambda _, folder: str(folder / "absent.csv"),
}


# What may be declared.


def _schemas() -> dict[str, Schema]:
    covariates: tuple[Column, ...] = (Category("ward", _WARDS), Real("age", 18, 90))
    usual = Schema(Treatment("treat"), Real("score", 0, 10), covariates)
    three = Treatment("ward", arms=_WARDS, compare="b")
    return {
        "as first declared": usual,
        "other covariates": replace(usual, covariates=[Binary("smoker", values=("no", "yes"))]),
        "other bounds": replace(usual, outcome=Real("score", -5, 50)),
        "three arms": replace(usual, treatment=three, covariates=[Real("age", 18, 90)]),
        "undeclared arms are control": replace(usual, treatment=Treatment("treat", undeclared=0)),
        "arms of text": replace(usual, treatment=Treatment("smoker", arms=("no", "yes"))),
        "numbers declared as text": replace(usual, treatment=Treatment("treat", arms=("no", "yes"))),
        "text declared as a number": replace(usual, outcome=Real("note", 0, 1)),
        "an outcome of another column": replace(usual, outcome=Binary("smoker", values=("no", "yes"))),
        "a column that is absent": replace(usual, outcome=Real("salary", 0, 1)),
        "a name in capitals": replace(usual, outcome=Real("Score", 0, 10)),
        "public arms": replace(usual, protects="record_within_arm"),
        "public covariates": replace(usual, protects="outcome"),
        "people as units": replace(usual, unit=Unit("who", by="age")),
        "a diagnosis as unit": replace(usual, unit=Unit("note", by="age")),
        "another column as unit": replace(usual, unit=Unit("smoker", by="score")),
    }


_NEEDS_ITS_LEDGER = ("a diagnosis as unit", "another column as unit")
"""Schemas under which the tables are not neighbours: a ledger that is bound to another unit must refuse them unread."""


# In which state a ledger may be.

Prepared = Callable[[Path], dict[str, Any]]
"""Prepares a ledger in a folder, and gives what a vault is opened with."""


def _bound(folder: Path) -> dict[str, Any]:
    options = _created(folder)
    Vault(_arrow(RECORDS, folder), _schemas()["as first declared"], **options)
    return options


def _created(folder: Path) -> dict[str, Any]:
    address = f"sqlite:///{folder / 'ledger.db'}"
    Ledger.create(address, _BUDGET, as_of=_VERSION)
    return {"ledger": address, "as_of": _VERSION}


def _absent(folder: Path) -> dict[str, Any]:
    return {"ledger": f"sqlite:///{folder / 'ledger.db'}", "as_of": _VERSION}


def _empty(folder: Path) -> dict[str, Any]:
    (folder / "ledger.db").touch()
    return _absent(folder)


_LEDGERS: dict[str, Prepared] = {
    "bound to the table": _bound,
    "created": _created,
    "absent": _absent,
    "an empty file": _empty,
    "bound, another version asked for": lambda folder: _bound(folder) | {"as_of": "2026-09-30"},
    "bound, another budget given": lambda folder: _bound(folder) | {"budget": Budget(epsilon=2.0)},
    "bound, on a full disk": _bound,
    "created, on a full disk": _created,
    "in memory": lambda _: {"ledger": "sqlite://", "budget": _BUDGET},
}


@dataclass(frozen=True)
class Opening:
    """One way to open a table, by the names of its parts."""

    form: str
    schema: str
    ledger: str
    change: int

    def __str__(self) -> str:
        return f"{self.form}; {self.schema}; ledger {self.ledger}; change {self.change}"


def openings() -> list[Opening]:
    """Return every combination in which the two tables are neighbours, or must be refused unread."""
    combined = itertools.product(_FORMS, _schemas(), _LEDGERS, range(len(CHANGES)))
    every = itertools.starmap(Opening, combined)
    refused = ("bound", "absent", "an empty")
    return [each for each in every if each.schema not in _NEEDS_ITS_LEDGER or each.ledger.startswith(refused)]


# What can be seen.


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")


@contextlib.contextmanager
def _full_disk(full: bool) -> Iterator[None]:
    """Let no file grow any more; where the system cannot do that (Windows), the disk is not full."""
    try:
        import resource  # noqa: PLC0415 (not there on Windows)
    except ImportError:
        yield
        return
    before, writes_none = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    if full:
        sys.dont_write_bytecode = True  # which would be cut off unnoticed: python/cpython#126606
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes_none


def seen(act: Callable[[], object], folder: Path, *, full_disk: bool = False) -> tuple[object, ...]:
    """Return all that an observer sees of some work: result or error, prints, warnings, log lines and files."""
    printed, logged, before = io.StringIO(), _Lines(), logging.root.level
    logging.root.addHandler(logged)
    logging.root.setLevel(logging.DEBUG)
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            warnings.catch_warnings(record=True) as warned,
            _full_disk(full_disk),
        ):
            warnings.simplefilter("always")
            try:
                result = repr(act())
            except BaseException as error:  # noqa: BLE001 (whatever it is, it is seen)
                result = f"{type(error).__name__}: {error} ({error.__cause__!r}, {error.__context__!r})"
    finally:
        logging.root.setLevel(before)
        logging.root.removeHandler(logged)
    words = [f"{each.category.__name__}: {each.message}" for each in warned]
    return result, printed.getvalue(), words, logged.lines, _files(folder)


def _files(folder: Path) -> list[object]:
    """Return the files beside the table: ledgers by what they say, others by their size."""
    tables = ("table.", "made.")
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(tables))
    return [(file.name, _entries(file) if file.suffix == ".db" else file.stat().st_size) for file in files]


def _entries(file: Path) -> object:
    """Return what a ledger's entries say, but for the day and for what is drawn at random to tell ledgers apart."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        try:
            lines = connection.execute("SELECT number, kind, request, body FROM dpcausal_ledger ORDER BY number")
            return [
                (*line[:3], {k: v for k, v in json.loads(line[3]).items() if k not in ("at", "nonce")})
                for line in lines
            ]
        except sqlite3.Error as error:
            return type(error).__name__


class Scene:
    """A folder in which tables are opened, each time as if for the first time.

    A ledger is prepared once for each state that it may be in, and copied.
    """

    def __init__(self, base: Path) -> None:
        self.folder, self._kept = base / "scene", base / "kept"
        self._options: dict[str, dict[str, Any]] = {}

    def ledger(self, state: str) -> dict[str, Any]:
        """Empty the folder, put a ledger of this state into it, and return what a vault is opened with."""
        shutil.rmtree(self.folder, ignore_errors=True)
        kept = self._kept / state
        if state not in self._options:
            self.folder.mkdir(parents=True)
            self._options[state] = _LEDGERS[state](self.folder)
            shutil.copytree(self.folder, kept)
        else:
            shutil.copytree(kept, self.folder)
        return self._options[state]

    def opened(self, opening: Opening, records: Sequence[Record]) -> tuple[object, ...]:
        """Return what is seen when a table of these records is opened in one way."""
        options = self.ledger(opening.ledger)
        table, schema = _FORMS[opening.form](records, self.folder), _schemas()[opening.schema]

        def act() -> tuple[str, int, object]:
            vault = Vault(table, schema, **options)
            return repr(vault), vault.n, vault.arm_sizes

        return seen(act, self.folder, full_disk=opening.ledger.endswith("full disk"))


def check_opening(chosen: Sequence[Opening]) -> Finding:
    """Open two neighbouring tables in some ways: whatever can be seen is the same."""
    different, refused = [], 0
    with tempfile.TemporaryDirectory() as base:
        scene = Scene(Path(base))
        for opening in chosen:
            views = [scene.opened(opening, records) for records in neighbours(opening)]
            refused += "Error: " in str(views[0][0])
            different += [] if views[0] == views[1] else [str(opening)]
    return _finding("opening", "Vault", different, 2 * len(chosen), refused)


def by_command() -> list[Opening]:
    """Return the openings that a command can make."""
    return [each for each in openings() if each.form != "a frame" and each.ledger != "in memory"]


def check_commands(chosen: Sequence[Opening]) -> Finding:
    """Run `dpcausal init` and `dpcausal run` on two neighbouring tables: output, exit code and files are the same.

    Nobody confirms the price, so that nothing is spent and no noise is drawn: what is left is all that opening tells.
    """
    different, refused = [], 0
    with tempfile.TemporaryDirectory() as base:
        scene = Scene(Path(base))
        for opening in chosen:
            views = [_commanded(scene, opening, records) for records in neighbours(opening)]
            refused += "exit 2" in str(views[0][-1][0])
            different += [] if views[0] == views[1] else [str(opening)]
    return _finding("opening", "command line", different, 2 * 2 * len(chosen), refused)


def _commanded(scene: Scene, opening: Opening, records: Sequence[Record]) -> list[tuple[object, ...]]:
    """Return what is seen of both commands."""
    from typer.testing import CliRunner  # noqa: PLC0415 (only here)

    app = next(iter(entry_points(group="console_scripts", name="dpcausal"))).load()  # the command as it is installed
    options, folder = scene.ledger(opening.ledger), scene.folder
    table = str(_FORMS[opening.form](records, folder))
    schema = _schemas()[opening.schema]
    study = Study(name="a", question="b", schema=schema, estimator=DifferenceInMeans(), epsilon=0.5)
    (folder / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    place = options["ledger"].removeprefix("sqlite:///")
    run = ["run", str(folder / "study.toml"), "--table", table, "--ledger", place, "--as-of", options["as_of"]]
    commands = [["init", table, "--out", str(folder / "new.toml")], [*run, "--out", str(folder / "effect.json")]]
    views = []
    for words in commands:

        def act(words: Sequence[str] = words) -> str:
            done = CliRunner().invoke(app, words, input="n\n")
            return f"exit {done.exit_code}: {done.output} {done.exception!r}"

        views.append(seen(act, folder, full_disk=opening.ledger.endswith("full disk")))
    return views


def _finding(check: str, target: str, different: Sequence[str], count: int, refused: int) -> Finding:
    detail = f"differs: {different[0]}" if different else f"the same in {count:,} openings, {2 * refused:,} refused"
    numbers = {"openings": count, "refused": 2 * refused, "different": len(different)}
    return Finding(check, target, not different, detail, numbers)
