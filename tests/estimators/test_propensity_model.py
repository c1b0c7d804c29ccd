"""A released propensity score: what it predicts, what it costs, and what may use it again."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import ScoreCounts
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0, labels=("usual care", "training")),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real("x", 10, 30), dpc.Category("k", ["p", "q", "r"], missing="r"), dpc.Binary("b", missing=0)],
)
NAMES = ("x", "k", "b")


def table_of(n: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    x, k, b = generator.uniform(10, 30, n), generator.choice(["p", "q", "r"], n), generator.integers(0, 2, n)
    logit = 0.1 * (x - 20) + 0.8 * (k == "q") - 0.5 * b
    t = (generator.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    y = np.clip(0.2 + 0.02 * (x - 10) + 0.1 * t + generator.uniform(-0.1, 0.1, n), 0, 1)
    return pa.table({"t": t, "x": x, "k": k, "b": b, "y": y})


def vault_of(n: int = 10_000) -> dpc.Vault:
    return dpc.Vault(table_of(n), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=20, delta=1e-3))


@pytest.fixture(scope="module")
def vault() -> dpc.Vault:
    return vault_of()


def model(**options: object) -> dpc.PropensityModel:
    return dpc.PropensityModel(covariates=NAMES, **options)  # type: ignore[arg-type]


def test_score_is_near_the_true_one_and_to_its_coefficients(vault: dpc.Vault) -> None:
    score = model().estimate(vault, epsilon=4.0, delta=1e-6)
    assert score.guarantee == dpc.Guarantee(epsilon=4.0)  # no delta is spent
    profiles = {"x": [12.0, 20.0, 28.0], "k": ["p", "q", "r"], "b": [1, 0, 1]}
    truth = 1 / (1 + np.exp(-np.array([-0.8 - 0.5, 0.8, 0.8 - 0.5])))
    assert score.predict(profiles) == pytest.approx(truth, abs=0.05)
    found = score.coefficients
    assert (found["b"], found["k=q"] - found["k=p"]) == pytest.approx((-0.5, 0.8), abs=0.12)
    scale = next(column.scale for column in score.schema.covariates if isinstance(column, dpc.Real))
    assert scale is not None
    by_hand = found["intercept"] + found["x"] * 0.5 + found["k=p"] + found["b"]  # of a score, not of a value
    profile = {"x": [scale.value_at(0.5)], "k": ["p"], "b": [1]}
    assert score.predict(profile)[0] == pytest.approx(1 / (1 + math.exp(-by_hand)), abs=1e-5)


def test_predictions_apply_public_bounds_missing_values_and_clip() -> None:
    score = model().estimate(dpc.Rehearsal(SCHEMA, n=5_000), epsilon=1.0)
    far = score.predict({"x": [-1e9, 10, 1e9, 30, math.nan], "k": ["p"] * 5, "b": [0] * 4 + [None]})
    assert far[0] == far[1] < far[2] == far[3]
    assert far[4] == score.predict({"x": [20], "k": ["p"], "b": [0]})[0]
    assert score.predict({"x": [10, 30], "k": ["p"] * 2, "b": [0, 1]}, clip=0.4).tolist() == [0.4, 0.6]
    with pytest.raises(QueryError, match="clip"):
        score.predict({"x": [10], "k": ["p"], "b": [0]}, clip=0.5)


def test_predictions_are_those_that_the_vault_counts_by() -> None:
    """The bins that the vault puts units into are those of the scores predicted for them."""
    table = table_of(3_000, seed=1)
    score = model().estimate(dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=4)), epsilon=4.0)
    query = ScoreCounts(NAMES, score.release.values, (0.3, 0.5, 0.7))
    exact = exact_answer(query, score.schema, open_table(table, score.schema), dpc.Guarantee(epsilon=1)).ticks
    predicted = score.predict({name: table[name].to_pylist() for name in NAMES})
    bins, arms = np.digitize(predicted, (0.3, 0.5, 0.7)), table["t"].to_numpy()
    counts = [int(((bins == place) & (arms == arm)).sum()) for place in range(4) for arm in (0, 1)]
    assert np.abs(np.array(list(exact.values())[:8]) - counts).max() <= 1  # one unit may be at an edge


def test_score_survives_json_and_prints_its_price(vault: dpc.Vault) -> None:
    score = model(scores="output").estimate(vault, epsilon=1.0, delta=1e-6)
    assert dpc.PropensityScore.from_json(score.to_json()) == score
    assert "Propensity score of training against usual care" in str(score)
    assert "paid" in str(score)
    assert score.noise_sd > 0
    assert json.loads(score.to_json())["release"]["receipt"]["digest"]
    lines = dpc.tidy(score, full=True)
    assert list(lines["group"]) == list(score.coefficients)
    assert lines["estimate"].tolist() == list(score.coefficients.values())
    assert set(lines["outcome"]) == {"t"}


def test_rehearsal_prices_a_score_and_shows_no_coefficients() -> None:
    rehearsed = model().estimate(dpc.Rehearsal(SCHEMA, n=5_000), epsilon=1.0)
    assert rehearsed.rehearsed
    assert "coefficients" not in str(rehearsed)
    assert dpc.tidy(rehearsed)["estimate"].isna().all()
    larger = model().estimate(dpc.Rehearsal(SCHEMA, n=50_000), epsilon=1.0)
    assert larger.noise_sd == pytest.approx(rehearsed.noise_sd / 10, rel=0.1)  # less of epsilon goes to scales


def test_expected_noise_is_that_of_predictions() -> None:
    """Scores of one table at the same price differ by about the size that the rehearsal says."""
    table = table_of(5_000, seed=2)
    x, k, b = (table.slice(0, 500)[name].to_pylist() for name in NAMES)
    drawn = []
    for _ in range(8):
        vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
        drawn.append(model().estimate(vault, epsilon=1.0).predict({"x": x, "k": k, "b": b}))
    logits = np.log(np.array(drawn) / (1 - np.array(drawn)))
    expected = model().estimate(dpc.Rehearsal(SCHEMA, n=5_000), epsilon=1.0).noise_sd
    assert float(np.sqrt(logits.var(axis=0, ddof=1).mean())) == pytest.approx(expected, rel=0.6)


def test_weighting_uses_a_released_score_again_without_paying_for_it() -> None:
    vault = vault_of()
    score = model().estimate(vault, epsilon=2.0)
    before = vault.ledger.spent.epsilon
    effect = dpc.InverseWeighting(covariates=NAMES).estimate(vault, epsilon=2.0, score=score)
    assert before == 2.0
    spent = vault.ledger.spent.epsilon
    assert spent <= 4.0
    assert [receipt.query for receipt in effect.receipts] == [
        "covariate_counts",
        "covariate_moments",
        "weighted_arms",
        "missing_outcomes",
    ]
    assert sum(receipt.epsilon for receipt in effect.receipts if not receipt.stored) == pytest.approx(2.0)
    assert "released before, for epsilon 1.95, delta 0" in str(effect)
    low, high = effect.interval(0.999)
    assert low < 0.1 < high
    low, high = effect.interval()
    assert high - low < 0.1
    again = dpc.InverseWeighting(covariates=NAMES).estimate(vault, epsilon=2.0, score=score)
    assert again == effect  # the same request: nothing more is spent
    assert vault.ledger.spent.epsilon == spent


def test_weighting_by_output_uses_a_score_again_too() -> None:
    vault = vault_of()
    score = model(scores="output").estimate(vault, epsilon=2.0)
    effect = dpc.InverseWeighting(covariates=NAMES, scores="output").estimate(vault, epsilon=2.0, score=score)
    assert [receipt.query for receipt in effect.receipts] == ["covariate_counts", "weighted_arms", "missing_outcomes"]


def test_diagnostics_use_a_released_score_again(vault: dpc.Vault) -> None:
    score = model().estimate(vault, epsilon=1.0)
    overlap = dpc.Overlap(covariates=NAMES).estimate(vault, epsilon=0.5, score=score)
    balance = dpc.Balance(covariates=NAMES, weighted_by=NAMES).estimate(vault, epsilon=0.5, score=score)
    assert [receipt.query for receipt in overlap.receipts] == ["covariate_counts", "score_counts"]
    assert len(balance.receipts) == 3
    assert overlap.receipts[0].digest == balance.receipts[0].digest == score.receipts[0].digest  # paid for once


def test_a_plan_can_reuse_a_rehearsed_score() -> None:
    rehearsal = dpc.Rehearsal(SCHEMA, n=20_000)
    score = model().estimate(rehearsal, epsilon=1.0)
    alone = dpc.InverseWeighting(covariates=NAMES).estimate(rehearsal, epsilon=1.0)
    reusing = dpc.InverseWeighting(covariates=NAMES).estimate(rehearsal, epsilon=1.0, score=score)
    assert reusing.privacy_sd < alone.privacy_sd


def test_a_score_of_something_else_is_refused_before_anything_is_spent() -> None:
    vault = vault_of(200)
    other = replace(SCHEMA, covariates=[dpc.Real("x", 0, 100), *SCHEMA.covariates[1:]])
    rehearsed = model().estimate(dpc.Rehearsal(SCHEMA, n=200), epsilon=1.0)
    wrong = [
        model().estimate(dpc.Rehearsal(SCHEMA, n=201), epsilon=1.0),
        model(scores="output").estimate(dpc.Rehearsal(SCHEMA, n=200), epsilon=1.0),
        model().estimate(dpc.Rehearsal(other, n=200), epsilon=1.0),
        replace(model(), covariates=["x"]).estimate(dpc.Rehearsal(SCHEMA, n=200), epsilon=1.0),
    ]
    for score in wrong:
        with pytest.raises(QueryError):
            dpc.InverseWeighting(covariates=NAMES).estimate(vault, epsilon=1.0, score=score)
    with pytest.raises(QueryError, match="scores_from"):
        dpc.InverseWeighting(covariates=NAMES).estimate(vault, epsilon=1.0, score=rehearsed, scores_from=vault_of(200))
    assert vault.ledger.spent.epsilon == 0


@pytest.mark.parametrize("wrong", [{"scores": "Output"}, {"penalty": 0.0}, {"covariates": ["y"]}], ids=str)
def test_a_mistaken_model_costs_nothing(wrong: dict[str, object]) -> None:
    vault = vault_of(200)
    with pytest.raises(QueryError):
        replace(model(), **wrong).estimate(vault, epsilon=1.0)  # type: ignore[arg-type]
    assert vault.ledger.spent.epsilon == 0


def test_names_of_other_libraries_are_hinted_at() -> None:
    score = model().estimate(dpc.Rehearsal(SCHEMA, n=200), epsilon=1.0)
    with pytest.raises(AttributeError, match=r"score\.predict"):
        getattr(score, "predict_proba")  # noqa: B009 (a type checker knows that there is none)
    with pytest.raises(AttributeError, match=r"model\.estimate"):
        getattr(model(), "fit")  # noqa: B009
