"""Learners of heterogeneous treatment effects, from noisy sums of products: the released weights are the function."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.columns import Binary
from dpcausal.curve import EffectCurve, matrix
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.nuisance import NuisanceModels, fit_nuisance_models
from dpcausal.estimators.conditional.posterior import WeightPosterior, fit_weights
from dpcausal.estimators.messages import confounding_message
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Basis, EffectMoments
from dpcausal.queries.effect_moments import Learner
from dpcausal.source import Source, guarantee_for


@dataclass(frozen=True)
class RLearner(BaseEstimator):
    """The effect as a sum of public functions of covariates, by the R-learner.

    Estimand:
        The conditional average treatment effect as a function of covariates: the best sum of the basis functions,
        where units count by how evenly they could have been in either arm.

    Assumptions:
        The covariates hold all confounders, and one of two models is right: treatment follows a logistic regression on
        them, or outcomes are linear in them in each arm. Outcomes farther than `limit` from what is foretold are rare.

    Privacy:
        Three queries that share epsilon and delta: a private logistic regression, noisy moments for the regressions of
        the outcome, and noisy sums of products of the basis functions. The weights follow from these; asking the
        function costs nothing. Where the propensity is known by design there are two queries, and less noise.

    Attributes:
        covariates: The covariates of the models: all confounders.
        basis: The functions of which the effect is made. Few are best: below ten thousand units one to five.
        propensity: The probability of treatment where it is known and the same for all units, as in a trial.
        clip: Propensities are kept within clip and 1 - clip.
        limit: How far from what is foretold an outcome may be, in half ranges; beyond, it counts as the limit. Noise is
            in proportion to it. If left out, 1 for a number and 2 for a yes-or-no outcome, which is never farther.

    Reference:
        Nie and Wager (2021). In place of the functional mechanism of Schröder, Melnychuk and Feuerriegel (2025), noise
        is added to sufficient statistics, which need no clipping of pseudo-outcomes and no influence functions.

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
    basis: Basis
    propensity: float | None = None
    clip: float = 0.05
    limit: float | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """The effect as a function, for epsilon and delta in all."""
        return learn(self, "residual", source, guarantee_for(source, epsilon, delta))


@dataclass(frozen=True)
class DRLearner(BaseEstimator):
    """The effect as a sum of public functions of covariates, by the DR-learner.

    Estimand:
        The conditional average treatment effect as a function of covariates: the best sum of the basis functions, all
        units counting alike.

    Assumptions:
        As for `RLearner`. Augmented scores beyond `limit` are rare.

    Privacy:
        As for `RLearner`. Weights divide by the propensity, so noise is larger by about the limit.

    Attributes:
        covariates: The covariates of the models: all confounders.
        basis: The functions of which the effect is made.
        propensity: The probability of treatment where it is known and the same for all units, as in a trial.
        clip: Propensities are kept within clip and 1 - clip.
        limit: The largest augmented score, in half ranges of the outcome. Noise is in proportion to it. If left out, 4
            for a number and 20 for a yes-or-no outcome, as for `DoublyRobust`.

    Reference:
        Kennedy (2023) for the learner.

    Example:
        >>> from dpcausal import Polynomial, Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = DRLearner(covariates=["age"], basis=Polynomial(["age"]), propensity=0.5).estimate(
        ...     Rehearsal(schema, n=50_000), epsilon=1.0, delta=1e-6
        ... )
        >>> [receipt.query for receipt in plan.receipts]
        ['regression_moments', 'effect_moments']
    """

    covariates: Sequence[str]
    basis: Basis
    propensity: float | None = None
    clip: float = 0.05
    limit: float | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """The effect as a function, for epsilon and delta in all."""
        return learn(self, "augmented", source, guarantee_for(source, epsilon, delta))


_METHODS: dict[Learner, str] = {"residual": "R-learner", "augmented": "DR-learner"}

_LIMITS: dict[Learner, tuple[float, float]] = {"residual": (1.0, 2.0), "augmented": (4.0, 20.0)}
"""Limits where none is given: for a number, and for a yes-or-no outcome."""


def learn(
    parameters: RLearner | DRLearner, learner: Learner, source: Source, guarantee: Guarantee, *, level: bool = True
) -> EffectCurve:
    """The curve that a learner with these parameters gives."""
    limit = parameters.limit
    if limit is None:
        limit = _LIMITS[learner][isinstance(source.schema.outcome, Binary)]
    # Made before anything is spent, so that what is wrong with it is said for free.
    plan = EffectMoments(parameters.covariates, (), (), (), parameters.basis, learner, parameters.clip, limit)
    plan.basis.names(source.schema)
    models = fit_nuisance_models(source, guarantee, parameters)
    query = models.put_into(plan)
    release = source.release(query, models.rest)
    posterior = fit_weights(release, source.schema, models, level=level)
    overlap = ", units counting by e (1 - e), e their propensity" if query.learner == "residual" else ""
    estimand = "average treatment effect in each group"
    smooth: tuple[str, ...] = ()
    if level:
        estimand = f"conditional average treatment effect{overlap}, as a sum of {len(posterior.weights)} functions"
        smooth = ("for the intervals: the effect is nearly a sum of the functions, and varies no more than they show",)
    return EffectCurve.of(
        source,
        estimand=estimand,
        basis=query.basis,
        weights=tuple(float(each) for each in posterior.weights),
        sampling=matrix(posterior.sampling),
        privacy=matrix(posterior.privacy),
        family=release.family,
        method=f"{_METHODS[query.learner]} with private models of {', '.join(query.covariates)}",
        guarantee=guarantee,
        assumptions=(*assumptions(query.covariates, parameters.propensity, source), *smooth),
        receipts=(*models.receipts, release.receipt),
        no_interval=_doubt(posterior, models, query),
    )


def _doubt(posterior: WeightPosterior, models: NuisanceModels, query: EffectMoments) -> str:
    """Why there can be no interval; empty where there can be one."""
    if posterior.cut_off > 0.02:
        return f"the limit of {query.limit:g} half ranges cut off about {posterior.cut_off:.0%} of scores; raise limit"
    if models.residual_confounding > posterior.error or models.noise_sd > 1:
        return confounding_message("the models", query.covariates)
    return ""


def assumptions(covariates: Sequence[str], known: float | None, source: Source) -> tuple[str, ...]:
    """What learners of heterogeneous treatment effects rest on."""
    if known is None:
        models = "treatment follows a logistic regression on these, or outcomes are linear in them in each arm"
        design: tuple[str, ...] = (f"no confounders but {', '.join(covariates)}", models)
    else:
        design = (f"every unit had a chance of {known:g} of being treated, whatever its covariates",)
    return *design, "one unit's outcome does not depend on another unit's arm", *source.schema.data_handling
