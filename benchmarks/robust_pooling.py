"""Pooled effects where a site is wrong, or sites have no interval: `python -m benchmarks.robust_pooling --json`."""

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.papers.multi_site.experiment import pooled
from benchmarks.pooling import EFFECT, RULES, Setting, effects, studies
from dpcausal.pooling import Rule, pool

LIE, CLAIMED = 0.3, 20
"""How far a wrong site is from the truth, in ranges of the outcome, and how many times its own units it claims."""


def wrong_site(sites: int, lie: float, runs: int) -> dict[str, Any]:
    """Return errors, warnings and intervals by rule, where the first of equal sites is wrong and claims many units."""
    setting = Setting(sites, "equal", 1.0, 0.0)
    found: dict[Rule, list[tuple[float, bool, bool | None]]] = {rule: [] for rule in RULES}
    for run in range(runs):
        answers = effects(setting, studies(setting, 1, np.random.default_rng((5, sites, run))))
        if lie:
            first = answers["00"]
            claimed = tuple(replace(term, scale=term.scale / CLAIMED) for term in first.noise)
            n, sampling_sd = first.n * CLAIMED, (first.sampling_sd or 0.0) / math.sqrt(CLAIMED)
            answers["00"] = replace(first, estimate=first.estimate + lie, n=n, noise=claimed, sampling_sd=sampling_sd)
        for rule in RULES:
            together = pool(answers, rule)
            covers = None
            if not together.no_interval:
                low, high = together.interval(0.95)
                covers = low <= EFFECT <= high
            found[rule].append((together.estimate - EFFECT, bool(together.warnings), covers))
    return {
        "sites": sites,
        "lie": lie,
        "runs": runs,
        "rules": {
            rule: {
                "rmse": round(math.sqrt(float(np.mean([each[0] ** 2 for each in lines]))), 5),
                "warned": round(float(np.mean([each[1] for each in lines])), 3),
                "refused": round(float(np.mean([each[2] is None for each in lines])), 3),
                "false_intervals": round(float(np.mean([each[2] is False for each in lines])), 3),
            }
            for rule, lines in found.items()
        },
    }


def without_intervals(refused: str, runs: int) -> dict[str, Any]:
    """Return errors by rule where some of six sites have no interval and no sampling error: kept, and left out."""
    setting = Setting(6, "falling", 1 / 8, 0.0)
    missed: dict[str, dict[Rule, list[float]]] = {way: {rule: [] for rule in RULES} for way in ("kept", "left out")}
    for run in range(runs):
        generator = np.random.default_rng((6, run))
        answers = list(effects(setting, studies(setting, 1, generator)).values())
        places = {
            "the two noisiest": [4, 5],
            "any two": generator.choice(6, 2, replace=False).tolist(),
            "any four": generator.choice(6, 4, replace=False).tolist(),
        }[refused]
        sure = [effect for place, effect in enumerate(answers) if place not in places]
        answers = [
            replace(effect, sampling_sd=None) if place in places else effect for place, effect in enumerate(answers)
        ]
        for way, chosen in (("kept", answers), ("left out", sure)):
            for rule, estimate in pooled(chosen).items():
                missed[way][rule].append(estimate - EFFECT)
    return {
        "refused": refused,
        "runs": runs,
        "rmse": {
            way: {rule: round(math.sqrt(float(np.mean(np.square(each)))), 5) for rule, each in rules.items()}
            for way, rules in missed.items()
        },
    }


SHOWN = 6
"""The number of sites that the page shows; 3 and 10 are in the stored result."""


def tables(result: Mapping[str, Any]) -> dict[str, Iterator[str]]:
    """Return the tables of docs/pooling-evidence.md, by their places."""
    return {"a wrong site": _wrong(result), "without intervals": _without(result)}


def _wrong(result: Mapping[str, Any]) -> Iterator[str]:
    columns = ("RMSE, all honest", "one wrong", "warned, all honest", "one wrong", "interval misses, one wrong")
    yield f"| rule | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    lines = {(line["sites"], bool(line["lie"])): line["rules"] for line in result["wrong_site"]}
    for rule in RULES:
        honest, wrong = lines[SHOWN, False][rule], lines[SHOWN, True][rule]
        cells = [f"{1000 * each['rmse']:.1f}" for each in (honest, wrong)]
        cells += [f"{100 * each['warned']:.0f} %" for each in (honest, wrong)]
        yield f"| `{rule}` | {' | '.join(cells)} | {100 * wrong['false_intervals']:.0f} % |"


def _without(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"| sites without an interval | | {' | '.join(f'`{rule}`' for rule in RULES)} |"
    yield "|---" * (len(RULES) + 2) + "|"
    for line in result["without_intervals"]:
        for way, rmse in line["rmse"].items():
            yield f"| {line['refused']} of six | {way} | {' | '.join(f'{1000 * rmse[rule]:.1f}' for rule in RULES)} |"


def measure(runs: int) -> dict[str, Any]:
    return {
        "wrong_site": [wrong_site(sites, lie, runs) for sites in (3, 6, 10) for lie in (0.0, LIE)],
        "without_intervals": [
            without_intervals(refused, 4 * runs) for refused in ("the two noisiest", "any two", "any four")
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="simulated studies for each setting")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result = measure(chosen.runs)
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for line in (*result["wrong_site"], *result["without_intervals"]):
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
