"""Assumptions and notes that several estimators print, in the same words."""

from collections.abc import Sequence

NO_INTERFERENCE = "one unit's outcome does not depend on another unit's arm"
"""The assumption of every estimator here."""

MEANS_BY_REGRESSION = "for the arms' means, but not their difference: outcomes are linear in the covariates in each arm"
"""What the level rests on where the difference is that of augmented scores."""


def no_confounders_but(covariates: Sequence[str]) -> str:
    """Return the assumption of an estimator that adjusts for these covariates."""
    return f"no confounders but {', '.join(covariates)}"
