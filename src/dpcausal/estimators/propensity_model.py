"""A private propensity score, released as a result of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.propensity import EXPECTED_INFORMATION, PropensityUncertainty, ScoreQuery, score_query
from dpcausal.queries import OutputPerturbedLogistic, Query
from dpcausal.release import Release
from dpcausal.results.propensity_score import PropensityScore
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class PropensityModel(BaseEstimator):
    """A private logistic regression of treatment on covariates, released to be used and published by itself.

    The score predicts the probability of treatment for any profile. `InverseWeighting`, `Overlap` and `Balance` take it
    as `score=` and do not pay for it again. It is the private score of PP-IPW: docs/papers/pp-ipw.md.

    Assumptions:
        None for privacy. The score is a probability of treatment where a logistic regression on the covariates
        describes who is treated.

    Privacy:
        One query: a private logistic regression. Covariates need public bounds or values; the outcome is not read.
        Numbers have scales as for `RegressionAdjustment`, perhaps from one more query.

    Attributes:
        covariates: The covariates of the score. Keep the list short: each one costs accuracy.
        scores: How the regression is made private: `objective` adds noise to the objective and spends no delta,
            `output` to the result, as in the paper.
        penalty: For `output`, the ridge for each unit. A larger one needs less noise and predicts less.

    Reference:
        Lee, Gresele, Park and Muandet (2019), corrected: lengths of covariates are bounded by the schema, and the
        constant is penalised. Objective perturbation: Chaudhuri, Monteleoni and Sarwate (2011), of losses
        with bounded influence (Mallows weights) where that needs less noise.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = PropensityModel(covariates=["age"]).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> round(plan.noise_sd, 3), plan.predict({"age": [54, 200]}, clip=0.1).round(2).tolist()
        (0.011, [0.5, 0.83])
    """

    also_called: ClassVar[str] = "propensity_score propensity logistic_regression ps"
    counts_missing: ClassVar[bool] = False  # a score has no outcome

    _instead: ClassVar[dict[str, str]] = {
        "fit train learn run fit_transform": "write score = model.estimate(vault, epsilon=1.0): it asks the vault "
        "once, for a price.",
        "predict predict_proba transform": "first score = model.estimate(vault, epsilon=1.0), then "
        "score.predict(profiles).",
        "summary describe params coef_": "first score = model.estimate(vault, epsilon=1.0), then print(score).",
    }

    covariates: Sequence[str]
    scores: Literal["objective", "output"] = "objective"
    penalty: float = 0.01

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> PropensityScore:
        """Release the score for a total of epsilon and delta.

        Args:
            source: A vault, a rehearsal or a coordinator.
            delta: With `output`, what may be spent of it where Gaussian noise is narrower; `objective` spends none.
        """
        allowed = guarantee_for(source, epsilon, delta)
        self._query(source)  # which checks what was given, before anything is spent
        scaled = with_scales(source, self.covariates, allowed)
        return replace(self, covariates=scaled.covariates)._released(scaled)  # noqa: SLF001 (its own copy)

    def _released(self, scaled: ScaledCovariates) -> PropensityScore:
        """Return the score of covariates that have a scale."""
        source, guarantee = scaled.source, scaled.rest
        query = self._query(source)
        if query.noise == "laplace":
            guarantee = replace(guarantee, delta=0.0)
        else:
            guarantee = narrower(query, source, guarantee, "intercept")
        release = source.release(query, guarantee)
        errors = self._errors(source, release)
        return PropensityScore(
            arms=source.schema.treatment.labels_or_values,
            schema=source.schema,
            n=source.n,
            release=release,
            method=f"logistic regression on {', '.join(self.covariates)} ({self.scores} perturbation)",
            noise_sd=errors.noise_sd,
            ridge=errors.ridge,
            notes=(*source.schema.covariate_handling(self.covariates), *scaled.notes, *source.caveats),
            counts=scaled.receipts,
        )

    def _query(self, source: Source) -> Query:
        if self.scores not in ("objective", "output") or not (is_number(self.penalty) and self.penalty > 0):
            raise QueryError(
                problem='scores must be "objective" or "output", and penalty greater than 0, not '
                f"scores={self.scores!r} "
                f"and penalty={self.penalty!r}",
                hint="use objective; the penalty is for output only.",
            )
        if self.scores == "objective":
            return score_query(self.covariates, source.schema)
        return OutputPerturbedLogistic(self.covariates, max(self.penalty * source.n, 1.0))

    def _errors(self, source: Source, release: Release) -> PropensityUncertainty:
        """Return the expected size of the noise, and of the ridge, from public numbers."""
        if self.scores == "objective":
            query: ScoreQuery = release.query  # type: ignore[assignment]
            return PropensityUncertainty.of(source.n, release.guarantee.epsilon, query, source.schema)
        information = EXPECTED_INFORMATION * source.n / (len(self.covariates) + 1)
        # Features have a length of at most 1, so that noise in the predictor is at most that of one coefficient.
        return PropensityUncertainty(math.sqrt(release.variance("intercept")), self.penalty * source.n / information)
