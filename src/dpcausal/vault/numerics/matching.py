"""Nearest-neighbour matching on one score, where every unit may serve only so often.

Time is that of a sort plus the number of matches. With numba installed (the extra `match`) the loop is compiled;
without it the same loop runs as it stands, some hundred times slower.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from dpcausal.utils.arrays import Int64s

SWEEPS = 16
"""Units take their turns in this many sweeps over the scores, each over every sixteenth unit, so that where capacity
runs out it does so evenly over the scores."""


def matched(scores: Int64s, arms: Int64s, neighbours: int, caps: tuple[int, int]) -> tuple[Int64s, Int64s]:
    """Return how many matches each unit has, and how often it serves as one.

    Args:
        scores: A score for each unit, in whole ticks.
        arms: 0 or 1 for each unit.
        neighbours: How many matches each unit is to have.
        caps: How often a control and a treated unit may serve.

    Returns:
        The two counts. A unit has fewer matches than `neighbours` where no more units of the other arm could serve.
        Units that share score and arm differ only in who takes a turn first; what a group of such units has and serves
        in all does not depend on the order of units.
    """
    order = np.lexsort((arms, scores))
    sides = [order[arms[order] == arm] for arm in (0, 1)]
    has, serves = np.zeros(len(scores), dtype=np.int64), np.zeros(len(scores), dtype=np.int64)
    for arm in (0, 1):
        seekers, servers = sides[arm], sides[1 - arm]
        sought, offered = scores[seekers], scores[servers]
        places = np.searchsorted(offered, sought)
        has[seekers], serves[servers] = _loop()(sought, offered, places, neighbours, caps[1 - arm], SWEEPS)
    return has, serves


def serve(  # noqa: C901, PLR0913, PLR0917 (one loop, so that numba can compile it)
    sought: Int64s, offered: Int64s, places: Int64s, neighbours: int, cap: int, sweeps: int
) -> tuple[Int64s, Int64s]:
    """Return both counts, for units that seek and units that serve, each in rising order of score.

    `left` and `right` lead from a unit that serves no more to the next one that may; they are shortened as they are
    walked, so that a walk takes next to no time on average. Of two units at the same distance the one with the lower
    score serves.
    """
    size = len(offered)
    has, serves = np.zeros(len(sought), dtype=np.int64), np.zeros(size, dtype=np.int64)
    left, right = np.arange(size + 1), np.arange(size + 1)  # left is one off: 0 stands for none
    chosen = np.zeros(neighbours, dtype=np.int64)
    for sweep in range(sweeps):
        for seeker in range(sweep, len(sought), sweeps):
            below, above, found = places[seeker], places[seeker], 0
            while found < neighbours:
                root = below
                while left[root] != root:
                    root = left[root]
                while left[below] != root:
                    left[below], below = root, left[below]
                below = root
                root = above
                while right[root] != root:
                    root = right[root]
                while right[above] != root:
                    right[above], above = root, right[above]
                above = root
                if below == 0 and above == size:
                    break
                if above == size or (
                    below > 0 and sought[seeker] - offered[below - 1] <= offered[above] - sought[seeker]
                ):
                    chosen[found] = below - 1
                    below -= 1
                else:
                    chosen[found] = above
                    above += 1
                found += 1
            has[seeker] = found
            for server in chosen[:found]:
                serves[server] += 1
                if serves[server] == cap:
                    left[server + 1] = server
                    right[server] = server + 1
    return has, serves


@cache
def _loop() -> Callable[..., tuple[Int64s, Int64s]]:
    try:
        import numba  # noqa: PLC0415 (an extra)
    except ImportError:
        return serve
    compiled: Any = numba.njit(serve)
    return compiled  # type: ignore[no-any-return]
