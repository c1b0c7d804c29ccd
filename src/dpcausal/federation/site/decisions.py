"""Decisions about studies: each is signed by the person who makes it, and counts only while its signature verifies.

A decision names the site and the whole digest of the study, so that it is of no use at another site or for another
study. Whoever can rewrite the audit log can remove decisions, but cannot make an approval.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Self

from dpcausal.errors import SchemaError, StudyError, TransportError
from dpcausal.federation.protocol.signatures import Key, claimed_body, opened
from dpcausal.federation.site.people import People, Person, identity, nobody, normalised
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.validation import build

CONSOLE = "console"
"""The signer of decisions that people make at the site's console."""

DecisionKind = Literal["approve", "reject"]
StudyStatus = Literal["approved", "expired", "rejected", "undecided", "withdrawn"]
_FORMAT = "decision 1"
_CLOCK_SKEW = timedelta(minutes=5)
_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What one person decided about one study at one site.

    Attributes:
        study: The whole digest of the study.
        kind: `approve` or `reject`.
        at: The time at which it was signed, in UTC.
        via: `key` where the person's own key signed, `console` where the site's console signed after a login.
        mapping: The digest of the mapping by which the site reads the study's columns; empty where it has none.
        login: How the console knew the person; empty with a key.
    """

    site: str
    study: str
    kind: DecisionKind
    by: str
    why: str
    at: str
    via: Literal["key", "console"]
    login: str = ""
    format: str = _FORMAT
    mapping: str = ""

    def __post_init__(self) -> None:
        check_plain_text("a decision", asdict(self).values(), StudyError)
        for holds, expected in (
            (self.format == _FORMAT, f"format {_FORMAT}"),
            (self.kind in ("approve", "reject"), "kind: approve or reject"),
            (self.via in ("key", "console"), "via: key or console"),
            (len(self.study) == 64 and set(self.study) <= _DIGITS, "the whole digest of a study"),
            (_is_time(self.at), "a time in UTC"),
            (self.by == normalised(self.by) != "", "a name without superfluous blanks"),
            (len(self.why) <= 2_000, "a reason of at most 2,000 characters"),
        ):
            if not holds:
                raise StudyError(problem=f"A decision needs {expected}", hint="make the decision again.")

    @property
    def time(self) -> datetime:
        """The time at which it was signed."""
        return datetime.fromisoformat(self.at)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a decision from the body of a signed text.

        Raises:
            StudyError: If it is not a decision.
        """
        try:
            return build("decision", cls, json.loads(text))
        except (ValueError, RecursionError, TypeError, SchemaError):
            raise StudyError(
                expected="a signed decision as dpcausal writes it",
                got="something else",
                hint="make the decision again.",
            ) from None


def sign_decision(  # noqa: PLR0913 (what a decision consists of)
    key: Key,
    *,
    site: str,
    study: str,
    kind: DecisionKind,
    by: str,
    why: str = "",
    via: Literal["key", "console"] = "key",
    mapping: str = "",
    login: str = "",
) -> str:
    """Return a decision, signed.

    Args:
        key: The person's own key, or the key of the site's console for a person who logged in there.
        study: The whole digest of the study, as it was shown to the person.
        kind: `approve` or `reject`.
        via: `key`, or `console` if the console signs.
        mapping: The digest of the mapping by which the site reads the study's columns, as it was shown.
        login: How the console knows the person.
    """
    at = datetime.now(UTC).isoformat(timespec="microseconds")
    decided = {"site": site, "study": study, "by": normalised(by), "why": why, "at": at}
    decision = Decision(kind=kind, via=via, mapping=mapping, login=login, **decided)
    signer = CONSOLE if via == "console" else decision.by
    return Key(signer, key.private).seal(json.dumps(asdict(decision), sort_keys=True))


def claimed_decision(sealed: str) -> Decision:
    """Return the decision in a signed text without verifying the signature."""
    return Decision.from_json(claimed_body(sealed))


def verified_decision(sealed: str, people: People, *, site: str, study: str, mapping: str) -> tuple[Decision, Person]:
    """Return a decision and the person who made it, after verifying all that makes it count, but for the requester.

    Raises:
        StudyError: If it is for another site or study, approves it under another mapping of columns, if its signature
            is not that of the person named in it, or if that person may not decide.
    """
    decision = claimed_decision(sealed)
    if (decision.site, decision.study) != (site, study):
        raise StudyError(
            expected="a decision about this study at this site",
            got="a decision about another study, or at another site",
            hint="make a decision about the digest that the review shows.",
        )
    if decision.kind == "approve" and decision.mapping != mapping:
        raise StudyError(
            problem="The approval is for another mapping of the study's columns and codes than the policy has now",
            hint="review the study again, and approve it as it would be read now.",
        )
    person = people.named(decision.by)
    if person is None or "approver" not in person.roles:
        raise nobody(people)
    try:
        opened(sealed, _keys(people, person, decision))
    except TransportError:
        raise StudyError(
            expected=f"a decision signed by {person.name}'s own key, or by the site's console after a login",
            got="another signature",
            hint="sign with the key whose public part is in people.toml.",
        ) from None
    return decision, person


def check_requester(person: Person, requester: str, requesters: Mapping[str, str]) -> None:
    """Raise if a person asks for the study: nobody approves an own study, under whatever name or key."""
    if identity(person.name) == identity(requester) or (person.key and person.key == requesters.get(requester)):
        raise StudyError(
            problem=f"{person.name} requests this study, so an approval must come from somebody else",
            hint="ask another approver of this site.",
        )


def check_is_newer(decision: Decision, earlier: Iterable[str]) -> None:
    """Raise unless a decision was made now, and after all earlier ones of the same person about the study."""
    if decision.time > datetime.now(UTC) + _CLOCK_SKEW:
        raise StudyError(
            expected="a decision that was made before now",
            got=decision.at,
            hint="set the clock of the machine on which it was signed, and make the decision again.",
        )
    for sealed in earlier:
        before = claimed_decision(sealed)
        if identity(before.by) == identity(decision.by) and before.time >= decision.time:
            raise StudyError(
                expected=f"a decision made after {before.by}'s last one",
                got=decision.at,
                hint="a decision that was recorded before does not count again: make a new one.",
            )


def check_is_after(decision: Decision, restored: datetime | None) -> None:
    """Raise unless an approval was made after the site was last restored: an older one may have been withdrawn."""
    if restored is not None and decision.time <= restored:
        raise StudyError(
            expected=f"an approval made after the site was restored, at {restored.isoformat()}",
            got=decision.at,
            hint="make the decision again; if it was made now, set the clock of the machine on which it was signed.",
        )


def is_in_time(signed: datetime, days: int | None) -> bool:
    """Return whether an approval that was signed at a time counts now, where approvals count for so many days."""
    return days is None or datetime.now(UTC) - signed < timedelta(days=days)


def waits(status: str, *, is_paid: bool) -> bool:
    """Return whether people have to decide about a study: for the first time, or because approvals expired unused."""
    return status == "undecided" or (status == "expired" and not is_paid)


def status_of(  # noqa: PLR0913 (all that a decision is checked against)
    decisions: Iterable[str],
    people: People,
    *,
    site: str,
    study: str,
    requester: str,
    requesters: Mapping[str, str],
    approvals: int,
    days: int | None = None,
    mapping: str = "",
) -> StudyStatus:
    """Return what was decided about a study: the last decision of each person counts, and one rejection is enough.

    An approval counts while its signature verifies, its person is an approver who does not request the study, and the
    mapping of its columns is the one that was approved; and for so many days after it was signed, or without end. A
    rejection counts for ever, whether or not its person is still among the people: what stops a study needs no proof. A
    study is `expired` if it would be approved without the limit of days.
    """
    latest: dict[str, tuple[datetime, bool]] = {}
    for sealed in decisions:
        try:
            claimed = claimed_decision(sealed)
        except StudyError:
            continue
        approves = claimed.kind == "approve"
        if approves and not _counts(sealed, people, site, study, requester, requesters, mapping):
            continue
        latest[identity(claimed.by)] = max(
            latest.get(identity(claimed.by), (datetime.min.replace(tzinfo=UTC), True)), (claimed.time, approves)
        )
    if not all(approves for _, approves in latest.values()):
        return "rejected"
    if len(latest) < approvals:
        return "undecided"
    in_time = sum(is_in_time(signed, days) for signed, _ in latest.values())
    return "approved" if in_time >= approvals else "expired"


def _counts(  # noqa: PLR0913, PLR0917 (as above)
    sealed: str, people: People, site: str, study: str, requester: str, requesters: Mapping[str, str], mapping: str
) -> bool:
    try:
        _, person = verified_decision(sealed, people, site=site, study=study, mapping=mapping)
        check_requester(person, requester, requesters)
    except StudyError:
        return False
    return True


def _keys(people: People, person: Person, decision: Decision) -> dict[str, str]:
    """Return the key that must have signed a decision, by the name of its signer; empty if there is none."""
    if decision.via == "console":
        return {CONSOLE: people.console_key} if person.login and people.console_key else {}
    return {decision.by: person.key} if person.key else {}


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False
