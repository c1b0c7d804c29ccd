"""Lebeda, Even, Bellet and Josse 2025: models in many folds, and noise on the final mean alone.

"Model agnostic differentially private causal inference" (arXiv 2505.19589). Units are split into K folds, drawn
without looking at them. In each fold models are fitted without noise: a linear regression of outcomes for each arm and
a logistic one of arms. For a unit, predictions are averaged over the models of the other folds: outcomes by the
arithmetic mean, propensities by the harmonic mean, each prediction clipped first. Noise goes on the final mean alone.
Their code (ChristianLebeda/dp-average-treatment-effect) does all this and was read. It also computes the squared
distances of the terms from the estimate, for its variance. Of the third version's text, which has private intervals,
only the abstract and the opening were at hand: that this variance gets noise for a tenth of epsilon, and that the
interval is the normal one with the variance of the noise added, is ours. For the G-formula the variance of the terms
is not the sampling variance of the estimate; it is taken as in the code.

What replacing one unit can do, with B the range of outcomes, w = 1 / CLIP and v = 1 / (1 - CLIP) the largest and the
least inverse propensity and q = 1 / (K - 1). A unit's own term uses models that it does not enter. The model of its
fold may become any other (that is what model agnostic means) and enters the terms of all units outside the fold with
weight q; these are a share of at most s = 1 - floor(n / K) / n. With outcomes within 0 and B:

- G-formula: a term m1 - m0 lies within -B and B, and the model moves it by at most 2Bq: 2B / n + 2Bqs.
- Weighting, outcomes from the middle of their range as in the authors' symmetric range: a term lies within -wB/2 and
  wB/2, and the model moves it by at most (w - v)qB/2: wB / n + (w - v)qsB/2.
- Both: a treated unit's term m1 - m0 + W(y - m1) lies within -wB and wB, since W is at least 1. It is affine in each
  of the model's three predictions, so it moves most between corners: from m1 = B, m0 = B, inverse v to m1 = 0, m0 = 0,
  inverse w, where y = B, the other models say m1 = 0 and their inverses are w. The difference is B(2w - v - q(w -
  v))q. In all 2wB / n + B(2w - v - q(w - v))qs. The figures of the paper's code charge about half of it. The bound
  that the code calls Theorem 1's is (1/n + q) times 2B, wB and 2(1 + w)B: as large as here for the G-formula, 2.25
  times as large for weighting and 1.16 times for both, in the part that falls with K.

Squares: a unit's own square lies within 0 and M², with M the largest that a term can be in size. Another square moves
by at most 2M times what its term moves by.

K comes from public numbers alone. Folds are as small as the models allow, four units for each of d + 2 parameters,
since the noise is in proportion to 1 / K. Weighting needs larger ones: inverse propensities of an overfitted model are
too large, an error that falls with the size of the fold as the noise rises, and the two meet at about sqrt((d + 2) n
epsilon) / 5. Both rules were chosen because these estimators did best with them on simulated tables of 5,000 to
100,000 units.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.peers import noise
from benchmarks.peers.regression import FARTHEST, sigmoid
from benchmarks.peers.study import CLIP, Answer, Floats, Int64s, Study

Narrow = NDArray[np.float32]
Variant = Literal["outcomes", "weights", "both"]

SMALLEST = 4
"""Units in a fold for each parameter of a model."""
RIDGE = 0.03
"""The penalty of the outcome regressions."""
SCORE_RIDGE = 1.0
"""The penalty of the logistic regression, the default of the library that the authors use."""
VARIANCE_SHARE = 0.1
"""The part of epsilon for the variance."""
NEWTON_STEPS = 8
CHUNK = 2048
"""Units whose predictions by all models are held at a time."""


@dataclass(frozen=True)
class Models:
    """Coefficients of every fold's models, a row for each fold, the constant first; outcomes are centred."""

    control: Floats
    treated: Floats
    score: Floats


def number_of_folds(n: int, dimensions: int, epsilon: float, variant: Variant) -> int:
    """K, from public numbers."""
    size: float = SMALLEST * (dimensions + 2)
    if variant == "weights":
        size = max(size, math.sqrt((dimensions + 2) * n * epsilon) / 5)
    return max(2, int(n / size))


def folds(n: int, count: int) -> Int64s:
    """Each unit's fold: units that stand together, as evenly as can be."""
    return np.arange(n) * count // n


def sensitivities(n: int, count: int, width: float, variant: Variant) -> tuple[float, float]:
    """Return what replacing one unit moves the mean of terms and that of their squares by, at most; see above."""
    most, least = 1 / CLIP, 1 / (1 - CLIP)
    weight = 1 / (count - 1)
    share = weight * (1 - n // count / n)
    largest, moved = {
        "outcomes": (1.0, 2.0),
        "weights": (most / 2, (most - least) / 2),
        "both": (most, 2 * most - least - weight * (most - least)),
    }[variant]
    largest, shift = width * largest, width * moved * share
    return 2 * largest / n + shift, largest**2 / n + 2 * largest * shift


def models(study: Study, count: int) -> Models:
    """Fit the models of all folds at once. Folds of unequal size are filled up with units that weigh nothing."""
    fold = folds(study.n, count)
    place = np.arange(study.n) - np.searchsorted(fold, np.arange(count))[fold]
    shape = (count, int(place.max()) + 1)
    features = np.zeros((*shape, study.features.shape[1] + 1))
    outcomes, in_arm = np.zeros(shape), np.zeros((2, *shape))
    features[fold, place] = study.design
    outcomes[fold, place] = study.centred
    in_arm[study.arms, fold, place] = 1
    return Models(
        control=_linear(features, in_arm[0], outcomes),
        treated=_linear(features, in_arm[1], outcomes),
        score=_logistic(features, in_arm),
    )


def _linear(features: Floats, weights: Floats, outcomes: Floats) -> Floats:
    moments = _moments(features, weights) + RIDGE * np.eye(features.shape[2])
    return _solve(moments, np.einsum("kmp,km->kp", features, weights * outcomes))


def _logistic(features: Floats, in_arm: Floats) -> Floats:
    """Take a few Newton steps from 0, which are enough with such a penalty."""
    present = in_arm.sum(axis=0)
    found = np.zeros((features.shape[0], features.shape[2]))
    for _ in range(NEWTON_STEPS):
        share = sigmoid(np.einsum("kmp,kp->km", features, found))
        gradient = np.einsum("kmp,km->kp", features, present * share - in_arm[1]) + SCORE_RIDGE * found
        curvature = _moments(features, present * share * (1 - share)) + SCORE_RIDGE * np.eye(features.shape[2])
        found = found - _solve(curvature, gradient)
    return found


def _moments(features: Floats, weights: Floats) -> Floats:
    found: Floats = np.swapaxes(features * weights[..., None], 1, 2) @ features
    return found


def _solve(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0], dtype=np.float64)


def terms(study: Study, fitted: Models, variant: Variant) -> Floats:
    """Return all units' terms, without noise."""
    count = len(fitted.score)
    fold, design = folds(study.n, count), study.design
    half = study.width / 2

    def averaged(rows: Floats, coefficients: Floats, predict: Callable[[Narrow], Narrow]) -> Floats:
        """Each unit's prediction, averaged over the models of the other folds."""
        found = np.empty(study.n)
        narrow, columns = rows.astype(np.float32), coefficients.T.astype(np.float32)
        for start in range(0, study.n, CHUNK):
            chunk = slice(start, start + CHUNK)
            predictions = predict(narrow[chunk] @ columns)
            own = np.take_along_axis(predictions, fold[chunk, None], axis=1)[:, 0]
            found[chunk] = (predictions.sum(axis=1, dtype=np.float64) - own) / (count - 1)
        return found

    def inverse(predictors: Narrow) -> Narrow:
        return 1 + np.exp(np.clip(-predictors, -FARTHEST, FARTHEST))

    def within_range(predictors: Narrow) -> Narrow:
        return np.clip(predictors, -half, half)

    if variant == "weights":
        weights = averaged(design * study.signs[:, None], fitted.score, inverse)
        return study.signs * weights * study.centred
    control = averaged(design, fitted.control, within_range)
    treated = averaged(design, fitted.treated, within_range)
    if variant == "outcomes":
        return treated - control
    weights = averaged(design * study.signs[:, None], fitted.score, inverse)
    residuals = study.centred - np.where(study.arms == 1, treated, control)
    return treated - control + study.signs * weights * residuals


def _estimate(study: Study, epsilon: float, delta: float, generator: Generator, *, variant: Variant) -> Answer:
    count = number_of_folds(study.n, study.features.shape[1], epsilon, variant)
    bound, square_bound = sensitivities(study.n, count, study.width, variant)
    study = study.taken(generator.permutation(study.n))
    found = terms(study, models(study, count), variant)
    variance_epsilon = VARIANCE_SHARE * epsilon
    rest = (epsilon - variance_epsilon, delta / 2)
    estimate = float(found.mean()) + noise.number(bound, *rest, generator)
    squares = float((found**2).mean()) + noise.number(square_bound, variance_epsilon, delta / 2, generator)
    return Answer.normal(estimate, squares - estimate**2, study.n, noise.number_sd(bound, *rest))


g_formula = partial(_estimate, variant="outcomes")
weighting = partial(_estimate, variant="weights")
doubly_robust = partial(_estimate, variant="both")
