"""The attack itself: many releases of two neighbouring tables, and a test that distinguishes them."""

import numpy as np

from dpcausal.audit.bound import lower_bound
from dpcausal.audit.distinguisher import Score
from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import Claim, loss_between, worst_of_all
from dpcausal.audit.neighbours import Pair, worst_pairs
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.audit.targets import PLAIN, Target
from dpcausal.queries import (
    AllUnitsLogistic,
    BoundedInfluenceLogistic,
    NoisyMatchedContrast,
    ObjectivePerturbedLogistic,
    ObservedLogistic,
)
from dpcausal.utils.arrays import Array

CANARIES = {
    ObjectivePerturbedLogistic: "canary in the score",
    BoundedInfluenceLogistic: "canary in the score",
    AllUnitsLogistic: "canary in the score",
    ObservedLogistic: "canary in the score",
    NoisyMatchedContrast: "canary in the score",
}
"""On which pair to look first for losses that are not known without sampling."""

SURE = 1 - 1e-9
"""The confidence of a bound above the claim at which an attack counts as a failed check."""


def ranked_pairs(target: Target, sizes: tuple[int, ...] = (2, 3), *, listed: bool = True) -> list[tuple[Pair, float]]:
    """Return all pairs of tables to attack a target on, with the losses that are known exactly; the worst first.

    To the listed pairs come, for each query that is asked, the worst of all tables of these sizes. Where a loss is not
    known without sampling, the pair that was made for it comes first.

    Args:
        sizes: The sizes of tables of which all are tried.
        listed: Whether to rank the listed pairs too where all losses are known exactly.
    """
    pairs = worst_pairs(target.protects)
    asked = _claims(target, pairs[0])
    exact_claims = [claim for claim in asked if claim.exact]
    found = [worst_of_all(claim, sizes)[1] for claim in exact_claims]
    pairs = pairs + found if listed or len(exact_claims) < len(asked) else found
    shares = [claim.guarantee.epsilon / target.epsilon for claim in exact_claims]
    losses = [
        (pair, sum(share * loss_between(claim, pair) for share, claim in zip(shares, exact_claims, strict=True)))
        for pair in pairs
    ]
    hidden = {CANARIES[type(claim.query)] for claim in asked if type(claim.query) in CANARIES}
    return sorted(losses, key=lambda each: (each[0].name not in hidden, -each[1]))


def check_epsilon(target: Target, pair: Pair, exact: float, runs: int) -> Finding:
    """Check that no attack shows more than the claimed epsilon, and neither does what is known exactly.

    The bound in the report holds with a confidence of 99.9 %. A correct release exceeds its claim by chance so often as
    that, so the check fails only if a bound with the confidence `SURE` is above the claim too: for a correct release
    that has a probability of at most 1e-9, and 40 targets together stay below 1e-7.

    Args:
        exact: The loss that is known without sampling, as a share of epsilon.
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
    above = bound.epsilon > target.epsilon and (
        lower_bound(one, other, delta=target.delta, confidence=SURE, gaussian=target.gaussian, known=known).epsilon
        > target.epsilon
    )
    passed = not above and exact <= 1 + 1e-9
    return Finding("epsilon", target.name, passed, f"{pair.name}: {bound.event}", numbers)


def check_power(runs: int, least: float) -> Finding:
    """Check that the attack shows at least this share of epsilon in the simplest release.

    Else it proves nothing elsewhere. What it shows varies with the noise: in simulations its mean is 0.80, 0.92 and
    0.97 of epsilon for 5,000, 30,000 and 200,000 runs, and its standard deviation 0.040, 0.016 and 0.006. The shares
    that are asked are seven standard deviations below or more, so that a correct release fails less than once in 10^9
    audits.
    """
    pair, exact = ranked_pairs(PLAIN, (2,))[0]
    found = check_epsilon(PLAIN, pair, exact, runs)
    shown = found.numbers["bound"] / PLAIN.epsilon
    detail = f"shows {shown:.0%} of epsilon; at least {least:.0%} is asked"
    return Finding("power", PLAIN.name, shown >= least, detail, found.numbers)


def likelihood_ratio(claim: Claim, pair: Pair) -> Score:
    """Return the logarithm of how much likelier numbers, in ticks, are for the one table, by the claimed noise.

    No event distinguishes two tables better than this does, if the noise is as claimed.
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
    """Return what is asked, and claimed, for one estimate."""
    vault = Unmetered(catalogue_of(target.schema).assemble(pair.tables[0]), target.schema)
    return [Claim(release.query, target.schema, release.guarantee) for release in target.releases(vault)]
