"""Wrong sites in a federation: the robust rule, and the checks of plausibility.

`python -m benchmarks.site_checks --json`

Coverage and shift of the robust rule where one site lies; how often honest sites give a warning, over simulated tables
of several kinds; and how often a site that claims outcomes at the bounds is named.
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import stats

from dpcausal.federation.coordinator.plausibility import suspicions, why_impossible
from dpcausal.pooling.robust import RobustFit
from tests.support.site_answers import SCHEMA, honest, liar

SITES = (3, 5, 12, 30)
EPSILONS = (0.1, 1.0, 5.0)
KINDS = ("normal", "skewed", "binary")
LIE, CLAIMED = 30.0, 20.0
"""How far the liar is off, in standard errors of the median site, and how many times its precision it claims."""


def robust(sites: int, sizes: str, between: float, *, lie: bool, runs: int) -> dict[str, Any]:
    """Return the coverage and the shift of the robust rule; half of each variance is Laplace noise.

    The between-site standard deviation and the shift are in standard errors of the median site.
    """
    generator = np.random.default_rng((11, sites))
    variances = np.ones(sites) if sizes == "equal" else np.geomspace(0.1, 10, sites)
    shape = (runs, sites)
    drawn = generator.normal(size=shape) * np.sqrt(between**2 + variances / 2)
    drawn += generator.laplace(size=shape) * np.sqrt(variances / 4)
    claimed = variances.copy()
    if lie:
        drawn[:, 0] += LIE
        claimed[0] /= CLAIMED
    fits = [RobustFit.of(estimates, claimed) for estimates in drawn]
    times = float(stats.t.ppf(0.975, sites - 1))
    held = [abs(fit.estimate) < times * fit.standard_error for fit in fits]
    by_precision = 1 / claimed / (1 / claimed).sum()
    return {
        "sites": sites,
        "sizes": sizes,
        "between": between,
        "lie": lie,
        "runs": runs,
        "coverage": round(float(np.mean(held)), 4),
        "shift": round(float(np.mean([fit.estimate for fit in fits])), 3),
        "half_width": round(times * float(np.median([fit.standard_error for fit in fits])), 3),
        "shift_by_precision": round(float((drawn @ by_precision).mean()), 3),
    }


def flags(sites: int, epsilon: float, *, lie: bool, runs: int) -> dict[str, Any]:
    """Return in how many studies an honest site gives a warning or is refused, and in how many the liar does."""
    generator = np.random.default_rng((12, sites, int(10 * epsilon), lie))
    accused = refused = named = 0
    for run in range(runs):
        sizes = np.exp(generator.uniform(math.log(200), math.log(20_000), sites)).astype(int)
        answers = {f"{at:02}": honest(KINDS[run % 3], int(n), epsilon, generator) for at, n in enumerate(sizes)}
        if lie:
            answers["liar"] = liar(2_000, epsilon, generator)
        texts = suspicions(answers, SCHEMA)
        suspects = {text.split(" ")[0].removesuffix("'s") for text in texts}
        accused += bool(suspects - {"liar"})
        named += "liar" in suspects
        impossible = (why_impossible(answers[site].releases[0], answers[site].n, None, SCHEMA) for site in suspects)
        refused += any(impossible)
    return {
        "sites": sites + lie,
        "epsilon": epsilon,
        "lie": lie,
        "runs": runs,
        "honest_warned": round(accused / runs, 4),
        "refused": round(refused / runs, 4),
        "liar_named": round(named / runs, 4) if lie else None,
    }


def tables(result: Mapping[str, Any]) -> dict[str, Iterator[str]]:
    """Return the tables of docs/pooling-evidence.md, by their places."""
    return {"robust": _robust(result), "site checks": _flags(result)}


def _robust(result: Mapping[str, Any]) -> Iterator[str]:
    columns = ("coverage, all honest", "one liar", "shift by the liar", "half width", "shift by precision weights")
    yield f"| sites | effects | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 2) + "|"
    lines = {(each["sites"], each["sizes"], each["between"], each["lie"]): each for each in result["robust"]}
    for sites, sizes, between, lie in lines:
        if lie or sizes == "equal":  # where sites are alike it is easier
            continue
        plain, wrong = lines[sites, sizes, between, False], lines[sites, sizes, between, True]
        cells = [f"{100 * each['coverage']:.1f} %" for each in (plain, wrong)]
        cells += [f"{wrong[name]:.2f}" for name in ("shift", "half_width", "shift_by_precision")]
        differ = "differ" if between else "one"
        yield f"| {sites} | {differ} | {' | '.join(cells)} |"


def _flags(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"| honest sites | {' | '.join(f'the liar named, epsilon {epsilon:g}' for epsilon in EPSILONS)} |"
    yield "|---" * (len(EPSILONS) + 1) + "|"
    named = {(each["sites"] - 1, each["epsilon"]): each["liar_named"] for each in result["flags"] if each["lie"]}
    for sites in dict.fromkeys(sites for sites, _ in named):
        yield f"| {sites} | {' | '.join(f'{100 * named[sites, epsilon]:.0f} %' for epsilon in EPSILONS)} |"


def measure(runs: int) -> dict[str, Any]:
    return {
        "robust": [
            robust(sites, sizes, between, lie=lie, runs=runs)
            for sites in SITES
            for sizes in ("equal", "spread")
            for between in (0.0, 1.0)
            for lie in (False, True)
        ],
        "flags": [
            flags(sites, epsilon, lie=lie, runs=max(3 * runs // (sites + 3), 1) // (5 if lie else 1))
            for sites in (2, 3, 10, 30)
            for epsilon in EPSILONS
            for lie in (False, True)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="simulated studies for each setting")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result = measure(chosen.runs)
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for line in (*result["robust"], *result["flags"]):
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
