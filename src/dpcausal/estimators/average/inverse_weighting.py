"""Weighting by the inverse of a private propensity score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from dpcausal.effect import Effect
from dpcausal.errors import GuaranteeError, QueryError, TableError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.interval_policy import arm_below_noise, weighting_bias
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.estimators.propensity import ESTIMANDS, PropensityUncertainty
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, OutputPerturbedLogistic, WeightedArms
from dpcausal.queries.features import Estimand, feature_names
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for, units_compared
from dpcausal.validation import is_number

_MIN_ARM_SHARE = 0.1
"""The least share of the sum of weights that an arm counts as; with weights that balance the arms it is a half."""

_MAX_SHRINK = 2.0**20
"""The largest correction of weights for noise in the score, which the query accepts."""


@dataclass(frozen=True)
class InverseWeighting(BaseEstimator):
    """Difference between weighted mean outcomes of the arms, weighted so that both look like the same population.

    Estimand:
        The average treatment effect over all units (ATE), over the treated (ATT), over the controls (ATC), or over the
        overlap population, where a unit counts as e (1 - e), e its propensity score (ATO).

    Assumptions:
        The covariates hold all confounders, a logistic regression on them describes who is treated, and scores beyond
        `clip` are rare. Noise in the score leaves residual confounding; the interval does not account for it, and is
        refused where it could matter.

    Privacy:
        Two queries share epsilon: a private logistic regression, and sums weighted by its score. Covariates and outcome
        need public bounds; nothing else about a unit need be public.

    Attributes:
        covariates: The covariates of the score. Keep the list short: each one costs accuracy.
        estimand: `ATE`, `ATT`, `ATC` or `ATO`.
        clip: Scores are clipped to clip and 1 - clip. Noise in the estimate is in proportion to 1 / clip, but for ATO.
        scores: How the regression is made private: `objective` adds noise to the objective, `output` to the result.
        penalty: For `output`, the ridge for each unit. A larger one needs less noise and adjusts less.
        share: The share of epsilon that the regression gets.

    Reference:
        Lee, Gresele, Park and Muandet (2019), Private Causal Inference using Propensity Scores. Corrected here: the
        constant is penalised, lengths of covariates are bounded by the schema and not by the largest in the table,
        scores are clipped, ATT and ATC are divided by the arms' weights and not by n, weights are corrected for the
        upward bias that noise in the score gives them, all units are used in both queries, and the noise that
        normalising needs is shared. Objective perturbation: Chaudhuri, Monteleoni and Sarwate (2011), with the noise of
        Awan and Slavkovic (2021).

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = InverseWeighting(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.41, 0.18)
    """

    also_called: ClassVar[str] = "ipw iptw ipsw weighting inverse_probability_weighting propensity_weighting ow"

    covariates: Sequence[str]
    estimand: Estimand = "ATE"
    clip: float = 0.1
    scores: Literal["objective", "output"] = "objective"
    penalty: float = 0.01
    share: float = 0.5

    def estimate(
        self, source: Source, *, epsilon: float, delta: float = 0.0, scores_from: Source | None = None
    ) -> Effect:
        """Estimate the effect for a total of epsilon and delta.

        Args:
            source: Where outcomes come from.
            epsilon: The privacy loss.
            delta: With 0 all noise is Laplace noise; with a positive one the sums get Gaussian noise.
            scores_from: A source of other units, chosen without looking at them, to fit the score on: the other half of
                a table, for instance. Then each source spends all of epsilon and delta, on different units.
        """
        guarantee = guarantee_for(source, epsilon, delta)
        self._check(source)
        pure = self.scores == "objective"
        if scores_from is None:
            first, second = guarantee.split(self.share, pure_first=pure)
        else:
            _check_apart(source, scores_from)
            first, second = guarantee_for(scores_from, epsilon, 0.0 if pure else delta), guarantee
        score = (scores_from or source).release(self._score(scores_from or source), first)
        shrink = 0.0 if pure else min(score.variance("intercept") / 2, _MAX_SHRINK)
        query = WeightedArms(self.covariates, score.values, self.estimand, self.clip, shrink)
        release = source.release(query, second)
        return self._effect(source, guarantee, score, _Arms(query, release, source), scores_from)

    def _check(self, source: Source) -> None:
        """Raise, before anything is spent, unless both queries can be asked."""
        if self.scores not in ("objective", "output") or not (is_number(self.penalty) and self.penalty > 0):
            raise QueryError(
                expected='scores="objective" or scores="output", and a penalty greater than 0',
                got=f"scores={self.scores!r}, penalty={self.penalty!r}",
                hint="use objective; the penalty is for output only.",
            )
        if not (is_number(self.share) and 0 < self.share < 1):
            raise QueryError(
                expected="a share between 0 and 1", got=repr(self.share), hint="0.5 gives both queries half of epsilon."
            )
        nothing = [0.0] * len(feature_names(self.covariates, source.schema))
        WeightedArms(self.covariates, nothing, self.estimand, self.clip).sensitivity(source.schema, "record", "l1")

    def _score(self, source: Source) -> ObjectivePerturbedLogistic | OutputPerturbedLogistic:
        if self.scores == "objective":
            return ObjectivePerturbedLogistic(self.covariates)
        return OutputPerturbedLogistic(self.covariates, max(self.penalty * source.n, 1.0))

    def _effect(
        self, source: Source, guarantee: Guarantee, score: Release, arms: "_Arms", scores_from: Source | None
    ) -> Effect:
        split = ("the score was fitted on other units, which paid the same epsilon for it",) if scores_from else ()
        effect = Effect(
            estimand=f"{ESTIMANDS[self.estimand]}, scores clipped to {self.clip:g} and {1 - self.clip:g}",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=arms.means[1] - arms.means[0],
            sampling_sd=arms.sampling_sd,
            noise=arms.noise,
            n=source.n,
            method=f"{self.estimand} by inverse weighting with a private score of {', '.join(self.covariates)} "
            f"({self.scores} perturbation)",
            guarantee=guarantee,
            assumptions=(
                f"{no_confounders_but(self.covariates)}, and treatment follows a logistic regression on these",
                NO_INTERFERENCE,
                "for the interval: few scores are clipped, and noise in the score leaves little residual confounding",
                *source.schema.data_handling,
            ),
            receipts=(score.receipt, arms.receipt),
            notes=(*split, *source.caveats),
            no_interval=arms.refusal or self._refusal((scores_from or source).n, score, arms),
            control_mean=arms.signs.means[0].value,
            treated_mean=arms.signs.means[1].value,
        )
        return warned(effect, source.schema, arms.signs)

    def _refusal(self, n: int, score: Release, arms: "_Arms") -> str:
        """Return why the score rules an interval out; empty where it does not."""
        if self.scores == "output":
            return "the ridge that output perturbation needs leaves residual confounding of unknown size"
        uncertainty = PropensityUncertainty.of(n, score.guarantee.epsilon, len(self.covariates), len(score.names))
        error = math.hypot(arms.sampling_sd, arms.privacy_sd)
        return weighting_bias(uncertainty.noise_sd, uncertainty.ridge, arms.outcome_sd, error, self.covariates)


def _check_apart(source: Source, other: Source) -> None:
    """Raise unless two sources can hold different units and protect the same."""
    ledgers = [getattr(each, "ledger", None) for each in (source, other)]
    openings = [ledger.opening for ledger in ledgers if ledger is not None]
    if source is other or len(set(openings)) < len(openings):
        raise TableError(
            expected="scores_from to be a source of other units, with a ledger of its own",
            got="the same source, or one with the same ledger",
            hint="omit scores_from to use all units for both queries; they then share epsilon.",
        )
    if source.schema.protects != other.schema.protects:
        raise GuaranteeError(
            expected=f"two sources that protect {source.schema.protects}",
            got=f"one that protects {other.schema.protects}",
            hint="give both schemas the same protects: one guarantee covers the units of both.",
        )


class _Arms:
    """Both arms' weights and weighted means, from the released sums."""

    def __init__(self, query: WeightedArms, release: Release, source: Source) -> None:
        self.receipt = release.receipt
        sums = {name: release.value(name) for name in release.names}
        half = (source.schema.outcome_bounds[1] - source.schema.outcome_bounds[0]) / 2
        released = [
            (sums["weight_sum"] - sums["weight_difference"]) / 2,
            (sums["weight_sum"] + sums["weight_difference"]) / 2,
        ]
        weight_noise_sd = math.sqrt(release.variance("weight_sum") + release.variance("weight_difference")) / 2
        self.refusal = arm_below_noise(min(released), weight_noise_sd, "weight")
        units = units_compared(source, release)
        # The sum of all weights has public bounds, and each arm's a floor, so that no division explodes.
        weight_sum = min(max(sums["weight_sum"], query.smallest * units), query.largest * units)
        weights = [max(each, weight_sum * _MIN_ARM_SHARE) for each in released]
        totals = (
            (sums["weighted_sum"] - sums["weighted_difference"]) / 2,
            (sums["weighted_sum"] + sums["weighted_difference"]) / 2,
        )
        self.means = [total / weight for total, weight in zip(totals, weights, strict=True)]
        control, treated = (1 / weight for weight in weights)
        slopes = {
            "weighted_difference": (treated + control) / 2,
            "weighted_sum": (treated - control) / 2,
            "weight_difference": (self.means[1] * treated + self.means[0] * control) / 2,
            "weight_sum": (self.means[1] * treated - self.means[0] * control) / 2,
        }
        self.noise = tuple(release.noise_term(name, abs(slope)) for name, slope in slopes.items())
        square = half**2 - sums["deficit"] / weight_sum
        # A variance below what noise could hide counts as that much, so that luck cannot make an interval too narrow.
        hidden = math.sqrt(release.variance("deficit")) / weight_sum
        within = square - (self.means[0] ** 2 + self.means[1] ** 2) / 2
        self.outcome_sd = math.sqrt(min(max(within, hidden), half**2))
        weight_square_sum = min(max(sums["weight_square_sum"], weight_sum**2 / units), query.largest * weight_sum)
        self.sampling_sd = self.outcome_sd * math.sqrt(weight_square_sum) / (weight_sum / 2)
        self.privacy_sd = math.sqrt(sum(term.variance for term in self.noise))
        total = math.sqrt(release.variance("weighted_sum") + release.variance("weighted_difference")) / 2
        self.signs = Signs(
            means=tuple(
                Measured(
                    sum(source.schema.outcome_bounds) / 2 + mean, math.hypot(total, mean * weight_noise_sd) / weight
                )
                for mean, weight in zip(self.means, weights, strict=True)
            ),
            variance=Measured(within, hidden),
        )
