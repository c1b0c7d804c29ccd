"""The health of a site. Nothing here opens its table or needs its key."""

import contextlib
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from dpcausal.errors import DpcausalError, LedgerError
from dpcausal.federation.operation.contents import CONNECTION, MAILBOX, Contents
from dpcausal.federation.operation.health import (
    ATTENTION,
    BROKEN,
    HEALTHY,
    Check,
    Status,
    check_backup,
    check_certificate,
    check_disk,
    check_polling,
    check_serving,
    check_versions,
)
from dpcausal.federation.operation.heartbeat import Heartbeat
from dpcausal.federation.site.audit_log import AUDIT_LOG, AuditLog
from dpcausal.federation.site.backup import NETWORKS
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.log_entry import VERSION as AUDIT_LOG_FORMAT
from dpcausal.federation.site.policy import KEY, Policy
from dpcausal.federation.site.policy import VERSION as POLICY_FORMAT
from dpcausal.federation.site.review import OWED
from dpcausal.federation.site.sessions import SESSIONS, unfinished_sessions
from dpcausal.federation.site.signed_changes import are_required, verified_changes
from dpcausal.federation.site.site_ledger import open_ledger, witness_address
from dpcausal.ledger import Budget, Ledger
from dpcausal.ledger.chain import FORMAT as LEDGER_FORMAT
from dpcausal.utils.hash_chain import dated_back

if TYPE_CHECKING:
    from dpcausal.federation.site.site import Site

SESSION_DAYS = 30
"""A secure sum that waits for its next round for longer needs attention: its session holds secrets."""


def site_status(folder: Path) -> Status:
    """Look at a site, and return what was found."""
    policy = Policy.read(folder)
    checks = (
        *_network(folder),
        _waiting(folder),
        *_ledger(folder, policy),
        _audit_log(folder, policy),
        *_confirmed(folder),
    )
    rest = (
        _key(folder),
        *_sessions(folder),
        _access(folder),
        check_disk(folder),
        check_backup(folder, Contents.of(folder, NETWORKS)),
        _versions(folder),
    )
    return Status("site", policy.site, (*checks, *rest))


def kits_of(folder: Path) -> list[Path]:
    """Return the kits of a site: one for each network that it is in."""
    return sorted({*folder.glob("nvflare/kit"), *folder.glob("networks/*/kit")})


def _network(folder: Path) -> Iterator[Check]:
    kits = kits_of(folder)
    joined = (folder / MAILBOX / CONNECTION).exists()
    if joined:
        yield from check_polling(folder / MAILBOX)
    if not kits and not joined:
        yield Check("serving", HEALTHY, "in no network: this site answers by files", value=False)
    for kit in kits:
        suffix = f"_{kit.parent.name}" if len(kits) > 1 else ""
        for check in (*check_serving(kit), check_certificate(kit)):
            yield replace(check, name=check.name + suffix)


def _waiting(folder: Path) -> Check:
    try:
        studies = _site(folder).studies()
    except DpcausalError as error:
        return Check("waiting", ATTENTION, f"unknown: {error.problem}")
    waiting = [each for each in studies if each.waits]
    count, expired = len(waiting), sum(each.status == "expired" for each in waiting)
    again = f", {expired} of them again: their approvals expired" if expired else ""
    owed = sum(each.owed for each in studies)
    unfetched = f"; {owed} {OWED}" if owed else ""
    words = f"{count} of {len(studies)} studies wait for a decision{again}{unfetched}"
    return Check("waiting", ATTENTION if count else HEALTHY, words, count)


def _site(folder: Path) -> "Site":
    from dpcausal.federation.site.site import Site  # noqa: PLC0415 (slow to load, and it needs the site's key)

    return Site(folder)


def _ledger(folder: Path, policy: Policy) -> Iterator[Check]:
    try:
        ledger = open_ledger(folder, policy)
        ledger.verify()
        ledger.check_budget(Budget(**policy.budget))
        ledger.check_may_open()
        if unknown := [each for each in policy.versions if each not in ledger.versions]:
            witness = f" --witness {quote(witness_address(folder, policy) or '')}" if policy.witness else ""
            declare = f"dpcausal ledger add-version {quote(ledger.address)} --as-of {quote(unknown[0])}{witness}"
            raise LedgerError(
                problem=f"The ledger does not know the version {unknown[0]} of the data, which policy.toml names",
                hint=f"declare it with: {declare}.",
            )
    except DpcausalError as error:
        yield Check("ledger", BROKEN, f"{error.problem}: {error.hint}".rstrip("."), value=False)
        return
    witnessed = "its witness and " if policy.witness else ""
    yield Check("ledger", HEALTHY, f"whole, with {witnessed}all receipts", value=True)
    yield _budget(folder, policy, ledger)


def _budget(folder: Path, policy: Policy, ledger: Ledger) -> Check:
    """Return what is spent, what approved studies will cost, and what is left before they are answered."""
    spent, left = ledger.spent, ledger.remaining
    shares = [share for name in policy.requester_budgets if (share := ledger.share(policy.requester(name)))]
    value = {"spent": asdict(spent), "left": asdict(left)}
    value |= {f"left for {each.requester}": asdict(each.left) for each in shares}
    limits = "".join(f"; {each}" for each in shares)
    try:
        committed = _site(folder).committed(ledger)
    except DpcausalError:  # the check of what waits names it
        return Check("budget", HEALTHY, f"spent {spent}; left {left}{limits}", value)
    value["committed"] = asdict(committed.price)
    words = f"spent {spent}; committed {committed.price}; left {left}{limits}"
    if committed.left is None:
        return Check("budget", ATTENTION, f"{words}: too little for all approved studies", value)
    return Check("budget", HEALTHY, words, value)


def _audit_log(folder: Path, policy: Policy) -> Check:
    if not (folder / AUDIT_LOG).exists():
        return Check("audit_log", HEALTHY, "empty", 0)
    try:
        entries = AuditLog(folder / AUDIT_LOG).entries()
    except DpcausalError as error:
        return Check("audit_log", BROKEN, error.problem)
    back, changes = len(dated_back([entry.at for entry in entries])), list(verified_changes(entries, policy.site))
    if wrong := next((each for each in changes if each.problem), None):
        words = f"the change of {wrong.entry.who} at {wrong.entry.at} is {wrong.problem}"
        return Check("audit_log", BROKEN, words, len(entries))
    first = next((place for place, each in enumerate(changes) if each.by), len(changes))
    unsigned = sum(not each.by for each in changes[first:]) if policy.signed_changes or are_required(entries) else 0
    words = f", {back} of them dated back: see dpcausal site audit-log" if back else ""
    words += f", {unsigned} changes not signed since the first that was" if unsigned else ""
    return Check("audit_log", ATTENTION if unsigned else HEALTHY, f"whole, {len(entries)} entries{words}", len(entries))


def _confirmed(folder: Path) -> Iterator[Check]:
    """Yield whether decisions and settings are as the ledger recorded them; nothing where there is no usable ledger."""
    with contextlib.suppress(LedgerError):  # the check of the ledger names it
        found = Changes(folder).unconfirmed()
        words = f"{found}; confirm with: dpcausal site confirm" if found else "people and settings are as recorded"
        yield Check("confirmed", BROKEN if found else HEALTHY, words, value=not found)


def _key(folder: Path) -> Check:
    """Return which key signs, and since when; an older one, from a backup, signs nothing that counts elsewhere."""
    try:
        public, last = _site(folder).public_key, AuditLog(folder / AUDIT_LOG).last("key")
    except DpcausalError as error:
        return Check("key", ATTENTION, f"unknown: {error.problem}")
    if last is None:
        return Check("key", HEALTHY, f"{public[:12]}…, since the site was created", value=True)
    if public != Changes(folder).current_key:
        words = f"{KEY} is not the key since {last.at[:10]}: put that one back, or give this one to others in person"
        return Check("key", BROKEN, words, value=False)
    return Check("key", HEALTHY, f"{public[:12]}…, since {last.at[:10]}", value=True)


def _access(folder: Path) -> Check:
    """Return whether other users of the machine can read what only the site's user should."""
    if not folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return Check("access", HEALTHY, "only the site's user can open its folder", value=True)
    words = f"other users of this machine may open {folder}: chmod 700 it, unless a group of yours is meant to"
    return Check("access", ATTENTION, words, value=False)


def _sessions(folder: Path) -> Iterator[Check]:
    """Yield how many secure sums are not finished: their sessions hold secrets. Nothing where there are none."""
    try:
        unfinished = unfinished_sessions(folder / SESSIONS)
    except DpcausalError as error:
        yield Check("sessions", ATTENTION, f"unknown: {error.problem}")
        return
    if not unfinished:
        return
    days = int((time.time() - min(unfinished.values())) // 86_400)
    oldest = min(unfinished, key=lambda study: unfinished[study])
    words = f"not finished: {len(unfinished)}, the oldest for {days} days, study {oldest}"
    old = days > SESSION_DAYS
    hint = "; erase their secrets with: dpcausal site end-session" if old else ""
    yield Check("sessions", ATTENTION if old else HEALTHY, words + hint, len(unfinished))


def _versions(folder: Path) -> Check:
    beats = [beat for kit in kits_of(folder) if (beat := Heartbeat.read(kit))]
    formats = {"policy": POLICY_FORMAT, "ledger": LEDGER_FORMAT, "audit_log": AUDIT_LOG_FORMAT}
    return check_versions(formats, next((beat.server_version for beat in beats if beat.server_version), ""))
