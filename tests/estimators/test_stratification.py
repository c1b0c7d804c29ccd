import math

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal import queries
from dpcausal.errors import QueryError, RefusedError
from dpcausal.queries import StratumContrasts
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.vault.answers.stratum_contrasts import strata
from dpcausal.vault.table import open_table

COVARIATES: list[dpc.Real | dpc.Binary | dpc.Category] = [
    dpc.Category("ward", ["a", "b", "c"], missing="c"),
    dpc.Real("age", 20, 80),
    dpc.Binary("smoker", missing=0),
]
BY: list[str | dpc.Cut] = ["ward", dpc.Cut("age", [40, 60]), "smoker"]


@pytest.fixture(scope="module")
def confounded() -> pa.Table:
    """Older smokers are treated more often and fare worse; the effect is 1 in every stratum."""
    generator = np.random.default_rng(3)
    n = 6_000
    ward, age = generator.choice(["a", "b", "c"], n), generator.uniform(20, 80, n)
    smoker = generator.integers(0, 2, n)
    older = np.digitize(age, [40, 60])
    treat = generator.random(n) < 0.3 + 0.15 * older + 0.1 * smoker
    score = np.clip(6 - 1.0 * older - smoker + treat + generator.normal(0, 0.5, n), 0, 10)
    return pa.table({"ward": ward, "age": age, "smoker": smoker, "treat": treat.astype(int), "score": score})


def vault_of(table: pa.Table, protects: Protects = "record") -> dpc.Vault:
    schema = dpc.Schema(
        treatment=dpc.Treatment("treat", undeclared=0),
        outcome=dpc.Real("score", 0, 10, missing=5),
        covariates=COVARIATES,
        protects=protects,
    )
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=500, delta=1e-3))


def reference(table: pa.Table, cap: int) -> tuple[float, float, float]:
    """The estimate, its sampling error and the size, by plain pandas and floats."""
    frame = table.to_pandas().assign(bin=np.digitize(np.asarray(table["age"]), [40, 60]))
    effect = size = squares = design = 0.0
    for _, stratum in frame.groupby(["ward", "bin", "smoker"]):
        one, other = stratum.score[stratum.treat == 1], stratum.score[stratum.treat == 0]
        t, c = len(one), len(other)
        m = min(t, cap * c) + min(c, cap * t)
        effect += m * (one.mean() - other.mean())
        size += m
        squares += (t - 1) * one.var() + (c - 1) * other.var()
        design += m**2 * (1 / t + 1 / c)
    return effect / size, math.sqrt(squares / (len(frame) - 2 * 18) * design) / size, size


@pytest.mark.parametrize("cap", [1, 3])
@pytest.mark.parametrize("protects", PROTECTS)
def test_with_hardly_any_noise_it_is_the_textbook_estimator(confounded: pa.Table, protects: Protects, cap: int) -> None:
    effect = dpc.Stratification(by=BY, cap=cap).estimate(vault_of(confounded, protects), epsilon=100.0)
    estimate, error, _ = reference(confounded, cap)
    assert effect.estimate == pytest.approx(estimate, abs=8 * effect.privacy_sd + 1e-4)
    assert effect.sampling_sd == pytest.approx(error, rel=0.15)


def test_stratification_removes_confounding(confounded: pa.Table) -> None:
    vault = vault_of(confounded)
    adjusted = dpc.Stratification(by=BY).estimate(vault, epsilon=4.0)
    naive = dpc.DifferenceInMeans().estimate(vault, epsilon=4.0)
    assert adjusted.estimate == pytest.approx(1, abs=0.15)
    assert naive.estimate < 0.7


def test_delta_is_not_spent_where_laplace_noise_is_smaller(confounded: pa.Table) -> None:
    vault = vault_of(confounded)
    effect = dpc.Stratification(by=BY).estimate(vault, epsilon=10.0, delta=1e-5)
    assert effect.estimate == pytest.approx(1, abs=0.3)
    assert (effect.guarantee.delta, vault.ledger.spent.delta) == (0.0, 0.0)
    assert vault.ledger.spent.epsilon == pytest.approx(10)


def table_of(treated_share: float, n: int = 20_000) -> pa.Table:
    """A table of one kind of unit, of which this share is treated."""
    treat = (np.arange(n) < treated_share * n).astype(int)
    columns = {"ward": ["a"] * n, "age": [50.0] * n, "smoker": [0] * n, "treat": treat, "score": [5.0] * n}
    return pa.table(columns)


@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize(("share", "cap"), [(0.5, 5), (0.9, 13)])
def test_cap_follows_the_odds_of_the_larger_arm(protects: Protects, share: float, cap: int) -> None:
    effect = dpc.Stratification(by=["ward"]).estimate(vault_of(table_of(share), protects), epsilon=5.0)
    found = int(effect.method.rpartition("cap ")[2])
    assert found in ({cap} if protects != "record" else {cap, cap - 1})  # a private share is rounded towards a half
    assert len(effect.receipts) == (2 if protects == "record" else 1)
    assert effect.guarantee.epsilon == 5.0


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_cap_is_small_where_noise_is_large(share: float) -> None:
    few = dpc.Stratification(by=["ward"]).estimate(vault_of(table_of(share, 400)), epsilon=0.5)
    assert few.method.endswith("cap 3")


def test_estimand_is_renamed_where_much_is_trimmed() -> None:
    uneven = vault_of(table_of(0.95))
    trimmed, whole = (dpc.Stratification(by=["ward"], cap=cap).estimate(uneven, epsilon=20.0) for cap in (3, 30))
    assert trimmed.estimand.startswith("average effect in the overlap population of strata: ")
    assert "strata count as about 4,0" in trimmed.notes[0]
    assert whole.estimand.startswith("average treatment effect over strata with both arms")


def test_sites_of_different_arms_are_pooled_with_one_cap_only() -> None:
    sites = {str(share): vault_of(table_of(share), "outcome") for share in (0.5, 0.9)}
    own, same = (
        {name: dpc.Stratification(by=["ward"], cap=cap).estimate(vault, epsilon=5.0) for name, vault in sites.items()}
        for cap in (None, 12)
    )
    with pytest.raises(QueryError, match="give the same cap= at all sites"):
        dpc.pool(own)
    assert dpc.pool(same).estimand.startswith(same["0.5"].estimand)


def test_sparse_strata_lose_their_degrees_of_freedom() -> None:
    """A quarter of all units is alone in an arm of a stratum, and most strata are empty."""
    random = np.random.default_rng(4)
    n = 20_000
    table = pa.table(
        {
            "ward": random.choice(["a", "b", "c"], n),
            "age": np.clip(random.normal(50, 6, n), 20, 80),
            "smoker": random.integers(0, 2, n),
            "treat": random.integers(0, 2, n),
            "score": np.clip(random.normal(5, 0.5, n), 0, 10),
        }
    )
    by: list[str | dpc.Cut] = ["ward", dpc.Cut("age", np.linspace(20, 80, 1_601)[1:-1].tolist()), "smoker"]
    effect = dpc.Stratification(by=by, cap=3).estimate(vault_of(table), epsilon=100.0)
    frame = table.to_pandas().assign(bin=np.digitize(np.asarray(table["age"]), np.linspace(20, 80, 1_601)[1:-1]))
    sizes = frame.groupby(["ward", "bin", "smoker", "treat"]).size().unstack(fill_value=0).to_numpy()
    c, t = sizes.T
    m = np.minimum(t, 3 * c) + np.minimum(c, 3 * t)
    both = m > 0
    factor = (m[both] ** 2 * (1 / t[both] + 1 / c[both])).sum()
    assert effect.sampling_sd == pytest.approx(0.5 * math.sqrt(factor) / m.sum(), rel=0.03)


def test_outcome_level_needs_about_half_the_noise(confounded: pa.Table) -> None:
    record, outcome = (
        dpc.Stratification(by=BY, cap=3).estimate(vault_of(confounded, protects), epsilon=1.0)
        for protects in ("record", "outcome")
    )
    assert outcome.noise[0].scale < 0.55 * record.noise[0].scale


def test_strata_without_both_arms_have_an_answer_and_no_interval(confounded: pa.Table) -> None:
    frame = confounded.to_pandas()
    alone = frame.assign(treat=1)
    effect = dpc.Stratification(by=BY).estimate(vault_of(pa.Table.from_pandas(alone)), epsilon=10.0)
    assert np.isfinite(effect.estimate)
    with pytest.raises(RefusedError, match="few strata contain both arms"):
        effect.interval()
    assert "interval          none: few strata" in str(effect)


def test_the_effect_names_its_trimmed_estimand(confounded: pa.Table) -> None:
    effect = dpc.Stratification(by=BY, cap=3).estimate(vault_of(confounded), epsilon=4.0)
    assert "outnumbers the other by more than 3 to 1" in effect.estimand
    assert effect.method == "stratification by ward, age cut at 40, 60, smoker; 18 strata, cap 3"
    assert any("strata count as" in note for note in effect.notes)


@pytest.mark.parametrize("protects", PROTECTS)
def test_a_rehearsal_expects_what_then_happens(confounded: pa.Table, protects: Protects) -> None:
    vault = vault_of(confounded, protects)
    rehearsal = dpc.Rehearsal(vault.schema, n=vault.n, treated_share=0.5, outcome_sd=0.5)
    plan, effect = (dpc.Stratification(by=BY).estimate(source, epsilon=20.0) for source in (rehearsal, vault))
    assert np.ptp(effect.interval()) == pytest.approx(np.ptp(plan.interval()), rel=0.35)


def test_too_many_strata_have_no_interval_in_rehearsal_as_in_fact(confounded: pa.Table) -> None:
    many = dpc.Stratification(by=["ward", dpc.Cut("age", np.linspace(21, 79, 1_200).tolist())])
    vault = vault_of(confounded)
    for source in (vault, dpc.Rehearsal(vault.schema, n=vault.n)):
        with pytest.raises(RefusedError, match="fewer or wider strata"):
            many.estimate(source, epsilon=4.0).interval()


def test_bins_follow_their_edges(confounded: pa.Table) -> None:
    edges = np.linspace(21, 79, 1_500)
    schema = vault_of(confounded).schema
    query = StratumContrasts([dpc.Cut("age", edges.tolist())], 3)
    arms = strata(query.by, schema, open_table(confounded, schema))
    sizes = np.array([control[0] + treated[0] for control, treated in arms])
    expected = np.bincount(np.digitize(np.asarray(confounded["age"]), edges), minlength=1_501)
    assert np.abs(sizes - expected).sum() <= 6  # a value within a step of an edge may fall on its other side


def test_one_stratum_in_balance_is_a_difference_in_means(confounded: pa.Table) -> None:
    even = confounded.to_pandas().groupby("treat").head(2_000).assign(ward="a")
    vault = vault_of(pa.Table.from_pandas(even))
    one = dpc.Stratification(by=["ward"]).estimate(vault, epsilon=100.0)
    difference = dpc.DifferenceInMeans().estimate(vault, epsilon=100.0)
    assert one.estimate == pytest.approx(difference.estimate, abs=0.02)
    assert one.sampling_sd == pytest.approx(difference.sampling_sd, rel=0.1)


@pytest.mark.parametrize(
    ("by", "cap"),
    [
        ([], 3),
        (["nowhere"], 3),
        (["score"], 3),
        ([dpc.Cut("age", [60, 40])], 3),
        ([dpc.Cut("age", [10])], 3),
        ([dpc.Cut("ward", [1])], 3),
        (["ward", "ward"], 3),
        (["ward"], 0),
        (["ward"], 2.5),
        ([dpc.Cut("age", np.linspace(21, 79, 20_000).tolist()), "ward", "smoker"], 3),
    ],
)
def test_invalid_strata_are_refused_before_anything_is_spent(
    confounded: pa.Table, by: list[str | dpc.Cut], cap: int
) -> None:
    vault = vault_of(confounded)
    with pytest.raises(QueryError, match="Hint: "):
        dpc.Stratification(by=by, cap=cap).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0


def test_query_survives_serialisation() -> None:
    query = StratumContrasts([dpc.Cut("ward"), dpc.Cut("age", [40, 60])], 3)
    assert queries.from_dict(queries.to_dict(query)) == query
