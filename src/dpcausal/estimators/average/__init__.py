"""Average treatment effects."""

import re
from typing import Any

from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import DoublyRobust
from dpcausal.estimators.average.exact_matching import ExactMatching
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.estimators.average.propensity_matching import PropensityMatching
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.estimators.average.stratification import Stratification
from dpcausal.validation import did_you_mean

ESTIMATORS: dict[str, type[Any]] = {
    "difference_in_means": DifferenceInMeans,
    "stratification": Stratification,
    "exact_matching": ExactMatching,
    "propensity_matching": PropensityMatching,
    "inverse_weighting": InverseWeighting,
    "regression_adjustment": RegressionAdjustment,
    "doubly_robust": DoublyRobust,
}
"""Those that can be had by name, in a study's file or in one call."""

_OTHER_NAMES = {
    "difference_in_means": "dim diff_in_means ttest t_test welch mean_difference ab_test rct anova",
    "stratification": "strat subclassification stratified blocking cmh mantel_haenszel",
    "exact_matching": "cem exact coarsened_exact_matching",
    "propensity_matching": "psm matching nearest_neighbour nearest_neighbor propensity_score_matching",
    "inverse_weighting": "ipw iptw ipsw weighting inverse_probability_weighting propensity_weighting ow",
    "regression_adjustment": "ols regression linear_regression ancova lm g_computation standardization cuped",
    "doubly_robust": "aipw dr aipwe dml double_ml doubleml tmle augmented_inverse_probability_weighting",
}
"""What other libraries and textbooks call them."""


def suggest_estimator(name: object) -> str:
    """Return which estimator a person may have meant by a name that is none here, as a beginning of a hint.

    Example:
        >>> suggest_estimator("AIPW"), suggest_estimator("t-test"), suggest_estimator("stratificaton")
        ("here that is 'doubly_robust'. ", "here that is 'difference_in_means'. ", "did you mean 'stratification'? ")
    """
    plain = re.sub(r"[^a-z]+", "_", str(name).casefold()).strip("_")
    known = {other: own for own, others in _OTHER_NAMES.items() for other in others.split()}
    return f"here that is {known[plain]!r}. " if plain in known else did_you_mean(name, ESTIMATORS)


__all__ = [
    "DifferenceInMeans",
    "DoublyRobust",
    "ExactMatching",
    "InverseWeighting",
    "PropensityMatching",
    "RegressionAdjustment",
    "Stratification",
]
