"""The private propensity score behind a diagnosis: one released before, or a new one for a share of epsilon."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dpcausal.errors import QueryError
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.propensity import score_query
from dpcausal.estimators.scaled_features import names_in, seen_as
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.release import Release
from dpcausal.results.propensity_score import PropensityScore, score_release
from dpcausal.source import Source
from dpcausal.utils.validation import is_number

BEFORE = "the score was released and paid for before"

Asks = list[tuple[Query, Guarantee]]


def scored(  # noqa: PLR0913, PLR0917
    source: Source,
    covariates: Sequence[str],
    guarantee: Guarantee,
    share: float,
    score: PropensityScore | Release | None,
    then: Callable[[Sequence[str], Sequence[float], Guarantee], Asks],
) -> tuple[ScaledCovariates, Release, list[Release]]:
    """Release a score of these covariates by their scales, unless one is given, and the queries that use it.

    Args:
        share: The share of epsilon for a new score.
        score: A score released before, to use instead of a new one.
        then: The queries to ask, from the score's covariates and coefficients and the rest of the guarantee.
    """
    if isinstance(score, PropensityScore):
        names, view = names_in(score, covariates), seen_as(score.schema, source)
        made = score_release(score, names, view.schema)  # before anything is spent
        scaled = replace(with_scales(source, covariates, guarantee), source=view, covariates=names)
        return scaled, made, [view.release(*ask) for ask in then(names, made.values, scaled.rest)]
    if score is None:
        if not (is_number(share) and 0 < share < 1):
            raise QueryError(
                expected="a share between 0 and 1", got=repr(share), hint="0.5 gives the score half of epsilon."
            )
        scaled = with_scales(source, covariates, guarantee)
        view, names = scaled.source, scaled.covariates
        first, rest = scaled.rest.split(share, pure_first=True)
        made = view.release(score_query(names, view.schema), first)
        return scaled, made, [view.release(*ask) for ask in then(names, made.values, rest)]
    made = score_release(score, tuple(covariates), source.schema)
    plain = ScaledCovariates(source, tuple(covariates), guarantee)
    return plain, made, [source.release(*ask) for ask in then(covariates, made.values, guarantee)]
