"""Who is on the leaderboard: this library's estimators, the papers', newer peers, and references without privacy."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from unittest.mock import patch

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.accuracy.references import features_as_in_library, scores
from benchmarks.datasets import BUDGET, DataSet
from benchmarks.peers import PEERS, Answer, Study
from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect, Estimator
from dpcausal.vault.engines import Engine
from tests.support.engines import CachedEngine

DELTA = 1e-6

Group = Literal["ours", "paper", "peer", "reference"]
GROUPS: tuple[Group, ...] = ("ours", "paper", "peer", "reference")


@dataclass(frozen=True)
class Scene:
    """One table, as this library sees it and as others do."""

    data: DataSet
    schema: dpc.Schema
    engine: Engine
    study: Study

    def vault(self) -> dpc.Vault:
        """Return a new vault with its own ledger; the table is read once for all of them."""
        with patch("dpcausal.vault.door.open_table", lambda *_: self.engine):
            return dpc.Vault(self.data.table, self.schema, ledger="sqlite://", budget=BUDGET)


@dataclass(frozen=True)
class Found:
    """What a contestant gave; None where it gives none."""

    estimate: float
    low: float | None
    high: float | None
    sampling_sd: float | None
    privacy_sd: float | None
    method: str
    delta: float


Ask = Callable[[Scene, float, Generator], Found]


@dataclass(frozen=True)
class Contestant:
    """One line of the leaderboard.

    Attributes:
        label: What to call it.
        group: Whose it is.
        ask: What it gives for a table and an epsilon.
        private: Whether one unit's whole record is protected as promised.
        most_units: Beyond so many units it takes too long.
    """

    label: str
    group: Group
    ask: Ask
    private: bool = True
    most_units: int = 10**7


def _found(effect: Effect) -> Found:
    try:
        low, high = effect.interval(0.95)
    except RefusedError:
        low = high = None  # type: ignore[assignment]
    delta = effect.guarantee.delta
    return Found(effect.estimate, low, high, effect.sampling_sd, effect.privacy_sd, effect.method, delta)


def _by(make: Callable[[DataSet], Estimator], delta: float = 0.0) -> Ask:
    return lambda scene, epsilon, _: _found(make(scene.data).estimate(scene.vault(), epsilon=epsilon, delta=delta))


def _of(label: str, estimate: Callable[[Study, float, float, Generator], Answer]) -> Ask:
    def ask(scene: Scene, epsilon: float, generator: Generator) -> Found:
        answer = estimate(scene.study, epsilon, DELTA, generator)
        return Found(answer.estimate, answer.low, answer.high, None, None, label, DELTA)

    return ask


_RANKINGS: dict[tuple[object, ...], dpc.Ranking] = {}


def _chosen(scene: Scene, epsilon: float, _: Generator) -> Found:
    return _found(ranking(scene.schema, scene.data, epsilon).estimate(scene.vault()))


def ranking(schema: dpc.Schema, data: DataSet, epsilon: float) -> dpc.Ranking:
    """Return the choice of a planner who knows the design and expects round numbers; the same for every repeat."""
    key = (data.name, data.outcome, epsilon)
    if key not in _RANKINGS:
        _RANKINGS[key] = dpc.rank_estimators(
            dpc.Rehearsal(
                schema,
                data.n,
                treated_share=data.treated_share,
                outcome_sd=data.outcome_sd,
                covariate_sd=data.covariate_sd,
            ),
            dpc.Guarantee(epsilon=epsilon, delta=DELTA),
            covariates=() if data.randomised else data.short,
        )
    return _RANKINGS[key]


def _not_private(study: Study, _: float, __: float, ___: Generator) -> Answer:
    """Augmented scores with models fitted as usual, and the usual interval."""
    design, treated = study.design, study.arms == 1
    score = np.clip(scores(study.features, study.arms.astype(float)), 0.01, 0.99)
    means = [design @ np.linalg.lstsq(design[arm], study.outcomes[arm], rcond=None)[0] for arm in (~treated, treated)]
    missed = np.where(treated, (study.outcomes - means[1]) / score, -(study.outcomes - means[0]) / (1 - score))
    effects = means[1] - means[0] + missed
    middle, half = float(effects.mean()), 1.96 * float(effects.std()) / len(effects) ** 0.5
    return Answer(middle, middle - half, middle + half)


NO_PRIVACY = "no privacy: augmented scores"

_PAPERS = {"weighting_corrected", "weighting_printed", "matching_printed"}

CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("what rank_estimators picks", "ours", _chosen),
    Contestant("difference in means", "ours", _by(lambda _: dpc.DifferenceInMeans())),
    Contestant("stratification", "ours", _by(lambda data: dpc.Stratification(by=data.strata))),
    Contestant(
        "regression adjustment", "ours", _by(lambda data: dpc.RegressionAdjustment(covariates=data.short), DELTA)
    ),
    Contestant("doubly robust", "ours", _by(lambda data: dpc.DoublyRobust(covariates=data.short), DELTA)),
    Contestant("weighting", "ours", _by(lambda data: dpc.InverseWeighting(covariates=data.short))),
    Contestant(
        "overlap weighting", "ours", _by(lambda data: dpc.InverseWeighting(covariates=data.short, estimand="ATO"))
    ),
    Contestant(
        "Yuan et al. 2025, sample level, corrected",
        "paper",
        _by(lambda data: dpc.PropensityMatching(covariates=data.short)),
        most_units=20_000,
    ),
    Contestant(
        "Koga et al. 2024, smooth matching, corrected",
        "paper",
        _by(lambda data: dpc.ExactMatching(by=data.strata), DELTA),
        most_units=100_000,
    ),
    *(
        Contestant(
            peer.label,
            "paper" if name in _PAPERS else "peer",
            _of(peer.label, peer.estimate),
            peer.private,
            100_000 if name.startswith("folds") or name == "matching_printed" else 10**7,
        )
        for name, peer in PEERS.items()
    ),
    Contestant(NO_PRIVACY, "reference", _of(NO_PRIVACY, _not_private), private=False, most_units=100_000),
)


def scene_of(data: DataSet) -> Scene:
    """Return a data set with the covariates that matter."""
    used = _with(data, {*data.short, *(cut if isinstance(cut, str) else cut.name for cut in data.strata)})
    schema = used.schema("record")
    return Scene(used, schema, CachedEngine(used.relation(), schema), study_of(_with(data, set(data.short))))


def _with(data: DataSet, names: set[str]) -> DataSet:
    return replace(data, covariates=tuple(column for column in data.covariates if column.name in names))


def study_of(data: DataSet) -> Study:
    """Return a data set as peers see it, with bounds applied."""
    low, high = data.schema("record").outcome_bounds
    arms = (np.array(data.table[data.treatment.name].to_pylist()) == data.treatment.compared[1]).astype(np.int64)
    outcomes = np.clip(np.array(data.table[data.outcome.name].to_pylist(), dtype=float), low, high)
    return Study(arms, features_as_in_library(data), outcomes, low, high)
