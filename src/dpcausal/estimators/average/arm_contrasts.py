"""All contrasts between the arms of a trial with several arms, from one query."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from dpcausal.errors import QueryError
from dpcausal.estimators.arm_regressions import ArmRegressions
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.cell_means import CellMeans, effect_of, released_cells
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.interval_policy import hidden_covariates, whole_range
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.outcome_regression import unadjusted_covariates
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import left_by_scores
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ArmRegressionMoments, CellMoments, Cut
from dpcausal.queries.arm_regression_moments import MOST_FEATURES
from dpcausal.queries.cuts import cuts_of
from dpcausal.results.effect import Effect
from dpcausal.schema.treatment import Treatment
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers
from dpcausal.uncertainty.interval import half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate

_ESTIMAND = "mean outcome with all treated minus mean outcome with none"


@dataclass(frozen=True)
class ArmContrasts(BaseEstimator):
    """Differences in mean outcome between all declared arms, with simultaneous intervals.

    The effect itself is the declared comparison, as with `DifferenceInMeans`. Its `arm_means` and `arm_sizes` hold
    every declared arm, and its `contrasts` every arm against the reference, or all pairs.

    Estimand:
        For each contrast the average treatment effect E[Y(one arm) - Y(other arm)]. With strata or covariates, means
        are standardised to all units in declared arms.

    Assumptions:
        Arms are comparable, as in a randomised trial; with `by`, within strata, as in stratified randomisation. With
        `covariates` either arms were randomised, and covariates only explain a part of the outcome; or they hold all
        confounders, and in each arm the outcome's mean is linear in them.

    Privacy:
        One query for all arms: a unit leaves one arm and enters another, so the noise in an arm's total does not grow
        with the number of arms. With strata the noise in each cell is the same, and that in an average over strata
        grows with the root of their number: use few. With covariates the noise grows with the number of features, or
        with its square where delta is 0; each arm has a linear regression that knows the noise in its moments, as with
        `RegressionAdjustment`. Numbers have scales, as there. Intervals of all contrasts hold together: they are as
        wide as the largest of all errors asks for, as those of Dunnett and of Tukey are, with privacy noise in them.

    Attributes:
        contrasts: `reference` for every arm against the reference, `pairs` for all pairs.
        by: The strata of a stratified randomisation: names of listed covariates, and `Cut`s of real ones. Strata in
            which an arm may hold hardly any units are joined.
        covariates: The covariates to adjust for by a linear regression in each arm, in place of strata.

    Reference:
        Dunnett (1955), A multiple comparison procedure for comparing several treatments with a control; Hothorn, Bretz
        and Westfall (2008), Simultaneous inference in general parametric models. Strata: Miratrix, Sekhon and Yu
        (2013), Adjusting treatment effect estimates by post-stratification in randomized experiments. Covariates: Lin
        (2013), Agnostic notes on regression adjustments; Bernstein and Sheldon (2019), Differentially private Bayesian
        linear regression.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> doses = Treatment("dose", arms=("none", "low", "high"), compare="high")
        >>> schema = Schema(treatment=doses, outcome=Real("score", 0, 100))
        >>> plan = ArmContrasts(contrasts="pairs").estimate(Rehearsal(schema, n=3_000), epsilon=1.0)
        >>> plan.contrasts.names[0]
        'dose=low against dose=none'
        >>> round(plan.privacy_sd, 2)
        0.3
    """

    also_called: ClassVar[str] = "dunnett tukey multi_arm several_arms multiple_arms pairwise post_stratification"
    estimates_average: ClassVar[bool] = True

    contrasts: Literal["reference", "pairs"] = "reference"
    by: Sequence[str | Cut] = ()
    covariates: Sequence[str] = ()

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate all contrasts for a total of epsilon and delta; noise is Laplace, or Gaussian where smaller."""
        if self.contrasts not in ("reference", "pairs"):
            raise QueryError(
                expected='contrasts="reference" or contrasts="pairs"',
                got=repr(self.contrasts),
                hint="choose every arm against the reference, or all pairs.",
            )
        if self.by and self.covariates:
            raise QueryError(
                expected="strata, by, or covariates of a regression",
                got="both",
                hint="list the strata's columns among the covariates: each value then has a coefficient of its own.",
            )
        if self.covariates:
            allowed = guarantee_for(source, epsilon, delta)
            scaled = with_scales(source, self.covariates, allowed, MOST_FEATURES)
            return replace(self, covariates=scaled.covariates)._adjusted(scaled, allowed)  # noqa: SLF001 (its own copy)
        treatment = source.schema.treatment
        found, guarantee = released_cells(CellMoments(cuts_of(self.by) if self.by else ()), source, epsilon, delta)
        cells = found.joined()
        means = standardised(cells, treatment)
        joined = len(found.parts) - len(cells.parts)
        what = ", in strata" * bool(self.by)
        within = "arms are comparable within strata" if self.by else "arms are comparable without adjustment"
        notes = [f"{joined + 1} strata with hardly any units in an arm were joined"] * bool(joined)
        notes += ["covariates were not used: nothing is adjusted for"] * bool(source.schema.covariates and not self.by)
        return effect_of(
            source,
            cells,
            guarantee,
            means,
            contrasts_of(means, treatment, self.contrasts),
            kind="average treatment effect",
            estimand=_ESTIMAND,
            method=f"means of {len(treatment.arms)} arms from one query{what}",
            assumptions=(f"{within}, as in a randomised trial", NO_INTERFERENCE),
            notes=notes,
        )

    def _adjusted(self, scaled: ScaledCovariates, allowed: Guarantee) -> Effect:
        """Estimate contrasts that are adjusted for covariates that have a scale."""
        source = scaled.source
        schema, query = source.schema, ArmRegressionMoments(self.covariates)
        guarantee = narrower(query, source, scaled.rest, "arm_0 * outcome")
        release = source.release(query, guarantee)
        fit, ends = ArmRegressions.of(release, schema), left_at_ends(release, source)
        means = fit.means()
        contrasts = contrasts_of(means, schema.treatment, self.contrasts)
        first, last = schema.treatment.compared_places
        line = [float(place == last) - float(place == first) for place in range(len(means.names))]
        half = half_width(means.sampling_sd(line), means.noise_along(line), 0.95)
        unread = fit.signs((first, last), means).unread
        unadjusted = unadjusted_covariates(list(fit.resolution), self.covariates, schema, unread)
        effect = effect_of(
            source,
            fit,
            guarantee,
            means,
            contrasts,
            kind="average treatment effect",
            estimand=_ESTIMAND,
            method=f"means of {len(means.names)} arms from one query, adjusted by regression in each arm on "
            + ", ".join(self.covariates),
            assumptions=(no_confounders_but(self.covariates), "outcomes are linear in these", NO_INTERFERENCE),
            unadjusted=unadjusted,
            no_interval=hidden_covariates(unadjusted, self.covariates)
            or whole_range(half, schema.outcome_bounds, self.covariates),
            notes=scaled.notes,
        )
        receipts = (*scaled.receipts, *effect.receipts)
        effect = replace(effect, receipts=receipts, guarantee=spent(allowed, receipts))
        return effect.with_bias(
            left_by_scores(scaled, query.features(schema), fit.adjustments(first, last), fit.resolution, ends=ends)
        )


def standardised(cells: CellMeans, treatment: Treatment) -> JointEstimate:
    """Return every arm's mean over strata that count by their shares of all units."""

    def formula(means: Numbers, sizes: Numbers) -> Numbers:
        shares = sizes.sum(axis=1) / sizes.sum()
        return cells.middle + shares @ means

    return cells.estimates(treatment.every_label, formula)


def contrasts_of(means: JointEstimate, treatment: Treatment, which: str) -> JointEstimate:
    """Return every arm against the reference, or with "pairs" all pairs of arms."""
    reference = treatment.compared_places[0]
    others = [place for place in range(len(treatment.arms)) if place != reference]
    pairs = [(reference, place) for place in others]
    if which == "pairs":
        pairs += list(itertools.combinations(others, 2))
    return means.mapped(
        [f"{means.names[b]} against {means.names[a]}" for a, b in pairs],
        lambda every: [every[b] - every[a] for a, b in pairs],
    )
