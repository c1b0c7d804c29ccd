"""The same questions answered without privacy, to compare with."""

import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import DataSet

Vector = NDArray[np.float64]

NEIGHBOURS = 5
PENALTY = 1.0  # on the squared length of the coefficients, halved: C = 1 in the usual libraries


def scores(features: Vector, arms: Vector) -> Vector:
    """Return a propensity score by ridge logistic regression, its constant penalised like the rest."""
    with_constant = np.column_stack([np.ones(len(features)), features])
    fitted = np.zeros(with_constant.shape[1])
    for _ in range(100):
        share = 1 / (1 + np.exp(-with_constant @ fitted))
        gradient = with_constant.T @ (share - arms) + PENALTY * fitted
        curvature = (with_constant.T * (share * (1 - share))) @ with_constant + PENALTY * np.eye(len(fitted))
        step = np.linalg.solve(curvature, gradient)
        fitted = fitted - step
        if float(np.abs(step).max()) < 1e-10:
            break
    result: Vector = 1 / (1 + np.exp(-with_constant @ fitted))
    return result


def matching(score: Vector, arms: Vector, outcomes: Vector) -> float:
    """Each unit against the mean of its nearest neighbours in the other arm, who may serve as often as they like."""
    effects = np.zeros(len(outcomes))
    for arm in (0, 1):
        seekers, servers = np.flatnonzero(arms == arm), np.flatnonzero(arms != arm)
        distance = np.abs(score[seekers][:, None] - score[servers])
        nearest = servers[np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]]
        effects[seekers] = (outcomes[seekers] - outcomes[nearest].mean(axis=1)) * (2 * arm - 1)
    return float(effects.mean())


def difference_in_means(arms: Vector, outcomes: Vector) -> float:
    """Return the mean outcome of treated units minus that of control units."""
    return float(outcomes[arms == 1].mean() - outcomes[arms == 0].mean())


def features_as_in_paper(data: DataSet) -> Vector:
    """Every covariate from 0 to 1 by its least and largest value in the data, letters by their place."""
    columns = []
    for column in data.covariates:
        values = data.column(column.name)
        numbers = np.searchsorted(np.unique(values), values) if isinstance(column, dpc.Category) else values
        columns.append((numbers - numbers.min()) / (numbers.max() - numbers.min()))
    return np.column_stack(columns).astype(float)


def features_as_in_library(data: DataSet) -> Vector:
    """Numbers and yes-or-no from -1 to 1 by the declared bounds, each value of a category 0 or 1."""
    columns: list[Vector] = []
    for column in data.covariates:
        values = data.column(column.name)
        if isinstance(column, dpc.Category):
            columns += [(values == value).astype(float) for value in column.values]
        elif isinstance(column, dpc.Real):
            within = np.clip(values, column.low, column.high)
            columns.append((2 * within - column.low - column.high) / (column.high - column.low))
        else:
            columns.append(np.where(values == column.values[1], 1.0, -1.0))
    return np.column_stack(columns)


def references(data: DataSet) -> dict[str, float]:
    """Return what estimates are compared with, on all covariates of a data set.

    `truth` is the effect. `matching` is matching as in the paper. `matching_same_score` differs in how covariates are
    scaled before the score is fitted: as the library does, by declared bounds; and `..._not_private` by the data's.
    """
    arms, outcomes = data.column(data.treatment.name), data.column(data.outcome.name)
    fitted = data.not_private_bounds()
    return {
        "truth": data.truth,
        "difference_in_means": difference_in_means(arms, outcomes),
        "matching": matching(scores(features_as_in_paper(data), arms), arms, outcomes),
        "matching_same_score": matching(scores(features_as_in_library(data), arms), arms, outcomes),
        "matching_same_score_not_private": matching(scores(features_as_in_library(fitted), arms), arms, outcomes),
    }
