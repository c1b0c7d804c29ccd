"""Backups of a site, taken while it answers, and their restoration to any path."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from dpcausal.errors import LedgerError, StudyError
from dpcausal.federation.operation.archive import (
    Manifest,
    Restored,
    copy_database,
    copy_files,
    read_archive,
    staging,
    write_archive,
)
from dpcausal.federation.operation.contents import MAILBOX, Contents
from dpcausal.federation.operation.settings_secrets import copy_settings, missing_secrets, without_secrets
from dpcausal.federation.site.audit_log import AUDIT_LOG, AuditLog
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.people import People, identity
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.site_ledger import MESSAGES, mark_restored, open_ledger, witness_address
from dpcausal.federation.site.stores import ResponseStore
from dpcausal.ledger import Ledger
from dpcausal.utils.durable_files import locked

NETWORKS = ("nvflare", "networks")
_INDEX = Path(AUDIT_LOG).with_suffix(".index").name
_MARGIN = 60.0
_CONFIRM = "look at people, requesters and settings, and confirm them: dpcausal site confirm {} --by NAME --why WHY"


def backup_site(folder: Path, out: Path, *, with_keys: bool = False) -> Manifest:
    """Write a checked backup of a site to a new file. No answer is made meanwhile; one under way is waited for.

    The table and the witness are never part of it, and private keys and secrets in settings only on demand.
    """
    policy, contents = Policy.read(folder), Contents.of(folder, NETWORKS)
    unanswered = _no_answer(folder, policy.seconds + _MARGIN)
    with staging(out) as staged, unanswered, Changes(folder).locked():
        open_ledger(folder, policy).verify()
        left_out = ["the table", *_copy(folder, staged, policy, contents, with_keys=with_keys)]
        _check(staged, folder, policy)
        about = {"kind": "site", "name": policy.site, "with_keys": with_keys, "left_out": tuple(left_out)}
        return write_archive(staged, out, folder, contents.lasting(with_keys=with_keys), **about)


def restore_site(file: Path, folder: Path) -> Restored:
    """Restore a site from a backup to a new folder, and return what was found and whether the site may answer.

    It may where the ledger and its witness prove that nothing newer was lost. Otherwise people, requesters, settings
    and approvals are suspended. Without a witness nobody can tell what was answered after the backup was taken, so a
    person has to record that in the ledger first.
    """
    with read_archive(file, "site", folder) as (place, manifest):
        policy = Policy.read(place)
        found = tuple(_found(place, policy))
        own = _ledger_file(place, policy)
        if own is not None and not policy.witness:
            mark_restored(place, Ledger(f"sqlite:///{own}"))
    missing = tuple(missing_secrets(folder))
    renewed = (_CONFIRM.format(folder), "let people approve studies again, each with their own key")
    if missing:
        step = f"write the secrets into these files, then look again with: dpcausal site status {quote(str(folder))}"
        return Restored(manifest, found, missing, "the backup does not hold its secrets", (step,))
    try:
        open_ledger(folder, policy).verify()
        unconfirmed = Changes(folder).unconfirmed()
    except LedgerError as error:
        stopped = error.problem
        return Restored(manifest, found, missing, stopped, (error.hint.removesuffix("."), *renewed))
    if unconfirmed:
        return Restored(manifest, found, missing, str(unconfirmed), renewed if unconfirmed.older else renewed[:1])
    return Restored(manifest, found)


def has_own_ledger(folder: Path) -> bool:
    """Return whether the ledger of a site is a file in its folder, as one that a backup holds is."""
    own = _ledger_file(folder, Policy.read(folder))
    return own is not None and own.exists()


def _found(folder: Path, policy: Policy) -> Iterator[str]:
    """Yield the people, requesters and last decisions of a site, in words."""
    for person in People.read(folder).people:
        yield f"person {person}"
    for name, key in policy.requesters.items():
        yield f"requester {name}: key {key}"
    if (folder / AUDIT_LOG).exists():
        decided = (entry for entry in AuditLog(folder / AUDIT_LOG).stream() if entry.is_decision)
        last = {(entry.study, identity(entry.who)): entry for entry in decided}
        for entry in last.values():
            yield f"decision {entry.kind} by {entry.who} at {entry.at}: study {entry.study}"


def _copy(folder: Path, staged: Path, policy: Policy, contents: Contents, *, with_keys: bool) -> Iterator[str]:
    """Copy a site's files, and yield what is left out."""
    names = list(contents.lasting(with_keys=True) if with_keys else contents.public)
    for kept in ("studies", MESSAGES, f"{MAILBOX}/outbox"):
        names += [f"{kept}/{file.name}" for file in folder.glob(f"{kept}/*") if not file.name.startswith(".")]
    copy_files(folder, staged, names)
    if not with_keys:
        yield "private keys, the kits of networks and passwords of the console"
        yield from copy_settings(folder, staged, contents.settings)
    with locked(folder / AUDIT_LOG):
        copy_files(folder, staged, [AUDIT_LOG, _INDEX])
    own = _ledger_file(folder, policy)
    if own is None:
        yield f"the ledger, which is not in the site's folder: {without_secrets(policy.ledger)}"
    else:
        copy_database(own, staged / policy.ledger)
    if policy.witness:
        yield "the ledger's witness, which must not be restored together with it"


def _check(staged: Path, folder: Path, policy: Policy) -> None:
    """Verify the copies."""
    if (staged / AUDIT_LOG).exists():
        AuditLog(staged / AUDIT_LOG).entries()
    if (own := _ledger_file(staged, policy)) is not None:
        ledger = Ledger(f"sqlite:///{own}", witness=witness_address(folder, policy))
        ledger.verify()
        if ledger.check_receipts(ResponseStore(staged / MESSAGES).receipts()):
            raise LedgerError(problem="The copy of the ledger lacks receipts", hint="try again.")


def _ledger_file(folder: Path, policy: Policy) -> Path | None:
    """Return the file of the ledger, if it is one in the site's folder."""
    if "://" in policy.ledger or not (folder / policy.ledger).resolve().is_relative_to(folder.resolve()):
        return None
    return folder / policy.ledger


@contextmanager
def _no_answer(folder: Path, seconds: float) -> Iterator[None]:
    """Hold the lock that every answer takes."""
    descriptor = os.open(folder / "answering", os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise StudyError(
                        problem=f"The site was making answers all of the {seconds:g} seconds that this waited",
                        hint="try again later.",
                    ) from None
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)
