"""The bake-off: the page is what was stored, peers find an effect, and no unit moves more than they are charged for."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bakeoff import methods, page
from benchmarks.bakeoff.__main__ import main
from benchmarks.bakeoff.methods import DELTA, EPSILON, MU, PEERS, gaussian_mu, without_privacy
from benchmarks.bakeoff.runs import NONE, OURS, Run, summary
from benchmarks.bakeoff.tables import SETTINGS, Drawn
from benchmarks.parts import PUBLISHED

RESULTS = json.loads((PUBLISHED / "bakeoff.json").read_text(encoding="utf-8"))


def test_page_shows_the_stored_results() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.generated(RESULTS) in text
    assert page.PAGE.with_suffix(".csv").read_text(encoding="utf-8") == page.simplified()
    few = [cell for key, cell in RESULTS["cells"].items() if key.endswith(" 5000")]
    ours, plain = ([100 * cell[key]["coverage"] for cell in few] for key in (OURS, NONE))
    words = f"covered in {min(ours):.0f} to {max(ours):.0f} % of the tables of a kind, and intervals without privacy in"
    assert f"{words} {min(plain):.0f} to {max(plain):.0f} %" in text


@pytest.mark.parametrize("cell", RESULTS["cells"])
def test_stored_coverage_is_that_of_the_raw_intervals(cell: str) -> None:
    for key, raw in RESULTS["raw"][cell].items():
        errors, halves = np.array(raw["error"]), np.array(raw["half"])
        assert len(errors) == RESULTS["runs"] >= 100
        if RESULTS["cells"][cell][key]["given"] == 1:
            covered = float(np.mean(np.abs(errors) <= halves))
            assert covered == pytest.approx(RESULTS["cells"][cell][key]["coverage"], abs=0.011)  # raw ones are rounded


def test_gaussian_mu_is_on_the_curve_of_epsilon_and_delta() -> None:
    spent = methods._NORMAL.cdf(MU / 2 - EPSILON / MU) - math.exp(EPSILON) * methods._NORMAL.cdf(-MU / 2 - EPSILON / MU)
    assert spent == pytest.approx(DELTA, rel=1e-6)
    assert gaussian_mu(2.0, DELTA) > MU


@pytest.mark.parametrize("name", SETTINGS)
def test_regressions_agree_with_least_squares(name: str) -> None:
    drawn = SETTINGS[name].draw(np.random.default_rng(0), 2_000)
    design = np.column_stack([np.ones(2_000), drawn.t, drawn.x.T])
    low, high = without_privacy(drawn, SETTINGS[name], np.random.default_rng(0))
    assert (low + high) / 2 == pytest.approx(np.linalg.lstsq(design, drawn.y, rcond=None)[0][1], rel=1e-4)


@pytest.mark.parametrize("key", PEERS)
def test_peers_find_the_effect_of_a_large_trial(key: str) -> None:
    setting, random = SETTINGS["even"], np.random.default_rng(1)
    found = [PEERS[key].method(setting.draw(random, 50_000), setting, random) for _ in range(8)]
    middles = np.array([(low + high) / 2 for low, high in found])
    assert abs(middles.mean() - setting.truth) < 0.004
    assert sum(low <= setting.truth <= high for low, high in found) >= 5


def test_no_unit_moves_the_sums_of_peers_further_than_they_say() -> None:
    records = [(t, u) for t in (0.0, 1.0) for u in (-1.0, -0.3, 0.0, 0.6, 1.0)]
    moments = np.array([[t * u, (1 - t) * u, t / 2, (1 - u**2) / 2] for t, u in records])
    vectors = np.array([[t * u, (1 - t) * u, math.sqrt(2) * t] for t, u in records])
    assert np.abs(moments[:, None] - moments).sum(axis=2).max() <= 3
    assert np.sqrt(((vectors[:, None] - vectors) ** 2).sum(axis=2)).max() == pytest.approx(2)
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (200, 7))
    products = rows[:, :, None] * rows[:, None, :]
    apart = np.sqrt(((products[:, None] - products) ** 2).sum(axis=(2, 3)))
    assert apart.max() <= math.sqrt(2) * 7


def test_replacing_a_unit_moves_one_part() -> None:
    setting = SETTINGS["even"]
    drawn = setting.draw(np.random.default_rng(0), 500)
    y = drawn.y.copy()
    y[7] = 1.0
    one, other = (
        methods._partition(each, setting, np.random.default_rng(3))[0]
        for each in (drawn, Drawn(drawn.t, y, drawn.x, drawn.table))
    )
    assert np.sum(~np.isclose(one, other)) == 1


def test_summary_counts_only_intervals_that_were_given() -> None:
    def run(half: float, *, given: bool = True) -> Run:
        return {"error": 1.0, "half": half, "seconds": 1.0, "given": given}

    runs = [{OURS: run(2.0), NONE: run(1.0)}, {OURS: run(0.5, given=False), NONE: run(1.0)}]
    line = summary(runs)[OURS]
    assert (line["given"], line["coverage"]) == (0.5, 1.0)
    assert summary(runs[1:])[OURS]["coverage"] is None


def test_a_small_run_is_not_published(tmp_path: Path) -> None:
    before = page.PAGE.read_text(encoding="utf-8")
    file = tmp_path / "found.json"
    main(["--setting", "rare", "--n", "2000", "--runs", "3", "--workers", "0", "--result", str(file)])
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found["cells"]["rare 2000"]) == {OURS, NONE, *PEERS}
    assert len(found["raw"]["rare 2000"][OURS]["half"]) == 3
    page.draw(found, tmp_path / "figure.svg")
    assert page.PAGE.read_text(encoding="utf-8") == before
