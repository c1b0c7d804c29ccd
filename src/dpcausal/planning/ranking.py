"""Rankings of estimators by their expected error, from public quantities only."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpcausal.effect import Effect, Estimator
from dpcausal.errors import GuaranteeError
from dpcausal.estimators.average import (
    DifferenceInMeans,
    DoublyRobust,
    InverseWeighting,
    RegressionAdjustment,
    Stratification,
)
from dpcausal.estimators.propensity import PropensityUncertainty
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Cut
from dpcausal.queries.cuts import bins, cuts_of
from dpcausal.queries.features import design_names, feature_names
from dpcausal.real import Real
from dpcausal.rehearsal import Rehearsal
from dpcausal.source import Source
from dpcausal.text import format_number, table_rows, text_lines

_VARIED = 0.2
"""The assumed difference of effects between units one logit apart, in standard deviations of the outcome."""

_EXPLAINED = 0.25
"""The share of the outcome's variance that covariates are assumed to explain."""

_MOST_FEATURES = 30
"""Regressions with more features than this are not tried."""

_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
"""The numbers of confounders to try."""


@dataclass(frozen=True)
class Candidate:
    """An estimator and its expected error.

    Attributes:
        estimator: The estimator, ready to use.
        label: Its name, in words.
        sampling_sd: The standard deviation of the sampling error.
        privacy_sd: The standard deviation of the privacy noise.
        bias: The expected residual confounding, or the expected distance to the estimand.
        delta: The delta to use: 0 where Laplace noise is smaller than the Gaussian noise that a delta allows.
        interval: Whether it is expected to yield an interval.
    """

    estimator: Estimator
    label: str
    sampling_sd: float
    privacy_sd: float
    bias: float
    delta: float
    interval: bool

    @property
    def error(self) -> float:
        """The expected error, as a root mean square error (RMSE)."""
        return math.hypot(self.sampling_sd, self.privacy_sd, self.bias)


@dataclass(frozen=True)
class Ranking:
    """Estimators in the order of their expected error, and the reason.

    Attributes:
        candidates: The estimators, best first.
        confounders: The number of declared confounders.
        worthwhile: The largest number of equally important confounders for which adjusting is worth its noise; with
            more, not adjusting has the smaller error.
        guarantee: The guarantee that they would have.
        assumed: The assumptions, in words.
    """

    candidates: tuple[Candidate, ...]
    confounders: int
    worthwhile: int
    guarantee: Guarantee
    assumed: tuple[str, ...]

    @property
    def best(self) -> Estimator:
        """The estimator with the smallest expected error."""
        return self.candidates[0].estimator

    def estimate(self, source: Source) -> Effect:
        """Estimate the effect with the best estimator, for no more than the guarantee."""
        return self.best.estimate(source, epsilon=self.guarantee.epsilon, delta=self.candidates[0].delta)

    @property
    def why(self) -> str:
        """The reason for the first place, in one sentence."""
        first = self.candidates[0]
        plain = next(each for each in self.candidates if isinstance(each.estimator, DifferenceInMeans))
        parts = {"sampling": first.sampling_sd, "privacy noise": first.privacy_sd, "residual confounding": first.bias}
        largest = max(parts, key=lambda name: parts[name])
        if first is plain:
            others = [each for each in self.candidates if each is not plain]
            if not others:
                return "no confounders were declared, so there is nothing to adjust for"
            return (
                f"what adjusting would remove ({format_number(plain.bias)}) is less than the noise it would add "
                f"({format_number(others[0].privacy_sd)} in place of {format_number(plain.privacy_sd)})"
            )
        return (
            f"its expected error is {format_number(first.error)}, most of it {largest}; "
            f"a plain difference in means would have {format_number(plain.error)}, "
            f"{format_number(plain.bias)} of it confounding"
        )

    @property
    def table(self) -> str:
        """The candidates, the best first, as a table in text."""
        lines = [f"{'':>3} {'expected error':>14} {'sampling':>10} {'privacy':>10} {'bias':>10}  estimator"]
        for place, each in enumerate(self.candidates, start=1):
            sizes = " ".join(f"{format_number(size):>10}" for size in (each.sampling_sd, each.privacy_sd, each.bias))
            refused = "" if each.interval else " (no interval)"
            lines.append(f"{place:>2}. {format_number(each.error):>14} {sizes}  {each.label}{refused}")
        return "\n".join(lines)

    def __str__(self) -> str:
        table = [("why", self.why), ("adjusting", self._worthwhile()), ("privacy", str(self.guarantee))]
        return "\n".join([self.table, "", *text_lines(table + table_rows("assumes", self.assumed))])

    def _worthwhile(self) -> str:
        if self.worthwhile == 0:
            return "is worth its noise for no confounder: use more epsilon, more units or tighter bounds"
        more = " or more" if self.worthwhile == _COUNTS[-1] else ""
        return (
            f"is worth its noise for about {self.worthwhile}{more} equally important ones; {self.confounders} declared"
        )


def rank_estimators(
    rehearsal: Rehearsal,
    guarantee: Guarantee,
    *,
    covariates: Sequence[str] | None = None,
    by: Sequence[str | Cut] = (),
) -> Ranking:
    """Rank estimators of the average treatment effect by their expected error. Reads no data and spends nothing.

    Args:
        rehearsal: The expectations about the table.
        guarantee: The guarantee to give.
        covariates: The confounders; all covariates by default, and none for a trial: `covariates=[]`.
        by: Strata to consider, as for `Stratification`.

    Example:
        >>> from dpcausal import Guarantee, Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90), Real("weight", 40, 160)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> for n in (200, 200_000):
        ...     print(rank_estimators(Rehearsal(schema, n), Guarantee(epsilon=1.0)).candidates[0].label)
        difference in means
        doubly robust, of age, weight
    """
    schema = rehearsal.schema
    if guarantee.protects != schema.protects:
        raise GuaranteeError(
            expected=f"a guarantee that protects {schema.protects}, as the schema declares",
            got=f"one that protects {guarantee.protects}",
            hint=f"write Guarantee(epsilon=…, protects={schema.protects!r}).",
        )
    names = [column.name for column in schema.covariates] if covariates is None else covariates
    scenario = _Scenario(rehearsal, guarantee, len(names))
    candidates = [scenario.difference_in_means(), *([scenario.stratification(by, names)] if by else ())]
    candidates += scenario.adjusted(names) if names else ()
    ranked = sorted(candidates, key=lambda each: each.error)
    assumed = (*rehearsal.caveats, *scenario.caveats)
    return Ranking(tuple(ranked), len(names), _worthwhile(rehearsal, guarantee), guarantee, assumed)


def _worthwhile(rehearsal: Rehearsal, guarantee: Guarantee) -> int:
    """Return the largest number of confounders for which adjusting for all of them is worth its noise."""

    def too_many(count: int) -> bool:
        covariates = [Real(f"confounder {place}", 0, 1) for place in range(count)]
        scenario = _Scenario(
            replace(rehearsal, schema=replace(rehearsal.schema, covariates=covariates)), guarantee, count
        )
        adjusted = scenario.adjusted([column.name for column in covariates])
        return min(each.error for each in adjusted) >= scenario.difference_in_means().error

    place = bisect_left(_COUNTS, x=1, key=too_many)
    return _COUNTS[place - 1] if place else 0


@dataclass(frozen=True)
class _Scenario:
    """Expectations about a table, and the error of each estimator under them."""

    rehearsal: Rehearsal
    guarantee: Guarantee
    confounders: int

    @property
    def caveats(self) -> tuple[str, ...]:
        """The assumptions, in words."""
        if not self.confounders:
            return ("no confounders: arms are comparable, as in a randomised trial",)
        return (
            "each confounder has an equal part, and models are of the right shape",
            f"for overlap weights: effects differ by {_VARIED:g} standard deviations between units a logit apart",
            "where an arm is smaller than twice the clipping bound of scores, clipping leaves residual confounding",
        )

    @property
    def bias(self) -> float:
        """The confounding in a plain difference."""
        return self.rehearsal.confounding * self.rehearsal.sd if self.confounders else 0.0

    def clipping_bias(self, clip: float) -> float:
        """Return the residual confounding of clipped scores where an arm is rare."""
        treated = self.rehearsal.treated_share
        return self.bias * max(1 - min(treated, 1 - treated) / 2 / clip, 0.0)

    def rehearsed(self, estimator: Estimator) -> tuple[Effect, float]:
        """Return an estimator's rehearsed effect, and the delta with which its noise is smallest."""
        deltas = sorted({0.0, self.guarantee.delta})
        plans = [
            (estimator.estimate(self.rehearsal, epsilon=self.guarantee.epsilon, delta=delta), delta) for delta in deltas
        ]
        return min(plans, key=lambda each: each[0].privacy_sd)

    def candidate(
        self, estimator: Estimator, label: str, *, bias: float = 0.0, noise: float = 0.0, explained: float = 0.0
    ) -> Candidate:
        """Return a candidate with a bias, and with noise that its rehearsed effect does not include.

        The sampling variance is that of two means, reduced by the share that covariates explain. The one of a rehearsed
        effect may be larger: it includes what noise could hide.
        """
        plan, delta = self.rehearsed(estimator)
        variance = self.rehearsal.sd**2 * sum(1 / size for size in self.rehearsal.expected_sizes)
        sampling = math.sqrt(variance * (1 - explained))
        return Candidate(
            estimator, label, sampling, math.hypot(plan.privacy_sd, noise), bias, delta, not plan.no_interval
        )

    def difference_in_means(self) -> Candidate:
        """Return the plain difference."""
        return self.candidate(DifferenceInMeans(), "difference in means", bias=self.bias)

    def stratification(self, by: Sequence[str | Cut], names: Sequence[str]) -> Candidate:
        """Return strata; of a number, the square of a bin's share of the range stays as confounding."""
        cuts = cuts_of(by)
        counts = dict(zip(cuts, bins(cuts, self.rehearsal.schema), strict=True))
        removed = sum(1 - (1 / counts[cut] ** 2 if cut.edges else 0.0) for cut in cuts if cut.name in names)
        left = self.bias * (1 - removed / self.confounders) if self.confounders else 0.0
        return self.candidate(
            Stratification(by=by), f"stratification by {', '.join(cut.name for cut in cuts)}", bias=left
        )

    def adjusted(self, covariates: Sequence[str]) -> list[Candidate]:
        """Return weighting, regression, and both together, on all these confounders."""
        schema, names = self.rehearsal.schema, ", ".join(covariates)
        treated = self.rehearsal.treated_share
        spread, features = (
            treated * (1 - treated) * self.rehearsal.covariate_sd**2,
            len(feature_names(covariates, schema)),
        )
        uncertainty = PropensityUncertainty.of(
            self.rehearsal.n, self.guarantee.epsilon / 2, len(covariates), features, spread
        )
        moved, ridge = uncertainty.noise_sd * self.rehearsal.sd / 4, self.bias * min(uncertainty.ridge, 1.0)
        overlap_bias = math.hypot(ridge, abs(1 - 2 * treated) * _VARIED * self.rehearsal.sd)
        overlap = InverseWeighting(covariates=covariates, estimand="ATO")
        clipping_bias = [self.clipping_bias(clip) for clip in (InverseWeighting.clip, DoublyRobust.clip or 0.01)]
        candidates = [
            self.candidate(
                InverseWeighting(covariates=covariates),
                f"weighting of {names}",
                bias=ridge + clipping_bias[0],
                noise=moved,
            ),
            self.candidate(overlap, f"overlap weighting of {names}", bias=overlap_bias, noise=moved),
        ]
        if len(design_names(covariates, schema)) <= _MOST_FEATURES:
            regression, both = RegressionAdjustment(covariates=covariates), DoublyRobust(covariates=covariates)
            shrunk = abs(
                self.rehearsed(regression)[0].estimate
            )  # without an effect, what it finds is what it leaves in
            candidates += [
                self.candidate(both, f"doubly robust, of {names}", bias=clipping_bias[1], explained=_EXPLAINED),
                self.candidate(regression, f"regression on {names}", bias=shrunk, explained=_EXPLAINED),
            ]
        return candidates
