"""The benchmark of several arms adds up as a vault does, its contrasts cover, and the page shows what it stored."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from benchmarks import several_arms
from benchmarks.data.files import default_folder, is_here

ROOT = Path(__file__).parents[2]


@pytest.mark.costly("benchmarks/results")
def test_simulated_source_adds_up_as_a_vault_does() -> None:
    """The benchmark's own sums are those of the vault, so that what it measures is about the vault."""
    random = np.random.default_rng(0)
    for design, _ in several_arms.designs(None)[::3]:
        units = design.draw(random, 4_000)
        source = several_arms.Simulated(design.schema, units, random)
        table = {"arm": units.arm, "y": units.outcome, "level": units.stratum}
        if units.features is not None:
            table |= {"x": units.features[0], "level": (units.features[1] > 0).astype(int)}
        vault = dpc.Vault(pa.table(table), design.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
        one = design.estimator.estimate(source, epsilon=100.0)
        other = design.estimator.estimate(vault, epsilon=100.0)
        assert one.arm_means is not None
        assert other.arm_means is not None
        assert one.arm_means.values == pytest.approx(other.arm_means.values, abs=5e-3)


@pytest.mark.costly("benchmarks/results")
def test_contrasts_cover_together_in_a_short_run() -> None:
    design, n = several_arms.designs(None)[8]
    assert (design.name, n) == ("5 arms, all pairs, means", 2_000)
    runs = [several_arms.simulate(design, n, (99, run)) for run in range(60)]
    assert sum(run["together"] for run in runs) >= 52
    assert abs(several_arms.summary(design, n, runs)["largest_bias_in_se"]) < 0.5


def test_stored_coverage_is_that_of_the_page_and_holds() -> None:
    stored = json.loads((ROOT / "benchmarks/results/several_arms.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/several-arms.md").read_text(encoding="utf-8")
    plain = [cell for cell in stored["cells"] if "coverage_each" not in cell]
    adjusted = [cell for cell in stored["cells"] if "coverage_each" in cell]

    def shown(values: list[float], digits: int = 1) -> str:
        return f"{min(values):.{digits}f} to {max(values):.{digits}f}"

    covered = [[100 * cell["coverage_together"] for cell in cells] for cells in (plain, adjusted)]
    assert (
        f"In the {len(plain)} settings, all intervals that should hold together did so in {shown(covered[0])} %" in page
    )
    assert f"in {len(adjusted)} settings, {shown(covered[1])} %" in page
    widths = {
        word: [cell["width_to_least_squares"] for cell in adjusted if cell["design"].endswith(word)]
        for word in ("randomised", "confounded")
    }
    assert f"{shown(widths['randomised'])} in trials and by {shown(widths['confounded'])} where" in page
    (one,) = (
        cell for cell in adjusted if (cell["design"], cell["n"]) == ("3 arms, means adjusted, confounded", 20_000)
    )
    (other,) = (each for each in stored["families"] if each["family"] == "doubly robust")
    assert one["mean_half_width"] / other["mean_half_width"] == pytest.approx(0.5, abs=0.05)
    assert min(cell["runs"] for cell in plain) >= 600
    for cell in stored["cells"]:
        # Of few confounded units, intervals have room for the confounding that noise may have left in.
        most = 0.99 if "confounded" in cell["design"] and cell["n"] <= 5_000 else 0.97
        assert 0.93 <= cell["coverage_together"] <= most, cell["design"]
        assert cell.get("lowest_coverage_each", 0.95) >= 0.93
        assert cell["refused"] == 0


@pytest.mark.skipif(
    not all(is_here(path, default_folder()) for path in ("hillstrom/hillstrom.csv", "star/star_ecdat_5748.csv")),
    reason="the environment variable DPCAUSAL_DATA names no folder that holds hillstrom and star",
)
def test_published_trials_have_their_own_contrasts_as_truth() -> None:
    (mails, sizes), (classes, _), (stroke, _) = several_arms.trials(default_folder())
    assert sizes == 64_000
    assert mails.truth[:2] == pytest.approx((0.0766, 0.0452), abs=1e-4)  # visits, by e-mail about men's or women's wear
    assert classes.truth[0] == pytest.approx(14.1, abs=0.1)  # points in a small class
    assert len(stroke.truth) == 5
    for design, n in ((mails, 64_000), (classes, 5_748), (stroke, 19_378)):
        run = several_arms.simulate(design, n, (5, 0))
        assert (np.abs(run["errors"]) < 2 * run["widths"]).all()
