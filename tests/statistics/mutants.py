"""Deliberately wrong statistics, each with the checks of its estimator that must see it.

`python -m tests.statistics.mutants` tries all mutants and says which check caught each. A mutant at the surface changes
what `estimate` returns. It knows nothing of an estimator's inside, so it outlives a new one, and needs no new estimate.
A mutant further inside breaks a function that all estimators share.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal import pooling
from dpcausal.estimators import two_means
from dpcausal.estimators.average import cluster_trial, difference_in_differences, regression_discontinuity
from dpcausal.estimators.average.doubly_robust import DoublyRobust
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.estimators.average.stratification import Stratification
from dpcausal.estimators.distributions import Arm
from dpcausal.estimators.noise_aware_regression import NoiseAwareRegressions
from dpcausal.estimators.observed_scores import ModelsOfAll
from dpcausal.federation.site import review, site
from dpcausal.pooling import pooled
from dpcausal.queries import ObservedScores
from dpcausal.release import Release
from dpcausal.results import curve as curves
from dpcausal.results import laws
from dpcausal.results.curve import matrix
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.derivatives import within
from dpcausal.uncertainty.interval import NoiseTerm, critical_values, half_width, student_half_width
from dpcausal.utils.arrays import Array
from tests.statistics.case import Result
from tests.statistics.cases import AVERAGES, CURVES, DESIGNS, OWN, Results, case, results
from tests.statistics.checks import CHECKS, Evidence
from tests.statistics.pooled import check_pooling
from tests.statistics.sites import check_requires_at_a_site

Change = Callable[[Any], Any]
Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """Wrong statistics.

    Attributes:
        name: What is wrong.
        case: The name of the case whose checks must see it.
        change: At the surface: what becomes of each result.
        broken: Further inside: what breaks the package.
        again: Whether estimates have to be made again in the broken package.
        check: The check that must see it, where that is none of an estimator.
    """

    name: str
    case: str = ""
    change: Change | None = None
    broken: Break | None = None
    again: bool = True
    check: Callable[[], str] | None = None


class Changed:
    """The evidence on an estimator whose results are changed at the surface."""

    def __init__(self, whole: Results, change: Change) -> None:
        self.case, self._whole, self._change = whole.case, whole, change

    @cached_property
    def exact(self) -> Result:
        return self._changed(self._whole.exact)

    @cached_property
    def undrawn(self) -> Result:
        return self._changed(self._whole.undrawn)

    @cached_property
    def moved(self) -> Sequence[tuple[Result, float]]:
        return [(self._changed(result), by) for result, by in self._whole.moved]

    @cached_property
    def drawn(self) -> Sequence[Result]:
        return [self._changed(result) for result in self._whole.drawn]

    def _changed(self, result: Result) -> Result:
        changed: Result = self._change(result)
        return changed


def caught_by(mutant: Mutant) -> str:
    """Return the first check that sees a mutant, and what it sees; empty where none does."""
    if mutant.change:
        return _seen(Changed(results(mutant.case), mutant.change))
    with pytest.MonkeyPatch.context() as patch:
        if mutant.broken:
            mutant.broken(patch)
        if mutant.check:
            return mutant.check()
        return _seen(Results(case(mutant.case)) if mutant.again else results(mutant.case))


def _seen(evidence: Evidence) -> str:
    for name, check in CHECKS.items():
        if name not in evidence.case.pending and (wrong := check(evidence)):
            return f"{name}: {wrong}"
    return ""


MUTANTS: list[Mutant] = []


def _noise_times(factor: float) -> Change:
    return lambda effect: replace(
        effect, noise=tuple(replace(term, scale=term.scale * factor) for term in effect.noise)
    )


def _without_term(rank: int) -> Change:
    """Drop a term of the noise: 0 for the largest."""

    def dropped(effect: Effect) -> Effect:
        places = sorted(range(len(effect.noise)), key=lambda place: -effect.noise[place].variance)
        return replace(effect, noise=tuple(term for at, term in enumerate(effect.noise) if at != places[rank]))

    return dropped


def _means_moved(effect: Effect, by: float) -> dict[str, Any]:
    means = effect.arm_means
    if means is None:
        return {}
    control, treated, *cells = means.values
    return {"arm_means": replace(means, values=(control, treated + by, *cells))}


def _off_by(share: float) -> Change:
    def moved(effect: Effect) -> Effect:
        by = share * (effect.standard_error or 0.0)
        return replace(effect, estimate=effect.estimate + by, **_means_moved(effect, by))

    return moved


def _turned(effect: Effect) -> Effect:
    means = effect.arm_means
    turned: dict[str, Any] = {} if means is None else {"arm_means": replace(means, values=means.values[::-1])}
    return replace(effect, estimate=-effect.estimate, **turned)


AT_THE_SURFACE: dict[str, Change] = {
    "sampling error halved": lambda effect: replace(effect, sampling_sd=effect.sampling_sd / 2),
    "sampling error doubled": lambda effect: replace(effect, sampling_sd=effect.sampling_sd * 2),
    "privacy noise halved": _noise_times(0.5),
    "privacy noise doubled": _noise_times(2.0),
    "largest noise term dropped": _without_term(0),
    "too large by half a standard error": _off_by(0.5),
    "too small by half a standard error": _off_by(-0.5),
    "sign turned": _turned,
}

AT_THE_SURFACE_OF_CURVES: dict[str, Change] = {
    "sampling covariance divided by 4": lambda curve: replace(curve, sampling=_times(curve.sampling, 0.25)),
    "sampling covariance times 4": lambda curve: replace(curve, sampling=_times(curve.sampling, 4.0)),
    "privacy covariance divided by 4": lambda curve: replace(curve, privacy=_times(curve.privacy, 0.25)),
    "privacy covariance times 4": lambda curve: replace(curve, privacy=_times(curve.privacy, 4.0)),
    "both covariances divided by 4": lambda curve: replace(
        curve, sampling=_times(curve.sampling, 0.25), privacy=_times(curve.privacy, 0.25)
    ),
    "too large by half a standard error": lambda curve: _curve_off_by(curve, 0.5),
    "sign turned": lambda curve: replace(curve, weights=tuple(-weight for weight in curve.weights)),
}

NO_SAMPLING_ERROR = {"kernel learner"}
"""Learners that print no sampling error: there is nothing to halve."""


def _times(covariance: Sequence[Sequence[float]], factor: float) -> curves.Matrix:
    return matrix(np.array(covariance) * factor)


def _curve_off_by(curve: dpc.EffectCurve, share: float) -> dpc.EffectCurve:
    """Move every weight by a share of its own standard error."""
    sds = np.sqrt(np.diag(np.array(curve.sampling) + np.array(curve.privacy)))
    return replace(curve, weights=tuple((np.array(curve.weights) + share * sds).tolist()))


for _case in (*AVERAGES, *DESIGNS, *OWN):
    MUTANTS += [
        Mutant(f"{_case.name}: {what}", _case.name, change)
        for what, change in AT_THE_SURFACE.items()
        if _case.reference or "noise" in what
    ]
MUTANTS += [
    Mutant("difference in means: the noise in one arm's total dropped", "difference in means", _without_term(1)),
    Mutant(
        "difference in means: the noise in the arms' sizes dropped",
        "difference in means, low outcomes",
        _without_term(1),
    ),
    Mutant("stratification: the noise in the size of strata dropped", "stratification", _without_term(1)),
]
for _case in CURVES:
    MUTANTS += [
        Mutant(f"{_case.name}: {what}", _case.name, change)
        for what, change in AT_THE_SURFACE_OF_CURVES.items()
        if _case.name not in NO_SAMPLING_ERROR or "sampling" not in what
    ]


def inside(name: str, *cases: str, again: bool = True) -> Callable[[Break], Break]:
    """Put a way to break the package on the list, once for each case that must see it."""

    def listed(broken: Break) -> Break:
        MUTANTS.extend(Mutant(f"{each}: {name}", each, broken=broken, again=again) for each in cases)
        return broken

    return listed


def _printed_alike(kind: type[Any], **other: object) -> Break:
    """Break an estimator: it estimates with other parameters, and prints its estimand as before."""

    def broken(patch: pytest.MonkeyPatch) -> None:
        estimate = kind.estimate

        def swapped(estimator: Any, source: Any, **price: float) -> Effect:
            words: str = estimate(estimator, source, **price).estimand
            effect: Effect = estimate(replace(estimator, **other), source, **price)
            return replace(effect, estimand=words)

        patch.setattr(kind, "estimate", swapped)

    return broken


for _kind, _name in ((InverseWeighting, "inverse weighting"), (DoublyRobust, "doubly robust")):
    for _asked, _given in (("ATE", "ATT"), ("ATE", "ATO"), ("ATT", "ATE"), ("ATT", "ATO"), ("ATO", "ATE")):
        inside(f"estimates the {_given}", f"{_name}, {_asked}")(_printed_alike(_kind, estimand=_given))
inside("ignores the cap", "stratification, cap 1")(_printed_alike(Stratification, cap=3))
inside("one regression for both arms", "regression adjustment")(
    _printed_alike(dpc.RegressionAdjustment, interaction=False)
)


@inside("the treated are printed as all", "inverse weighting, ATT", "doubly robust, ATT", again=True)
def wrong_words(patch: pytest.MonkeyPatch) -> None:
    for kind in (InverseWeighting, DoublyRobust):
        patch.setattr(kind, "estimate", _in_other_words(kind.estimate))


def _in_other_words(estimate: Callable[..., Effect]) -> Callable[..., Effect]:
    return lambda *given, **price: replace(estimate(*given, **price), estimand="average treatment effect")


@inside(
    "units without an outcome are left out of the average",
    "regression adjustment, all units",
    "doubly robust, all units",
)
def without_missing(patch: pytest.MonkeyPatch) -> None:
    over = NoiseAwareRegressions.over
    patch.setattr(NoiseAwareRegressions, "over", lambda fit, _, noise: over(fit, fit.centres, noise))


@inside("residuals have no weights for being observed", "doubly robust, all units")
def unweighted_for_observed(patch: pytest.MonkeyPatch) -> None:
    query = ModelsOfAll.query

    def certain(models: ModelsOfAll, *of: Any) -> ObservedScores:
        made = query(models, *of)
        sure = [30.0, *(0.0 for _ in made.observed_control[1:])]
        return replace(made, observed_control=sure, observed_treated=sure)

    patch.setattr(ModelsOfAll, "query", certain)


@inside("a Laplace term has the variance of its scale", "difference in means", "stratification", again=False)
def half_variance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NoiseTerm, "variance", property(lambda term: term.scale**2))


@inside("released variances are a quarter", "subgroup effects", "R-learner")
def quarter_variance(patch: pytest.MonkeyPatch) -> None:
    variance = Release.variance
    patch.setattr(Release, "variance", lambda release, name: variance(release, name) / 4)


@inside("released noise has half its scale", "difference in means", "inverse weighting, ATE")
def half_scales(patch: pytest.MonkeyPatch) -> None:
    scale = Release.scale
    patch.setattr(Release, "scale", lambda release, name: scale(release, name) / 2)


@inside("noise in counts does not pull shares down", "distribution functions", "distribution functions, public arms")
def unpulled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Arm, "pull", lambda *_: 0.0)


@inside("public sizes pull as private ones do", "distribution functions, public arms")
def pulled_by_share(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Arm, "pull", lambda _, place: place.share)


@inside("private sizes pull as public ones do", "distribution functions")
def pulled_by_bins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Arm, "pull", lambda arm, place: place.below / arm.bins)


def _freedom(more: int) -> Break:
    """Break a cluster trial: Student's t has more degrees of freedom."""
    half = student_half_width
    return lambda patch: patch.setattr(
        cluster_trial, "student_half_width", lambda freedom, level: half(freedom + more, level)
    )


for _more, _what in ((1, "one less than clusters"), (2, "as many as clusters"), (10_000, "those of many clusters")):
    inside(f"degrees of freedom are {_what}", "cluster trial, few clusters")(_freedom(_more))


def _without_derivative(number: Any, low: Any, high: Any) -> Array:
    return np.real(within(number, low, high))


@inside("noise in the sizes of cells dropped", "difference in differences, low outcomes")
def fixed_sizes_of_cells(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(difference_in_differences, "within", _without_derivative)


@inside("noise in the arms' sizes dropped", "difference in differences, bounded change")
def fixed_sizes_of_arms(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(two_means, "within", _without_derivative)


@inside("noise in sizes and distances dropped", "regression discontinuity")
def fixed_distances(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(regression_discontinuity, "within", _without_derivative)


@inside("noise in slopes dropped", "regression discontinuity")
def fixed_slopes(patch: pytest.MonkeyPatch) -> None:
    at = property(lambda line: line.outcome - np.real(line.slope) * (line.centre + 1))
    patch.setattr(regression_discontinuity._Line, "at_cutoff", at)


@inside("intervals forget sampling error", "difference in means", again=False)
def no_sampling(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(laws, "half_width", lambda _, noise, level, bias: half_width(0.0, noise, level, bias))


@inside("intervals forget privacy noise", "difference in means, Gaussian noise", again=False)
def no_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(laws, "half_width", lambda sd, _, level, bias: half_width(sd, (), level, bias))


@inside("intervals are one-sided", "difference in means", "doubly robust, ATE", again=False)
def one_sided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        laws,
        "half_width",
        lambda sd, noise, level, bias: half_width(sd, noise, 2 * level - 1 if level > 0.5 else level, bias),
    )


@inside("intervals of every level are those of 95 %", "regression adjustment", again=False)
def one_level(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(laws, "half_width", lambda sd, noise, _, bias: half_width(sd, noise, 0.95, bias))


@inside("intervals take Laplace noise to be normal", "exact matching", again=False)
def normal_noise(patch: pytest.MonkeyPatch) -> None:
    def normal(sd: float, noise: Sequence[NoiseTerm], level: float, bias: float) -> float:
        return half_width(sd, [NoiseTerm("gaussian", term.variance**0.5) for term in noise], level, bias)

    patch.setattr(laws, "half_width", normal)


@inside("the standard error is the sum of its parts", "difference in means, Gaussian noise", again=False)
def added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Effect, "standard_error", property(lambda effect: effect.sampling_sd + effect.privacy_sd))


@inside("the standard error is that of sampling", "difference in means, Gaussian noise", again=False)
def sampling_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Effect, "standard_error", property(lambda effect: effect.sampling_sd))


@inside("bands are one-sided", "R-learner", "subgroup effects", again=False)
def one_sided_bands(patch: pytest.MonkeyPatch) -> None:
    def wrong(family: Any, shares: Array, level: float, parts: int = 1) -> Array:
        return critical_values(family, shares, max(2 * level - 1, 0.1), parts)

    patch.setattr(curves, "critical_values", wrong)


@inside("bands take Laplace noise to be normal", "R-learner", again=False)
def normal_bands(patch: pytest.MonkeyPatch) -> None:
    def wrong(_: Any, shares: Array, level: float, parts: int = 1) -> Array:
        return critical_values("gaussian", shares, level, parts)

    patch.setattr(curves, "critical_values", wrong)


@inside("simultaneous bands are pointwise", "R-learner", "subgroup effects", again=False)
def pointwise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpc.EffectCurve, "_simultaneous", lambda *_: 1.96)


@inside("the error of a mean over profiles ignores covariances", "R-learner", again=False)
def no_covariances(patch: pytest.MonkeyPatch) -> None:
    whole = dpc.EffectCurve._errors

    def diagonal(curve: dpc.EffectCurve, values: Array) -> tuple[Array, Array]:
        own = replace(
            curve,
            sampling=matrix(np.diag(np.diag(np.array(curve.sampling)))),
            privacy=matrix(np.diag(np.diag(np.array(curve.privacy)))),
        )
        return whole(own, values)

    patch.setattr(dpc.EffectCurve, "_errors", diagonal)


def at_sites(name: str, check: Callable[[], str]) -> Callable[[Break], Break]:
    """Put a way to break what several sites do on the list."""

    def listed(broken: Break) -> Break:
        MUTANTS.append(Mutant(name, broken=broken, check=check))
        return broken

    return listed


def _pooled(change: Change) -> Break:
    def broken(patch: pytest.MonkeyPatch) -> None:
        pool = pooling.pool
        patch.setattr(pooling, "pool", lambda *given: change(pool(*given)))

    return broken


for _what, _change in AT_THE_SURFACE.items():
    at_sites(f"pooling: {_what}", check_pooling)(_pooled(_change))


@at_sites("pooling: the error from heterogeneity dropped", check_pooling)
def no_between(patch: pytest.MonkeyPatch) -> None:
    _pooled(lambda effect: replace(effect, between_sd=0.0))(patch)


@at_sites("pooling: all sites count alike", check_pooling)
def alike(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pooled, "weights_of", lambda _, sizes, *__: np.ones(len(sizes)) / len(sizes))


@at_sites("pooling: precision without privacy noise", check_pooling)
def blind_to_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pooled, "site_variances", lambda sites: np.array([effect.sampling_sd**2 for effect in sites]))


@at_sites("pooling: intervals forget heterogeneity", check_pooling)
def no_between_in_intervals(patch: pytest.MonkeyPatch) -> None:
    interval = Effect.interval
    patch.setattr(Effect, "interval", lambda effect, level: interval(replace(effect, between_sd=0.0), level))


@at_sites("a site approves a study that requires diagnostics", check_requires_at_a_site)
def requires_allowed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(site, "objections", lambda policy, study: review.objections(policy, replace(study, requires={})))


def main() -> None:
    """Try all mutants."""
    begun, missed = time.process_time(), 0
    for mutant in MUTANTS:
        caught = caught_by(mutant)
        missed += not caught
        sys.stderr.write(f"{'caught' if caught else 'MISSED'}  {mutant.name}  ({caught})\n")
    spent = time.process_time() - begun
    sys.stderr.write(f"{len(MUTANTS) - missed} of {len(MUTANTS)} mutants caught in {spent:.0f} s of processor time\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
