"""Counts by arm: what they say of overlap holds as often as it claims, and the verdict is at a public threshold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.diagnostics import Overlap, OverlapTable
from dpcausal.diagnostics.overlap import effective_sizes, thin_share
from dpcausal.errors import QueryError
from dpcausal.queries import Cells, Cut, ObjectivePerturbedLogistic, StratumCounts
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", labels=("old", "new"), undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real("age", 20, 80), dpc.Category("ward", ["a", "b", "c"])],
)
TENTHS = [20 + 3 * place for place in range(1, 20)]


def table(n: int, slope: float) -> tuple[Any, Any]:
    """Arms that part the more the further age is from its middle."""
    random = np.random.default_rng(0)
    age, ward = random.uniform(20, 80, n), random.choice(["a", "b", "c"], n)
    t = (random.random(n) < 1 / (1 + np.exp(-slope * (age - 50)))).astype(int)
    whole = pa.table({"t": t, "y": age / 100, "age": age, "ward": ward})
    return fresh_noise(whole, SCHEMA), (t, age, ward)


def thin_in_truth(t: Any, age: Any, clip: float) -> float:
    bins = np.searchsorted(TENTHS, age, side="right")
    counts = np.bincount(2 * bins + t, minlength=40).reshape(-1, 2)
    thin = counts.min(axis=1) < clip * counts.sum(axis=1)
    return float(counts[thin].sum() / counts.sum())


@pytest.mark.parametrize(("slope", "delta"), [(0.1, 0.0), (0.06, 0.0), (0.1, 1e-6)])
def test_the_share_in_thin_bins_is_covered(slope: float, delta: float) -> None:
    source, (t, age, _) = table(2_000, slope)
    true, query = thin_in_truth(t, age, 0.1), StratumCounts(Cells([Cut("age", TENTHS)]))
    releases = [source.release(query, dpc.Guarantee(epsilon=1.0, delta=delta)) for _ in range(50)]
    found = [thin_share(release, 0.1, 2_000) for release in releases]
    assert np.mean([low <= true <= high for low, high in found]) > 0.82  # 95 % less 4 standard errors
    assert np.mean([high - low for low, high in found]) < 0.6  # and it says something
    # The mutant: counts taken at their word are wrong about most tables.
    quiet = [thin_share(replace(release, scales=(1e-9,) * 40), 0.1, 2_000) for release in releases]
    assert np.mean([low <= true <= high for low, high in quiet]) < 0.8


def test_counts_and_effective_sizes_are_covered() -> None:
    source, (t, _, ward) = table(2_000, 0.05)
    true = np.array([[((ward == value) & (t == arm)).sum() for arm in (0, 1)] for value in "abc"], dtype=float)
    sizes = effective_sizes(true[None], 0.1)[0]
    counted, effective = [], []
    for _ in range(100):
        found = Overlap(by=["ward"]).estimate(source, epsilon=0.5)
        for bin_, (control, treated) in zip(found.bins, true, strict=True):
            counted += [abs(bin_.control.value - control) / bin_.control.bar]
            counted += [abs(bin_.treated.value - treated) / bin_.treated.bar]
        effective += [
            abs(each.value - size) / each.bar for each, size in zip(found.effective, sizes, strict=True) if each
        ]
    assert np.mean(np.array(counted) <= 1) > 0.91
    assert np.mean(np.array(counted) <= 0.5) < 0.88  # the mutant: bars of half the noise
    assert np.mean(np.array(effective) <= 1) > 0.87
    assert np.mean(np.array(effective) <= 0.4) < 0.85


def test_effective_sizes_are_kishs() -> None:
    counts = np.array([[[80.0, 20.0], [50.0, 50.0]]])
    weights = np.repeat([1 / 0.2, 1 / 0.5], [20, 50])
    assert effective_sizes(counts, 0.1)[0, 1] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert effective_sizes(counts, 0.5)[0, 1] == pytest.approx(70)  # weights are kept within 1 / clip
    assert np.isnan(effective_sizes(np.array([[[5.0, -1.0]]]), 0.1)[0, 1])


@pytest.mark.parametrize(("slope", "passes"), [(0.01, True), (0.3, False)])
def test_the_verdict_is_that_of_the_table(slope: float, passes: bool) -> None:
    source, _ = table(5_000, slope)
    assert Overlap(by=[dpc.Cut("age", [30, 40, 50, 60, 70])]).estimate(source, epsilon=2.0).passes is passes
    assert Overlap(covariates=["age"]).estimate(source, epsilon=2.0).passes is passes


def test_verdict_is_open_where_noise_decides() -> None:
    source, _ = table(300, 0.05)
    found = [Overlap(by=["ward"]).estimate(source, epsilon=0.01 + 0.001 * place) for place in range(6)]
    assert [(each.passes, each.verdict) for each in found].count((None, "inconclusive")) >= 4  # all, 94 times of 100


def test_bins_of_a_score_have_clip_for_an_edge() -> None:
    source, _ = table(5_000, 0.2)
    score = source.release(ObjectivePerturbedLogistic(["age"]), dpc.Guarantee(epsilon=2.0))
    found = Overlap(covariates=["age"], clip=0.15).estimate(source, epsilon=1.0, score=score)
    names = [bin_.name for bin_ in found.bins]
    assert (names[:2], names[-1]) == (["score < 0.15", "0.15 ≤ score < 0.2"], "score ≥ 0.85")
    assert found.clipped is not None
    ends = [found.bins[place] for place in (0, -1)]
    assert found.clipped.value == pytest.approx(sum(each.control.value + each.treated.value for each in ends) / 5_000)
    assert [receipt.query for receipt in found.receipts] == ["score_counts"]
    assert "before" in found.notes[0]
    fresh = Overlap(covariates=["age"], clip=0.15).estimate(source, epsilon=1.0)
    assert [receipt.epsilon for receipt in fresh.receipts] == [0.1, 0.45, 0.45]


def test_wrong_parameters_are_refused_before_anything_is_spent() -> None:
    columns = {"t": [0, 1] * 50, "y": [0.5] * 100, "age": [50.0] * 100, "ward": ["a"] * 100}
    vault = dpc.Vault(pa.table(columns), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    wrong = [
        Overlap(),
        Overlap(by=["ward"], covariates=["age"]),
        Overlap(covariates=["height"]),
        Overlap(by=["age"]),
        Overlap(covariates=["age"], clip=0.5),
        Overlap(covariates=["age"], most=0.0),
        Overlap(covariates=["age"], share=0.0),
    ]
    for each in wrong:
        with pytest.raises(QueryError):
            each.estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0


@pytest.mark.parametrize("overlap", [Overlap(covariates=["age"]), Overlap(by=["ward"])], ids=str)
def test_diagnosis_is_paid_once_prints_and_survives_json(overlap: Overlap) -> None:
    columns = {"t": [0, 1] * 50, "y": [0.5] * 100, "age": [50.0] * 100, "ward": ["a"] * 100}
    vault = dpc.Vault(pa.table(columns), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    found = overlap.estimate(vault, epsilon=1.0)
    assert overlap.estimate(vault, epsilon=1.0) == found
    assert vault.ledger.spent.epsilon == pytest.approx(1.0)
    assert OverlapTable.from_json(found.to_json()) == found
    assert all(word in str(found) for word in ("Overlap of new and old", "verdict", "effective units", "ledger entry"))
    assert "<table>" in found._repr_html_()
    plan = overlap.estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)
    assert plan.rehearsed
    assert "expect ± " in str(plan)
    bills = [[(receipt.query, receipt.epsilon) for receipt in each.receipts] for each in (plan, found)]
    assert bills[0] == bills[1]
