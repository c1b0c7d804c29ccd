"""Ledgers that were cut, or put back from a copy: found by the process that wrote, by a witness, and by receipts."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import LedgerError
from dpcausal.ledger import witness as witness_module
from dpcausal.ledger.chain import Entry, Kind
from dpcausal.ledger.witness import LogWitness, Sighting, open_witness
from dpcausal.queries import ArmTotals
from tests.conftest import POSTGRESQL
from tests.ledger.long_ledgers import AS_OF, LAPLACE, answer, forge
from tests.support.ports import reserved_port
from tests.support.postgres import VARIABLE, fresh_database

BUDGET = dpc.Budget(epsilon=3)
ONE = dpc.Guarantee(epsilon=1.0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture(params=["log", "file", POSTGRESQL])
def witness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a witness of each kind."""
    if request.param == "postgresql":
        if VARIABLE not in os.environ:
            pytest.skip(f"no PostgreSQL server: {VARIABLE} is not set; see CONTRIBUTING.md")
        with fresh_database() as address:
            yield address
    else:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        yield str(elsewhere / "witness.log") if request.param == "log" else f"sqlite:///{elsewhere / 'witness.db'}"


def cut_the_answer(url: str) -> None:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("DELETE FROM dpcausal_ledger WHERE kind = 'release'")
    connection.commit()
    connection.close()


def answers_after_cuts(url: str, table: pa.Table, schema: dpc.Schema) -> set[tuple[float, ...]]:
    """All that one process tells for one price, when its own last entry is cut off after each answer."""
    dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    vault = dpc.Vault(table, schema, ledger=url, as_of=AS_OF)
    told = set()
    for _ in range(5):
        told.add(vault.release(ArmTotals(), ONE).values)
        cut_the_answer(url)
    return told


def test_a_process_notices_that_its_own_last_entry_was_cut(url: str, table: pa.Table, schema: dpc.Schema) -> None:
    with pytest.raises(LedgerError, match="truncated or replaced while in use"):
        answers_after_cuts(url, table, schema)


def test_a_running_total_that_is_not_advanced_is_caught(
    url: str, table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant forgets what it wrote itself, and tells several answers for one price."""

    def forgetful(self: dpc.Ledger, connection: object, kind: Kind, request: str, content: dict[str, object]) -> Entry:
        entries = self._running.followed_by(kind, request, content)
        for entry in entries:
            self._store.append(connection, entry)  # type: ignore[arg-type]
        return entries[-1]

    monkeypatch.setattr(dpc.Ledger, "_append", forgetful)
    assert len(answers_after_cuts(url, table, schema)) > 1


def restored_from_yesterday(url: str, witness: str | None, table: pa.Table, schema: dpc.Schema) -> dpc.Release:
    """One answer, and then the file of the day before is back."""
    file = Path(url.removeprefix("sqlite:///"))
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=witness)
    vault = dpc.Vault(table, schema, ledger=ledger, as_of=AS_OF)
    shutil.copy(file, file.with_suffix(".yesterday"))
    release = vault.release(ArmTotals(), ONE)
    shutil.copy(file.with_suffix(".yesterday"), file)
    return release


def test_a_file_restored_from_yesterday_is_refused_with_a_witness(
    url: str, witness: str, table: pa.Table, schema: dpc.Schema
) -> None:
    restored_from_yesterday(url, witness, table, schema)
    with pytest.raises(LedgerError, match="this ledger was truncated, restored from a copy, or is another one"):
        dpc.Ledger(url, witness=witness)


def test_a_file_restored_from_yesterday_is_reported_by_receipts(url: str, table: pa.Table, schema: dpc.Schema) -> None:
    release = restored_from_yesterday(url, None, table, schema)
    ledger = dpc.Ledger(url)
    assert ledger.check_receipts([release.receipt]) == (release.receipt,)
    again = dpc.Vault(table, schema, ledger=ledger, as_of=AS_OF).release(ArmTotals(), ONE)
    assert ledger.check_receipts([again.receipt]) == ()
    assert ledger.check_receipts([release.receipt]) == (release.receipt,)


def test_a_witness_that_is_told_after_the_answer_left_is_caught(
    url: str, table: pa.Table, schema: dpc.Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant is stopped between its answer and its witness: yesterday's file then tells a second answer."""
    witness = str(tmp_path / "witness.log")
    with monkeypatch.context() as late:
        write = LogWitness.write
        late.setattr(LogWitness, "write", lambda self, opening, seen, **_: seen.number or write(self, opening, seen))
        first = restored_from_yesterday(url, witness, table, schema)
    vault = dpc.Vault(table, schema, ledger=dpc.Ledger(url, witness=witness), as_of=AS_OF)
    assert vault.release(ArmTotals(), ONE) != first


def test_a_stored_answer_leaves_only_after_the_witness_was_told(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped before its witness was told left a stored answer; whoever serves it tells first."""
    witness = LogWitness(tmp_path / "witness.log")
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=witness.address)
    with monkeypatch.context() as stopped:
        stopped.setattr(LogWitness, "write", lambda *_, **__: None)
        answer(ledger, "r")
    assert witness.last(ledger.opening) == Sighting(0, ledger.opening)
    other = dpc.Ledger(url, witness=witness.address)
    assert other.stored("r") == '{"answer": "r"}'
    seen = witness.last(ledger.opening)
    assert seen is not None
    assert (seen.number, seen.digest) == (3, ledger.entries()[-1].digest)


def test_without_a_witness_that_can_be_told_no_answer_leaves(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=str(folder / "witness.log"))
    ledger.grant("r", LAPLACE, {})
    ledger.debit("r")
    shutil.rmtree(folder)
    with pytest.raises(LedgerError, match="has no record of it"):
        ledger.store("r", '{"answer": 1}')


def test_a_witness_is_told_the_number_and_digest_of_the_last_entry(url: str, witness: str) -> None:
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=witness)
    answer(ledger, "r")
    last = ledger.entries()[-1]
    assert open_witness(witness).last(ledger.opening) == Sighting(last.number, last.digest)
    assert open_witness(witness).last(ledger.opening, up_to=1) == Sighting(1, ledger.entries()[1].digest)
    assert open_witness(witness).last("0" * 64) is None


def test_several_at_once_may_use_a_ledger_with_a_witness(url: str, witness: str) -> None:
    """Whoever tells a witness late must neither hide what others told it nor be taken for a cut."""
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=witness)

    def ask(name: int) -> None:
        own = dpc.Ledger(url, witness=witness)
        for place in range(4):
            answer(own, f"{name} {place}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    last = ledger.entries()[-1]
    assert last.number == 48
    assert open_witness(witness).last(ledger.opening) == Sighting(48, last.digest)


def test_a_ledger_chained_anew_is_refused_with_a_witness(url: str, tmp_path: Path) -> None:
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=str(tmp_path / "witness.log"))
    answer(ledger, "r")
    forge(url, 1, event={"family": "laplace", "epsilon": 0.01, "delta": 0.0, "mu": 0.0})  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="not another entry"):
        dpc.Ledger(url, witness=str(tmp_path / "witness.log"))


@pytest.mark.parametrize("given", [None, "other.log"])
def test_a_ledger_is_not_used_without_its_witness(url: str, tmp_path: Path, given: str | None) -> None:
    dpc.Ledger.create(url, BUDGET, as_of=AS_OF, witness=str(tmp_path / "witness.log"))
    with pytest.raises(LedgerError) as refused:
        dpc.Ledger(url, witness=given and str(tmp_path / given))
    told = {None: str(tmp_path / "witness.log"), "other.log": "has no record of it"}
    assert told[given] in str(refused.value)
    assert not (tmp_path / "other.log").exists()


def test_half_a_line_in_a_log_never_counted(tmp_path: Path) -> None:
    file = tmp_path / "witness.log"
    witness = LogWitness(file)
    witness.write("a" * 64, Sighting(1, "b" * 64))
    with file.open("a") as log:
        log.write(f"{'a' * 64} 2 {'c' * 10}")
    assert witness.last("a" * 64) == Sighting(1, "b" * 64)
    witness.write("a" * 64, Sighting(3, "d" * 64))
    witness.write("a" * 64, Sighting(2, "e" * 64))  # another process was faster
    assert witness.last("a" * 64) == Sighting(3, "d" * 64)
    assert len(file.read_text().splitlines()) == 3


def test_the_line_of_one_ledger_is_found_behind_many_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness_module, "_TAIL", 300)
    witness = LogWitness(tmp_path / "witness.log")
    witness.write("a" * 64, Sighting(1, "b" * 64))
    for number in range(10):
        witness.write("c" * 64, Sighting(number, "d" * 64))
    assert witness.last("a" * 64) == Sighting(1, "b" * 64)


PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


@contextmanager
def own_server() -> Iterator[tuple[str, Path, Callable[[str], None]]]:
    """A PostgreSQL server of our own: its address, its folder, and a way to start and stop it."""
    folder = Path(tempfile.mkdtemp())  # not below pytest's, which other users may not enter
    as_server = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []

    def run(*words: object) -> None:
        command = [*as_server, *map(str, words)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=300)  # noqa: S603 (our own words)

    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    run(PROGRAMS / "initdb", "--pgdata", folder / "data", "--auth", "trust", "--username", "postgres")  # type: ignore[operator]
    port = reserved_port()

    def control(what: str) -> None:
        options = ["--options", f"-h 127.0.0.1 -p {port} -k {folder}"] if what == "start" else ["--mode", "fast"]
        log = folder / "server.log"
        run(PROGRAMS / "pg_ctl", "--pgdata", folder / "data", "--log", log, "--wait", *options, what)  # type: ignore[operator]

    control("start")
    try:
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres", folder, control
    finally:
        control("stop")
        shutil.rmtree(folder)


@pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL programs in /usr/lib/postgresql")
@pytest.mark.parametrize("with_witness", [True, False])
def test_a_server_that_loses_its_last_commit_under_a_running_service(
    tmp_path: Path, table: pa.Table, schema: dpc.Schema, *, with_witness: bool
) -> None:
    """Stopped, put back to the data folder of before, started: refused with a witness, told by receipts without."""
    witness = str(tmp_path / "witness.log") if with_witness else None
    with own_server() as (address, folder, control):
        dpc.Ledger.create(address, BUDGET, as_of=AS_OF, witness=witness)
        service = dpc.Vault(table, schema, ledger=dpc.Ledger(address, witness=witness), as_of=AS_OF)
        control("stop")
        shutil.copytree(folder / "data", folder / "before")
        control("start")
        release = service.release(ArmTotals(), ONE)
        control("stop")
        shutil.rmtree(folder / "data")
        shutil.move(folder / "before", folder / "data")
        if os.getuid() == 0:
            for path in (folder / "data", *(folder / "data").rglob("*")):
                shutil.chown(path, "postgres", "postgres")
        control("start")
        with pytest.raises(LedgerError, match="truncated or replaced while in use"):
            service.release(ArmTotals(), ONE)
        if with_witness:
            with pytest.raises(LedgerError, match="this ledger was truncated, restored from a copy"):
                dpc.Ledger(address, witness=witness)
            by = {"by": "bob", "reason": "the server lost a commit"}
            restored = dpc.Ledger.restore(address, witness=witness, receipts=[release.receipt], **by)  # type: ignore[arg-type]
            assert (restored.spent.epsilon, restored.check_receipts([release.receipt])) == (1.0, ())
        else:
            assert dpc.Ledger(address).check_receipts([release.receipt]) == (release.receipt,)
