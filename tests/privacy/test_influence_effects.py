"""Noise by influence functions is not private, in five ways; and nobody gets it who has not asked for it by name."""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import BudgetExceededError, GuaranteeError, LedgerError, QueryError
from dpcausal.queries import ArmTotals, InfluenceEffects
from dpcausal.queries.models import Learner
from dpcausal.queries.profiles import spread_out
from dpcausal.queries.query import GRID, outcome_tick
from dpcausal.vault.answers.influence_effects import SECOND_STAGES, influence
from dpcausal.vault.numerics.augmented_learner import AugmentedLearner
from dpcausal.vault.numerics.learners import ResidualLearner
from dpcausal.vault.table import open_table

MODULE = importlib.import_module("dpcausal.vault.answers.influence_effects")  # its name is that of a function in it
DELTA = 1e-5
CLAIM = dpc.Guarantee(epsilon=1, delta=DELTA, proof_status="heuristic")
PROVED = dpc.Guarantee(epsilon=1, delta=DELTA)
BUDGET = dpc.Budget(epsilon=3, delta=1e-4)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1)],
)
QUERY = InfluenceEffects("linear", ["a"], [[0.5]], 0.05)

Array = NDArray[np.float64]
Table = dict[str, Array]
Models = Callable[[Any, Any], None]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    """Puts other models of outcome and propensity in place of the networks; the second stage is the shipped one."""

    def use(outcome: Any, propensity: Any) -> None:
        monkeypatch.setattr(MODULE, "networks", lambda effect: ResidualLearner(outcome, propensity, effect))

    return use


def trial(n: int) -> Table:
    """A trial with an effect that grows with the covariate."""
    generator = np.random.default_rng(0)
    t, a = generator.integers(0, 2, n).astype(float), generator.uniform(0, 1, n)
    return {"t": t, "y": np.clip(0.5 + 0.2 * (t - 0.5) * a + generator.normal(0, 0.05, n), 0, 1), "a": a}


def with_first(table: Table, **cells: float) -> Table:
    """The same table but for the first unit: a neighbour."""
    return {name: np.r_[cells.get(name, line[0]), line[1:]] for name, line in table.items()}


def answered(query: InfluenceEffects, table: Table) -> tuple[float, float]:
    """The effect at the first profile and the size of its noise, in ticks."""
    answer = exact_answer(query, SCHEMA, open_table(pa.table(table), SCHEMA), CLAIM)
    return float(answer.ticks["profile 1"]), float(answer.scales["profile 1"])


def epsilon_of_means(one: tuple[float, float], other: tuple[float, float], asked: int = 1) -> float:
    """A lower bound on epsilon: by how much likelier the mean of so many answers is beyond half way for one table.

    Answers have independent normal noise; for any set, P ≤ e^epsilon P' + delta.
    """
    (low, low_sd), (high, high_sd) = sorted((one, other))
    middle, root = (low + high) / 2, math.sqrt(asked)
    likely = stats.norm.sf((middle - high) / high_sd * root)
    return float(math.log(likely - DELTA) - stats.norm.logsf((middle - low) / low_sd * root))


def test_one_answer_reveals_one_outcome_of_a_thousand(models: Models) -> None:
    """First reason: influence functions are about large samples, not about what one record does to this one.

    One unit sits on the profile, and its outcome goes from one end to the other. A forest follows. Nothing is searched
    for, models of outcome and propensity are means, and one question is asked.
    """
    models(DummyRegressor(), DummyClassifier())
    query, table = InfluenceEffects("forest", ["a"], [[0.5]], 0.05), with_first(trial(1_000), a=0.5, t=1.0)
    ends = [answered(query, with_first(table, y=y)) for y in (0.0, 1.0)]
    assert epsilon_of_means(ends[0], ends[1]) > 10


def test_one_answer_of_the_dr_learner_reveals_one_outcome_of_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first reason holds for Lemma 2b too."""
    monkeypatch.setattr(
        MODULE, "augmented_networks", lambda effect: AugmentedLearner(DummyRegressor(), DummyClassifier(), effect)
    )
    query = InfluenceEffects("forest", ["a"], [[0.5]], 0.05, "augmented")
    table = with_first(trial(1_000), a=0.5, t=1.0)
    ends = [answered(query, with_first(table, y=y)) for y in (0.0, 1.0)]
    assert epsilon_of_means(ends[0], ends[1]) > 5


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_noise_of_the_dr_learner_is_as_printed(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lemma 2b: the influence divides by the propensity, so rare arms need more noise."""
    n = 1_000
    monkeypatch.setattr(
        MODULE,
        "augmented_networks",
        lambda effect: AugmentedLearner(DummyRegressor(), DummyClassifier(strategy="prior"), effect),
    )
    t = (np.arange(n) // 2 % round(1 / share) == 0).astype(float)  # both halves of the units alike
    table = {"t": t, "y": np.full(n, 0.25), "a": np.linspace(0, 1, n)}
    _, size = answered(InfluenceEffects("linear", ["a"], [[0.5]], 0.05, "augmented"), table)
    printed = 5 * math.sqrt(2 * math.log(n) * math.log(2 / DELTA)) * (0.75 / share) / n
    assert size * outcome_tick(SCHEMA) == pytest.approx(printed, rel=1e-6)


def test_thousand_profiles_cost_as_much_as_one(models: Models) -> None:
    """Second reason: noise does not grow with the number of profiles, which may all be the same one.

    The learner is as tame as can be, a line. One answer keeps the claim; the mean of a thousand does not.
    """
    models(DummyRegressor(), DummyClassifier())
    table = with_first(trial(1_000), a=1.0, t=1.0)
    many = InfluenceEffects("linear", ["a"], [[1.0]] * 1_000, 0.05)
    once, often = (
        [answered(query, with_first(table, y=y)) for y in (0.0, 1.0)]
        for query in (InfluenceEffects("linear", ["a"], [[1.0]], 0.05), many)
    )
    assert once == often
    assert epsilon_of_means(once[0], once[1]) < 0.5
    assert epsilon_of_means(often[0], often[1], 1_000) > 2


class Flips(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A model that one record turns: 1 everywhere if any outcome is above 0.9, else 0.

    So may a choice between two models by cross-validation turn, or which of two local minima a network ends up in.
    """

    def fit(self, covariates: Array, outcomes: Array) -> Self:  # noqa: ARG002
        self.said_ = float(outcomes.max() > 0.9)
        return self

    def predict(self, covariates: Array) -> Array:
        return np.full(len(covariates), self.said_)


def flipped(n: int) -> tuple[Table, Table]:
    """Neighbours on which the model flips: 40 % of units treated, all outcomes the same but for one."""
    table = {"t": (np.arange(n) % 5 < 2).astype(float), "y": np.full(n, 0.5), "a": np.linspace(0, 1, n)}
    return table, with_first(table, y=1.0)


def test_uncharged_models_reveal_a_unit(models: Models) -> None:
    """Third reason: models are learned from the same table, and the claim is that this can be neglected."""
    models(Flips(), DummyClassifier(strategy="uniform"))
    one, other = (answered(QUERY, table) for table in flipped(10_000))
    assert abs(one[0] - other[0]) * outcome_tick(SCHEMA) > 0.08
    assert epsilon_of_means(one, other) > 10


def test_noise_scale_reveals_a_unit(models: Models) -> None:
    """Fourth reason: noise is in proportion to a number that the table decides and nothing protects.

    The spread of 200 answers to one question tells which of two sizes it was, wherever the answers lie.
    """
    models(Flips(), DummyClassifier(strategy="uniform"))
    (_, one), (_, other) = (answered(QUERY, table) for table in flipped(1_000))
    small, large = sorted((one, other))
    assert large > 1.2 * small
    freedom = 199  # of the sum of squares around the mean; a threshold between the two
    threshold = freedom * small * large
    likely, unlikely = stats.chi2.sf(threshold / large**2, freedom), stats.chi2.logsf(threshold / small**2, freedom)
    assert math.log(likely - DELTA) - unlikely > 3


class Spike(ResidualLearner):
    """Known models, and an effect at one place that the search for the largest influence does not look at."""

    def __init__(self, place: float) -> None:
        super().__init__(None, None, None)
        self._place = place

    def predicted_outcome(self, covariates: Array) -> Array:
        return np.full(len(covariates), 0.5)

    def propensity(self, covariates: Array) -> Array:
        return np.full(len(covariates), 0.5)

    def effect(self, covariates: Array) -> Array:
        return np.where(np.abs(covariates[:, 0] - self._place) < 1e-6, 2.0, 0.0)


def test_search_underestimates_the_largest_influence() -> None:
    """Fifth reason: the largest value over all records is taken for the largest that a search has met."""
    met = spread_out(SCHEMA.covariates, 4_096)["a"][:, None] / GRID
    place = 0.123456789
    assert np.abs(met - place).min() > 1e-6
    model, bounds = Spike(place), np.array([0.0, 1.0])
    searched, true = (
        influence(model, np.zeros((100, 1)), places, model.effect(places), bounds, 0.05)
        for places in (met, np.vstack([met, [[place]]]))
    )
    assert true > 2.5 * searched


@pytest.mark.parametrize("n", [100, 10_000])
def test_noise_is_as_printed(n: int, models: Models) -> None:
    """Five roots of 2 ln n ln(2 / delta), over epsilon n, times the largest influence over the mean overlap."""
    models(DummyRegressor(), DummyClassifier(strategy="uniform"))
    table = {"t": (np.arange(n) % 2).astype(float), "y": np.full(n, 0.25), "a": np.linspace(0, 1, n)}
    _, size = answered(QUERY, table)
    largest = 0.5 * 0.75 / 0.25
    printed = 5 * math.sqrt(2 * math.log(n) * math.log(2 / DELTA)) * largest / n
    assert size * outcome_tick(SCHEMA) == pytest.approx(printed, rel=1e-6)


@pytest.mark.parametrize(
    ("learner", "pseudo_outcome"), [*((name, "residual") for name in sorted(SECOND_STAGES)), ("linear", "augmented")]
)
def test_shipped_learners_learn(learner: str, pseudo_outcome: Learner) -> None:
    effect, _ = answered(InfluenceEffects(learner, ["a"], [[1.0]], 0.05, pseudo_outcome), trial(600))
    assert 0.1 < effect * outcome_tick(SCHEMA) < 0.3


AS_OF = "2026-06-30"


def opened(**parts: Any) -> dpc.Vault:
    settings: dict[str, Any] = {"ledger": "sqlite://", "budget": BUDGET, "as_of": AS_OF} | parts
    return dpc.Vault(pa.table(trial(60)), SCHEMA, **settings)


ALLOWED = [InfluenceEffects.name]


def test_door_refuses_an_unproved_query() -> None:
    vault = opened()
    with pytest.raises(GuaranteeError, match=r"allow_unproved=\['influence_effects'\]"):
        vault.release(QUERY, CLAIM)
    assert vault.ledger.spent.epsilon == 0
    assert vault.ledger.proof_status == "proved"


def test_door_calls_no_unproved_query_proved() -> None:
    for vault in (opened(), opened(allow_unproved=ALLOWED)):
        with pytest.raises(GuaranteeError, match="a heuristic guarantee"):
            vault.release(QUERY, PROVED)
        assert vault.ledger.spent.epsilon == 0


def test_door_calls_no_proved_query_heuristic() -> None:
    for vault in (opened(), opened(allow_unproved=ALLOWED)):
        with pytest.raises(GuaranteeError, match="a proved guarantee"):
            vault.release(ArmTotals(), CLAIM)
        assert vault.ledger.spent.epsilon == 0


def test_guarantee_without_delta_is_refused() -> None:
    vault = opened(allow_unproved=ALLOWED)
    with pytest.raises(QueryError, match="delta greater than 0"):
        vault.release(QUERY, dpc.Guarantee(epsilon=1, proof_status="heuristic"))
    assert vault.ledger.spent.epsilon == 0


@pytest.mark.parametrize("named", ["influence_effects", ["arm_totals"], ["influence"], ["everything"]])
def test_only_existing_unproved_queries_can_be_allowed(named: Any) -> None:
    with pytest.raises(GuaranteeError, match="a list of queries without proof"):
        opened(allow_unproved=named)


def test_ledger_remembers_an_unproved_release(tmp_path: Path, models: Models) -> None:
    models(DummyRegressor(), DummyClassifier())
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    vault = opened(ledger=url, allow_unproved=ALLOWED)
    vault.release(ArmTotals(), PROVED)
    standing = [vault.ledger.proof_status]
    release = vault.release(QUERY, CLAIM)
    assert [*standing, vault.ledger.proof_status] == ["proved", "heuristic"]
    assert vault.ledger.spent.epsilon == 2
    assert "a part without proof" in repr(vault.ledger)
    assert release.guarantee.proof_status == "heuristic"
    assert "(heuristic)" in str(release.guarantee)
    again = dpc.Ledger(url)
    assert again.proof_status == "heuristic"
    assert again.data_set is not None
    assert again.data_set.allow_unproved == tuple(ALLOWED)
    assert "allows without proof influence_effects" in str(again.data_set)
    assert opened(ledger=url, allow_unproved=ALLOWED).release(QUERY, CLAIM) == release


def test_unproved_release_of_another_process_is_seen(tmp_path: Path, models: Models) -> None:
    models(DummyRegressor(), DummyClassifier())
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    one, other = (opened(ledger=url, allow_unproved=ALLOWED) for _ in range(2))
    other.release(QUERY, CLAIM)
    assert one.ledger.proof_status == "heuristic"


def test_allowed_unproved_queries_cannot_be_redeclared(tmp_path: Path) -> None:
    for first, second in (((), ALLOWED), (ALLOWED, ())):
        url = f"sqlite:///{tmp_path / f'ledger-{len(first)}.db'}"
        dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
        opened(ledger=url, allow_unproved=first)
        with pytest.raises(LedgerError, match="data set"):
            opened(ledger=url, allow_unproved=second)


def test_unproved_query_has_no_price_in_rho() -> None:
    vault = opened(allow_unproved=ALLOWED, budget=dpc.Budget(epsilon=3, delta=1e-4, rule="zcdp"))
    with pytest.raises(BudgetExceededError, match="additive rule"):
        vault.release(QUERY, CLAIM)


def test_noise_scale_is_not_released(models: Models) -> None:
    models(DummyRegressor(), DummyClassifier())
    release = opened(allow_unproved=ALLOWED).release(QUERY, CLAIM)
    assert release.scales == (None,)
    assert release.family == "gaussian"
    with pytest.raises(QueryError, match="public size"):
        release.scale("profile 1")


@pytest.mark.parametrize(("learner", "clip"), [("boosting", 0.05), ("mine", 0.05), ("forest", 0.0), ("forest", 0.5)])
def test_other_learners_and_clips_are_refused(learner: str, clip: float) -> None:
    with pytest.raises(QueryError, match="a clip"):
        InfluenceEffects(learner, ["a"], [[0.5]], clip)
