"""Difference in means of all units so far, at each look of a prepaid schedule."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dpcausal.estimators.average.arm_contrasts import contrasts_of, standardised
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.cell_means import CellMeans, effect_of
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.schedule import narrower_at_last_look, released_so_far
from dpcausal.queries import Cut, LookMoments
from dpcausal.queries.look_moments import running_weights, weights
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.arrays import Array


@dataclass(frozen=True)
class ScheduledDifference(BaseEstimator):
    """Difference in mean outcome between arms among all units so far, at each look of a schedule that is paid for once.

    Units enter a growing table in cohorts, such as the weeks of a year, and there is a look after each. The first look
    pays epsilon and delta for all looks of the schedule; later looks cost nothing. Each look reads the vault that it is
    given, and keeps the answers of the looks before it.

    Estimand:
        The average treatment effect E[Y(treated) - Y(control)] in the population of the units so far. With more arms
        than two, `contrasts` holds every arm against the reference.

    Assumptions:
        Arms are comparable, as in a randomised trial. A unit stays in the cohort in which it entered: privacy rests on
        it, so cohorts must be those of the column that the owner of the data declares as `Schema.entry`. Outcomes of
        earlier cohorts are final: where they change, the estimate is a mixture of old and new values.

    Privacy:
        At look t a cohort counts with a public weight that falls with its age, and the sums over all units follow from
        the looks so far. With a delta (Gaussian noise) the noise in a running sum has 2.3 times the standard deviation
        of a single look's for 52 looks, where 52 separate looks would need 7.2 times. Without a delta (Laplace noise)
        each cohort is read at its own look, and the noise grows with the root of the number of looks so far. All sizes
        of noise are known, and so is how the noise of two looks correlates (`noise_correlations`).

    Attributes:
        cohorts: The covariate that the schema declares as `entry`: the name of a listed one, in the order of entry, or
            a `Cut` of a real one. Declare all cohorts in advance, also those to come: there are as many looks.
        look: How many cohorts there are so far; None for all of them, the last look. Looks that were missed are made
            up for, from the same table.

    Reference:
        Fichtenberger, Henzinger and Upadhyay (2023), Constant matters: fine-grained error bound on differentially
        private continual observation; Denisov, McMahan, Rush, Smith and Thakurta (2022), Improved differential privacy
        for SGD via optimal private linear operators on adaptive streams. Page: docs/growing-tables.md.

    Example:
        >>> from dpcausal import Category, Real, Rehearsal, Schema, Treatment
        >>> week = Category("week", list(range(1, 53)))
        >>> spend = Real("spend", 0, 100)
        >>> schema = Schema(treatment=Treatment("arm"), outcome=spend, covariates=[week], entry="week")
        >>> year = Rehearsal(schema, n=52_000)
        >>> for look in (1, 26, 52):
        ...     effect = ScheduledDifference("week", look).estimate(year, epsilon=1.0, delta=1e-6)
        ...     print(look, round(effect.sampling_sd, 2), round(effect.privacy_sd, 2))
        1 1.83 1.95
        26 0.36 0.11
        52 0.25 0.06
    """

    also_called: ClassVar[str] = "continual_release continual_observation interim_looks weekly_readout growing_table"
    estimates_average: ClassVar[bool] = True
    counts_missing: ClassVar[bool] = False  # each look would pay for it again

    cohorts: str | Cut
    look: int | None = None

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return an estimator whose cohorts are those of the schema's column of entry, or of the first listed one."""
        listed = next((column.name for column in schema.covariates if isinstance(column, Binary | Category)), "")
        return cls(schema.entry or listed)

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect so far; epsilon and delta are for all looks together, and noise is as in `Privacy`."""
        schema, treatment = source.schema, source.schema.treatment
        looks = self._query(1).looks(schema)
        now = self._query(looks if self.look is None else self.look)
        now.looks(schema)
        guarantee = narrower_at_last_look(now, source, guarantee_for(source, epsilon, delta), "total_0")
        cells = CellMeans(released_so_far(now, source, guarantee), schema)
        means = standardised(cells, treatment)
        return effect_of(
            source,
            cells,
            guarantee,
            means,
            contrasts_of(means, treatment, "reference"),
            kind="average treatment effect",
            estimand="mean outcome with all treated minus mean outcome with none",
            method=f"difference in means so far, look {now.look} of {looks} ({now.cohorts}), paid for together",
            assumptions=(
                "arms are comparable without adjustment, as in a randomised trial",
                NO_INTERFERENCE,
                f"every unit stays in the cohort ({now.cohorts.name}) in which it entered",
                "outcomes of earlier cohorts are final",
            ),
        )

    def noise_correlations(self, schema: Schema, delta: float) -> Array:
        """Return how the privacy noise of each two looks correlates, for `sequential_looks`.

        Args:
            schema: The schema, which declares the cohorts.
            delta: The delta of the effects' guarantee, which decides on the kind of noise.

        Example:
            >>> from dpcausal import Category, Real, Schema, Treatment
            >>> weeks = [Category("week", [1, 2, 3])]
            >>> spend = Real("spend", 0, 100)
            >>> schema = Schema(treatment=Treatment("arm"), outcome=spend, covariates=weeks, entry="week")
            >>> ScheduledDifference("week").noise_correlations(schema, 1e-6).round(2)
            array([[1.  , 0.45, 0.32],
                   [0.45, 1.  , 0.52],
                   [0.32, 0.52, 1.  ]])
        """
        looks = self._query(1).looks(schema)
        back = running_weights(weights(looks, "l2" if delta else "l1"))
        lines = np.array([[*back[: look + 1][::-1], *(0.0,) * (looks - look - 1)] for look in range(looks)])
        sds = np.linalg.norm(lines, axis=1)
        found: Array = lines @ lines.T / np.outer(sds, sds)
        return found

    def _query(self, look: int) -> LookMoments:
        return LookMoments(Cut(self.cohorts) if isinstance(self.cohorts, str) else self.cohorts, look)
