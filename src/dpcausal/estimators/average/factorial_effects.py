"""Main effects and interactions of two crossed factors, from one query."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.cell_means import effect_of, released_cells
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.queries import CellMoments, Cut
from dpcausal.queries.query import value_names
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.schema import Schema
from dpcausal.source import Source
from dpcausal.uncertainty.derivatives import Numbers


@dataclass(frozen=True)
class FactorialEffects(BaseEstimator):
    """Main effects and interactions of the treatment and a second randomised factor, from the means of their cells.

    The effect itself is the main effect of the declared comparison. Its `contrasts` hold, with simultaneous intervals,
    the main effect of every arm against the reference, of every level of the factor against its first, and every
    interaction. Its `arm_means` hold the arms, averaged over levels, and then the cells.

    Estimand:
        The main effect of an arm is the mean over the factor's levels, which count alike, of E[Y(arm, level) -
        Y(reference, level)]; of a level likewise. An interaction is the effect of an arm at a level less its effect at
        the first level.

    Assumptions:
        Both factors were randomised, so that all cells are comparable.

    Privacy:
        One query for all cells: a unit leaves one and enters another, so the noise in a cell's total does not grow with
        their number.

    Attributes:
        factor: The second factor: a covariate with listed values. Its first value is its reference.

    Reference:
        Dasgupta, Pillai and Rubin (2015), Causal inference from 2^K factorial designs by using potential outcomes. An
        interaction there is half of what it is here.

    Example:
        >>> from dpcausal import Binary, Rehearsal, Schema, Treatment
        >>> stroke = Schema(
        ...     treatment=Treatment("aspirin", arms=("no", "yes")),
        ...     outcome=Binary("died"),
        ...     covariates=[Binary("heparin", values=("no", "yes"))],
        ... )
        >>> plan = FactorialEffects(factor="heparin").estimate(Rehearsal(stroke, n=10_000), epsilon=1.0)
        >>> plan.contrasts.names[1:]
        ('heparin=yes against heparin=no', 'interaction of aspirin=yes and heparin=yes')
    """

    also_called: ClassVar[str] = "factorial factorial_design two_way_anova interaction interactions"

    factor: str

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return an estimator whose second factor is the first covariate."""
        return cls(next((column.name for column in schema.covariates), ""))

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate all effects for a total of epsilon and delta; noise is Laplace, or Gaussian where smaller."""
        levels = self._levels(source)
        cells, guarantee = released_cells(CellMoments([Cut(self.factor)]), source, epsilon, delta)
        treatment = source.schema.treatment
        arms = treatment.every_label
        reference = treatment.compared_places[0]
        others = [place for place in range(len(arms)) if place != reference]

        def all_means(means: Numbers, _: Numbers) -> Numbers:
            return cells.middle + np.concatenate([means.mean(axis=0), means.ravel()])

        def contrasts(means: Numbers, _: Numbers) -> Numbers:
            apart = means[:, others] - means[:, [reference]]
            of_level = means.mean(axis=1)
            interactions = (apart[1:] - apart[0]).T.ravel()
            return np.concatenate([apart.mean(axis=0), of_level[1:] - of_level[0], interactions])

        names = [f"{arm}, {level}" for level in levels for arm in arms]
        contrast_names = [
            *(f"{arms[place]} against {arms[reference]}" for place in others),
            *(f"{level} against {levels[0]}" for level in levels[1:]),
            *(f"interaction of {arms[place]} and {level}" for place in others for level in levels[1:]),
        ]
        return effect_of(
            source,
            cells,
            guarantee,
            cells.estimates([*arms, *names], all_means),
            cells.estimates(contrast_names, contrasts),
            kind="main effect",
            estimand="mean outcome with all treated minus mean outcome with none, averaged over the "
            f"{len(levels)} levels of {self.factor}, which count alike",
            method=f"means of {len(names)} cells, {len(arms)} arms by {len(levels)} levels of {self.factor}, "
            "from one query",
            assumptions=(
                f"treatment and {self.factor} were both randomised",
                NO_INTERFERENCE,
                *source.schema.covariate_handling([self.factor]),
            ),
        )

    def _levels(self, source: Source) -> tuple[str, ...]:
        for column in source.schema.covariates:
            if column.name == self.factor and isinstance(column, Binary | Category):
                return column.labels_or_values if isinstance(column, Binary) else value_names(column)
        raise QueryError(
            problem=f"The factor must be a covariate with listed values, not {self.factor!r}",
            hint='declare it as a Binary or Category covariate: FactorialEffects(factor="heparin").',
        )
