"""Answers of several sites added up: as if all their units were in one table, with noise from each site."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from dpcausal.calibration import Noise
from dpcausal.effect import as_of
from dpcausal.guarantee import Guarantee
from dpcausal.hash_chain import digest_of
from dpcausal.queries import Coordinate, Query
from dpcausal.release import Noisy, Receipt, Release


def sum_releases(query: Query, guarantee: Guarantee, noise: Noise, releases: Mapping[str, Release]) -> Release:
    """One release out of those of several sites to the same query, under the same guarantee, with noise of one size.

    Ticks are whole numbers and are added as such, so the sum does not depend on the order of sites. A unit is at one
    site, so it is promised about the sum what its own site promises.
    """
    sites = sorted(releases)
    ticks = [ticks_of(releases[site].values, noise.sensitivity.coordinates) for site in sites]
    digest = digest_of(*([site, asdict(releases[site].receipt)] for site in sites))
    version = as_of([replace(releases[site].receipt, site=site) for site in sites])
    receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta, digest=digest, as_of=version)
    noisy = Noisy(tuple(map(sum, zip(*ticks, strict=True))))
    one = Release.of(query, guarantee, noise, noisy=noisy, public_values=(), receipt=receipt)
    scales = tuple(None if scale is None else scale * math.sqrt(len(sites)) for scale in one.scales)
    return replace(one, scales=scales, parts=len(sites))


def ticks_of(values: Sequence[float], coordinates: Sequence[Coordinate]) -> tuple[int, ...]:
    """The whole numbers that a release was made of: exactly, up to 2^51 of them."""
    return tuple(round(value / at.tick) for value, at in zip(values, coordinates, strict=True))
