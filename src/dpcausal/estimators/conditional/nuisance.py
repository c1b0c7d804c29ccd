"""Private nuisance models, of propensity and outcome, for learners of heterogeneous effects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.covariate_scales import ScaledCovariates
from dpcausal.estimators.interval_policy import hidden_names
from dpcausal.estimators.model_errors import PropensityError
from dpcausal.estimators.noise_aware_regression import fit_noise_aware
from dpcausal.estimators.outcome_regression import as_score_coefficients, fit_regressions
from dpcausal.estimators.propensity import score_query
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import left_by_scores
from dpcausal.guarantee import Guarantee
from dpcausal.queries import RegressionMoments
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.features import design_names, feature_names, numbers_among
from dpcausal.queries.models import Modelled
from dpcausal.release import Receipt
from dpcausal.utils.validation import is_number

QueryT = TypeVar("QueryT", bound=Modelled)

_NUISANCE_SHARE = 0.4
"""The share of epsilon that both models get together; a single one gets half of it."""


@dataclass(frozen=True)
class NuisanceModels:
    """Coefficients of a propensity score and of an outcome regression in each arm; public.

    Attributes:
        units: The number of units in the comparison, from the moments.
        units_variance: The variance of the noise in that number; 0 where it is public.
        rest: The part of the guarantee that the models did not use.
        receipts: The receipts of the queries behind scales and models.
        noise_sd: The standard deviation of the noise in the score's predictor.
        residual_confounding: The standard deviation of the residual confounding caused by noise in both models.
        shape_bias: A bound of the confounding that is left in where models are linear in other shapes of covariates,
            or numbers without a scale vary less than they seem to.
        hidden: Numbers of which noise hides how they vary: nothing bounds the confounding that they leave in.
    """

    covariates: tuple[str, ...]
    propensity: tuple[float, ...]
    control: tuple[float, ...]
    treated: tuple[float, ...]
    units: float
    units_variance: float
    rest: Guarantee
    receipts: tuple[Receipt, ...]
    noise_sd: float = 0.0
    residual_confounding: float = 0.0
    shape_bias: float = 0.0
    hidden: tuple[str, ...] = ()

    @property
    def left_in(self) -> float:
        """What the interval of an average effect allows for, as a standard deviation.

        A bias of at most one standard deviation that is added to a variance is allowed for: the interval covers at
        least as often as without both.
        """
        return math.hypot(self.residual_confounding, self.shape_bias)

    def put_into(self, plan: QueryT) -> QueryT:
        """Return a query with these models filled in."""
        return replace(
            plan,
            covariates=self.covariates,
            propensity=self.propensity,
            control=self.control,
            treated=self.treated,
        )


class NeedsNuisanceModels(Protocol):
    """A learner that needs nuisance models."""

    @property
    def covariates(self) -> Sequence[str]:
        """The covariates."""
        ...

    @property
    def propensity(self) -> float | None:
        """The propensity where it is known by design and the same for all units; None to learn it."""
        ...

    @property
    def clip(self) -> float:
        """Propensities are clipped to clip and 1 - clip."""
        ...


def fit_nuisance_models(
    scaled: ScaledCovariates, learner: NeedsNuisanceModels, estimand: AugmentedEstimand
) -> NuisanceModels:
    """Fit the models that a learner needs, and leave the rest of the guarantee for the query that it plans.

    Args:
        scaled: The covariates of models and effects by their scores.
        estimand: Whom the mean of its effects is about: what noise leaves in depends on it.
    """
    source, guarantee, known = scaled.source, scaled.rest, learner.propensity
    covariates = _own(scaled, learner.covariates)
    design_names(covariates, source.schema)  # too many are refused before more is spent
    names = feature_names(covariates, source.schema)
    receipts: tuple[Receipt, ...] = ()
    score = None
    if known is None:
        part, guarantee = guarantee.split(_NUISANCE_SHARE / 2, pure_first=True)
        first, rest = guarantee.split((_NUISANCE_SHARE / 2) / (1 - _NUISANCE_SHARE / 2))
        score = source.release(score_query(covariates, source.schema), part)
        propensity, receipts = score.values, (score.receipt,)
    else:
        propensity = _known_propensity(known, learner, covariates, len(names))
        first, rest = guarantee.split(_NUISANCE_SHARE / 2)
    moments = source.release(RegressionMoments(covariates), first)
    regressions = fit_noise_aware(moments, source)
    fit = fit_regressions(moments, source, np.array([moments.values]))
    centres = np.array([[regressions.centres] * 2])
    lines = replace(fit, slopes=regressions.slopes[None], means=regressions.means[None], centres=centres)
    models = NuisanceModels(
        covariates=covariates,
        propensity=tuple(propensity),
        control=as_score_coefficients(lines, 0, covariates, source.schema),
        treated=as_score_coefficients(lines, 1, covariates, source.schema),
        units=float(fit.n[0]),
        units_variance=moments.variance("compared") if "compared" in moments.names else 0.0,
        rest=rest,
        receipts=(*scaled.receipts, *receipts, moments.receipt),
    )
    if score is None:
        return models
    error = PropensityError.of(score, lines, regressions.centres, source.schema)
    features = design_names(covariates, source.schema)
    numbers = numbers_among(covariates, source.schema)
    return replace(
        models,
        propensity=error.released,
        noise_sd=error.predictor_sd,
        residual_confounding=error.left_in(regressions, estimand, learner.clip),
        shape_bias=left_by_scores(
            scaled,
            features,
            regressions.adjustments(fit),
            regressions.resolution,
            ends=left_at_ends(moments, source),
        ),
        hidden=tuple(name for name in hidden_names(list(regressions.resolution), features) if name in numbers),
    )


def _own(scaled: ScaledCovariates, covariates: Sequence[str]) -> tuple[str, ...]:
    """Return the covariates of models, and after them the indicators of missing values of these."""
    indicators = scaled.covariates[len(scaled.covariates) - len(scaled.indicated) :]
    own = (name for of, name in zip(scaled.indicated, indicators, strict=True) if of in covariates)
    return *covariates, *own


def without_outcome_models(scaled: ScaledCovariates, learner: NeedsNuisanceModels) -> NuisanceModels:
    """Return models for a trial that ask nothing: the known propensity, and the middle of the range as every outcome.

    All of the guarantee is left for the query that the learner plans. Units outside the comparison cannot be told from
    the others here, and count: they make standard errors larger.
    """
    source, known = scaled.source, learner.propensity
    if known is None:
        raise QueryError(
            problem="Without outcome models the propensity must be known",
            hint="this is for trials: give the probability of treatment, or leave outcome_models out.",
        )
    covariates = tuple(learner.covariates)
    count = len(feature_names(covariates, source.schema))
    return NuisanceModels(
        covariates=covariates,
        propensity=_known_propensity(known, learner, covariates, count),
        control=(0.0,) * count,
        treated=(0.0,) * count,
        units=float(source.n if source.arm_sizes is None else sum(source.arm_sizes)),
        units_variance=0.0,
        rest=scaled.rest,
        receipts=scaled.receipts,
    )


def _known_propensity(
    known: float, learner: NeedsNuisanceModels, covariates: Sequence[str], count: int
) -> tuple[float, ...]:
    """Return the coefficients, so many, of a propensity that is the same for all units."""
    if not (is_number(known) and learner.clip <= known <= 1 - learner.clip):
        raise QueryError(
            problem=f"propensity must be within {learner.clip:g} and {1 - learner.clip:g}, or left out where it is "
            f"learned, not {known!r}",
            hint="in a trial with equal arms it is 0.5; for rarer arms lower clip.",
        )
    logit = math.log(known / (1 - known)) * math.sqrt(len(covariates) + 1)
    return logit, *(0.0,) * (count - 1)
