"""What is audited: every shipped estimator, in the variants whose privacy rests on different proofs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpcausal.audit.neighbours import worst_pairs
from dpcausal.audit.spy import SpySampler
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.diagnostics import Balance, Overlap
from dpcausal.estimators.average import ESTIMATORS, estimator_for
from dpcausal.estimators.average.arm_contrasts import ArmContrasts
from dpcausal.estimators.average.cluster_trial import ClusterTrial
from dpcausal.estimators.average.complier_effect import ComplierEffect
from dpcausal.estimators.average.difference_in_differences import DifferenceInDifferences
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import DoublyRobust
from dpcausal.estimators.average.exact_matching import ExactMatching
from dpcausal.estimators.average.factorial_effects import FactorialEffects
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.estimators.average.propensity_matching import PropensityMatching
from dpcausal.estimators.average.quantile_effects import QuantileEffects
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.estimators.average.regression_discontinuity import RegressionDiscontinuity
from dpcausal.estimators.average.scheduled_difference import ScheduledDifference
from dpcausal.estimators.average.stratification import Stratification
from dpcausal.estimators.average.survival import Survival
from dpcausal.estimators.average.winsorised import Winsorised
from dpcausal.estimators.conditional.kernel_learner import KernelLearner
from dpcausal.estimators.conditional.meta_learners import DRLearner, RLearner
from dpcausal.estimators.conditional.subgroups import SubgroupEffects
from dpcausal.estimators.propensity_model import PropensityModel
from dpcausal.queries import (
    ArmMoments,
    ArmOutcomeCounts,
    ArmRegressionMoments,
    ArmTotals,
    CellMoments,
    Cells,
    CovariateTotals,
    Cut,
    CutoffMoments,
    EventCounts,
    InstrumentMoments,
    LookMetrics,
    LookMoments,
    MetricMoments,
    MissingCovariates,
    MissingOutcomes,
    ObservedScores,
    Polynomial,
    Query,
    ReceivedMoments,
    SegmentMetrics,
    Spline,
    StratumContrasts,
    VaryingEffectMoments,
    WeightedCounts,
)
from dpcausal.release import Release
from dpcausal.results.curve import CurveEstimator
from dpcausal.results.effect import Estimator
from dpcausal.schema.cells import Value
from dpcausal.schema.schema import Protects, Schema
from dpcausal.source import RecordingSource, Source, guarantee_for, narrowed
from dpcausal.testing import standard_schema
from dpcausal.utils.arrays import Array

DELTA = 1e-5


@dataclass(frozen=True)
class Target:
    """Something that asks a source for releases and claims a guarantee for all of them together.

    Attributes:
        ask: What makes the releases; what it returns does not matter, what leaves the vault does.
        gaussian: Whether all of its noise is Gaussian.
        undeclared: The arm to which an undeclared value counts; None where such units are outside the comparison.
        complete: Whether no unit is outside for the lack of an outcome; see `dpcausal.testing.standard_schema`.
        counts_missing: Whether it asks how many outcomes are missing, for which a schema must allow them to be.
    """

    name: str
    ask: Callable[[Source], object]
    protects: Protects
    delta: float = 0.0
    gaussian: bool = False
    epsilon: float = 1.0
    undeclared: Value | None = None
    complete: bool | None = None
    counts_missing: bool = False

    @property
    def estimator(self) -> str:
        """What is audited, without the words for the variant."""
        return self.name.partition(",")[0]

    @property
    def schema(self) -> Schema:
        """The schema of the tables that it is audited on."""
        return standard_schema(self.protects, self.undeclared, complete=self.complete)

    def releases(self, vault: Source) -> list[Release]:
        """Return what leaves the vault in one run."""
        recording = RecordingSource(vault)
        self.ask(recording)
        return recording.releases

    @cached_property
    def slow(self) -> bool:
        """Whether each run must be made by itself: there are several queries, or the answer itself is random."""
        table = catalogue_of(self.schema).assemble(worst_pairs(self.protects)[0].tables[0])
        spy = SpySampler()
        self.releases(Unmetered(table, self.schema, spy))
        return [each.kind for each in spy.drawn] != ["add_noise"]

    def transcripts(self, vault: Unmetered, runs: int) -> Array:
        """Return everything that leaves the vault in each of so many independent runs, one line a run."""
        if self.slow:
            return np.array([_numbers(self.releases(vault)) for _ in range(runs)])
        release = self.releases(vault)[0]
        return vault.many(release.query, release.guarantee, runs)


def _numbers(releases: list[Release]) -> list[float]:
    return [number for release in releases for number in (*release.values, *release.public_values.values())]


def ask_query(source: Source, query: Query, epsilon: float, delta: float) -> Release:
    """Ask one query by itself."""
    return source.release(query, guarantee_for(source, epsilon, delta))


def of_query(name: str, query: Query, protects: Protects, delta: float = 0.0) -> Target:
    """Return a query as a target."""
    ask = partial(ask_query, query=query, epsilon=1.0, delta=delta)
    return Target(name, ask, protects, delta, delta > 0, counts_missing=query.counts_missing)


def ask_narrowed(source: Source) -> Release:
    """Ask with narrower bounds of the outcome after another query, as winsorising does."""
    ask_query(source, ArmTotals(), 0.1, 0.0)
    return ask_query(narrowed(source, 2.5, 5.0), ArmMoments(), 0.9, 0.0)


def of_estimator(
    name: str,
    estimator: Estimator | CurveEstimator | Overlap | Balance | PropensityModel,
    protects: Protects,
    delta: float = 0.0,
    **kind: Any,  # noqa: ANN401 (further fields)
) -> Target:
    """Return an estimator as a target."""
    return Target(name, partial(estimator.estimate, epsilon=1.0, delta=delta), protects, delta, **kind)


PLAIN = of_query("plain Laplace", ArmTotals(), "record_within_arm")
"""The simplest release there is: it says how much an attack can see at all."""

_COUNT_MISSING = partial(ask_query, query=MissingOutcomes(), epsilon=1.0, delta=0.0)

_OVER_ALL = RegressionAdjustment(covariates=["age"], include_missing=True)

_ALL_SCORES = DoublyRobust(covariates=["age"], include_missing=True)

_OBSERVED_SCORES = ObservedScores(["age"], *([0.0, 0.5],) * 5, 0.1, 1.0)

_METRICS = (("smoker",), ("score", "age"), ("smoker", "age"))

_VARIANTS: tuple[Target, ...] = (
    PLAIN,
    of_query("plain Gaussian", ArmTotals(), "record_within_arm", DELTA),
    of_estimator("DifferenceInMeans", DifferenceInMeans(), "record"),
    of_estimator("DifferenceInMeans, two arms only", DifferenceInMeans(), "record", undeclared=0),
    of_estimator("DifferenceInMeans, trial", DifferenceInMeans(), "record_within_arm"),
    of_estimator("DifferenceInMeans, trial, missing", DifferenceInMeans(), "record_within_arm", complete=False),
    of_query("ArmMoments, Gaussian", ArmMoments(), "record", DELTA),
    of_estimator("ComplierEffect", ComplierEffect(received="smoker"), "record"),
    of_estimator("ComplierEffect, trial", ComplierEffect(received="smoker"), "record_within_arm"),
    of_estimator("ComplierEffect, outcomes", ComplierEffect(received="smoker"), "outcome"),
    of_query("ComplierEffect, Gaussian", ReceivedMoments("smoker"), "record", DELTA),
    of_estimator("ComplierEffect, covariates", ComplierEffect(received="smoker", covariates=["age"]), "record"),
    of_estimator(
        "ComplierEffect, covariates, outcomes",
        ComplierEffect(received="smoker", covariates=["age"], interaction=False),
        "outcome",
    ),
    of_query("ComplierEffect, covariates, Gaussian", InstrumentMoments("smoker", ["age"]), "record", DELTA),
    of_estimator("RegressionDiscontinuity", RegressionDiscontinuity("age", 50, 30), "record"),
    of_estimator("RegressionDiscontinuity, trial", RegressionDiscontinuity("age", 50, 30), "record_within_arm"),
    of_estimator("RegressionDiscontinuity, outcomes", RegressionDiscontinuity("age", 50, 30), "outcome"),
    of_query("RegressionDiscontinuity, Gaussian", CutoffMoments("age", 50, 30), "record", DELTA),
    of_estimator("DifferenceInDifferences", DifferenceInDifferences(before="age"), "record"),
    of_estimator("DifferenceInDifferences, outcomes", DifferenceInDifferences(before="age"), "outcome"),
    of_estimator("DifferenceInDifferences, period", DifferenceInDifferences(period="ward"), "record"),
    of_estimator("ArmContrasts", ArmContrasts(), "record"),
    of_estimator("ArmContrasts, trial in strata", ArmContrasts(by=["ward"]), "record_within_arm"),
    of_query("ArmContrasts, Gaussian", CellMoments(), "record", DELTA),
    of_estimator("ArmContrasts, adjusted", ArmContrasts(covariates=["age"]), "record"),
    of_query("ArmContrasts, adjusted, Gaussian", ArmRegressionMoments(["age"]), "record", DELTA),
    of_query("Experiment, ratio and CUPED", MetricMoments(_METRICS, [2.0, 1.0, 1.0]), "record"),
    of_query("Experiment, public arms", MetricMoments(_METRICS, [2.0, 1.0, 1.0]), "record_within_arm"),
    of_query("Experiment, Gaussian", MetricMoments(_METRICS, [2.0, 1.0, 1.0]), "record", DELTA),
    of_query("Experiment, segments", SegmentMetrics([["score"]], [1.0], (), ["ward", "smoker"], 0.5), "record"),
    of_query("Experiment, several looks", LookMetrics(Cut("ward"), 1, _METRICS, [2.0, 1.0, 1.0]), "record"),
    of_query("Experiment, looks, Gaussian", LookMetrics(Cut("ward"), 1, _METRICS, [2.0, 1.0, 1.0]), "record", DELTA),
    of_estimator("FactorialEffects", FactorialEffects(factor="smoker"), "record"),
    of_estimator("Stratification", Stratification(by=["ward"], cap=3), "record"),
    of_estimator("Stratification, own cap", Stratification(by=["ward"]), "record"),
    of_estimator("Stratification, outcomes", Stratification(by=["ward"]), "outcome"),
    of_estimator("Stratification, outcomes, missing", Stratification(by=["ward"]), "outcome", complete=False),
    of_query("Stratification, Gaussian", StratumContrasts([Cut("ward")], 3), "record", DELTA),
    of_estimator("ExactMatching, smooth", ExactMatching(by=["ward"]), "record", DELTA, undeclared=0),
    of_estimator("ExactMatching, global", ExactMatching(by=["ward"]), "record", undeclared=0),
    of_estimator("RegressionAdjustment", RegressionAdjustment(covariates=["age"]), "record"),
    of_estimator("RegressionAdjustment, trial", RegressionAdjustment(covariates=["age"]), "record_within_arm"),
    of_estimator(
        "RegressionAdjustment, Gaussian",
        RegressionAdjustment(covariates=["ward", "age", "smoker"]),
        "record",
        DELTA,
        gaussian=True,
    ),
    of_estimator("RegressionAdjustment, all units", _OVER_ALL, "record"),
    of_estimator("RegressionAdjustment, all units, outcomes", _OVER_ALL, "outcome", complete=False),
    of_query("RegressionAdjustment, all units, Gaussian", CovariateTotals(["ward", "age"]), "record", DELTA),
    of_query("RegressionAdjustment, effects that vary, Gaussian", VaryingEffectMoments(["age"]), "record", DELTA),
    of_estimator("InverseWeighting", InverseWeighting(covariates=["age", "smoker"]), "record"),
    of_estimator("InverseWeighting, outcomes, missing", InverseWeighting(["age"]), "outcome", complete=False),
    of_estimator("InverseWeighting, ATO", InverseWeighting(covariates=["age"], estimand="ATO"), "record"),
    of_estimator("InverseWeighting, output", InverseWeighting(covariates=["age"], scores="output"), "record"),
    of_estimator("InverseWeighting, with a delta", InverseWeighting(covariates=["age"]), "record", DELTA),
    of_estimator("DoublyRobust", DoublyRobust(covariates=["age"]), "record"),
    of_estimator(
        "DoublyRobust, Gaussian moments",
        DoublyRobust(covariates=["ward", "age", "smoker"], estimand="ATO"),
        "record",
        DELTA,
    ),
    of_estimator("DoublyRobust, all units", _ALL_SCORES, "record"),
    of_estimator("DoublyRobust, all units, outcomes", _ALL_SCORES, "outcome", complete=False),
    of_query("DoublyRobust, all units, Gaussian", _OBSERVED_SCORES, "record", DELTA),
    of_estimator("PropensityMatching, outcomes", PropensityMatching(covariates=["age"]), "outcome"),
    of_estimator("PropensityMatching, record", PropensityMatching(covariates=["age"]), "record", undeclared=0),
    Target("ArmMoments, narrowed", ask_narrowed, "record"),
    of_estimator("Winsorised", Winsorised(DifferenceInMeans()), "record"),
    of_estimator("Winsorised, strata", Winsorised(Stratification(by=["ward"]), share=0.5), "record"),
    of_estimator("QuantileEffects", QuantileEffects(edges=[2.5, 5.0]), "record"),
    of_query("QuantileEffects, Gaussian", ArmOutcomeCounts([2.5, 5.0]), "record", DELTA),
    of_estimator("QuantileEffects, weighted", QuantileEffects(edges=[2.5, 5.0], covariates=["age"]), "record"),
    of_estimator("ClusterTrial", ClusterTrial("ward", treated=["b"]), "record"),
    of_estimator("ClusterTrial, outcomes", ClusterTrial("ward", treated=["b"]), "outcome"),
    of_estimator("Survival", Survival(event="smoker", grid=2), "record"),
    of_estimator("Survival, strata", Survival(event="smoker", grid=2, by=["ward"]), "record_within_arm"),
    of_query("Survival, Gaussian", EventCounts([5.0, 10.0], "ward"), "record", DELTA),
    of_estimator("Survival, weighted", Survival(event="smoker", grid=2, covariates=["age"]), "record"),
    of_query(
        "Survival, weighted, Gaussian",
        WeightedCounts(["age"], [0.0, 20.0], "ATE", 0.1, [5.0, 10.0], "ward"),
        "record",
        DELTA,
    ),
    of_query("MissingCovariates", MissingCovariates(["age"]), "record"),
    of_query("MissingCovariates, any", MissingCovariates(["age", "smoker"], each=False), "record"),
    of_query("MissingOutcomes", MissingOutcomes(), "record"),
    Target("MissingOutcomes, outcomes", _COUNT_MISSING, "outcome", complete=False, counts_missing=True),
    of_query("MissingOutcomes, Gaussian", MissingOutcomes(), "record", DELTA),
    of_estimator("ScheduledDifference", ScheduledDifference("ward"), "record"),
    of_query("ScheduledDifference, Gaussian", LookMoments(Cut("ward"), 1), "record", DELTA),
    of_estimator("SubgroupEffects", SubgroupEffects(by=["ward"]), "record"),
    of_estimator("SubgroupEffects, Gaussian", SubgroupEffects(by=["smoker"]), "record", DELTA, gaussian=True),
    of_estimator("RLearner", RLearner(covariates=["age"], basis=Polynomial(["age"])), "record"),
    of_estimator(
        "RLearner, Gaussian",
        RLearner(covariates=["age"], basis=Spline(["age"], 1), propensity=0.5),
        "record",
        DELTA,
        gaussian=True,
    ),
    of_estimator("DRLearner", DRLearner(covariates=["age"], basis=Cells([Cut("ward")])), "record"),
    of_estimator(
        "KernelLearner", KernelLearner(covariates=["age"], n_features=2, propensity=0.5), "record", DELTA, gaussian=True
    ),
    of_estimator(
        "KernelLearner, DR",
        KernelLearner(covariates=["age"], n_features=2, propensity=0.5, meta_learner="DR"),
        "record",
        DELTA,
        gaussian=True,
    ),
    of_estimator("PropensityModel", PropensityModel(covariates=["age"]), "record"),
    of_estimator("PropensityModel, output", PropensityModel(covariates=["age"], scores="output"), "record", DELTA),
    of_estimator("Overlap, strata", Overlap(by=["ward"]), "record"),
    of_estimator("Overlap, Gaussian", Overlap(by=["smoker"]), "record", DELTA, gaussian=True),
    of_estimator("Overlap, score", Overlap(covariates=["age"]), "record"),
    of_estimator("Balance, trial", Balance(covariates=["ward", "age"]), "record_within_arm"),
    of_estimator("Balance, Gaussian", Balance(covariates=["ward", "age"]), "record", DELTA, gaussian=True),
    of_estimator("Balance, weighted", Balance(covariates=["age", "smoker"], weighted_by=["age"]), "record"),
)

_ONE_COVARIATE = replace(standard_schema(), covariates=standard_schema().covariates[:1])

TARGETS = (
    *_VARIANTS,
    *(
        of_estimator(kind.__name__, estimator_for(name, _ONE_COVARIATE), "record")
        for name, kind in ESTIMATORS.items()
        if kind.__name__ not in {target.estimator for target in _VARIANTS}
    ),
)
"""What is audited. A shipped estimator without a variant of its own above is audited as it comes."""
