"""Matching on the propensity score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dpcausal.errors import GuaranteeError, QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.guarantee import Guarantee
from dpcausal.queries import MatchedContrast, NoisyMatchedContrast, OutputPerturbedLogistic
from dpcausal.queries.matched_contrast import check_matching
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.source import Source, guarantee_for

_OUTCOME_ERROR, _RECORD_ERROR = 0.003, 0.001
"""Default coefficients of the error model that chooses limits."""


@dataclass(frozen=True)
class PropensityMatching(BaseEstimator):
    """Each unit against its nearest neighbours in the other arm by propensity score.

    Estimand:
        The average treatment effect over the units that find matches.

    Assumptions:
        The covariates hold all confounders, and every unit could have been in either arm.

    Privacy:
        What the schema protects decides how units are matched. Where it protects the outcome, covariates and arms are
        public, which a hospital can rarely declare. Then matching needs no noise, the estimate is a weighted sum of
        outcomes with known weights, and noise is in proportion to the largest weight. Where it protects the record,
        each unit's score and arm get noise before matching. The noise drowns the score, so confounding remains, and
        wrong arms shrink the estimate towards 0: there is no interval. This is a baseline for comparison. To undo that
        would give a difference in means, ten times as far off as that of `DifferenceInMeans`: docs, Proofs.

    Attributes:
        covariates: The covariates of the score.
        neighbours: How many matches each unit has.
        limit: A unit may serve as a match `limit` times `neighbours` times; None to choose it from epsilon, the arms'
            sizes and how crowded the matching is. A limit of your own holds for both arms, and is not raised where it
            leaves units without matches: these are left out.
        error: The coefficient of the error model behind that choice; None for 0.003 (outcome; the paper has 0.01, for
            two noise terms instead of one) or 0.001 (record).
        split: Where records are protected, the shares of epsilon for the score (half for its coefficients and half for
            the units' scores), arms and outcomes.

    Reference:
        Yuan et al. (2025), PrivATE: Differentially Private Average Treatment Effect Estimation for Observational Data:
        its label level is the outcome level here, its sample level the record level (docs, The papers: PrivATE).
        Corrected here, at outcome level: a match always counts 1 / neighbours, limits chosen here minimise the error
        model and leave enough matches for all, and there is one noise term instead of two. At record level,
        as in the paper's proof, a record is replaced, not added; its assumptions are enforced by public bounds of
        covariates and a penalised constant; the solver's inexactness is paid for; and there is an answer where all
        units are in one arm.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(
        ...     treatment=Treatment("treat"),
        ...     outcome=Real("score", 0, 100, missing=50),
        ...     covariates=[Real("age", 18, 90)],
        ...     protects="outcome",
        ... )
        >>> plan = PropensityMatching(covariates=["age"]).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.89, 0.26)
    """

    also_called: ClassVar[str] = "psm matching nearest_neighbour nearest_neighbor propensity_score_matching"

    covariates: Sequence[str]
    neighbours: int = 5
    limit: int | None = None
    error: float | None = None
    split: tuple[float, float, float] = (0.1, 0.7, 0.2)

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; where records are protected, delta is not used."""
        guarantee = guarantee_for(source, epsilon, delta)
        if source.schema.protects == "outcome":
            return self._public_scores(source, guarantee)
        if source.schema.protects == "record":
            return self._noisy(source, guarantee)
        raise GuaranteeError(
            expected="a schema that protects the outcome or the record",
            got=f"one that protects {source.schema.protects}",
            hint="use Stratification or InverseWeighting.",
        )

    def _public_scores(self, source: Source, guarantee: Guarantee) -> Effect:
        query = MatchedContrast(
            self.covariates, self.neighbours, self.limit, _OUTCOME_ERROR if self.error is None else self.error
        )
        release = source.release(query, guarantee)
        low, high = source.schema.outcome_bounds
        freedom = max(release.public_values["freedom"], 1)
        # A variance below what noise could hide counts as that much, so that luck cannot make an interval too narrow.
        hidden = math.sqrt(release.variance("squares")) / freedom
        variance = min(max(release.value("squares") / freedom, hidden), (high - low) ** 2 / 4)
        unmatched = "an arm is empty, so no unit has a match" if release.public_values["matched"] == 0 else ""
        return self._effect(
            source,
            guarantee,
            (release,),
            sampling_sd=math.sqrt(variance * release.public_values["squared"]),
            assumes=(
                f"{no_confounders_but(self.covariates)}, and every unit could have been in either arm",
                "for the interval: the outcome has one variance, and units with close scores are comparable",
            ),
            note="covariates and arms were used without noise: they are declared public",
            no_interval=unmatched,
            signs=Signs(variance=Measured(release.value("squares") / freedom, hidden)),
        )

    def _noisy(self, source: Source, guarantee: Guarantee) -> Effect:
        error = _RECORD_ERROR if self.error is None else self.error
        check_matching(self.neighbours, self.limit, error)
        if len(self.split) != 3 or min(self.split) <= 0 or not math.isclose(sum(self.split), 1):
            raise QueryError(
                expected="three shares that add up to 1, for score, arms and outcomes",
                got=repr(self.split),
                hint="the paper uses (0.1, 0.7, 0.2).",
            )
        scores, arms, outcomes = self.split
        first, rest = replace(guarantee, delta=0.0).split(scores / 2)
        shares = [share / (1 - scores / 2) for share in (scores / 2, arms, outcomes)]
        score = source.release(OutputPerturbedLogistic(self.covariates, penalty=1.0), first)
        query = NoisyMatchedContrast(self.covariates, score.values, self.neighbours, self.limit, error, shares)
        matches = source.release(query, rest)
        return self._effect(
            source,
            guarantee,
            (score, matches),
            sampling_sd=None,
            assumes=("arms are comparable without adjustment: matching on noisy scores adjusts for almost nothing",),
            note="a baseline for comparison: scores are nearly all noise, and arms flipped at random shrink the "
            "estimate towards 0; a private difference in means is usually better; delta is never used",
            no_interval="confounding remains, and noisy arms shrink the estimate towards 0, both by unknown amounts",
            signs=Signs(),
        )

    def _effect(  # noqa: PLR0913
        self,
        source: Source,
        guarantee: Guarantee,
        releases: tuple[Release, ...],
        *,
        sampling_sd: float | None,
        assumes: tuple[str, ...],
        note: str,
        no_interval: str,
        signs: Signs,
    ) -> Effect:
        matches = releases[-1]
        largest = matches.public_values["largest"]
        limits = f"{matches.public_values['limit_0']:.3g} and {matches.public_values['limit_1']:.3g}"
        effect = Effect(
            estimand="average treatment effect over units with matches",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=matches.value("effect") * largest,
            sampling_sd=sampling_sd,
            noise=(matches.noise_term("effect", largest),),
            n=source.n,
            method=f"matching on the propensity score of {', '.join(self.covariates)}; {self.neighbours} neighbours, "
            f"limits {limits} (control, treated)",
            guarantee=guarantee,
            assumptions=(
                NO_INTERFERENCE,
                *assumes,
                *source.schema.data_handling,
            ),
            receipts=tuple(release.receipt for release in releases),
            notes=(f"matches were found for {matches.public_values['matched']:.1%} of units", note, *source.caveats),
            no_interval=no_interval,
            unadjusted=tuple(self.covariates) if source.schema.protects == "record" else (),
        )
        return warned(effect, source.schema, signs)
