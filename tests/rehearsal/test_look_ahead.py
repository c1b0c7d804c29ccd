"""An estimator that asks several queries is refused before the first where the budget has too little for all."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, TableError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.queries import ArmMoments, ObjectivePerturbedLogistic, OutcomeCounts
from dpcausal.rehearsal.pricing import check_affords, outstanding_cost
from dpcausal.source import guarantee_for

OF = ["age", "ward"]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", undeclared=0),
    outcome=dpc.Real("score", 0, 10, missing=5),  # as matching needs it
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


@pytest.mark.parametrize("name", ["weighting", "overlap"])
def test_nothing_is_spent_under_the_zcdp_rule_either(name: str) -> None:
    """There Laplace noise of a part may cost more than the whole with Gaussian noise would."""
    short = vault(epsilon=3.0, delta=1e-6, rule="zcdp")
    with pytest.raises(BudgetExceededError):
        ask(name, short, 3.0, 1e-6)
    assert short.ledger.spent.epsilon == 0


def test_estimator_without_look_ahead_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without the look the first question is paid for in vain."""
    monkeypatch.setattr("dpcausal.rehearsal.pricing.check_affords", lambda *_: None)
    short = vault(epsilon=0.99, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        ask("doubly robust", short, 1.0, 0.0)
    assert short.ledger.spent.epsilon > 0


def test_sources_without_a_budget_are_left_alone() -> None:
    def never(_: dpc.Source) -> None:
        raise AssertionError

    check_affords(never, dpc.Rehearsal(SCHEMA, n=400))


@pytest.mark.parametrize("name", ASKED)
def test_prices_looked_up_ahead_are_those_paid(name: str) -> None:
    enough = vault(epsilon=1.0)
    ahead = outstanding_cost(enough, lambda source: ask(name, source, 1.0, 0.0))
    ask(name, enough, 1.0, 0.0)
    paid = [event for entry in enough.ledger.entries() if entry.kind == "grant" for event in entry.events]
    assert list(ahead.values()) == paid


@dataclass(frozen=True)
class ThirdParty(BaseEstimator):
    """An estimator from elsewhere: its second query depends on the answer to the first."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        first, rest = guarantee_for(source, epsilon, delta).split(0.5)
        below = source.release(OutcomeCounts([5.0]), first).value("count_0")
        source.release(OutcomeCounts([min(max(10 * below / source.n, 0.1), 9.9)]), rest)
        return dpc.DifferenceInMeans().estimate(dpc.Rehearsal(source.schema, source.n), epsilon=epsilon)


@dataclass(frozen=True)
class Nested(BaseEstimator):
    """An estimator that runs two others."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        ThirdParty().estimate(source, epsilon=epsilon / 2, delta=delta)
        return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon / 2, delta=delta)


@pytest.mark.parametrize("estimator", [ThirdParty(), Nested()], ids=["third party", "nested"])
def test_estimators_from_elsewhere_look_ahead_too(estimator: ThirdParty | Nested) -> None:
    short = vault(epsilon=0.9)
    with pytest.raises(BudgetExceededError):
        estimator.estimate(short, epsilon=1.0)
    assert short.ledger.spent.epsilon == 0
    enough = vault(epsilon=1.0)
    estimator.estimate(enough, epsilon=1.0)
    assert enough.ledger.spent.epsilon == pytest.approx(1.0)


def test_looking_ahead_reads_no_data_and_spends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = vault(epsilon=1.0)

    def opened(*_: object, **__: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(dpc.Vault, "_answer", opened)
        check_affords(lambda source: ask("doubly robust", source, 1.0, 0.0), enough)
    assert enough.ledger.spent.epsilon == 0
    assert {entry.kind for entry in enough.ledger.entries()} == {"open", "bind"}


def test_other_sources_are_not_asked_while_looking_ahead() -> None:
    """The score comes from another vault here, whose budget is short, or the first one's is."""
    weighting = dpc.InverseWeighting(covariates=OF)
    for budgets in ((1.0, 0.9), (0.9, 1.0)):
        first, other = (vault(epsilon=budget) for budget in budgets)
        with pytest.raises(BudgetExceededError):
            weighting.estimate(first, epsilon=1.0, scores_from=other)
        assert (first.ledger.spent.epsilon, other.ledger.spent.epsilon) == (0, 0)


def test_sources_that_share_a_ledger_share_its_budget() -> None:
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=1.5), as_of="2025")
    ledger.add_version("2026")
    years = [dpc.Vault(table(), SCHEMA, ledger=ledger, as_of=year) for year in ("2025", "2026")]

    def both(first: dpc.Source, second: dpc.Source) -> None:
        for source in (first, second):
            source.release(ArmMoments(), dpc.Guarantee(epsilon=0.8))

    with pytest.raises(BudgetExceededError, match=r"epsilon 1\.6, delta 0 for 2 queries"):
        check_affords(both, *years)


def test_frame_with_a_column_called_ledger_is_refused_as_no_source() -> None:
    frame = table().append_column("ledger", pa.array([1] * 400)).to_pandas()
    with pytest.raises(TableError, match="a Vault, a Rehearsal or another source"):
        dpc.DifferenceInMeans().estimate(frame, epsilon=1.0)
