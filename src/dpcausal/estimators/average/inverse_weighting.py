"""Weighting by the inverse of a private propensity score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from dpcausal.errors import GuaranteeError, QueryError, TableError
from dpcausal.estimators.adjusted_means import adjusted_means, spread_over_arms
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.plausibility import warned
from dpcausal.estimators.propensity import ESTIMANDS, score_query
from dpcausal.estimators.scaled_features import left_by_scores, names_in, seen_as
from dpcausal.estimators.score_noise import MOMENTS_SHARE, CovariateSpread, PrivateScore, best_clip, score_share
from dpcausal.estimators.weighted_means import WeightedMeans
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateMoments, OutputPerturbedLogistic, WeightedArms
from dpcausal.queries.features import Estimand, feature_names
from dpcausal.release import Receipt, Release
from dpcausal.results.effect import Effect
from dpcausal.results.propensity_score import PropensityScore, score_release
from dpcausal.source import Source, guarantee_for, innermost
from dpcausal.utils.validation import is_number

_MAX_SHRINK = 2.0**20
"""The largest correction of weights for noise in the score, which the query accepts."""

_NOISE = 2.5 * math.sqrt(2)
"""The standard deviation of the noise in the effect, as `score_share` has it, for outcomes in the middle."""

_MUCH = 0.05
"""The share of clipped units from which an effect prints it."""

_FOR_THE_INTERVAL = (
    "for the interval: outcomes are about linear in the covariates, by which noise in the score is turned into error"
)


@dataclass(frozen=True)
class InverseWeighting(BaseEstimator):
    """Difference between weighted mean outcomes of the arms, weighted so that both look like the same population.

    Estimand:
        The average treatment effect over all units (ATE), over the treated (ATT), over the controls (ATC), or over the
        overlap population, where a unit counts as e (1 - e), e its propensity score (ATO).

    Assumptions:
        The covariates hold all confounders, and a logistic regression on them describes who is treated. For the
        interval, outcomes are about linear in the covariates: by that, noise in the score is turned into error of the
        effect, and what clipping leaves in is taken off. Covariates count as uncorrelated in this part of the error.
        The interval allows for models that are linear in a number itself or in its normal score: its scale is halfway
        between both, unless `transform` declares a shape. There is none where noise hides how a number varies that has
        no scale.

    Privacy:
        Three queries share epsilon: moments of covariates and outcome, a private logistic regression, and sums weighted
        by its score. Covariates and outcome need public bounds; nothing else about a unit need be public. Delta is
        spent only where Gaussian noise is narrower than Laplace noise.
        Numbers have scales as for `RegressionAdjustment`, perhaps from one more query.

    Attributes:
        covariates: The covariates of the score. Keep the list short: each one costs accuracy.
        estimand: `ATE`, `ATT`, `ATC` or `ATO`.
        clip: Scores are clipped to at most clip and 1 - clip. A smaller clip is chosen where noise is small enough for
            it: noise in the estimate is in proportion to 1 / clip. For ATO it is not, and the clip is 0.01. An effect
            prints the clip used, and how many units have a score beyond it.
        scores: How the regression is made private: `objective` adds noise to the objective, `output` to the result.
            With `output` there is no interval: its ridge leaves residual confounding of unknown size.
        penalty: For `output`, the ridge for each unit. A larger one needs less noise and adjusts less.
        share: The share of epsilon that the regression gets, of what the moments leave. None chooses it from the number
            of covariates, the estimand and the clip.

    Reference:
        PP-IPW: Lee, Gresele, Park and Muandet (2019), Privacy-Preserving Causal Inference via Inverse Probability
        Weighting; beside the paper in docs/papers/pp-ipw.md. Enforced or corrected here: the
        constant is penalised, lengths of covariates are bounded by the schema and not by the largest in the table,
        scores are clipped, ATT and ATC are divided by the arms' weights and not by n, the score's ridge is undone, all
        units are used in all queries, and the noise that normalising needs is shared. With `output`, weights are
        corrected for the upward bias that noise in the score gives them. Objective perturbation: Chaudhuri, Monteleoni
        and Sarwate (2011), with the noise of Awan and Slavkovic (2021); where numbers are among the covariates, with
        spherical noise and losses divided by the length of a unit's features (Mallows weights), which bias nothing.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = InverseWeighting(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.38, 0.15)
    """

    also_called: ClassVar[str] = "ipw iptw ipsw weighting inverse_probability_weighting propensity_weighting ow"
    estimates_average: ClassVar[bool] = True

    covariates: Sequence[str]
    estimand: Estimand = "ATE"
    clip: float = 0.1
    scores: Literal["objective", "output"] = "objective"
    penalty: float = 0.01
    share: float | None = None

    def estimate(
        self,
        source: Source,
        *,
        epsilon: float,
        delta: float = 0.0,
        scores_from: Source | None = None,
        score: PropensityScore | None = None,
    ) -> Effect:
        """Estimate the effect for a total of epsilon and delta.

        Args:
            source: Where outcomes come from.
            epsilon: The privacy loss.
            delta: What may be spent of it; less is where Laplace noise is narrower than Gaussian noise.
            scores_from: A source of other units, chosen without looking at them, to fit the score on: the other half of
                a table, for instance. Then each source spends all of epsilon, on different units.
            score: A score that `PropensityModel` released before, of the same source and covariates. It is not paid for
                again: all of epsilon is for the rest.
        """
        allowed = guarantee_for(source, epsilon, delta)
        self._check(source)
        if scores_from is not None:
            _check_apart(source, scores_from)
        known = None if score is None else self._known(score, source, scores_from)
        scaled = with_scales(source, self.covariates, allowed)
        if score is not None:  # whatever scales were found since
            names = names_in(score, self.covariates)
            scaled = replace(scaled, source=seen_as(score.schema, source), covariates=names)
        weighting = replace(self, covariates=scaled.covariates)
        others = None if scores_from is None else seen_as(scaled.source.schema, scores_from)
        if self.scores == "output":
            return weighting._without_interval(scaled, allowed, others, known)  # noqa: SLF001
        return weighting._weighted(scaled, allowed, others, known)  # noqa: SLF001

    def _weighted(
        self, scaled: ScaledCovariates, allowed: Guarantee, scores_from: Source | None, known: Release | None
    ) -> Effect:
        """Return the effect, weighted by a score of covariates that have a scale."""
        source = scaled.source
        moments = CovariateMoments(self.covariates)
        first, rest = scaled.rest.split(MOMENTS_SHARE)
        first = narrower(moments, source, first, f"outcome * {moments.features(source.schema)[0]}")
        profile = source.release(moments, first)
        spread = CovariateSpread.of(moments, profile, source)
        if known is not None:
            release, last = known, rest
        else:
            if scores_from is None:
                for_score, last = rest.split(self._share(source), pure_first=True)
            else:
                for_score, last = guarantee_for(scores_from, allowed.epsilon, 0.0), rest
            release = (scores_from or source).release(score_query(self.covariates, source.schema), for_score)
        private = PrivateScore.of(release, source.schema, spread, (scores_from or source).n)
        noise = _NOISE * (1 + abs(spread.centre)) / last.epsilon
        clip = best_clip(private, self.estimand, self.clip, noise)
        root = math.sqrt(len(self.covariates) + 1)
        query = WeightedArms(self.covariates, private.scaled(root), self.estimand, clip, 0.0, spread.centre)
        last = narrower(query, source, last, "weighted_difference")
        sums = source.release(query, last)
        # A score of the same units balances what covariates explain; one of others adds its own sampling error.
        balanced = 1.0 if scores_from is None else -spread.units / scores_from.n
        arms = WeightedMeans(query, sums, source, private, balanced)
        paid = (profile.receipt,) if known else (profile.receipt, release.receipt)
        return self._effect(scaled, allowed, paid, arms, _about_score(scores_from, known))

    def _without_interval(
        self, scaled: ScaledCovariates, allowed: Guarantee, scores_from: Source | None, known: Release | None
    ) -> Effect:
        """Return the effect with output perturbation, whose ridge leaves residual confounding of unknown size."""
        source, guarantee = scaled.source, scaled.rest
        if known is not None:
            release, last = known, guarantee
        else:
            if scores_from is None:
                first, last = guarantee.split(0.5 if self.share is None else self.share)
            else:
                first, last = guarantee_for(scores_from, allowed.epsilon, allowed.delta), guarantee
            fitted_on = scores_from or source
            ridge = OutputPerturbedLogistic(self.covariates, max(self.penalty * fitted_on.n, 1.0))
            release = fitted_on.release(ridge, first)
        shrink = min(release.variance("intercept") / 2, _MAX_SHRINK)
        query = WeightedArms(self.covariates, release.values, self.estimand, self.clip, shrink)
        arms = WeightedMeans(query, source.release(query, last), source)
        return self._effect(
            scaled, allowed, () if known else (release.receipt,), arms, _about_score(scores_from, known)
        )

    def _check(self, source: Source) -> None:
        """Raise, before anything is spent, unless all queries can be asked."""
        if self.scores not in ("objective", "output") or not (is_number(self.penalty) and self.penalty > 0):
            raise QueryError(
                expected='scores="objective" or scores="output", and a penalty greater than 0',
                got=f"scores={self.scores!r}, penalty={self.penalty!r}",
                hint="use objective; the penalty is for output only.",
            )
        if self.share is not None and not (is_number(self.share) and 0 < self.share < 1):
            raise QueryError(
                expected="a share between 0 and 1, or None",
                got=repr(self.share),
                hint="None chooses it from the number of covariates, the estimand and the clip.",
            )
        nothing = [0.0] * len(feature_names(self.covariates, source.schema))
        WeightedArms(self.covariates, nothing, self.estimand, self.clip).sensitivity(source.schema, "record", "l1")
        CovariateMoments(self.covariates).sensitivity(source.schema, "record", "l1")

    def _known(self, score: PropensityScore, source: Source, scores_from: Source | None) -> Release:
        """Return the release of a score to use again; raise unless it is of this source and made as here."""
        release = score_release(score, names_in(score, self.covariates), seen_as(score.schema, source).schema)
        by_output = isinstance(release.query, OutputPerturbedLogistic)
        if scores_from is not None or score.n != source.n or by_output != (self.scores == "output"):
            raise QueryError(
                expected=f'a score of this source, made with scores="{self.scores}", and no scores_from',
                got=f"{score.method}, of {score.n:,} units" + ("" if scores_from is None else ", and scores_from"),
                hint="release a score with PropensityModel(...).estimate(source, epsilon=...), or omit score.",
            )
        return release

    def _share(self, source: Source) -> float:
        """Return the score's share of what is left of epsilon."""
        if self.share is not None:
            return self.share
        return score_share(self.covariates, source.schema, self.estimand, self.clip, _NOISE)

    def _effect(
        self,
        scaled: ScaledCovariates,
        allowed: Guarantee,
        paid: tuple[Receipt, ...],
        arms: WeightedMeans,
        about_score: tuple[str, ...],
    ) -> Effect:
        source, receipts = scaled.source, (*scaled.receipts, *paid, arms.receipt)
        beyond = (f"scores of about {arms.beyond:.0%} of units are beyond the clip",) * (arms.beyond > _MUCH)
        refusal = arms.refusal
        unadjusted = tuple(self.covariates) if self.scores == "output" and not refusal else arms.unadjusted
        if self.scores == "output":
            refusal = refusal or "the ridge that output perturbation needs leaves residual confounding of unknown size"
        effect = Effect(
            estimand=ESTIMANDS[self.estimand],
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=arms.estimate,
            sampling_sd=arms.sampling_sd,
            noise=arms.noise,
            n=source.n,
            method=f"{self.estimand} by inverse weighting with a private score of {', '.join(self.covariates)} "
            f"({self.scores} perturbation), clipped to {arms.clip:g} and {1 - arms.clip:g}",
            guarantee=spent(allowed, receipts),
            assumptions=(
                f"{no_confounders_but(self.covariates)}, and treatment follows a logistic regression on these",
                NO_INTERFERENCE,
                _FOR_THE_INTERVAL,
                *source.schema.data_handling,
            ),
            receipts=receipts,
            target=self.estimand,
            clip=arms.clip,
            notes=(*about_score, *beyond, *scaled.notes, *source.caveats),
            no_interval=refusal,
            unadjusted=unadjusted,
            arm_means=adjusted_means(
                source.schema,
                arms.means,
                sampling_sd=arms.sampling_sd,
                noise=arms.noise,
                sampling=spread_over_arms(arms.sampling_sd, source.schema, arms.means, arms.shares)
                + arms.shared_variance,
                noise_covariance=arms.noise_covariance,
            ),
        )
        if self.scores == "objective":
            features = feature_names(self.covariates, source.schema)[1:]
            effect = effect.with_bias(
                left_by_scores(scaled, features, arms.adjustments, ends=arms.ends) + arms.ridge_left
            )
        return warned(effect, source.schema, arms.signs)


def _about_score(scores_from: Source | None, known: Release | None) -> tuple[str, ...]:
    """Return what a reader should know about a score that this effect did not pay for."""
    if known is not None:
        price = f"epsilon {known.guarantee.epsilon:g}, delta {known.guarantee.delta:g}"
        return (f"the score was released before, for {price}, which is not in the price of this effect: add both",)
    return ("the score was fitted on other units, which paid the same epsilon for it",) if scores_from else ()


def _check_apart(source: Source, other: Source) -> None:
    """Raise unless two sources can hold different units and protect the same."""
    answering = [innermost(each) for each in (source, other)]
    ledgers = [getattr(each, "ledger", None) for each in answering]
    openings = [ledger.opening for ledger in ledgers if ledger is not None]
    if answering[0] is answering[1] or len(set(openings)) < len(openings):
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
