"""From an opened secure sum to releases: range checks, and what its readers should know."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from dpcausal.errors import RefusedError, StudyError
from dpcausal.federation.coordinator.aggregate import summed_release
from dpcausal.federation.coordinator.plausibility import why_impossible
from dpcausal.federation.coordinator.responses import SiteResponse, is_too_large
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.queries.calibration import Asked
from dpcausal.release import Receipt, Release, as_of, joint_price
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of


def opened_releases(
    study: Study, settings: SecureSettings, ticks: Sequence[int], receipts: Sequence[Receipt]
) -> tuple[Release, ...]:
    """Return the opened sum as releases, one for each query of the study, with the receipts of all sites in it.

    Args:
        study: The study, whose text fixes which numbers belong to which query.
        ticks: The opened sums of all queries, one after the other.
        receipts: One receipt of each site in the sum, for all queries together.
    """
    digest = digest_of(*([receipt.site, asdict(receipt)] for receipt in receipts))
    version, sizes = as_of(receipts), {"sites": len(receipts), "honest": settings.honest}
    return tuple(
        summed_release(
            asked, study.schema, own, receipt=replace(joint_price([asked]), digest=digest, as_of=version), **sizes
        )
        for asked, own in _divided(study, ticks)
    )


def _divided(study: Study, ticks: Sequence[int]) -> Iterator[tuple[Asked, Sequence[int]]]:
    """Yield each query of the study with its own sums, which follow those of the query before."""
    end = 0
    for asked in study.site_questions():
        start, end = end, end + len(asked.noise(study.schema).scales)
        yield asked, ticks[start:end]


def check_range(
    study: Study, settings: SecureSettings, ticks: Sequence[int], responses: Mapping[str, SiteResponse]
) -> None:
    """Raise if no tables of so many units, within the schema's bounds, have this sum, whatever the noise.

    Which site sent wrong numbers cannot be seen: only the sum is opened.
    """
    messages = [response.message for response in responses.values() if response.message]
    n = sum(message.n or 0 for message in messages)
    arms = [message.arm_sizes for message in messages if message.arm_sizes]
    arm_sizes = (sum(each[0] for each in arms), sum(each[1] for each in arms)) if arms else None
    spread = math.sqrt(len(messages) / settings.honest)
    for asked, own in _divided(study, ticks):
        sizes = {"sites": len(messages), "honest": settings.honest}
        release = summed_release(asked, study.schema, own, receipt=joint_price([asked]), **sizes)
        beyond = is_too_large(own, n, asked.shared_noise(study.schema), spread)
        large = "it is larger than so many units can add up to" if beyond else ""
        if problem := large or why_impossible(release, n, arm_sizes, study.schema):
            raise RefusedError(
                problem=f"{n:,} units of {len(messages)} sites cannot have this sum: {problem}",
                hint="at least one site sent wrong numbers. Which one cannot be seen: ask the sites to check their "
                "installations and tables, or run another study with aggregation = 'plain'.",
            )


def check_sites(settings: SecureSettings, roster: Roster) -> None:
    """Raise unless the roster has all sites of a secure sum, with the same keys; those of before count too."""
    known = {site: {member.key, *member.former} for site, member in roster.sites.items()}
    other = [site for site, key in settings.sites.items() if key not in known.get(site, ())]
    if other:
        raise StudyError(
            problem="The roster lacks sites of the study's table [sites], or has other keys for them: "
            f"{', '.join(other)}",
            hint="print the table from the roster with: dpcausal federation sites FOLDER.",
        )


def secure_caveats(settings: SecureSettings, count: int) -> tuple[str, ...]:
    """Return what readers of an effect from a secure sum should know."""
    noise = f"each site added a share of the noise, and the shares of {settings.honest} honest sites are one table's"
    against = "the coordinator" + (
        f" together with up to {settings.colluding} sites" if settings.colluding else " alone"
    )
    few = (
        "a site in the sum knows its own share of the noise; if it reads this result, the units of other sites have "
        f"{settings.honest - 1} of {settings.honest} shares, less than the guarantee needs"
    )
    return (
        f"only the sum over {count} sites was opened; {noise}",
        f"the privacy guarantee holds against {against}, and rests on the cryptography of the masks",
        *((few,) if count == settings.honest else ()),
        "no single site's numbers can be seen, so a site that sends wrong numbers within the bounds is not noticed",
    )
