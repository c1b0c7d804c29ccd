"""Every estimator on one table: what it must give without noise, and what it gives with noise that is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

import dpcausal as dpc
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import codes_of
from dpcausal.results.effect import Estimator
from dpcausal.source import Source
from dpcausal.utils.arrays import Array
from dpcausal.utils.discovery import modules_in
from tests.statistics import references
from tests.statistics.case import Case, Result
from tests.statistics.references import Reference
from tests.statistics.samplers import OneMoved, Opposite, Undrawn
from tests.statistics.tables import CLUSTERS, EDGES, HIGH, LOW, columns, schema

AT = (-0.8, 0.0, 0.8)
PROFILES = {"a": np.array(AT), "b": np.zeros(len(AT))}
OF = ["a", "b"]
TIMES = (-0.8, -0.4, 0.0, 0.4)
GROUPS = [dpc.Cut("a", EDGES)]


@dataclass(frozen=True)
class Contrast:
    """An estimator of a contrast of another one's effect."""

    estimator: Estimator
    name: str

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        """Return the contrast as an effect."""
        effect = self.estimator.estimate(source, epsilon=epsilon, delta=delta)
        contrasts = effect.contrasts
        assert contrasts, self
        along = [float(name == self.name) for name in contrasts.names]
        return replace(
            effect,
            estimate=contrasts.value(self.name),
            sampling_sd=contrasts.sampling_sd(along),
            noise=contrasts.noise_along(along),
            arm_means=None,
        )


@dataclass(frozen=True)
class Below:
    """An estimator of the difference in the share of outcomes below an edge, of an estimator of distributions."""

    estimator: dpc.QuantileEffects
    edge: float

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        """Return the difference as an effect."""
        effect = self.estimator.estimate(source, epsilon=epsilon, delta=delta)
        (curves,) = effect.curves
        place = int(np.argmin(np.abs(np.array(curves.grid) - self.edge)))
        along = np.zeros((2, len(curves.grid)))
        along[:, place] = -1.0, 1.0
        shares, line = curves.estimates, along.ravel().tolist()
        return replace(
            effect,
            estimate=float(np.array(line) @ shares.values),
            sampling_sd=shares.sampling_sd(line),
            noise=shares.noise_along(line),
        )


class Results:
    """What the estimator of a case returns, computed when it is first looked at."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @cached_property
    def exact(self) -> Result:
        """The result where noise vanishes: the largest epsilon, and nothing drawn."""
        return self.case.ask(Undrawn(), epsilon=100.0)

    @cached_property
    def undrawn(self) -> Result:
        """The result with noise of full size announced, and nothing drawn."""
        return self.case.ask(Undrawn())

    @cached_property
    def moved(self) -> Sequence[tuple[Result, float]]:
        """The results with one coordinate of the noise moved, and by how many standard deviations."""
        sampler = Undrawn()
        self.case.ask(sampler)
        found = []
        for place in range(len(sampler.sds)):
            one = OneMoved(place)
            found.append((self.case.ask(one), one.moved))
        return found

    @cached_property
    def drawn(self) -> Sequence[Result]:
        """The results with noise, in pairs of opposite draws."""
        pairs = self.case.pairs
        return [self.case.ask(Opposite(pair, sign, pairs)) for pair in range(pairs) for sign in (1, -1)]


@cache
def results(case_name: str) -> Results:
    """Return the results of the package as it is, which all checks and mutants at the surface share."""
    return Results(case(case_name))


def estimates(result: Result) -> Array:
    """Return the estimate, or the effects at the profiles."""
    return np.array([result.estimate]) if isinstance(result, dpc.Effect) else result.effect(PROFILES)


def sampling(result: Result) -> Array:
    """Return the printed standard error without privacy noise; infinite where there is none."""
    if isinstance(result, dpc.Effect):
        return np.array([np.inf if result.sampling_sd is None else result.sampling_sd])
    return result.standard_errors(PROFILES)[0]


def privacy(result: Result) -> Array:
    """Return the printed standard deviation of the privacy noise."""
    return np.array([result.privacy_sd]) if isinstance(result, dpc.Effect) else result.standard_errors(PROFILES)[1]


def _kernel_learner() -> Reference:
    functions = dpc.Fourier(["a"], 1.0, 5, 0)

    def values(a: Array) -> Array:
        return basis_values(functions, codes_of({"a": a}, functions.reads(schema())), schema())

    return references.kernel(values(columns()["a"]), values(np.array(AT)), _RIDGE, _LIMIT)


_RIDGE, _LIMIT = 1e-3, 2.0

AVERAGES = (
    Case(
        "difference in means",
        dpc.DifferenceInMeans(),
        references.difference_in_means,
        pairs=100,
        linear=True,
    ),
    Case(
        "difference in means, Gaussian noise",
        dpc.DifferenceInMeans(),
        references.difference_in_means,
        epsilon=1.0,
        delta=1e-4,
        pairs=100,
        linear=True,
    ),
    Case("difference in means, low outcomes", dpc.DifferenceInMeans(), None, table="low", pairs=0, linear=True),
    Case(
        "difference in means, public arms",
        dpc.DifferenceInMeans(),
        references.difference_in_means,
        protects="record_within_arm",
        pairs=0,
        linear=True,
    ),
    Case(
        "quantile effects",
        dpc.QuantileEffects([0.5], bins=64),
        references.median(64),
        words="difference in the interpolated median",
        epsilon=1.0,
        pairs=100,
    ),
    Case(
        "quantile effects, public arms",
        dpc.QuantileEffects([0.5], bins=64),
        references.median(64),
        words="difference in the interpolated median",
        protects="record_within_arm",
        pairs=0,
    ),
    Case(
        "distribution functions",
        Below(dpc.QuantileEffects([0.5], edges=[1.0, 1.2, 1.4, 1.6, 1.8]), 1.0),
        references.below(1.0),
        words="difference in the interpolated median",
        pairs=0,
        linear=True,
    ),
    Case(
        "distribution functions, public arms",
        Below(dpc.QuantileEffects([0.5], edges=[1.0, 1.2, 1.4, 1.6, 1.8]), 1.0),
        references.below(1.0),
        words="difference in the interpolated median",
        protects="record_within_arm",
        pairs=0,
        linear=True,
    ),
    Case("arm contrasts", dpc.ArmContrasts(), references.difference_in_means, pairs=100, linear=True),
    Case(
        "arm contrasts, public arms",
        dpc.ArmContrasts(),
        references.difference_in_means,
        protects="record_within_arm",
        pairs=0,
        linear=True,
    ),
    Case(
        "schedule of looks", dpc.ScheduledDifference(GROUPS[0]), references.difference_in_means, pairs=100, linear=True
    ),
    Case("stratification", dpc.Stratification(by=GROUPS, cap=3), references.strata(3), pairs=100, linear=True),
    Case(
        "stratification, cap 1",
        dpc.Stratification(by=GROUPS, cap=1),
        references.strata(1),
        words="counting for less",
        pairs=0,
        linear=True,
    ),
    Case("exact matching", dpc.ExactMatching(by=GROUPS), references.strata(np.inf), epsilon=20.0, pairs=0, linear=True),
    Case(
        "exact matching, smooth",
        dpc.ExactMatching(by=GROUPS),
        references.strata(np.inf),
        epsilon=20.0,
        delta=1e-4,
        pairs=100,
    ),
    Case("regression adjustment", dpc.RegressionAdjustment(OF), references.regression_adjustment),
    Case(
        "regression adjustment, all units",
        dpc.RegressionAdjustment(OF, include_missing=True),
        references.over_all_units,
        words="over all units, with an outcome or without",
        table="missing",
        may_leave=True,
    ),
    Case("adjusted arm contrasts", dpc.ArmContrasts(covariates=OF), references.regression_adjustment, pairs=0),
    Case("inverse weighting, ATE", dpc.InverseWeighting(OF, "ATE"), references.weighting("ATE")),
    Case(
        "inverse weighting, ATT",
        dpc.InverseWeighting(OF, "ATT"),
        references.weighting("ATT"),
        words="on the treated",
        pairs=0,
    ),
    Case(
        "inverse weighting, ATO",
        dpc.InverseWeighting(OF, "ATO"),
        references.weighting("ATO"),
        words="overlap population",
        pairs=0,
    ),
    Case("doubly robust, ATE", dpc.DoublyRobust(OF, "ATE"), references.doubly_robust("ATE")),
    Case(
        "doubly robust, ATT",
        dpc.DoublyRobust(OF, "ATT"),
        references.doubly_robust("ATT"),
        words="on the treated",
        pairs=0,
    ),
    Case(
        "doubly robust, ATO",
        dpc.DoublyRobust(OF, "ATO"),
        references.doubly_robust("ATO"),
        words="overlap population",
        pairs=0,
    ),
    Case(
        "doubly robust, all units",
        dpc.DoublyRobust(OF, include_missing=True),
        references.doubly_robust_over_all_units,
        words="over all units, with an outcome or without",
        table="missing",
        may_leave=True,
    ),
    Case(
        "propensity matching",
        dpc.PropensityMatching(["a"], neighbours=1, limit=1_000),
        references.matching,
        protects="outcome",
        pairs=0,
        linear=True,
    ),
    Case(
        "survival",
        dpc.Survival(grid=TIMES),
        references.mean_times(TIMES),
        words="restricted mean survival time",
        epsilon=2.0,
        pairs=0,
        linear=True,
    ),
    Case(
        "survival, public arms",
        dpc.Survival(grid=TIMES),
        references.mean_times(TIMES),
        words="restricted mean survival time",
        protects="record_within_arm",
        epsilon=2.0,
        delta=1e-4,
        pairs=40,
        linear=True,
    ),
    Case(
        "survival, strata",
        dpc.Survival(grid=TIMES, by=GROUPS),
        references.mean_times(TIMES, by_strata=True),
        words="restricted mean survival time",
        pairs=40,
        linear=True,
    ),
    Case(
        "survival, censored",
        dpc.Survival(event="end", grid=TIMES),
        references.followed_up(TIMES, 0),
        words="restricted mean survival time",
        table="design",
        linear=True,
        pairs=0,
    ),
    Case(
        "survival, incidence",
        dpc.Survival(event="end", grid=TIMES, estimand="incidence"),
        references.followed_up(TIMES, 1),
        words="cumulative incidence",
        table="design",
        pairs=0,
        linear=True,
    ),
    Case(
        "weighted survival, ATE",
        dpc.Survival(event="end", grid=TIMES, covariates=OF),
        references.followed_up(TIMES, 0, "ATE"),
        words="restricted mean survival time",
        table="design",
        pairs=0,
    ),
    Case(
        "weighted quantile effects",
        dpc.QuantileEffects([0.5], bins=32, covariates=OF),
        references.weighted_median(32, "ATE"),
        words="difference in the interpolated median",
        pairs=0,
    ),
)

CURVES = (
    Case("subgroup effects", dpc.SubgroupEffects(by=GROUPS), references.groups(AT), pairs=100, linear=True),
    Case(
        "adjusted subgroup effects",
        dpc.SubgroupEffects(by=GROUPS, covariates=OF),
        references.adjusted_groups(AT),
        pairs=0,
    ),
    Case("R-learner", dpc.RLearner(OF, dpc.Polynomial(["a"])), references.residual_learner(AT)),
    Case("DR-learner", dpc.DRLearner(OF, dpc.Polynomial(["a"])), references.augmented_learner(AT)),
    Case(
        "kernel learner",
        dpc.KernelLearner(OF, ["a"], n_features=5, ridge=_RIDGE, limit=_LIMIT),
        _kernel_learner,
        epsilon=50.0,
        pairs=0,
    ),
)

DESIGNS = (
    Case(
        "cluster trial, few clusters",
        dpc.ClusterTrial("village", CLUSTERS[4:]),
        references.clusters,
        table="design",
        epsilon=1.0,
        pairs=40,
        linear=True,
    ),
    Case(
        "complier effect",
        dpc.ComplierEffect("received"),
        references.compliers(),
        words="complier average causal effect",
        table="design",
        pairs=0,
        linear=True,
    ),
    Case(
        "complier effect, two-stage least squares",
        dpc.ComplierEffect("received", OF, interaction=False),
        references.two_stage_least_squares,
        words="complier average causal effect",
        table="design",
        pairs=0,
    ),
    Case(
        "complier effect, regressions in each arm",
        dpc.ComplierEffect("received", OF),
        references.adjusted_compliers,
        words="complier average causal effect",
        table="design",
        epsilon=20.0,
        pairs=0,
    ),
    Case(
        "difference in differences",
        dpc.DifferenceInDifferences(before="before"),
        references.change(LOW - HIGH, HIGH - LOW),
        words="on the treated",
        table="design",
        linear=True,
        pairs=0,
    ),
    Case(
        "difference in differences, bounded change",
        dpc.DifferenceInDifferences(before="before", change=(-0.1, 1)),
        references.change(-0.1, 1, "low design"),
        words="on the treated",
        table="low design",
        pairs=0,
        linear=True,
    ),
    Case(
        "difference in differences, waves",
        dpc.DifferenceInDifferences(period="wave"),
        references.waves(1, 2),
        words="on the treated",
        table="design",
        linear=True,
    ),
    Case(
        "difference in differences, placebo",
        Contrast(dpc.DifferenceInDifferences(period="wave"), "placebo: wave=first to wave=second"),
        references.waves(0, 1),
        words="on the treated",
        table="design",
        pairs=0,
        linear=True,
    ),
    Case(
        "difference in differences, low outcomes",
        dpc.DifferenceInDifferences(period="wave"),
        references.waves(1, 2, "low design"),
        words="on the treated",
        table="low design",
        pairs=0,
        linear=True,
    ),
    Case(
        "factorial effects",
        dpc.FactorialEffects("second"),
        references.factorial(),
        words="main effect",
        table="design",
        linear=True,
        pairs=0,
    ),
    Case(
        "factorial effects, interaction",
        Contrast(dpc.FactorialEffects("second"), "interaction of training and second=1"),
        references.interaction,
        words="main effect",
        table="design",
        pairs=0,
        linear=True,
    ),
    Case(
        "factorial effects, low outcomes",
        dpc.FactorialEffects("second"),
        references.factorial("low design"),
        words="main effect",
        table="low design",
        pairs=0,
        linear=True,
    ),
    Case(
        "winsorised",
        dpc.Winsorised(dpc.DifferenceInMeans()),
        references.skewed,
        table="skewed",
        pairs=0,
    ),
    Case(
        "formula",
        dpc.FormulaEstimator(
            estimand="average treatment effect",
            formula="mean(y)[1] - mean(y)[0]",
            variance="variance(y)[1] / n[1] + variance(y)[0] / n[0]",
            cells=["t"],
        ),
        references.difference_in_means,
        linear=True,
        pairs=0,
    ),
)
"""Designs that need columns of their own, outcomes whose bounds are too wide, and formulas."""

_FLOORED = "known: noise hides the sampling error, and its upper bound is printed; the noise itself is right"
_WIDE = "known: where noise drowns a covariate, its prior makes the printed error too large"

LEAVING = (
    Case(
        "difference in means, private number of units",
        dpc.DifferenceInMeans(),
        references.difference_in_means,
        may_leave=True,
        pairs=0,
        linear=True,
    ),
    Case(
        "stratification, private number of units",
        dpc.Stratification(by=GROUPS, cap=3),
        references.strata(3),
        may_leave=True,
        pairs=0,
        linear=True,
    ),
    Case(
        "regression adjustment, private number of units",
        dpc.RegressionAdjustment(OF),
        references.regression_adjustment,
        may_leave=True,
        pairs=0,
    ),
    Case(
        "inverse weighting, private number of units",
        dpc.InverseWeighting(OF),
        references.weighting("ATE"),
        may_leave=True,
        pairs=0,
    ),
    Case(
        "doubly robust, private number of units",
        dpc.DoublyRobust(OF),
        references.doubly_robust("ATE"),
        may_leave=True,
        pairs=0,
    ),
    Case(
        "subgroup effects, private number of units",
        dpc.SubgroupEffects(by=GROUPS),
        references.groups(AT),
        may_leave=True,
        pairs=0,
        linear=True,
    ),
)
"""The same where the number of compared units has noise too."""

NOISY = (
    Case(
        "noisy regression adjustment",
        dpc.RegressionAdjustment(OF),
        None,
        table="prognostic",
        epsilon=2.0,
        pending=dict.fromkeys(("total", "bias"), _WIDE),
    ),
    Case(
        "noisy inverse weighting, ATE",
        dpc.InverseWeighting(OF),
        None,
        table="prognostic",
        epsilon=2.0,
    ),
    Case(
        "noisy inverse weighting, ATO",
        dpc.InverseWeighting(OF, "ATO"),
        None,
        words="overlap population",
        table="prognostic",
        epsilon=2.0,
    ),
    Case(
        "noisy doubly robust, ATE",
        dpc.DoublyRobust(OF),
        None,
        table="prognostic",
        epsilon=2.0,
    ),
    Case(
        "noisy doubly robust, ATO",
        dpc.DoublyRobust(OF, "ATO"),
        None,
        words="overlap population",
        table="prognostic",
        epsilon=2.0,
        pending={"total": _WIDE},
    ),
    Case(
        "noisy doubly robust, few events",
        dpc.DoublyRobust(OF),
        None,
        table="events",
        epsilon=1.0,
        pending={"total": _FLOORED},
    ),
    Case("noisy regression adjustment, few events", dpc.RegressionAdjustment(OF), None, table="events"),
    Case(
        "noisy R-learner, spline",
        dpc.RLearner(OF, dpc.Spline(["a"])),
        None,
    ),
    Case(
        "noisy R-learner",
        dpc.RLearner(OF, dpc.Polynomial(["a"])),
        None,
        table="prognostic",
        epsilon=2.0,
        pending={"total": _FLOORED},
    ),
)
"""Estimators with models, where noise in the models costs more than the rest."""

OWN: tuple[Case, ...] = tuple(each for module in modules_in("tests.statistics.estimators") for each in module.CASES)
"""Those of estimators that have a module of their own."""

CASES = (*AVERAGES, *DESIGNS, *OWN, *CURVES, *LEAVING, *NOISY)

WITHOUT_A_CASE = {
    "PropensityModel": "it estimates a score and no effect",
}
"""Public estimators that are no case, each with the reason."""


def estimators_in(part: object) -> set[str]:
    """Return the names of an estimator's class and of those within it."""
    inner = getattr(part, "estimator", None)
    return {type(part).__name__} | (estimators_in(inner) if inner is not None else set())


def case(name: str) -> Case:
    """Return the case of this name."""
    return next(each for each in CASES if each.name == name)
