import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import TableError
from dpcausal.vault.engines import Batch, progress
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from dpcausal.vault.engines.progress import ProgressEngine
from dpcausal.vault.table import open_table

BUDGET = dpc.Budget(epsilon=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"memory": "much"},
        {"memory": "99 MB"},
        {"memory": "-1 GB"},
        {"memory": "1 GB; SET threads = 1"},
        {"memory": 10**9},
        {"threads": 0},
        {"threads": True},
        {"threads": "2"},
        {"spill": 7},
        {"progress": "yes"},
    ],
)
def test_wrong_resources_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TableError, match=f"needs {next(iter(wrong))}"):
        dpc.Resources(**wrong)


def test_resources_are_set(tmp_path: Path) -> None:
    asked = "SELECT current_setting('memory_limit'), current_setting('threads'), current_setting('temp_directory')"
    ((memory, threads, folder),) = connect(3, "250 MB", tmp_path).execute(asked).fetchall()
    assert (memory, threads) == ("238.4 MiB", 3)
    assert Path(folder).parent == tmp_path
    # As many threads as the memory is enough for.
    ((_, threads, _),) = connect(None, "0.13 GB").execute(asked).fetchall()
    assert threads == 1


def test_a_vault_takes_resources(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    resources = dpc.Resources(memory="200 MB", threads=1, spill=tmp_path)
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=BUDGET, resources=resources)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert vault.n == 1000
    del vault
    assert list(tmp_path.iterdir()) == []
    assert dpc.estimate(table, schema, epsilon=1.0, resources=resources).n == 1000
    with pytest.raises(TableError, match="needs Resources, not str"):
        dpc.Vault(table, schema, ledger="sqlite://", budget=BUDGET, resources="1 GB")  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_refused(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="absent"):
        open_table(table, schema, dpc.Resources(spill=tmp_path / "absent"))


@pytest.mark.parametrize("asked", [{"memory": "1 GB"}, {"threads": 2}, {"spill": "."}])
def test_a_table_with_its_own_engine_is_set_up_there(asked: Any, table: pa.Table, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="SET memory_limit"):
        open_table(duckdb.connect().from_arrow(table), schema, dpc.Resources(**asked))


def first_visits(folder: Path, memory: str | None, threads: int | None) -> tuple[list[list[int]], int]:
    """Sums over the first visits of all units, and the most megabytes that took, in a process of their own."""
    argument = json.dumps([str(folder), memory, threads])
    command = [sys.executable, "-m", "tests.vault.first_visits", argument]
    sums, megabytes = json.loads(subprocess.check_output(command, cwd=Path(__file__).parents[2]))  # noqa: S603
    return sums, megabytes


@pytest.mark.costly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process's peak memory so")
def test_a_table_larger_than_memory_is_read_and_sorted(tmp_path: Path) -> None:
    """Some 200 MB of numbers within 100 MB, and half of them in each row group; else all of them are held at once."""
    covariates = ", ".join(f"hash(range + {place}) / 2e19 AS x{place}" for place in range(8))
    visits = f"SELECT hash(range) % 1000000 AS who, range AS visit, range % 2 AS t, 0.25 AS y, {covariates}"
    duckdb.execute(
        f"COPY ({visits} FROM range(2000000)) TO '{tmp_path}/visits.parquet' (ROW_GROUP_SIZE 1000000)"
    ).fetchall()
    limited, with_limit = first_visits(tmp_path, "100 MB", None)
    usual, without = first_visits(tmp_path, None, 2)
    assert limited == usual
    assert with_limit < 400 < without
    assert [path.name for path in tmp_path.iterdir()] == ["visits.parquet"]


def slow(_: object = None) -> None:
    time.sleep(0.5)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal, and somebody with little patience before it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "BAR_DELAY", 0.1)
    monkeypatch.setattr(progress, "_REFRESH_INTERVAL", 0.05)


def lines_of(printed: str) -> set[str]:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
    return {line.strip() for line in re.split(r"[\r\n]+", plain)} - {""}


def slow_kernel(batch: Batch) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    if len(batch["outcome"]):
        slow()
    return np.array([batch["outcome"].sum()])


@pytest.mark.usefixtures("terminal")
def test_a_bar_tells_the_public_number_of_units_a_share_and_time(
    table: pa.Table, schema: dpc.Schema, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = open_table(table, schema, dpc.Resources(progress=True))
    usual = open_table(table, schema)
    counted = [each.aggregate({"treatment": 3}, ["1"], whole=True).tolist() for each in (engine, usual)]
    assert counted[0] == counted[1]
    assert engine.fold(["outcome"], slow_kernel).tolist() == usual.fold(["outcome"], slow_kernel).tolist()
    slowly = engine.collect(["outcome"], 1000, lambda batch: {"sum": slow_kernel(batch)})
    assert slowly["sum"].sum() == usual.fold(["outcome"], slow_kernel)[0]
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = lines_of(printed.err)
    assert any(line.startswith("reading 1,000 units") for line in lines)
    assert all(re.fullmatch(r"reading( 1,000 units)? [━╸╺ ]+ +(\d+%)? +0:00:0\d", line) for line in lines), lines


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("resources", [None, dpc.Resources(), dpc.Resources(memory="1 GB")])
def test_nothing_is_shown_unless_asked_for(
    resources: dpc.Resources | None, table: pa.Table, schema: dpc.Schema, capsys: pytest.CaptureFixture[str]
) -> None:
    open_table(table, schema, resources).fold(["outcome"], slow_kernel)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_shown_of_a_short_pass(
    table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    open_table(table, schema, dpc.Resources(progress=True)).fold(["outcome"], slow_kernel)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_a_pass_of_which_nothing_is_known_has_no_share(
    table: pa.Table, schema: dpc.Schema, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in an engine that runs elsewhere."""
    ProgressEngine(open_table(table, schema)).fold(["outcome"], slow_kernel)
    lines = lines_of(capsys.readouterr().err)
    assert lines
    assert not any("%" in line for line in lines)


def test_shares_are_of_the_units(table: pa.Table, schema: dpc.Schema) -> None:
    whole = pa.concat_tables([table] * 10)
    engine = DuckDBEngine(duckdb.connect().from_arrow(whole), schema, 2_048)
    shares: list[float | None] = []
    seen: list[int] = [0]

    def kernel(batch: Batch) -> Any:
        shares.append(engine.share(10_000))
        seen.append(seen[-1] + len(batch["outcome"]))
        return np.array([len(batch["outcome"])])

    assert engine.fold(["outcome"], kernel)[0] == seen[-1] == 10_000
    assert len(shares) > 3
    assert shares == [None if units == 0 else units / 10_000 for units in seen[:-1]]
    assert engine.share(10_000) is None
