"""Pooled effects: is the best set found, how fast, how large are errors by rule, and do intervals cover?

Sites are simulated as numbers: trials of an outcome between 0 and 1, with the noise that `DifferenceInMeans` has where
arms are public. `python -m benchmarks.pooling --json`
"""

import argparse
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from benchmarks.simulation import add_arguments, simulated
from dpcausal.guarantee import Guarantee
from dpcausal.pooling import Rule, minimum_variance, pool
from dpcausal.pooling.heterogeneity import Heterogeneity
from dpcausal.pooling.weights import inverse_variance, weights_of
from dpcausal.release import Receipt
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.interval import NoiseTerm
from tests.support.subsets import brute_force, subsets

Array = NDArray[np.float64]

EFFECT, OUTCOME_SD = 0.1, 0.1
MANY = 1_000_000

RULES: tuple[Rule, ...] = (
    "minimum_variance",
    "inverse_variance",
    "random_effects",
    "sample_size",
    "largest",
    "median",
)
"""The rules compared here; `benchmarks.site_checks` has the robust one."""

INTERVALS: tuple[Rule, ...] = ("minimum_variance", "inverse_variance", "sample_size", "random_effects", "median")
"""The rules whose intervals are checked; that of the largest site is the site's own."""


@dataclass(frozen=True)
class Setting:
    """Sites of a simulated study.

    Attributes:
        sites: How many.
        sizes: `small` (40 units each, epsilon 5 at the first site), `equal` (1,000 each, epsilon 1), `rising` or
            `falling` (300 to 6,000, epsilon 1).
        ratio: The last site's epsilon over the first one's; those between lie between.
        between: The standard deviation of true effects between sites.
    """

    sites: int
    sizes: str
    ratio: float
    between: float

    @property
    def n(self) -> Array:
        """Each site's number of units."""
        ends = {"small": (40, 40), "equal": (1000, 1000), "rising": (300, 6000), "falling": (6000, 300)}[self.sizes]
        units: Array = np.round(np.geomspace(*ends, self.sites) / 2) * 2
        return units

    @property
    def epsilon(self) -> Array:
        """Each site's epsilon."""
        first = 5.0 if self.sizes == "small" else 1.0
        epsilons: Array = first * self.ratio ** (np.arange(self.sites) / max(self.sites - 1, 1))
        return epsilons


@dataclass(frozen=True)
class Study:
    """What sites say, one study a line: their own true effects, estimates, variances, and the size of their noise."""

    truths: Array
    estimates: Array
    sampling: Array
    printed: Array
    scales: Array

    @property
    def variances(self) -> Array:
        """Sampling and privacy noise together."""
        return self.sampling + 4 * self.scales**2


def studies(setting: Setting, runs: int, generator: Generator) -> Study:
    """Simulate trials. Half of epsilon is for sums and half for squares, as in the paper's experiments.

    `sampling` is estimated as `DifferenceInMeans` does it, from outcomes measured from the middle of their range, and
    `printed` is the whole variance as the paper prints it: not corrected for the noise in the mean, nor kept above 0.
    """
    shape, units, scale = (runs, setting.sites), setting.n / 2, 2 / setting.epsilon
    truths = EFFECT + setting.between * generator.normal(size=shape)
    estimates, sampling, printed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for arm in (0, 1):
        mean = 0.4 + arm * truths + generator.normal(size=shape) * OUTCOME_SD / np.sqrt(units)
        squares = mean**2 + OUTCOME_SD**2 * generator.chisquare(np.broadcast_to(units - 1, shape)) / units
        noisy = mean + generator.laplace(size=shape) * scale / units
        estimates += (-1, 1)[arm] * noisy
        printed += (squares + generator.laplace(size=shape) * scale / units - noisy**2) / units
        centred = squares - mean + 0.25 + generator.laplace(size=shape) * scale / 4 / units
        within = centred - (noisy - 0.5) ** 2 + 2 * (scale / units) ** 2
        sampling += np.clip(within, 0, 0.25) / (units - 1)
    scales = np.broadcast_to(scale / units, shape)
    return Study(truths, estimates, sampling, printed + 4 * scales**2, scales)


def agreement(instances: int, most: int = 12) -> dict[str, object]:
    """Compare the best prefix with all sets, on random instances with ties, zeros and variances of all sizes."""
    generator = np.random.default_rng(1)
    every = {sites: subsets(sites) for sites in range(1, most + 1)}
    makers: tuple[Callable[[int], Array], ...] = (
        lambda sites: generator.exponential(size=sites),
        lambda sites: generator.integers(0, 4, sites).astype(float),  # ties and zeros
        lambda sites: np.exp(generator.normal(0, 5, sites)),
    )
    worst = 0.0
    for instance in range(instances):
        sites = int(generator.integers(1, most + 1))
        variances = makers[instance % 3](sites)
        sizes = generator.integers(1, (4, 10_000)[instance % 2], sites).astype(float)
        best, found = (
            float((weights**2) @ variances)
            for weights in (brute_force(sizes, variances, every[sites]), minimum_variance(sizes, variances))
        )
        worst = max(worst, abs(found - best) / max(best, 1e-300))
    return {"instances": instances, "most_sites": most, "largest_relative_difference": worst, "agree": worst < 1e-9}


def speed() -> dict[str, object]:
    generator = np.random.default_rng(2)
    sizes, variances = generator.integers(10, 10_000, MANY).astype(float), np.exp(generator.normal(0, 2, MANY))
    start = time.perf_counter()
    counted = int((minimum_variance(sizes, variances) > 0).sum())
    return {"sites": MANY, "seconds": round(time.perf_counter() - start, 3), "sites_that_count": counted}


def errors(setting: Setting, runs: int) -> dict[str, object]:
    """Root mean squared errors of all rules, about the effect over all units of all sites; and the printed rule's.

    `z` compares squared errors of the minimum-variance rule and the printed one about what each estimates, the effect
    over the units of the sites it chose: above 2 or so, ours is worse.
    """
    study = studies(setting, runs, np.random.default_rng(3))
    every, sizes = subsets(setting.sites), setting.n
    weights: dict[str, Array] = {rule: np.empty(study.estimates.shape) for rule in (*RULES, "printed")}
    for run, (estimates, variances) in enumerate(zip(study.estimates, study.variances, strict=True)):
        between = Heterogeneity.of(estimates, variances).variance
        for rule in RULES:
            weights[rule][run] = weights_of(rule, sizes, variances, between, estimates)
        weights["printed"][run] = brute_force(sizes, study.printed[run], every)
    truth = study.truths @ (sizes / sizes.sum())
    found = {rule: (each * study.estimates).sum(axis=1) - truth for rule, each in weights.items()}
    own = {
        rule: (weights[rule] * (study.estimates - study.truths)).sum(axis=1) for rule in ("minimum_variance", "printed")
    }
    worse = own["minimum_variance"] ** 2 - own["printed"] ** 2
    spread = float(worse.std()) / math.sqrt(runs)
    return asdict(setting) | {
        "rmse": {rule: round(float(np.sqrt((each**2).mean())), 5) for rule, each in found.items()},
        "own_rmse": {rule: round(float(np.sqrt((each**2).mean())), 5) for rule, each in own.items()},
        "z": round(float(worse.mean()) / spread, 2) if spread else 0.0,
        "printed_variances_below_0": round(float((study.printed < 0).mean()), 3),
    }


def ratios(cells: list[dict[str, Any]]) -> dict[str, object]:
    """By how much each rule's error is larger than the best rule's: on average over settings, and at worst."""
    over = {rule: [cell["rmse"][rule] / min(cell["rmse"].values()) for cell in cells] for rule in (*RULES, "printed")}
    return {
        rule: {"mean": round(math.exp(sum(map(math.log, each)) / len(each)), 3), "worst": round(max(each), 2)}
        for rule, each in over.items()
    }


def effects(setting: Setting, study: Study) -> dict[str, Effect]:
    """Return a study's sites as effects."""
    return {
        f"{place:02}": Effect(
            estimand="average treatment effect",
            arms=("0", "1"),
            outcome="y",
            estimate=float(study.estimates[0, place]),
            sampling_sd=math.sqrt(study.sampling[0, place]),
            noise=(NoiseTerm("laplace", float(study.scales[0, place])),) * 2,
            n=int(setting.n[place]),
            method="simulated",
            guarantee=Guarantee(epsilon=float(setting.epsilon[place])),
            assumptions=(),
            receipts=(Receipt("simulated", float(setting.epsilon[place]), 0.0, 1, "simulated"),),
        )
        for place in range(setting.sites)
    }


Covered = dict[Rule, tuple[bool, float, float] | None]
"""By rule: whether the 95 % interval holds the truth, its half width, and the error; None where it was refused."""


def cover(task: tuple[Setting, tuple[int, int]]) -> Covered:
    """One simulated study.

    The truth of random effects and of the median is the mean over sites; the others' is their own average.
    """
    setting, seed = task
    study = studies(setting, 1, np.random.default_rng(seed))
    sites, covered = effects(setting, study), Covered()
    for rule in INTERVALS:
        pooled = pool(sites, rule)
        if pooled.no_interval:
            covered[rule] = None
            continue
        weights = [share.weight or 0.0 for share in pooled.sites]
        truth = EFFECT if rule in {"random_effects", "median"} else float(study.truths[0] @ weights)
        low, high = pooled.interval(0.95)
        covered[rule] = low <= truth <= high, (high - low) / 2, pooled.estimate - truth
    return covered


def coverage(setting: Setting, runs: list[Covered]) -> Iterator[dict[str, object]]:
    for rule in INTERVALS:
        given = [run for each in runs if (run := each[rule]) is not None]
        yield asdict(setting) | {
            "rule": rule,
            "runs": len(runs),
            "refused": round(1 - len(given) / len(runs), 3),
            "coverage": round(float(np.mean([run[0] for run in given])), 4) if given else None,
            "half_width": round(float(np.median([run[1] for run in given])), 5) if given else None,
            "rmse": round(float(np.sqrt(np.mean([run[2] ** 2 for run in given]))), 5) if given else None,
        }


def precisions(sites: int) -> dict[str, Array]:
    """Variances of sites in the ways in which budgets and sizes make them differ; 1 is usual."""
    one_precise, one_useless, few_precise = np.ones(sites), np.ones(sites), np.full(sites, 1e4)
    one_precise[0], one_useless[0], few_precise[:3] = 1e-3, 1e4, 1.0
    return {
        "alike": np.ones(sites),
        "spread": np.geomspace(1 / 64, 64, sites),
        "one precise": one_precise,
        "one useless": one_useless,
        "three precise": few_precise,
    }


WAYS = ("ours", "ours, 99 %", "normal", "Student's t")


def random_effects_misses(estimates: Array, variances: Array) -> list[float]:
    """Return the error of the random-effects estimate, about 0, in half widths of four intervals: a miss is above 1.

    Ours at 95 and 99 %; the normal one of DerSimonian and Laird; and Student's with the scale of Hartung and Knapp,
    kept above 1. All take errors as normal.
    """
    found = Heterogeneity.of(estimates, variances)
    whole = variances + found.variance
    weights = inverse_variance(whole)
    error = float(weights @ estimates)
    ours = math.sqrt(float(weights**2 @ (variances + found.limit)))
    plain = math.sqrt(float(weights**2 @ whole))
    freedom = len(estimates) - 1
    scale = math.sqrt(max(1.0, float(((estimates - error) ** 2 / whole).sum()) / freedom))
    student = float(stats.t.ppf(0.975, freedom)) * scale
    return [abs(error) / half for half in (1.96 * ours, 2.576 * ours, 1.96 * plain, student * plain)]


def few_sites(runs: int) -> list[dict[str, Any]]:
    """How often random-effects intervals cover, at worst over precisions and over how much effects differ.

    Seven tenths of each variance are Laplace noise. The width is the 95 % interval's over that of sites whose
    differences were known, where precisions are alike and effects differ as much as estimates err.
    """
    generator, table = np.random.default_rng(4), []
    for sites in (3, 4, 6, 10, 30):
        shape, worst, width = (runs, sites), [(1.0, "none")] * len(WAYS), 0.0
        for (name, variances), between in itertools.product(precisions(sites).items(), (0.0, 0.01, 0.1, 1, 10, 100)):
            drawn = generator.normal(size=shape) * np.sqrt(between + 0.3 * variances)
            drawn += generator.laplace(size=shape) * np.sqrt(0.35 * variances)
            misses = np.array([random_effects_misses(estimates, variances) for estimates in drawn])
            shares = [(round(float(share), 4), f"{name}, {between:g}") for share in (misses < 1).mean(axis=0)]
            worst = list(map(min, worst, shares))
            if (name, between) == ("alike", 1):
                halves = np.abs(drawn.mean(axis=1)) / misses[:, 0]
                width = float(np.median(halves)) / (1.96 * math.sqrt(2 / sites))
        table.append(
            {"sites": sites, "runs": runs, "worst": dict(zip(WAYS, worst, strict=True)), "width": round(width, 2)}
        )
    return table


ERRORS = [
    Setting(*each)
    for each in itertools.product(
        (2, 3, 6), ("small", "equal", "rising", "falling"), (1 / 8, 1 / 2, 1.0, 2.0, 8.0), (0.0, 0.05)
    )
]
COVERAGE = [
    Setting(sites, sizes, ratio, between)
    for sites in (2, 3, 4, 6, 10, 30)
    for sizes, ratio in (("equal", 1.0), ("falling", 1 / 8))
    for between in (0.0, 0.05)
]


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    cells = [errors(setting, 4 * chosen.runs) for setting in ERRORS]
    covered = simulated(COVERAGE, cover, chosen)
    return {
        "agreement": agreement(chosen.instances),
        "speed": speed(),
        "few_sites": few_sites(4 * chosen.runs),
        "errors_over_the_best": {
            "one effect": ratios([cell for cell in cells if cell["between"] == 0]),
            "differing effects": ratios([cell for cell in cells if cell["between"] != 0]),
        },
        "largest_z_against_the_printed_rule": max(float(str(cell["z"])) for cell in cells),
        "errors": cells,
        "coverage": [line for setting, runs in zip(COVERAGE, covered, strict=True) for line in coverage(setting, runs)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, 300)
    parser.add_argument("--instances", type=int, default=10_000, help="random instances for the search of the best set")
    chosen = parser.parse_args()
    result = measure(chosen)
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for name in ("agreement", "speed", "errors_over_the_best", "largest_z_against_the_printed_rule"):
        print(name, json.dumps(result[name]))
    for line in (*result["few_sites"], *result["errors"], *result["coverage"]):
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
