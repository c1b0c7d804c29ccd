"""Private nuisance models, of propensity and outcome, for learners of heterogeneous effects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.outcome_regression import as_score_coefficients, fit_regressions
from dpcausal.estimators.propensity import PropensityUncertainty
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, RegressionMoments
from dpcausal.queries.features import design_names, feature_names
from dpcausal.queries.models import Modelled
from dpcausal.release import Receipt
from dpcausal.source import Source
from dpcausal.validation import is_number

QueryT = TypeVar("QueryT", bound=Modelled)

_NUISANCE_SHARE = 0.4
"""The share of epsilon that both models get together; a single one gets half of it."""


@dataclass(frozen=True)
class NuisanceModels:
    """Coefficients of a propensity score and of an outcome regression in each arm; public.

    Attributes:
        propensity: The score's coefficients.
        control: The control arm's coefficients.
        treated: The treated arm's coefficients.
        noise_sd: The standard deviation of the noise in the score's predictor.
        residual_confounding: The standard deviation of the residual confounding caused by noise in both models.
        units: The number of units in the comparison, from the moments.
        units_variance: The variance of the noise in that number; 0 where it is public.
        rest: The part of the guarantee that the models did not use.
        receipts: The receipts of the models' queries.
    """

    propensity: tuple[float, ...]
    control: tuple[float, ...]
    treated: tuple[float, ...]
    noise_sd: float
    residual_confounding: float
    units: float
    units_variance: float
    rest: Guarantee
    receipts: tuple[Receipt, ...]

    def put_into(self, plan: QueryT) -> QueryT:
        """Return a query with these models filled in."""
        return replace(plan, propensity=self.propensity, control=self.control, treated=self.treated)


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


def fit_nuisance_models(source: Source, guarantee: Guarantee, learner: NeedsNuisanceModels) -> NuisanceModels:
    """Fit the models that a learner needs, and leave the rest of the guarantee for the query that it plans."""
    covariates, known = learner.covariates, learner.propensity
    design_names(covariates, source.schema)  # too many are refused before anything is spent
    names = feature_names(covariates, source.schema)
    receipts: tuple[Receipt, ...] = ()
    if known is None:
        part, guarantee = guarantee.split(_NUISANCE_SHARE / 2, pure_first=True)
        first, rest = guarantee.split((_NUISANCE_SHARE / 2) / (1 - _NUISANCE_SHARE / 2))
        score = source.release(ObjectivePerturbedLogistic(covariates), part)
        propensity, receipts = score.values, (score.receipt,)
    else:
        propensity = _known_propensity(known, learner, len(names))
        first, rest = guarantee.split(_NUISANCE_SHARE / 2)
    moments = source.release(RegressionMoments(covariates), first)
    fit = fit_regressions(moments, source, np.array([moments.values]))
    noise_sd = residual_confounding = 0.0
    if known is None:
        noise_sd = PropensityUncertainty.of(
            source.n, receipts[0].epsilon, len(covariates), len(names), fit.score_information
        ).noise_sd
        noise = float(np.sqrt(fit.noise_variance[0] * fit.mean_inverse_variance).mean())
        residual_confounding = noise_sd * math.hypot(noise, fit.attenuation_error)
    return NuisanceModels(
        propensity=tuple(propensity),
        control=as_score_coefficients(fit, 0, covariates, source.schema),
        treated=as_score_coefficients(fit, 1, covariates, source.schema),
        noise_sd=noise_sd,
        residual_confounding=residual_confounding,
        units=float(fit.n[0]),
        units_variance=moments.variance("compared") if "compared" in moments.names else 0.0,
        rest=rest,
        receipts=(*receipts, moments.receipt),
    )


def without_outcome_models(source: Source, guarantee: Guarantee, learner: NeedsNuisanceModels) -> NuisanceModels:
    """Return models for a trial that ask nothing: the known propensity, and the middle of the range as every outcome.

    All of the guarantee is left for the query that the learner plans, and no earlier answer changes that query. Units
    outside the comparison cannot be told from the others here, and count: they make standard errors larger.
    """
    known = learner.propensity
    if known is None:
        raise QueryError(
            expected="without outcome models, a known propensity",
            got="none",
            hint="this is for trials: give the probability of treatment, or leave outcome_models out.",
        )
    count = len(feature_names(learner.covariates, source.schema))
    return NuisanceModels(
        propensity=_known_propensity(known, learner, count),
        control=(0.0,) * count,
        treated=(0.0,) * count,
        noise_sd=0.0,
        residual_confounding=0.0,
        units=float(source.n if source.arm_sizes is None else sum(source.arm_sizes)),
        units_variance=0.0,
        rest=guarantee,
        receipts=(),
    )


def _known_propensity(known: float, learner: NeedsNuisanceModels, count: int) -> tuple[float, ...]:
    """Return the coefficients, so many, of a propensity that is the same for all units."""
    if not (is_number(known) and learner.clip <= known <= 1 - learner.clip):
        raise QueryError(
            expected=f"a propensity within {learner.clip:g} and {1 - learner.clip:g}, or none where it is learned",
            got=repr(known),
            hint="in a trial with equal arms it is 0.5; for rarer arms lower clip.",
        )
    logit = math.log(known / (1 - known)) * math.sqrt(len(learner.covariates) + 1)
    return logit, *(0.0,) * (count - 1)
