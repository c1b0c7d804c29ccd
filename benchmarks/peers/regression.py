"""Penalised regressions, with and without noise.

All minimise J(w) = sum of loss(w . z_i) + penalty / 2 |w|² + noise . w over units with features z_i. A loss is known
by its slope and its curvature in w . z. The constant is penalised like everything else: without that, one unit could
move the minimum by any amount.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from benchmarks.peers import noise
from benchmarks.peers.study import CLIP, Floats, Int64s, Study

STEPS = 60
CURVATURE_SHARE = 0.4
"""The part of epsilon that pays for the curvature in noise on the objective."""
FARTHEST = math.log((1 - CLIP) / CLIP)
"""The predictor at which a propensity reaches its bound."""


@dataclass(frozen=True)
class Loss:
    """A convex loss of one unit's predictor.

    Attributes:
        slope: Its first derivative for each unit.
        curvature: Its second derivative for each unit.
        steepest: The largest that the first can be in size.
        sharpest: The largest that the second can be.
    """

    slope: Callable[[Floats], Floats]
    curvature: Callable[[Floats], Floats]
    steepest: float
    sharpest: float


def sigmoid(predictors: Floats) -> Floats:
    """Return the logistic function, for predictors of any size."""
    return 0.5 + 0.5 * np.tanh(predictors / 2)


def clipped(predictors: Floats) -> Floats:
    """Propensities, kept within `CLIP` and 1 - `CLIP`."""
    return np.clip(sigmoid(predictors), CLIP, 1 - CLIP)


def unit_rows(study: Study) -> Floats:
    """Features with a constant, divided by the root of their number: no row is longer than 1."""
    return study.design / math.sqrt(study.design.shape[1])


def logistic(arms: Int64s) -> Loss:
    """Return the logistic regression of arms."""
    return Loss(
        slope=lambda predictors: sigmoid(predictors) - arms,
        curvature=lambda predictors: sigmoid(predictors) * sigmoid(-predictors),
        steepest=1.0,
        sharpest=0.25,
    )


def fitted(features: Floats, loss: Loss, penalty: float, tilt: Floats | None = None) -> Floats:
    """Return the minimum of J by Newton's method, halving steps while the gradient does not get shorter."""
    tilt = np.zeros(features.shape[1]) if tilt is None else tilt

    def gradient(at: Floats) -> Floats:
        found: Floats = features.T @ loss.slope(features @ at) + penalty * at + tilt
        return found

    here = np.zeros(features.shape[1])
    slope = gradient(here)
    for _ in range(STEPS):
        length = float(np.linalg.norm(slope))
        if length < 1e-9 * (1 + len(features)):
            break
        bend = (features.T * loss.curvature(features @ here)) @ features + penalty * np.eye(len(here))
        step = np.linalg.solve(bend, slope)
        while (float(np.linalg.norm(gradient(here - step)))) >= length and float(np.abs(step).max()) > 1e-12:
            step = step / 2
        here = here - step
        slope = gradient(here)
    return here


def output_sensitivity(penalty: float) -> float:
    """How far replacing a unit can move the minimum of a logistic regression, if rows have a length of at most 1.

    The gradient of J changes by two terms of length at most 1 each, and J is strongly convex with constant `penalty`.
    """
    return 2 / penalty


def output_penalty(n: int, epsilon: float) -> float:
    """Return a penalty for noise on the result: more of it shrinks the score, less lets more noise in."""
    return math.sqrt(n / epsilon) / 3


def output_perturbed(rows: Floats, arms: Int64s, epsilon: float, delta: float, generator: Generator) -> Floats:
    """Return the coefficients of a logistic regression with noise on them; rows have a length of at most 1."""
    penalty = output_penalty(len(rows), epsilon)
    drawn = noise.vector(rows.shape[1], output_sensitivity(penalty), epsilon, delta, generator)
    return fitted(rows, logistic(arms), penalty) + drawn


@dataclass(frozen=True)
class Perturbation:
    """Noise on an objective: what it takes for its minimum to be private, whatever the table.

    The entries of features lie within -1 and 1. For each w one noise vector has its minimum there, so the density of w
    is that of the noise, times a determinant. The gradient's entries change by at most twice the steepest slope, which
    noise with the largest-entry norm covers with `tilt`. The determinants differ by at most a factor 1 + sharpest |z|²
    / penalty, which the penalty keeps below e^bend (Chaudhuri, Monteleoni and Sarwate 2011, with the norm of Awan and
    Slavković 2021).

    Attributes:
        largest: What an entry of the gradient can move by.
        tilt: The part of epsilon that the noise has.
        penalty: The least penalty that there may be.
    """

    largest: float
    tilt: float
    penalty: float

    @classmethod
    def of(cls, loss: Loss, squared_length: float, epsilon: float) -> "Perturbation":
        """Return the noise for features whose rows have at most this squared length."""
        bend = CURVATURE_SHARE * epsilon
        return cls(2 * loss.steepest, epsilon - bend, loss.sharpest * squared_length / math.expm1(bend))


def objective_perturbed(
    features: Floats, loss: Loss, squared_length: float, epsilon: float, generator: Generator
) -> Floats:
    """Return the minimum of an objective with noise in it, which is epsilon-differentially private."""
    needed = Perturbation.of(loss, squared_length, epsilon)
    drawn = noise.cube(features.shape[1], needed.largest, needed.tilt, generator)
    return fitted(features, loss, needed.penalty, drawn)
