"""Kernel regression of the effect, released as a whole function with a Gaussian process as noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.meta_learners import TARGETS, MetaLearner, assumptions, learner_of
from dpcausal.estimators.conditional.nuisance import fit_nuisance_models
from dpcausal.estimators.conditional.scaled_basis import scaled_for, seen_by_scores
from dpcausal.guarantee import Guarantee
from dpcausal.queries import EffectWeights, Fourier
from dpcausal.queries.calibration import calibrate
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.queries.models import Learner
from dpcausal.results.curve import EffectCurve, matrix
from dpcausal.schema.columns import Binary
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.validation import is_number

_RIDGE, _POWER = 40.0, 0.9
"""The ridge for noise of size 1, and the power by which it grows with the noise: tuned on simulated tables."""

_MIN_RIDGE = 1e-4
"""The least default ridge, as a share of n, so that the problem stays well conditioned."""

_LIMITS: dict[Learner, tuple[float, float]] = {"residual": (0.15, 1.0), "augmented": (0.3, 2.0)}
"""Default limits, in half ranges of the outcome: for a number, and for a binary outcome."""

_REGRESSANDS: dict[Learner, str] = {"residual": "residuals", "augmented": "augmented scores"}


@dataclass(frozen=True)
class KernelLearner(BaseEstimator):
    """The effect as a smooth function of covariates, by kernel ridge regression with a robust (log-cosh) loss.

    It is DP-CATE for functional queries, corrected: docs, The papers, DP-CATE.

    The kernel is Gaussian, approximated by `n_features` random Fourier features, whose weights get Gaussian noise.
    So the noise in the function is a Gaussian process whose covariance is the kernel, and one draw of it answers all
    questions: those asked at once and those asked one after another, now or after a restart, agree.

    Estimand:
        The conditional average treatment effect (CATE), shrunk towards 0 by a ridge.

    Assumptions:
        As for `RLearner`, and the outcome's errors are symmetric.

    Privacy:
        Three queries share epsilon and delta: both nuisance models, and the weights. Noise at a profile does not grow
        with the number of features or of questions. Numbers have scales as for `RLearner`, perhaps from one more query.

    Attributes:
        covariates: The covariates of the models: all confounders.
        effect_of: The covariates that the effect is a function of; by default all `covariates`.
        width: The kernel's width in half ranges of covariates, by their scores.
        n_features: How many random Fourier features approximate the kernel.
        seed: Selects the features; public.
        propensity: The probability of treatment where it is known and the same for all units, as in a trial.
        clip: Propensities are clipped to clip and 1 - clip.
        limit: Where the loss turns from quadratic to linear, in half ranges of the outcome; by default 0.15 for a
            number and 1 for a binary outcome, and for `DR` twice that. Noise is in proportion to it.
        ridge: The ridge as a share of n; by default one that makes the noise at a profile about a fortieth of the
            outcome's half range.
        meta_learner: `R` regresses the residuals of the R-learner, `DR` the augmented scores of the DR-learner, where
            all units count alike and noise is larger.

    Reference:
        Schröder, Melnychuk and Feuerriegel (2025), Theorem 2, after Hall, Rinaldo and Wasserman (2013), with the
        conditions that the theorem needs: a Lipschitz loss, the square root of the kernel's largest value, models that
        are paid for, and noise by a curve that holds for every epsilon.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = KernelLearner(covariates=["age"]).estimate(Rehearsal(schema, n=50_000), epsilon=1.0, delta=1e-6)
        >>> float(plan.standard_errors({"age": [30]})[1][0].round(1))
        1.3
    """

    covariates: Sequence[str]
    effect_of: Sequence[str] | None = None
    width: float = 1.0
    n_features: int = 25
    seed: int = 0
    propensity: float | None = None
    clip: float = 0.05
    limit: float | None = None
    ridge: float | None = None
    meta_learner: MetaLearner = "R"

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Fit the effect as a function for a total of epsilon and delta."""
        guarantee = guarantee_for(source, epsilon, delta)
        basis = Fourier(
            self.covariates if self.effect_of is None else self.effect_of, self.width, self.n_features, self.seed
        )
        basis.reads(source.schema)
        if self.ridge is not None and not (is_number(self.ridge) and 1e-6 <= self.ridge <= 1e3):
            raise QueryError(
                expected="a ridge from 0.000001 to 1000, as a share of n",
                got=repr(self.ridge),
                hint="omit it to choose one from the noise.",
            )
        learner, limit = learner_of(self.meta_learner), self.limit
        if limit is None:
            limit = _LIMITS[learner][isinstance(source.schema.outcome, Binary)]
        # Built before anything is spent, so that its errors cost nothing.
        plan = EffectWeights(self.covariates, (), (), (), basis, self.clip, limit, 50.0, learner)
        scaled = scaled_for(basis, self.covariates, source, guarantee, propensity=self.propensity)
        source = scaled.source
        models = fit_nuisance_models(scaled, self, TARGETS[learner])
        plan = models.put_into(plan)
        query = replace(plan, penalty=self._penalty(plan, source, models.rest))
        release = source.release(query, models.rest)
        size = release.variance(release.names[0])
        return EffectCurve.of(
            source,
            estimand="conditional average treatment effect, shrunk towards 0 by a ridge",
            basis=basis,
            weights=release.values,
            sampling=matrix(np.zeros((len(release.names), len(release.names)))),
            privacy=matrix(np.diag([size] * len(release.names))),
            family=release.family,
            method=f"kernel regression of {_REGRESSANDS[learner]} with private models of {', '.join(self.covariates)}",
            guarantee=guarantee,
            assumptions=assumptions(self.covariates, self.propensity, source),
            receipts=(*models.receipts, release.receipt),
            notes=(*scaled.notes, *seen_by_scores(basis, source.schema)),
            no_interval="the ridge shrinks effects towards 0 by an unknown amount; only privacy noise is shown",
        )

    def _penalty(self, plan: EffectWeights, source: Source, guarantee: Guarantee) -> float:
        """Return the ridge in units, from public numbers only; noise is in proportion to its inverse."""
        least = max(1.0, plan.reach[plan.learner] / 50 / plan.limit)  # for the solver to converge
        if self.ridge is not None:
            return max(float(self.ridge * source.n), least)
        noise = calibrate(plan, source.schema, guarantee, source.rule)
        once = math.sqrt(NoiseTerm(noise.family, float(noise.scales[0] or 0.0)).variance) * COEFFICIENT_TICK
        return max(_RIDGE * float((once * plan.penalty) ** _POWER), source.n * _MIN_RIDGE, least)
