"""DoWhy identifies, a vault answers once, and nothing of DoWhy's leads to a unit or asks a second time."""

import logging
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal.errors import DpcausalError, QueryError, RefusedError

pytest.importorskip("dowhy")
from dowhy import CausalModel

from dpcausal.integrations.dowhy import PrivateEstimator, empty_frame

# DoWhy and what it is made of warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

CANARY = 61.803398875
METHOD = "backdoor.dpcausal.integrations.dowhy.PrivateEstimator"
GRAPH = "digraph { age -> drug; ward -> drug; age -> score; ward -> score; drug -> score; sex -> score }"
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("drug", undeclared=0),
    outcome=dpc.Real("score", 0, 100),
    covariates=[dpc.Real("age", 18, 90), dpc.Category("ward", ["a", "b"]), dpc.Binary("sex")],
)
REGRESSION = dpc.RegressionAdjustment(covariates=["age", "ward"])


def table(n: int = 4_000) -> pd.DataFrame:
    """A study with confounding by age, an effect of 5, and one outcome that is found nowhere else."""
    random = np.random.default_rng(0)
    age, ward = random.uniform(18, 90, n), random.choice(["a", "b"], n)
    drug = (random.random(n) < 1 / (1 + np.exp((54 - age) / 20))).astype(int)
    score = np.clip(30 + 0.3 * age + 5 * drug + random.normal(0, 8, n), 0, 100)
    score[7] = CANARY
    return pd.DataFrame({"drug": drug, "score": score, "age": age, "ward": ward, "sex": random.integers(0, 2, n)})


@pytest.fixture(scope="module")
def vault() -> dpc.Vault:
    return dpc.Vault(table(), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=1e-3))


def model(frame: pd.DataFrame | None = None, graph: str = GRAPH, **given: Any) -> Any:
    names = {"treatment": "drug", "outcome": "score"} | given
    return CausalModel(empty_frame(SCHEMA) if frame is None else frame, graph=graph, **names)


def asked(source: dpc.Source, causal: Any = None, method: str = METHOD, **given: Any) -> Any:
    """What DoWhy's own call gives."""
    causal = causal or model()
    parameters = {"estimator": given.pop("estimator", REGRESSION), "fit_params": {"source": source, "epsilon": 2.0}}
    return causal.estimate_effect(causal.identify_effect(), method_name=method, method_params=parameters, **given)


@pytest.fixture(scope="module")
def estimate(vault: dpc.Vault) -> Any:
    return asked(vault, confidence_intervals=True)


def test_dowhy_finds_the_estimator_and_reports_its_numbers(estimate: Any, vault: dpc.Vault) -> None:
    effect = REGRESSION.estimate(vault, epsilon=2.0)  # the stored answer
    assert estimate.effect == effect
    assert estimate.value == effect.estimate == pytest.approx(5, abs=3)
    assert estimate.get_confidence_intervals() == effect.interval(0.95)
    assert estimate.get_confidence_intervals(confidence_level=0.8) == effect.interval(0.8)
    assert estimate.get_standard_error() == effect.standard_error
    assert f"95.0% confidence interval: {effect.interval(0.95)}" in str(estimate)
    assert "adjusted by regression in each arm on age, ward" in str(estimate)


def test_the_price_is_paid_once(vault: dpc.Vault) -> None:
    causal = model()
    first = asked(vault, causal)
    spent = vault.ledger.spent
    again = causal.estimate_effect(
        causal.identify_effect(), method_name=METHOD, fit_estimator=False, method_params={"estimator": REGRESSION}
    )
    assert again.value == first.value
    assert vault.ledger.spent == spent


def test_estimator_works_without_a_dowhy_model(vault: dpc.Vault) -> None:
    identified = model().identify_effect()
    fitted = PrivateEstimator(identified, estimator=REGRESSION).fit(empty_frame(SCHEMA), source=vault, epsilon=2.0)
    assert fitted.estimate_effect(empty_frame(SCHEMA)).effect == REGRESSION.estimate(vault, epsilon=2.0)


def test_the_textual_interpretation(estimate: Any, capsys: pytest.CaptureFixture[str]) -> None:
    estimate.interpret()
    assert str(estimate.value) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "estimator", "given"),
    [
        ("backdoor1", dpc.RegressionAdjustment(covariates=["sex", "ward", "age"]), {}),
        ("general_adjustment", REGRESSION, {}),
        ("backdoor", dpc.Stratification(by=[dpc.Cut("age", [40, 65]), "ward"]), {}),
        ("backdoor", dpc.DoublyRobust(covariates=["age", "ward"], estimand="ATT"), {"target_units": "att"}),
    ],
)
def test_any_valid_set_and_any_average(vault: dpc.Vault, method: str, estimator: Any, given: dict[str, Any]) -> None:
    name = METHOD.replace("backdoor", method)
    assert asked(vault, method=name, estimator=estimator, **given).value == pytest.approx(5, abs=4)


def test_a_trial_needs_no_adjustment(vault: dpc.Vault) -> None:
    trial = model(graph="digraph { drug -> score }")
    assert asked(vault, trial, estimator=dpc.DifferenceInMeans()).effect.n == 4_000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda vault: asked(vault, model(table())), "contains no units"),
        (lambda vault: asked(vault, model(table().head(1))), "a frame of 1"),
        (lambda vault: asked(vault, estimator=dpc.RegressionAdjustment(covariates=["age"])), "adjusts for age, ward"),
        (lambda vault: asked(vault, estimator=dpc.DifferenceInMeans()), "DifferenceInMeans for nothing"),
        (
            lambda vault: asked(vault, estimator=dpc.RegressionAdjustment(covariates=["age", "ward", "sex"])),
            "as identified",
        ),
        (lambda vault: asked(vault, target_units="att"), "target_units='ate'"),
        (lambda vault: asked(vault, target_units=lambda frame: frame["age"] > 50), "got function"),
        (lambda vault: asked(vault, target_units=table()), "got DataFrame"),
        (lambda vault: asked(vault, control_value=1, treatment_value=0), "control_value=0 and treatment_value=1"),
        (lambda vault: asked(vault, confidence_intervals="bootstrap"), "the method 'bootstrap'"),
        (lambda vault: asked(vault, test_significance=True), "significance"),
        (lambda vault: asked(vault, evaluate_effect_strength=True), "strength"),
        (lambda vault: asked(vault, model(treatment="sex"), estimator=dpc.DifferenceInMeans()), "that of sex on score"),
        (lambda _: asked(table()), "a Vault, a Rehearsal"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(
    vault: dpc.Vault, wrong: Callable[[dpc.Vault], object], said: str
) -> None:
    spent = vault.ledger.spent
    with pytest.raises(DpcausalError, match="expected") as refusal:
        wrong(vault)
    assert said in str(refusal.value)
    assert vault.ledger.spent == spent


def test_a_column_that_the_schema_does_not_declare(vault: dpc.Vault) -> None:
    frame = empty_frame(SCHEMA).assign(income=0.0)
    wide = model(frame, GRAPH.replace("}", "; income -> drug; income -> score }"))
    with pytest.raises(QueryError, match="got one with income"):
        asked(vault, wide, estimator=dpc.RegressionAdjustment(covariates=["age", "ward", "income"]))


def test_only_adjustment_identifies(vault: dpc.Vault) -> None:
    frame = empty_frame(SCHEMA).assign(lottery=0.0)
    lottery = model(frame, "digraph { lottery -> drug; age -> drug; age -> score; drug -> score }")
    with pytest.raises(QueryError, match="got one by iv"):
        asked(vault, lottery, method=METHOD.replace("backdoor", "iv"))


def test_dowhy_refuses_a_rehearsal_and_a_curve(vault: dpc.Vault) -> None:
    with pytest.raises(RefusedError, match="got a rehearsal"):
        asked(dpc.Rehearsal(SCHEMA, n=4_000))
    spent = vault.ledger.spent
    with pytest.raises(RefusedError, match="got EffectCurve"):
        asked(vault, estimator=dpc.SubgroupEffects(by=["ward"], covariates=["age"]))
    assert vault.ledger.spent == spent


def test_estimator_must_be_fitted_first() -> None:
    identified = model().identify_effect()
    with pytest.raises(QueryError, match="call fit first"):
        PrivateEstimator(identified, estimator=REGRESSION).estimate_effect(empty_frame(SCHEMA))


REFUTERS = [
    "random_common_cause",
    "add_unobserved_common_cause",
    "placebo_treatment_refuter",
    "data_subset_refuter",
    "bootstrap_refuter",
    "dummy_outcome_refuter",
]
NOT_OURS = {"add_unobserved_common_cause", "bootstrap_refuter"}
"""These stop at the empty frame by themselves, before they come to the estimator."""


@pytest.mark.parametrize("refuter", REFUTERS)
def test_a_refuter_cannot_estimate_again(estimate: Any, vault: dpc.Vault, refuter: str) -> None:
    causal, spent = model(), vault.ledger.spent
    with pytest.raises(ValueError if refuter in NOT_OURS else RefusedError):
        causal.refute_estimate(estimate.target_estimand, estimate, method_name=refuter)
    assert vault.ledger.spent == spent


@pytest.mark.parametrize(
    "again",
    [
        lambda estimate: estimate.get_confidence_intervals(method="bootstrap"),
        lambda estimate: estimate.get_standard_error(method="bootstrap"),
        lambda estimate: estimate.test_stat_significance(),
        lambda estimate: estimate.test_stat_significance(method="bootstrap"),
    ],
)
def test_a_bootstrap_cannot_estimate_again(estimate: Any, vault: dpc.Vault, again: Callable[[Any], object]) -> None:
    spent = vault.ledger.spent
    with pytest.raises(RefusedError, match="estimates repeatedly"):
        again(estimate)
    assert vault.ledger.spent == spent


def test_no_part_of_an_estimate_holds_a_record(caplog: pytest.LogCaptureFixture) -> None:
    """Not its text, its pickle, DoWhy's log or any object that can be reached from it: nor the vault itself."""
    own = dpc.Vault(table(), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=2.0))
    causal = model()
    with caplog.at_level(logging.DEBUG):
        estimate = asked(own, causal, confidence_intervals=True)
    for whole in (estimate, causal):
        kept = pickle.dumps(whole)  # a vault cannot be pickled, so there is none in it
        assert np.float64(CANARY).tobytes() not in kept
        assert np.float64(CANARY).tobytes()[::-1] not in kept
        assert b"Vault" not in kept
        assert str(CANARY).encode() not in kept
    words = f"{estimate}{estimate!r}{vars(estimate)}{vars(estimate.estimator)}{caplog.text}"
    assert str(CANARY)[:8] not in words
    assert len(estimate._data) == 0
    assert pickle.loads(pickle.dumps(estimate)).get_confidence_intervals() == estimate.effect.interval(0.95)  # noqa: S301


def test_dowhy_gets_no_interval_where_none_was_given(vault: dpc.Vault) -> None:
    trial = model(graph="digraph { drug -> score }")
    estimate = asked(vault, trial, estimator=dpc.DifferenceInMeans(with_interval=False))
    assert estimate.get_standard_error() is None
    with pytest.raises(RefusedError, match="sampling error was not asked for"):
        estimate.get_confidence_intervals()


def test_dowhy_gets_an_effect_without_an_interval() -> None:
    vault = dpc.Vault(table(8), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=2))
    estimate = asked(vault, confidence_intervals=True)
    assert "noise" in estimate.effect.no_interval
    assert f"Mean value: {estimate.value}" in str(estimate)
    with pytest.raises(RefusedError, match="noise"):
        estimate.get_confidence_intervals()
