"""The R-learner and the DR-learner, from noisy sums of products: the released weights are the function."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.curve_noise import hidden_by_noise
from dpcausal.estimators.conditional.nuisance import fit_nuisance_models, without_outcome_models
from dpcausal.estimators.conditional.posterior import fit_weights, hidden_variation
from dpcausal.estimators.conditional.scaled_basis import error_of_shapes, scaled_for, seen_by_scores, seen_shapes
from dpcausal.estimators.interval_policy import (
    hidden_covariates,
    limit_cut_off,
    residual_confounding,
    score_drowned,
)
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Basis, EffectMoments, Polynomial
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.models import Learner
from dpcausal.results.curve import EffectCurve, matrix
from dpcausal.schema.columns import Binary
from dpcausal.source import Source, guarantee_for


@dataclass(frozen=True)
class RLearner(BaseEstimator):
    """The effect as a sum of public functions of covariates, by the R-learner.

    Estimand:
        The conditional average treatment effect (CATE): the best approximation by the basis functions, where a unit
        counts as e (1 - e), e its propensity.

    Assumptions:
        The covariates hold all confounders, and one of two models is right: treatment follows a logistic regression on
        them, or outcomes are linear in them in each arm. Residuals beyond `limit` are rare.

    Privacy:
        Three queries share epsilon and delta: a private logistic regression, noisy moments for the outcome regressions,
        and noisy sums of products of the basis functions. The weights follow from these; evaluating the function costs
        nothing. Where the propensity is known by design there are two queries, and less noise.
        Numbers have scales as for `RegressionAdjustment`, perhaps from one more query. Profiles are given in the
        schema's units all the same.

    Intervals allow for the confounding that noise in both models may leave in, and for models that are linear in a
    number itself or in its normal score. There is no interval where noise hides how a number varies that has no scale.

    Attributes:
        covariates: The covariates of the models: all confounders.
        basis: The functions whose sum is the effect. Few are best: below ten thousand units, one to five. By default
            `Polynomial(covariates)`: a constant, a line in the score of each number, and a step for each value but the
            first that the schema lists. A note says where privacy noise hides how such effects vary.
        propensity: The probability of treatment where it is known and the same for all units, as in a trial.
        clip: Propensities are clipped to clip and 1 - clip.
        limit: Residuals are limited to so many half ranges of the outcome. Noise is in proportion to it. By default 1.1
            for a number and 2 for a binary outcome, whose residuals are never larger.
        outcome_models: Whether outcomes are modelled. In a trial with a known propensity, models make a curve more
            precise and no more. Without them only scales need a query of their own. Sums over sites have none: there
            is one query then, which no earlier answer changes, as secure sums need.

    Reference:
        Nie and Wager (2021). In place of the functional mechanism of Schröder, Melnychuk and Feuerriegel (2025), noise
        is added to sufficient statistics, which need no clipping of pseudo-outcomes and no influence functions: docs,
        The papers, DP-CATE.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Spline, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = RLearner(covariates=["age"], basis=Spline(["age"])).estimate(
        ...     Rehearsal(schema, n=50_000), epsilon=1.0, delta=1e-6
        ... )
        >>> low, high = plan.effect_interval({"age": [30, 54, 80]})
        >>> bool((high - low < 60).all())
        True
    """

    covariates: Sequence[str]
    basis: Basis | None = None
    propensity: float | None = None
    clip: float = 0.05
    limit: float | None = None
    outcome_models: bool = True

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Fit the effect as a function for a total of epsilon and delta."""
        return learn(self, "residual", source, guarantee_for(source, epsilon, delta))


@dataclass(frozen=True)
class DRLearner(BaseEstimator):
    """The effect as a sum of public functions of covariates, by the DR-learner.

    Estimand:
        The conditional average treatment effect (CATE): the best approximation by the basis functions, all units
        counting alike.

    Assumptions:
        As for `RLearner`. Augmented scores beyond `limit` are rare.

    Privacy:
        As for `RLearner`. Scores divide by the propensity, so noise is larger by about the limit.

    Attributes:
        covariates: The covariates of the models: all confounders.
        basis: As for `RLearner`.
        propensity: The probability of treatment where it is known and the same for all units, as in a trial.
        clip: Propensities are clipped to clip and 1 - clip.
        limit: The largest augmented score, in half ranges of the outcome. Noise is in proportion to it. By default 4
            for a number and 20 for a binary outcome, as for `DoublyRobust`.
        outcome_models: As for `RLearner`.

    Reference:
        Kennedy (2023) for the learner; beside the private DR-learner of DP-CATE: docs, The papers.

    Example:
        >>> from dpcausal import Polynomial, Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = DRLearner(covariates=["age"], basis=Polynomial(["age"]), propensity=0.5).estimate(
        ...     Rehearsal(schema, n=50_000), epsilon=1.0, delta=1e-6
        ... )
        >>> [receipt.query for receipt in plan.receipts]
        ['covariate_counts', 'regression_moments', 'effect_moments', 'missing_outcomes']
    """

    covariates: Sequence[str]
    basis: Basis | None = None
    propensity: float | None = None
    clip: float = 0.05
    limit: float | None = None
    outcome_models: bool = True

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Fit the effect as a function for a total of epsilon and delta."""
        return learn(self, "augmented", source, guarantee_for(source, epsilon, delta))


MetaLearner = Literal["R", "DR"]
"""The R-learner (Nie and Wager 2021) or the DR-learner (Kennedy 2023)."""

_LEARNERS: dict[str, Learner] = {"R": "residual", "DR": "augmented"}


def learner_of(meta_learner: str) -> Learner:
    """Return the regression of a meta-learner by its name."""
    if meta_learner not in _LEARNERS:
        raise QueryError(
            expected="a meta_learner, R or DR",
            got=repr(meta_learner),
            hint="R has the smaller noise; it is the default.",
        )
    return _LEARNERS[meta_learner]


_METHODS: dict[Learner, str] = {"residual": "R-learner", "augmented": "DR-learner"}

TARGETS: dict[Learner, AugmentedEstimand] = {"residual": "ATO", "augmented": "ATE"}
"""Whom the mean of a learner's effects is about."""

_LIMITS: dict[Learner, tuple[float, float]] = {"residual": (1.1, 2.0), "augmented": (4.0, 20.0)}
"""Default limits: for a number, and for a binary outcome."""


def learn(
    parameters: RLearner | DRLearner, learner: Learner, source: Source, guarantee: Guarantee, *, level: bool = True
) -> EffectCurve:
    """Fit the curve of a learner with these parameters.

    Args:
        level: Whether to shrink the curve towards a constant effect.
    """
    limit = parameters.limit
    if limit is None:
        limit = _LIMITS[learner][isinstance(source.schema.outcome, Binary)]
    # Built before anything is spent, so that its errors cost nothing.
    basis = Polynomial(parameters.covariates) if parameters.basis is None else parameters.basis
    plan = EffectMoments(parameters.covariates, (), (), (), basis, learner, parameters.clip, limit)
    plan.basis.names(source.schema)
    scaled = scaled_for(plan.basis, parameters.covariates if parameters.outcome_models else (), source, guarantee)
    source = scaled.source
    if parameters.outcome_models:
        models = fit_nuisance_models(scaled, parameters, TARGETS[learner])
    else:
        models = without_outcome_models(scaled, parameters)
    query = models.put_into(plan)
    release = source.release(query, models.rest)
    posterior = fit_weights(release, source.schema, models, level=level)
    bent = error_of_shapes(query.basis, scaled, posterior.squares)
    overlap = ", units counting by e (1 - e), e their propensity" if query.learner == "residual" else ""
    estimand = "average treatment effect in each group"
    smooth: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    if level:
        sd = hidden_variation(release, source.schema, source.n)
        hidden = hidden_by_noise(
            sd, source.schema.outcome_bounds, "fewer functions (basis), more epsilon or more units"
        )
        estimand = f"conditional average treatment effect{overlap}, as a sum of {len(posterior.weights)} functions"
        smooth = ("for the intervals: the effect is close to a sum of the functions, and varies no more than they do",)
    modelled = f"with private models of {', '.join(query.covariates)}"
    if not parameters.outcome_models:
        modelled = "without models of the outcome"
        smooth += ("for the intervals: outcomes are as far from the middle of their bounds at all covariates",)
    return EffectCurve.of(
        source,
        estimand=estimand,
        basis=query.basis,
        weights=tuple(float(each) for each in posterior.weights),
        sampling=matrix(posterior.sampling + bent),
        privacy=matrix(posterior.privacy),
        family=release.family,
        method=f"{_METHODS[query.learner]} {modelled}",
        guarantee=guarantee,
        assumptions=(*assumptions(query.covariates, parameters.propensity, source), *smooth),
        receipts=(*models.receipts, release.receipt),
        notes=(
            *hidden,
            *scaled.notes,
            *seen_by_scores(query.basis, source.schema),
            *seen_shapes(query.basis, scaled),
        ),
        no_interval=hidden_covariates(models.hidden, query.covariates)
        or limit_cut_off(posterior.cut_off, query.limit)
        or residual_confounding(models.residual_confounding, posterior.error, query.covariates)
        or score_drowned(models.noise_sd, query.covariates),
    )


def assumptions(covariates: Sequence[str], known: float | None, source: Source) -> tuple[str, ...]:
    """Return the assumptions of a learner of heterogeneous treatment effects."""
    if known is None:
        models = "treatment follows a logistic regression on these, or outcomes are linear in them in each arm"
        design: tuple[str, ...] = (no_confounders_but(covariates), models)
    else:
        design = (f"treatment was randomised with probability {known:g}, whatever a unit's covariates",)
    return *design, NO_INTERFERENCE, *source.schema.data_handling
