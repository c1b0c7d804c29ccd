"""The private score that a diagnosis looks at: one that was released before, or a new one for a share of epsilon."""

from collections.abc import Callable, Sequence

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, OutputPerturbedLogistic, Query
from dpcausal.release import Release
from dpcausal.source import Source
from dpcausal.validation import is_number

BEFORE = "the score was released, and paid for, before"

Asks = list[tuple[Query, Guarantee]]


def scored(  # noqa: PLR0913, PLR0917
    source: Source,
    covariates: Sequence[str],
    guarantee: Guarantee,
    share: float,
    score: Release | None,
    then: Callable[[Sequence[float], Guarantee], Asks],
) -> tuple[Release, list[Release]]:
    """A score of these covariates, and the answers to what is asked about it.

    Args:
        source: Where they come from.
        covariates: The covariates.
        guarantee: What is promised about all of it.
        share: The part of epsilon that a new score gets.
        score: One that was released before; then there is no new one.
        then: What to ask, from the score's coefficients and the guarantee that is left.
    """
    if score is None:
        if not (is_number(share) and 0 < share < 1):
            raise QueryError(
                expected="a share between 0 and 1", got=repr(share), hint="0.5 gives the score half of epsilon."
            )
        first, rest = guarantee.split(share, pure_first=True)
        made = source.release(ObjectivePerturbedLogistic(covariates), first)
        return made, [source.release(*ask) for ask in then(made.values, rest)]
    asked = getattr(score, "query", None)
    if not isinstance(asked, ObjectivePerturbedLogistic | OutputPerturbedLogistic) or tuple(asked.covariates) != tuple(
        covariates
    ):
        raise QueryError(
            expected=f"the release of a logistic query of {', '.join(covariates)}",
            got=f"one of {', '.join(getattr(asked, 'covariates', ()) or ('something else',))}",
            hint="leave score out, and a new one is released for a share of epsilon.",
        )
    return score, [source.release(*ask) for ask in then(score.values, guarantee)]
