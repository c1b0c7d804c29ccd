"""The queries of a study with secure sums: all are fixed by its text, so that one session carries them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpcausal.errors import StudyError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query, is_summable
from dpcausal.queries.calibration import Asked, share_of
from dpcausal.release import Release
from dpcausal.results.propensity_score import SCORE_QUERIES
from dpcausal.schema.schema import Schema
from dpcausal.source import RecordingSource, Source, WrappedSource

Ask = Callable[[Source], object]
"""A part of a study as a function of a source: a diagnostic, or an estimator with its price."""

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, modulo 1, are spread evenly and never repeat."""

_MOVE = 3.0
"""By up to how many sizes of its noise a rehearsed number is moved, to see whether later queries depend on it."""


def session_questions(asks: Sequence[Ask], source: Source) -> tuple[Asked, ...]:
    """Return the queries that parts of a study ask of a source, in order. One that is asked twice is answered once."""
    recording = RecordingSource(source)
    for ask in asks:
        ask(recording)
    return tuple(dict.fromkeys(recording.asked))


def check_session(
    asked: Sequence[Asked], asks: Sequence[Ask], rehearse: Callable[[int], Source], schema: Schema, honest: int
) -> None:
    """Raise unless one session of secure sums can carry all queries of a study.

    Args:
        asked: The queries, as 10,000 units are asked.
        rehearse: Returns the rehearsal of tables with so many units.
        honest: How many honest sites' shares are the whole noise.

    Raises:
        StudyError: If an answer is not a fixed sum, or a query depends on an earlier answer or on the number of units.
        QueryError: If the noise of a query cannot be shared.
    """
    for each in asked:
        if not is_summable(each.query) or any(scale is None for scale in each.noise(schema).scales):
            raise _no_sum(each.query)
    if other := _first_other(asked, session_questions(asks, _MovedSource(rehearse(1_000)))):
        answered = _first_other(asked, session_questions(asks, _MovedSource(rehearse(10_000))))
        raise _not_fixed(answered or other, "an earlier answer" if answered else "the number of units")
    for each in asked:
        share_of(each.shared_noise(schema), honest)  # sites would refuse in their third round


class _MovedSource(WrappedSource):
    """A source whose answers are moved, each number by another multiple of the size of its noise."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._place = 0

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the other source's answer, moved."""
        release = super().release(query, guarantee)
        moved = []
        for value, scale in zip(release.values, release.scales, strict=True):
            self._place += 1
            moved.append(value + (scale or 0.0) * _MOVE * (self._place * _GOLDEN % 1))
        return replace(release, values=tuple(moved))


def _first_other(asked: Sequence[Asked], others: Sequence[Asked]) -> str:
    """Return the name of the first query that is not asked in the same way again; empty where all are."""
    if len(asked) != len(others):
        return max(asked, others, key=len)[min(len(asked), len(others))].query.name
    return next((one.query.name for one, other in zip(asked, others, strict=True) if one != other), "")


def _no_sum(query: Query) -> StudyError:
    reason = "whose noise has a private size" if is_summable(query) else "whose answers of several sites do not add up"
    hint = "use difference_in_means, regression_adjustment, survival or stratification with a cap."
    if query.name in SCORE_QUERIES:
        hint = (
            "a private propensity score is no sum over units. Require overlap in strata (by), and use an estimator "
            "without a score."
        )
    return StudyError(
        problem="Secure sums need queries whose answers are fixed sums over units, with noise of a public size, not "
        f"{query.name}, {reason}",
        hint=hint,
    )


def _not_fixed(name: str, what: str) -> StudyError:
    return StudyError(
        problem="Secure sums need queries that the study's text fixes, since one session asks all of them at once, not "
        f"{name}, which depends on {what}",
        hint="leave out what needs two steps. For an effect curve of a trial, give r_learner its propensity and "
        "outcome_models = false.",
    )
