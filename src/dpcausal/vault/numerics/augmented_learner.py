"""A DR-learner of any three scikit-learn models, for the paper's calibration by influence functions."""

from typing import Any, Self

import numpy as np

from dpcausal.utils.arrays import Array
from dpcausal.vault.numerics.learners import network_models, treatment_probability


class AugmentedLearner:
    """A DR-learner (Kennedy 2023): outcomes of each arm and propensity are fitted crosswise, and scores regressed."""

    def __init__(self, outcome: Any, propensity: Any, effect: Any) -> None:  # noqa: ANN401 (scikit-learn has no types)
        self._outcome, self._propensity, self._effect = outcome, propensity, effect
        self._folds: list[tuple[Any, Any, Any]] = []

    def fit(self, covariates: Array, arms: Array, outcomes: Array) -> Self:
        """Learn from rows."""
        from sklearn.base import clone  # noqa: PLC0415

        halves = np.arange(len(arms)) % 2
        for half in (0, 1):
            other = halves != half
            models = [
                clone(self._outcome).fit(covariates[other & (arms == arm)], outcomes[other & (arms == arm)])
                for arm in (0, 1)
            ]
            self._folds.append((*models, clone(self._propensity).fit(covariates[other], arms[other])))
        scores = np.zeros(len(arms))
        for half, (control, treated, propensity) in enumerate(self._folds):
            own = halves == half
            share, (low, high) = (
                treatment_probability(propensity, covariates[own]),
                (model.predict(covariates[own]) for model in (control, treated)),
            )
            scores[own] = augmented(arms[own], outcomes[own], share, low, high)
        self._effect.fit(covariates, scores)
        return self

    def predicted_outcome(self, covariates: Array, arm: int) -> Array:
        """Return the outcome that covariates predict in an arm."""
        mean: Array = np.mean([models[arm].predict(covariates) for models in self._folds], axis=0)
        return mean

    def propensity(self, covariates: Array) -> Array:
        """Return the probability of treatment."""
        mean: Array = np.mean([treatment_probability(models[2], covariates) for models in self._folds], axis=0)
        return mean

    def effect(self, covariates: Array) -> Array:
        """Return the effect."""
        effect: Array = self._effect.predict(covariates)
        return effect


def augmented(arms: Array, outcomes: Array, share: Array, control: Array, treated: Array) -> Array:
    """Return augmented scores, whose mean at a profile is its effect where either model is right."""
    missed = np.where(arms == 1, (outcomes - treated) / share, -(outcomes - control) / (1 - share))
    scores: Array = treated - control + missed
    return scores


def augmented_networks(effect: Any = None) -> AugmentedLearner:  # noqa: ANN401 (scikit-learn has no types)
    """Return a DR-learner of neural networks."""
    return AugmentedLearner(*network_models(effect))
