"""One question to all sites: asked again where that may help, with every answer kept before it is used."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dpcausal.errors import TransportError
from dpcausal.federation.protocol import MEANINGS, Code, Message, digest_of_text
from dpcausal.federation.requests import Requests
from dpcausal.federation.roster import Roster
from dpcausal.federation.signatures import Key, claimed_body
from dpcausal.federation.transport import Transport
from dpcausal.federation.validation import Question, SiteResponse, signed_by, why_invalid

_RETRYABLE: tuple[Code, ...] = ("failed", "stopped")
"""Codes of trouble that may have passed when a site is asked again at once. What people or budgets decide does not."""


@dataclass(frozen=True)
class Dispatcher:
    """Asks sites, until each has answered or has been asked often enough.

    A site that has answered a request is never asked it again. A request that is sent again is the same text, and a
    site answers the same text for nothing.

    Attributes:
        roster: Who is asked.
        key: What requests are signed with.
        transport: How they reach sites.
        requests: Where requests and messages are kept.
        timeout: How many seconds the transport may take each time.
        attempts: How often a site is asked at most.
        on_response: Called with a site and words on what it did, as they become known.
    """

    roster: Roster
    key: Key
    transport: Transport
    requests: Requests
    timeout: float
    attempts: int
    on_response: Callable[[str, str], None]

    def ask(self, question: Question) -> dict[str, SiteResponse]:
        """What each site of the roster did, in the order of their names."""
        asked = question.request
        sealed = self.key.seal(asked.to_json())
        self.requests.keep(asked.id, digest_of_text(asked.study), sealed)
        found = {site: SiteResponse(site, _SILENT) for site in sorted(self.roster.keys)}
        for site, text in self.requests.messages(asked.id):
            kept = self._judged(site, text, question)
            if kept.answered and kept.site in found and not found[kept.site].answered:
                found[kept.site] = kept
                self.on_response(kept.site, kept.words)
        for attempt in range(self.attempts):
            waiting = [site for site, response in found.items() if _may_help(response)]
            if not waiting:
                break
            if attempt:
                time.sleep(min(2.0 ** (attempt - 1), self.timeout))
            found |= self._asked_once(question, sealed, waiting)
        revoked = {site: SiteResponse(site, _REVOKED) for site in self.roster.sites if site not in found}
        return dict(sorted((found | revoked).items()))

    def _asked_once(self, question: Question, sealed: str, sites: list[str]) -> dict[str, SiteResponse]:
        """The responses of some sites this time: of several things that one of them says, the one that counts most."""
        fresh: dict[str, SiteResponse] = {}

        def receive(site: str, text: str) -> None:
            response = self._judged(site, text, question)
            if response.site not in sites or (response.site in fresh and response.rank <= fresh[response.site].rank):
                return
            if response.message is not None:
                self.requests.accept(question.request.id, response.site, text)
            fresh[response.site] = response
            self.on_response(response.site, response.words)

        self.requests.count(question.request.id)
        try:
            self.transport.ask(sealed, sites, self.timeout, receive)
        except TransportError as error:
            closed = f"could not be asked (expected {error.expected}, got {error.got})"
            return {site: SiteResponse(site, closed) for site in sites} | fresh
        return fresh

    def _judged(self, site: str, text: str, question: Question) -> SiteResponse:
        """What a text is worth. Its signature says whose it is; the transport's word counts only where there is none."""
        signed = signed_by(text, self.roster)
        if signed is None:
            return SiteResponse(site, f"{_INVALID}: it is not a message signed with this site's key")
        signer, message = signed
        study = digest_of_text(question.request.study)
        before = [Message.from_json(claimed_body(said)) for said in self.requests.said(study, signer)]
        doubt = why_invalid(message, signer, question, self.roster.sites[signer].units, before)
        return (
            SiteResponse(signer, f"{_INVALID}: {doubt}")
            if doubt
            else SiteResponse(signer, MEANINGS[message.code], message)
        )


_SILENT = "did not answer"
_REVOKED = "is revoked in the roster, and was not asked"
_INVALID = "sent an invalid response"


def _may_help(response: SiteResponse) -> bool:
    """Whether asking again may bring an answer."""
    return response.message is None or response.message.code in _RETRYABLE
