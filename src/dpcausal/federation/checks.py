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

from dpcausal import queries
from dpcausal.calibration import calibrate
from dpcausal.columns import is_number
from dpcausal.effect import Effect
from dpcausal.federation.combined import steps_of
from dpcausal.federation.protocol import Message, Request, digest_of_text
from dpcausal.federation.roster import Roster
from dpcausal.federation.signatures import opened
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.release import Receipt, Release
from dpcausal.study import Study

_FAR = 100.0
"""Honest noise is never so many times its size away: the odds are below 1 in 10^43."""

_LESS = 10.0
"""An effect with so many times less noise than was rehearsed is not believed. Noise in the sizes of arms and strata
makes an honest one smaller too, but so much only where noise is all there is."""

_LONGEST, _MOST = 2_000, 100
_LARGEST = 1e50


@dataclass(frozen=True)
class Question:
    """What was asked of all sites.

    Attributes:
        study: The study.
        request: The request that carries it.
    """

    study: Study
    request: Request

    @property
    def query(self) -> Query:
        """The query, where a release was asked for."""
        return queries.from_dict(dict(self.request.query or {}))

    @property
    def guarantee(self) -> Guarantee:
        """Its guarantee."""
        return Guarantee(**self.request.guarantee or {})


@dataclass(frozen=True)
class Heard:
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


def doubt_about(message: Message, site: str, question: Question, units: int | None, before: Sequence[Message]) -> str:
    """Why a message that a site signed cannot be believed; empty if it can.

    Args:
        message: The message.
        site: Who signed it.
        question: What was asked.
        units: The number of units that the site is known to have.
        before: What the site said before about the same study.
    """
    told = [(earlier.n, earlier.arm_sizes) for earlier in before if earlier.code == "answered"]
    public = question.study.schema.protects != "record"
    answered = message.code == "answered"
    doubt = _first(
        (message.site == site, "it speaks in the name of another site"),
        (message.request == question.request.id, "it answers another request"),
        (message.study == digest_of_text(question.request.study) or not answered, "it answers about another study"),
        (not answered or (message.n or 0) >= 2, "it claims fewer than two units"),
        (not answered or units in (None, message.n), "it has another number of units than the roster says"),
        (not answered or set(told) <= {(message.n, message.arm_sizes)}, "it gave other numbers of units before"),
        (not answered or (message.arm_sizes is not None) == public, "its arms are public, or not, against the schema"),
        (message.answer is None or question.request.ask != "facts", "it answers more than was asked"),
        (not answered or message.answer is not None or question.request.ask == "facts", "it answers without an answer"),
    )
    if doubt or not answered or question.request.ask == "facts":
        return doubt
    try:
        return _doubt_about_answer(message, site, question)
    except Exception:  # noqa: BLE001 (a hostile answer may break in ways that nobody listed)
        return "its answer cannot be read"


def release_of(message: Message) -> Release:
    """The release in a message that was believed."""
    return Release.from_json(json.dumps(message.answer))


def effect_of(message: Message) -> Effect:
    """The effect in a message that was believed."""
    return Effect.from_json(json.dumps(message.answer))


def _doubt_about_answer(message: Message, site: str, question: Question) -> str:
    if question.request.ask == "release":
        return _doubt_about_release(release_of(message), message.n or 0, question)
    return _doubt_about_effect(effect_of(message), message, site, question.study)


def _doubt_about_release(release: Release, n: int, question: Question) -> str:
    query, guarantee = question.query, question.guarantee
    noise = calibrate(query, question.study.schema, guarantee)
    coordinates = noise.sensitivity.coordinates
    known = [(scale or 0.0) * at.step for scale, at in zip(noise.scales, coordinates, strict=True)]
    if release.query != query or release.guarantee != guarantee or release.facts:
        return "it answers another query, or under another guarantee"
    if (release.family, release.scales, release.parts) != (noise.family, tuple(known), 1):
        return "it claims noise of another size than its answer must have"
    if release.names != tuple(at.name for at in coordinates) or not all(map(is_number, release.values)):
        return "its numbers are not those that were asked for"
    steps = steps_of(release.values, coordinates)
    for value, count, at in zip(release.values, steps, coordinates, strict=True):
        if not math.isclose(value, count * at.step, rel_tol=2.0**-50):
            return "its numbers are not whole steps"
    for count, at, scale in zip(steps, coordinates, noise.scales, strict=True):
        # What one unit moves at most, for all of them: from a table whose sum is 0 to any other.
        if abs(count) > n * float((at.weight or 0) * max(noise.sensitivity.bound, Fraction(1))) + _FAR * (scale or 0.0):
            return "its numbers are beyond what so many units can add up to"
    price = Receipt(query.name, guarantee.epsilon, guarantee.delta)
    return "" if _is_paid([release.receipt], [price]) else "it has no receipts for the price"


def _doubt_about_effect(effect: Effect, message: Message, site: str, study: Study) -> str:
    expected = study.rehearsed(message.n or 0, site)
    if not _is_written_well(effect, message):
        return "its answer cannot be read"
    low, high = study.schema.outcome_bounds
    return _first(
        (
            all(getattr(effect, part) == getattr(expected, part) for part in ("arms", "outcome", "estimand")),
            "it answers another question than the study's",
        ),
        (effect.guarantee == study.guarantee(site), "it answers under another guarantee"),
        (effect.n == message.n, "its effect has another number of units"),
        (
            effect.privacy_sd >= expected.privacy_sd / _LESS,
            "it states far less noise than the study's question needs with so many units",
        ),
        (
            abs(effect.estimate) <= _FAR * (high - low + effect.privacy_sd),
            "its effect is beyond what the outcome's bounds and its noise allow",
        ),
        (_is_paid(effect.receipts, expected.receipts), "it has no receipts for the price"),
    )


def _is_written_well(effect: Effect, message: Message) -> bool:
    """Whether every part of an effect is of its kind, fit to be printed and to be squared."""
    texts = [effect.estimand, effect.outcome, effect.method, effect.no_interval]
    texts += [*effect.arms, *effect.assumptions, *effect.notes]
    sampling = 0.0 if effect.sampling_sd is None else effect.sampling_sd
    sizes = [sampling, *(term.scale for term in effect.noise)]
    return (
        all(isinstance(text, str) and text.isprintable() and len(text) <= _LONGEST for text in texts)
        and max(len(texts), len(effect.noise), len(effect.receipts)) <= _MOST
        and all(is_number(size) and 0 <= size <= _LARGEST for size in sizes)
        and is_number(effect.estimate)
        and all(term.family in ("laplace", "gaussian") and term.parts == 1 for term in effect.noise)
        and type(effect.n) is int
        and effect.between_sd == 0
        and effect.sites == ()
        and json.loads(effect.to_json()) == message.answer
    )


def _is_paid(receipts: Sequence[Receipt], prices: Sequence[Receipt]) -> bool:
    """Whether each price was debited from a ledger."""
    return [(each.query, each.epsilon, each.delta) for each in receipts] == [
        (each.query, each.epsilon, each.delta) for each in prices
    ] and all(
        type(each.entry) is int and each.entry >= 0 and each.site is None and _is_digest(each.digest)
        for each in receipts
    )


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None


def _first(*checks: tuple[bool, str]) -> str:
    """What is wrong by the first check that does not hold; empty if all do."""
    return next((words for holds, words in checks if not holds), "")
