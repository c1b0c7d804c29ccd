"""The page on experiments shows what was stored, and the simulation adds up as a vault does."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments import RESULTS, SimulatedUsers, cost_table, coverage_table, experiment
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.vault.table import open_table

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"
STORED = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_page_shows_the_stored_result() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert coverage_table(STORED) in page
    assert cost_table(STORED) in page


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
