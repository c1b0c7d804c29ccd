"""Sums over all units so far, from the looks of a schedule that is paid for once."""

from dataclasses import replace

import numpy as np

from dpcausal.estimators.narrower import noise_sd
from dpcausal.guarantee import Guarantee
from dpcausal.queries.look_moments import LookQuery, norm_of, running_weights, weights
from dpcausal.release import Release
from dpcausal.source import Source


def released_so_far(query: LookQuery, source: Source, guarantee: Guarantee) -> Release:
    """Return the release of a look with the sums over all units so far in place of its own, and their noise.

    The looks before it were answered already, or are made up for from the same table.
    """
    releases = [source.release(replace(query, look=look), guarantee) for look in range(1, query.look + 1)]
    last = releases[-1]
    back = np.array(running_weights(weights(query.looks(source.schema), norm_of(last.guarantee)))[: len(releases)])
    values = back[::-1] @ np.array([release.values for release in releases])
    sds = [(scale or 0.0) * float(np.linalg.norm(back)) for scale in last.scales]
    parts = last.parts * (len(releases) if last.family == "laplace" else 1)
    return replace(last, values=tuple(map(float, values)), scales=tuple(sds), parts=parts)


def narrower_at_last_look(query: LookQuery, source: Source, guarantee: Guarantee, coordinate: str) -> Guarantee:
    """Return the guarantee, with delta 0 where that means less noise in a number at the last look.

    It is the same at every look.
    """
    if guarantee.delta == 0 or source.rule == "zcdp":
        return guarantee
    looks = query.looks(source.schema)

    def at_last_look(each: Guarantee) -> float:
        back = running_weights(weights(looks, norm_of(each)))
        return noise_sd(query, source.schema, each, coordinate) * float(np.linalg.norm(back))

    return min((replace(guarantee, delta=0.0), guarantee), key=at_last_look)
