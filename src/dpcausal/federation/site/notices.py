"""What a site's people are told: studies that wait, decisions, debits, failures, and ends that are near.

A debit and an unanswered request are told on a later day. The audit log and the ledger have their day and no time,
because a time would tell how long reading the table took; and a notice at once would have that time.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote

from dpcausal.errors import DpcausalError
from dpcausal.federation.operation.contents import MAILBOX
from dpcausal.federation.operation.notices import Condition, Notice, Observed, conditions_of, grade_of, today
from dpcausal.federation.site.log_entry import LogEntry
from dpcausal.federation.site.people import identity
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.review import ReceivedStudy
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.site_ledger import open_ledger
from dpcausal.federation.site.status import site_status
from dpcausal.federation.site.summary import in_short
from dpcausal.ledger import Ledger
from dpcausal.study.study import Study

_DECIDED = {"approve": "approved", "reject": "refused", "withdraw": "withdrew"}
_NO_FAILURE = {"", "answered", "undecided", "rejected", "withdrawn"}
_TOLD = ("who asks", "what", "about whom", "what leaves")
"""The lines about a study that do not depend on the ledger: what is left would change with each debit, at its time."""
_SHARES = (0.25, 0.05)
"""The shares of the budget below which its end is told."""


def site_notices(folder: Path, observed: Observed) -> Iterator[Notice]:
    """Yield the notices of what is new at a site. The table stays closed."""
    status = f"dpcausal site status {quote(str(folder))}"
    now = dict(conditions_of(site_status(folder).checks, status)) | dict(_outbox(folder))
    kept = list[str]()
    events, studies = list[Notice](), dict[str, ReceivedStudy]()
    try:
        site = Site(folder)
        studies = {each.digest: each for each in site.studies()}
        entries = site.audit_log.entries()
        now |= _studies(site, studies, observed)
        events += _decisions(site, studies, observed.after("decisions", entries))
        days = [entry for entry in entries if entry.kind == "answer"]
        events += _unanswered(studies, observed.after("answers", days, lambda entry: entry.at >= today()))
    except DpcausalError:  # the checks name it
        kept.append("study:")
    try:
        ledger = open_ledger(folder, Policy.read(folder))  # also where the site's key cannot be read
        events += _debits(ledger, observed, studies)
        budget = _budget(ledger)
    except DpcausalError:
        budget = None
    if budget is None:
        kept.append("budget")
    elif budget.grade:
        now["budget"] = budget
    yield from observed.begun(now, kept)
    yield from events


def _studies(site: Site, studies: dict[str, ReceivedStudy], observed: Observed) -> dict[str, Condition]:
    """Return the studies that wait, and those whose approvals end soon before an answer."""
    found = dict[str, Condition]()
    for each in studies.values():
        described = "" if _is_told(observed, each) else _described(site, each)
        about = {"page": f"/studies/{each.digest}", "study": each.digest}
        if each.waits and each.status == "expired":
            text = f"The approvals of the study {each.name!r} expired before it was answered. It waits for a decision."
            notice = Notice("decision", f"expired: {each.name}", f"{text}\n\n{described}", **about)
            found[f"study:{each.digest}:expired"] = Condition(1, notice)
        elif each.waits:
            title = f"{each.requester} asks: {each.name}"
            notice = Notice("waiting", title, f"A study waits for your decision.\n\n{described}", **about)
            found[f"study:{each.digest}:waits"] = Condition(1, notice)
        elif each.status == "approved" and not each.answered and site.policy.approval_days:
            days = _days_left(site, each.digest, site.policy.approval_days)
            if grade := min(grade_of(days), sum(site.policy.approval_days > each for each in (30, 7))):
                text = f"Approvals of the study {each.name!r}, which is not answered yet, expire in {days} days."
                notice = Notice("ending", f"an approval ends: {each.name}", text, **about)
                found[f"study:{each.digest}:ends"] = Condition(grade, notice)
    return found


def _is_told(observed: Observed, study: ReceivedStudy) -> bool:
    """Return whether nobody will read a description of this study: it does not wait, or was told."""
    status = "expired" if study.status == "expired" else "waits"
    return not study.waits or observed.conditions.get(f"study:{study.digest}:{status}", {}).get("told", 0) > 0


def _described(site: Site, received: ReceivedStudy) -> str:
    """Return who asks what about whom, what would leave, and what it costs: what a review says first."""
    try:
        study = Study.from_toml(site.inbox.text(received.digest))
        lines = dict(in_short(study, site.policy, n=None, ledger=None, consequences=None))
    except DpcausalError as error:  # it is of another version of dpcausal
        lines = dict.fromkeys(_TOLD, "unknown") | {"what": error.problem}
    price, whole = received.price, site.policy.budget
    cost = f"At most epsilon {price.epsilon:g}, delta {price.delta:g}, of a budget of epsilon {whole['epsilon']:g}."
    described = {label: lines[label] for label in _TOLD} | {"what it costs": cost, "digest": received.digest}
    command = f"dpcausal site review FOLDER {received.digest}"
    return "\n".join([*(f"{label}: {text}" for label, text in described.items()), "", f"To read all of it: {command}"])


def _days_left(site: Site, digest: str, days: int) -> int:
    """Return for how many days a study is still approved, if nobody approves it again."""
    signed = {identity(entry.who): entry.time for entry in site.audit_log.counting(digest) if entry.kind == "approve"}
    times = sorted(signed.values(), reverse=True)[: site.policy.approvals]
    return max((min(times, default=datetime.now(UTC)) + timedelta(days=days) - datetime.now(UTC)).days, 0)


def _decisions(site: Site, studies: dict[str, ReceivedStudy], entries: list[LogEntry]) -> Iterator[Notice]:
    for entry in entries:
        if word := _DECIDED.get(entry.kind):
            name = _name(studies, entry.study)
            why = f", and wrote: {entry.what}" if entry.what else ""
            text = f"{entry.who} {word} the study {name!r}{why}."
            if entry.kind == "approve":
                status = f" The study is {studies[entry.study].status} now." if entry.study in studies else ""
                text += f" Approvals that a study needs: {site.policy.approvals}.{status}"
            yield Notice("decision", f"{entry.who} {word}: {name}", text, f"/studies/{entry.study}", entry.study)


def _unanswered(studies: dict[str, ReceivedStudy], entries: list[LogEntry]) -> Iterator[Notice]:
    """Yield one notice for each study and day. The code is left out: it may be that of too few units."""
    for study, day in dict.fromkeys((entry.study, entry.at) for entry in entries if entry.code not in _NO_FAILURE):
        name = _name(studies, study)
        text = f"A request about the study {name!r} was not answered on {day}. The audit log says why."
        yield Notice("failure", f"not answered: {name}", text, "/log", study)


def _debits(ledger: Ledger, observed: Observed, studies: dict[str, ReceivedStudy]) -> Iterator[Notice]:
    """Yield one notice for each study and day."""
    entries = ledger.entries()
    granted = {entry.request: entry.events for entry in entries if entry.kind == "grant"}
    debits = [entry for entry in entries if entry.kind == "debit"]
    found = dict[tuple[str, str], list[str]]()
    for entry in observed.after("debits", debits, lambda entry: entry.day >= today()):
        found.setdefault((str(entry.content.get("study") or ""), entry.day), []).append(entry.request)
    for (study, day), requests in found.items():
        events = [event for request in requests for event in granted[request]]
        epsilon, delta = math.fsum(each.epsilon for each in events), math.fsum(each.delta for each in events)
        name = _name(studies, study)
        text = f"On {day} the ledger debited epsilon {epsilon:g}, delta {delta:g} for the study {name!r}."
        yield Notice("debit", f"debit for {name}: epsilon {epsilon:g}", text, "/budget", study)


def _budget(ledger: Ledger) -> Condition | None:
    """Return how near the end of the budget is; None on the day of a debit, which is told later."""
    if any(entry.kind == "debit" and entry.day >= today() for entry in ledger.entries()):
        return None
    left, whole = ledger.remaining, ledger.budget.epsilon
    grade = sum(left.epsilon < share * whole for share in _SHARES)
    text = f"Of the budget of epsilon {whole:g}, {left.epsilon:g} is left. It cannot be raised: plan who uses the rest."
    return Condition(grade, Notice("ending", f"less than {_SHARES[grade - 1]:.0%} of the budget left", text, "/budget"))


def _outbox(folder: Path) -> Iterator[tuple[str, Condition]]:
    """Yield whether messages wait since before yesterday for the server of the mailbox."""
    before = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    times = (file.stat().st_mtime for file in (folder / MAILBOX / "outbox").glob("*.json"))
    if any(datetime.fromtimestamp(each, UTC).date().isoformat() < before for each in times):
        text = "Signed messages could not be sent to the mailbox for more than a day. Look at the poller's log."
        yield "check:outbox", Condition(1, Notice("failure", "messages wait to be sent", text, "/health"))


def _name(studies: dict[str, ReceivedStudy], digest: str) -> str:
    return studies[digest].name if digest in studies and studies[digest].name else f"{digest[:12]}…"
