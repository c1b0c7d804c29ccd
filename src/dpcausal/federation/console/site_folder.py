"""What a console shows of a site's folder. It reads files beside the table, and never the table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from dpcausal.errors import DpcausalError, LedgerError, StudyError
from dpcausal.federation.console.budget import Bar, BudgetSummary
from dpcausal.federation.console.messages import MessageAnswer, Response, SentMessage, example, responses, sent_messages
from dpcausal.federation.console.settings import KEY
from dpcausal.federation.console.study_text import TextLine, changes, lines_of
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.consequences import ANY_UNITS, Committed, Consequences
from dpcausal.federation.site.decisions import StudyStatus, is_in_time, sign_decision, verified_decision, waits
from dpcausal.federation.site.log_entry import LogEntry
from dpcausal.federation.site.people import Person, identity
from dpcausal.federation.site.review import OWED, objections
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.federation.site.summary import in_short
from dpcausal.ledger import Ledger
from dpcausal.price import Price
from dpcausal.release import session_request
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of

_ELSEWHERE = {
    *("digest", "question", "spent so far", "left after it", "committed", "warning", "answered before", "would leave"),
    "also waiting",
    *("differs from", "decisions", "status"),
}
"""The lines of a review that the page of a study shows in sections of their own."""


@dataclass(frozen=True)
class Received:
    """A study that a site received.

    Attributes:
        free: Whether all that it asks was answered before, and so costs nothing.
        answered: Whether the site answered it, and paid for that.
        owed: That its answer was paid for and not fetched, in words; empty where it was not.
    """

    digest: str
    study: Study
    received: str
    status: StudyStatus
    price: Price
    objections: tuple[str, ...]
    approved_by: tuple[str, ...]
    free: bool
    answered: bool
    owed: str = ""

    @property
    def age(self) -> int:
        """The number of days since it was received."""
        return (datetime.now(UTC).date() - date.fromisoformat(self.received)).days


@dataclass(frozen=True)
class StudyPage:
    """All that a person reads before deciding about a study.

    Attributes:
        short: What to know first, in plain words, as labels with sentences.
        earlier: The digest of its earlier version; empty where there is none.
        message: The message that would leave, without its numbers.
        ledger: Why the ledger would prevent an answer; empty where it would not.
        summary: The budget; None where the ledger cannot be read.
        consequences: What an answer would leave of the budget; None where the policy does not allow the study, or the
            ledger cannot be read.
        units: The site's number of units; None before the first answer.
        mapping: The digest of the mapping by which the review says that the table is read; empty where there is none.
        assumed: The number of units of the numbers that would leave, where it is not known.
    """

    received: Received
    short: tuple[tuple[str, str], ...]
    review: tuple[tuple[str, tuple[str, ...]], ...]
    text: tuple[TextLine, ...]
    earlier: str
    changes: tuple[TextLine, ...]
    answers: tuple[MessageAnswer, ...]
    message: str
    ledger: str
    summary: BudgetSummary | None
    pending: Price
    bar: Bar | None
    decisions: tuple[LogEntry, ...]
    needed: int
    consequences: Consequences | None
    units: int | None
    mapping: str
    assumed: int = ANY_UNITS


State = Literal["ok", "attention", "broken", "unknown"]
_STATES: tuple[State, ...] = ("ok", "attention", "broken")  # by the level of a check of the site's status


@dataclass(frozen=True)
class HealthLine:
    """One line of a site's health."""

    what: str
    state: State
    words: str


class SiteFolder:
    """The folder of a site, as it is now. One is made for each page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = Site(folder)

    @property
    def name(self) -> str:
        """The site's name."""
        return self.site.policy.site

    @cached_property
    def entries(self) -> tuple[LogEntry, ...]:
        """The audit log, verified."""
        return self.site.audit_log.entries()

    @cached_property
    def messages(self) -> Mapping[str, SentMessage]:
        """The messages that left, by request."""
        return sent_messages(self.folder, self.entries)

    @cached_property
    def _ledger(self) -> Ledger | LedgerError:
        try:
            return self.site.ledger()
        except LedgerError as error:
            return error

    @property
    def ledger_problem(self) -> str:
        """Why the ledger cannot be used; empty where it can."""
        error = self._ledger
        return f"{error.problem}. {error.hint}" if isinstance(error, LedgerError) else ""

    @cached_property
    def summary(self) -> BudgetSummary | None:
        """The budget over all studies, from a ledger that was verified whole; None where it cannot be used."""
        if isinstance(self._ledger, LedgerError):
            return None
        return BudgetSummary.of(self._ledger, self.messages.values())

    @cached_property
    def studies(self) -> dict[str, Received]:
        """The studies that the site received and can read, by digest, the oldest first."""
        found = (self._received(digest) for digest in self.site.inbox.digests())
        return {each.digest: each for each in found if each is not None}

    @property
    def changed(self) -> list[str]:
        """The digests of studies whose files were changed or cannot be read."""
        return [digest for digest in self.site.inbox.digests() if digest not in self.studies]

    @property
    def waiting(self) -> list[Received]:
        """The studies that wait for a decision, the oldest first."""
        return [each for each in self.studies.values() if waits(each.status, is_paid=each.answered or bool(each.owed))]

    def _received(self, digest: str) -> Received | None:
        policy = self.site.policy
        text = self.site.inbox.intact(digest)
        try:
            study = _study(text or "")
        except DpcausalError:  # its file was changed, or it is of another version of dpcausal
            return None
        file = self.folder / "studies" / f"{digest}.toml"
        decided = {identity(entry.who): entry for entry in self._decisions.get(digest, ())}
        counting = self.site.audit_log.counting(digest) if decided else ()
        return Received(
            digest,
            study,
            datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat(),
            self.site.status(digest) if digest in self._decided else "undecided",
            study.price(policy.site),
            objections(policy, study),
            tuple(
                entry.who
                for entry in decided.values()
                if entry.kind == "approve" and entry in counting and self._counts(entry)
            ),
            self._is_free(study),
            any(sent.study == digest for sent in self.messages.values()),
            OWED if digest in self._owed else "",
        )

    def _counts(self, entry: LogEntry) -> bool:
        """Return whether an approval is in time, and its signature that of a person who may decide now."""
        if not is_in_time(entry.time, self.site.policy.approval_days):
            return False
        mapping = self.site.mapping_of(_study(self.site.inbox.text(entry.study)).table)
        try:
            verified_decision(entry.sealed, self.site.people, site=self.name, study=entry.study, mapping=mapping)
        except DpcausalError:
            return False
        return True

    @cached_property
    def _decided(self) -> frozenset[str]:
        return self.site.audit_log.decided()

    @cached_property
    def _owed(self) -> frozenset[str]:
        return self.site.owed()

    @cached_property
    def _decisions(self) -> dict[str, list[LogEntry]]:
        """The decisions in the audit log, by study."""
        found = dict[str, list[LogEntry]]()
        for entry in self.entries:
            if entry.is_decision:
                found.setdefault(entry.study, []).append(entry)
        return found

    def _is_free(self, study: Study) -> bool:
        """Return whether the ledger has stored the answers to all questions of a study."""
        as_of = self.site.policy.serving(study.table).as_of
        asked = _requests(study.text, self._units(study) or ANY_UNITS, self.name, as_of)
        return self._stored.issuperset(asked)

    @cached_property
    def _stored(self) -> frozenset[str]:
        """The requests whose answers the ledger has stored."""
        return self.summary.stored if self.summary else frozenset()

    def _units(self, study: Study) -> int | None:
        """Return the number of units of a study's table in the ledger; None before the first answer."""
        as_of = self.site.policy.serving(study.table).as_of
        return self.summary.versions.get(as_of) if self.summary else None

    def study(self, digest: str) -> StudyPage | None:
        """Return all about a study; None where the site has none with exactly this digest."""
        received = self.studies.get(digest)
        if received is None:
            return None
        policy, text = self.site.policy.serving(received.study.table), self.site.inbox.text(digest)
        units = self._units(received.study)
        decisions = tuple(self._decisions.get(digest, ()))
        review = replace(self.site.review(digest, open_table=False), n=units)
        answers, message = example(received.study, digest, policy, units)
        pending = Price.of(each.price for each in self._payable if each.digest != digest)
        stopped = received.status in {"rejected", "withdrawn"}
        due = not (received.free or received.objections or received.answered or received.owed or stopped)
        cost = received.price.epsilon if due else 0.0
        bar = None
        if self.summary:
            committed = review.consequences.committed.price.epsilon if review.consequences else 0.0
            bar = Bar.of(self.summary.budget.epsilon, self.summary.spent.epsilon, committed, cost, pending.epsilon)
        return StudyPage(
            received,
            in_short(
                received.study,
                policy,
                n=units,
                ledger=review.ledger,
                consequences=review.consequences,
                status=received.status,
                allowed=not received.objections,
                pending=pending if pending.parts else None,
            ),
            tuple(each for each in _grouped(review.lines()) if each[0] not in _ELSEWHERE),
            lines_of(text),
            review.earlier,
            changes(self.site.inbox.text(review.earlier), text) if review.earlier else (),
            answers,
            message,
            self.ledger_problem,
            self.summary,
            pending,
            bar,
            decisions,
            policy.approvals,
            review.consequences,
            units,
            policy.mapping.digest,
        )

    def decide(  # noqa: PLR0913, PLR0917 (what a decision holds)
        self, digest: str, kind: Literal["approve", "reject"], person: Person, why: str, login: str, mapping: str
    ) -> None:
        """Sign a person's decision with the console's key, and record it with how the person is known.

        Args:
            mapping: The digest of the mapping that the person was shown. The site refuses an approval of another one.
        """
        if not (self.folder / KEY).exists():
            raise StudyError(
                problem="The console has no key of its own, which signs decisions",
                hint="an operator creates it with: dpcausal site create-console-key FOLDER.",
            )
        key = Key.read("console", self.folder / KEY)
        self.site.decide(
            sign_decision(
                key,
                site=self.name,
                study=digest,
                kind=kind,
                by=person.name,
                why=why,
                via="console",
                mapping=mapping,
                login=login,
            )
        )

    @property
    def names(self) -> dict[str, str]:
        """The names of the studies, by digest."""
        return {digest: each.study.name for digest, each in self.studies.items()}

    @property
    def pending(self) -> Price:
        """What all undecided studies would cost."""
        return Price.of(each.price for each in self._payable)

    @cached_property
    def committed(self) -> Committed | None:
        """What the studies will cost that are approved and not answered yet; None where the ledger cannot be used."""
        return None if isinstance(self._ledger, LedgerError) else self.site.committed(self._ledger)

    @property
    def _payable(self) -> list[Received]:
        """The studies that wait, that the policy allows, and that would cost something."""
        return [each for each in self.waiting if not each.free and not each.objections]

    @property
    def bar(self) -> Bar | None:
        """The budget over all studies."""
        if self.summary is None:
            return None
        spent, committed = self.summary.spent.epsilon, self.committed.price.epsilon if self.committed else 0.0
        return Bar.of(self.summary.budget.epsilon, spent, committed, pending=self.pending.epsilon)

    @property
    def free_messages(self) -> list[SentMessage]:
        """The messages that an earlier study had paid for."""
        return [message for message in self.messages.values() if message.free]

    def responses(self) -> list[Response]:
        """Return every response that left, the latest first."""
        return responses(self.folder, self.entries)

    def health(self) -> list[HealthLine]:
        """Return what `dpcausal site status` tells, and what became of the studies."""
        found = [
            HealthLine(check.name.replace("_", " "), _STATES[check.level], check.words)
            for check in site_status(self.folder).checks
        ]
        return [*found, *self._log_findings()]

    def _log_findings(self) -> list[HealthLine]:
        """Return what depends on the audit log; nothing if that is broken."""
        try:
            entries = self.entries
        except LedgerError:
            return []
        last = next((entry.at for entry in reversed(entries) if entry.kind == "answer"), "")
        changed = f"{len(self.changed)} changed after they were received"
        return [
            HealthLine("last response", "ok" if last else "unknown", last or "none yet"),
            HealthLine("studies", "attention" if self.changed else "ok", changed),
        ]


def _grouped(lines: Iterable[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return labels with all their texts; a line without a label belongs to the one before it."""
    groups: list[tuple[str, tuple[str, ...]]] = []
    for label, text in lines:
        if label or not groups:
            groups.append((label, (text,)))
        else:
            groups[-1] = groups[-1][0], (*groups[-1][1], text)
    return tuple(groups)


@lru_cache(maxsize=2_000)
def _requests(text: str, units: int, site: str, as_of: str) -> tuple[str, ...]:
    """Return the digests under which a ledger stores the answers to a study's questions."""
    study = _study(text)
    if study.secure_settings:
        return (session_request(study.digest),)
    return tuple(digest_of(each.question(study.schema, as_of)) for each in study.questions(units, site))


@lru_cache(maxsize=2_000)
def _study(text: str) -> Study:
    """Read a study; a text never changes."""
    return Study.from_toml(text)
