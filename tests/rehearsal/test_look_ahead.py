"""An estimator that asks several questions is refused before the first, where a budget has not enough for all."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError
from dpcausal.queries import ObjectivePerturbedLogistic
from dpcausal.release import check_affords

OF = ["age", "ward"]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", undeclared=0),
    outcome=dpc.Real("score", 0, 10),
    covariates=[dpc.Real("age", 18, 90), dpc.Category("ward", ["a", "b"])],
)
ASKED = {
    "doubly robust": dpc.DoublyRobust(covariates=OF),
    "weighting": dpc.InverseWeighting(covariates=OF),
    "weighting, output": dpc.InverseWeighting(covariates=OF, scores="output"),
    "matching": dpc.PropensityMatching(covariates=OF),
    "R-learner": dpc.RLearner(covariates=OF, basis=dpc.Polynomial(["age"])),
    "DR-learner of a trial": dpc.DRLearner(covariates=OF, basis=dpc.Polynomial(["age"]), propensity=0.5),
    "kernel": dpc.KernelLearner(covariates=OF),
    "groups": dpc.SubgroupEffects(by=["ward"], covariates=["age"]),
    "overlap": dpc.Overlap(covariates=OF),
    "balance": dpc.Balance(covariates=OF, weighted_by=OF),
}


def table(n: int = 400) -> pa.Table:
    random = np.random.default_rng(0)
    columns = {"treat": random.integers(0, 2, n), "score": random.uniform(0, 10, n), "age": random.uniform(18, 90, n)}
    return pa.table(columns | {"ward": random.choice(["a", "b"], n)})


def vault(**budget: Any) -> dpc.Vault:
    return dpc.Vault(table(), SCHEMA, ledger="sqlite://", budget=dpc.Budget(**budget))


def ask(name: str, source: dpc.Source, epsilon: float, delta: float) -> object:
    return ASKED[name].estimate(source, epsilon=epsilon, delta=delta)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_nothing_is_spent_where_the_budget_cannot_pay_for_all_queries(name: str, delta: float) -> None:
    if name == "matching" and delta:
        pytest.skip("matching of whole records is pure")
    short = vault(epsilon=0.99, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        ask(name, short, 1.0, delta)
    assert short.ledger.spent.epsilon == 0


@pytest.mark.parametrize("name", ASKED)
def test_estimate_that_fits_is_paid_once_and_can_be_repeated(name: str) -> None:
    enough = vault(epsilon=1.0, delta=1e-5)
    first = ask(name, enough, 1.0, 0.0)
    assert 0.99 < enough.ledger.spent.epsilon <= 1
    assert ask(name, enough, 1.0, 0.0) == first


@pytest.mark.parametrize(
    "diagnosis", [dpc.Overlap(covariates=OF), dpc.Balance(covariates=OF, weighted_by=OF)], ids=repr
)
def test_estimate_on_a_released_score_can_be_repeated(diagnosis: Any) -> None:
    enough = vault(epsilon=2.0)
    score = enough.release(ObjectivePerturbedLogistic(OF), dpc.Guarantee(epsilon=1.0))
    first = diagnosis.estimate(enough, epsilon=1.0, score=score)
    assert enough.ledger.remaining.epsilon == pytest.approx(0, abs=1e-9)
    assert diagnosis.estimate(enough, epsilon=1.0, score=score) == first
    with pytest.raises(BudgetExceededError):
        diagnosis.estimate(enough, epsilon=0.5, score=score)


@pytest.mark.parametrize("name", ["weighting", "overlap", "R-learner", "groups"])
def test_nothing_is_spent_under_the_zcdp_rule_either(name: str) -> None:
    """There Laplace noise of a part may cost more than the whole with Gaussian noise would."""
    short = vault(epsilon=3.0, delta=1e-6, rule="zcdp")
    with pytest.raises(BudgetExceededError):
        ask(name, short, 3.0, 1e-6)
    assert short.ledger.spent.epsilon == 0


def test_outcome_range_is_paid_in_full_or_not_at_all() -> None:
    short = vault(epsilon=9.9)
    with pytest.raises(BudgetExceededError):
        dpc.OutcomeRange(tail=0.2, steps=3).find(short, epsilon=10.0)
    assert short.ledger.spent.epsilon == 0
    dpc.OutcomeRange(tail=0.2, steps=3).find(vault(epsilon=10.0), epsilon=10.0)


def test_estimator_without_look_ahead_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without the look the first question is paid for in vain."""
    monkeypatch.setattr("dpcausal.estimators.average.doubly_robust.check_affords", lambda *_: None)
    short = vault(epsilon=0.99, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        ask("doubly robust", short, 1.0, 0.0)
    assert short.ledger.spent.epsilon > 0


def test_sources_without_a_budget_are_left_alone() -> None:
    check_affords(dpc.Rehearsal(SCHEMA, n=400), (object(), object()))  # type: ignore[arg-type]
