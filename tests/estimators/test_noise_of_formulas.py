"""Reported noise is what released sums do to an estimate, sum by sum: a derivative left out, or wrong, fails here."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import ArrayLike

import dpcausal as dpc
from dpcausal import release as releases
from dpcausal.audit.tables import Unmetered
from dpcausal.estimators import average, survival_curves
from dpcausal.estimators.average import formula_estimator
from dpcausal.experiment.estimation import metric_effects
from dpcausal.queries import Query
from dpcausal.release import Release
from dpcausal.source import RecordingSource, Source, WrappedSource
from dpcausal.uncertainty import joint_estimate
from dpcausal.uncertainty.derivatives import Numbers, slopes
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array
from tests.statistics.samplers import Undrawn
from tests.support.engines import CachedEngine

UNITS = 4_000
EXACT = 1e-8
"""The largest difference between reported noise and that of moved sums, as a share: what moving them leaves."""

LEAST = 1e-9
"""A variance below this is none: public numbers are computed from released ones too, and have rounding errors."""


@cache
def table() -> pa.Table:
    """Return a table with arms that differ in size and means far from the middle of their ranges, which sizes move."""
    random = np.random.default_rng(11)
    x, chance, arm = random.uniform(0, 20, UNITS), random.random(UNITS), random.random(UNITS)
    t = (arm < 0.35).astype(int)
    y = np.clip(1 + 0.06 * x + 0.4 * t + random.exponential(0.6, UNITS), 0, 10)
    return pa.table({
        "t": t,
        "three": np.array(["a", "b", "c"])[(arm < 0.7).astype(int) + (arm < 0.3)],
        "above": (x >= 10).astype(int),
        "y": y,
        "seen": np.where(chance > 0.9, np.nan, y),
        "x": x,
        "took": np.where(chance < 0.8, t, 1 - t),
        "died": (chance < 0.7).astype(int),
        "wave": random.integers(0, 3, UNITS),
        "ward": random.integers(0, 3, UNITS),
        "clinic": 2 * random.integers(0, 4, UNITS) + t,
        "before": np.clip(y - 0.3 + random.normal(0, 0.4, UNITS), 0, 10),
    })  # fmt: skip


COVARIATES = (
    dpc.Real("x", 0, 20, missing=10),
    dpc.Binary("took", missing=0),
    dpc.Binary("died", missing=0),
    dpc.Category("wave", [0, 1, 2]),
    dpc.Category("ward", [0, 1, 2]),
    dpc.Category("clinic", range(8)),
    dpc.Real("before", 0, 10, missing=5),
)
TRIAL = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 10, missing=5), COVARIATES, entry="wave")
MAY_LEAVE = replace(TRIAL, treatment=dpc.Treatment("t"), outcome=dpc.Real("seen", 0, 10))
PUBLIC_ARMS = replace(TRIAL, protects="record_within_arm")
THREE_ARMS = replace(TRIAL, treatment=dpc.Treatment("three", arms=("a", "b", "c"), compare="b", undeclared="a"))
BY_SIDE = replace(TRIAL, treatment=dpc.Treatment("above", undeclared=0))


@dataclass(frozen=True)
class Metrics:
    """The effects of an experiment, as an estimator has them."""

    metrics: tuple[dpc.Metric, ...]

    def estimate(self, source: Source, *, epsilon: float) -> tuple[dpc.Effect, ...]:
        """Estimate all effects."""
        treatment = source.schema.treatment
        experiment = dpc.Experiment(name="metrics", treatment=treatment, metrics=self.metrics, epsilon=epsilon)
        release = experiment.release(source)
        return metric_effects(release, source, self.metrics)


@dataclass(frozen=True)
class Curves:
    """The distributions of quantile effects and the arms' sizes, without the quantiles."""

    def estimate(self, source: Source, *, epsilon: float) -> dpc.Effect:
        """Estimate both arms' distributions."""
        effect = dpc.QuantileEffects(bins=12).estimate(source, epsilon=epsilon)
        return replace(effect, estimate=0.0, noise=(), contrasts=None)


Y, X, BEFORE = (dpc.Real(name, 0, high, missing=0) for name, high in (("y", 10), ("x", 20), ("before", 10)))
TOOK, DIED = dpc.Binary("took", missing=0), dpc.Binary("died", missing=0)

FORMULAS: dict[str, tuple[Any, dpc.Schema]] = {
    "difference_in_means": (dpc.DifferenceInMeans(), TRIAL),
    "difference_in_means, units may leave": (dpc.DifferenceInMeans(), MAY_LEAVE),
    "difference_in_means, public arms": (dpc.DifferenceInMeans(), PUBLIC_ARMS),
    "difference_in_means, no interval": (dpc.DifferenceInMeans(with_interval=False), TRIAL),
    "difference_in_differences": (dpc.DifferenceInDifferences(before="before", change=(-2, 6)), TRIAL),
    "difference_in_differences, periods": (dpc.DifferenceInDifferences(period="wave"), TRIAL),
    "regression_discontinuity": (dpc.RegressionDiscontinuity("x", 10, 6), BY_SIDE),
    "complier_effect": (dpc.ComplierEffect("took"), TRIAL),
    "complier_effect, units may leave": (dpc.ComplierEffect("took"), MAY_LEAVE),
    "stratification": (dpc.Stratification(by=["ward"], cap=1), TRIAL),
    "arm_contrasts": (dpc.ArmContrasts(), TRIAL),
    "arm_contrasts, strata": (dpc.ArmContrasts(by=["ward"], contrasts="pairs"), THREE_ARMS),
    "factorial_effects": (dpc.FactorialEffects("ward"), THREE_ARMS),
    "cluster_trial": (dpc.ClusterTrial("clinic", (1, 3, 5, 7)), TRIAL),
    "survival": (dpc.Survival(event="died", grid=[1, 2, 3, 5]), TRIAL),
    "survival, public arms": (dpc.Survival(grid=[1, 2, 3, 5]), PUBLIC_ARMS),
    "survival, strata": (dpc.Survival(event="died", grid=[1, 2], by=["took"]), TRIAL),
    "curves of quantiles": (Curves(), TRIAL),
    "curves of quantiles, public arms": (Curves(), PUBLIC_ARMS),
    "formula_estimator": (
        dpc.FormulaEstimator(
            estimand="ratio of means",
            sums={"n": "1", "total": "centred(y)"},
            formula="(middle(y) + total[1] / n[1]) / (middle(y) + total[0] / n[0])",
            cells=["t"],
        ),
        TRIAL,
    ),
    "exact_matching": (dpc.ExactMatching(by=["ward"]), TRIAL),
    "scheduled_difference": (dpc.ScheduledDifference("wave", 1), TRIAL),
    "metrics, means and ratios": (Metrics((dpc.Metric(X, denominator=Y), dpc.Metric(DIED))), THREE_ARMS),
    "metrics, adjusted": (Metrics((dpc.Metric(Y, covariate=BEFORE), dpc.Metric(DIED, covariate=TOOK))), TRIAL),
}
"""Estimators whose estimates are formulas of released sums, by their names in the registry and a variant."""

LINEAR = ("exact_matching", "curves of quantiles")
"""Those that are a multiple of one number, or a share of counts: without derivatives by complex steps."""

OTHERS = {
    "inverse_weighting": "the score has noise of its own, which is simulated",
    "doubly_robust": "models have noise of their own, which is simulated",
    "regression_adjustment": "a posterior given noisy moments",
    "propensity_matching": "the scale of the noise is a bound on what matches move",
    "winsorised": "bounds from noisy counts, around another estimator",
    "quantile_effects": "noise is turned into quantiles by the slope over an interval",
}
"""The other estimators, each with the reason."""


FORMULAS |= {
    name: (average.estimator_for(name, TRIAL), TRIAL)
    for name in average.ESTIMATORS
    if name not in {*OTHERS, *(each.partition(",")[0] for each in FORMULAS)}
}
"""An estimator in none of these lists is taken for a formula, as it comes for this schema."""


def test_every_average_estimator_is_a_formula_or_has_a_reason() -> None:
    formulas = {name.partition(",")[0] for name in FORMULAS} - {"metrics", "curves of quantiles"}
    assert formulas | set(OTHERS) == set(average.ESTIMATORS)
    assert not formulas & set(OTHERS)


class Moved(WrappedSource):
    """A source that repeats releases, with one of their numbers moved."""

    def __init__(
        self, source: Source, recorded: list[Release], which: int = 0, place: int = 0, by: float = 0.0
    ) -> None:
        super().__init__(source)
        self._left = iter(
            replace(each, values=(*each.values[:place], each.values[place] + by, *each.values[place + 1 :]))
            if at == which
            else each
            for at, each in enumerate(recorded)
        )

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        """Return the next release."""
        found = next(self._left)
        assert (found.query, found.guarantee) == (query, guarantee)
        return found


def estimates_in(effects: Sequence[dpc.Effect]) -> Iterator[JointEstimate]:
    """Yield everything in effects that has noise, each effect itself first."""
    for effect in effects:
        noise = tuple(JointNoise(term.family, (term.scale,), term.parts) for term in effect.noise)
        yield JointEstimate(("effect",), (effect.estimate,), ((0.0,),), noise)
        yield from (
            each for each in (effect.arm_means, effect.arm_sizes, effect.contrasts, effect.missing_outcomes) if each
        )
        yield from (curves.estimates for curves in effect.curves)


class Case:
    """An estimator, what it was released on a table, and what each released number does to its estimates."""

    def __init__(self, name: str) -> None:
        self.estimator, schema = FORMULAS[name]
        self._source = Unmetered(CachedEngine.of(table(), schema), schema, Undrawn())
        recording = RecordingSource(self._source)
        self.estimator.estimate(recording, epsilon=4.0)
        self._recorded = recording.releases

    def estimates(self, which: int = 0, place: int = 0, by: float = 0.0) -> list[JointEstimate]:
        """Return all estimates, with one released number moved."""
        result = self.estimator.estimate(Moved(self._source, self._recorded, which, place, by), epsilon=4.0)
        return list(estimates_in(result if isinstance(result, tuple) else (result,)))

    def reported(self) -> list[Array]:
        """Return the covariance of the noise as reported."""
        return [each.covariance - np.array(each.sampling) for each in self.estimates()]

    def expected(self) -> list[Array]:
        """Return the covariance of the noise as it follows from moving each released number by finite amounts."""
        total = [np.zeros((len(each.names), len(each.names))) for each in self.estimates()]
        for which, release in enumerate(self._recorded):
            for place, (name, value) in enumerate(zip(release.names, release.values, strict=True)):
                step = max(abs(value), 1.0) / 1000
                coarse, fine = (self._slopes(which, place, each) for each in (step, step / 2))
                for at, (one, other) in enumerate(zip(coarse, fine, strict=True)):
                    along = (4 * other - one) / 3
                    total[at] += np.outer(along, along) * release.variance(name)
        return total

    def _slopes(self, which: int, place: int, step: float) -> list[Array]:
        both = ([np.array(each.values) for each in self.estimates(which, place, by)] for by in (step, -step))
        return [(up - down) / (2 * step) for up, down in zip(*both, strict=True)]


@cache
def case(name: str) -> tuple[Case, list[Array]]:
    found = Case(name)
    return found, found.expected()


def off(name: str) -> float:
    """Return how far reported noise is from what moved sums do, as a share of the largest variance."""
    found, expected = case(name)
    return max(
        float(np.abs(one - other).max() / max(np.abs(other).max(), LEAST))
        for one, other in zip(found.reported(), expected, strict=True)
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_reported_noise_is_what_released_sums_do(name: str) -> None:
    assert off(name) < EXACT


class Dropping:
    """Derivatives without those by one of a formula's numbers.

    Attributes:
        place: Which number.
        reached: Whether a formula had so many.
        dropped: Whether it moved an estimate.
    """

    def __init__(self, place: int) -> None:
        self.place, self.reached, self.dropped = place, False, False

    def __call__(self, formula: Callable[[Numbers], Numbers], at: ArrayLike) -> Array:
        """Return the derivatives."""
        found = slopes(formula, at)
        lines = found.reshape(*found.shape[: found.ndim - np.ndim(at)], -1)
        if self.place < lines.shape[-1]:
            self.reached, self.dropped = True, self.dropped or bool(lines[..., self.place].any())
            lines[..., self.place] = 0.0
        return lines.reshape(found.shape)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name.partition(",")[0] not in LINEAR])
def test_no_derivative_can_be_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missed, dropped = [], 0
    for place in itertools.count():
        dropping = Dropping(place)
        with monkeypatch.context() as patch:
            for module in (releases, joint_estimate, survival_curves, formula_estimator):
                patch.setattr(module, "slopes", dropping)
            wrong = off(name)
        if not dropping.reached:
            break
        dropped += dropping.dropped
        missed += [place] * (dropping.dropped and wrong < 100 * EXACT)
    assert dropped
    assert not missed
