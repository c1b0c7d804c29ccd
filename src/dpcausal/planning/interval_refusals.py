"""How often privacy noise leaves a study without an interval, from rehearsals with noise."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.results.effect import Estimator
from dpcausal.source import WrappedSource
from dpcausal.uncertainty.interval import Family, simulated

REHEARSALS = 40

_FEW, _OFTEN = 8, 3
"""An interval is often refused where that happens in so many of a few rehearsals with noise."""

_QUESTIONS = 8
"""The number of queries of an estimator after which noise repeats from one rehearsal to the next."""


def count_refusals(estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee) -> int:
    """Return the number of rehearsals with noise, out of `REHEARSALS`, that yield no interval.

    They expect the same table as the rehearsal that predicts a width, so that both are about one study.
    """
    return sum(_refusals(estimator, rehearsal, guarantee, REHEARSALS))


def is_often_refused(estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee) -> bool:
    """Return whether at least 3 of 8 rehearsals with noise yield no interval; no more are rehearsed than that takes."""
    left = {True: _OFTEN, False: _FEW - _OFTEN + 1}
    for refused in _refusals(estimator, rehearsal, guarantee, _FEW):
        left[refused] -= 1
        if not left[refused]:
            break
    return not left[True]


def _refusals(estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee, runs: int) -> Iterator[bool]:
    """Yield of each rehearsal with noise whether it yields no interval."""
    for run in range(runs):
        noisy = _NoisyRehearsal(rehearsal, run)
        yield bool(estimator.estimate(noisy, epsilon=guarantee.epsilon, delta=guarantee.delta).no_interval)


def odds(refused: int) -> str:
    """Describe how likely it is that there is no interval.

    Example:
        >>> odds(8)
        'in 8 of 40 rehearsals with noise (20 %); the price would be spent all the same'
        >>> odds(0)
        'in none of 40 rehearsals with noise'
    """
    if not refused:
        return f"in none of {REHEARSALS} rehearsals with noise"
    share = f"{refused / REHEARSALS:.0%}".replace("%", " %")
    return f"in {refused} of {REHEARSALS} rehearsals with noise ({share}); the price would be spent all the same"


class _NoisyRehearsal(WrappedSource):
    """A rehearsal whose answers have noise as a vault's would; the same noise each time for one number of a run."""

    def __init__(self, rehearsal: Rehearsal, run: int) -> None:
        super().__init__(rehearsal)
        self._draws = count(run * _QUESTIONS)

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the expected answer, with noise."""
        release = super().release(query, guarantee)
        draws = _draws(release.family, len(release.scales))
        noise = draws[next(self._draws) % len(draws)] * [scale or 0.0 for scale in release.scales]
        return replace(release, values=tuple(map(float, release.values + noise)))


@lru_cache(maxsize=8)
def _draws(family: Family, numbers: int) -> NDArray[np.float64]:
    """Return noise of size 1 for so many numbers, one draw a line; the same each time."""
    return simulated(family, [1.0] * numbers, REHEARSALS * _QUESTIONS)
