"""DP-CATE for finite queries as printed: effects of profiles, with noise sized by influence functions. Not private.

This is Theorem 1 of Schröder, Melnychuk and Feuerriegel (2025). It works on rows, in simulated tables; no vault answers
such a question. Why no proof of it holds: docs/papers/dp-cate.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.dp_cate.residual_learner import ResidualLearner, network_models, treatment_probability
from dpcausal.estimators.conditional.meta_learners import MetaLearner
from dpcausal.queries.profiles import design_lines, spread_out
from dpcausal.queries.query import GRID
from dpcausal.schema.columns import Column

Vector = NDArray[np.float64]

CLIP = 0.05
"""Propensities are clipped to this and 1 minus this."""

PLACES = 4_096
"""At how many places the largest influence is looked for."""


class Fitted(Protocol):
    """A learner of effects that can be asked for the models behind them."""

    def fit(self, covariates: Vector, arms: Vector, outcomes: Vector) -> Self:
        """Learn from rows."""
        ...

    def effect(self, covariates: Vector) -> Vector:
        """Return the effect."""
        ...

    def largest_influence(self, own: Vector, places: Vector, bounds: tuple[float, float]) -> float:
        """Return the largest influence that one record could have at some places, after a fit to its own rows."""
        ...


class RLearner(ResidualLearner):
    """An R-learner with its influence function."""

    def predicted_outcome(self, covariates: Vector) -> Vector:
        """Return the outcome that covariates predict."""
        mean: Vector = np.mean([outcome.predict(covariates) for outcome, _ in self.folds], axis=0)
        return mean

    def propensity(self, covariates: Vector) -> Vector:
        """Return the probability of treatment."""
        mean: Vector = np.mean([treatment_probability(model, covariates) for _, model in self.folds], axis=0)
        return mean

    def largest_influence(self, own: Vector, places: Vector, bounds: tuple[float, float]) -> float:
        """Return the largest influence by Lemma 2."""
        overlap = np.clip(self.propensity(own), CLIP, 1 - CLIP)
        propensity = np.clip(self.propensity(places), CLIP, 1 - CLIP)
        distance = np.array([[0.0], [1.0]]) - propensity
        ends = np.array(bounds)[:, None, None]
        missed = ends - self.predicted_outcome(places) - distance * self.effect(places)
        return float(np.abs(distance * missed).max() / (overlap * (1 - overlap)).mean())


class DRLearner:
    """A DR-learner (Kennedy 2023): outcomes of each arm and propensity are fitted crosswise, and scores regressed."""

    def __init__(self, outcome: Any, propensity: Any, effect: Any) -> None:  # noqa: ANN401 (scikit-learn has no types)
        self._outcome, self._propensity, self._effect = outcome, propensity, effect
        self._folds: list[tuple[Any, Any, Any]] = []

    def fit(self, covariates: Vector, arms: Vector, outcomes: Vector) -> Self:
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

    def effect(self, covariates: Vector) -> Vector:
        """Return the effect."""
        effect: Vector = self._effect.predict(covariates)
        return effect

    def largest_influence(self, own: Vector, places: Vector, bounds: tuple[float, float]) -> float:  # noqa: ARG002
        """Return the largest influence by Lemma 2b, which divides by propensities."""
        share = np.mean([treatment_probability(each[2], places) for each in self._folds], axis=0)
        control, treated = (np.mean([each[arm].predict(places) for each in self._folds], axis=0) for arm in (0, 1))
        arms, ends = np.array([[0.0], [1.0]]), np.array(bounds)[:, None, None]
        scores = augmented(arms, ends, np.clip(share, CLIP, 1 - CLIP), control, treated)
        return float(np.abs(scores - self.effect(places)).max())


def augmented(arms: Vector, outcomes: Vector, share: Vector, control: Vector, treated: Vector) -> Vector:
    """Return augmented scores, whose mean at a profile is its effect where either model is right."""
    missed = np.where(arms == 1, (outcomes - treated) / share, -(outcomes - control) / (1 - share))
    scores: Vector = treated - control + missed
    return scores


def _forest() -> Any:  # noqa: ANN401 (scikit-learn has no types)
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    return RandomForestRegressor(random_state=0)


def _linear() -> Any:  # noqa: ANN401 (scikit-learn has no types)
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415

    return LinearRegression()


SECOND_STAGES: dict[str, Callable[[], Any]] = {
    "forest": _forest,
    "linear": _linear,
    "network": lambda: network_models()[2],
}
"""What the paper puts second, by name; the models of outcome and propensity are always neural networks."""


def networks(meta_learner: MetaLearner, effect: Any) -> Fitted:  # noqa: ANN401 (scikit-learn has no types)
    """Return a learner whose first stage is networks, with a second stage."""
    outcome, propensity, _ = network_models()
    return (RLearner if meta_learner == "R" else DRLearner)(outcome, propensity, effect)


def factor(n: int, epsilon: float, delta: float) -> float:
    """Return the noise's standard deviation as a share of the largest influence, as Theorem 1 says."""
    return 5 * math.sqrt(2 * math.log(n) * math.log(2 / delta)) / (epsilon * n)


def places_among(columns: Sequence[Column]) -> Vector:
    """Return the public places at which the largest influence is looked for."""
    places: Vector = np.array(design_lines(spread_out(columns, PLACES), columns)).T / GRID
    return places


@dataclass(frozen=True)
class Rows:
    """What learners see.

    Attributes:
        covariates: One line a unit, from -1 to 1.
        arms: 0 or 1.
        outcomes: Within the bounds.
        bounds: The public bounds of outcomes.
        places: Where the largest influence is looked for.
    """

    covariates: Vector
    arms: Vector
    outcomes: Vector
    bounds: tuple[float, float]
    places: Vector


def finite_version(rows: Rows, at: Vector, learner: Fitted, delta: float) -> tuple[Vector, float]:
    """Return the effects of profiles before noise, and the standard deviation of the noise at epsilon 1."""
    learner.fit(rows.covariates, rows.arms, rows.outcomes)
    largest = learner.largest_influence(rows.covariates, rows.places, rows.bounds)
    return learner.effect(at), largest * factor(len(rows.arms), 1.0, delta)
