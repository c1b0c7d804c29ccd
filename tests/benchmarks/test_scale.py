"""Short forms of `python -m benchmarks.scale`: each part at its smallest, and what its result must hold.

Tasks run here and now; that they run in processes of their own, too, is tested once.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest

from benchmarks.parts import PUBLISHED, kept
from benchmarks.scale import (
    adjustment,
    agreement,
    clock,
    engines,
    growth,
    ledger,
    matching,
    moments,
    out_of_core,
    processes,
    sizes,
    sums,
    tasks,
    warehouses,
)
from benchmarks.scale.__main__ import PARTS, main
from benchmarks.scale.data import GROUPS, VALUES, Study, drawn, first_files, written
from benchmarks.scale.options import Options
from benchmarks.scale.pictures import draw
from benchmarks.scale.tasks import Task
from dpcausal.queries import LookMoments, MetricMoments
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.table import open_table
from tests.support.engines import without_draws
from tests.support.hostile import hostile

pytestmark = pytest.mark.costly("src", "benchmarks")

ROWS = 3_000


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """The smallest size; tasks in this process, and files written by it."""

    def at_once(task: Task) -> Any:
        return json.loads(json.dumps(tasks.done(task)))

    for module in (processes, sums, moments, adjustment):
        monkeypatch.setattr(module, "run", at_once)
    return Options(rows=ROWS, repeats=1, folder=tmp_path)


def assert_costs(costs: dict[str, Any]) -> None:
    assert costs
    assert all(each["cpu"] > 0 and each["wall"] > 0 and each["peak"] > 1 for each in costs.values())


def test_made_up_studies_are_confounded_and_gone_afterwards(tmp_path: Path) -> None:
    with written(Study(2 * ROWS, 3, file_rows=ROWS, several=True), tmp_path) as folder:
        table = ds.dataset(folder).to_table().to_pandas()
        assert len(first_files(folder, 1, tmp_path / "part").joinpath("part-0000.parquet").read_bytes()) > 0
    assert not folder.exists()
    assert len(table) == 2 * ROWS
    assert (table.groupby("unit").size() == 3).all()
    arms = table.groupby("treat")[["x0", "y"]].mean()
    assert arms.loc[1, "x0"] - arms.loc[0, "x0"] > 0.3
    assert arms.loc[1, "y"] - arms.loc[0, "y"] > 1.2
    assert 0 < table["y"].isna().mean() < 0.02
    one, same, other = (drawn(Study(2 * ROWS, file_rows=ROWS), number).to_pandas() for number in (0, 0, 1))
    assert one.equals(same)
    assert not one.equals(other)


def test_a_study_too_large_for_the_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="free disk"), written(Study(10**13), tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_sums_by_hand_are_the_vaults_own(options: Options) -> None:
    found = sums.measure(options)
    assert found["rows"] == ROWS
    assert set(found["queries"]) == {"arm_totals", "arm_moments", "strata"}
    for line in found["queries"].values():
        assert line["same_integers"]
        assert set(line["ratios"]) == set(line["within_target"]) == {"fixed", "plain"}
        assert_costs(line["costs"])


def test_other_sums_would_be_seen_to_differ(tmp_path: Path) -> None:
    """The mutant: one unit less in one cell, by hand."""
    with written(Study(ROWS), tmp_path) as folder:
        for query in sums.QUERIES:
            exact, by_hand = (tasks.done(Task(work, str(folder), query))["value"] for work in ("answer", "fixed"))
            assert sums.same(query, exact, by_hand)
            *others, last = by_hand
            assert not sums.same(query, exact, [*others, [*last[:-2], last[-2] - 1, last[-1]]])


def test_moments_by_hand_are_the_vaults_own(options: Options) -> None:
    found = moments.measure(options)
    assert found["same_integers"]
    assert found["numpy_apart"] < 1e-4
    assert set(found["ratios"]) == {"fixed", "plain", "arrow"}
    assert_costs(found["costs"])


def test_cost_per_row_is_measured_at_every_size(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "SMALLEST", 300)
    found = sizes.measure(options)
    assert [line["rows"] for line in found["lines"] if line["query"] == "moments"] == [300, 3_000]
    lines = [
        {"query": query, "rows": n, "cpu": n * 2e-8, "wall": n * 1e-8}
        for query in sizes.QUERIES
        for n in (10**4, 10**6)
    ]
    assert sizes.growth(lines) == dict.fromkeys(sizes.QUERIES, 1.0)
    assert sizes.projected(lines, "strata", 10**9) == {
        "query": "strata",
        "rows": 10**9,
        "projected_from": 10**6,
        "cpu": 20.0,
        "wall": 10.0,
    }


def test_little_memory_is_enough(options: Options) -> None:
    found = out_of_core.measure(options)
    assert len(found["lines"]) == 4
    assert all(line["spilled_megabytes"] >= 0 for line in found["lines"])


def test_the_matcher_serves_everyone(options: Options) -> None:
    found = matching.measure(options)
    assert [line["units"] for line in found["lines"]] == [ROWS // 10, ROWS]
    assert all(line["matches"] == 5 * line["units"] for line in found["lines"])


@pytest.mark.slow
def test_an_estimate_is_put_beside_its_moments_and_beside_peers(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One peer that is done at once, and one that holds too much."""
    peers = []
    for name, does in (("quick", "pass"), ("large", "held = bytearray(300 * 2**20); time.sleep(60)")):
        said = {"cpu": 1, "wall": 1, "peak": 1, "value": {"peer": name, "effect": 1, "standard_error": 1}}
        peers.append(tmp_path / name)
        peers[-1].write_text(f"#!{sys.executable}\nimport time\n{does}\nprint({json.dumps(json.dumps(said))})\n")
        peers[-1].chmod(0o700)
    monkeypatch.setattr(adjustment, "MOST_MEGABYTES", 150)
    found = adjustment.measure(Options(ROWS, 1, options.folder, tuple(peers)))
    assert set(found["ratios"]["arrow"]) == {"cpu", "wall"}
    quick, large = found["peers"]
    assert [line["rows"] for line in quick["sizes"]] == [300, 600, 1_500, 3_000]
    assert (quick["peer"], quick["too_large_at"]) == ("quick", None)
    assert (large["sizes"], large["too_large_at"]) == ([], 300)


def test_every_query_is_put_to_every_engine(tmp_path: Path) -> None:
    assert {type(query) for query in agreement.QUERIES} == set(ANSWERS)
    said = []
    for place, rows in enumerate((ROWS, ROWS, ROWS - 1)):
        folder = tmp_path / str(place)
        folder.mkdir()
        agreement.write_hostile(folder, rows)
        engine = agreement.opened(str(folder), 0)
        with without_draws():
            said.append({query.name: agreement.numbers(query, engine) for query in agreement.QUERIES})
    one, other, less = said
    assert one == other
    differ = [name for name, numbers in one.items() if numbers != less[name]]
    assert len(differ) == len(one)  # the mutant: one unit less is seen by every query


def test_engines_that_differ_are_named() -> None:
    found = {way: {"sums": {"said": [way == 7], "cpu": 1.0 + way, "wall": 1.0}} for way in (0, 1, 3, 7)}
    line = engines.compared("sums", found)
    assert (line["identical"], line["differs_with_partitions"], line["spark_to_duckdb"]) == (False, [7], 4.0)


@pytest.mark.slow
def test_measured_processes_are_separate(tmp_path: Path) -> None:
    """What this process holds is not counted as theirs, and what they use is counted."""
    held = np.ones(2**26)  # half a gigabyte
    found = processes.run(Task("sort", rows=200_000))
    assert 50 < found["peak"] < 400 < held.nbytes / 2**20 <= clock.peak_megabytes()
    assert 0 < found["cpu"] < 60
    with pytest.raises(RuntimeError, match="No such work"):
        processes.run(Task("No such work"))


def test_each_finished_part_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(options: Options) -> dict[str, Any]:
        return {"rows": options.rows, "repeats": options.repeats}

    for part in PARTS:
        monkeypatch.setitem(PARTS, part, told)
    given = ["--result", str(tmp_path / "scale.json"), "--json"]
    main([*given, "--part", "sums", "moments", "--rows", "7", "--repeats", "1"])
    first = json.loads(capsys.readouterr().out)
    assert first.keys() == {"machine", "sums", "moments"}
    assert (first["sums"]["rows"], first["sums"]["repeats"]) == (7, 1)
    main([*given, "--rows", "8", "--missing"])
    second = json.loads(capsys.readouterr().out)
    assert second.keys() == {"machine", *PARTS}
    assert {part: found["rows"] for part, found in second.items() if part != "machine"} == {
        part: 7 if part in first else 8 for part in PARTS
    }


def test_a_part_that_fails_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Options) -> dict[str, Any]:
        raise OSError("no disk")

    monkeypatch.setitem(PARTS, "sums", broken)
    monkeypatch.setitem(PARTS, "moments", lambda _: {"rows": 1})
    result = tmp_path / "scale.json"
    with pytest.raises(SystemExit, match="failed: sums"):
        main(["--part", "sums", "moments", "--result", str(result)])
    assert "no disk" in capsys.readouterr().err
    assert set(json.loads(result.read_text(encoding="utf-8"))) == {"machine", "moments"}


def test_costs_grow_and_are_drawn(options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (min(growth.COVARIATES), max(growth.COVARIATES), VALUES**GROUPS) == (5, 60, 100_000)
    monkeypatch.setattr(growth, "COVARIATES", (5, 10))
    monkeypatch.setattr(growth, "GROUPS", 3)
    parts = {"rows": sizes.measure, "covariates": growth.covariates, "strata": growth.strata, "threads": growth.threads}
    found = {part: measure(options) for part, measure in parts.items()}
    assert [line["covariates"] for line in found["covariates"]["lines"]] == [5, 10]
    assert [line["strata"] for line in found["strata"]["lines"]] == [10, 100, 1_000]
    assert [(line["query"], line["threads"]) for line in found["threads"]["lines"]] == [
        (query, number) for query in growth.QUERIES for number in (1, 2)
    ]
    draw(found, tmp_path / "figures")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {f"scale_{part}.svg" for part in parts}


def test_every_cost_of_a_long_ledger_is_measured() -> None:
    figures = ledger.measure_one(300)
    assert figures["entries"] == 300
    assert all(value > 0 for value in figures.values())


def test_sites_add_up_to_one_table_and_a_missing_row_is_seen() -> None:
    asked = [case for case in warehouses.cases() if isinstance(case[0], MetricMoments | LookMoments)]
    assert {schema for _, schema in asked} == {warehouses.SCHEMA, warehouses.THREE_ARMS}
    table = hostile(ROWS)
    own = warehouses.answers_of(asked, open_table(table, warehouses.SCHEMA))
    for rows, same in ((ROWS, True), (ROWS - 1, False)):
        parts = {str(at): table.slice(at, min(1_000, rows - at)) for at in range(0, rows, 1_000)}
        sites = {name: open_table(part, warehouses.SCHEMA) for name, part in parts.items()}
        assert (warehouses.differing(own, warehouses.summed_answers(asked, sites)) == []) == same


def test_published_engines_agree_and_cost_this_machine_little() -> None:
    found = kept(PUBLISHED / "scale.json")["warehouses"]
    assert {"metric_moments", "look_moments"} < set(found["queries"])
    for name in ("postgresql", "clickhouse", "spark", "sites"):
        assert found[name]["differ"] == []
    assert found["sites"]["engines"] == ["duckdb", "postgresql", "clickhouse", "spark"]
    assert found["ten covariates"]["as_sql"]
    assert found["ten covariates"]["identical"]
    for timed in found["postgresql"]["timed"].values():
        assert timed["pushed down"]["client_cpu"] < warehouses.TARGET * timed["streamed"]["client_cpu"]
