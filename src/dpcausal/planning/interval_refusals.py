"""How often privacy noise would leave a study without an interval, from rehearsals with noise."""

from dataclasses import replace
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dpcausal.effect import Estimator
from dpcausal.guarantee import Guarantee
from dpcausal.interval import Family, simulated
from dpcausal.queries import Query
from dpcausal.real import Real
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.source import WrappedSource

REHEARSALS = 40

_QUESTIONS = 8
"""As many as an estimator may ask before noise repeats from one rehearsal to the next."""


_NARROW, _RARE, _UNEVEN = 1 / 8, 0.1, 0.4
"""Where nobody says: the standard deviation of an outcome as a share of its range, its risk, and the share treated."""


def count_refusals(estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee) -> int:
    """In how many of `REHEARSALS` rehearsals with noise there is no interval.

    An interval is refused where noise is large beside sampling error, and more often where arms are uneven. So where
    nobody says how an outcome spreads it is taken to spread little here, though widely where a width is foretold, and
    with confounding arms that are said to be even are taken to be nearly so: all err to be safe.
    """
    expected = cautious(rehearsal)
    effects = (
        estimator.estimate(_NoisyRehearsal(expected, run), epsilon=guarantee.epsilon, delta=guarantee.delta)
        for run in range(REHEARSALS)
    )
    return sum(bool(effect.no_interval) for effect in effects)


def cautious(rehearsal: Rehearsal) -> Rehearsal:
    """The same expectations, erring towards a refusal where nobody says."""
    if rehearsal.confounding and rehearsal.treated_share == Rehearsal.treated_share:
        rehearsal = replace(rehearsal, treated_share=_UNEVEN)
    if rehearsal.outcome_sd is not None:
        return rehearsal
    if isinstance(rehearsal.schema.outcome, Real):
        low, high = rehearsal.schema.outcome_bounds
        return replace(rehearsal, outcome_sd=_NARROW * (high - low))
    return replace(rehearsal, outcome_mean=_RARE) if rehearsal.outcome_mean is None else rehearsal


def odds(refused: int) -> str:
    """How likely it is that there is no interval, in words.

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
    """Noise of size 1 for so many numbers, one draw a line; the same each time."""
    return simulated(family, [1.0] * numbers, REHEARSALS * _QUESTIONS)
