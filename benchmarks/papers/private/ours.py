"""`PropensityMatching` at both levels, again and again, from a table that is read once.

Answers and noise are the vault's own, without a ledger. A fit without noise in it is done once for all repeats. Noise
is of the vault's laws and sizes, from a seed, so that a run can be repeated.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from unittest.mock import patch

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import DataSet, load
from benchmarks.papers.private.grid import PROTECTS, Level, Setting
from benchmarks.papers.private.printed import Floats
from dpcausal.audit.tables import Unmetered, exact_answer
from dpcausal.queries import MatchedContrast
from dpcausal.queries.matched_contrast import COEFFICIENT_TICKS
from dpcausal.queries.query import outcome_tick
from dpcausal.vault.answers import logistic
from dpcausal.vault.answers.logistic import public_fit, score
from dpcausal.vault.engines import Engine
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.matching import matched
from tests.support.engines import CachedEngine

UNLIMITED = 1000


@dataclass(frozen=True, eq=False)
class Scene:
    """One table behind a vault without a ledger.

    Attributes:
        data: The data set, with the bounds that are declared.
        schema: The declaration at one level.
        engine: The table, read once.
    """

    data: DataSet
    schema: dpc.Schema
    engine: CachedEngine

    @classmethod
    def of(cls, data: DataSet, level: Level) -> "Scene":
        """Return a data set at one level of privacy."""
        schema = data.schema(PROTECTS[level])
        return cls(data, schema, CachedEngine(data.relation(), schema))

    @property
    def source(self) -> Unmetered:
        """A source that draws new noise for each question."""
        return Unmetered(self.engine, self.schema)


@cache
def scene(name: str, folder: str | None, level: Level, *, private: bool = True) -> Scene:
    """Return a data set at one level, with public bounds, or with the table's own as the paper has them."""
    data = load(name, folder)
    return Scene.of(data if private else data.not_private_bounds(), level)


@contextmanager
def fits_once() -> Iterator[None]:
    """Keep what fits without noise found: they depend on nothing but the table."""
    fit = logistic.fit
    found: dict[tuple[object, ...], Floats] = {}

    def kept(engine: Engine, features: Features, penalty: float, tilt: Floats, tolerance: float) -> Floats:
        key = engine, tuple(features.columns), penalty, tilt.tobytes(), tolerance
        if key not in found:
            found[key] = fit(engine, features, penalty, tilt, tolerance)
        return found[key]

    with patch.object(logistic, "fit", kept):
        yield


def label(at: Scene, epsilon: float, neighbours: int, setting: Setting, repeats: int) -> Floats:
    """Return estimates at label level: one exact matching, and one noise a repeat."""
    limit, error = setting
    query = MatchedContrast(at.data.names, neighbours, limit, error)
    guarantee = dpc.Guarantee(epsilon=epsilon, protects="outcome")
    places = [place.name for place in query.sensitivity(at.schema, "outcome", "l1").coordinates]
    drawn = at.source.many(query, guarantee, repeats)[:, places.index("effect")]
    return drawn * _unit(at, query, guarantee)[1]


def sample(at: Scene, epsilon: float, estimator: dpc.PropensityMatching, repeats: int) -> Floats:
    """Return estimates at sample level: everything is drawn anew in each repeat."""
    return np.array([estimator.estimate(at.source, epsilon=epsilon).estimate for _ in range(repeats)])


def matching(at: Scene, neighbours: int, setting: Setting) -> dpc.PropensityMatching:
    """Return the estimator for a setting."""
    limit, error = setting
    plain = dpc.PropensityMatching(covariates=at.data.names, neighbours=neighbours)
    return replace(plain, limit=limit, error=error)


def unlimited(at: Scene, neighbours: int) -> float:
    """Return the estimate of matching without noise, of a scene at label level; no unit comes near the limit."""
    query = MatchedContrast(at.data.names, neighbours, UNLIMITED, 0.01)
    ticks, unit = _unit(at, query, dpc.Guarantee(epsilon=1.0, protects="outcome"))
    return ticks * unit


def _unit(at: Scene, query: MatchedContrast, guarantee: dpc.Guarantee) -> tuple[int, float]:
    """Return the exact sum in ticks, and what one tick is in units of the outcome."""
    answer = exact_answer(query, at.schema, at.engine, guarantee)
    largest = next(each.value for each in answer.public_values if each.name == "largest")
    return answer.ticks["effect"], largest * outcome_tick(at.schema) / COEFFICIENT_TICKS


def crowding(at: Scene, neighbours: int = 5) -> tuple[int, float]:
    """Return the larger arm's size, and how often, in units of neighbours, a unit would serve without a limit."""
    features = Features(at.data.names, at.schema)
    batch = at.engine.collect(("treatment", *features.columns), 10**6)
    scores = np.rint(2**40 * score(public_fit(at.engine, features), features.ticks(batch), features)).astype(np.int64)
    _, serves = matched(scores, batch["treatment"], neighbours, (at.data.n + 1, at.data.n + 1))
    treated = int(batch["treatment"].sum())
    return max(treated, at.data.n - treated), int(serves.max()) / neighbours


def adaptive_limit(epsilon: float, error: float, larger: int, most: float, *, printed: bool) -> float:
    """Return the limit of the smaller arm: with the paper's divisor of 2, or the square root of 2, which minimises."""
    best = math.sqrt(epsilon * error * larger * most / (2 if printed else math.sqrt(2)))
    return min(max(round(best), 1), most)
