"""The multi-site paper's experiment, done again with its rules as printed and with this library's.

Every effect of this library is made by its estimator from the answers of a vault, with noise of the vault's laws and
sizes. A site that is asked the same twice in a run, as the first site is at each alpha, gives the same answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import DataSet
from benchmarks.papers.multi_site import printed
from benchmarks.papers.multi_site.tables import SEED, Floats, Setting, epsilons, protected, reference
from benchmarks.papers.multi_site.unmetered import Unmetered
from benchmarks.pooling import RULES
from dpcausal.pooling import Rule
from dpcausal.pooling.heterogeneity import Heterogeneity
from dpcausal.pooling.pooled import site_variances
from dpcausal.pooling.weights import NEED_VARIANCES, weights_of
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Protects

ALPHAS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5
BELOW = "variances below 0"

FEWER = 2
"""What is not in the paper, other estimators and private arms in trials, is done in so many blocks of runs."""

WITH_REGRESSION = ("1:1:1", "country", "urbanity")
"""Where sites also do regression adjustment, which is slow, in the first block."""

By = Literal["paper", "floored", "ours"]
"""Whose: the paper's estimator and rule as printed; the paper's estimator with this library's rule; this library's."""

_CAPS = {"Synth": 4, "IHDP": 9, "Lalonde": 3}
"""The cap of stratification: about twice the odds of the larger arm, which the papers print."""


@dataclass(frozen=True)
class Asked:
    """What one site is asked.

    Attributes:
        site: Its name.
        table: Its units, a pyarrow table.
        schema: What is public about them.
        estimator: What it should do.
        epsilon: Its epsilon.
        delta: Its delta.
    """

    site: str
    table: Any
    schema: dpc.Schema
    estimator: Estimator
    epsilon: float
    delta: float


def estimators(data: DataSet) -> dict[str, tuple[Estimator, float]]:
    """Return what sites may do with such a table, and how much of delta it needs; first what the paper does."""
    plain: dict[str, tuple[Estimator, float]] = {
        "difference in means": (dpc.DifferenceInMeans(), 0.0),
        "regression adjustment": (dpc.RegressionAdjustment(covariates=data.short), 0.0),
    }
    if data.randomised:
        return plain
    within: dict[str, tuple[Estimator, float]] = {
        "exact matching, smooth": (dpc.ExactMatching(by=data.strata), DELTA),
        "exact matching, global": (dpc.ExactMatching(by=data.strata), 0.0),
        "stratification": (dpc.Stratification(by=data.strata, cap=_CAPS[data.name]), 0.0),
    }
    return within | plain


def asked(setting: Setting, estimator: str, alpha: float, protects: Protects, run: int = 0) -> list[Asked]:
    """Return what each site is asked at one point of a curve, for a run over real connections."""
    sites = setting.sites(run)
    chosen, delta = estimators(setting.table(run))[estimator]
    budgets = epsilons(setting, alpha, len(sites))
    return [
        Asked(name, site.table, site.schema(protects), chosen, epsilon, delta)
        for (name, site), epsilon in zip(sites.items(), budgets, strict=True)
    ]


Found = dict[str, list[float]]
"""What one run gave, alpha by alpha: estimates by curve, and the share of the paper's variances below zero."""


def curve(estimator: str, by: By, rule: str, protects: Protects) -> str:
    """Return the name of a curve."""
    return f"{estimator} | {by} | {rule} | {protects}"


def block(setting: Setting, number: int, runs: int, alphas: Sequence[float] = ALPHAS) -> dict[str, Any]:
    """Return the estimates of some runs on one random spread of the units, with what they are compared with.

    Noise is of the vault's laws and sizes, from a seed.
    """
    whole, sites = setting.table(number), setting.sites(number)
    sums = [printed.summed(site) for site in sites.values()]
    chosen = _chosen(setting, number, whole)
    generator = np.random.default_rng((SEED, number, *map(ord, setting.name + setting.split)))
    levels = protected(whole) if number < FEWER else protected(whole)[:1]
    opened = {level: [Unmetered(site.vault(level), generator) for site in sites.values()] for level in levels}
    found: dict[str, list[list[float]]] = {}
    for _ in range(runs):
        run: Found = {}
        said = Once(lambda place, epsilon: sums[place].said(epsilon, DELTA, generator))
        effects = {level: Once(partial(_effects, vaults, chosen)) for level, vaults in opened.items()}
        for alpha in alphas:
            budgets = list(enumerate(epsilons(setting, alpha, len(sites))))
            for (name, by, rule), estimate in _printed([said(*each) for each in budgets]):
                run.setdefault(curve(name, by, rule, protected(whole)[0]), []).append(estimate)
            for level, effects_of in effects.items():
                for (name, rule), estimate in _ours([effects_of(*each) for each in budgets]):
                    run.setdefault(curve(name, "ours", rule, level), []).append(estimate)
        for name, values in run.items():
            found.setdefault(name, []).append([float(f"{each:.6g}") for each in values])
    return {
        "alphas": list(alphas),
        "sites": [site.n for site in sites.values()],
        "runs": runs,
        "reference": reference(whole),
        "truth": whole.truth,
        "curves": found,
    }


def _chosen(setting: Setting, number: int, whole: DataSet) -> dict[str, tuple[Estimator, float]]:
    """Return what sites do in this block: the paper's estimators in all, others in the first ones."""
    found = estimators(whole)
    if number or setting.split not in WITH_REGRESSION:
        found.pop("regression adjustment")
    paper = ("difference in means",) if whole.randomised else ("exact matching, smooth", "exact matching, global")
    return found if number < FEWER else {name: found[name] for name in paper}


class Once:
    """A function of a site and its epsilon that is called once for each: who is asked the same twice says the same."""

    def __init__(self, function: Callable[[int, float], Any]) -> None:
        self._function, self._found = function, dict[tuple[int, float], Any]()

    def __call__(self, place: int, epsilon: float) -> Any:  # noqa: ANN401 (as the function has it)
        """Return what this site said at this epsilon."""
        if (place, epsilon) not in self._found:
            self._found[place, epsilon] = self._function(place, epsilon)
        return self._found[place, epsilon]


def _effects(
    vaults: Sequence[Unmetered], chosen: Mapping[str, tuple[Estimator, float]], place: int, epsilon: float
) -> dict[str, Effect]:
    return {
        name: estimator.estimate(vaults[place], epsilon=epsilon, delta=delta)
        for name, (estimator, delta) in chosen.items()
    }


def _printed(said: Sequence[Mapping[str, printed.Said]]) -> Iterator[tuple[tuple[str, By, str], float]]:
    for name in said[0]:
        sent = [each[name] for each in said]
        yield (name, "paper", BELOW), sum(each.variance < 0 for each in sent) / len(sent)
        for rule, joined in printed.RULES.items():
            yield (name, "paper", rule), joined(sent)
            if rule in NEED_VARIANCES:
                yield (name, "floored", rule), printed.floored(sent, rule)


def _ours(effects: Sequence[Mapping[str, Effect]]) -> Iterator[tuple[tuple[str, Rule], float]]:
    for name in effects[0]:
        for rule, estimate in pooled([each[name] for each in effects]).items():
            yield (name, rule), estimate


def pooled(effects: Sequence[Effect]) -> dict[Rule, float]:
    """Return the estimate of `pool` by each rule, without the rest of a pooled effect."""
    variances, estimates = site_variances(effects), np.array([effect.estimate for effect in effects])
    sizes = np.array([effect.n for effect in effects], dtype=float)
    known = all(effect.sampling_sd is not None for effect in effects)
    between = Heterogeneity.of(estimates, variances).variance if known else 0.0
    return {rule: float(weights_of(rule, sizes, variances, between, estimates) @ estimates) for rule in RULES}


def summed(setting: Setting, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean absolute errors of a setting's curves, with their standard deviations.

    Errors are from the paper's estimate without noise on all units together; on Synth, as in the paper, from the truth.
    For IHDP and Lalonde, `truth` has those from the truth too. `beyond` is the share of estimates that no effect can
    have, because outcomes are within 0 and 1.
    """
    curves: dict[str, Any] = {}
    for name in parts[0]["curves"]:
        within = [part for part in parts if name in part["curves"]]
        values = np.concatenate([np.array(part["curves"][name]) for part in within])
        truths, references = (
            np.concatenate([[part[target]] * part["runs"] for part in within])[:, None]
            for target in ("truth", "reference")
        )
        estimator, by, rule, protects = name.split(" | ")
        place = curves.setdefault(f"{estimator}, {protects}", {}).setdefault(by, {})
        if rule == BELOW:
            place[rule] = rounded(values.mean(axis=0))
            continue
        missed = np.abs(values - (truths if setting.name == "Synth" else references))
        place[rule] = {"error": rounded(missed.mean(axis=0))}
        if by == "paper":
            place[rule] |= {"sd": rounded(missed.std(axis=0)), "beyond": rounded((np.abs(values) > 1).mean(axis=0))}
        if setting.name in {"IHDP", "Lalonde"} and by == "ours":
            place[rule]["truth"] = rounded(np.abs(values - truths).mean(axis=0))
    return {
        "table": setting.name,
        "split": setting.split,
        "runs": sum(part["runs"] for part in parts),
        "sites": parts[0]["sites"],
        "curves": curves,
    }


def rounded(values: Floats) -> list[float]:
    """Return numbers with three digits."""
    return [float(f"{value:.3g}") for value in values]
