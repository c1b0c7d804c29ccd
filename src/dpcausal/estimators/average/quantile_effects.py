"""Differences between the arms' quantiles, and each arm's distribution, from one noisy histogram."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpcausal.errors import QueryError, SchemaError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.distributions import Distributions, Place, Quantile, WeightedDistributions, several
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.estimators.weighted_histogram import FOR_THE_INTERVAL, POPULATIONS, Weighting, check_weighting
from dpcausal.queries import ArmOutcomeCounts
from dpcausal.queries.features import Estimand
from dpcausal.results.arm_curves import ArmCurves
from dpcausal.results.effect import Effect
from dpcausal.schema.real import Real
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers
from dpcausal.uncertainty.interval import NoiseTerm, merged
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.text import format_number
from dpcausal.utils.validation import is_number

_BINS = ((500, 16), (4_000, 32))
"""Up to this product of units and epsilon, so many bins by default; beyond the last, `_MOST_BINS`. More bins mean more
noise in the distribution, fewer a coarser one."""

_MOST_BINS = 64

_WEIGHTED_NOISE, _MOST_WEIGHTED_BINS = 10, 48
"""About how many times as much noise weighted counts have, and the most bins by default, which are fewer for it."""

_CURVE_POINTS = 15
"""The distribution functions are shown at this many edges at most."""


@dataclass(frozen=True)
class QuantileEffects(BaseEstimator):
    """Differences between the arms' quantiles of the outcome, such as medians, and each arm's distribution.

    Estimand:
        An interpolated quantile of the outcome with all treated minus the same quantile with none. It is the effect on
        the distribution, and not the median of the units' effects. Outcomes of one bin count as spread evenly over it,
        as in the median of grouped data. Of whole values, such as days, a plain median is a whole number, and the
        interval is not one for that: a note has limits of the plain medians and of their difference, which are edges of
        bins. The effect itself is the median's, or that of the first quantile where 0.5 is not
        among them; `contrasts` holds all of them, and `curves` both arms' distribution functions with bands.

    Assumptions:
        Arms are comparable without adjustment, as in a randomised trial, or after weighting by the propensity score of
        `covariates`, which a logistic regression describes. Bins are narrow: within one, the distribution function is
        nearly a straight line. For the interval: in each arm there are enough units that the quantile is away from the
        bounds, otherwise there is none; with weights, covariates shift outcomes, about alike in both arms.

    Privacy:
        One query: noisy counts of outcomes in public bins of each arm. One unit leaves one bin and enters another, so
        noise in each count does not depend on the number of bins. Noise in a share adds up over bins: at the median it
        grows as the root of their number. Quantiles cost nothing beyond the counts, however many there are. With
        `covariates` three queries share epsilon: moments, a private logistic regression, and counts weighted by its
        score, with noise in proportion to the largest weight, 1 / clip for the ATE and 1 for the ATO.

    Attributes:
        quantiles: The quantiles, between 0 and 1.
        bins: How many bins of one width there are between the outcome's bounds; by default 16, 32 or 64, as n times
            epsilon is up to 500, up to 4,000 or larger.
        edges: Public edges of the bins, in place of `bins`; those beyond the outcome's bounds are left out. Give them
            for skewed outcomes: narrow bins where quantiles are expected. For outcomes that pile up at round values,
            put edges half way between these. Where several sites answer, give edges or bins: the same for all.
        covariates: Covariates to adjust for by inverse probability weights; there are then at most 61 bins.
        weights: Whose distribution the weights are for: that of all units (`ATE`), the treated (`ATT`), the controls
            (`ATC`), or those of whom either arm could be expected (`ATO`), which has the least noise.
        clip: With `covariates`, scores are clipped to at most clip and 1 - clip.

    Reference:
        Woodruff (1952), Confidence Intervals for Medians and Other Position Measures, for the interval of a quantile by
        inverting that of the distribution function; Zou and Donner (2008), Construction of Confidence Limits about
        Effect Measures, for that of a difference; Firpo (2007), Efficient Semiparametric Estimation of Quantile
        Treatment Effects, for weights.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100))
        >>> trial = Rehearsal(schema, n=5_000, outcome_sd=15)
        >>> plan = QuantileEffects(quantiles=[0.5, 0.9]).estimate(trial, epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.58, 0.27)
    """

    also_called: ClassVar[str] = (
        "qte quantile quantiles quantile_effect quantile_treatment_effect quantile_regression median "
        "median_difference distribution cdf"
    )

    quantiles: Sequence[float] = (0.1, 0.5, 0.9)
    bins: int | None = None
    edges: Sequence[float] = ()
    covariates: Sequence[str] = ()
    weights: Estimand = "ATE"
    clip: float = 0.1

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate effects for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        edges, allowed = self._edges(source, epsilon), guarantee_for(source, epsilon, delta)
        low, high = source.schema.outcome_bounds
        grid = np.array([low, *edges, high])
        both: Distributions
        if self.covariates:
            weighting = Weighting(check_weighting(self.covariates, None), self.weights, self.clip)
            weighted = weighting.release(source, allowed, edges, "", lambda _: (grid[1:] + grid[:-1]) / 2)
            both, guarantee, receipts = (
                WeightedDistributions.weighted(weighted, grid),
                weighted.guarantee,
                weighted.receipts,
            )
        else:
            query, weighted = ArmOutcomeCounts(edges), None
            guarantee = narrower(query, source, allowed, "count_0_0")
            release = source.release(query, guarantee)
            both, receipts = Distributions.of(release, source, grid), (release.receipt,)
        levels = tuple(map(float, self.quantiles))
        found = [[both.quantile(arm, level) for level in levels] for arm in (0, 1)]
        contrasts = _contrasts(levels, both, found)
        place = levels.index(0.5) if 0.5 in levels else 0
        along = [float(at == place) for at in range(len(levels))]
        labels = source.schema.treatment.labels_or_values
        refusal, named = weighted.refusal if weighted else "", f"interpolated {_named(levels[place])}"
        effect = Effect(
            estimand=f"difference in the {named} of the outcome: with all treated minus with none"
            + (POPULATIONS[self.weights] if weighted else ""),
            target=self.weights if weighted else "ATE",
            clip=weighted.query.clip if weighted else None,
            arms=labels,
            outcome=source.schema.outcome.title,
            quantity=f"{named} of {source.schema.outcome.title}",
            estimate=contrasts.values[place],
            sampling_sd=contrasts.sampling_sd(along),
            noise=_terms(contrasts.noise_along(along)),
            n=source.n,
            method=f"quantiles of noisy distribution functions on {len(grid) - 1} public bins"
            + (f", {weighted.method}" if weighted else ""),
            guarantee=guarantee,
            assumptions=(
                *(
                    (f"{no_confounders_but(self.covariates)}, and treatment follows a logistic regression on these",)
                    if weighted
                    else ("arms are comparable without adjustment, as in a randomised trial",)
                ),
                *((FOR_THE_INTERVAL,) if weighted else ()),
                NO_INTERFERENCE,
                "quantiles are interpolated: outcomes of one bin count as spread evenly over it",
                *source.schema.data_handling,
            ),
            receipts=receipts,
            notes=(
                *_arm_notes(levels, found, labels, rehearsed=receipts[0].digest is None),
                *_plain_note(levels[place], both, labels, rehearsed=receipts[0].digest is None),
                *(weighted.notes if weighted else ()),
                *source.caveats,
            ),
            no_interval=refusal or _refusal(levels[place], [each[place] for each in found]),
            arm_sizes=None if weighted else _arm_sizes(both, labels),
            contrasts=contrasts if len(levels) > 1 else None,
            curves=(_curves(both, source),),
        )
        if weighted:
            return warned(effect, source.schema, Signs())
        sizes = zip(both.arms, both.size_sds, strict=True)
        return warned(effect, source.schema, Signs(sizes=tuple(Measured(arm.size, sd) for arm, sd in sizes)))

    @property
    def advice_for_sites(self) -> str:
        """What to change for several sites, where the number of bins would follow the units of each; or empty."""
        return (
            "" if self.bins is not None or self.edges else "give the estimator bins or edges, the same for all sites."
        )

    def _edges(self, source: Source, epsilon: float) -> Sequence[float]:
        """Return the inner edges of the bins, and raise unless all parameters are usable."""
        outcome = source.schema.outcome
        if not isinstance(outcome, Real):
            raise SchemaError(
                problem=f"The outcome {outcome.name!r} has two values, and this needs a number",
                hint="the distribution of a binary outcome is its risk: use DifferenceInMeans.",
            )
        levels = tuple(self.quantiles) if not isinstance(self.quantiles, str) else ()
        usable = all(is_number(level) and 0 < level < 1 for level in levels) and len(set(levels)) == len(levels) > 0
        whole = self.bins is None or (type(self.bins) is int and 2 <= self.bins <= 2 * _MOST_BINS)
        if not (usable and whole) or (self.bins is not None and len(self.edges) > 0):
            raise QueryError(
                expected=f"different quantiles between 0 and 1, and 2 to {2 * _MOST_BINS} bins, or edges instead",
                got=f"quantiles={self.quantiles!r}, bins={self.bins!r}, edges={self.edges!r}"[:200],
                hint="write for instance QuantileEffects(quantiles=[0.1, 0.5, 0.9]).",
            )
        if len(self.edges) > 0:
            inside = [edge for edge in self.edges if not is_number(edge) or outcome.low < edge < outcome.high]
            return inside or self.edges  # which the query refuses
        noise, most = (_WEIGHTED_NOISE, _MOST_WEIGHTED_BINS) if self.covariates else (1, _MOST_BINS)
        bins = self.bins or next((each for size, each in _BINS if source.n * epsilon / noise <= size), most)
        return [outcome.low + (outcome.high - outcome.low) * place / bins for place in range(1, bins)]


def _contrasts(levels: Sequence[float], both: Distributions, found: Sequence[Sequence[Quantile]]) -> JointEstimate:
    """Return the difference at each quantile with their joint error; slopes turn errors of shares into theirs."""
    values, rises = (np.array([[getattr(each, part) for each in own] for own in found]) for part in ("value", "slope"))

    def formula(shares: Numbers) -> Numbers:
        control, treated = values - rises * (shares.reshape(2, -1) - levels)  # more outcomes below: a lower quantile
        return treated - control

    return both.shares([each.place for own in found for each in own]).mapped(list(map(_named, levels)), formula)


def _curves(both: Distributions, source: Source) -> ArmCurves:
    """Return both distribution functions, at some of the edges."""
    count = both.arms[0].bins - 1
    several_edges = min(count, _CURVE_POINTS)
    edges = sorted({round((place + 1) * (count + 1) / (several_edges + 1)) - 1 for place in range(several_edges)})
    places = [Place(at, edge + 1.0, float(arm.rising[edge + 1])) for at, arm in enumerate(both.arms) for edge in edges]
    labels = source.schema.treatment.labels_or_values
    grid = tuple(float(both.arms[0].grid[edge + 1]) for edge in edges)
    joint = replace(
        both.shares(places),
        names=tuple(f"{label}, below {format_number(edge)}" for label in labels for edge in grid),
        values=tuple(float(arm.shares[edge]) for arm in both.arms for edge in edges),
    )
    return ArmCurves("distribution", source.schema.outcome.title, grid, labels, joint)


def _arm_sizes(both: Distributions, labels: tuple[str, str]) -> JointEstimate:
    """Return both arms' sizes; they have noise where arms are private."""
    noise = [
        several(both.release, np.array([float(at == place) for at in (0, 1)]) * math.sqrt(arm.bins), arm.bins)
        for place, arm in enumerate(both.arms)
        if not arm.known
    ]
    sizes = (both.arms[0].size, both.arms[1].size)
    return JointEstimate(labels, sizes, ((0.0, 0.0), (0.0, 0.0)), tuple(noise))


def _terms(noise: Sequence[NoiseTerm]) -> tuple[NoiseTerm, ...]:
    """Return the noise as one term a family."""
    families = dict.fromkeys(term.family for term in noise)
    return tuple(merged([term for term in noise if term.family == family]) for family in families)


def _arm_notes(
    levels: Sequence[float], found: Sequence[Sequence[Quantile]], labels: tuple[str, str], *, rehearsed: bool
) -> tuple[str, ...]:
    """Return each arm's quantiles with their own intervals, which need not be symmetric."""
    if rehearsed:
        return ()
    return tuple(
        f"interpolated {_named(level)}: "
        + ", ".join(
            f"{label} {format_number(own[place].value)}"
            f" ({format_number(own[place].low)} to {format_number(own[place].high)})"
            for label, own in zip(labels, found, strict=True)
        )
        for place, level in enumerate(levels)
    )


def _plain_note(level: float, both: Distributions, labels: tuple[str, str], *, rehearsed: bool) -> tuple[str, ...]:
    """Return limits of the quantiles that are not interpolated, and of their difference."""
    if rehearsed:
        return ()
    limits = both.plain_quantiles(level)
    arms = ", ".join(
        f"{label} {format_number(low)} to {format_number(high)}"
        for label, (low, high) in zip(labels, limits, strict=True)
    )
    (low, high), (treated_low, treated_high) = limits
    apart = f"{format_number(treated_low - high)} to {format_number(treated_high - low)}"
    return (f"not interpolated, the {_named(level)} is within edges of bins: {arms}; the difference {apart} (95 %)",)


def _named(level: float) -> str:
    """Return a quantile's name.

    Example:
        >>> _named(0.5), _named(0.1)
        ('median', '0.1 quantile')
    """
    return "median" if level == 0.5 else f"{level:g} quantile"


def _refusal(level: float, found: Sequence[Quantile]) -> str:
    """Return why there is no interval; empty where there is one."""
    if any(each.bounded for each in found):
        return f"in an arm this small the {_named(level)} may be anywhere down to or up to the outcome's bounds"
    return ""
