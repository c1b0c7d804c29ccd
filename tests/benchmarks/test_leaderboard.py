"""The leaderboard: its tables, a quick run that goes on where it stopped, and its figures."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy.__main__ import main
from benchmarks.leaderboard.contestants import _RANKINGS, CONTESTANTS, ranking, scene_of
from benchmarks.leaderboard.suite import PLANS, Plan, leaderboard, tables_for
from benchmarks.leaderboard.tables import FROM_FILES, generated, generated_name, table

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


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = generated_name(1_000, 10)
    monkeypatch.setitem(PLANS, name, Plan(0.4, (1.0,)))
    first = leaderboard([name], None, str(tmp_path), repeats=1, workers=0, figures=str(tmp_path))
    part = next(path for path in tmp_path.rglob("1000*.parquet"))
    written = part.stat().st_mtime_ns
    again = leaderboard([name], None, str(tmp_path), repeats=1, workers=0)
    assert part.stat().st_mtime_ns == written
    assert again["lines"] == first["lines"]
    assert len(first["lines"]) == len(CONTESTANTS) * len(PLANS[name].epsilons)
    assert all(np.isfinite(line["error"]) for line in first["lines"])
    assert {path.name for path in tmp_path.glob("*.png")} >= {"leaderboard_n.png", "leaderboard_epsilon.png"}


def test_the_choice_depends_on_nothing_in_the_table() -> None:
    one, other = (generated(1_000, 4, seed) for seed in (0, 1))
    chosen = ranking(one.schema("record"), one, 1.0)
    _RANKINGS.clear()
    assert ranking(other.schema("record"), other, 1.0) == chosen


def test_tables_without_files_are_those_that_are_generated() -> None:
    assert set(tables_for(None)) == set(PLANS) - set(FROM_FILES)
    assert tables_for("anywhere") == list(PLANS)


def test_the_command_prints_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLANS, "Synth", Plan(1.0, (0.5, 4.0)))
    main(
        [
            "--suite",
            "leaderboard",
            "--quick",
            "--datasets",
            "Synth",
            "--workers",
            "0",
            "--results",
            str(tmp_path),
            "--json",
        ]
    )
    result = json.loads(capsys.readouterr().out)
    assert len(result["choices"]) == 2
    assert {line["table"] for line in result["lines"]} == {"Synth"}
