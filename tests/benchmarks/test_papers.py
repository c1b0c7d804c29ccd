"""The papers' experiments: runs that resume, and pages that agree with the stored results."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers.__main__ import main
from benchmarks.papers.index import FOLDER, PAGES, PAPERS, STATUSES, index_tables, paper_of, statuses, stored
from benchmarks.papers.paper import Claim, Paper, Task, linked, parts, run, written


def square(number: int) -> int:
    if number == 3:
        raise ValueError("stopped")
    return number**2


def toy(numbers: list[int]) -> Paper:
    def result(found: Mapping[str, Any]) -> dict[str, Any]:
        return {"sum": sum(found.values())}

    return Paper(
        name="toy",
        title="A toy",
        tasks=lambda *_: [Task(str(number), square, (number,)) for number in numbers],
        left_out=lambda *_: [],
        result=result,
        text=lambda *_: [],
        draw=lambda *_: None,
        tables=lambda *_: {},
        claims=lambda *_: [],
    )


def test_a_stopped_run_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="stopped"):
        run(toy([1, 2, 3]), tmp_path, quick=True, data=None, workers=0)
    kept = tmp_path / "runs.jsonl"
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 2
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"key": "4", "fou')  # cut short
    assert run(toy([1, 2, 5]), tmp_path, quick=True, data=None, workers=0) == {"sum": 30}
    assert "2 of 3 runs are in" in capsys.readouterr().out
    assert json.loads((tmp_path / "result.json").read_text(encoding="utf-8")) == {"sum": 30}
    assert run(toy([1, 2, 5]), tmp_path, quick=True, data=None, workers=0) == {"sum": 30}
    assert "3 of 3 runs are in" in capsys.readouterr().out


def test_a_quick_run_is_not_published() -> None:
    with pytest.raises(SystemExit):
        main(["private", "--quick", "--publish"])


@pytest.mark.parametrize("quick", [True, False])
def test_a_quick_run_gives_no_verdicts(
    quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = Claim("Theorem 1", "the sum is 5", "5", "holds")
    monkeypatch.setattr("benchmarks.papers.__main__.paper_of", lambda _: replace(toy([1, 2]), claims=lambda _: [claim]))
    main(["private", "--folder", str(tmp_path), "--workers", "0", *(["--quick"] if quick else [])])
    assert ("holds" in capsys.readouterr().out) != quick


def test_a_claim_has_a_verdict_of_the_list() -> None:
    with pytest.raises(ValueError, match="verdict"):
        Claim("Theorem 1", "says", "measured", "perhaps")


@pytest.mark.parametrize("name", PAPERS)
def test_page_agrees_with_the_stored_result(name: str) -> None:
    paper = paper_of(name)
    result = stored(name)
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    tables, files = parts(paper, page, result)
    assert f"tables/{name}-claims-measured.csv" in files
    assert written(page, tables) == page
    for file, numbers in files.items():
        assert (FOLDER / file).read_text(encoding="utf-8") == numbers


def test_a_table_is_on_the_page_or_linked_as_csv() -> None:
    tables = {"a b": ["| x | y |", "|---|---|", "| **1** | p \\| q |"]}
    assert linked("toy", "<!-- a b begin -->", tables) == {}
    assert linked("toy", "[as CSV](tables/toy-a-b.csv)", tables) == {"tables/toy-a-b.csv": "x,y\n1,p | q\n"}
    with pytest.raises(ValueError, match="toy-a-b"):
        linked("toy", "no table", tables)


def test_the_index_counts_every_item_and_claim() -> None:
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert written(page, index_tables()) == page
    found = [status for name in PAGES for status in statuses(name)]
    assert set(found) <= set(STATUSES)
    assert len(found) == 121
    assert found.count("not reproduced") <= 6
    assert sum(len(paper_of(name).claims(stored(name))) for name in PAPERS) >= 25
