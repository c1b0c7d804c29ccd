"""What is stored of experiments keeps its promises, and the simulation adds up as a vault does."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import (
    PROJECTED,
    RESULTS,
    SimulatedUsers,
    bill_table,
    experiment,
    make_users,
)
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.vault.table import open_table

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SCALING = DOCS / "experiments.md", DOCS / "scaling-measured.md"
STORED = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_memory_does_not_grow_with_users() -> None:
    sizes = {each["n"]: each["peak_mb"] for each in STORED["large"]}
    assert max(sizes) == 100_000_000
    assert max(sizes.values()) < 2_000


def test_projection_is_a_straight_line() -> None:
    """Of costs that are in proportion, and only of the two largest sizes."""
    lines = [
        {"n": n, "metrics": 50, "seconds": n / 1e6, "float_seconds": n / 2e6, "peak_mb": 1} for n in (10**6, 10**7)
    ]
    last = bill_table({"large": [{**lines[0], "n": 10**5, "seconds": 9.0}, *lines]}).splitlines()[-1]
    assert last == f"| {PROJECTED:,}, projected | 0.3 hours | 20 s |  |  |  |"


def test_files_of_users_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.experiments.PIECE", 1_000)
    make_users(tmp_path, 2, 3)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    make_users(tmp_path, 2, 3)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first
    made = pq.read_table(tmp_path / "1.parquet")
    assert made.column_names == ["arm", "m0", "m1", "m2"]
    assert len(made) == 1_000


def test_intervals_cover() -> None:
    for each in STORED["coverage"]:
        assert each["runs"] >= 400
        assert 0.93 <= each["covered"] <= 0.97, each
        assert 0.93 <= each["lift_covered"] <= 0.97, each


def test_simulated_users_add_up_as_a_vault_does() -> None:
    random, asked = np.random.default_rng(0), experiment(0.0, "record")
    arm = random.integers(0, 2, 200)
    columns = {name: random.uniform(0, 20, 200) for name in ("revenue", "before", "clicks", "views")}
    columns["bought"] = random.integers(0, 2, 200).astype(float)
    engine = open_table(pa.table({"arm": arm} | columns), asked.schema)
    found = exact_answer(asked.query, asked.schema, engine, Guarantee(epsilon=1)).ticks
    assert SimulatedUsers(asked.schema, arm, columns, random).exact(asked.query) == dict(found)
