"""Simulated answers of sites to a difference in means, honest and dishonest, with the noise of the guarantee."""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from dpcausal.federation.coordinator.aggregate import Replay
from dpcausal.federation.coordinator.plausibility import SiteAnswer
from dpcausal.queries import ArmMoments
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Receipt, Release
from dpcausal.utils.arrays import Array

SCHEMA = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("score", 0, 1, missing=0))
HALF = 0.5


def outcomes(kind: str, arm: Array, base: float, effect: float, generator: Generator) -> Array:
    """Return outcomes between 0 and 1 of one site."""
    mean = base + effect * arm
    if kind == "binary":
        return (generator.random(len(arm)) < np.clip(mean, 0.01, 0.99)).astype(np.float64)
    if kind == "skewed":
        return np.clip(mean * generator.lognormal(-0.32, 0.8, len(arm)), 0, 1)
    return np.clip(generator.normal(mean, 0.12), 0, 1)


def honest(kind: str, n: int, epsilon: float, generator: Generator) -> SiteAnswer:
    """Return the answer of an honest site, which has a level and an effect of its own."""
    arm = (generator.random(n) < generator.uniform(0.35, 0.65)).astype(np.float64)
    score = outcomes(kind, arm, generator.uniform(0.2, 0.4), generator.normal(0.05, 0.02), generator) - HALF
    sums = {"size_1": float(arm.sum()), "compared": float(n)}
    for place in (0, 1):
        own = score[arm == place]
        sums |= {f"total_{place}": float(own.sum()), f"deficit_{place}": float((HALF**2 - own**2).sum())}
    return answer(sums, n, epsilon, generator)


def liar(n: int, epsilon: float, generator: Generator) -> SiteAnswer:
    """Return the answer of a site that claims the best outcome for all treated, the worst for all others."""
    sums = {"size_1": n / 2, "compared": float(n), "total_0": -HALF * n / 2, "total_1": HALF * n / 2}
    return answer(sums | {"deficit_0": 0.0, "deficit_1": 0.0}, n, epsilon, generator)


def answer(sums: Mapping[str, float], n: int, epsilon: float, generator: Generator) -> SiteAnswer:
    """Return an answer with these sums and the noise that the guarantee needs."""
    guarantee = dpc.Guarantee(epsilon=epsilon)
    noise = calibrate(ArmMoments(), SCHEMA, guarantee)
    names = tuple(at.name for at in noise.sensitivity.coordinates)
    pairs = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
    scales = tuple((scale or 0.0) * at.tick for scale, at in pairs)
    values = tuple(sums[name] + float(generator.laplace(0, scale)) for name, scale in zip(names, scales, strict=True))
    receipt = Receipt("arm_moments", epsilon, 0.0, 1, "0" * 64)
    release = Release(ArmMoments(), guarantee, names, values, "laplace", scales, {}, receipt)
    source = Replay(SCHEMA, n, None, [release])
    return SiteAnswer(n, None, (release,), dpc.DifferenceInMeans().estimate(source, epsilon=epsilon))
