"""DP-CATE: the algorithms as printed, the corrections beside them, and what the stored result must hold."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.dp_cate import page, runs
from benchmarks.papers.dp_cate.contestants import DELTA, QUERIES
from benchmarks.papers.dp_cate.nearness import COUNTS, nearness
from benchmarks.papers.dp_cate.printed import Fit, Kernel, anonymised, finite, functional
from benchmarks.papers.dp_cate.tables import paper
from benchmarks.papers.dp_cate.wide import REFUSED, WAYS, asked, drawn
from benchmarks.parts import PUBLISHED

STORED = PUBLISHED / "papers_dp_cate.json"
RESULT = json.loads(STORED.read_text(encoding="utf-8"))


def test_noise_is_in_proportion_to_one_over_epsilon() -> None:
    fit = Fit(np.zeros(10_000), 2.0)
    spread = [fit.noisy(epsilon, np.random.default_rng(0)).std() for epsilon in (0.5, 2.0)]
    assert spread[0] == pytest.approx(4.0, rel=0.03)
    assert spread[0] == pytest.approx(4 * spread[1])


def test_finite_version_is_fitted_once_for_all_epsilons() -> None:
    fit = finite(paper(1, 600, 0), "DR", "linear")
    assert len(fit.effects) == QUERIES
    assert fit.factor is None
    assert 0.3 < fit.sd < 20


def test_printed_ridge_of_the_mean_shrinks_and_the_readings_differ_by_n() -> None:
    table = paper(1, 600, 0)
    fits = functional(table, "DR")
    assert np.abs(fits["mean"].effects).mean() < 0.5 * np.abs(fits["sum"].effects).mean()
    assert fits["sum"].sd == pytest.approx(600 * fits["mean"].sd)
    assert fits["mixed"].sd == fits["mean"].sd
    assert (fits["mixed"].effects == fits["sum"].effects).all()
    assert fits["mean"].sd == pytest.approx(4 * 15 * math.sqrt(2 * math.log(2 / DELTA)) / 600)


@pytest.mark.parametrize(("covariates", "width"), [(2, 0.2), (2, 1.0), (10, 1.0)])
def test_lemma_3_loses_a_square_root(covariates: int, width: float) -> None:
    """Absolute errors of labels 1 and -1 at one profile, a squared penalty: one label of fifty turns.

    There a function is a number v, its length, and its value is v times the root of K(x, x).
    """
    value, ridge, n = (math.sqrt(math.tau) * width) ** -covariates, 1.0, 50
    root = math.sqrt(value)

    def fit(ones: int) -> float:
        labels = np.r_[np.ones(ones), -np.ones(n - ones)]
        lengths = np.linspace(-1, 1, 200_001) * root / n
        losses = np.mean([np.abs(root * lengths - label) for label in labels], axis=0) + ridge * lengths**2
        return float(lengths[losses.argmin()])

    moved, proof, printed = abs(fit(26) - fit(25)), root / (ridge * n), value / (ridge * n)
    assert moved == pytest.approx(proof, rel=1e-3)
    assert (moved > printed) == (width > 1 / math.sqrt(math.tau))


def test_theorem_2_has_enough_noise_for_narrow_kernels_only() -> None:
    assert page.widest(2) == pytest.approx(1.596, abs=1e-3)
    assert page.widest(30) == pytest.approx(0.438, abs=1e-3)
    assert all(page.epsilon_of_theorem_2(q, page.widest(q)) < 1 for q in (2, 10, 30))
    assert page.epsilon_of_theorem_2(10, 1.0) > 30


def test_a_gaussian_process_has_the_kernel_as_its_covariance() -> None:
    at = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    kernel = Kernel(2).between(at, at)
    values, vectors = np.linalg.eigh(kernel)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    assert factor @ factor.T == pytest.approx(kernel, abs=1e-9)
    assert Kernel(2).width == pytest.approx(2 / math.sqrt(2 * math.pi))  # in half ranges: the paper's constant is 1


@pytest.mark.parametrize("k", [2, 5, 40])
def test_no_class_is_smaller_than_k(k: int) -> None:
    features = np.random.default_rng(1).uniform(-1, 1, (500, 3))
    classes, counts = np.unique(anonymised(features, k), axis=0, return_counts=True)
    assert counts.min() >= k
    assert counts.max() <= 2 * k  # cut as long as both halves have k
    assert len(classes) > 500 / (2 * k) - 1


def test_k_anonymous_data_are_not_differentially_private() -> None:
    """One changed record shows in the released table as it is: nothing is random."""
    features = np.random.default_rng(1).uniform(-1, 1, (100, 2))
    changed = np.vstack([[1.0, 1.0], features[1:]])
    assert (anonymised(features, 5) == anonymised(features, 5)).all()
    assert not (anonymised(features, 5) == anonymised(changed, 5)).all()


def test_more_features_come_nearer_to_the_kernel() -> None:
    lines = [line for line in nearness(paper(1, 400, 0)) if line["ridge"] == "least"]
    assert [line["features"] for line in lines] == list(COUNTS)
    assert lines[-1]["apart"] < 0.5 * lines[0]["apart"]


def test_treatment_of_the_wide_table_follows_ten_columns() -> None:
    wide = drawn(5_000, 20, 0)
    assert np.corrcoef(wide.columns[:, :10].sum(axis=1), wide.arms)[0, 1] > 0.4
    assert np.abs(wide.outcomes).max() < 10


def test_all_columns_of_the_wide_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.papers.dp_cate.wide.WAYS", {})  # the others take longer
    (found,) = asked(300, 210, 0)
    assert found["way"] == REFUSED
    assert "at most 200" in found["refused"]


def test_quick_run_has_what_the_claims_ask_for() -> None:
    keys = {task.key.split("/")[0] for task in runs.tasks(quick=True, data=Path("anywhere"))}
    assert keys == {task.key.split("/")[0] for task in runs.tasks(quick=False, data=Path("anywhere"))}
    assert keys == {task.key.split("/")[0] for task in runs.tasks(quick=True, data=None)}


PRINTED = tuple(f"printed {meta}, {stage}" for meta in runs.METAS for stage in runs.STAGES)


@pytest.mark.parametrize("method", [*PRINTED, *runs.OURS, *runs.PEERS])
def test_stored_errors_of_dataset_1_begin_at_epsilon_a_tenth(method: str) -> None:
    rows = [row for row in RESULT["rows"] if (row["table"], row["method"]) == ("Dataset 1", method)]
    assert set(runs.EPSILONS) <= {row["epsilon"] for row in rows}
    assert min(row["repeats"] for row in rows) >= runs.REPEATS


def test_stored_result_has_every_part() -> None:
    methods = {row["method"] for row in RESULT["rows"] if row["table"] == "Dataset 2"}
    assert {"printed R, forest", "printed R, network", "printed R, linear", *runs.OURS} <= methods
    assert len(RESULT["nhefs"]) == 2
    assert {*WAYS, REFUSED} == {line["way"] for line in RESULT["wide"]["lines"]}
    assert all(any(row["method"] == peer for row in RESULT["rows"]) for peer in runs.PEERS)
    assert STORED.stat().st_size < 300_000


def test_claims_are_many_and_not_all_the_same() -> None:
    claims = page.claims(RESULT)
    assert len(claims) >= 8
    assert {"holds", "does not hold"} <= {claim.verdict for claim in claims}
