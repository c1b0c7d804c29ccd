"""The private score that a diagnosis looks at: one that was released before, or a new one for a share of epsilon."""

from collections.abc import Callable, Sequence

from dpcausal.columns import is_number
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, OutputPerturbedLogistic, Query
from dpcausal.release import Release, Source, check_affords

BEFORE = "the score was released, and paid for, before"


Asks = list[tuple[Query, Guarantee]]


def score_for(  # noqa: PLR0913, PLR0917
    source: Source,
    of: Sequence[str],
    guarantee: Guarantee,
    share: float,
    score: Release | None,
    then: Callable[[Guarantee], Asks],
) -> tuple[Release, Guarantee]:
    """A score of these covariates, and the guarantee that is left for what is asked about it (`then`)."""
    if score is None:
        if not (is_number(share) and 0 < share < 1):
            raise QueryError(
                expected="a share between 0 and 1", got=repr(share), hint="0.5 gives the score half of epsilon."
            )
        first, rest = guarantee.split(share, pure_first=True)
        query = ObjectivePerturbedLogistic(of)
        check_affords(source, (query, first), *then(rest))
        return source.release(query, first), rest
    asked = getattr(score, "query", None)
    if not isinstance(asked, ObjectivePerturbedLogistic | OutputPerturbedLogistic) or tuple(asked.of) != tuple(of):
        raise QueryError(
            expected=f"the release of a logistic query of {', '.join(of)}",
            got=f"one of {', '.join(getattr(asked, 'of', ()) or ('something else',))}",
            hint="leave score out, and a new one is released for a share of epsilon.",
        )
    check_affords(source, *then(guarantee))
    return score, guarantee
