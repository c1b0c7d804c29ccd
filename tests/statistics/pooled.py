"""Three sites' effects pooled by every rule, against the formulas of a textbook."""

from dataclasses import replace

import numpy as np

from dpcausal import Effect, pooling
from dpcausal.pooling import Rule
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.arrays import Array
from tests.statistics.cases import results
from tests.statistics.law import probability_within

SIZES, ESTIMATES = np.array([4_000, 1_000, 2_500, 800]), np.array([0.30, 0.55, 0.05, 0.40])
SAMPLING, PRIVACY = np.array([0.02, 0.05, 0.03, 0.06]), np.array([0.06, 0.02, 0.05, 0.08])

_MAX_OFF = 1e-6


def sites() -> dict[str, Effect]:
    """Return effects that differ between sites; neither error hides behind the other."""
    model = results("difference in means").exact
    assert isinstance(model, Effect)
    numbers = zip(ESTIMATES, SAMPLING, PRIVACY, SIZES, strict=True)
    return {
        f"site {place}": replace(
            model,
            estimate=float(estimate),
            sampling_sd=float(sd),
            noise=(NoiseTerm("gaussian", float(noise)),),
            n=int(n),
        )
        for place, (estimate, sd, noise, n) in enumerate(numbers)
    }


def _weights(rule: Rule) -> tuple[Array, float]:
    """Return the sites' weights, and the between-site variance that a rule accounts for."""
    variances = SAMPLING**2 + PRIVACY**2
    if rule == "sample_size":
        return SIZES / SIZES.sum(), 0.0
    precisions = 1 / variances
    if rule == "inverse_variance":
        return precisions / precisions.sum(), 0.0
    mean = precisions @ ESTIMATES / precisions.sum()
    spread = precisions @ (ESTIMATES - mean) ** 2
    between = (spread - len(SIZES) + 1) / (precisions.sum() - (precisions**2).sum() / precisions.sum())
    precisions = 1 / (variances + between)
    return precisions / precisions.sum(), float(between)


RULES: tuple[Rule, ...] = ("sample_size", "inverse_variance", "random_effects")


def check_pooling() -> str:
    """Return what is wrong with pooled effects; empty where nothing is."""
    for rule in RULES:
        weights, between = _weights(rule)
        effect = pooling.pool(sites(), rule)
        printed = np.array([effect.estimate, effect.sampling_sd, effect.privacy_sd])
        right = np.array([weights @ ESTIMATES, np.linalg.norm(weights * SAMPLING), np.linalg.norm(weights * PRIVACY)])
        if np.abs(printed / right - 1).max() > _MAX_OFF:
            return f"{rule}: estimate and errors are {printed}, not {right}"
        least = float(np.sqrt(between) * np.linalg.norm(weights))  # it is that of an upper limit
        if effect.between_sd < least or (not between and effect.between_sd):
            return f"{rule}: the error from heterogeneity is {effect.between_sd}, not at least {least}"
        low, high = effect.interval(0.95)
        error = float(np.hypot(effect.sampling_sd or 0.0, effect.between_sd))
        held = probability_within((high - low) / 2, error, effect.noise)
        if abs(held - 0.95) > 0.003:
            return f"{rule}: an interval at level 0.95 holds with probability {held}"
    return ""
