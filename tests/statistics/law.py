"""The law of normal error plus privacy noise, by its characteristic function: no simulation, no table of quantiles."""

import numpy as np

from dpcausal.uncertainty.interval import NoiseTerm

_AT = np.arange(0.0025, 250.0, 0.005)
"""Where the characteristic function of an error with a standard deviation of 1 is looked at."""


def probability_within(half: float, sd: float, noise: tuple[NoiseTerm, ...]) -> float:
    """Return how likely normal error of this standard deviation plus noise is at most `half` in size."""
    size = float(np.sqrt(sd**2 + sum(_variance(term) for term in noise)))
    at, within = _AT / size, half / size
    shape = np.exp(-((sd * at) ** 2) / 2)
    for term in noise:
        if term.family == "gaussian":
            shape = shape * np.exp(-((term.scale * at) ** 2) / 2)
        else:
            shape = shape / (1 + (term.scale * at) ** 2 / term.parts) ** term.parts
    step = float(_AT[1] - _AT[0])
    return float(2 / np.pi * step * (np.sin(within * _AT) / _AT * shape).sum())


def _variance(term: NoiseTerm) -> float:
    """Return the variance of a term, without asking it."""
    return term.scale**2 * {"laplace": 2.0, "gaussian": 1.0}[term.family]
