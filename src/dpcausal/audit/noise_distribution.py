"""Checks that the noise that is drawn is the noise that is claimed, and that nothing else is drawn."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import special, stats

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import Claim
from dpcausal.audit.neighbours import worst_pairs
from dpcausal.audit.spy import SpySampler
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.audit.targets import Target
from dpcausal.release import Release
from dpcausal.utils.arrays import Array

RARE = 1e-9
"""How often a check of noise as claimed may fail by chance."""


def check_noise(name: str, claim: Claim, runs: int, at_once: int | None = None) -> Finding:
    """Check released numbers less the exact ones: on the public grid, of the claimed law and scale, each independent.

    The same table is asked many times, and then many times at once. A scale that is private is taken from the answer
    itself; `sensitivity` checks that scale. Each of the two samples is put to several tests of each number, each at the
    level `RARE` divided by how many there are. So noise as claimed fails with a probability of at most 2e-9, and less
    than once in 10^6 over the hundred or so claims of an audit.

    Args:
        claim: The query and what is claimed about it.
        runs: How many releases are made one by one.
        at_once: How many are made at once; forty for each of the others, if left out.
    """
    engine = catalogue_of(claim.schema).assemble(worst_pairs(claim.guarantee.protects)[0].tables[0])
    vault = Unmetered(engine, claim.schema)
    releases = [vault.release(claim.query, claim.guarantee) for _ in range(runs)]
    grid = np.array([at.tick for at in claim.noise.sensitivity.coordinates])
    values = np.array([release.values for release in releases])
    answer = claim.answer(engine)
    exact = np.array(answer.in_order(claim.noise), dtype=float)
    scales = np.array(answer.sized(claim.noise).scales, dtype=float)
    many = 40 * runs if at_once is None else at_once
    faults = [*noise_faults(np.rint(values / grid) - exact, scales, claim.noise.family)]
    faults += noise_faults(vault.many(claim.query, claim.guarantee, many) - exact, scales, claim.noise.family)
    if (np.rint(values / grid) * grid != values).any():
        faults.append("numbers lie off the public grid")
    public = tuple(None if at is None else at * tick for at, tick in zip(claim.noise.scales, grid, strict=True))
    if any(release.scales != public for release in releases):
        faults.append("the scales that are released are not the ones that were calibrated")
    detail = "; ".join(dict.fromkeys(faults)) or f"{runs + many:,} draws as claimed"
    return Finding("noise", name, not faults, detail, {"draws": runs + many})


def check_draws(target: Target) -> Finding:
    """Check that all randomness comes from the vault's sampler, as the queries declare.

    The sampler is observed: inside each answer it draws what the query declares, and then the noise, once. With the
    same draws given again the same releases must come out: an answer that draws elsewhere gives others. Both parts are
    exact, and cannot fail by chance.
    """
    engine, spy = catalogue_of(target.schema).assemble(worst_pairs(target.protects)[0].tables[0]), SpySampler()
    releases = target.releases(Unmetered(engine, target.schema, spy))
    faults = [] if len(spy.inside) == len(releases) else ["noise is not added once to each release"]
    for release, inside in zip(releases, spy.inside, strict=False):
        if set(inside) != set(release.query.draws):
            declared = ", ".join(release.query.draws) or "nothing"
            faults.append(f"{release.query.name} draws {', '.join(inside) or 'nothing'}, and declares {declared}")
    again = target.releases(Unmetered(engine, target.schema, SpySampler(spy.drawn)))
    if _numbers(again) != _numbers(releases):
        faults.append("the same draws give other numbers: something is drawn elsewhere")
    detail = "; ".join(faults) or f"{len(spy.drawn)} draws, all of them declared and seen"
    return Finding("draws", target.name, not faults, detail, {"draws": len(spy.drawn)})


def _numbers(releases: list[Release]) -> list[object]:
    return [(release.values, release.public_values) for release in releases]


def noise_faults(drawn: Array, scales: Array, family: str) -> Iterator[str]:
    """Yield what is wrong with draws of noise, one release a line, of these claimed scales."""
    runs = len(drawn)
    if scales.max() > runs and len(np.unique(drawn, axis=0)) < runs / 2:
        yield "the same noise comes again and again"
    count = len(scales)
    level = RARE / (count * (3 + 2 * count))  # three tests of each number by itself, two of each with each and itself
    # Which side noise is on, and whether it is large, have laws that heavy tails cannot disturb. Ties fall at random.
    generator = np.random.default_rng(0)  # the tester's own; what is tested is drawn already
    sides = np.where(drawn == 0, generator.choice([-1.0, 1.0], drawn.shape), np.sign(drawn))
    sizes = np.abs(drawn) + generator.random(drawn.shape)
    large = np.sign(sizes - np.median(sizes, axis=0))
    limit = math.sqrt(2 * math.log(2 / level) / runs)  # Hoeffding's bound for a mean of signs
    for place, scale in enumerate(scales):
        uniform = _uniform(drawn[:, place], scale, family)
        # The tails of uniform numbers are exponential on a logarithmic scale: their sum has a Gamma law, also exactly.
        tails = -np.log(np.maximum(1 - np.abs(2 * uniform - 1), 1e-300)).sum()
        chances = (
            stats.kstest(uniform, stats.uniform.cdf).pvalue,
            2 * stats.gamma.cdf(tails, runs),
            2 * stats.gamma.sf(tails, runs),
        )
        if min(chances) < level:
            yield f"number {place} does not have the law and scale that are claimed"
        if stats.binom.sf(int((drawn[:, place] == 0).sum()) - 1, runs, _chance_of_none(scale, family)) < level:
            yield f"number {place} has no noise too often"
    for signs, what in ((sides, "side"), (large, "size")):
        shared = np.tril(np.abs(signs.T @ signs) / runs, -1).max(axis=1, initial=0) > limit
        repeated = np.abs(np.mean(signs[1:] * signs[:-1], axis=0)) > limit
        for place in range(count):
            if shared[place]:
                yield f"number {place} shares the {what} of its noise with another"
            if repeated[place]:
                yield f"number {place} has noise whose {what} depends on the last release"


def _chance_of_none(scale: float, family: str) -> float:
    return float(np.tanh(0.5 / scale)) if family == "laplace" else float(2 * special.ndtr(0.5 / scale) - 1)


def _uniform(drawn: Array, scale: float, family: str) -> Array:
    """Return what integers become under their claimed law: uniform numbers, within each tick at random."""
    if family == "laplace":
        ratio = np.exp(-1 / scale)
        tail = np.exp(-np.abs(drawn) / scale) / (1 + ratio)  # at and beyond this distance, on one side
        below, above = np.where(drawn > 0, 1 - tail, tail * ratio), np.where(drawn >= 0, 1 - tail * ratio, tail)
    else:
        below, above = special.ndtr((drawn - 0.5) / scale), special.ndtr((drawn + 0.5) / scale)
    within = np.random.default_rng(0).random(len(drawn))  # the tester's own; what is tested is drawn already
    uniform: Array = below + within * (above - below)
    return uniform
