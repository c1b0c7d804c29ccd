"""From the releases of several sites to effects: one sum of them all, or each site's own effect."""

import copy
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Self

from dpcausal import queries
from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import Message
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import Coordinate, Query
from dpcausal.queries.calibration import Asked, Noise, share_of
from dpcausal.release import Noisy, Receipt, Release, as_of, stored_on
from dpcausal.results.effect import Effect
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of


def noise_of(release: Release, noises: Sequence[Noise]) -> Noise | None:
    """Return which of several noises a release says that it has; None if it is none of them."""
    for noise in noises:
        pairs = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
        known = tuple(None if scale is None else scale * at.tick for scale, at in pairs)
        if (release.family, release.scales) == (noise.family, known):
            return noise
    return None


def largest_noise(releases: Iterable[Release], noises: Sequence[Noise]) -> Noise:
    """Return the largest noise that one of several releases has, each of which has one of these noises.

    Sites with a zCDP budget, and sites of an older version, have a little more Gaussian noise than others. The interval
    of a sum is then as if all of them had.
    """
    found = [noise for release in releases if (noise := noise_of(release, noises))]
    return max(found or noises, key=lambda noise: [scale or 0.0 for scale in noise.scales])


def sum_releases(query: Query, guarantee: Guarantee, noise: Noise, releases: Mapping[str, Release]) -> Release:
    """Add up the releases of several sites to the same query, under the same guarantee, with noise of one size.

    Ticks are integers and are added as such, so the sum does not depend on the order of sites. Each unit is at one
    site, so the guarantee of its own site holds for the sum as well.

    Raises:
        TransportError: If a site answered another query, or under another guarantee.
    """
    sites = sorted(releases)
    for site in sites:
        _check_answers(releases[site], query, guarantee, site)
    ticks = [ticks_of(releases[site].values, noise.sensitivity.coordinates) for site in sites]
    paid = [releases[site].receipt for site in sites]
    # The same debits have the same digest, whether an answer is new or was stored.
    digest = digest_of(*([site, asdict(replace(each, stored=False))] for site, each in zip(sites, paid, strict=True)))
    version = as_of([replace(each, site=site) for site, each in zip(sites, paid, strict=True)])
    on, stored = stored_on(paid), any(each.stored for each in paid)
    receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta, None, digest, on=on, as_of=version, stored=stored)
    noisy = Noisy(tuple(map(sum, zip(*ticks, strict=True))))
    one = Release.of(query, guarantee, noise, noisy=noisy, public_values=(), receipt=receipt)
    return one.of_sites(len(sites), parts=len(sites))


def summed_release(  # noqa: PLR0913 (all but three have names)
    asked: Asked, schema: Schema, ticks: Sequence[int], *, sites: int, honest: int, receipt: Receipt
) -> Release:
    """Return the release that a secure sum over sites is: each site added a share of the noise.

    Args:
        asked: What was asked of each site, and is promised about the sum.
        ticks: The opened sums, one for each number of the query.
        honest: How many sites' shares are the whole noise. More sites than that bring more noise.
    """
    noise = asked.shared_noise(schema)
    one = Release.of(asked.query, asked.guarantee, noise, noisy=Noisy(tuple(ticks)), public_values=(), receipt=receipt)
    return one.of_sites(sites, parts=sites / honest * share_of(noise, honest).inflation ** 2)


def ticks_of(values: Sequence[float], coordinates: Sequence[Coordinate]) -> tuple[int, ...]:
    """Return the integers that a release was made of; exact up to 2^51."""
    return tuple(round(value / at.tick) for value, at in zip(values, coordinates, strict=True))


class Replay:
    """A source that returns a site's releases in the order in which the site made them.

    Args:
        arm_sizes: The number of units in each arm, where that is public.
        check: What raises unless a release is one that a table of this schema can have.
    """

    rule: Rule = "additive"

    def __init__(
        self,
        schema: Schema,
        n: int,
        arm_sizes: tuple[int, int] | None,
        releases: Sequence[Release],
        check: Callable[[Release, Schema], None] = lambda *_: None,
    ) -> None:
        self.schema, self.n, self.arm_sizes = schema, n, arm_sizes
        self.caveats: tuple[str, ...] = ()
        self.left, self._check = list(releases), check

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return the same source with covariates by their scores, with the same releases left."""
        other = copy.copy(self)
        other.schema = self.schema.scaled(scales, indicators)
        return other

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the next release.

        Raises:
            TransportError: If it does not answer this query. A later query may hold numbers computed from earlier
                answers, which two machines round differently in the last digits: these need only be close.
        """
        release = self.left.pop(0) if self.left else None
        if release is not None:
            self._check(release, self.schema)
        return _check_answers(release, query, guarantee, "the site")


def replay_estimate(
    study: Study,
    site: str,
    message: Message,
    releases: Sequence[Release],
    check: Callable[[Release, Schema], None] = lambda *_: None,
) -> Effect:
    """Return the effect that the study's estimator computes from a site's releases.

    `check` is called with each release and the schema that it was asked with: estimators may find scales of covariates.
    """
    guarantee = study.guarantee(site)
    source = Replay(study.schema, message.n or 0, message.arm_sizes, releases, check)
    effect = study.estimator.estimate(study.seen(source), epsilon=guarantee.epsilon, delta=guarantee.delta)
    if source.left:
        raise TransportError(
            problem="There are more answers than the study has queries",
            hint="check which version of dpcausal the site runs.",
        )
    return effect


def _check_answers(release: Release | None, query: Query, guarantee: Guarantee, site: str) -> Release:
    """Return a release that answers this query under this guarantee, and raise otherwise."""
    if (
        release is None
        or release.guarantee != guarantee
        or not _close(queries.to_dict(release.query), queries.to_dict(query))
    ):
        raise TransportError(
            expected=f"an answer of {site} to {query.name}, {guarantee}",
            got=f"an answer to {release.query.name}, {release.guarantee}" if release else "none",
            hint="ask the site again. It must run the same version of dpcausal as the coordinator.",
        )
    return release


def _close(one: Any, other: Any) -> bool:  # noqa: ANN401 (plain values)
    """Return whether plain values are the same, numbers to within a millionth."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return bool(one == other)
