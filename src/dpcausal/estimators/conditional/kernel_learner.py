"""The effect as a smooth function by a kernel, released whole with a Gaussian process as noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.calibration import calibrate
from dpcausal.columns import Binary
from dpcausal.curve import EffectCurve, matrix
from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.meta_learners import assumptions
from dpcausal.estimators.conditional.nuisance import fit_nuisance_models
from dpcausal.guarantee import Guarantee
from dpcausal.interval import NoiseTerm
from dpcausal.queries import EffectWeights, Fourier
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.source import Source, guarantee_for
from dpcausal.validation import is_number

_RIDGE, _POWER = 40.0, 0.9
"""The ridge for noise of size 1, and how it grows with the noise: found on generated tables."""


@dataclass(frozen=True)
class KernelLearner(BaseEstimator):
    """The effect as a smooth function of covariates, by kernel regression with a loss that no unit can pull far.

    The kernel is Gaussian, approximated by `n_features` random Fourier features, whose weights get Gaussian noise.
    So the noise in the function is a Gaussian process whose covariance is the kernel, and one draw of it answers all
    questions: those asked at once and those asked one after another, now or after a restart, agree.

    Estimand:
        The conditional average treatment effect as a function of covariates, drawn towards 0 by a ridge.

    Assumptions:
        As for `RLearner`; errors of the outcome are as likely above as below.

    Privacy:
        Three queries that share epsilon and delta: both models, and the weights. Noise at a profile does not grow with
        the number of waves or of questions.

    Attributes:
        covariates: The covariates of the models: all confounders.
        effect_of: The covariates that the effect is a function of; `covariates` if left out.
        width: The kernel's width in half ranges of covariates.
        n_features: How many waves stand in for the kernel.
        seed: Which waves; public.
        propensity: The probability of treatment where it is known and the same for all units, as in a trial.
        clip: Propensities are kept within clip and 1 - clip.
        limit: Where the loss turns from a square to a distance, in half ranges of the outcome; if left out, 0.15 for a
            number and 1 for a yes-or-no outcome. Noise is in proportion to it.
        ridge: What draws the effect towards 0, as a share of n; if left out, as much as makes the noise at a profile
            about a fortieth of the outcome's half range.

    Reference:
        Schröder, Melnychuk and Feuerriegel (2025), Theorem 2, after Hall, Rinaldo and Wasserman (2013), with what the
        theorem needs to hold: a strongly convex objective, a Lipschitz loss, the right power of the kernel's largest
        value, models that are paid for, and noise by a curve that holds for every epsilon.

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

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """The effect as a function, for epsilon and delta in all."""
        guarantee = guarantee_for(source, epsilon, delta)
        basis = Fourier(
            self.covariates if self.effect_of is None else self.effect_of, self.width, self.n_features, self.seed
        )
        basis.reads(source.schema)
        if self.ridge is not None and not (is_number(self.ridge) and 1e-6 <= self.ridge <= 1e3):
            raise QueryError(
                expected="a ridge from 0.000001 to 1000, as a share of n",
                got=repr(self.ridge),
                hint="leave it out for one that suits the noise.",
            )
        limit = self.limit
        if limit is None:
            limit = 1.0 if isinstance(source.schema.outcome, Binary) else 0.15
        # Made before anything is spent, so that what is wrong with it is said for free.
        plan = EffectWeights(self.covariates, (), (), (), basis, self.clip, limit, 25.0)
        models = fit_nuisance_models(source, guarantee, self)
        plan = models.put_into(plan)
        query = replace(plan, penalty=self._penalty(plan, source, models.rest))
        release = source.release(query, models.rest)
        size = release.variance(release.names[0])
        return EffectCurve.of(
            source,
            estimand="conditional average treatment effect, drawn towards 0 by a ridge",
            basis=basis,
            weights=release.values,
            sampling=matrix(np.zeros((len(release.names), len(release.names)))),
            privacy=matrix(np.diag([size] * len(release.names))),
            family=release.family,
            method=f"kernel regression of residuals with private models of {', '.join(self.covariates)}",
            guarantee=guarantee,
            assumptions=assumptions(self.covariates, self.propensity, source),
            receipts=(*models.receipts, release.receipt),
            no_interval="the ridge draws effects towards 0 by an amount nobody knows; privacy noise is what is shown",
        )

    def _penalty(self, plan: EffectWeights, source: Source, guarantee: Guarantee) -> float:
        """The ridge in units, from public numbers only; noise is in proportion to 1 divided by it."""
        least = max(1.0, 0.04 / plan.limit)  # for the solver's sake
        if self.ridge is not None:
            return max(float(self.ridge * source.n), least)
        noise = calibrate(plan, source.schema, guarantee)
        once = math.sqrt(NoiseTerm(noise.family, float(noise.scales[0] or 0.0)).variance) * COEFFICIENT_TICK
        return max(_RIDGE * float((once * plan.penalty) ** _POWER), source.n / 10_000, least)
