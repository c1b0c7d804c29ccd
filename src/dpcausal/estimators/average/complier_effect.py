"""The effect of a treatment received, from an assignment that not everybody follows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import RefusedError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.instrument_regression import adjusted_parts
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.plausibility import Signs, warned, with_warnings
from dpcausal.estimators.two_means import arm_means_of, arm_sizes_of, variances
from dpcausal.queries import InstrumentMoments, ReceivedMoments
from dpcausal.release import Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.results.effect_measures import ratio_interval
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.source import RequiringSource, Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.text import format_number

_WEAK = 10.0
"""A first-stage F statistic below this is called weak (Staiger and Stock 1997)."""

_NAMES = "intention-to-treat effect", "share of compliers"


@dataclass(frozen=True)
class ComplierEffect(BaseEstimator):
    """Effect of the treatment received among compliers: difference in outcomes over difference in treatment received.

    The schema's treatment is the assignment, which is the instrument: the arm drawn in a trial, an invitation, a
    distance. A binary covariate holds the treatment received.

    Estimand:
        The complier average causal effect (CACE), or local average treatment effect (LATE): the mean effect of
        receiving the treatment among units that receive it if assigned to it, and do not otherwise.

    Assumptions:
        The assignment is as good as random, with `covariates` among units alike in these; it changes the outcome
        through the treatment received only (exclusion); nobody does the opposite of the assignment (monotonicity); some
        units comply. With `covariates`, the means of the outcome and of the treatment received are linear in them in
        each assigned arm.

    Covariates:
        They narrow the interval where they predict the outcome, and they take away confounding of the assignment. Both
        differences are adjusted by regressions, and their ratio is the estimate: without `interaction`, two-stage least
        squares; with it, each arm has regressions of its own, so that the effects of the assignment may depend on
        covariates, and the ratio is still the effect among all compliers. The regressions know the size of the noise,
        as those of `RegressionAdjustment` do.

    Privacy:
        One query, with little more noise than `DifferenceInMeans`, or with covariates than `RegressionAdjustment`, and
        scales of numbers as there. With `protects="outcome"` the treatment received is public.

    Interval:
        Fieller's, from the joint error of numerator and denominator; it is not symmetric. With `covariates` it allows
        for what their shape may leave in, as that of `RegressionAdjustment` does. Where the share of compliers
        is not distinguishable from 0 there is none; below a first-stage F of 10 there is a warning. `p_value` tests
        (numerator) - null (denominator), which holds for weak instruments too. `standard_error` is to first order.

    Attributes:
        received: The binary covariate that holds the treatment received.
        covariates: The covariates to adjust for, all known before the assignment. Keep the list short.
        interaction: Whether each assigned arm has regressions of its own; for `covariates` only.

    Reference:
        Imbens and Angrist (1994), Identification and estimation of local average treatment effects; Fieller (1954);
        Frölich (2007), Nonparametric IV estimation of local average treatment effects with covariates. Proofs of
        privacy: docs/proofs/sums.md.

    Example:
        >>> from dpcausal import Binary, Real, Rehearsal, Schema, Treatment
        >>> took = Binary("took_drug", values=("no", "yes"), missing="no")
        >>> score = Real("score", 0, 10, missing=5)
        >>> trial = Schema(treatment=Treatment("arm"), outcome=score, covariates=[took], protects="record_within_arm")
        >>> plan = ComplierEffect(received="took_drug").estimate(Rehearsal(trial, n=4_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 3)
        (0.12, 0.017)
    """

    identified_by_design: ClassVar[bool] = True
    also_called: ClassVar[str] = (
        "iv wald wald_estimator cace late sls tsls two_stage_least_squares instrumental_variable "
        "instrumental_variables instrument noncompliance non_compliance complier_average_causal_effect "
        "local_average_treatment_effect"
    )

    received: str
    covariates: Sequence[str] = ()
    interaction: bool = True

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return an estimator for which the treatment received is the first covariate of two values."""
        return cls(next((column.name for column in schema.covariates if isinstance(column, Binary)), ""))

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        allowed = guarantee_for(source, epsilon, delta)
        scaled = ScaledCovariates(source, (), allowed)
        if self.covariates:
            scaled = with_scales(source, self.covariates, allowed)
        source = RequiringSource(scaled.source, [self.received])
        if self.covariates:
            query = InstrumentMoments(self.received, scaled.covariates, self.interaction)
            guarantee = narrower(query, source, scaled.rest, "arm * outcome")
            release = source.release(query, guarantee)
            parts, left_in, refusal, signs = adjusted_parts(release, query, scaled, source, _NAMES)
        else:
            wald = ReceivedMoments(self.received)
            guarantee = narrower(wald, source, allowed, "total_1")
            release = source.release(wald, guarantee)
            parts, left_in, refusal, signs = _parts(release, source), (0.0, 0.0), "", Signs()
        share = parts.values[1] or 1 / source.n  # no division by 0
        ratio = replace(parts, values=(parts.values[0], share)).mapped(["effect"], lambda each: each[:1] / each[1:])
        error, weak = parts.standard_error((0.0, 1.0)), _refusal(parts)
        effect = Effect(
            estimand=f"complier average causal effect: mean effect of {self.received} on units that receive it if and "
            "only if assigned to it",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=ratio.values[0],
            sampling_sd=ratio.sampling_sd((1.0,)),
            noise=ratio.noise_along((1.0,)),
            n=source.n,
            method=f"difference in outcomes over difference in {self.received} between assigned arms ({self._how})",
            guarantee=spent(allowed, (*scaled.receipts, release.receipt)),
            assumptions=(
                *self._randomised,
                f"the assignment changes the outcome through {self.received} only (exclusion)",
                "nobody does the opposite of the assignment (monotonicity)",
                NO_INTERFERENCE,
                *source.schema.data_handling,
                *source.schema.covariate_handling([self.received]),
            ),
            receipts=(*scaled.receipts, release.receipt),
            notes=(
                f"first stage: F = {format_number((share / error) ** 2)}" if error else "first stage: no error",
                *scaled.notes,
                *source.caveats,
            ),
            no_interval=refusal or weak,
            p_values_hold=bool(weak and not refusal),
            contrasts=parts,
            ratio=True,
            quantity=f"mean of {source.schema.outcome.title} among compliers",
        )
        bias = (left_in[0] + abs(effect.estimate) * left_in[1]) / max(abs(share) - left_in[1], 1 / source.n)
        effect = warned(effect.with_bias(bias), source.schema, signs)
        if effect.rehearsed or not error or (share / error) ** 2 >= _WEAK:
            return effect
        return with_warnings(
            effect,
            f"the assignment is a weak instrument: the first-stage F is {format_number((share / error) ** 2)}, below "
            f"{_WEAK:g}. Report the intention-to-treat effect, and the p-value, which holds for weak instruments",
        )

    @property
    def _how(self) -> str:
        """The method, in words."""
        if not self.covariates:
            return "Wald"
        both = f"both adjusted by regression on {', '.join(self.covariates)}"
        return f"{both} in each arm" if self.interaction else f"{both}: two-stage least squares"

    @property
    def _randomised(self) -> tuple[str, ...]:
        """What is assumed of the assignment."""
        if not self.covariates:
            return ("the assignment is as good as random",)
        one_effect = "" if self.interaction else ", with one effect of the assignment for all"
        return (
            f"the assignment is as good as random among units with the same {', '.join(self.covariates)}",
            f"outcomes and {self.received} are linear in these{one_effect}",
        )


def _refusal(parts: JointEstimate) -> str:
    """Return why there is no interval; empty where there is one."""
    try:
        ratio_interval(parts, 0.95)
    except RefusedError:
        return "the share of compliers is not distinguishable from 0; report the intention-to-treat effect"
    return ""


def _parts(release: Release, source: Source) -> JointEstimate:
    """Return the difference in outcomes and in treatment received between arms, with their joint error."""
    low, high = source.schema.outcome_bounds
    half, sizes = (high - low) / 2, arm_sizes_of(release, source)
    means, shares = arm_means_of(release, source), arm_means_of(release, source, total="received")  # from one half
    sampling = np.zeros((2, 2))
    for arm, spread in enumerate(variances(release, source, half)):
        size = sizes[arm]
        outcome = min(max(spread, 0.0), half**2)
        noise = release.variance(f"received_{arm}") / size**2
        received = min(max(0.25 - shares[arm] ** 2 + noise, 0.0), 0.25)
        most = math.sqrt(outcome * received)
        product = min(max(release.value(f"product_{arm}") / size - means[arm] * shares[arm], -most), most)
        sampling += np.array([[outcome, product], [product, received]]) / max(size - 1, 1.0)

    def formula(value: ValueOf) -> list[Numbers]:
        both = (arm_means_of(release, source, value, total) for total in ("total", "received"))
        return [treated - control for control, treated in both]

    return release.estimates(_NAMES, formula, sampling)
