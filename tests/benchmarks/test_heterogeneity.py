"""The benchmark of effects that vary: its tables, who is in it, and a quick run that goes on where it stopped."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.heterogeneity.__main__ import main
from benchmarks.heterogeneity.suite import PLANS, heterogeneity, tables_for
from benchmarks.heterogeneity.tables import GENERATED, generated, ihdp, table
from benchmarks.heterogeneity.work import rows
from benchmarks.papers.dp_cate import boosting, references
from benchmarks.papers.dp_cate.contestants import CONTESTANTS, NO_PRIVACY, Contestant, Found
from benchmarks.papers.dp_cate.tables import Table, paper

FOLDER = os.environ.get("DPCAUSAL_DATA", "")


def pehe(found: Found, chosen: Table) -> float:
    return float(np.sqrt(np.mean((found.effects - chosen.effects) ** 2)))


def contestant(label: str) -> Contestant:
    return next(each for each in CONTESTANTS if each.label == label)


@pytest.mark.parametrize(
    ("name", "spread"),
    [("Dataset 1", 1.14), ("Dataset 2", 2.39), ("Dataset 2, five covariates", 2.39), ("generated", 1.17)],
)
def test_tables_have_both_arms_and_outcomes_within_their_bounds(name: str, spread: float) -> None:
    for repeat in range(5):
        chosen = table(name, 2_700, repeat, None)
        low, high = chosen.data.schema("record").outcome_bounds
        outcomes = chosen.data.column("y")
        assert low < outcomes.min()
        assert outcomes.max() < high
        assert 0.4 < chosen.arms.mean() < 0.9
        assert chosen.effects.std() == pytest.approx(spread, abs=0.05)
        assert set(chosen.profiles) == set(chosen.data.names)


def test_dataset_2_as_printed_has_no_controls() -> None:
    generator = np.random.default_rng(0)
    x, b = generator.uniform(0, 1, (3_000, 30)), generator.uniform(0, 0.3, 30)
    assert (x @ b >= generator.uniform(-1, 1, 3_000)).all()


@pytest.mark.skipif(
    not Path(FOLDER, "ihdp").is_dir(), reason="the environment variable DPCAUSAL_DATA names no folder that holds ihdp"
)
def test_effects_of_ihdp_are_those_of_its_units() -> None:
    chosen = ihdp(Path(FOLDER), 1)
    assert len(chosen.effects) == chosen.data.n == 747
    assert chosen.effects.mean() == pytest.approx(chosen.data.truth)
    assert set(chosen.data.names) == set(chosen.data.short)


def test_without_privacy_the_effect_is_found() -> None:
    chosen = generated(20_000, 0)
    effects, errors = references.same_functions(chosen)
    assert pehe(Found(effects), chosen) < 0.1
    assert np.mean(np.abs(effects - chosen.effects) < 1.96 * errors) > 0.8


@pytest.mark.costly("benchmarks/results")
def test_with_privacy_it_is_found_nearly_as_well() -> None:
    chosen = generated(50_000, 0)
    learned = contestant("R-learner").ask(chosen, 8.0, np.random.default_rng(0))
    level = contestant("difference in means").ask(chosen, 8.0, np.random.default_rng(0))
    assert pehe(learned, chosen) < 0.3  # about 0.04, where effects have a standard deviation of 1.19
    assert pehe(level, chosen) > 1.1


@pytest.mark.skipif(not boosting.installed(), reason="interpret-core is not installed: pip install interpret-core")
@pytest.mark.parametrize("label", ["Niu et al. 2022, DP-EBM, R-learner", "Niu et al. 2022, DP-EBM, DR-learner"])
def test_boosted_models_learn_the_effect(label: str) -> None:
    chosen = generated(20_000, 0)
    found = contestant(label).ask(chosen, 8.0, np.random.default_rng(0))
    assert pehe(found, chosen) < 0.8  # about 0.22
    assert found.low is None


def test_rows_are_means_over_repeats() -> None:
    run = {"table": "a", "n": 10, "sd": 1.0, "epsilon": 1.0, "contestant": "b", "group": "ours", "private": True}
    given = [run | {"pehe": error, "covered": covered, "seconds": 1.0} for error, covered in ((1.0, 0.9), (3.0, None))]
    (row,) = rows(given)
    assert (row["pehe"], row["pehe_se"], row["coverage"], row["intervals"], row["repeats"]) == (2.0, 1.0, 0.9, 1, 2)


def test_tables_without_files_are_those_that_are_generated() -> None:
    assert set(tables_for(None)) == set(PLANS) & set(GENERATED) == set(GENERATED)
    assert tables_for("anywhere") == list(PLANS)


@pytest.mark.slow
def test_a_quick_run_prints_draws_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.jsonl"
    main(["--quick", "--tables", "generated", "--kept", str(kept), "--figures", str(tmp_path), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert {row["contestant"] for row in result["rows"]} >= {NO_PRIVACY, *(each.label for each in CONTESTANTS)}
    assert all(np.isfinite(row["pehe"]) for row in result["rows"])
    assert {path.name for path in tmp_path.glob("*.svg")} == {"pehe.svg", "curve_epsilons.svg"}
    written = kept.read_text()
    saved = tmp_path / "result.json"
    saved.write_text(json.dumps(result))
    main(["--result", str(saved)])
    assert capsys.readouterr().out.count("generated") == len(result["rows"])
    again = heterogeneity(["generated"], None, quick=True, kept=kept)
    assert again["rows"] == result["rows"]
    assert kept.read_text() == written


def test_new_tables_for_each_repeat() -> None:
    assert not np.array_equal(paper(1, 100, 0).outcomes, paper(1, 100, 1).outcomes)
