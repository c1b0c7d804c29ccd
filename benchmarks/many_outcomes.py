"""False claims over many outcomes and interim looks, at epsilon 1 in all.

`python -m benchmarks.many_outcomes --runs 2000 --json`. Tables are made up; noise has the vault's sizes and a seed.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.random import Generator
from scipy import stats

import dpcausal as dpc
from benchmarks.designs import SeededSource
from dpcausal.inference.many_outcomes import Method
from dpcausal.inference.sequential import Spending
from dpcausal.schema.schema import Protects

OUTCOMES, LOOKS, UNITS = 10, 5, 2_000
_UNREMARKABLE = 1.5
"""An outcome within so many standard errors of 0 has a p-value above 0.1, and no claim depends on how far above."""


def source(generator: Generator, outcome: Any, arm: Any, protects: Protects = "record") -> SeededSource:  # noqa: ANN401
    """Return a table with one outcome between 0 and 1."""
    schema = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 1), protects=protects)
    return SeededSource(schema, {"arm": arm, "y": outcome}, generator)


def effect_of(generator: Generator, outcome: Any, arm: Any, epsilon: float) -> dpc.Effect:  # noqa: ANN401
    """Return the noisy difference in means."""
    return dpc.DifferenceInMeans().estimate(source(generator, outcome, arm), epsilon=epsilon)


def uniformity(runs: int) -> dict[str, float]:
    """Return how far p-values without an effect are from uniform, in small tables where noise is large."""
    found = []
    for run in range(runs):
        generator = np.random.default_rng((1, run))
        arm = generator.integers(0, 2, UNITS)
        found.append(effect_of(generator, generator.beta(2, 3, UNITS), arm, 1.0).p_value())
    test = stats.kstest(found, "uniform")
    below = {f"share below {level:g}": round(float(np.mean(np.array(found) < level)), 4) for level in (0.01, 0.05, 0.1)}
    return {
        "runs": runs,
        "n": UNITS,
        "ks": round(float(test.statistic), 4),
        "ks_p": round(float(test.pvalue), 4),
    } | below


def _p_value(effect: dpc.Effect) -> float:
    far = abs(effect.estimate) / (effect.standard_error or 1.0)
    return effect.p_value() if far > _UNREMARKABLE else 1.0


def families(runs: int) -> dict[str, dict[str, float]]:
    """Return how often ten outcomes without an effect lead to any claim; outcomes share a common factor."""
    claims: dict[str, list[bool]] = {method: [] for method in (*get_args(Method), "unadjusted")}
    for run in range(runs):
        generator = np.random.default_rng((2, run))
        arm, common = generator.integers(0, 2, UNITS), generator.normal(0, 0.08, UNITS)
        outcomes = common + generator.normal(0.5, 0.1, (OUTCOMES, UNITS))
        p_values = [_p_value(effect_of(generator, each, arm, 1 / OUTCOMES)) for each in outcomes]
        for method in get_args(Method):
            claims[method].append(min(dpc.adjusted_p_values(p_values, method)) <= 0.05)
        claims["unadjusted"].append(min(p_values) <= 0.05)
    return {name: {"runs": runs, "any_claim": round(float(np.mean(each)), 4)} for name, each in claims.items()}


def looks(runs: int) -> dict[str, dict[str, float]]:
    """Return how often five looks without an effect lead to any claim; each look costs a fifth of epsilon 1."""
    plans = [[look.level for look in _planned(spending)] for spending in get_args(Spending)]
    claims: dict[str, list[bool]] = {name: [] for name in (*get_args(Spending), "unadjusted")}
    for run in range(runs):
        generator = np.random.default_rng((3, run))
        p_values = [_p_value(effect) for effect in _growing(generator)]
        for spending, levels in zip(get_args(Spending), plans, strict=True):
            claims[spending].append(any(p <= level for p, level in zip(p_values, levels, strict=True)))
        claims["unadjusted"].append(min(p_values) <= 0.05)
    return {name: {"runs": runs, "any_claim": round(float(np.mean(each)), 4)} for name, each in claims.items()}


def _growing(generator: Generator) -> Iterator[dpc.Effect]:
    """Yield the effect at each look at a growing table."""
    arm, outcome = generator.integers(0, 2, UNITS), generator.normal(0.5, 0.12, UNITS)
    for look in range(1, LOOKS + 1):
        seen = UNITS * look // LOOKS
        yield effect_of(generator, outcome[:seen], arm[:seen], 1 / LOOKS)


def _planned(spending: Spending) -> tuple[dpc.Look, ...]:
    """Return the levels of the looks, from the errors of one study; other studies have nearly the same."""
    effects = [replace(effect, estimate=0.0) for effect in _growing(np.random.default_rng(4))]
    return dpc.sequential_looks(effects, planned_n=UNITS, spending=spending)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="simulated studies")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result = {
        "p_values": uniformity(chosen.runs),
        "families": families(chosen.runs),
        "looks": looks(chosen.runs),
    }
    print(json.dumps(result, indent=1) if chosen.json else result)


if __name__ == "__main__":
    main()
