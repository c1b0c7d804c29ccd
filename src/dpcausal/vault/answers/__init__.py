"""How rows become the bounded integers that a query asks for, one file for each kind of query.

Each answer names its numbers as the query's coordinates do; the proof that one unit moves them no further than the
query says is on the page of the same name in docs/proofs.
"""

from collections.abc import Callable

from dpcausal.queries import (
    ArmMoments,
    ArmTotals,
    AugmentedScores,
    BlockEffects,
    CovariateSums,
    EffectMoments,
    EffectWeights,
    InfluenceEffects,
    MatchedContrast,
    NoisyMatchedContrast,
    ObjectivePerturbedLogistic,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Query,
    RegressionMoments,
    ScoreCounts,
    StratumContrasts,
    StratumCounts,
    StratumMatches,
    SubgroupMoments,
    WeightedArms,
    WeightedCovariates,
)
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.arm_counts import score_counts, stratum_counts
from dpcausal.vault.answers.arm_moments import arm_moments
from dpcausal.vault.answers.augmented_scores import augmented_scores
from dpcausal.vault.answers.block_effects import block_effects
from dpcausal.vault.answers.covariate_sums import covariate_sums, weighted_covariates
from dpcausal.vault.answers.effect_moments import effect_moments
from dpcausal.vault.answers.effect_weights import effect_weights
from dpcausal.vault.answers.influence_effects import influence_effects
from dpcausal.vault.answers.logistic import objective_perturbed, output_perturbed
from dpcausal.vault.answers.matched_contrast import matched_contrast, noisy_matched_contrast
from dpcausal.vault.answers.outcomes_below import outcomes_below
from dpcausal.vault.answers.regression_moments import regression_moments
from dpcausal.vault.answers.stratum_contrasts import stratum_contrasts
from dpcausal.vault.answers.stratum_matches import stratum_matches
from dpcausal.vault.answers.subgroup_moments import subgroup_moments
from dpcausal.vault.answers.weighted_arms import weighted_arms

ANSWERS: dict[type[Query], Callable[..., Answer]] = {
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
    NoisyMatchedContrast: noisy_matched_contrast,
    OutcomesBelow: outcomes_below,
    SubgroupMoments: subgroup_moments,
    EffectMoments: effect_moments,
    EffectWeights: effect_weights,
    BlockEffects: block_effects,
    InfluenceEffects: influence_effects,
    StratumCounts: stratum_counts,
    ScoreCounts: score_counts,
    CovariateSums: covariate_sums,
    WeightedCovariates: weighted_covariates,
}
"""From query, schema, engine and guarantee to the answer; where any learner may be asked, that learner besides."""
