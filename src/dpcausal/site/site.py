"""A site: decides by its own policy, its own people and its own ledger, and answers strangers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcausal import queries
from dpcausal.errors import BudgetExceededError, DpcausalError, RoadError, StudyError
from dpcausal.federation.protocol import Code, Message, Request, digest_of_text
from dpcausal.federation.signatures import Key, claimed_body, opened
from dpcausal.ledger import Budget
from dpcausal.site.diary import DIARY, Diary, Standing
from dpcausal.site.inbox import Inbox
from dpcausal.site.policy import KEY, Policy, address_in
from dpcausal.site.review import Review, objections
from dpcausal.study import Study
from dpcausal.vault import Vault
from dpcausal.vault.resources import Resources


class _RefusalError(Exception):
    """Why a request is not answered."""

    def __init__(self, code: Code) -> None:
        self.code = code
        super().__init__(code)


class Site:
    """A vault that answers requests from outside, as far as the site's policy, people and ledger let it.

    Every part of a request is taken to be hostile. Whatever is asked, the answer is a signed message; one that is no
    answer holds a code out of a fixed list and nothing else. No error is told outside. The same request always has the
    same answer, for which nothing is spent again.

    Args:
        folder: Where the site keeps its policy, key, diary and studies, and its ledger unless that is elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.policy = Policy.read(folder)
        self._key = Key.read(self.policy.site, folder / KEY)
        self.diary = Diary(folder / DIARY)
        self.inbox = Inbox(folder / "studies")

    @property
    def public_key(self) -> str:
        """What coordinators write into their rosters."""
        return self._key.public

    def answer(self, request: str) -> str:
        """The signed message that answers a signed request."""
        asker, study = "somebody unknown", ""
        message = Message(
            request=digest_of_text(claimed_body(request)), study=study, site=self.policy.site, code="failed"
        )
        try:
            asker, body = self._opened(request)
            asked, planned = _read(body, asker)
            message = replace(message, study=self.inbox.keep(asked.study))
            found = self._found(asked, planned, message.study)
            message = replace(message, code="answered", **found)
        except _RefusalError as refusal:
            message = replace(message, code=refusal.code)
        except BudgetExceededError:
            message = replace(message, code="no_budget")
        except MemoryError:
            message = replace(message, code="stopped")
        except Exception:  # noqa: BLE001, S110 (whatever it is, its text may quote the table: it stays here)
            pass
        return self._key.seal(self._noted(message, asker).to_json())

    def _opened(self, request: str) -> tuple[str, str]:
        try:
            return opened(request, self.policy.askers)
        except RoadError:
            raise _RefusalError("unknown_asker") from None

    def _noted(self, message: Message, asker: str) -> Message:
        """The message, written into the diary first; one that cannot be written is not said."""
        try:
            self.diary.write("answer", message.study, asker, f"{message.request} {message.code}")
        except (OSError, DpcausalError):
            return Message(request=message.request, study=message.study, site=message.site, code="failed")
        return message

    def _found(self, asked: Request, study: Study, digest: str) -> dict[str, Any]:
        """What goes into an answer."""
        standing = self.standing(digest)
        if standing != "approved":
            raise _RefusalError(standing)
        if objections(self.policy, study):
            raise _RefusalError("not_allowed")
        question = _question(asked, study, self.policy.site)
        vault = self._vault(study)
        if vault.n < self.policy.minimum_units:
            raise _RefusalError("too_few_units")
        facts: dict[str, Any] = {"n": vault.n, "arm_sizes": vault.arm_sizes}
        if asked.ask == "effect":
            guarantee = study.guarantee(self.policy.site)
            effect = study.estimator.estimate(vault, epsilon=guarantee.epsilon, delta=guarantee.delta)
            return facts | {"answer": json.loads(effect.to_json())}
        return facts | ({"answer": json.loads(vault.release(*question).to_json())} if question else {})

    def _vault(self, study: Study) -> Vault:
        policy = self.policy
        return Vault(
            address_in(self._folder, policy.table),
            study.schema,
            ledger=policy.ledger if "://" in policy.ledger else f"sqlite:///{self._folder / policy.ledger}",
            budget=Budget(**policy.budget),
            heuristics=policy.heuristics,
            resources=Resources(memory=policy.memory, progress=False),
        )

    def standing(self, digest: str) -> Standing:
        """What was decided about a study."""
        return self.diary.standing(digest, self.policy.approvals)

    def studies(self) -> list[tuple[str, Study, Standing]]:
        """Every study that was sent here, with its digest and what was decided about it."""
        digests = self.inbox.digests()
        return [(digest, Study.from_toml(self.inbox.text(digest)), self.standing(digest)) for digest in digests]

    def receive(self, text: str) -> str:
        """Keep a study that was brought by hand, and return its digest."""
        Study.from_toml(text)
        return self.inbox.keep(text)

    def review(self, beginning: str) -> Review:
        """A study that this site has, by the first digits of its digest, as a person should see it before deciding."""
        text = self.inbox.text(beginning)
        study, digest = Study.from_toml(text), digest_of_text(text)
        # The ledger is opened, and tied to what a study says of the table, only for one that the policy allows.
        vault = None if objections(self.policy, study) else self._vault(study)
        lines = tuple(line for line in self.diary.lines() if line.study == digest and line.kind != "answer")
        return Review(study, digest, self.policy, vault, self.standing(digest), lines)

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
                hint="deny it, or change the policy first.",
            )
        self.diary.write("approve", digest_of_text(text), by, why)
        return digest_of_text(text)

    def deny(self, beginning: str, *, by: str, why: str = "") -> str:
        """Write down that a person denies a study; the digest is returned."""
        digest = digest_of_text(self.inbox.text(beginning))
        self.diary.write("deny", digest, by, why)
        return digest


def _read(body: str, asker: str) -> tuple[Request, Study]:
    """A request and its study."""
    try:
        request = Request.from_json(body)
        study = Study.from_toml(request.study)
    except Exception:  # noqa: BLE001 (a hostile text may break in ways that nobody listed)
        raise _RefusalError("unreadable") from None
    if study.asker != asker:
        raise _RefusalError("unknown_asker")
    return request, study


def _question(asked: Request, study: Study, site: str) -> Any:  # noqa: ANN401 (a query and a guarantee, or None)
    """For a release, the study's question, which must be just what is asked. For an effect nothing can be chosen."""
    if asked.ask == "facts":
        return None
    if (asked.ask == "release") != (study.pooling == "sums"):
        raise _RefusalError("not_in_study")
    if asked.ask == "effect":
        return None
    query, guarantee = study.questions(site=site)[0]
    if (asked.query, asked.guarantee) != (_plain(queries.to_dict(query)), _plain(guarantee.to_dict())):
        raise _RefusalError("not_in_study")
    return query, guarantee


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Plain values as they come out of JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
