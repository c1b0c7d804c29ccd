"""Learners that may be put to work on rows: a few of scikit-learn's, and any that the vault's owner adds."""

import contextlib
import io
import logging
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.utils.arrays import Array
from dpcausal.utils.plain_text import check_plain_text

Learn = Callable[[Array, Array, Array, Array], Array]
"""From covariates (numbers from -1 to 1, one line a unit), arms (0 or 1), outcomes (as in the table) and profiles (like
covariates) to the effect at each profile."""


@dataclass(frozen=True)
class Learner:
    """A learner of your own, and which version of it this is.

    The version is part of every question to the learner: a question to another version is another question, with a
    price and an answer of its own. It is a text that you declare, not a digest of the code: the code's digest changes
    with the version of Python and misses what the code calls. Declare a new version whenever the answer would mean
    something else.

    Attributes:
        function: What gives the effect at each profile, from covariates (numbers from -1 to 1, one line a unit), arms
            (0 or 1), outcomes (as in the table) and profiles (like covariates).
        version: A public text, for instance "1" or "2026-11, 200 trees".

    Example:
        >>> mean = lambda covariates, arms, outcomes, profiles: np.full(len(profiles), outcomes[arms == 1].mean())
        >>> Learner(mean, version="1").version
        '1'
    """

    function: Learn
    version: str

    def __post_init__(self) -> None:
        if not (callable(self.function) and isinstance(self.version, str) and self.version.strip()):
            raise QueryError(
                expected="a function and the version of it, a text",
                got=f"{type(self.function).__name__} and version={self.version!r}",
                hint='write Learner(function, version="1").',
            )
        check_plain_text("version of a learner", [self.version], QueryError)

    def __call__(self, covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        """Return the effect at each profile."""
        return self.function(covariates, arms, outcomes, at)


_CLIP = 0.05

_AVERAGE_CLIP, _NEWTON_STEPS, _CONSTANT = 0.02, 12, 1e-6
"""Of the quadratic average: where propensities are clipped, how many steps its logistic regression takes, and the
standard deviation below which a term counts as constant."""

_ONE_AT_A_TIME = threading.RLock()
"""Warnings and output are the process's own: what one thread keeps in, another would let out."""


class ResidualLearner:
    """An R-learner (Nie and Wager 2021) of any three scikit-learn models, outcome and propensity fitted crosswise.

    Attributes:
        folds: After a fit, the models of outcome and propensity of each half of the units.
    """

    def __init__(self, outcome: Any, propensity: Any, effect: Any) -> None:  # noqa: ANN401 (scikit-learn has no types)
        self._models, self._effect = (outcome, propensity), effect
        self.folds: list[tuple[Any, Any]] = []

    def fit(self, covariates: Array, arms: Array, outcomes: Array) -> Self:
        """Learn from rows."""
        from sklearn.base import clone  # noqa: PLC0415

        halves = np.arange(len(arms)) % 2
        for half in (0, 1):
            fold = halves != half
            outcome, propensity = (clone(model) for model in self._models)
            self.folds.append(
                (outcome.fit(covariates[fold], outcomes[fold]), propensity.fit(covariates[fold], arms[fold]))
            )
        missed, distance = np.zeros(len(arms)), np.zeros(len(arms))
        for half, models in enumerate(self.folds):
            own = halves == half
            missed[own] = outcomes[own] - models[0].predict(covariates[own])
            distance[own] = arms[own] - treatment_probability(models[1], covariates[own])
        self._effect.fit(covariates, missed / distance, sample_weight=distance**2)
        return self

    def effect(self, covariates: Array) -> Array:
        """Return the effect."""
        effect: Array = self._effect.predict(covariates)
        return effect


def treatment_probability(model: Any, covariates: Array) -> Array:  # noqa: ANN401 (scikit-learn has no types)
    """Return a classifier's probability of treatment, clipped."""
    share = model.predict_proba(covariates)
    treated = share[:, 1] if share.shape[1] == 2 else np.full(len(share), float(model.classes_[0]))
    clipped: Array = np.clip(treated, _CLIP, 1 - _CLIP)
    return clipped


def linear(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """Return effects by a ridge regression of outcomes in each arm; needs nothing but numpy."""

    def predicted(arm: int) -> Array:
        chosen = arms == arm
        known = np.column_stack([np.ones(chosen.sum()), covariates[chosen]])
        ridge = np.diag([1e-6] + [0.1] * covariates.shape[1])
        slopes = np.linalg.solve(known.T @ known + ridge, known.T @ outcomes[chosen])
        result: Array = np.column_stack([np.ones(len(at)), at]) @ slopes
        return result

    return predicted(1) - predicted(0)


def forests() -> ResidualLearner:
    """Return random forests."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: PLC0415

    kind: dict[str, Any] = {"n_estimators": 50, "min_samples_leaf": 5, "random_state": 0}
    return ResidualLearner(RandomForestRegressor(**kind), RandomForestClassifier(**kind), RandomForestRegressor(**kind))


def boosted_trees() -> ResidualLearner:
    """Return boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # noqa: PLC0415

    kind: dict[str, Any] = {"max_iter": 50, "random_state": 0}
    return ResidualLearner(
        HistGradientBoostingRegressor(**kind),
        HistGradientBoostingClassifier(**kind),
        HistGradientBoostingRegressor(**kind),
    )


def networks() -> ResidualLearner:
    """Return an R-learner of neural networks."""
    return ResidualLearner(*network_models())


def network_models() -> tuple[Any, Any, Any]:
    """Return neural networks with 32 hidden units, as in the experiments of Schröder et al. (2025)."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: PLC0415

    kind: dict[str, Any] = {"learning_rate_init": 0.01, "batch_size": 128, "max_iter": 60, "random_state": 0}
    return (
        MLPRegressor(hidden_layer_sizes=(32,), **kind),
        MLPClassifier(hidden_layer_sizes=(32,), **kind),
        MLPRegressor(hidden_layer_sizes=(32, 32), **kind),
    )


def _learned(made: Callable[[], ResidualLearner]) -> Learn:
    def learner(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 (comes with scikit-learn)

        with threadpool_limits(limits=1):  # blocks are small: threads would only wait for each other
            return made().fit(covariates, arms, outcomes).effect(at)

    return learner


def quadratic_average(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """Return the average effect of all rows, the same at every profile, by AIPW with quadratic models; numpy only.

    Both models, a logistic regression of the arm and a linear one of outcomes in each arm, have main effects, squares
    and products of two covariates.
    """
    count = covariates.shape[1]
    products = [covariates[:, one] * covariates[:, other] for one in range(count) for other in range(one, count)]
    terms = np.column_stack([covariates, *products])
    terms = terms[:, terms.std(axis=0) > _CONSTANT]
    design = np.column_stack([np.ones(len(terms)), (terms - terms.mean(axis=0)) / terms.std(axis=0)])
    ridge = np.diag([1e-6] + [1.0] * (design.shape[1] - 1))
    logits = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-design @ logits))
        curvature = (design * (share * (1 - share))[:, None]).T @ design + ridge
        logits += np.linalg.solve(curvature, design.T @ (arms - share) - ridge @ logits)
    share = np.clip(1 / (1 + np.exp(-design @ logits)), _AVERAGE_CLIP, 1 - _AVERAGE_CLIP)
    means = []
    for arm in (0, 1):
        known = design[arms == arm]
        means.append(design @ np.linalg.solve(known.T @ known + ridge, known.T @ outcomes[arms == arm]))
    return _augmented_average(arms, outcomes, share, means[0], means[1], len(at))


def forest_average(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """Return the average effect of all rows, the same at every profile, by AIPW with forests fitted crosswise."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (comes with scikit-learn)

    kind: dict[str, Any] = {"n_estimators": 50, "min_samples_leaf": 5, "random_state": 0}
    halves, share, means = np.arange(len(arms)) % 2, np.zeros(len(arms)), np.zeros((2, len(arms)))
    with threadpool_limits(limits=1):
        for half in (0, 1):
            own, other = halves == half, halves != half
            model = RandomForestClassifier(**kind).fit(covariates[other], arms[other])
            share[own] = treatment_probability(model, covariates[own])
            for arm in (0, 1):
                known = other & (arms == arm)
                means[arm, own] = (
                    RandomForestRegressor(**kind).fit(covariates[known], outcomes[known]).predict(covariates[own])
                )
    return _augmented_average(arms, outcomes, share, means[0], means[1], len(at))


def _augmented_average(  # noqa: PLR0913, PLR0917
    arms: Array, outcomes: Array, share: Array, control: Array, treated: Array, profiles: int
) -> Array:
    scores = treated - control + arms * (outcomes - treated) / share - (1 - arms) * (outcomes - control) / (1 - share)
    return np.full(profiles, scores.mean())


LEARNERS: Mapping[str, Learner] = {
    "linear": Learner(linear, version="1"),
    "forest": Learner(_learned(forests), version="1"),
    "boosting": Learner(_learned(boosted_trees), version="1"),
    "network": Learner(_learned(networks), version="1"),
    "quadratic_average": Learner(quadratic_average, version="1"),
    "forest_average": Learner(forest_average, version="1"),
}
"""The learners that every vault knows. Change the version with the method or its settings, which are all stated above.
scikit-learn's own version is no part of it: an upgrade that fits the same model must not make anybody pay again."""


def own_learners(learners: Mapping[str, Learner] | None) -> dict[str, Learner]:
    """Return the learners that a table's owner adds, by name.

    Raises:
        QueryError: If a name is that of a built-in learner, or a learner has no version.
    """
    check_plain_text("names of learners", learners or {}, QueryError)
    for name, learner in (learners or {}).items():
        if name in LEARNERS or not name.strip():
            raise QueryError(
                expected=f"a name for your own learner other than {', '.join(LEARNERS)}",
                got=repr(name),
                hint="these names are reserved for the built-in learners; choose another.",
            )
        if not isinstance(learner, Learner):
            raise QueryError(
                expected=f"a Learner under the name {name!r}",
                got=type(learner).__name__,
                hint=f'declare a public version of it: learners={{"{name}": Learner(function, version="1")}}.',
            )
    return dict(learners or {})


def find_learner(name: str, own: Mapping[str, Learner]) -> Learner:
    """Return the learner of this name.

    Raises:
        QueryError: If there is none, or it needs a package that is not installed.
    """
    known = {**LEARNERS, **own}
    if name not in known:
        raise QueryError(
            expected=f"a learner out of {', '.join(known)}",
            got=repr(name),
            hint='the owner of the table may add others: learners={"mine": Learner(function, version="1")}.',
        )
    if name not in own and name not in ("linear", "quadratic_average"):
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


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Hold a user's Ctrl-C back until the work is done, so that what the work raises is never taken for one.

    Python delivers it to the main thread only; in any other there is nothing to hold back.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)


def run_silenced(work: Callable[[], Array], size: int) -> Array:
    """Return what comes of some work; 0 wherever it fails or nothing finite comes of it. No word of its own gets out.

    Whatever it raises is contained, a KeyboardInterrupt of its own and panics of Rust extensions among it, and so is
    what its result raises when it is read. A user's Ctrl-C takes effect as soon as the work is done.
    """
    words = io.StringIO()
    with (
        _ONE_AT_A_TIME,
        _interrupts_held_back(),
        _no_log_lines(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(words),
        contextlib.redirect_stderr(words),
    ):
        warnings.simplefilter("ignore")
        try:
            result = np.array(work(), dtype=np.float64).reshape(size)
        except BaseException:  # noqa: BLE001 (whatever it is, it may tell of rows)
            result = np.zeros(size)
    return np.where(np.isfinite(result), result, 0.0)
