"""Algorithm 1 of Lee et al. (2019) as printed, in NumPy, for its numbers. It protects nobody.

Bounds come from the sample, as in the paper's experiments, and noise from an ordinary generator.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DELTA = 1e-6
PENALTY = 0.1
EPSILONS = (0.2, 0.4, 0.6, 0.8, 0.99)


@dataclass(frozen=True)
class Units:
    """Covariates, arms as 0 or 1, and outcomes."""

    x: Floats
    arm: Floats
    y: Floats

    @property
    def sign(self) -> Floats:
        """1 for treated units, -1 for control units."""
        return 2 * self.arm - 1

    def taken(self, places: NDArray[np.int64]) -> "Units":
        """Return the units in these places."""
        return Units(self.x[places], self.arm[places], self.y[places])

    def in_unit_ball(self) -> "Units":
        """Return the units with covariates divided by the largest length in the sample, as the paper does."""
        return Units(self.x / np.linalg.norm(self.x, axis=1).max(), self.arm, self.y)


def sigmoid(values: Floats) -> Floats:
    """Return the logistic function, for values of any size."""
    return 0.5 + 0.5 * np.tanh(values / 2)


def fitted(units: Units) -> Floats:
    """Return the penalised logistic regression without a constant (Eq. 3), by Newton's method."""
    w = np.zeros(units.x.shape[1])
    for _ in range(12):
        p = sigmoid(units.x @ w)
        gradient = units.x.T @ (p - units.arm) / len(p) + PENALTY * w
        curvature = (units.x.T * (p * (1 - p))) @ units.x / len(p) + PENALTY * np.eye(len(w))
        step = np.linalg.solve(curvature, gradient)
        w = w - step
        if np.abs(step).max() < 1e-10:
            break
    return w


def gaussian_size(epsilon: float) -> float:
    """Return the paper's standard deviation of Gaussian noise for a sensitivity of 1."""
    return math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon


def score_sd(epsilon: float, fitted_on: int) -> float:
    """Return the paper's standard deviation of the noise in each coefficient (Definition 2)."""
    return gaussian_size(epsilon) * 2 / (fitted_on * PENALTY)


def weighted(units: Units, coefficients: Floats, shrink: float = 0.0) -> Floats:
    """Return the inverse-weighted difference (Eq. 5) for each column of coefficients.

    Args:
        units: The units to weight.
        coefficients: One column for each draw of noise.
        shrink: What to subtract from the exponent, in squared lengths: half the variance of the noise undoes its bias.
    """
    exponent = -units.sign[:, None] * (units.x @ coefficients) - shrink * (units.x**2).sum(axis=1)[:, None]
    means: Floats = ((units.sign * units.y)[:, None] * (1 + np.exp(exponent))).mean(axis=0)
    return means


def sums_sd(units: Units, coefficients: Floats, epsilon: float, bound: float | None = None) -> Floats:
    """Return the paper's standard deviation of the noise in the estimate, for each column of coefficients.

    Args:
        units: The units that are weighted.
        coefficients: One column for each draw of noise in the score.
        epsilon: The privacy loss.
        bound: C_y; by default the largest outcome of the sample. Both, and the bounds of the score, are private.
    """
    logits = units.x @ coefficients
    largest = 1 + np.exp(np.maximum(-logits.min(axis=0), logits.max(axis=0)))  # max(1 / ω1, 1 / (1 - ω2))
    bound = float(np.abs(units.y).max()) if bound is None else bound
    sd: Floats = gaussian_size(epsilon) * 2 * bound * largest / len(units.y)
    return sd


def score_draws(generator: Generator, w: Floats, sd: float, draws: int) -> Floats:
    """Return coefficients with noise, one draw a column, in pairs of opposite noise: their mean is exact sooner."""
    half = generator.normal(0, sd, (len(w), draws // 2))
    return w[:, None] + np.hstack([half, -half])


def bias_by_formula(units: Units, coefficients: Floats, sd: float, *, printed: bool) -> float:
    """Lemma 3: as printed with (-1)^t in the exponent, or with the plus that E exp(z.x) = exp(sd² |x|² / 2) has."""
    alpha = units.sign * units.y * np.exp(-units.sign * (units.x @ coefficients))
    exponent = sd**2 / 2 * (units.x**2).sum(axis=1)
    return float((alpha * np.expm1(-units.sign * exponent if printed else exponent)).mean())
