"""How rows become the bounded integers that a query asks for, one file for each kind of query.

Each answer names its numbers as the query's coordinates do; the proof that one unit moves them no further than the
query says is on the page of the same name in docs/proofs.
"""

from collections.abc import Callable
from typing import Any

from dpcausal.guarantee import Guarantee
from dpcausal.queries import (
    ArmMoments,
    ArmTotals,
    AugmentedScores,
    MatchedContrast,
    ObjectivePerturbedLogistic,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Query,
    RegressionMoments,
    ScrambledContrast,
    StratumContrasts,
    StratumMatches,
    WeightedArms,
)
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.arm_moments import arm_moments
from dpcausal.vault.answers.augmented_scores import augmented_scores
from dpcausal.vault.answers.logistic import objective_perturbed, output_perturbed
from dpcausal.vault.answers.matched_contrast import matched_contrast, scrambled_contrast
from dpcausal.vault.answers.outcomes_below import outcomes_below
from dpcausal.vault.answers.regression_moments import regression_moments
from dpcausal.vault.answers.stratum_contrasts import stratum_contrasts
from dpcausal.vault.answers.stratum_matches import stratum_matches
from dpcausal.vault.answers.weighted_arms import weighted_arms
from dpcausal.vault.engines import Engine

ANSWERS: dict[type[Query], Callable[[Any, Schema, Engine, Guarantee], Answer]] = {
    ArmTotals: arm_moments,
    ArmMoments: arm_moments,
    StratumContrasts: stratum_contrasts,
    StratumMatches: stratum_matches,
    OutputPerturbedLogistic: output_perturbed,
    ObjectivePerturbedLogistic: objective_perturbed,
    WeightedArms: weighted_arms,
    RegressionMoments: regression_moments,
    AugmentedScores: augmented_scores,
    MatchedContrast: matched_contrast,
    ScrambledContrast: scrambled_contrast,
    OutcomesBelow: outcomes_below,
}
