"""How near random Fourier features come to the Gaussian kernel that they stand for."""

import math
from typing import Any

import numpy as np

from benchmarks.accuracy.references import scores
from benchmarks.papers.dp_cate.contestants import DELTA, QUERIES, kernel_learner, vault
from benchmarks.papers.dp_cate.influence import CLIP
from benchmarks.papers.dp_cate.tables import Table, Vector
from dpcausal.queries import Fourier
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import codes_of
from dpcausal.source import RecordingSource

COUNTS = (5, 10, 25, 50, 99)
EPSILON = 1.0


def nearness(table: Table) -> list[dict[str, Any]]:
    """Return, by number of features, how far the fit with features is from the fit with the kernel itself.

    Both are ridge regressions of the R-learner's residuals without privacy, by squared loss. The ridge is what
    `KernelLearner` takes at epsilon 1, and the least that it ever takes.
    """
    features, at = table.features, table.profile_features[:QUERIES]
    distance, left = _residuals(table)
    width = math.sqrt(features.shape[1])
    own, asked = _kernel(features, features, width), _kernel(at, features, width)
    lines = []
    for name, ridge in {"epsilon 1": _ridge(table), "least": table.data.n * 1e-4}.items():
        bent = distance[:, None] * own * distance
        exact = asked @ (distance * np.linalg.solve(bent + ridge * np.eye(len(left)), left))
        for count in COUNTS:
            fitted = _with_features(table, Fourier(table.data.names, width, count), distance, left, ridge)
            truth = table.effects[:QUERIES]
            lines.append(
                {
                    "ridge": name,
                    "penalty": ridge,
                    "features": count,
                    "apart": _rms(fitted - exact),
                    "spread": float(exact.std()),
                    "pehe_of_features": _rms(fitted - truth),
                    "pehe_of_kernel": _rms(exact - truth),
                }
            )
    return lines


def _rms(values: Vector) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _residuals(table: Table) -> tuple[Vector, Vector]:
    features, arms, outcomes = table.features, table.arms, table.outcomes
    share = np.clip(scores(features, arms), CLIP, 1 - CLIP)
    design = np.column_stack([np.ones(len(arms)), features])
    means = [design @ np.linalg.lstsq(design[arms == arm], outcomes[arms == arm], rcond=None)[0] for arm in (0, 1)]
    return arms - share, outcomes - share * means[1] - (1 - share) * means[0]


def _kernel(one: Vector, other: Vector, width: float) -> Vector:
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    kernel: Vector = np.exp(-np.maximum(squares, 0) / (2 * width**2))
    return kernel


def _with_features(table: Table, basis: Fourier, distance: Vector, left: Vector, ridge: float) -> Vector:
    schema = table.data.schema("record")
    cells = {name: table.data.column(name) for name in table.data.names}
    own, asked = (
        basis_values(basis, codes_of(each, basis.reads(schema)), schema)
        for each in (cells, {name: values[:QUERIES] for name, values in table.profiles.items()})
    )
    along = own * distance[:, None]
    weights = np.linalg.solve(along.T @ along + ridge * np.eye(along.shape[1]), along.T @ left)
    effects: Vector = asked @ weights
    return effects


def _ridge(table: Table) -> float:
    """Return the ridge that the learner takes from the noise."""
    recording = RecordingSource(vault(table))
    kernel_learner(table).estimate(recording, epsilon=EPSILON, delta=DELTA)
    return float(recording.releases[-1].query.penalty)  # type: ignore[attr-defined]
