"""The attack itself: releases of neighbouring tables, again and again, until one can be told from the other."""

import numpy as np

from dpcausal.audit.bound import lower_bound
from dpcausal.audit.distinguisher import Array, Score
from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import Claim, loss_between, worst_of_all
from dpcausal.audit.neighbours import Pair, worst_pairs
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.audit.targets import PLAIN, Target
from dpcausal.queries import BlockEffects, NoisyMatchedContrast, ObjectivePerturbedLogistic

CANARIES = {
    ObjectivePerturbedLogistic: "canary in the score",
    NoisyMatchedContrast: "canary in the score",
    BlockEffects: "outcomes in a line",
}
"""On which pair to look first for what cannot be told without sampling."""

LEAST_POWER = 0.85
"""How much of the claimed epsilon an attack on the simplest release must show, or it proves nothing elsewhere."""


def ranked_pairs(target: Target) -> list[tuple[Pair, float]]:
    """All pairs of tables to attack a target on, with the losses that are known exactly; the worst first.

    Besides the listed pairs there is, for each query that is asked, the worst of all small tables. Where a loss cannot
    be told without sampling, the pair that was made for it comes first.
    """
    pairs = worst_pairs(target.protects)
    asked = _claims(target, pairs[0])
    told = [claim for claim in asked if claim.exact]
    pairs += [worst_of_all(claim, sizes=(2, 3))[1] for claim in told]
    shares = [claim.guarantee.epsilon / target.epsilon for claim in told]
    losses = [
        (pair, sum(share * loss_between(claim, pair) for share, claim in zip(shares, told, strict=True)))
        for pair in pairs
    ]
    hidden = {CANARIES[type(claim.query)] for claim in asked if type(claim.query) in CANARIES}
    return sorted(losses, key=lambda each: (each[0].name not in hidden, -each[1]))


def check_epsilon(target: Target, pair: Pair, exact: float, runs: int) -> Finding:
    """No attack shows more than the claimed epsilon, and neither does what is known exactly.

    Args:
        target: What makes the releases.
        pair: The two tables.
        exact: The loss that is known without sampling, as a share of epsilon.
        runs: Independent transcripts of each table.
    """
    catalogue = catalogue_of(target.schema)
    vaults = [Unmetered(catalogue.assemble(table), target.schema) for table in pair.tables]
    one, other = (target.transcripts(vault, runs) for vault in vaults)
    known = None if target.slow else likelihood_ratio(_claims(target, pair)[0], pair)
    bound = lower_bound(one, other, delta=target.delta, gaussian=target.gaussian, known=known)
    numbers = {
        "epsilon": target.epsilon,
        "delta": target.delta,
        "exact": exact * target.epsilon,
        "bound": bound.epsilon,
        "confidence": bound.confidence,
        "runs": bound.runs,
    }
    passed = bound.epsilon <= target.epsilon and exact <= 1 + 1e-9
    return Finding("epsilon", target.name, passed, f"{pair.name}: {bound.event}", numbers)


def check_power(runs: int) -> Finding:
    """The attack sees nearly all of what there is to see in the simplest release."""
    pair, exact = ranked_pairs(PLAIN)[0]
    found = check_epsilon(PLAIN, pair, exact, runs)
    shown = found.numbers["bound"] / PLAIN.epsilon
    detail = f"shows {shown:.0%} of epsilon; at least {LEAST_POWER:.0%} is asked"
    return Finding("power", PLAIN.name, shown >= LEAST_POWER, detail, found.numbers)


def likelihood_ratio(claim: Claim, pair: Pair) -> Score:
    """The logarithm of how much likelier numbers, in ticks, are for the one table, by the claimed noise.

    No event tells two tables apart better than this does, if the noise is as claimed.
    """
    catalogue = catalogue_of(claim.schema)
    answers = [claim.answer(catalogue.assemble(table)) for table in pair.tables]
    middles = [np.array(answer.in_order(claim.noise), dtype=float) for answer in answers]
    scales = [np.array(answer.sized(claim.noise).scales, dtype=float) for answer in answers]
    power = 2 if claim.noise.family == "gaussian" else 1

    def score(transcripts: Array) -> Array:
        far = [
            np.sum(np.abs((transcripts - middle) / scale) ** power / power + np.log(scale), axis=1)
            for middle, scale in zip(middles, scales, strict=True)
        ]
        ratio: Array = far[1] - far[0]
        return ratio

    return score


def _claims(target: Target, pair: Pair) -> list[Claim]:
    """What is asked, and claimed, on the way to one estimate."""
    vault = Unmetered(catalogue_of(target.schema).assemble(pair.tables[0]), target.schema)
    return [Claim(release.query, target.schema, release.guarantee) for release in target.releases(vault)]
