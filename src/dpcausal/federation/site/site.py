"""A site: a vault that answers remote, untrusted requesters."""

import contextlib
import json
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcausal.errors import (
    BudgetExceededError,
    DpcausalError,
    LedgerError,
    SessionError,
    StudyError,
    TransportError,
)
from dpcausal.federation.protocol.messages import STEPS, Code, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body, claimed_signer, opened
from dpcausal.federation.protocol.transport import parted
from dpcausal.federation.secure.messages import masked_answer, step_answer
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.confirmation import find_unconfirmed
from dpcausal.federation.site.consequences import Committed, Consequences, Due, due_of, fits, is_paid
from dpcausal.federation.site.decisions import (
    StudyStatus,
    check_is_after,
    check_is_newer,
    check_requester,
    claimed_decision,
    status_of,
    verified_decision,
)
from dpcausal.federation.site.people import People
from dpcausal.federation.site.policy import KEY, Policy, address_in
from dpcausal.federation.site.refusals import RefusalError, code_of, read_request, refusal_about, secure_settings_of
from dpcausal.federation.site.review import ReceivedStudy, Review, objections
from dpcausal.federation.site.sessions import SESSIONS, Sessions
from dpcausal.federation.site.site_ledger import MESSAGES, open_ledger
from dpcausal.federation.site.stores import Inbox, ResponseStore
from dpcausal.ledger import IN_MEMORY, Budget, DataSet, Ledger
from dpcausal.price import Price
from dpcausal.release import Receipt, receipts_in, session_request
from dpcausal.study.study import Study
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import changed_lines
from dpcausal.vault import Vault
from dpcausal.vault.engines.resources import Resources


class Site(metaclass=Constructor):
    """A vault that answers remote, untrusted requesters, as its policy, its people's decisions and its ledger allow.

    Every part of a request is treated as hostile. The response is always a signed message; where the site does not
    answer, the message holds a code from a fixed list and nothing else. No error text leaves the site. The same request
    always gets the same response, and is paid for once.

    Args:
        folder: The folder of the site's policy, key, audit log and studies, and of its ledger unless that is elsewhere.
    """

    _example = 'Site(Path("north"))'

    def __init__(self, folder: Path) -> None:
        folder = self._folder = Path(folder)
        self.policy = Policy.read(folder)
        self._key = Key.read(self.policy.site, folder / KEY)
        self.changes = Changes(folder)
        self.audit_log = self.changes.audit_log
        self.inbox = Inbox(folder / "studies")
        self._responses = ResponseStore(folder / MESSAGES)
        self._sessions = Sessions(folder / SESSIONS, self.policy.site, self._key.public)

    @property
    def public_key(self) -> str:
        """The site's public key, for the rosters of coordinators."""
        return self._key.public

    def answer(self, text: str) -> str:
        """Answer a signed request, and what is enclosed with it, with a signed message."""
        request, enclosed = parted(text)
        message = refusal_about(claimed_body(request), self.policy.site)
        try:
            requester, body = self._opened(request)
        except Exception as error:  # noqa: BLE001 (see code_of)
            message = replace(message, code=code_of(error))
            with contextlib.suppress(DpcausalError):
                self.audit_log.write_forged(self._claimed(request), f"{message.request} {message.code}")
            return self._key.seal(message.to_json())
        try:
            asked, planned = read_request(body, requester)
            message = replace(message, study=self.inbox.store(asked.study, requester))
            if asked.ask == "withdraw":
                self._withdraw(message.study, requester)
            response = self._response(message, asked, planned, enclosed)
            self.audit_log.write("answer", message.study, requester, f"{message.request} answered")
        except Exception as error:  # noqa: BLE001 (see code_of)
            message = replace(message, code=code_of(error))
            with contextlib.suppress(DpcausalError):
                self.audit_log.write("answer", message.study, requester, f"{message.request} {message.code}")
            return self._key.seal(message.to_json())
        return self._key.seal(response)

    def _response(self, message: Message, asked: Request, planned: Study, enclosed: str) -> str:
        """Return the stored response to a request, or a new one; raise where nothing may be answered."""
        late = self._check(planned, message, asked)
        ledger = self._confirmed_ledger()
        ledger.study, ledger.requester = message.study, self.policy.requester(planned.requester)
        stored = self._responses.response(message.request)
        if stored is not None:
            return stored
        if late and not _is_owed(asked, message.study, late, ledger):  # before the table is opened, and any debit
            raise RefusalError(late)
        ledger.spends = not late
        try:
            found = self._found(asked, planned, ledger, enclosed)
        except BudgetExceededError:
            raise RefusalError(late or "no_budget") from None
        response = replace(message, code="answered", **found).to_json()
        is_paid = asked.ask in ("releases", "masked")
        return self._responses.store(message.request, response) if is_paid else response

    def _opened(self, request: str) -> tuple[str, str]:
        try:
            return opened(request, self.policy.requesters)
        except TransportError:
            raise RefusalError("unknown_requester") from None

    def _claimed(self, request: str) -> str:
        """Return the requester in whose name a request was forged; empty for a stranger, whose text is not recorded."""
        signer = claimed_signer(request)
        return signer if signer in self.policy.requesters else ""

    def _withdraw(self, digest: str, requester: str) -> None:
        """Record that a requester withdrew a study, in the audit log and so in the ledger, and refuse.

        A study that the inbox has no room for cannot be approved: for it, the requester must not count on a record.
        """
        if self.inbox.intact(digest) is None:
            raise RefusalError("undecided")
        if not self.audit_log.is_withdrawn(digest):
            with self.changes.recorded():
                self.audit_log.write("withdraw", digest, requester, "")
        with contextlib.suppress(SessionError):
            self._sessions.end(digest)
        raise RefusalError("withdrawn")

    def _check(self, study: Study, message: Message, asked: Request) -> Code | None:
        """Refuse unless people approved the study, its requester did not withdraw it, and the policy allows it now.

        Where approvals have expired, or the deadline is over, return the code with which to refuse whatever was not
        paid for in time. The rest goes on, since it costs nothing.
        """
        status = self._status(message.study, asked.study)
        match status:
            case "rejected" | "undecided" | "withdrawn":
                raise RefusalError(status)
        if objections(self.policy, study):
            raise RefusalError("not_allowed")
        if status == "expired":
            return "undecided"
        return "expired" if asked.deadline is not None and time.time() > asked.deadline else None

    def _confirmed_ledger(self) -> Ledger:
        """Return the ledger; refuse where people or settings are not as it recorded them."""
        ledger = self.ledger()
        if find_unconfirmed(self._folder, self.audit_log, ledger):
            raise RefusalError("undecided")
        return ledger

    def _found(self, asked: Request, study: Study, ledger: Ledger, enclosed: str) -> dict[str, Any]:
        """Return the content of an answer."""
        if asked.ask in STEPS and asked.ask != "masked":
            return self._step(asked, study, ledger)
        vault = self._vault(study, ledger)
        if vault.n < self.policy.minimum_units:
            raise RefusalError("too_few_units")
        facts: dict[str, Any] = {"n": vault.n, "arm_sizes": vault.arm_sizes, "as_of": vault.as_of}
        if asked.ask == "facts":
            return facts
        if study.secure_settings is not None:
            return facts | {"answer": self._masked(asked, enclosed, study, vault)}
        releases = study.prepare(vault, self.policy.site).run().releases
        return facts | {"answer": {"releases": [json.loads(release.to_json()) for release in releases]}}

    def _step(self, asked: Request, study: Study, ledger: Ledger) -> dict[str, Any]:
        """Return the content of an answer to a round of a secure sum that reads no table and has no price."""
        settings = secure_settings_of(study)
        begins = asked.ask == "keys" and not ledger.is_debited(session_request(study.digest))
        due = due_of(study, self.policy, ledger)
        if begins and not fits(study, self.policy, ledger, due):
            raise RefusalError("no_budget")
        try:
            answer = self._sessions.answer(asked, settings, ledger, may_begin=begins)
        except TransportError:
            raise RefusalError("refused_step") from None
        return {"answer": step_answer(self._key, asked, study.digest, answer)}

    def _masked(self, asked: Request, enclosed: str, study: Study, vault: Vault) -> dict[str, Any]:
        """Return the site's masked numbers. The mask is drawn and on disk first; then the price is paid."""
        settings = secure_settings_of(study)
        questions = study.site_questions()
        count = sum(len(each.noise(study.schema).scales) for each in questions)
        try:
            mask, members = self._sessions.mask(asked, enclosed, settings, vault.ledger, count)
        except TransportError:
            raise RefusalError("refused_step") from None
        part = vault.contribute(questions, session=study.digest, members=members, honest=settings.honest, mask=mask)
        return masked_answer(self._key, study.digest, members, part)

    def end_session(self, digest: str) -> None:
        """Erase the secrets of the secure sum of a study. This site takes no further part in it; its price is spent.

        Raises:
            StudyError: If this site has no such study.
            SessionError: If this site took no part in its sum.
        """
        self.inbox.text(digest)
        self._sessions.end(digest)

    def ledger(self) -> Ledger:
        """Open the site's ledger.

        Raises:
            LedgerError: If it is absent, broken, behind its witness, or lacks the receipt of an answer.
        """
        return open_ledger(self._folder, self.policy)

    def receipts(self, request: str) -> tuple[Receipt, ...]:
        """Return the receipts in the stored response to a request; none where only public facts were asked for."""
        response = self._responses.response(request)
        return receipts_in(json.loads(response)) if response else ()

    def _vault(self, study: Study, ledger: str | Ledger) -> Vault:
        policy = self.policy.serving(study.table)
        engine = f"{policy.memory_bytes * 6 // 10**7} MB"  # the rest of the process needs the remainder
        return Vault(
            address_in(self._folder, policy.table),
            study.schema,
            ledger=ledger,
            budget=Budget(**policy.budget),
            as_of=policy.as_of,
            resources=Resources(memory=engine, progress=False),
            mapping=policy.mapping,
        )

    @property
    def people(self) -> People:
        """The people of this site, as its file lists them now."""
        return People.read(self._folder)

    def status(self, digest: str) -> StudyStatus:
        """Return what was decided about a study, or that it was withdrawn; every signature is verified again."""
        return self._status(digest, self.inbox.intact(digest))

    def _status(self, digest: str, text: str | None) -> StudyStatus:
        """Return what was decided about a study, given its text; without it, no approval counts."""
        if self.audit_log.is_withdrawn(digest):
            return "withdrawn"
        decided = [entry.sealed for entry in self.audit_log.counting(digest)]
        if not decided:
            return "undecided"
        document = {"requester": ""} if text is None else tomllib.loads(text)
        return status_of(
            decided,
            self.people if text is not None else People(),
            site=self.policy.site,
            study=digest,
            requester=document["requester"],
            requesters=self.policy.requesters,
            approvals=self.policy.approvals,
            days=self.policy.approval_days,
            mapping=self.mapping_of(document.get("table", "")),
        )

    def mapping_of(self, table: str) -> str:
        """Return the digest of the mapping by which a table is read; empty where it is read as studies declare it."""
        return self.policy.serving(table).mapping.digest

    def studies(self) -> list[ReceivedStudy]:
        """Return every study that this site received, oldest first. A file that was changed does not stop the list."""
        decided, answered, owed = self.audit_log.decided(), self.answered, self.owed()
        return [
            self._received(digest, is_decided=digest in decided, is_answered=digest in answered, is_owed=digest in owed)
            for digest in self.inbox.digests()
        ]

    @property
    def answered(self) -> frozenset[str]:
        """The digests of the studies that this site answered, and paid for."""
        return self._responses.studies()

    def owed(self) -> frozenset[str]:
        """Return the digests of the studies that this site paid for in full and has not answered.

        They are approved, or their approvals have expired since: the answer is sent when it is fetched. None are known
        where the ledger cannot be used.
        """
        found = set()
        with contextlib.suppress(LedgerError):
            ledger = self.ledger()
            for digest in sorted(self.audit_log.decided() - self.answered):
                text = self.inbox.intact(digest)
                if text is not None and self._status(digest, text) in {"approved", "expired"}:
                    with contextlib.suppress(DpcausalError):  # what this version cannot read, it does not answer
                        study = Study.from_toml(text)
                        units = self._units(ledger, study)
                        found.update([digest] if is_paid(study, self.policy, ledger, units) else [])
        return frozenset(found)

    def _received(self, digest: str, *, is_decided: bool, is_answered: bool, is_owed: bool) -> ReceivedStudy:
        text = self.inbox.intact(digest)
        if text is None:
            return ReceivedStudy(digest, "", "", Price(()), "changed")
        document = tomllib.loads(text)  # it was a study when it was received
        status = self._status(digest, text) if is_decided else "undecided"
        price = Price.of_study(document, self.policy.site)
        return ReceivedStudy(digest, document["name"], document["requester"], price, status, is_answered, is_owed)

    def receive(self, text: str) -> str:
        """Store a study that was brought by hand, and return its digest."""
        Study.from_toml(text)
        return self.inbox.store(text)

    def review(self, digest: str, *, open_table: bool = True) -> Review:
        """Return the review of a study.

        Only the table is opened, to count units, and only where the policy allows the study: a requester must not
        decide what the ledger is bound to. With `open_table=False` (at the console) it stays closed.
        """
        text = self.inbox.text(digest)
        study = Study.from_toml(text)
        allowed = not objections(self.policy, study)
        n = self._vault(study, IN_MEMORY).n if allowed and open_table else None
        ledger = None
        with contextlib.suppress(LedgerError):  # check_ledger reports the reason
            ledger = self.ledger()
        consequences = None
        if allowed and ledger:
            consequences = Consequences.of(study, self.policy, ledger, self.committed(ledger, digest), n)
        received = self.studies()
        versions = [each.digest for each in received if each.name == study.name]
        earlier = versions[versions.index(digest) - 1] if versions.index(digest) else ""
        return Review(
            study=study,
            digest=digest,
            policy=self.policy.serving(study.table),
            n=n,
            ledger=ledger,
            status=self.status(digest),
            decisions=self.audit_log.decisions(digest),
            consequences=consequences,
            pending=tuple(each for each in received if each.waits and each.digest != digest),
            earlier=earlier,
            changes=changed_lines(self.inbox.text(earlier), text) if earlier else (),
        )

    def committed(self, ledger: Ledger, besides: str = "") -> Committed:
        """Return what the studies will cost that are approved and not answered yet.

        The table stays closed: before the first answer, what they share is that of a table of 10,000 units.

        Args:
            besides: The digest of a study that is left out.
        """
        found = dict[str, tuple[str, Due]]()
        for digest in sorted(self.audit_log.decided() - self.answered - {besides}):
            text = self.inbox.intact(digest)
            if text is None or self._status(digest, text) != "approved":
                continue
            with contextlib.suppress(DpcausalError):  # what this version cannot read, it does not answer
                study = Study.from_toml(text)
                if not objections(self.policy, study):
                    found[digest] = study.requester, due_of(study, self.policy, ledger, self._units(ledger, study))
        return Committed.of(found, ledger)

    def _units(self, ledger: Ledger, study: Study) -> int | None:
        """Return the number of units of a study's table; None before its first answer."""
        return ledger.versions.get(self.policy.serving(study.table).as_of)

    def check_ledger(self, review: Review) -> None:
        """Raise if the ledger would prevent an answer.

        It may be absent, broken, or for other data or another budget, or hold another record of the site.
        """
        ledger = self.ledger()
        ledger.check_budget(Budget(**self.policy.budget))
        if review.n is not None:
            data_set = DataSet.of(review.study.schema)
            ledger.check_data_set(review.policy.as_of, data_set, review.n)
        self._check_confirmed()

    def decide(self, sealed: str) -> str:
        """Record a person's signed decision about a study, and return the study's digest.

        Raises:
            StudyError: If the signature is not that of the person named in it, that person is not an approver of this
                site or requests the study, or what is approved was withdrawn, or the policy does not allow it: no
                approval overrides it.
        """
        digest = claimed_decision(sealed).study
        study = Study.from_toml(self.inbox.text(digest))
        mapping = self.mapping_of(study.table)
        decision, person = verified_decision(sealed, self.people, site=self.policy.site, study=digest, mapping=mapping)
        if decision.kind == "approve":
            check_requester(person, study.requester, self.policy.requesters)
            self._check_allowed(study)
            self._check_not_withdrawn(digest)
            self._check_confirmed()
            restore = self.audit_log.last("restore")
            check_is_after(decision, restore.time if restore else None)
        with self.changes.recorded():
            check_is_newer(decision, [entry.sealed for entry in self.audit_log.decisions(digest)])
            self.audit_log.record(sealed)
        return digest

    def _check_confirmed(self) -> None:
        if found := self.changes.unconfirmed():
            raise StudyError(
                problem=f"Somebody has to confirm this site's settings and people first: {found}",
                hint="put the right files back; or look at what is there, and confirm it with: dpcausal site confirm "
                "FOLDER --by NAME --why WHY. The site does not answer before.",
            )

    def _check_not_withdrawn(self, digest: str) -> None:
        if self.audit_log.is_withdrawn(digest):
            raise StudyError(
                expected="a study that its requester wants answered",
                got="one that was withdrawn",
                hint="there is nothing to approve: a new attempt has a new study text.",
            )

    def _check_allowed(self, study: Study) -> None:
        against = objections(self.policy, study)
        if against:
            raise StudyError(
                problem=f"This site's policy does not allow the study: {'; '.join(against)}",
                hint="reject the study, or change the policy first.",
            )


def _is_owed(asked: Request, study: str, late: Code, ledger: Ledger) -> bool:
    """Return whether something was debited for what is asked too late; a round of a sum ends with its deadline."""
    if asked.ask in STEPS:
        return late == "undecided" and ledger.is_debited(session_request(study))
    return asked.ask == "releases" and ledger.is_debited_for(study)
