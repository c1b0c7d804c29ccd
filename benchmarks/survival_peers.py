"""Published private estimators of survival, for comparison; each is given the exact size of an arm.

- Gondara and Wang (2020), Differentially Private Survival Function Estimation: Laplace noise of scale 2 / epsilon in
  the numbers of events and of censorings in each interval; numbers at risk follow from them. Negative numbers are set
  to 0, as in the code of Rahimian et al.
- Rahimian et al. (2024), Private and Collaborative Kaplan-Meier Estimators. DP-Surv: noise in the first coefficients of
  the curve's discrete cosine transform, then isotonic regression. DP-Prob: noise in the curve's steps. Both as in their
  code, with the number of coefficients that gives the smallest error here. Their sensitivities hold without censoring
  only: DP-Surv's own remark is that with n0 censored units it is 1 + n0 times as large, and DP-Prob divides by the
  number of events, which is private.
- Hung and Yu (2025), Optimal Cox Regression under Federated Differential Privacy: Gaussian noise in a binary tree over
  the increments of Breslow's cumulative hazard, as in their package FDPCox, for one server and without covariates.
  Numbers at risk are kept above 0.9 of a private share at risk at the horizon, which gets half of epsilon. It needs a
  delta, 0.001 as in the package.
"""

import math

import numpy as np
from scipy import fft, optimize

from dpcausal.utils.arrays import Array

COEFFICIENTS = (2, 3, 4, 6, 10)
"""The numbers of coefficients that DP-Surv is tried with."""

DELTA = 0.001
"""The delta of the private tree."""


def area(heights: Array, at: Array) -> float:
    """Return the area under straight lines through these points."""
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(at)).sum())


Curve = tuple[float, float]
"""Survival at the horizon, and the restricted mean survival time."""


def peers(
    generator: np.random.Generator, columns: dict[str, Array], edges: Array, epsilon: float
) -> dict[str, list[Curve]]:
    """Return both arms' curves by each peer, and without privacy."""
    found: dict[str, list[Curve]] = {}
    for arm in (0, 1):
        times, died = (columns[name][columns["arm"] == arm] for name in ("years", "died"))
        for name, curve in _peer_curves(generator, times, died, edges, epsilon).items():
            full = np.concatenate([[1.0], curve])
            found.setdefault(name, []).append((float(full[-1]), area(full, edges)))
        found.setdefault("no privacy", []).append(kaplan_meier(times, died, edges[-1]))
    return found


def _peer_curves(
    generator: np.random.Generator, times: Array, died: Array, edges: Array, epsilon: float
) -> dict[str, Array]:
    size, intervals = len(times), len(edges) - 1
    events, censored = (np.histogram(times[died == kind], edges)[0] for kind in (1, 0))
    noisy = [np.maximum(np.rint(each + generator.laplace(0, 2 / epsilon, intervals)), 0) for each in (events, censored)]
    exact = product_limit(events, censored, size)
    found = {"Gondara and Wang": product_limit(noisy[0], noisy[1], size)}
    signal = np.concatenate([[1.0], exact])
    for kept in (each for each in COEFFICIENTS if each <= intervals):
        found[f"DP-Surv, {kept}"] = by_cosines(generator, signal, kept, epsilon * size)
    steps = -np.diff(np.concatenate([signal, [0.0]]))
    steps = np.maximum(steps + generator.laplace(0, 2 / max(died.sum(), 1) / epsilon, len(steps)), 0)
    found["DP-Prob"] = 1 - np.cumsum(steps / steps.sum())[:-1]
    return found


def by_cosines(generator: np.random.Generator, signal: Array, kept: int, size: float) -> Array:
    """Return a curve from noise in its first cosine coefficients, in proportion to 1 / size."""
    spectrum = fft.dct(signal, norm="ortho") + generator.laplace(
        0, math.sqrt(kept * (len(signal) - 1)) / size, len(signal)
    )
    spectrum[kept:] = 0
    curve = fft.idct(spectrum, norm="ortho")
    curve[0] = 1.0
    return np.clip(optimize.isotonic_regression(curve, increasing=False).x, 0, 1)[1:]


def corrected_peers(
    generator: np.random.Generator, columns: dict[str, Array], edges: Array, epsilon: float
) -> dict[str, list[Curve]]:
    """Return both arms' curves by DP-Surv with the sensitivity that its code names under censoring."""
    found: dict[str, list[Curve]] = {}
    for arm in (0, 1):
        times, died = (columns[name][columns["arm"] == arm] for name in ("years", "died"))
        events, censored = (np.histogram(times[died == kind], edges)[0] for kind in (1, 0))
        signal = np.concatenate([[1.0], product_limit(events, censored, len(times))])
        for kept in (each for each in COEFFICIENTS if each < len(edges)):
            curve = by_cosines(generator, signal, kept, epsilon * len(times) / (1 + np.sum(died == 0)))
            full = np.concatenate([[1.0], curve])
            found.setdefault(f"corrected DP-Surv, {kept}", []).append((float(full[-1]), area(full, edges)))
    return found


def trees(
    generator: np.random.Generator, columns: dict[str, Array], horizon: float, epsilon: float
) -> dict[str, list[Curve]]:
    """Return both arms' curves by a private tree of hazards."""
    arms = [[columns[name][columns["arm"] == arm] for name in ("years", "died")] for arm in (0, 1)]
    return {"FDPCox": [breslow_tree(generator, times, died, horizon, epsilon) for times, died in arms]}


def breslow_tree(generator: np.random.Generator, times: Array, died: Array, horizon: float, epsilon: float) -> Curve:
    """Return survival from noisy sums of the steps of the cumulative hazard, over a binary tree of intervals."""
    size, half = len(times), epsilon / 2
    share = float(np.mean(times > horizon)) + generator.normal(0, math.sqrt(2 * math.log(1.25 / DELTA)) / (size * half))
    least = max(0.9 * share, 1 / size)
    levels = max(int(math.log2(min(size, (size * half) ** 2)) / 2), 1)
    order = np.argsort(times, kind="stable")
    steps = died[order] / np.maximum(np.arange(size, 0, -1), least * size)
    edges = np.linspace(0, horizon, 2**levels + 1)
    sums = np.histogram(times[order], edges, weights=steps)[0]
    variance = (2 * math.log(1 / DELTA) / half + 1) / half * levels / size**2 * (1 / least**4 + 3 / least**2)
    nodes = {}
    for level in range(levels, 0, -1):
        exact = sums.reshape(2**level, -1).sum(axis=1)
        nodes[level] = np.maximum(exact + generator.normal(0, math.sqrt(variance), len(exact)), 0.0)
    hazard = [0.0]
    for place in range(1, 2**levels):  # each is the sum of at most one node a level
        covers = ((level, place >> (levels - level)) for level in nodes)
        hazard.append(sum(float(nodes[level][end - 1]) for level, end in covers if end % 2))
    survival = np.exp(-np.array([*hazard, float(nodes[1].sum())]))
    return float(survival[-1]), area(survival, edges)


def product_limit(events: Array, censored: Array, size: int) -> Array:
    """Return the Kaplan-Meier curve of counts in intervals; those who are censored leave at the end of theirs."""
    at_risk = np.maximum(size - np.concatenate([[0.0], np.cumsum(events + censored)[:-1]]), 1.0)
    return np.cumprod(np.clip(1 - events / at_risk, 0, 1))


def kaplan_meier(times: Array, died: Array, horizon: float) -> Curve:
    """Return the usual estimates, without privacy and without a grid."""
    order = np.argsort(times, kind="stable")
    time, event = times[order], died[order]
    inside = time < horizon
    steps = np.cumprod(1 - event / np.arange(len(time), 0, -1))[inside]
    at = np.concatenate([[0.0], time[inside], [horizon]])
    return float(steps[-1]), float((np.concatenate([[1.0], steps]) * np.diff(at)).sum())
