"""Assumptions and notes that several estimators print, in the same words."""

from collections.abc import Sequence

NO_INTERFERENCE = "one unit's outcome does not depend on another unit's arm"
"""The assumption of every estimator here."""


def no_confounders_but(covariates: Sequence[str]) -> str:
    """Return the assumption of an estimator that adjusts for these covariates."""
    return f"no confounders but {', '.join(covariates)}"
