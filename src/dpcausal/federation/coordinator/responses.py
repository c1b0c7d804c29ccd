"""Responses of sites, and their validation. Every part of a message is treated as hostile.

No check can tell whether a site's numbers are those of its table. The checks cover what is known from outside: who
signed, what was asked, how much noise there must be, and the sums that so many units can reach within the bounds.
"""

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcausal.errors import TransportError
from dpcausal.federation.coordinator.aggregate import noise_of, replay_estimate, ticks_of
from dpcausal.federation.coordinator.plausibility import why_impossible
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.protocol.messages import STEPS, Message
from dpcausal.federation.protocol.question import Question, is_paid
from dpcausal.federation.protocol.signatures import opened
from dpcausal.federation.secure.messages import why_step_invalid
from dpcausal.queries.calibration import Noise, calibrations
from dpcausal.release import Receipt, Release
from dpcausal.schema.schema import Schema
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import is_number

_COUNTED = ("facts", "releases", "masked")
"""What is asked of the table: answers have the number of units."""

_FAR = 100.0
"""Noise never exceeds this multiple of its scale: the probability is below 1 in 10^43."""


@dataclass(frozen=True)
class SiteResponse:
    """The outcome of asking one site."""

    site: str
    words: str
    message: Message | None = None
    text: str = ""

    @property
    def answered(self) -> bool:
        """Whether the site answered."""
        return self.message is not None and self.message.code == "answered"

    @property
    def rank(self) -> int:
        """The precedence of this response: an answer, then any other valid message, then anything else."""
        return 2 * self.answered + (self.message is not None)


def signed_by(sealed: object, roster: Roster, at: str = "") -> tuple[str, Message] | None:
    """Return the site that signed a text, and the message in it; None unless a site of the roster signed a message.

    Args:
        sealed: The text.
        roster: The sites, with their keys.
        at: The time at which it was stored; empty for a text that arrives now, for which former keys do not count.
    """
    if not isinstance(sealed, str) or not sealed.isascii():
        return None
    for keys in roster.keys_at(at) if at else [roster.keys]:
        with contextlib.suppress(Exception):  # as below
            site, body = opened(sealed, keys)
            return site, Message.from_json(body)
    return None


def why_invalid(message: Message, site: str, question: Question, units: int | None, before: Sequence[Message]) -> str:
    """Return why a message that a site signed is invalid; empty if it is valid."""
    sizes = [
        (earlier.n, earlier.arm_sizes)
        for earlier in before
        if earlier.code == "answered" and earlier.as_of == message.as_of
    ]
    public, ask = question.study.schema.sizes_are_public, question.request.ask
    answered = message.code == "answered"
    counted = answered and ask in _COUNTED
    problem = _first(
        (message.site == site, "it carries the name of another site"),
        (message.request == question.request.id, "it answers another request"),
        (message.study == digest_of_text(question.request.study) or not answered, "it answers another study"),
        (not counted or (message.n or 0) >= 2, "it claims fewer than two units"),
        (not counted or units in (None, message.n), "its number of units differs from the roster"),
        (
            not counted or set(sizes) <= {(message.n, message.arm_sizes)},
            "its numbers of units differ from those it sent before for the same version of the data",
        ),
        (not counted or (message.arm_sizes is not None) == public, "it sends arm sizes, or none, against the schema"),
        (message.answer is None or ask != "facts", "it answers more than the request asks for"),
        (counted or message.n is None, "it answers more than the request asks for"),
        (not answered or message.answer is not None or ask == "facts", "its answer is empty"),
    )
    if problem or not answered or ask == "facts":
        return problem
    try:
        if ask in STEPS:
            return why_step_invalid(message, site, question)
        return _why_answer_invalid(message, site, question.study)
    except Exception:  # noqa: BLE001 (a hostile answer may break in ways that nobody listed)
        return "its answer cannot be read"


def releases_of(message: Message) -> tuple[Release, ...]:
    """Return the releases in a valid message."""
    return tuple(Release.from_json(json.dumps(each)) for each in (message.answer or {})["releases"])


class _InvalidReleaseError(Exception):
    """Why no table of a site can have a release."""


def _why_answer_invalid(message: Message, site: str, study: Study) -> str:
    releases = releases_of(message)
    if message.answer != {"releases": [json.loads(release.to_json()) for release in releases]}:
        return "its answer cannot be read"
    if any(release.receipt.as_of != message.as_of for release in releases):
        return "its releases are of another version of its data than the message"

    def check(release: Release, schema: Schema) -> None:
        n = message.n or 0
        problem = _why_release_invalid(release, n, schema)
        if problem := problem or why_impossible(release, n, message.arm_sizes, schema):
            raise _InvalidReleaseError(problem)

    try:
        effect = replay_estimate(study, site, message, releases, check)
    except _InvalidReleaseError as error:
        return str(error)
    except TransportError:
        return "it answers other queries than the study's, or under another guarantee"
    numbers = effect.estimate, effect.privacy_sd, effect.sampling_sd or 0.0
    return "" if all(map(is_number, numbers)) and effect.privacy_sd > 0 else "its numbers give no effect"


def _why_release_invalid(release: Release, n: int, schema: Schema) -> str:
    query, guarantee = release.query, release.guarantee
    noise = noise_of(release, calibrations(query, schema, guarantee))
    if noise is None or (release.parts, release.sites) != (1, 1):
        return "its noise is not of the size that the guarantee needs"
    coordinates = noise.sensitivity.coordinates
    if release.names != tuple(at.name for at in coordinates) or not all(map(is_number, release.values)):
        return "its numbers are not those that the query asks for"
    if set(release.public_values) != set(query.public_values) or not all(
        map(is_number, release.public_values.values())
    ):
        return "its numbers are not those that the query asks for"
    ticks = ticks_of(release.values, coordinates)
    for value, count, at in zip(release.values, ticks, coordinates, strict=True):
        if not math.isclose(value, count * at.tick, rel_tol=2.0**-50):
            return "its numbers are not whole ticks"
    if query.adds_up and is_too_large(ticks, n, noise):
        return "its numbers are larger than so many units can add up to"
    price = Receipt(query.name, guarantee.epsilon, guarantee.delta)
    return "" if is_paid(release.receipt, price) else "it has no receipt for the price"


def is_too_large(ticks: Sequence[int], n: int, noise: Noise, spread: float = 1.0) -> bool:
    """Return whether sums are larger than so many units can add up to, whatever the noise.

    Args:
        spread: The noise in the sums, as a multiple of it.
    """
    # The most that all units together can move a sum, starting from a table whose sum is 0.
    bound = max(noise.sensitivity.bound, Fraction(1))
    pairs = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
    most = [n * float((at.weight or 0) * bound) + _FAR * spread * (scale or 0.0) for scale, at in pairs]
    return any(abs(count) > limit for count, limit in zip(ticks, most, strict=True))


def _first(*checks: tuple[bool, str]) -> str:
    """Return the words of the first check that fails; empty if all hold."""
    return next((words for holds, words in checks if not holds), "")
