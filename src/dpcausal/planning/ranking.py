"""Rankings of estimators by the width of the interval to expect, from public quantities only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpcausal.errors import GuaranteeError, StudyError
from dpcausal.estimators.average.arm_contrasts import ArmContrasts
from dpcausal.estimators.average.cluster_trial import ClusterTrial
from dpcausal.estimators.average.complier_effect import ComplierEffect
from dpcausal.estimators.average.difference_in_differences import DifferenceInDifferences
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import DoublyRobust
from dpcausal.estimators.average.factorial_effects import FactorialEffects
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.estimators.average.quantile_effects import QuantileEffects
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.estimators.average.stratification import Stratification
from dpcausal.estimators.average.survival import Survival
from dpcausal.estimators.average.winsorised import Winsorised
from dpcausal.guarantee import Guarantee, check_is_guarantee
from dpcausal.planning.candidate import Candidate, NotRanked, Shape
from dpcausal.planning.interval_refusals import is_often_refused
from dpcausal.planning.left_in import LeavingIn, expected_left_in, with_expected_left_in
from dpcausal.planning.precision import half_width
from dpcausal.planning.strata import propose_some_strata, propose_strata
from dpcausal.queries import Cut
from dpcausal.queries.cuts import cuts_of
from dpcausal.queries.features import design_names
from dpcausal.rehearsal import Rehearsal
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.real import Real
from dpcausal.source import Source
from dpcausal.utils.other_names import called_as
from dpcausal.utils.text import format_number, table_rows, text_lines

LINEAR, LOGISTIC = "linear outcomes", "logistic treatment"
"""The shapes that models assume."""

_OWN_DESIGN = (
    ClusterTrial,
    ComplierEffect,
    DifferenceInDifferences,
    FactorialEffects,
    QuantileEffects,
    Survival,
)
"""Estimators of a design, or of an effect, that no other estimator is for. To rank others beside them would be to
suggest strata of clusters, or a mean in place of a median."""

_MODELS = ArmContrasts, DoublyRobust, InverseWeighting, RegressionAdjustment
"""Estimators whose models noise may drown, so that there is no interval."""

_MOST_FEATURES = 30
"""Regressions with more features than this are not tried."""

_MOST_NAMES = 4
"""A label lists so many covariates; of more it gives the number."""


@dataclass(frozen=True)
class Ranking:
    """Estimators in the order of their expected error, and the reason.

    Attributes:
        candidates: The estimators that adjust for the confounders, best first; where there are none, all that fit.
        not_ranked: Estimators that are never recommended here: without adjustment, or of another effect.
        confounders: The number of declared confounders.
        shape: What is known about the shape of models.
        guarantee: The guarantee that they may use.
        rehearsal: The expectations about the table.
        assumed: The assumptions, in words.
    """

    candidates: tuple[Candidate, ...]
    not_ranked: tuple[Candidate, ...]
    confounders: int
    shape: Shape
    guarantee: Guarantee
    rehearsal: Rehearsal
    assumed: tuple[str, ...]

    @property
    def best(self) -> Estimator:
        """The estimator that comes first."""
        return self.candidates[0].estimator

    def estimate(self, source: Source) -> Effect:
        """Estimate the effect with the best estimator, for no more than the guarantee."""
        first = self.candidates[0]
        effect = first.estimator.estimate(source, epsilon=self.guarantee.epsilon, delta=first.delta)
        return with_expected_left_in(effect, first.bias, self.rehearsal)

    @property
    def why(self) -> str:
        """The reason for the first place, in one sentence."""
        first = self.candidates[0]
        if has_own_design(first.estimator):
            return "no other estimator is for its design and its effect"
        if not self.confounders:
            return self._why_of_trial(first)
        if not first.interval:
            return "no estimator that adjusts is expected to give an interval: use more epsilon or more units"
        narrowest = min(self.candidates, key=lambda each: each.half_width)
        within = f"it is expected within {format_number(first.half_width)} of the truth in 95 % of studies"
        if first.left_out:
            without = f"allowing for {', '.join(first.left_out)}, which it does not adjust for"
            return f"{within}, {without}; none that adjusts for all is expected to give an interval"
        if narrowest is first:
            return f"{within}, the least of those that adjust"
        return (
            f"{within}, without a model; {narrowest.label} would be within {format_number(narrowest.half_width)}, "
            f"where it holds that {narrowest.assumes}"
        )

    def _why_of_trial(self, first: Candidate) -> str:
        nothing = "no confounders were declared, so there is nothing to adjust for"
        if isinstance(first.estimator, ArmContrasts):
            return f"{nothing}; all arms are compared at once"
        if not isinstance(first.estimator, Winsorised):
            return nothing
        plain = next(each for each in self.candidates if isinstance(each.estimator, DifferenceInMeans))
        halves = (format_number(each.half_width) for each in (first, plain))
        return f"{nothing}; the outcome's bounds are wide, and winsorising gives ± {' instead of ± '.join(halves)}"

    @property
    def table(self) -> str:
        """The candidates, the best first, as a table in text."""
        lines = [f"{'':>3} {'interval ±':>10} {'left in':>9} {'delta':>6}  estimator (and shape)"]
        lines += [f"{place:>2}. {each.line} ({each.assumes})" for place, each in enumerate(self.candidates, start=1)]
        lines += [f"  - {each.line} ({each.not_ranked})" for each in self.not_ranked]
        return "\n".join(lines)

    def __str__(self) -> str:
        table = [("why", self.why), ("privacy", f"at most {self.guarantee}")]
        return "\n".join([self.table, "", *text_lines(table + table_rows("assumes", self.assumed))])


def check_planned(rehearsal: object, guarantee: object) -> None:
    """Raise unless this is a Rehearsal with a Guarantee: what every plan begins with."""
    if not isinstance(rehearsal, Rehearsal):
        raise StudyError(
            problem=f"A plan begins with a Rehearsal, not a {type(rehearsal).__name__}",
            hint="write Rehearsal(schema, n=5_000), with the number of units that you expect.",
        )
    check_is_guarantee(guarantee)


@called_as("rank_estimators(rehearsal, Guarantee(epsilon=1.0))")
def rank_estimators(
    rehearsal: Rehearsal,
    guarantee: Guarantee,
    *,
    covariates: Sequence[str] | None = None,
    by: Sequence[str | Cut] = (),
    shape: Shape = "unknown",
) -> Ranking:
    """Rank estimators of the average treatment effect by their expected error. Reads no data and spends nothing.

    The expected error is the distance to the truth that the estimate stays within in 95 % of studies: the half width of
    its interval, which allows for the confounding that it leaves in. Strata need no model. Where nothing is known about
    shapes, they come first unless a model is twice as precise.

    Args:
        rehearsal: The expectations about the table.
        guarantee: The guarantee to give. An estimator uses delta 0 where that means less noise.
        covariates: The confounders, the most important first; all covariates by default, and none for a trial:
            `covariates=[]`. List them where the schema declares columns that are none: clusters, periods, the treatment
            received, a second factor, an event.
        by: Strata to rank, as for `Stratification`; by default all confounders, where there are units enough to cut
            every number at quantiles into four bins or more.
        shape: `linear` where outcomes are known to be linear in covariates and treatment to follow a logistic
            regression on them; `unknown` by default.

    Example:
        >>> from dpcausal import Guarantee, Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90), Real("weight", 40, 160)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> for confounders in (["age", "weight"], []):
        ...     ranking = rank_estimators(Rehearsal(schema, 20_000), Guarantee(epsilon=1.0), covariates=confounders)
        ...     print(ranking.candidates[0].label)
        stratification by age, weight
        difference in means
    """
    check_planned(rehearsal, guarantee)
    schema = rehearsal.schema
    if guarantee.protects != schema.protects:
        raise GuaranteeError(
            expected=f"a guarantee that protects {schema.protects}, as the schema declares",
            got=f"one that protects {guarantee.protects}",
            hint=f"write Guarantee(epsilon=…, protects={schema.protects!r}).",
        )
    names = [column.name for column in schema.covariates] if covariates is None else list(covariates)
    scenario = _Scenario(rehearsal, guarantee, tuple(names))
    found = scenario.adjusted(by) if names else scenario.randomised(by)
    # Where no estimator is of all units, those of the overlap population are ranked.
    reason = NotRanked.NO if any(not each.not_ranked for each in found) else NotRanked.OTHER_EFFECT
    ranked = scenario.sorted_as_given([each for each in found if each.not_ranked == reason], shape)
    apart = tuple(each for each in found if each.not_ranked != reason)
    assumed = (*rehearsal.caveats, *scenario.caveats(ranked, shape))
    return Ranking(tuple(ranked), apart, len(names), shape, guarantee, rehearsal, assumed)


def has_own_design(estimator: Estimator) -> bool:
    """Return whether an estimator is for a design, or of an effect, that no other estimator is for."""
    return isinstance(estimator.estimator if isinstance(estimator, Winsorised) else estimator, _OWN_DESIGN)


def rank_alone(estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee) -> Ranking:
    """Return an estimator with a design of its own as the only candidate."""
    name = type(estimator).__name__
    candidate = _Scenario(rehearsal, guarantee, ()).candidate(estimator, name, "as it says itself", whole=True)
    return Ranking((candidate,), (), 0, "unknown", guarantee, rehearsal, rehearsal.caveats)


@dataclass(frozen=True)
class _Scenario:
    """Expectations about a table, and the error of each estimator under them."""

    rehearsal: Rehearsal
    guarantee: Guarantee
    confounders: tuple[str, ...]

    def caveats(self, ranked: Sequence[Candidate], shape: Shape) -> tuple[str, ...]:
        """Return the assumptions, in words."""
        if not self.confounders:
            return ("no confounders: arms are comparable, as in a randomised trial",)
        found = ["each confounder has an equal part in the confounding"]
        if any(isinstance(each.estimator, Stratification) and each.bias for each in ranked):
            found.append(
                "numbers with given edges are normal around the middle of their range; confounding within stays"
            )
        if shape == "unknown":
            found.append("nothing is known about shapes: models come first only where they are twice as precise")
        return tuple(found)

    @property
    def bias(self) -> float:
        """The confounding in a plain difference."""
        return self.rehearsal.confounding * self.rehearsal.sd if self.confounders else 0.0

    def candidate(  # noqa: PLR0913
        self,
        estimator: Estimator,
        label: str,
        assumes: str,
        *,
        bias: float = 0.0,
        whole: bool = False,
        not_ranked: NotRanked = NotRanked.NO,
        left_out: tuple[str, ...] = (),
    ) -> Candidate:
        """Return a candidate whose interval allows for this bias."""
        effect, delta = self._narrowest(LeavingIn(estimator, bias))
        if not not_ranked and effect.target == "ATO":
            # Without a model there is no effect where arms do not overlap; with one, another estimator has it.
            inner = estimator.estimator if isinstance(estimator, Winsorised) else estimator
            if isinstance(inner, Stratification):
                assumes = f"{assumes}; the effect where arms overlap"
            else:
                not_ranked = NotRanked.OTHER_EFFECT
        return Candidate(
            estimator,
            label,
            half_width(effect),
            effect.sampling_sd or 0.0,
            effect.privacy_sd,
            bias,
            delta,
            assumes,
            whole,
            not_ranked,
            left_out,
        )

    def _narrowest(self, estimator: Estimator) -> tuple[Effect, float]:
        """Return the rehearsed effect, and the delta to ask it with: 0 where that means less noise."""
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        effect = estimator.estimate(self.rehearsal, epsilon=epsilon, delta=delta)
        if not any(receipt.delta for receipt in effect.receipts):  # it uses none by itself
            return effect, 0.0
        pure = estimator.estimate(self.rehearsal, epsilon=epsilon)
        return min((effect, delta), (pure, 0.0), key=lambda each: (half_width(each[0]), each[0].privacy_sd))

    def sorted_as_given(self, found: Sequence[Candidate], shape: Shape) -> list[Candidate]:
        """Return candidates, the best first; a model comes first only where noise rarely leaves it without an interval.

        One that it often leaves without has none to expect. Those that come later are not rehearsed with noise.
        """
        ranked = sorted(found, key=lambda each: each.order(shape))
        while ranked[0].interval and self._is_often_refused(ranked[0]):
            ranked[0] = replace(ranked[0], half_width=math.inf)
            ranked.sort(key=lambda each: each.order(shape))
        return ranked

    def _is_often_refused(self, first: Candidate) -> bool:
        if not isinstance(first.estimator, _MODELS) or first.privacy_sd < first.sampling_sd:
            return False
        return is_often_refused(first.estimator, self.rehearsal, replace(self.guarantee, delta=first.delta))

    def randomised(self, by: Sequence[str | Cut]) -> list[Candidate]:
        """Return what fits a trial, where nothing needs adjustment: means, of winsorised outcomes too."""
        found = [self.candidate(DifferenceInMeans(), "difference in means", "none", whole=True)]
        if isinstance(self.rehearsal.schema.outcome, Real):
            winsorised = Winsorised(DifferenceInMeans())
            found.append(self.candidate(winsorised, "difference in winsorised means", "a lognormal tail", whole=True))
        if self._several_arms:
            found.append(self.candidate(ArmContrasts(), "contrasts of all arms", "none", whole=True))
        return found + ([self.stratification(by)] if by else [])

    @property
    def _several_arms(self) -> bool:
        return len(self.rehearsal.schema.treatment.arms) > 2

    def adjusted(self, by: Sequence[str | Cut]) -> list[Candidate]:
        """Return strata, weighting, regression, and both together; apart, what estimates something else."""
        covariates = self.confounders
        names = _listed(covariates)
        n, treated, schema = self.rehearsal.compared, self.rehearsal.treated_share, self.rehearsal.schema
        proposed = (
            propose(schema, n, covariates, treated_share=treated) for propose in (propose_strata, propose_some_strata)
        )
        strata = by or next(filter(None, proposed), ())
        found = [self.stratification(strata)] if strata else []
        if strata and isinstance(schema.outcome, Real):
            found.append(self.stratification(strata, winsorised=True))
        found.append(self.candidate(InverseWeighting(covariates=covariates), f"weighting of {names}", LOGISTIC))
        overlap: list[tuple[Estimator, str, str]] = [
            (InverseWeighting(covariates=covariates, estimand="ATO"), f"overlap weighting of {names}", LOGISTIC)
        ]
        if len(design_names(covariates, schema)) <= _MOST_FEATURES:
            both, regression = DoublyRobust(covariates=covariates), RegressionAdjustment(covariates=covariates)
            found += [
                self.candidate(both, f"doubly robust, of {names}", f"{LINEAR} or {LOGISTIC}"),
                self.candidate(regression, f"regression on {names}", LINEAR),
            ]
            if self._several_arms:
                arms = ArmContrasts(covariates=covariates)
                found.append(self.candidate(arms, f"contrasts of all arms, regression on {names}", LINEAR))
            in_overlap = DoublyRobust(covariates=covariates, estimand="ATO")
            overlap.append((in_overlap, f"doubly robust overlap weighting of {names}", f"{LINEAR} or {LOGISTIC}"))
        return [
            *found,
            *(self.candidate(*each, not_ranked=NotRanked.OTHER_EFFECT) for each in overlap),
            self.candidate(
                DifferenceInMeans(), "difference in means", "none", bias=self.bias, not_ranked=NotRanked.NOT_ADJUSTED
            ),
        ]

    def stratification(self, by: Sequence[str | Cut], *, winsorised: bool = False) -> Candidate:
        """Return strata, with the confounding within given edges and that of confounders that are not cut."""
        cuts = {cut.name: cut for cut in cuts_of(by)}
        without = tuple(name for name in self.confounders if name not in cuts)
        of = f", but not adjusted for {', '.join(without)}" if without else ""
        estimator, tail = Stratification(by=by), "; a lognormal tail" * winsorised
        return self.candidate(
            Winsorised(estimator) if winsorised else estimator,
            f"{'winsorised ' * winsorised}stratification by {_listed(list(cuts))}",
            f"none within cells{of}{tail}",
            bias=expected_left_in(estimator, self.confounders, self.rehearsal),
            whole=not without,
            left_out=without,
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} covariates"
