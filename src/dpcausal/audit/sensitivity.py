"""The search for a unit that moves an answer further than its noise was calibrated for."""

from collections.abc import Sequence

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import Claim, loss_between, worst_of_all
from dpcausal.audit.neighbours import worst_pairs

_ROUNDING = 1e-9


def check_sensitivity(name: str, claims: Sequence[Claim], sizes: tuple[int, ...]) -> Finding:
    """Check the largest loss, as a share of the claim, over all tables of these sizes and all listed pairs.

    Exact: it cannot fail by chance.

    Where noise is in proportion to a private bound, its smoothness is a part of the loss.
    """
    most, where, tried = 0.0, "", 0
    for claim in claims:
        lost, pair, count = worst_of_all(claim, sizes)
        listed = [(loss_between(claim, each), each) for each in worst_pairs(claim.schema.protects)]
        tried += count + len(listed)
        for each, at in ((lost, pair), *listed):
            if each > most:
                most, where = each, at.name
    detail = f"{most:.4f} of the claim at most ({where}), over {tried:,} pairs"
    return Finding("sensitivity", name, most <= 1 + _ROUNDING, detail, {"loss": most, "pairs": tried})
