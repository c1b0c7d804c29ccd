"""R-learners of scikit-learn's models, without privacy, for comparison."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

Array = NDArray[np.float64]

_CLIP = 0.05


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


def boosted_trees() -> ResidualLearner:
    """Return boosted trees."""
    kind: dict[str, Any] = {"max_iter": 50, "random_state": 0}
    return ResidualLearner(
        HistGradientBoostingRegressor(**kind),
        HistGradientBoostingClassifier(**kind),
        HistGradientBoostingRegressor(**kind),
    )


def network_models() -> tuple[Any, Any, Any]:
    """Return neural networks with 32 hidden units, as in the experiments of Schröder et al. (2025)."""
    kind: dict[str, Any] = {"learning_rate_init": 0.01, "batch_size": 128, "max_iter": 60, "random_state": 0}
    return (
        MLPRegressor(hidden_layer_sizes=(32,), **kind),
        MLPClassifier(hidden_layer_sizes=(32,), **kind),
        MLPRegressor(hidden_layer_sizes=(32, 32), **kind),
    )
