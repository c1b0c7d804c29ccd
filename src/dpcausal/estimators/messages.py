"""What several estimators say of noise, in the same words."""

from collections.abc import Sequence

SAMPLING_BELOW_NOISE = "noise hides how small the sampling error is: it is at most what is told"
"""A note where a sampling error is the least that can be told from noise."""


def confounding_message(models: str, covariates: Sequence[str]) -> str:
    """Why there is no interval where noise in models of these covariates counts for more than all other error."""
    told = f"noise in {models} may leave more confounding in than sampling and privacy noise add"
    return f"{told}; {remedy(covariates)}"


def remedy(covariates: Sequence[str]) -> str:
    """What to do about it: the likeliest mistake first, because no price mends it."""
    fewer = "fewer covariates, " if len(covariates) > 1 else ""
    return (
        f"first see that values of {', '.join(covariates)} are spelled in the table as declared (dpcausal check), because all "
        f"others count as one value; then use {fewer}more epsilon or more units"
    )
