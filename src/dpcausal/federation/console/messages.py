"""The messages that left a site, as people read them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dpcausal.errors import StudyError, redact_errors
from dpcausal.federation.protocol.messages import VERSION
from dpcausal.federation.site.consequences import ANY_UNITS
from dpcausal.federation.site.log_entry import LogEntry
from dpcausal.federation.site.policy import Policy
from dpcausal.page.time_figure import months_svg
from dpcausal.release import Receipt, Release, joint_price, receipts_in
from dpcausal.study.study import Study
from dpcausal.utils.text import format_number

MOST_SHOWN = 200
"""The most numbers of one answer that a page lists; the message itself has all of them."""


@dataclass(frozen=True)
class MessageNumber:
    """One number of a message.

    Attributes:
        scale: The size of its noise; None where only the table knows it.
    """

    name: str
    value: float | None
    scale: float | None


@dataclass(frozen=True)
class MessageAnswer:
    """The answer to one query.

    Attributes:
        receipt: The debit that paid for it; None in an example.
    """

    query: str
    family: str
    numbers: tuple[MessageNumber, ...]
    public_values: Mapping[str, float]
    receipt: Receipt | None

    @property
    def shown(self) -> tuple[MessageNumber, ...]:
        """The numbers to show on a page: the first of many."""
        return self.numbers[:MOST_SHOWN]

    @property
    def noise(self) -> str:
        """Its noise in words, with its size or the smallest and the largest of several."""
        scales = [number.scale for number in self.numbers if number.scale is not None]
        words = f"{self.family} noise"
        if not scales:
            return words
        low, high = format_number(min(scales)), format_number(max(scales))
        size = "scale" if self.family == "laplace" else "standard deviation"
        return f"{words} of {size} {low}" + ("" if low == high else f" to {high}")

    @property
    def others(self) -> int:
        """How many more there are."""
        return len(self.numbers) - len(self.shown)


@dataclass(frozen=True)
class SentMessage:
    """A message that left.

    Attributes:
        request: The id of the request that it answers.
        free: Whether all of it had been paid for by an earlier study.
    """

    request: str
    study: str
    text: str
    content: Mapping[str, Any]
    free: bool

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts in it."""
        return receipts_in(self.content)

    @property
    def answers(self) -> tuple[MessageAnswer, ...]:
        """The answers in it."""
        answer = self.content["answer"]
        if "masked" not in answer:
            return tuple(_answer(release) for release in answer["releases"])
        masked = tuple(
            MessageNumber(f"masked number {place + 1}", each, None) for place, each in enumerate(answer["masked"])
        )
        return (
            MessageAnswer(str(answer["receipt"]["query"]), "share of the", masked, {}, Receipt(**answer["receipt"])),
        )


@dataclass(frozen=True)
class Response:
    """One response to a request, as the audit log has it.

    Attributes:
        sent: The message with numbers; None where only a code or the number of units left.
    """

    day: str
    requester: str
    study: str
    code: str
    request: str
    sent: SentMessage | None


def sent_messages(folder: Path, entries: Sequence[LogEntry]) -> dict[str, SentMessage]:
    """Return the messages with numbers that a site sent, by request, in the order of the audit log."""
    asked = [entry.request for entry in entries if entry.kind == "answer"]
    stored = {file.name: file for file in (folder / "messages").glob("*") if not file.name.startswith(".")}
    ordered = [*dict.fromkeys(request for request in asked if request in stored), *sorted(set(stored) - set(asked))]
    messages, paid = dict[str, SentMessage](), set[tuple[int | None, str | None]]()
    for request in ordered:
        with redact_errors(OSError, ValueError, KeyError, TypeError, instead=lambda _: _unreadable()):
            text = stored[request].read_text(encoding="ascii")
            content = json.loads(text)
            debits = {(receipt.entry, receipt.digest) for receipt in receipts_in(content)}
            free = bool(debits) and debits <= paid
            messages[request] = SentMessage(request, str(content["study"]), text, content, free)
            paid |= debits
    return messages


def responses(folder: Path, entries: Sequence[LogEntry]) -> list[Response]:
    """Return every response that left, the latest first."""
    messages = sent_messages(folder, entries)
    found = []
    for entry in entries:
        if entry.kind == "answer":
            sent = messages.get(entry.request) if entry.code == "answered" else None
            found.append(Response(entry.at, entry.who, entry.study, entry.code, entry.request, sent))
    return found[::-1]


def responses_over_time(found: Sequence[Response]) -> str:
    """Return a figure of the responses of each month: those with an answer, and above them the others."""
    months = dict[str, list[int]]()
    for each in found:
        months.setdefault(each.day[:7], [0, 0])[each.code != "answered"] += 1
    answered, others = (sum(counts[place] for counts in months.values()) for place in (0, 1))
    words = f"{answered:,} answered (filled), {others:,} not"
    return months_svg(months, label=f"Responses by month: {words}")


def example(study: Study, digest: str, policy: Policy, n: int | None) -> tuple[tuple[MessageAnswer, ...], str]:
    """Return the numbers that a message about a study would hold, and the message with an ellipsis for each number."""
    units = n or ANY_UNITS
    source = study.rehearsal(units)
    asked = study.site_questions(units, policy.site)
    releases = [source.scaled(dict(each.scales)).release(each.query, each.guarantee) for each in asked]
    answers = tuple(
        MessageAnswer(
            release.query.name,
            release.family,
            tuple(MessageNumber(name, None, scale) for name, scale in zip(release.names, release.scales, strict=True)),
            dict.fromkeys(release.public_values, 0.0),
            None,
        )
        for release in releases
    )
    settings = study.secure_settings
    if settings:
        answers = tuple(_shared(answer, len(settings.sites)) for answer in answers)
    message = {
        "request": "…",
        "study": digest,
        "site": policy.site,
        "code": "answered",
        "n": "…" if n is None else n,
        "arm_sizes": ["…", "…"] if study.schema.sizes_are_public else None,
        "as_of": policy.as_of,
        "answer": _masked(answers, joint_price(asked))
        if settings
        else {"releases": list(map(_without_values, releases))},
        "version": VERSION,
    }
    return answers, json.dumps(message, indent=2, ensure_ascii=False)


def _shared(answer: MessageAnswer, sites: int) -> MessageAnswer:
    """Return an answer of so many sites together with the noise of one site's share: its standard deviation."""
    unit = ((2.0 if answer.family == "laplace" else 1.0) / sites) ** 0.5
    numbers = tuple(replace(each, scale=None if each.scale is None else each.scale * unit) for each in answer.numbers)
    return replace(answer, family=f"share of {answer.family}", numbers=numbers)


def _masked(answers: Sequence[MessageAnswer], price: Receipt) -> dict[str, Any]:
    count = sum(len(answer.numbers) for answer in answers)
    return {"masked": ["…"] * count, "receipt": _hidden(asdict(price)), "header": "…"}


def _hidden(receipt: dict[str, Any]) -> dict[str, Any]:
    return {**receipt, "entry": "…", "digest": "…", "on": "…"}


def _without_values(given: Release) -> dict[str, Any]:
    release: dict[str, Any] = json.loads(given.to_json())
    hidden = {
        "values": ["…"] * len(release["values"]),
        "public_values": dict.fromkeys(release["public_values"], "…"),
        "receipt": _hidden(release["receipt"]),
    }
    return release | hidden


def _answer(document: Mapping[str, Any]) -> MessageAnswer:
    release = Release.from_dict(document)
    numbers = zip(release.names, release.values, release.scales, strict=True)
    return MessageAnswer(
        str(release.receipt.query),
        str(release.family),
        tuple(MessageNumber(*each) for each in numbers),
        release.public_values,
        release.receipt,
    )


def _unreadable() -> StudyError:
    return StudyError(
        problem="A file in the folder messages was changed since this site wrote it",
        hint="restore the folder from a backup.",
    )
