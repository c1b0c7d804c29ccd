"""The leaderboard: its tables, a quick run that goes on where it stopped, and its figures."""

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.leaderboard import data, page
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.contestants import _RANKINGS, CONTESTANTS, NO_PRIVACY, ranking, scene_of
from benchmarks.leaderboard.figures import draw
from benchmarks.leaderboard.suite import PLANS, Plan, leaderboard, tables_for
from benchmarks.leaderboard.tables import FROM_FILES, generated, generated_name, table

STORED: dict[str, Any] = json.loads(page.RESULT.read_text(encoding="utf-8"))
FOUND = page.Found(STORED)
FOLDER = os.environ.get("DPCAUSAL_DATA", "")
SHIPPED = {"Lalonde", "ACIC 1", "IST"}
needs_files = pytest.mark.skipif(
    not Path(FOLDER, "twins").is_dir(), reason="the environment variable DPCAUSAL_DATA names no folder that holds twins"
)


@pytest.mark.parametrize("sign", [1, -1])
def test_generated_tables_are_confounded_by_a_fifth(sign: int) -> None:
    data = generated(100_000, 10, 0, sign)
    arms, outcomes = data.column("t"), data.column("y")
    naive = outcomes[arms == 1].mean() - outcomes[arms == 0].mean()
    assert naive / data.truth - 1 == pytest.approx(0.19 * sign, abs=0.02)
    assert outcomes.min() >= 0
    assert outcomes.max() <= 1
    design = np.column_stack([np.ones(len(arms)), *(data.column(name) for name in data.names)])
    fits = [np.linalg.lstsq(design[arms == arm], outcomes[arms == arm], rcond=None)[0] for arm in (0, 1)]
    assert (design @ (fits[1] - fits[0])).mean() == pytest.approx(data.truth, abs=0.005)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SHIPPED else needs_files) for name in FROM_FILES]
)
def test_tables_from_files_have_outcomes_within_their_bounds(name: str) -> None:
    data = table(name, 0, FOLDER)
    low, high = data.schema("record").outcome_bounds
    outcomes = np.array(data.table[data.outcome.name].to_pylist(), dtype=float)
    assert np.mean((outcomes >= low) & (outcomes <= high)) > 0.995
    assert set(data.short) <= set(data.names)
    assert scene_of(data).study.n == data.n


@pytest.mark.costly("benchmarks/results")
def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    name = generated_name(1_000, 10)
    first = leaderboard([name], None, str(tmp_path), repeats=1, workers=0, epsilons=[1.0])
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("1000*.parquet")}
    again = leaderboard([name], None, str(tmp_path), repeats=1, workers=0, epsilons=[1.0], groups=["peer", "ours"])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("1000*.parquet")} == parts
    assert again["lines"] == [line for line in first["lines"] if line["group"] in {"peer", "ours"}]
    assert {line["contestant"] for line in first["lines"]} == {each.label for each in CONTESTANTS}
    assert all(np.isfinite(line["error"]) for line in first["lines"])
    draw(first, tmp_path)
    assert {path.name for path in tmp_path.glob("*.svg")} >= {"leaderboard_n.svg", "leaderboard_epsilon.svg"}


def test_a_new_run_replaces_its_own_lines() -> None:
    def line(contestant: str, error: float) -> dict[str, Any]:
        return {"table": "Synth", "epsilon": 1.0, "contestant": contestant, "error": error}

    stored = {"lines": [line(name, 1.0) | {"date": "2026-01-01"} for name in "xy"], "choices": []}
    new = {"lines": [line("x", 3.0), line("z", 2.0)], "choices": [{"table": "Synth", "epsilon": 1.0}]}
    found = page.merged(stored, new, dt.date(2026, 2, 1))
    assert [(each["contestant"], each["error"], each["date"]) for each in found["lines"]] == [
        ("y", 1.0, "2026-01-01"),
        ("z", 2.0, "2026-02-01"),
        ("x", 3.0, "2026-02-01"),
    ]
    assert found["choices"] == [{"table": "Synth", "epsilon": 1.0, "date": "2026-02-01"}]


@pytest.mark.parametrize("name", page.PAGES)
def test_pages_agree_with_the_stored_result(name: str) -> None:
    text = (page.DOCS / name).read_text(encoding="utf-8")
    assert page.rewritten(text, STORED) == text


def test_leaderboard_as_data_agrees_with_the_stored_result() -> None:
    assert (page.DOCS / "leaderboard.csv").read_text(encoding="utf-8") == data.as_csv(STORED)


def test_every_line_says_when_and_with_which_code_it_was_run() -> None:
    assert all(line["date"] >= "2026-11-15" and len(line["code"]) == 12 for line in STORED["lines"])
    assert all(each["date"] >= "2026-11-15" for each in STORED["choices"])


@pytest.mark.parametrize("n", [1_000, 5_000, 20_000])
def test_ours_and_peers_have_a_hundred_repeats_at_epsilon_1(n: int) -> None:
    lines = {line["contestant"]: line for line in FOUND.at(f"{n}/10/1", 1.0) if line["group"] in {"ours", "peer"}}
    assert set(lines) == {each.label for each in CONTESTANTS if each.group in {"ours", "peer"}}
    assert min(line["runs"] for line in lines.values()) >= 100
    assert {line["date"] for line in lines.values()} == {FOUND.newest}


def test_first_lines_say_what_the_leaderboard_says() -> None:
    def says(name: str, words: str) -> bool:
        return words in " ".join((page.DOCS / name).read_text(encoding="utf-8").split())

    ours = {name: page.percent(FOUND.error(name)) for name in ("doubly robust", NO_PRIVACY)}
    papers = sorted(FOUND.error(label) for label in page.PAPERS.values())
    theirs, low, high = page.percent(FOUND.nearest_peer()["error"]), *(100 * papers[place] for place in (0, -1))
    assert says("leaderboard.md", f"`DoublyRobust` is off by {ours['doubly robust']} on average.")
    assert says(
        "leaderboard.md",
        f"The nearest method of others has {theirs}, the papers that this library began with have {low:.1f} to "
        f"{high:.0f} %, and an estimate without privacy {ours[NO_PRIVACY]}.",
    )


def test_the_choice_depends_on_nothing_in_the_table() -> None:
    one, other = (generated(1_000, 4, seed) for seed in (0, 1))
    chosen = ranking(one.schema("record"), one, 1.0)
    _RANKINGS.clear()
    assert ranking(other.schema("record"), other, 1.0) == chosen


def test_tables_without_files_are_those_that_are_generated() -> None:
    assert set(tables_for(None)) == set(PLANS) - set(FROM_FILES)
    assert tables_for("anywhere") == list(PLANS)


def test_a_quick_run_is_not_published() -> None:
    with pytest.raises(SystemExit):
        main(["--quick", "--publish"])


@pytest.mark.slow
def test_the_command_prints_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLANS, "Synth", Plan(1.0, (0.5, 4.0)))
    main(["--quick", "--datasets", "Synth", "--workers", "0", "--results", str(tmp_path), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert len(result["choices"]) == 2
    assert {line["table"] for line in result["lines"]} == {"Synth"}
