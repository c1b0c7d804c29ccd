"""How often privacy noise would leave a study without an interval, from rehearsals with noise."""

from dataclasses import replace
from itertools import count

from dpcausal.effect import Estimator
from dpcausal.guarantee import Guarantee
from dpcausal.interval import simulated
from dpcausal.planning.rehearsal import Rehearsal
from dpcausal.queries import Query
from dpcausal.release import Release

REHEARSALS = 40

_QUESTIONS = 16
"""More than any estimator asks; each gets a draw of noise of its own."""


def refusals(estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee) -> int:
    """In how many of `REHEARSALS` rehearsals with noise there is no interval."""
    effects = (
        estimator.estimate(_Noisy(rehearsal, run), epsilon=guarantee.epsilon, delta=guarantee.delta)
        for run in range(REHEARSALS)
    )
    return sum(bool(effect.no_interval) for effect in effects)


class _Noisy:
    """A rehearsal whose answers have noise as a vault's would, the same in each run of one number."""

    def __init__(self, rehearsal: Rehearsal, run: int) -> None:
        self._rehearsal = rehearsal
        self.schema, self.n, self.notes = rehearsal.schema, rehearsal.n, rehearsal.notes
        self.arm_sizes = rehearsal.arm_sizes
        self._draws = count(run * _QUESTIONS)

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """What is expected, with noise."""
        release = self._rehearsal.release(query, guarantee)
        sizes = [scale or 0.0 for scale in release.scales]
        noise = simulated(release.family, sizes, REHEARSALS * _QUESTIONS)[next(self._draws)]
        return replace(release, values=tuple(map(float, release.values + noise)))
