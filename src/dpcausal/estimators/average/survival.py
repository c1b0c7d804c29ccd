"""Time to an event: survival curves, mean survival time, incidence and hazard ratio from counts on a public grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpcausal.errors import QueryError, SchemaError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.follow_up import FollowUp, WeightedFollowUp
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.estimators.weighted_histogram import (
    FOR_THE_INTERVAL,
    POPULATIONS,
    WeightedHistogram,
    Weighting,
    check_weighting,
)
from dpcausal.queries import Cut, EventCounts
from dpcausal.queries.cuts import cuts_of
from dpcausal.queries.features import Estimand
from dpcausal.queries.query import value_names
from dpcausal.results.arm_curves import ArmCurves
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RequiringSource, Source, guarantee_for
from dpcausal.uncertainty.interval import few_terms
from dpcausal.utils.arrays import Array

SurvivalEstimand = Literal["rmst", "survival", "incidence"]

_QUANTITIES = {"rmst": "mean_time", "survival": "survival", "incidence": "incidence"}


@dataclass(frozen=True)
class Survival(BaseEstimator):
    """Compare two arms' times to an event, from counts of events and censorings on a public grid of times.

    The schema's outcome is the time, a `Real` from 0 to the longest follow-up. A covariate says what ended it. One
    release gives survival curves by arm, the difference in restricted mean survival time, in survival and in cumulative
    incidence at the horizon, the hazard ratio and the log-rank test.

    Estimand:
        `rmst`: the restricted mean survival time to the horizon, the last time of the grid, with all treated minus that
        with none. `survival`: the difference in the share without an event by the horizon. `incidence`: the difference
        in the share with the event of interest by the horizon, other events competing with it.

    Assumptions:
        Arms are comparable, within the strata of `by` if there are any, or after weighting by the propensity score of
        `covariates`, which a logistic regression describes. Censoring says nothing about the event, within arms and
        strata. Within an interval those who are censored are at risk for half of it on average, and survival is nearly
        straight: use intervals over which it falls by a tenth or less. With weights, for the interval: covariates
        multiply hazards, about alike in both arms.

    Privacy:
        One query, which adds up over sites. One unit is in one count, so the noise in each count does not grow with
        their number. Numbers at risk are sums of counts, so fewer intervals mean less noise: 5 to 20 are usual. The
        grid must be public. With `covariates` three queries share epsilon: moments, a private logistic regression, and
        counts weighted by its score. Then noise in a count is in proportion to the largest weight, 1 / clip for the
        ATE and 1 for the ATO.

    Attributes:
        event: The covariate that says what ended follow-up: a `Binary` (censored, event), or a `Category` whose first
            value is censored, whose second is the event of interest, and whose others are competing events. Empty where
            every time is that of an event.
        grid: The ends of the intervals, in rising order, the horizon last; or the number of intervals of equal length
            up to the outcome's upper bound. A time belongs to the interval above it, so that follow-up which ends for
            everybody at a time of the grid is no censoring.
        by: Covariates to adjust for, by strata: listed ones, or numbers with public edges. Survival is standardised to
            the strata's sizes in both arms together.
        estimand: The effect itself. The others are in the effect's contrasts.
        covariates: Covariates to adjust for by inverse probability weights, in place of `by`; numbers need no edges.
        weights: Whose survival the weights are for: all units (`ATE`), the treated (`ATT`), the controls (`ATC`), or
            those of whom either arm could be expected (`ATO`), which has the least noise.
        clip: With `covariates`, scores are clipped to at most clip and 1 - clip.

    Reference:
        Kaplan and Meier (1958) with the actuarial correction of Cutler and Ederer (1958); Greenwood (1926) for the
        sampling error; Royston and Parmar (2013) for the restricted mean; Aalen and Johansen (1978) for the incidence;
        Mantel and Haenszel (1959) for the ratio and the test; Xie and Liu (2005) for weighted curves. Page:
        docs/survival.md.

    Example:
        >>> from dpcausal import Binary, Real, Rehearsal, Schema, Treatment
        >>> time, died = Real("months", 0, 60), Binary("died")
        >>> schema = Schema(treatment=Treatment("drug"), outcome=time, covariates=[died])
        >>> plan = Survival(event="died", grid=[12, 24, 36, 48, 60]).estimate(Rehearsal(schema, n=2_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (1.03, 0.28)
    """

    also_called: ClassVar[str] = (
        "kaplan_meier km kaplanmeier kaplanmeierfitter survfit survdiff survival_analysis time_to_event rmst "
        "restricted_mean log_rank logrank nelson_aalen aalen_johansen cumulative_incidence competing_risks coxph cox "
        "cox_ph coxphfitter hazard_ratio"
    )

    event: str = ""
    grid: Sequence[float] | int = 10
    by: Sequence[str | Cut] | None = None
    estimand: SurvivalEstimand = "rmst"
    covariates: Sequence[str] = ()
    weights: Estimand = "ATE"
    clip: float = 0.1

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        query, allowed = self._query(source.schema), guarantee_for(source, epsilon, delta)
        source = RequiringSource(source, query.required)
        found: FollowUp
        if self.covariates:
            weighting = Weighting(check_weighting(self.covariates, self.by), self.weights, self.clip)
            found = WeightedFollowUp.released(query, weighting, source, allowed)
            guarantee, receipts, weighted = found.histogram.guarantee, found.histogram.receipts, found.histogram
        else:
            guarantee = narrower(query, source, allowed, "beyond_1" + query.strata(source.schema)[0])
            release = source.release(query, guarantee)
            found, receipts, weighted = FollowUp.of(query, release, source), (release.receipt,), None
        words = _Words.of(self, query, source.schema, weighted)
        arms = source.schema.treatment.labels_or_values
        contrasts = _contrasts(found, words)
        quantity = _QUANTITIES[self.estimand]
        primary = contrasts.pop(quantity)
        joint = found.estimates([words.names[name] for name in contrasts], *_stacked(list(contrasts.values())))
        effect_alone = found.estimates(["effect"], *_stacked([primary]))
        effect = Effect(
            estimand=words.estimand,
            target=self.weights if weighted else "ATE",
            clip=weighted.query.clip if weighted else None,
            arms=arms,
            outcome=source.schema.outcome.title,
            estimate=effect_alone.values[0],
            sampling_sd=effect_alone.sampling_sd([1.0]),
            noise=few_terms(effect_alone.noise_along([1.0])),
            n=source.n,
            method=words.method,
            guarantee=guarantee,
            assumptions=(*words.assumptions, NO_INTERFERENCE, *source.schema.data_handling),
            receipts=receipts,
            notes=(*words.notes(found), *(weighted.notes if weighted else ()), *source.caveats),
            no_interval="" if found.clear_of_noise else _TOO_FEW,
            arm_means=found.estimates(arms, *_last(found, quantity)),
            arm_sizes=None if weighted else found.sizes(arms),
            contrasts=joint,
            curves=_curves(found, words, source.schema),
            quantity=words.names[quantity],
        )
        return warned(effect, source.schema, Signs() if weighted else Signs(sizes=_sizes(found, arms)))

    def _query(self, schema: Schema) -> EventCounts:
        """Return the query, and raise where the parameters do not suit the schema."""
        if not isinstance(schema.outcome, Real):
            raise SchemaError(
                problem=f"The outcome {schema.outcome.name!r} has two values, and survival needs a time",
                hint="declare the time to the event or to censoring as the outcome, and the event as a covariate.",
            )
        if self.event and schema.protects == "outcome":
            raise SchemaError(
                problem=f'The event {self.event!r} is a covariate, and protects="outcome" declares every '
                "covariate public",
                hint='declare protects="record_within_arm", or "record".',
            )
        if self.estimand not in _QUANTITIES:
            raise QueryError(
                expected=f"an estimand out of {', '.join(_QUANTITIES)}",
                got=repr(self.estimand),
                hint="rmst is the difference in restricted mean survival time.",
            )
        return EventCounts(_times(self.grid, schema.outcome), self.event, cuts_of(self.by) if self.by else ())


_LOGISTIC = "treatment follows a logistic regression on these"

_TOO_FEW = (
    "too few units are at risk in an arm or stratum, beside the noise: choose an earlier horizon, fewer intervals or "
    "strata, or more epsilon"
)


def _times(grid: Sequence[float] | int, time: Real) -> Sequence[float]:
    """Return the ends of the intervals."""
    if isinstance(grid, int) and not isinstance(grid, bool) and grid > 0:
        return *(time.low + (time.high - time.low) * place / grid for place in range(1, grid)), time.high
    return grid  # type: ignore[return-value]  # which the query checks


def _contrasts(found: FollowUp, words: "_Words") -> dict[str, tuple[Array, Array]]:
    """Return each contrast of the treated arm and the control arm with its slopes."""
    contrasts = {}
    for name in words.names:
        values, slopes = found.measured.values[name], found.measured.slopes[name]
        if name in ("log_hazard_ratio", "log_rank"):
            contrasts[name] = (values, slopes)
        else:
            last = (slice(None), -1) if values.ndim == 2 else (slice(None),)
            (control, treated), by = values[last], slopes[last]
            contrasts[name] = (treated - control, by[1] - by[0])
    return contrasts


def _stacked(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.array([value for value, _ in parts]), np.array([slopes for _, slopes in parts])


def _last(found: FollowUp, quantity: str) -> tuple[Array, Array]:
    """Return a quantity of both arms at the horizon, with its slopes."""
    values, slopes = found.measured.values[quantity], found.measured.slopes[quantity]
    return (values[:, -1], slopes[:, -1]) if values.ndim == 2 else (values, slopes)


def _curves(found: FollowUp, words: "_Words", schema: Schema) -> tuple[ArmCurves, ...]:
    arms, times = schema.treatment.labels_or_values, found.grid.times
    names = [f"{arm} at {time:.12g}" for arm in arms for time in times]
    return tuple(
        ArmCurves(
            quantity,
            schema.outcome.title,
            times,
            arms,
            found.estimates(names, found.measured.values[name], found.measured.slopes[name]),
        )
        for name, quantity in words.curves.items()
    )


def _sizes(found: FollowUp, arms: tuple[str, str]) -> tuple[Measured, ...]:
    sizes = found.sizes(arms)
    errors = np.sqrt(np.diag(sizes.covariance))
    return tuple(Measured(size, float(error)) for size, error in zip(sizes.values, errors, strict=True))


@dataclass(frozen=True)
class _Words:
    """What an effect says about itself.

    Attributes:
        assumptions: What must hold, apart from how cells were read.
        names: The contrasts, each with its name in results.
        curves: The curves, each with its name in results.
    """

    estimand: str
    method: str
    assumptions: tuple[str, ...]
    names: dict[str, str]
    curves: dict[str, str]

    @classmethod
    def of(cls, survival: Survival, query: EventCounts, schema: Schema, weighted: WeightedHistogram | None) -> "_Words":
        time, horizon = schema.outcome.name, f"{query.times[-1]:.12g}"
        values = _values(query.event, schema)
        of_interest, competing = values[1] if len(values) > 1 else "the event", len(values) > 2
        event = "an event of any kind" if competing else of_interest
        estimands = {
            "rmst": f"difference in restricted mean survival time: mean {time} without {event}, up to {horizon}, with "
            "all treated minus that with none",
            "survival": f"difference in survival: share without {event} by {time} {horizon}, with all treated minus "
            "that with none",
            "incidence": f"difference in cumulative incidence: share with {of_interest} by {time} {horizon}, with all "
            "treated minus that with none",
        }
        names = {
            "mean_time": f"restricted mean survival time to {horizon}",
            "survival": f"survival at {horizon}",
            "incidence": f"cumulative incidence of {of_interest} at {horizon}",
            "time_lost": f"mean time lost to {of_interest} by {horizon}",
            "log_hazard_ratio": f"log hazard ratio of {of_interest}",
            "log_rank": f"log-rank statistic of {of_interest}",
        }
        only = () if competing else ("time_lost", *(["incidence"] if survival.estimand != "incidence" else []))
        curves = {"survival": "survival", "cumulative_hazard": "cumulative hazard"}
        adjusted = [cut.name for cut in query.by] or list(survival.covariates)
        by = f", standardised over strata of {', '.join(map(str, query.by))}" if query.by else ""
        by = f", {weighted.method}" if weighted else by
        return cls(
            estimand=estimands[survival.estimand] + (POPULATIONS[survival.weights] if weighted else ""),
            method=f"survival from noisy counts in {len(query.times)} intervals, censored units at risk for half of "
            f"theirs{by}",
            assumptions=(
                no_confounders_but(adjusted) if adjusted else "arms are comparable without adjustment, as in a trial",
                *((_LOGISTIC, FOR_THE_INTERVAL) if weighted else ()),
                *_about_censoring(query, schema),
            ),
            names={name: each for name, each in names.items() if name not in only},
            curves=curves | ({"incidence": f"cumulative incidence of {of_interest}"} if competing else {}),
        )

    def notes(self, found: FollowUp) -> tuple[str, ...]:
        """Return notes about what the release showed."""
        left_out = len(found.included) - sum(found.included)
        share = f"the effect is that in the other strata, with {found.share_included:.0%} of the units"
        return (f"{left_out} strata had too few units beside the noise: {share}",) if left_out else ()


def _values(event: str, schema: Schema) -> tuple[str, ...]:
    """Return the names of the ways in which follow-up can end."""
    column = next((column for column in schema.covariates if column.name == event), None)
    return value_names(column) if isinstance(column, Binary | Category) else ()


def _about_censoring(query: EventCounts, schema: Schema) -> tuple[str, ...]:
    if not query.event:
        return ("every time is that of an event: none is censored before the horizon",)
    strata = " and strata" if query.by else ""
    return (
        f"censoring ({_values(query.event, schema)[0]}) is independent of the time to the event, within arms{strata}",
        f"censored units are at risk for half of their interval, and {schema.outcome.name} at its end counts as beyond",
        *schema.covariate_handling([query.event]),
    )
