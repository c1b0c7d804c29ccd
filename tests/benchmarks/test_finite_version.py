"""Noise by influence functions is not private, in four ways, and a search finds less: DP-CATE for finite queries."""

import math
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor

import dpcausal as dpc
from benchmarks.papers.dp_cate.influence import (
    SECOND_STAGES,
    DRLearner,
    Fitted,
    RLearner,
    Rows,
    finite_version,
    networks,
    places_among,
)
from dpcausal.estimators.conditional.meta_learners import MetaLearner

DELTA = 1e-5
PLACES = places_among([dpc.Real("a", 0, 1)])

Array = NDArray[np.float64]
Table = dict[str, Array]


def trial(n: int) -> Table:
    """A trial with an effect that grows with the covariate."""
    generator = np.random.default_rng(0)
    t, a = generator.integers(0, 2, n).astype(float), generator.uniform(0, 1, n)
    return {"t": t, "y": np.clip(0.5 + 0.2 * (t - 0.5) * a + generator.normal(0, 0.05, n), 0, 1), "a": a}


def with_first(table: Table, **cells: float) -> Table:
    """The same table but for the first unit: a neighbour."""
    return {name: np.r_[cells.get(name, line[0]), line[1:]] for name, line in table.items()}


def answered(learner: Fitted, table: Table, at: float = 0.5) -> tuple[float, float]:
    """The effect at a profile and the standard deviation of its noise."""
    rows = Rows(2 * table["a"][:, None] - 1, table["t"], table["y"], (0.0, 1.0), PLACES)
    effects, sd = finite_version(rows, np.array([[2 * at - 1]]), learner, DELTA)
    return float(effects[0]), sd


def with_means(second: str, propensity: Any = None) -> RLearner:
    """An R-learner whose models of outcome and propensity are means; the second stage is the paper's."""
    return RLearner(DummyRegressor(), propensity or DummyClassifier(), SECOND_STAGES[second]())


def epsilon_of_means(one: tuple[float, float], other: tuple[float, float], asked: int = 1) -> float:
    """A lower bound on epsilon: by how much likelier the mean of so many answers is beyond half way for one table.

    Answers have independent normal noise; for any set, P ≤ e^epsilon P' + delta.
    """
    (low, low_sd), (high, high_sd) = sorted((one, other))
    middle, root = (low + high) / 2, math.sqrt(asked)
    likely = stats.norm.sf((middle - high) / high_sd * root)
    return float(math.log(likely - DELTA) - stats.norm.logsf((middle - low) / low_sd * root))


def test_one_answer_reveals_one_outcome_of_a_thousand() -> None:
    """First reason: influence functions are about large samples, not about what one record does to this one.

    One unit sits on the profile, and its outcome goes from one end to the other. A forest follows. Nothing is searched
    for, models of outcome and propensity are means, and one question is asked.
    """
    table = with_first(trial(1_000), a=0.5, t=1.0)
    ends = [answered(with_means("forest"), with_first(table, y=y)) for y in (0.0, 1.0)]
    assert epsilon_of_means(ends[0], ends[1]) > 10


def test_one_answer_of_the_dr_learner_reveals_one_outcome_of_a_thousand() -> None:
    """The first reason holds for Lemma 2b too."""
    table = with_first(trial(1_000), a=0.5, t=1.0)
    ends = [
        answered(DRLearner(DummyRegressor(), DummyClassifier(), SECOND_STAGES["forest"]()), with_first(table, y=y))
        for y in (0.0, 1.0)
    ]
    assert epsilon_of_means(ends[0], ends[1]) > 5


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_noise_of_the_dr_learner_is_as_printed(share: float) -> None:
    """Lemma 2b: the influence divides by the propensity, so rare arms need more noise."""
    n = 1_000
    t = (np.arange(n) // 2 % round(1 / share) == 0).astype(float)  # both halves of the units alike
    table = {"t": t, "y": np.full(n, 0.25), "a": np.linspace(0, 1, n)}
    learner = DRLearner(DummyRegressor(), DummyClassifier(strategy="prior"), SECOND_STAGES["linear"]())
    _, size = answered(learner, table)
    printed = 5 * math.sqrt(2 * math.log(n) * math.log(2 / DELTA)) * (0.75 / share) / n
    assert size == pytest.approx(printed, rel=1e-6)


def test_thousand_profiles_cost_as_much_as_one() -> None:
    """Second reason: noise does not grow with the number of profiles, which may all be the same one.

    The learner is as tame as can be, a line. One answer keeps the claim; the mean of a thousand does not.
    """
    table = with_first(trial(1_000), a=1.0, t=1.0)
    ends = [answered(with_means("linear"), with_first(table, y=y), at=1.0) for y in (0.0, 1.0)]
    assert epsilon_of_means(ends[0], ends[1]) < 0.5
    assert epsilon_of_means(ends[0], ends[1], 1_000) > 2


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


def flips() -> RLearner:
    """An R-learner with a model of the outcome that one record turns."""
    return RLearner(Flips(), DummyClassifier(strategy="uniform"), SECOND_STAGES["linear"]())


def test_uncharged_models_reveal_a_unit() -> None:
    """Third reason: models are learned from the same table, and the claim is that this can be neglected."""
    one, other = (answered(flips(), table) for table in flipped(10_000))
    assert abs(one[0] - other[0]) > 0.08
    assert epsilon_of_means(one, other) > 10


def test_noise_scale_reveals_a_unit() -> None:
    """Fourth reason: noise is in proportion to a number that the table decides and nothing protects.

    The spread of 200 answers to one question tells which of two sizes it was, wherever the answers lie.
    """
    (_, one), (_, other) = (answered(flips(), table) for table in flipped(1_000))
    small, large = sorted((one, other))
    assert large > 1.2 * small
    freedom = 199  # of the sum of squares around the mean; a threshold between the two
    threshold = freedom * small * large
    likely, unlikely = stats.chi2.sf(threshold / large**2, freedom), stats.chi2.logsf(threshold / small**2, freedom)
    assert math.log(likely - DELTA) - unlikely > 3


class Spike(RLearner):
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
    """Fifth, of implementations: the largest value over all records is taken for the largest that a search has met."""
    place = 0.123456789
    assert np.abs(PLACES - place).min() > 1e-6
    searched, true = (
        Spike(place).largest_influence(np.zeros((100, 1)), places, (0.0, 1.0))
        for places in (PLACES, np.vstack([PLACES, [[place]]]))
    )
    assert true > 2.5 * searched


@pytest.mark.parametrize("n", [100, 10_000])
def test_noise_is_as_printed(n: int) -> None:
    """Five roots of 2 ln n ln(2 / delta), over epsilon n, times the largest influence over the mean overlap."""
    table = {"t": (np.arange(n) % 2).astype(float), "y": np.full(n, 0.25), "a": np.linspace(0, 1, n)}
    _, size = answered(with_means("linear", DummyClassifier(strategy="uniform")), table)
    largest = 0.5 * 0.75 / 0.25
    printed = 5 * math.sqrt(2 * math.log(n) * math.log(2 / DELTA)) * largest / n
    assert size == pytest.approx(printed, rel=1e-6)


@pytest.mark.parametrize(("learner", "meta_learner"), [*((name, "R") for name in SECOND_STAGES), ("linear", "DR")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learners_of_the_paper_learn(learner: str, meta_learner: MetaLearner) -> None:
    effect, _ = answered(networks(meta_learner, SECOND_STAGES[learner]()), trial(600), at=1.0)
    assert 0.1 < effect < 0.3
