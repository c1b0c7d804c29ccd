"""Sending one request to all sites: with retries, and with every answer stored before it is used."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from dpcausal.errors import TransportError
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.responses import SiteResponse, signed_by, why_invalid
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.protocol.messages import BEFORE, MEANINGS, VERSION, Code, Message, Request, withdrawal
from dpcausal.federation.protocol.question import Question
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.protocol.transport import Transport
from dpcausal.utils.hash_chain import digest_of_text

_RETRYABLE: tuple[Code, ...] = ("failed", "stopped")
"""Transient error codes, worth retrying."""

DAYS = 30.0
"""For how many days a site may answer a request, unless it was chosen otherwise."""
_MARGIN = 60.0
"""Seconds by which clocks may differ."""


@dataclass(frozen=True)
class Dispatcher:
    """Sends a request to sites until each has answered or has no attempts left.

    A site that has answered a request does not receive it again. A retry asks the same question, and a site answers the
    same question at no further cost. Sites that speak only the version of the protocol before this one are asked in it.
    A withdrawn study is asked no more: a site that does not know of the withdrawal would pay for it.

    Attributes:
        timeout: Seconds that the transport may take for each attempt.
        attempts: The largest number of attempts for a site.
        on_response: Called with each response, as soon as it is known.
        days: For how many days a site may answer a request.
        protocol: The version of the protocol in which requests are written.
    """

    roster: Roster
    key: Key
    transport: Transport
    requests: Requests
    timeout: float
    attempts: int
    on_response: Callable[[SiteResponse], None]
    days: float = DAYS
    protocol: int = VERSION

    def ask(self, question: Question, sites: Collection[str] | None = None) -> dict[str, SiteResponse]:
        """Send a request, and return the response of each site of the roster, in the order of their names.

        Args:
            sites: The sites to ask; without it, all of the roster.
        """
        closed = False
        if question.request.ask != "withdraw":  # which the version before does not know
            question = _in_version(question, min(self.protocol, question.request.version))
            closed = self.is_withdrawn(question.request.study)
        sealed = "" if closed else self.sealed(question.request)
        absent = _WITHDRAWN if closed else SILENT
        named = self.roster.sites if sites is None else [site for site in self.roster.sites if site in sites]
        stored = self.stored(question)
        found = {
            site: stored.get(site) or SiteResponse(site, absent) for site in sorted(named) if site in self.roster.keys
        }
        for site, response in found.items():
            if site in stored:
                self.on_response(response)
        for attempt in range(0 if closed else self.attempts):
            waiting = [
                site
                for site, response in found.items()
                if response.message is None or response.message.code in _RETRYABLE
            ]
            if not waiting:
                break
            if attempt:
                time.sleep(self._pause(attempt))
            known = self._older(question)
            found |= self._asked_once(question, sealed, [site for site in waiting if site not in known])
            older = [site for site in waiting if site in self._older(question)]
            if older and question.request.ask in ("facts", "releases"):
                before = _in_version(question, BEFORE)
                found |= self._asked_once(before, self.sealed(before.request), older)
        revoked = {site: SiteResponse(site, _REVOKED) for site in named if site not in found}
        return dict(sorted((found | revoked).items()))

    def stored(self, question: Question) -> dict[str, SiteResponse]:
        """Return the answers to a request that are stored, by site. Nobody is asked."""
        found: dict[str, SiteResponse] = {}
        for version in (VERSION, BEFORE):
            for site, text, at in self.requests.messages(_in_version(question, version).request.id):
                stored = self._validated(site, text, question, at=at)
                if stored.answered and stored.site in self.roster.keys:
                    found.setdefault(stored.site, stored)
        return found

    def _older(self, question: Question) -> set[str]:
        """Return the sites that could not read the version of a request, by what they signed: an answer may be slow."""
        last = {site: text for site, text, _ in self.requests.messages(question.request.id)}
        refused = {site: Message.from_json(claimed_body(text)) for site, text in last.items()}
        return {site for site, message in refused.items() if message.version < question.request.version}

    def withdraw(self, requests: Collection[str]) -> None:
        """Take back requests, by their ids, from where sites that have not answered would find them."""
        self.transport.withdraw(sorted(requests))

    def is_withdrawn(self, study: str) -> bool:
        """Return whether the study with this text was withdrawn."""
        return self.requests.attempts(withdrawal(study)) > 0

    def sealed(self, request: Request) -> str:
        """Return a request with its deadline, signed, after storing it.

        The deadline of the last one is used again while most of its days are left. A site of the version before answers
        with the digest of the text, and may do so after the next one was sent.

        Masked sums that arrive after the last attempt are of no use, and their price would be spent for nothing.
        """
        pauses = sum(self._pause(attempt) for attempt in range(1, self.attempts))
        ends = self.timeout > 0 and request.ask == "masked"
        seconds = self.timeout * self.attempts + pauses + _MARGIN if ends else self.days * 86_400.0
        deadline = int(time.time() + seconds) + 1
        sent = self.requests.text(request.id)
        last = Request.from_json(claimed_body(sent)).deadline if sent else None
        if request.ask != "masked" and last is not None and 0 <= deadline - last < seconds / 2:
            deadline = last
        timed = request if request.version == BEFORE else replace(request, deadline=deadline)
        sealed = self.key.seal(timed.to_json())
        self.requests.store(request.id, digest_of_text(request.study), sealed)
        return sealed

    def _pause(self, attempt: int) -> float:
        return min(2.0 ** (attempt - 1), self.timeout)

    def _asked_once(self, question: Question, sealed: str, sites: list[str]) -> dict[str, SiteResponse]:
        """Return the responses to one attempt; of several from one site, the one with the highest rank."""
        fresh: dict[str, SiteResponse] = {}
        if not sites:
            return fresh

        def receive(site: str, text: str) -> None:
            response = self._validated(site, text, question, sealed)
            if response.site not in sites or (response.site in fresh and response.rank <= fresh[response.site].rank):
                return
            if response.message is not None or response.words == _OLDER:
                self.requests.accept(question.request.id, response.site, text)
            fresh[response.site] = response
            self.on_response(response)

        self.requests.count(question.request.id)
        try:
            self.transport.ask(sealed, sites, self.timeout, receive, question.enclosed)
        except TransportError as error:
            closed = f"could not be asked: {error.problem}"
            return {site: SiteResponse(site, closed) for site in sites} | fresh
        return fresh

    def _validated(self, site: str, text: str, question: Question, sent: str = "", at: str = "") -> SiteResponse:
        """Return the response in a text. The signature names the site; the transport's name counts only without one.

        Args:
            site: The site from which the transport has the text.
            text: The text.
            question: What was asked.
            sent: The signed request; empty for a text that is stored.
            at: When it was stored; empty for one that arrives now.
        """
        signed = signed_by(text, self.roster, at)
        if signed is None:
            return SiteResponse(site, f"{_INVALID}: it is not a message signed with this site's key")
        signer, message = signed
        if message.version < question.request.version and message.code == "unreadable":
            about_this = message.request == digest_of_text(claimed_body(sent))  # an old refusal could be sent again
            return SiteResponse(signer, _OLDER if about_this else f"{_INVALID}: it answers another request")
        question = _in_version(question, message.version)
        study = digest_of_text(question.request.study)
        sent_before = self.requests.messages_of(study, signer) if message.n is not None else []
        before = [Message.from_json(claimed_body(each)) for each in sent_before]
        problem = why_invalid(message, signer, question, self.roster.sites[signer].units, before)
        if problem:
            return SiteResponse(signer, f"{_INVALID}: {problem}")
        return SiteResponse(signer, MEANINGS[message.code], message, text)


def _in_version(question: Question, version: int) -> Question:
    """Return the same question in a version of the protocol."""
    request = question.request
    return question if request.version == version else replace(question, request=replace(request, version=version))


_OLDER = f"speaks only version {BEFORE} of the protocol"
SILENT = "did not answer"
"""What is known of a site that has not answered yet."""
_WITHDRAWN = "was not asked: the study is withdrawn"
_REVOKED = "is revoked in the roster, and was not asked"
_INVALID = "sent an invalid response"
