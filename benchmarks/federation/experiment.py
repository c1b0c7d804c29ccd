"""The multi-site paper's experiment, done again with its rules as printed and with this library's.

Every site has a real vault, and every effect of this library comes out of it with real noise. A site that is asked the
same twice in a run, as the first site is at each alpha, gives the answer it has stored.
"""

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import DataSet
from benchmarks.federation import printed
from benchmarks.federation.tables import SEED, Floats, Setting, epsilons, protected, reference, settings
from benchmarks.progress import progress
from dpcausal.effect import Estimator
from dpcausal.pooling import RULES, Rule, pool
from dpcausal.pooling.weights import NEED_VARIANCES
from dpcausal.schema import Protects

ALPHAS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5


By = Literal["paper", "mended", "ours"]
Task = tuple[Setting, int, tuple[float, ...]]
"""A setting, the number of a run, and alphas."""


@dataclass(frozen=True)
class Curve:
    """What is done in a setting at each alpha.

    Attributes:
        table: The table.
        split: How it is spread over sites.
        protects: What is protected.
        estimator: What sites do.
        by: Whose estimator and rule: the paper's as printed; the paper's estimator with this library's rule; or this
            library's.
        rule: How the sites' effects are pooled.
    """

    table: str
    split: str
    protects: Protects
    estimator: str
    by: By
    rule: Rule


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


@dataclass(frozen=True)
class Found:
    """What one run gave.

    Attributes:
        estimates: The estimates of each curve, alpha by alpha.
        negative: The share of the paper's sites that sent a variance below zero, by estimator, alpha by alpha.
        reference: The paper's estimate without noise on all units together.
        truth: The true effect.
    """

    estimates: dict[Curve, list[float]]
    negative: dict[str, list[float]]
    reference: float
    truth: float


CAP = 3
"""The cap of strata at all sites: one that each chose for its own arms would be another estimand at each."""


def estimators(data: DataSet) -> dict[str, tuple[Estimator, float]]:
    """Return what sites may do with such a table, and how much of delta it needs; first what the paper does."""
    plain: dict[str, tuple[Estimator, float]] = {
        "difference in means": (dpc.DifferenceInMeans(), 0.0),
        "regression adjustment": (dpc.RegressionAdjustment(covariates=data.short), 0.0),
    }
    within: dict[str, tuple[Estimator, float]] = {
        "exact matching, smooth": (dpc.ExactMatching(by=data.strata), DELTA),
        "exact matching, global": (dpc.ExactMatching(by=data.strata), 0.0),
        "stratification": (dpc.Stratification(by=data.strata, cap=CAP), 0.0),
    }
    return plain if data.randomised else within | plain


def asked(setting: Setting, estimator: str, alpha: float, protects: Protects, run: int = 0) -> list[Asked]:
    """Return what each site is asked at one point of a curve, for a run over real connections."""
    sites = setting.sites(run)
    chosen, delta = estimators(setting.table(run))[estimator]
    budgets = epsilons(setting, alpha, len(sites))
    return [
        Asked(name, site.table, site.schema(protects), chosen, epsilon, delta)
        for (name, site), epsilon in zip(sites.items(), budgets, strict=True)
    ]


def once(setting: Setting, run: int, alphas: Sequence[float] = ALPHAS) -> Found:
    """One run of all curves of a setting."""
    whole, sites = setting.table(run), setting.sites(run)
    sums = [printed.summed(site) for site in sites.values()]
    opened = {protects: {name: site.vault(protects) for name, site in sites.items()} for protects in protected(whole)}
    generator = np.random.default_rng((SEED, run, *map(ord, setting.name + setting.split)))
    found: dict[Curve, list[float]] = {}
    negative: dict[str, list[float]] = {}
    for alpha in alphas:
        budgets = epsilons(setting, alpha, len(sites))
        said = [each.said(epsilon, DELTA, generator) for each, epsilon in zip(sums, budgets, strict=True)]
        for name in said[0]:
            negative.setdefault(name, []).append(sum(each[name].variance < 0 for each in said) / len(said))
        for (name, by, rule), estimate in _printed(said):
            curve = Curve(setting.name, setting.split, protected(whole)[0], name, by, rule)
            found.setdefault(curve, []).append(estimate)
        for protects, vaults in opened.items():
            for (name, rule), estimate in _of_vaults(vaults, estimators(whole), budgets):
                curve = Curve(setting.name, setting.split, protects, name, "ours", rule)
                found.setdefault(curve, []).append(estimate)
    return Found(found, negative, reference(whole), whole.truth)


def _printed(said: Sequence[Mapping[str, printed.Said]]) -> Iterator[tuple[tuple[str, By, Rule], float]]:
    for name in said[0]:
        sent = [each[name] for each in said]
        for rule, joined in printed.RULES.items():
            yield (name, "paper", rule), joined(sent)
            if rule in NEED_VARIANCES:
                yield (name, "mended", rule), printed.mended(sent, rule)


def _of_vaults(
    vaults: Mapping[str, dpc.Vault], chosen: Mapping[str, tuple[Estimator, float]], budgets: Sequence[float]
) -> Iterator[tuple[tuple[str, Rule], float]]:
    for name, (estimator, delta) in chosen.items():
        effects = {
            site: estimator.estimate(vault, epsilon=epsilon, delta=delta)
            for (site, vault), epsilon in zip(vaults.items(), budgets, strict=True)
        }
        for rule in RULES:
            yield (name, rule), pool(effects, rule).estimate


def run(
    runs: int,
    folder: Path | None = None,
    *,
    chosen: Sequence[Setting] | None = None,
    alphas: Sequence[float] = ALPHAS,
    workers: int = 1,
) -> dict[str, Any]:
    """So many runs of all settings, or of those chosen, summed up in a way that can be written as JSON.

    Errors are mean absolute ones with their standard deviations: from the paper's estimate without noise on all units
    together, and from the truth.
    """
    places = settings(folder) if chosen is None else tuple(chosen)
    tasks = [(place, number, tuple(alphas)) for place in places for number in range(runs)]
    done = list(progress(_done(tasks, workers), len(tasks), "runs"))
    return {
        "study": "federation",
        "runs": runs,
        "delta": DELTA,
        "alphas": list(alphas),
        "sites": {
            f"{place.name} {place.split}": {name: site.n for name, site in place.sites().items()} for place in places
        },
        "curves": [line for place in range(len(places)) for line in _summed(done[place * runs : (place + 1) * runs])],
    }


def _done(tasks: Sequence[Task], workers: int) -> Iterator[Found]:
    if workers == 1:
        yield from map(_one, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool_of_processes:
        yield from pool_of_processes.imap(_one, tasks)


def _one(task: Task) -> Found:
    return once(*task)


def _summed(found: Sequence[Found]) -> Iterator[dict[str, Any]]:
    """Each curve of one setting over its runs."""
    for curve in found[0].estimates:
        estimates = np.array([each.estimates[curve] for each in found])
        line: dict[str, Any] = asdict(curve)
        if curve.by == "paper":
            line["negative_variances"] = _rounded(np.mean([each.negative[curve.estimator] for each in found], axis=0))
        for name, targets in (
            ("not_private", [each.reference for each in found]),
            ("truth", [each.truth for each in found]),
        ):
            missed = estimates - np.array(targets)[:, None]
            line[name] = {
                "error": _rounded(np.abs(missed).mean(axis=0)),
                "sd": _rounded(np.abs(missed).std(axis=0)),
                "bias": _rounded(missed.mean(axis=0)),
            }
        yield line


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
