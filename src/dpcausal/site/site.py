"""A site: decides by its own policy, its own people and its own ledger, and answers strangers."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcausal.errors import BudgetExceededError, DpcausalError, EngineError, LedgerError, StudyError, TransportError
from dpcausal.federation.protocol import Code, Message, Request, digest_of_text
from dpcausal.federation.signatures import Key, claimed_body, opened
from dpcausal.ledger import IN_MEMORY, Budget, DataSet, Ledger
from dpcausal.site.audit_log import AUDIT_LOG, AuditLog, StudyStatus
from dpcausal.site.inbox import Inbox
from dpcausal.site.policy import KEY, Policy, address_in
from dpcausal.site.responses import ResponseStore
from dpcausal.site.review import Review, objections
from dpcausal.study import Study
from dpcausal.vault import Vault
from dpcausal.vault.engines.resources import Resources


class _RefusalError(Exception):
    """Why a request is not answered."""

    def __init__(self, code: Code) -> None:
        self.code = code
        super().__init__(code)


class Site:
    """A vault that answers requests from outside, as far as the site's policy, people and ledger let it.

    Every part of a request is taken to be hostile. Whatever is asked, the answer is a signed message; one that is no
    answer holds a code out of a fixed list and nothing else. No error is told outside. The same request always has the
    same answer, to the letter, for which nothing is spent again.

    Args:
        folder: Where the site keeps its policy, key, audit log and studies, and its ledger unless that is elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.policy = Policy.read(folder)
        self._key = Key.read(self.policy.site, folder / KEY)
        self.audit_log = AuditLog(folder / AUDIT_LOG)
        self.inbox = Inbox(folder / "studies")
        self._responses = ResponseStore(folder / "messages")

    @property
    def public_key(self) -> str:
        """What coordinators write into their rosters."""
        return self._key.public

    def answer(self, request: str) -> str:
        """The signed message that answers a signed request."""
        message = Message(request=digest_of_text(claimed_body(request)), study="", site=self.policy.site, code="failed")
        requester = ""
        try:
            requester, body = self._opened(request)
            asked, planned = _read(body, requester)
            message = replace(message, study=self.inbox.keep(asked.study))
            self._check(planned, message.study)
            ledger = self.ledger()
            kept = self._responses.kept(message.request)
            if kept is None:
                kept = replace(message, code="answered", **self._found(asked, planned, ledger)).to_json()
                kept = self._responses.keep(message.request, kept) if asked.ask == "releases" else kept
            self.audit_log.write("answer", message.study, requester, f"{message.request} answered")
        except _RefusalError as refusal:
            message = replace(message, code=refusal.code)
        except BudgetExceededError:
            message = replace(message, code="no_budget")
        except (MemoryError, EngineError):
            message = replace(message, code="stopped")
        except Exception:  # noqa: BLE001, S110 (whatever it is, its text may quote the table: it stays here)
            pass
        else:
            return self._key.seal(kept)
        if requester:
            with contextlib.suppress(DpcausalError):
                self.audit_log.write("answer", message.study, requester, f"{message.request} {message.code}")
        return self._key.seal(message.to_json())

    def _opened(self, request: str) -> tuple[str, str]:
        try:
            return opened(request, self.policy.requesters)
        except TransportError:
            raise _RefusalError("unknown_requester") from None

    def _check(self, study: Study, digest: str) -> None:
        """Refuse unless people approved the study and the policy allows it, today."""
        status = self.status(digest)
        if status != "approved":
            raise _RefusalError(status)
        if objections(self.policy, study):
            raise _RefusalError("not_allowed")

    def _found(self, asked: Request, study: Study, ledger: Ledger) -> dict[str, Any]:
        """What goes into an answer."""
        vault = self._vault(study, ledger)
        if vault.n < self.policy.minimum_units:
            raise _RefusalError("too_few_units")
        facts: dict[str, Any] = {"n": vault.n, "arm_sizes": vault.arm_sizes, "as_of": vault.as_of}
        if asked.ask == "facts":
            return facts
        releases = study.prepare(vault, self.policy.site).run().releases
        return facts | {"answer": {"releases": [json.loads(release.to_json()) for release in releases]}}

    def create_ledger(self) -> Ledger:
        """Make the ledger that the policy describes, once and for all."""
        budget = Budget(**self.policy.budget)
        return Ledger.create(self._ledger_address, budget, as_of=self.policy.as_of, witness=self._witness_address)

    @property
    def _ledger_address(self) -> str:
        return self._address(self.policy.ledger)

    @property
    def _witness_address(self) -> str | None:
        return self._address(self.policy.witness) if self.policy.witness else None

    def _address(self, place: str) -> str:
        address = address_in(self._folder, place)
        return address if "://" in place or place.endswith(".log") else f"sqlite:///{address}"

    def ledger(self) -> Ledger:
        """The site's ledger.

        Raises:
            LedgerError: If it is absent, broken, behind its witness, or lacks what paid for an answer that was given.
        """
        ledger = Ledger(self._ledger_address, witness=self._witness_address)
        if lost := ledger.check_receipts(self._responses.receipts()):
            raise LedgerError(
                expected="a ledger that holds the receipts of all answers that this site has given",
                got=f"{ledger.address}, which lacks {len(lost)} of them",
                hint="this ledger was cut, restored from a copy or is another one. The site does not answer: find the "
                "right one, or write down what is lost with dpcausal ledger restore.",
            )
        return ledger

    def _vault(self, study: Study, ledger: str | Ledger) -> Vault:
        policy = self.policy
        engine = f"{policy.memory_bytes * 6 // 10**7} MB"  # the rest is for everything else in the process
        return Vault(
            address_in(self._folder, policy.table),
            study.schema,
            ledger=ledger,
            budget=Budget(**policy.budget),
            as_of=policy.as_of,
            allow_unproved=policy.allow_unproved,
            resources=Resources(memory=engine, progress=False),
        )

    def status(self, digest: str) -> StudyStatus:
        """What was decided about a study."""
        return self.audit_log.status(digest, self.policy.approvals)

    def studies(self) -> list[tuple[str, Study, StudyStatus]]:
        """Every study that was sent here, with its digest and what was decided about it."""
        digests = self.inbox.digests()
        return [(digest, Study.from_toml(self.inbox.text(digest)), self.status(digest)) for digest in digests]

    def receive(self, text: str) -> str:
        """Keep a study that was brought by hand, and return its digest."""
        Study.from_toml(text)
        return self.inbox.keep(text, by_hand=True)

    def review(self, beginning: str) -> Review:
        """A study that this site has, by the first digits of its digest, as a person should see it before deciding.

        Nothing is opened for it but the table, to count units, and that only where the policy allows the study: what a
        ledger is tied to is not decided by whoever sends a study.
        """
        text = self.inbox.text(beginning)
        study, digest = Study.from_toml(text), digest_of_text(text)
        n = None if objections(self.policy, study) else self._vault(study, IN_MEMORY).n
        ledger = None
        with contextlib.suppress(LedgerError):  # what is wrong with it, check_ledger says
            ledger = self.ledger()
        lines = tuple(line for line in self.audit_log.lines() if line.study == digest and line.kind != "answer")
        return Review(study, digest, self.policy, n, ledger, self.status(digest), lines)

    def check_ledger(self, review: Review) -> None:
        """Raise where the ledger would let nothing be answered: it is absent, broken, or of other data or budget."""
        ledger = self.ledger()
        ledger.check_budget(Budget(**self.policy.budget))
        if review.n is not None:
            data_set = DataSet.of(review.study.schema, self.policy.allow_unproved)
            ledger.check_data_set(self.policy.as_of, data_set, review.n)

    def approve(self, beginning: str, *, by: str, why: str = "") -> str:
        """Write down that a person approves a study; the digest is returned.

        Raises:
            StudyError: If the policy does not allow it: an approval cannot overrule the policy.
        """
        text = self.inbox.text(beginning)
        against = objections(self.policy, Study.from_toml(text))
        if against:
            raise StudyError(
                expected="a study that this site's policy allows",
                got="; ".join(against),
                hint="reject it, or change the policy first.",
            )
        self.audit_log.write("approve", digest_of_text(text), by, why)
        return digest_of_text(text)

    def reject(self, beginning: str, *, by: str, why: str = "") -> str:
        """Write down that a person rejects a study; the digest is returned."""
        digest = digest_of_text(self.inbox.text(beginning))
        self.audit_log.write("reject", digest, by, why)
        return digest


def _read(body: str, requester: str) -> tuple[Request, Study]:
    """A request and its study."""
    try:
        request = Request.from_json(body)
        study = Study.from_toml(request.study)
    except Exception:  # noqa: BLE001 (a hostile text may break in ways that nobody listed)
        raise _RefusalError("unreadable") from None
    if study.requester != requester:
        raise _RefusalError("unknown_requester")
    return request, study
