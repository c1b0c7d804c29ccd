"""Learners that may be put to work on rows: a few of scikit-learn's, and any that the vault's owner adds."""

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError

Array = NDArray[np.float64]

Learner = Callable[[Array, Array, Array, Array], Array]
"""From covariates (numbers from -1 to 1, one line a unit), arms (0 or 1), outcomes (as in the table) and profiles (like
covariates) to the effect at each profile."""

_CLIP = 0.05

_ONE_AT_A_TIME = threading.RLock()
"""Warnings and output are the process's own: what one thread keeps in, another would let out."""


class ResidualLearner:
    """An R-learner (Nie and Wager 2021) of any three scikit-learn models, outcome and propensity fitted crosswise."""

    def __init__(self, outcome: Any, propensity: Any, effect: Any) -> None:  # noqa: ANN401 (scikit-learn has no types)
        self._models, self._effect = (outcome, propensity), effect
        self._folds: list[tuple[Any, Any]] = []

    def fit(self, covariates: Array, arms: Array, outcomes: Array) -> Self:
        """Learn from rows."""
        from sklearn.base import clone  # noqa: PLC0415

        halves = np.arange(len(arms)) % 2
        for half in (0, 1):
            fold = halves != half
            outcome, propensity = (clone(model) for model in self._models)
            self._folds.append(
                (outcome.fit(covariates[fold], outcomes[fold]), propensity.fit(covariates[fold], arms[fold]))
            )
        missed, distance = np.zeros(len(arms)), np.zeros(len(arms))
        for half, models in enumerate(self._folds):
            own = halves == half
            missed[own] = outcomes[own] - models[0].predict(covariates[own])
            distance[own] = arms[own] - _probability(models[1], covariates[own])
        self._effect.fit(covariates, missed / distance, sample_weight=distance**2)
        return self

    def foretold(self, covariates: Array) -> Array:
        """The outcome that covariates foretell."""
        mean: Array = np.mean([outcome.predict(covariates) for outcome, _ in self._folds], axis=0)
        return mean

    def propensity(self, covariates: Array) -> Array:
        """The probability of treatment."""
        mean: Array = np.mean([_probability(model, covariates) for _, model in self._folds], axis=0)
        return mean

    def effect(self, covariates: Array) -> Array:
        """The effect."""
        effect: Array = self._effect.predict(covariates)
        return effect


def _probability(model: Any, covariates: Array) -> Array:  # noqa: ANN401 (scikit-learn has no types)
    share = model.predict_proba(covariates)
    treated = share[:, 1] if share.shape[1] == 2 else np.full(len(share), float(model.classes_[0]))
    clipped: Array = np.clip(treated, _CLIP, 1 - _CLIP)
    return clipped


def linear(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """A ridge regression of outcomes in each arm; needs nothing but numpy."""

    def foretold(arm: int) -> Array:
        chosen = arms == arm
        known = np.column_stack([np.ones(chosen.sum()), covariates[chosen]])
        ridge = np.diag([1e-6] + [0.1] * covariates.shape[1])
        slopes = np.linalg.solve(known.T @ known + ridge, known.T @ outcomes[chosen])
        result: Array = np.column_stack([np.ones(len(at)), at]) @ slopes
        return result

    return foretold(1) - foretold(0)


def forests() -> ResidualLearner:
    """Random forests."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: PLC0415

    kind: dict[str, Any] = {"n_estimators": 50, "min_samples_leaf": 5, "random_state": 0}
    return ResidualLearner(RandomForestRegressor(**kind), RandomForestClassifier(**kind), RandomForestRegressor(**kind))


def boosted_trees() -> ResidualLearner:
    """Boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # noqa: PLC0415

    kind: dict[str, Any] = {"max_iter": 50, "random_state": 0}
    return ResidualLearner(
        HistGradientBoostingRegressor(**kind),
        HistGradientBoostingClassifier(**kind),
        HistGradientBoostingRegressor(**kind),
    )


def networks(effect: Any = None) -> ResidualLearner:  # noqa: ANN401 (scikit-learn has no types)
    """Neural networks with 32 hidden units, as in the experiments of Schröder et al. (2025)."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: PLC0415

    kind: dict[str, Any] = {"learning_rate_init": 0.01, "batch_size": 128, "max_iter": 60, "random_state": 0}
    return ResidualLearner(
        MLPRegressor(hidden_layer_sizes=(32,), **kind),
        MLPClassifier(hidden_layer_sizes=(32,), **kind),
        MLPRegressor(hidden_layer_sizes=(32, 32), **kind) if effect is None else effect,
    )


def _learned(made: Callable[[], ResidualLearner]) -> Learner:
    def learner(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 (comes with scikit-learn)

        with threadpool_limits(limits=1):  # blocks are small: threads would only wait for each other
            return made().fit(covariates, arms, outcomes).effect(at)

    return learner


LEARNERS: Mapping[str, Learner] = {
    "linear": linear,
    "forest": _learned(forests),
    "boosting": _learned(boosted_trees),
    "network": _learned(networks),
}
"""The learners that every vault knows."""


def find_learner(name: str, own: Mapping[str, Learner]) -> Learner:
    """The learner of this name.

    Raises:
        QueryError: If there is none, or it needs a package that is not installed.
    """
    known = {**LEARNERS, **own}
    if name not in known:
        raise QueryError(
            expected=f"a learner out of {', '.join(known)}",
            got=repr(name),
            hint='the owner of the table may add others: Vault(…, learners={"mine": function}).',
        )
    if name not in own and name != "linear":
        check_scikit_learn(name)
    return known[name]


def check_scikit_learn(name: str) -> None:
    """Raise unless scikit-learn is installed, which the learner of this name is made of."""
    try:
        import sklearn  # noqa: F401, PLC0415
    except ImportError:
        raise QueryError(
            expected=f"scikit-learn, which the learner {name!r} is made of",
            got="an installation without it",
            hint="pip install 'dpcausal[learners]'.",
        ) from None


@contextlib.contextmanager
def _no_log_lines() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(sys.maxsize)
    try:
        yield
    finally:
        logging.disable(before)


def quietly(work: Callable[[], Array], size: int) -> Array:
    """What comes of some work; 0 wherever it fails or nothing finite comes of it. No word of its own gets out."""
    words = io.StringIO()
    try:
        with (
            _ONE_AT_A_TIME,
            _no_log_lines(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(words),
            contextlib.redirect_stderr(words),
        ):
            warnings.simplefilter("ignore")
            said = np.asarray(work(), dtype=np.float64).reshape(size)
    except (Exception, SystemExit):  # noqa: BLE001 (whatever it is, it may tell of rows)
        return np.zeros(size)
    return np.where(np.isfinite(said), said, 0.0)
