"""The tasks of the experiment: each is a part of one figure or table, and returns numbers for JSON."""

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.accuracy.references import references
from benchmarks.datasets import load
from benchmarks.discrete_noise import seeded
from benchmarks.papers.private import cost, ours, printed, synthesis, theorem
from benchmarks.papers.private.grid import (
    EPSILONS,
    LIMITS,
    MANY,
    PAPER_COEFFICIENT,
    SPLITS,
    USUAL,
    Level,
    Setting,
    adaptive,
    settings,
)
from benchmarks.papers.private.methods import METHODS, Ask, units
from benchmarks.papers.private.printed import Floats

Found = dict[str, Any]


def seed_of(*parts: object) -> int:
    """Return the seed of a task: the same in every run, and another one for every task."""
    return zlib.crc32(repr(parts).encode())


def errors(estimates: Floats, reference: float) -> Found:
    """Return the paper's metric: the mean and the standard deviation of relative errors."""
    missed = np.abs(estimates - reference) / abs(reference)
    return {
        "repeats": len(missed),
        "mean": rounded(float(missed.mean())),
        "sd": rounded(float(missed.std(ddof=1))),
    }


def rounded(value: float, digits: int = 3) -> float:
    """Return as many digits as can be known."""
    return float(f"{value:.{digits}g}")


def reference(name: str, folder: str | None) -> Found:
    """Return what estimates are compared with, and the limits of Equations 9 and 10, printed and corrected."""
    data, at = load(name, folder), ours.scene(name, folder, "label")
    arms = units(name, folder).arms
    larger, most = ours.crowding(at)
    found = {which: rounded(value, 6) for which, value in references(data).items()}
    by = {
        word: [
            rounded(ours.adaptive_limit(each, PAPER_COEFFICIENT["label"], larger, most, printed=word == "printed"))
            for each in EPSILONS
        ]
        for word in ("printed", "corrected")
    }
    sizes = {"units": len(arms), "treated": int(arms.sum()), "covariates": len(data.covariates)}
    return found | sizes | {"most_without_limit": rounded(most), "limits": by}


def methods(name: str, folder: str | None, epsilon: float, repeats: int, keys: tuple[str, ...]) -> Found:
    """Return errors of methods to matching as in the paper, to the truth, and of ours to matching on its own score."""
    known, found = references(load(name, folder)), {}
    for key in keys:
        method, seed = METHODS[key], seed_of("methods", name, epsilon, key)
        ask = Ask(name, folder, epsilon, method.repeats(repeats), np.random.default_rng(seed))
        with seeded(seed), ours.fits_once():
            estimates = method.estimates(ask)
        own = known["matching_same_score_not_private" if key == "label_own_bounds" else "matching_same_score"]
        found[key] = errors(estimates, known["matching"]) | {
            "truth": errors(estimates, known["truth"])["mean"],
            "own": errors(estimates, own)["mean"],
        }
    return found


def sweep(by: str, level: Level, name: str, folder: str | None, neighbours: int, epsilon: float, repeats: int) -> Found:  # noqa: PLR0913, PLR0917
    """Return errors for every way to limit matches, to the method's own matching without limits and noise."""
    seed = seed_of("sweep", by, level, name, neighbours, epsilon)
    with seeded(seed), ours.fits_once():
        if by == "ours":
            own, estimates = _ours(level, name, folder, neighbours, epsilon, repeats)
        else:
            own, estimates = _printed(level, name, folder, neighbours, epsilon, repeats, seed)
        return {words: errors(estimates(setting), own) for words, setting in settings().items()}


Estimates = Callable[[Setting], Floats]


def _ours(  # noqa: PLR0913, PLR0917
    level: Level, name: str, folder: str | None, neighbours: int, epsilon: float, repeats: int
) -> tuple[float, Estimates]:
    """Return matching without limits and noise, and estimates for a setting."""
    at = ours.scene(name, folder, level)

    def estimates(setting: Setting) -> Floats:
        if level == "label":
            return ours.label(at, epsilon, neighbours, setting, max(repeats, MANY))
        return ours.sample(at, epsilon, ours.matching(at, neighbours, setting), repeats)

    return ours.unlimited(ours.scene(name, folder, "label"), neighbours), estimates


def _printed(  # noqa: PLR0913, PLR0917
    level: Level, name: str, folder: str | None, neighbours: int, epsilon: float, repeats: int, seed: int
) -> tuple[float, Estimates]:
    """Return the same of the algorithm as it is printed."""
    of, generator = units(name, folder), np.random.default_rng(seed)

    def estimates(setting: Setting) -> Floats:
        if level == "label":
            return printed.label(of, epsilon, neighbours, setting, max(repeats, MANY), generator)
        return np.array([printed.sample(of, epsilon, neighbours, setting, generator) for _ in range(repeats)])

    return printed.unlimited(of, neighbours), estimates


def split(name: str, folder: str | None, epsilon: float, scoring: int, repeats: int) -> Found:
    """Return errors by how epsilon is divided, for one share of the score."""
    at = ours.scene(name, folder, "sample")
    own = ours.unlimited(ours.scene(name, folder, "label"), USUAL)
    plain = ours.matching(at, USUAL, (None, PAPER_COEFFICIENT["sample"]))
    with seeded(seed_of("split", name, epsilon, scoring)), ours.fits_once():
        return {
            ":".join(f"{share / 10:g}" for share in tenths): errors(
                ours.sample(at, epsilon, replace(plain, split=_shares(tenths)), repeats), own
            )
            for tenths in SPLITS
            if tenths[0] == scoring
        }


def _shares(tenths: tuple[int, int, int]) -> tuple[float, float, float]:
    score, arm, outcome = tenths
    return score / 10, arm / 10, outcome / 10


def theorem_3(name: str, folder: str | None, epsilon: float) -> Found:
    """Return the parts of the error and the bound, for fixed limits and for the paper's adaptive one."""
    chosen = [f"limit {limit}" for limit in LIMITS] + [adaptive("label", paper=True)]
    seed = seed_of("theorem", name, epsilon)
    return {words: theorem.decomposition(units(name, folder), epsilon, settings()[words], seed) for words in chosen}


def cost_of(names: tuple[str, ...], folder: str | None, key: str) -> Found:
    """Return seconds and megabytes of one estimate for each data set."""
    return cost.measured(names, folder, key)


def synthetic(name: str, folder: str | None, algorithm: str, epsilon: float, repeats: int) -> Found:
    """Return errors of matching on synthetic data."""
    known = references(load(name, folder))
    with synthesis.timer() as taken:
        estimates = np.array([synthesis.estimate(load(name, folder), algorithm, epsilon) for _ in range(repeats)])
    return errors(estimates, known["matching"]) | {
        "truth": errors(estimates, known["truth"])["mean"],
        "seconds": rounded(taken() / repeats),
    }
