"""Weekly looks at a growing table: the simulation is the estimators', and the page is what was measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import growing_tables as growing

ROOT = Path(__file__).parents[2]
STORED = json.loads((ROOT / "benchmarks/results/growing_tables.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("way", "price"), [("each week", (0.1, 0.0)), ("schedule", (1.0, 1e-6)), ("schedule", (1.0, 0.0))]
)
def test_estimates_at_once_are_those_of_the_estimators(way: str, price: tuple[float, float]) -> None:
    source = growing.GrowingSource(np.random.default_rng(0), rule="zcdp" if price[1] else "additive")
    found = growing.estimates(source, way, price)
    effects = [growing.WAYS[way](source, look, *price) for look in growing.SHOWN]
    wanted = [effect.estimate for effect in effects]
    assert [found[look - 1] for look in growing.SHOWN] == pytest.approx(
        wanted, abs=0.02 * (effects[-1].standard_error or 0)
    )


def test_page_says_how_often_schedules_covered() -> None:
    page = (ROOT / "docs/growing-tables.md").read_text(encoding="utf-8")
    assert growing.tables(STORED)["coverage"] in page


def test_stored_figures_are_what_is_claimed() -> None:
    assert STORED["weeks"] == 52
    assert all(line["runs"]["anytime"] >= 2000 and line["any_claim"]["anytime"] <= 0.05 for line in STORED["claims"])
    assert all(line["runs"] >= 400 and 0.93 <= line["coverage"] <= 0.97 for line in STORED["coverage"])
    noise = {line["way"]: line["privacy_sd"]["52"] for line in STORED["prices"]}
    assert noise["schedule, Gaussian"] < 0.4 * noise["each week, Gaussian"]
    assert noise["schedule, Laplace"] < 0.2 * noise["each week, Laplace"]
