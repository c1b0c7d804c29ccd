"""Sample and aggregate: the average effect that any learner finds on each of many blocks of units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.narrower import narrower
from dpcausal.queries import BlockEffects
from dpcausal.queries.features import covariates_named, design_names
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for

_MIN_UNITS, _UNITS_PER_COEFFICIENT = 400, 25
"""The default size of a block: with fewer units, models of main effects, squares and products are biased."""

_MIN_BLOCKS = 10
"""With fewer blocks than this the spread between them says little about the sampling error: there is no interval."""

_REACHED_SDS, _REACHED_SHARE = 2.0, 0.8
"""The estimate, and so many standard deviations of blocks more, must stay below the limit, and the estimate below this
share of it: a limit that cuts off all blocks leaves no spread between them."""


@dataclass(frozen=True)
class BlockAverage(BaseEstimator):
    """Sample and aggregate: the mean over blocks of the average effect that a learner finds on each block.

    Estimand:
        The average treatment effect over all units, as the learner estimates it from the units of one block.

    Assumptions:
        The covariates hold all confounders, and those of the learner, which needs no privacy of its own: by default
        that outcomes or the logit of treatment are quadratic in covariates, with interactions. Averages beyond `limit`
        are rare. The interval does not include the learner's bias in a block of this size.

    Privacy:
        One query. A unit is in one block, so it changes the mean by at most 2 limits divided by the number of blocks,
        whatever the learner does.

    Use it where the shape of confounding is unknown and there are many units: the noise falls with the number of
    blocks, and each block needs some hundreds of units.

    Attributes:
        covariates: The covariates that the learner sees.
        learner: `quadratic_average` (AIPW with main effects, squares and products), `forest_average` (AIPW with random
            forests), or a name that the vault's owner gave to a learner that returns one average at every profile.
        blocks: The number of blocks; by default one for every 400 units, and fewer with many covariates.
        limit: The largest average effect of a block, in half ranges of the outcome. Noise is in proportion to it: give
            a smaller one where the literature rules larger effects out.

    Reference:
        Subsample and aggregate (Nissim, Raskhodnikova and Smith 2007). Lebeda, Even, Bellet and Josse (2025) average
        AIPW over folds; here one order of the units serves the proof, and the spread between blocks is private too.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = BlockAverage(covariates=["age"]).estimate(Rehearsal(schema, n=100_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.26, 0.28)
    """

    also_called: ClassVar[str] = "sample_and_aggregate subsample_and_aggregate causal_forest grf"

    covariates: Sequence[str]
    learner: str = "quadratic_average"
    blocks: int | None = None
    limit: float = 0.5

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; with delta 0 where that needs less noise."""
        guarantee = guarantee_for(source, epsilon, delta)
        blocks = self._blocks(source) if self.blocks is None else self.blocks
        binary = isinstance(source.schema.outcome, Binary)
        query = BlockEffects(self.learner, self.covariates, [self._profile(source.schema)], blocks, self.limit)
        (name,) = query.names
        guarantee = narrower(query, source, guarantee, name)
        release = source.release(query, guarantee)
        estimate = release.value(name) / blocks
        sampling = _sampling_sd(release, source.schema, estimate)
        return Effect(
            estimand="average treatment effect" + " (risk difference)" * binary,
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=estimate,
            sampling_sd=sampling,
            noise=(release.noise_term(name, 1 / blocks),),
            n=source.n,
            method=f"mean over {blocks:,} blocks of the learner {self.learner!r} of {', '.join(self.covariates)}",
            guarantee=guarantee,
            assumptions=(
                no_confounders_but(self.covariates),
                NO_INTERFERENCE,
                f"for the interval: the learner is unbiased on {source.n // blocks:,} units and fails on no block",
                f"for the interval: averages of blocks are within {self.limit:g} half ranges of the outcome",
                *source.schema.data_handling,
            ),
            receipts=(release.receipt,),
            notes=source.caveats,
            no_interval=_refusal(query, source.schema, estimate, sampling),
        )

    def _blocks(self, source: Source) -> int:
        features = len(design_names(self.covariates, source.schema))
        coefficients = 1 + features + features * (features + 1) // 2
        return min(max(source.n // max(_MIN_UNITS, _UNITS_PER_COEFFICIENT * coefficients), 2), BlockEffects.most_blocks)

    def _profile(self, schema: Schema) -> list[Value]:
        """Return a profile to ask for: any will do, since the learner gives the same average at all of them."""
        return [
            (column.low + column.high) / 2 if isinstance(column, Real) else column.values[0]
            for column in covariates_named(self.covariates, schema)
        ]


def _refusal(query: BlockEffects, schema: Schema, estimate: float, sampling: float) -> str:
    """Return why there is no interval; empty where there is one."""
    if query.blocks < _MIN_BLOCKS:
        return f"{query.blocks} blocks are too few to tell their spread; use more units, or more blocks"
    low, high = schema.outcome_bounds
    spread = sampling * math.sqrt(query.blocks - 1)
    if max(abs(estimate) / _REACHED_SHARE, abs(estimate) + _REACHED_SDS * spread) > query.limit * (high - low) / 2:
        return "averages of blocks reach the limit, which then moves the estimate; raise limit"
    return ""


def _sampling_sd(release: Release, schema: Schema, estimate: float) -> float:
    """Return the standard error from the spread between blocks, corrected for the noise in the square of the mean.

    Noise may make the spread negative, which counts as 0. At epsilon 1 its noise is smaller than the variance of the
    noise in the mean, which the interval has in any case.
    """
    query: BlockEffects = release.query  # type: ignore[assignment]
    (name,) = query.names
    low, high = schema.outcome_bounds
    most = (query.limit * (high - low) / 2) ** 2
    noise = release.variance(name) / query.blocks**2
    spread = most - release.value(f"deficit of {name}") / query.blocks - estimate**2 + noise
    return math.sqrt(min(max(spread, 0.0), most) / (query.blocks - 1))
