"""What a coordinator believes of what a site says. Every part of a message is taken to be hostile.

No check can tell whether a site's numbers are those of its table. What can be known from outside is checked: who
signed, what was asked, how much noise there must be, and how much so many units can add up to.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcausal.calibration import calibrate
from dpcausal.errors import TransportError
from dpcausal.federation.aggregate import ticks_of
from dpcausal.federation.protocol import Message, Request, digest_of_text
from dpcausal.federation.replay import replayed
from dpcausal.federation.roster import Roster
from dpcausal.federation.signatures import opened
from dpcausal.release import Receipt, Release
from dpcausal.schema import Schema
from dpcausal.study import Study
from dpcausal.validation import is_number

_FAR = 100.0
"""Honest noise is never so many times its size away: the odds are below 1 in 10^43."""


@dataclass(frozen=True)
class Question:
    """What was asked of all sites.

    Attributes:
        study: The study.
        request: The request that carries it.
    """

    study: Study
    request: Request


@dataclass(frozen=True)
class SiteResponse:
    """What came of asking one site.

    Attributes:
        site: Which.
        words: What it did, as a person reads it.
        message: What it said; None unless that was believed.
    """

    site: str
    words: str
    message: Message | None = None

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return self.message is not None and self.message.code == "answered"

    @property
    def rank(self) -> int:
        """How much this counts for: an answer, any other message, anything else."""
        return 2 * self.answered + (self.message is not None)


def signed_by(sealed: object, roster: Roster) -> tuple[str, Message] | None:
    """The site that signed a text, and the message in it; None unless it is a message signed by a site that counts."""
    if not isinstance(sealed, str) or not sealed.isascii():
        return None
    try:
        site, body = opened(sealed, roster.keys)
        return site, Message.from_json(body)
    except Exception:  # noqa: BLE001 (as below)
        return None


def why_invalid(message: Message, site: str, question: Question, units: int | None, before: Sequence[Message]) -> str:
    """Why a message that a site signed cannot be believed; empty if it can.

    Args:
        message: The message.
        site: Who signed it.
        question: What was asked.
        units: The number of units that the site is known to have.
        before: What the site said before about the same study.
    """
    told = [
        (earlier.n, earlier.arm_sizes)
        for earlier in before
        if earlier.code == "answered" and earlier.as_of == message.as_of
    ]
    public = question.study.schema.protects != "record"
    answered = message.code == "answered"
    doubt = _first(
        (message.site == site, "it speaks in the name of another site"),
        (message.request == question.request.id, "it answers another request"),
        (message.study == digest_of_text(question.request.study) or not answered, "it answers about another study"),
        (not answered or (message.n or 0) >= 2, "it claims fewer than two units"),
        (not answered or units in (None, message.n), "it has another number of units than the roster says"),
        (
            not answered or set(told) <= {(message.n, message.arm_sizes)},
            "it gave other numbers of units before, for the same version",
        ),
        (not answered or (message.arm_sizes is not None) == public, "its arms are public, or not, against the schema"),
        (message.answer is None or question.request.ask != "facts", "it answers more than was asked"),
        (not answered or message.answer is not None or question.request.ask == "facts", "it answers without an answer"),
    )
    if doubt or not answered or question.request.ask == "facts":
        return doubt
    try:
        return _why_answer_invalid(message, site, question.study)
    except Exception:  # noqa: BLE001 (a hostile answer may break in ways that nobody listed)
        return "its answer cannot be read"


def releases_of(message: Message) -> tuple[Release, ...]:
    """The releases in a message that was believed."""
    return tuple(Release.from_json(json.dumps(each)) for each in (message.answer or {})["releases"])


def _why_answer_invalid(message: Message, site: str, study: Study) -> str:
    releases = releases_of(message)
    if message.answer != {"releases": [json.loads(release.to_json()) for release in releases]}:
        return "its answer cannot be read"
    if any(release.receipt.as_of != message.as_of for release in releases):
        return "its answer is of another version of its data than it says"
    doubts = (_why_release_invalid(release, message.n or 0, study.schema) for release in releases)
    if doubt := next(filter(None, doubts), ""):
        return doubt
    try:
        effect = replayed(study, site, message, releases)
    except TransportError:
        return "it answers other questions than the study's, or under another guarantee"
    numbers = effect.estimate, effect.privacy_sd, effect.sampling_sd or 0.0
    return "" if all(map(is_number, numbers)) and effect.privacy_sd > 0 else "nothing can be made of its numbers"


def _why_release_invalid(release: Release, n: int, schema: Schema) -> str:
    query, guarantee = release.query, release.guarantee
    noise = calibrate(query, schema, guarantee)
    coordinates = noise.sensitivity.coordinates
    pairs = list(zip(noise.scales, coordinates, strict=True))
    known = tuple(None if scale is None else scale * at.tick for scale, at in pairs)
    if (release.family, release.scales, release.parts) != (noise.family, known, 1):
        return "it claims noise of another size than its answer must have"
    if release.names != tuple(at.name for at in coordinates) or not all(map(is_number, release.values)):
        return "its numbers are not those that were asked for"
    if set(release.public_values) != set(query.public_values) or not all(
        map(is_number, release.public_values.values())
    ):
        return "its numbers are not those that were asked for"
    steps = ticks_of(release.values, coordinates)
    for value, count, at in zip(release.values, steps, coordinates, strict=True):
        if not math.isclose(value, count * at.tick, rel_tol=2.0**-50):
            return "its numbers are not whole ticks"
    for count, (scale, at) in zip(steps, pairs, strict=True):
        # Of a sum, what one unit moves at most, for all of them: from a table whose sum is 0 to any other.
        most = n * float((at.weight or 0) * max(noise.sensitivity.bound, Fraction(1))) + _FAR * (scale or 0.0)
        if query.adds_up and abs(count) > most:
            return "its numbers are beyond what so many units can add up to"
    price = Receipt(query.name, guarantee.epsilon, guarantee.delta)
    return "" if _is_paid(release.receipt, price) else "it has no receipt for the price"


def _is_paid(receipt: Receipt, price: Receipt) -> bool:
    """Whether a price was debited from a ledger."""
    return (
        (receipt.query, receipt.epsilon, receipt.delta) == (price.query, price.epsilon, price.delta)
        and type(receipt.entry) is int
        and receipt.entry >= 0
        and receipt.site is None
        and _is_digest(receipt.digest)
        and _is_day(receipt.on)
    )


def _is_day(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is not None


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None


def _first(*checks: tuple[bool, str]) -> str:
    """What is wrong by the first check that does not hold; empty if all do."""
    return next((words for holds, words in checks if not holds), "")
