"""All contrasts between the arms of a trial with several arms, from one query."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpcausal.effect import Effect
from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.cell_means import CellMeans, effect_of, released_cells
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.joint_estimate import JointEstimate
from dpcausal.queries import CellMoments, Cut
from dpcausal.queries.cuts import cuts_of
from dpcausal.source import Source
from dpcausal.treatment import Treatment


@dataclass(frozen=True)
class ArmContrasts(BaseEstimator):
    """Differences in mean outcome between all declared arms, with simultaneous intervals.

    The effect itself is the declared comparison, as with `DifferenceInMeans`. Its `arm_means` and `arm_sizes` hold
    every declared arm, and its `contrasts` every arm against the reference, or all pairs.

    Estimand:
        For each contrast the average treatment effect E[Y(one arm) - Y(other arm)]. With strata, means are standardised
        to the strata's shares of all units in declared arms.

    Assumptions:
        Arms are comparable, as in a randomised trial; with `by`, within strata, as in stratified randomisation.

    Privacy:
        One query for all arms: a unit leaves one arm and enters another, so the noise in an arm's total does not grow
        with the number of arms. With strata the noise in each cell is the same, and that in an average over strata
        grows with the root of their number: use few. Intervals of all contrasts hold together: they are as wide as the
        largest of all errors asks for, as those of Dunnett and of Tukey are, with privacy noise in them.

    Attributes:
        contrasts: `reference` for every arm against the reference, `pairs` for all pairs.
        by: The strata of a stratified randomisation: names of listed covariates, and `Cut`s of real ones. Strata in
            which an arm may hold hardly any units are joined.

    Reference:
        Dunnett (1955), A multiple comparison procedure for comparing several treatments with a control; Hothorn, Bretz
        and Westfall (2008), Simultaneous inference in general parametric models. Strata: Miratrix, Sekhon and Yu
        (2013), Adjusting treatment effect estimates by post-stratification in randomized experiments.

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

    contrasts: Literal["reference", "pairs"] = "reference"
    by: Sequence[str | Cut] = ()

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate all contrasts for a total of epsilon and delta; noise is Laplace, or Gaussian where smaller."""
        if self.contrasts not in ("reference", "pairs"):
            raise QueryError(
                expected='contrasts="reference" or contrasts="pairs"',
                got=repr(self.contrasts),
                hint="choose every arm against the reference, or all pairs.",
            )
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
            _all_pairs(means, treatment) if self.contrasts == "pairs" else reference_contrasts(means, treatment),
            estimand="average treatment effect: mean outcome with all treated minus mean outcome with none",
            method=f"means of {len(treatment.arms)} arms from one query{what}",
            assumptions=(f"{within}, as in a randomised trial", NO_INTERFERENCE),
            notes=notes,
        )


def standardised(cells: CellMeans, treatment: Treatment) -> JointEstimate:
    """Return every arm's mean over strata that count by their shares of all units."""
    strata, arms = cells.sizes.shape
    units = cells.sizes.sum()
    shares = cells.sizes.sum(axis=1) / units
    apart = cells.means - shares @ cells.means
    weights = np.einsum("s,ab->asb", shares, np.eye(arms))
    # One more unit in a cell raises the share of its stratum, for the means of all arms.
    by_size = np.repeat(apart.T[:, :, None], arms, axis=2) / units
    sampling = (apart.T * shares) @ apart / units
    return cells.averaged(treatment.every_label, weights, by_size if strata > 1 else None, sampling)


def reference_contrasts(means: JointEstimate, treatment: Treatment) -> JointEstimate:
    """Return every arm against the reference."""
    reference = treatment.compared_places[0]
    return _contrasts(means, [(reference, place) for place in _others(treatment)])


def _all_pairs(means: JointEstimate, treatment: Treatment) -> JointEstimate:
    reference, others = treatment.compared_places[0], _others(treatment)
    return _contrasts(means, [(reference, place) for place in others] + list(itertools.combinations(others, 2)))


def _others(treatment: Treatment) -> list[int]:
    return [place for place in range(len(treatment.arms)) if place != treatment.compared_places[0]]


def _contrasts(means: JointEstimate, pairs: Sequence[tuple[int, int]]) -> JointEstimate:
    lines = np.eye(len(means.names))
    return means.mapped(
        [f"{means.names[b]} against {means.names[a]}" for a, b in pairs],
        [means.values[b] - means.values[a] for a, b in pairs],
        [(lines[b] - lines[a]).tolist() for a, b in pairs],
    )
