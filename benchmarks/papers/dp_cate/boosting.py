"""Niu, Nori, Quistorff, Caruana, Ngwe and Kannan 2022: learners made of private boosted additive models (DP-EBM).

"Differentially private estimation of heterogeneous causal effects" (CLeaR 2022), written again after the authors'
notebook, on the models that they use: `interpret.privacy` of the package interpret-core, which is no dependency of this
library and must be installed by hand. As in the notebook, a quarter of units goes to the propensity, a quarter to the
outcome, and half to the effect, so that each model gets the whole of epsilon and delta; propensities are kept within
0.05 and 0.95; models have the package's own settings. What differs is in favour of privacy: parts are drawn without
looking at arms, and bounds are public. Pseudo-outcomes are kept within half the range of the outcome either way. With
half of that, errors on the generated table were a third smaller at epsilon 1 for 10,000 units and a quarter larger at
epsilon 8 for 50,000; with twice of it, up to three times as large.

What the package (0.7.8, read and tried) promises is less than what this library does:

- Its noise is for one unit more or less, not for one replaced, which would need up to twice as much. It is left as is.
- Predictions begin at 0 and residuals are not clipped, while noise is for residuals within the range of the target. For
  targets from 999 to 1,001 the first residuals are 500 times what the noise is for. So outcomes come centred here.
- With weights, as the R-learner has them, noise is in proportion to the largest weight in the data, and the sum of
  weights is used without noise.
- Noise is made of floating-point numbers.
"""

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from benchmarks.papers.dp_cate.tables import Table, Vector

CLIP = 0.05


def installed() -> bool:
    """Whether the package is here."""
    return find_spec("interpret") is not None


@dataclass(frozen=True)
class _Models:
    """Models with one guarantee and public bounds."""

    epsilon: float
    delta: float

    def shares(self, features: Vector, arms: Vector, at: Vector) -> Vector:
        """Return the probability of treatment."""
        model = self._made("DPExplainableBoostingClassifier", features).fit(features, arms.astype(int))
        shares: Vector = np.clip(model.predict_proba(at)[:, 1], CLIP, 1 - CLIP)
        return shares

    def number(self, features: Vector, target: Vector, within: float, weights: Vector | None = None) -> Any:  # noqa: ANN401
        """Return a model of a number that is kept within a distance of 0."""
        bounds = {"privacy_target_min": -within, "privacy_target_max": within}
        model = self._made("DPExplainableBoostingRegressor", features, **bounds)
        model.fit(features, target, sample_weight=weights)
        return lambda at: np.clip(model.predict(at), -within, within)

    def _made(self, name: str, features: Vector, **bounds: float) -> Any:  # noqa: ANN401 (the package has no types)
        count = features.shape[1]
        return getattr(import_module("interpret.privacy"), name)(
            feature_types=["continuous"] * count,
            privacy_bounds=dict.fromkeys(range(count), (-1.0, 1.0)),
            epsilon=self.epsilon,
            delta=self.delta,
            n_jobs=1,
            **bounds,
        )


def learned(learner: Literal["R", "DR"], table: Table, epsilon: float, delta: float, generator: Generator) -> Vector:
    """Return the effects of profiles."""
    features, arms, outcomes, half = table.features, table.arms, table.outcomes, table.half
    first, second, third = np.split(generator.permutation(len(arms)), [len(arms) // 4, len(arms) // 2])
    models = _Models(epsilon, delta)
    share = models.shares(features[first], arms[first], features[third])
    treated, own, weights = arms[third] == 1, outcomes[third], None
    if learner == "R":
        foretold = models.number(features[second], outcomes[second], half)(features[third])
        distance = arms[third] - share
        pseudo, weights = (own - foretold) / distance, distance**2
    else:
        model = models.number(_with_arm(features, arms)[second], outcomes[second], half)
        means = [model(_with_arm(features[third], np.full(len(third), arm))) for arm in (0.0, 1.0)]
        missed = np.where(treated, (own - means[1]) / share, -(own - means[0]) / (1 - share))
        pseudo = means[1] - means[0] + missed
    effect: Vector = models.number(features[third], pseudo, half, weights)(table.profile_features)
    return effect


def _with_arm(features: Vector, arms: Vector) -> Vector:
    return np.column_stack([2 * arms - 1, features])


r_learner = partial(learned, "R")
dr_learner = partial(learned, "DR")
