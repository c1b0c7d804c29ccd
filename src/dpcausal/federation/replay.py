"""What a site released, as a source again: the coordinator makes each site's effect itself, out of these."""

import math
from collections.abc import Sequence
from typing import Any

from dpcausal import queries
from dpcausal.effect import Effect
from dpcausal.errors import TransportError
from dpcausal.federation.protocol import Message
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.release import Release
from dpcausal.schema import Schema
from dpcausal.study import Study


class Replay:
    """A source that gives back releases in the order in which they were made.

    Args:
        schema: What is public about the site's table.
        n: Its number of units.
        arm_sizes: Their number in each arm, where that is public.
        releases: What the site released.
    """

    def __init__(self, schema: Schema, n: int, arm_sizes: tuple[int, int] | None, releases: Sequence[Release]) -> None:
        self.schema, self.n, self.arm_sizes = schema, n, arm_sizes
        self.caveats: tuple[str, ...] = ()
        self.left = list(releases)

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """The next release.

        Raises:
            TransportError: If it is not an answer to this question. A later question may hold numbers that were worked out
                of earlier answers, which two machines round differently in the last digits: these need only be close.
        """
        release = self.left.pop(0) if self.left else None
        if (
            release is None
            or release.guarantee != guarantee
            or not _alike(queries.to_dict(release.query), queries.to_dict(query))
        ):
            raise TransportError(
                expected=f"an answer to {query.name}",
                got="another answer, or none",
                hint="ask the site again; its version of dpcausal must be that of the coordinator.",
            )
        return release


def replayed(study: Study, site: str, message: Message, releases: Sequence[Release]) -> Effect:
    """The effect that a study's estimator makes of what a site released.

    Raises:
        TransportError: If the site released anything else than the estimator asks for.
    """
    guarantee = study.guarantee(site)
    source = Replay(study.schema, message.n or 0, message.arm_sizes, releases)
    effect = study.estimator.estimate(source, epsilon=guarantee.epsilon, delta=guarantee.delta)
    if source.left:
        raise TransportError(expected="the study's answers", got="more than these", hint="ask the site what it runs.")
    return effect


def _alike(one: Any, other: Any) -> bool:  # noqa: ANN401 (plain values)
    """Whether plain values are the same, numbers to within a millionth."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return bool(one == other)
