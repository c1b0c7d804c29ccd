"""Changes of a site's people, decisions and settings, each of which the site's ledger records."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from dpcausal.errors import LedgerError, StudyError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.audit_log import AUDIT_LOG, AuditLog
from dpcausal.federation.site.confirmation import (
    Unconfirmed,
    check_data_versions,
    digests,
    find_unconfirmed,
    record_state,
    recorded_policy,
)
from dpcausal.federation.site.people import People, Person, add_person, remove_person, set_console_key
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.signed_changes import Signer, are_required, known_keys
from dpcausal.federation.site.site_ledger import has_ledger, ledger_address, open_ledger, witness_address
from dpcausal.ledger import Budget, Ledger
from dpcausal.utils.durable_files import locked
from dpcausal.utils.plain_text import check_plain_text

_LOCK = ".changes"


class Changes:
    """The changes of one site. Neither its key nor its table is needed.

    Args:
        key: The key of the person who makes them, which signs their lines in the audit log. The policy may require it.
    """

    def __init__(self, folder: Path, key: Key | None = None) -> None:
        self._folder, self._own = folder, key
        self.audit_log = AuditLog(folder / AUDIT_LOG)

    @property
    def current_key(self) -> str:
        """The public key of the site since its last rotation; empty where there was none."""
        last = self.audit_log.last("key")
        return last.what.rpartition(" ")[2] if last else ""

    def ledger(self) -> Ledger | None:
        """Open the site's ledger; None where it was not created yet.

        Raises:
            LedgerError: If it is broken, behind its witness, or lacks the receipt of an answer.
        """
        policy = Policy.read(self._folder)
        return open_ledger(self._folder, policy) if has_ledger(self._folder, policy) else None

    def unconfirmed(self) -> Unconfirmed | None:
        """Return what does not count before a person has confirmed it; None where everything counts."""
        ledger = self.ledger()
        return find_unconfirmed(self._folder, self.audit_log, ledger) if ledger else None

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record in the ledger what changes in this block, and no edit that is unconfirmed.

        Where decisions or people may be lost, or the ledger cannot be used, nothing is recorded: that would confirm
        what is there. The site does not answer then, and the next confirmation records the change.
        """
        with self.locked():
            ledger, edited = self._recording_ledger()
            yield
            if ledger:
                record_state(self._folder, self.audit_log, ledger, edited)

    def add_person(self, person: Person, by: str = "") -> None:
        """Add a person to the people of the site."""
        signer = self.signer()
        words = f"added as {', '.join(person.roles)}, with {person.known_by}{_by(signer.name if signer else by)}"
        with self.recorded():
            add_person(self._folder, person)
            try:
                self.audit_log.write("people", "", person.name, words, signer)
            except LedgerError:  # nobody is added without a line
                remove_person(self._folder, person.name)
                raise

    def remove_person(self, name: str, by: str = "") -> Person:
        """Remove a person from the people of the site, and return who that was. Approvals by them count no more."""
        signer = self.signer()
        words = f"removed{_by(signer.name if signer else by)}"
        with self.recorded():
            person = remove_person(self._folder, name)
            self.audit_log.write("people", "", person.name, words, signer)
        return person

    def set_console_key(self, public: str, by: str = "") -> None:
        """Record the public key of the site's console, which signs the decisions of people with a login."""
        signer = self.signer()
        words = f"given the key {public}{_by(signer.name if signer else by)}"
        with self.recorded():
            set_console_key(self._folder, public)
            self.audit_log.write("people", "", "console", words, signer)

    def signer(self) -> Signer | None:
        """Return who signs a change; None where nobody has to, since nobody can or the policy does not require it.

        Raises:
            StudyError: If the key is not that of a person who may sign, or one is needed.
        """
        people = self.audit_log.people()
        if self._own is not None:
            signer = Signer.of(Policy.read(self._folder).site, People.read(self._folder), self._own, people)
            return replace(signer, requires=self._needs_signer())
        if known_keys(people) and self._needs_signer():
            raise StudyError(
                problem="This site's policy requires that a person signs each change",
                hint="name the file of your own key, the public part of which the site knows: --sign FILE.",
            )
        return None

    def _needs_signer(self) -> bool:
        """Return whether the policy requires signatures, or did when it was confirmed last: an edit is not enough.

        An edited policy may name another ledger, or none: so the last signed change in the audit log says it, too.
        """
        if Policy.read(self._folder).signed_changes:
            return True
        with suppress(LedgerError):
            if (ledger := self.ledger()) and recorded_policy(ledger).get("signed_changes"):
                return True
        return are_required(self.audit_log.stream())

    def create_ledger(self, by: str = "") -> Ledger:
        """Create the ledger that the policy describes, once. Approvals that were made before do not count any more.

        Raises:
            LedgerError: If it exists already.
            StudyError: If the key is not that of a person who may sign, or one is needed.
        """
        with self.locked():
            policy, signer = Policy.read(self._folder), self._confirming()
            address, witness = ledger_address(self._folder, policy), witness_address(self._folder, policy)
            first, *others = policy.versions
            ledger = Ledger.create(address, Budget(**policy.budget), as_of=first, witness=witness)
            for each in others:
                ledger.add_version(each)
            if self.audit_log.end()["size"]:
                who, what = signer.name if signer else by, f"created the ledger; {self._settings()}"
                self.audit_log.write("restore", "", who, what, signer)
            record_state(self._folder, self.audit_log, ledger)
            return ledger

    def _confirming(self) -> Signer | None:
        """Return who signs what people and settings are now: from then on the policy says whether others must."""
        signer = self.signer()
        return signer and replace(signer, requires=Policy.read(self._folder).signed_changes)

    def _settings(self) -> str:
        return ", ".join(f"{name} {digest}" for name, digest in digests(self._folder).items())

    def confirm(self, by: str, why: str) -> Unconfirmed | None:
        """Confirm the people, requesters and settings of the site as they are now; return what was unconfirmed.

        Where decisions or people may be lost, the approvals that were made before do not count any more.

        Raises:
            LedgerError: If there is no ledger, or it cannot be used: what it lacks is recorded first.
            StudyError: If a text holds control characters, or an answered version of the data would be read otherwise.
        """
        with self.locked():
            ledger = open_ledger(self._folder, Policy.read(self._folder))
            found = find_unconfirmed(self._folder, self.audit_log, ledger)
            if found is None:
                return None
            check_data_versions(self._folder, ledger)
            signer = self._confirming()
            by, what = signer.name if signer else by, f"{why}: {found}; {self._settings()}"
            self.audit_log.write("restore" if found.older else "confirm", "", by, what, signer)
            record_state(self._folder, self.audit_log, ledger)
            return found

    def _recording_ledger(self) -> tuple[Ledger | None, tuple[str, ...]]:
        """Return the ledger if a change may be recorded in it, and the files with edits that it must not record."""
        try:
            ledger = self.ledger()
            found = find_unconfirmed(self._folder, self.audit_log, ledger) if ledger else None
        except LedgerError:
            return None, ()
        if found is None:
            return ledger, ()
        return None if found.older else ledger, found.edited

    def locked(self) -> AbstractContextManager[int]:
        """Exclude all other changes of the site."""
        return locked(self._folder / _LOCK)


def _by(name: str) -> str:
    """Return who made a change, in words; nothing if nobody is named. It is checked before anything changes."""
    check_plain_text("who makes a change", [name], StudyError)
    return f", by {name}" if name else ""
