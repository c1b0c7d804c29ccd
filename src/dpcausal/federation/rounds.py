"""One question to all sites: asked again where that may help, with every answer kept before it is used."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dpcausal.errors import RoadError
from dpcausal.federation.checks import Heard, Question, doubt_about, signed_by
from dpcausal.federation.protocol import MEANINGS, Code, Message, digest_of_text
from dpcausal.federation.requests import Requests
from dpcausal.federation.roads import Road
from dpcausal.federation.roster import Roster
from dpcausal.federation.signatures import Key, claimed_body

_PASSING: tuple[Code, ...] = ("failed", "stopped")
"""Codes of trouble that may have passed when a site is asked again at once. What people or budgets decide does not."""


@dataclass(frozen=True)
class Rounds:
    """Asks sites, until each has answered or has been asked often enough.

    A site that has answered a request is never asked it again. A request that is sent again is the same text, and a
    site answers the same text for nothing.

    Attributes:
        roster: Who is asked.
        key: What requests are signed with.
        road: How they reach sites.
        requests: Where requests and messages are kept.
        patience: How many seconds the road may take each time.
        attempts: How often a site is asked at most.
        told: Called with a site and words on what it did, as they become known.
    """

    roster: Roster
    key: Key
    road: Road
    requests: Requests
    patience: float
    attempts: int
    told: Callable[[str, str], None]

    def ask(self, question: Question) -> dict[str, Heard]:
        """What each site of the roster did, in the order of their names."""
        asked = question.request
        sealed = self.key.seal(asked.to_json())
        self.requests.keep(asked.id, digest_of_text(asked.study), sealed)
        found = {site: Heard(site, _SILENT) for site in sorted(self.roster.keys)}
        for site, text in self.requests.messages(asked.id):
            kept = self._judged(site, text, question)
            if kept.answered and kept.site in found and not found[kept.site].answered:
                found[kept.site] = kept
                self.told(kept.site, kept.words)
        for attempt in range(self.attempts):
            waiting = [site for site, heard in found.items() if _may_help(heard)]
            if not waiting:
                break
            if attempt:
                time.sleep(min(2.0 ** (attempt - 1), self.patience))
            found |= self._asked_once(question, sealed, waiting)
        revoked = {site: Heard(site, _REVOKED) for site in self.roster.sites if site not in found}
        return dict(sorted((found | revoked).items()))

    def _asked_once(self, question: Question, sealed: str, sites: list[str]) -> dict[str, Heard]:
        """What was heard of some sites this time: of several things that one of them says, the one that counts most."""
        fresh: dict[str, Heard] = {}

        def hear(site: str, text: str) -> None:
            heard = self._judged(site, text, question)
            if heard.site not in sites or (heard.site in fresh and heard.rank <= fresh[heard.site].rank):
                return
            if heard.message is not None:
                self.requests.believe(question.request.id, heard.site, text)
            fresh[heard.site] = heard
            self.told(heard.site, heard.words)

        self.requests.count(question.request.id)
        try:
            self.road.ask(sealed, sites, self.patience, hear)
        except RoadError as error:
            closed = f"could not be asked (expected {error.expected}, got {error.got})"
            return {site: Heard(site, closed) for site in sites} | fresh
        return fresh

    def _judged(self, site: str, text: str, question: Question) -> Heard:
        """What a text is worth. Its signature says whose it is; the road's word counts only where there is none."""
        signed = signed_by(text, self.roster)
        if signed is None:
            return Heard(site, f"{_DOUBTED}: it is not a message signed with this site's key")
        signer, message = signed
        study = digest_of_text(question.request.study)
        before = [Message.from_json(claimed_body(said)) for said in self.requests.said(study, signer)]
        doubt = doubt_about(message, signer, question, self.roster.sites[signer].units, before)
        return Heard(signer, f"{_DOUBTED}: {doubt}") if doubt else Heard(signer, MEANINGS[message.code], message)


_SILENT = "did not answer"
_REVOKED = "is revoked in the roster, and was not asked"
_DOUBTED = "sent what cannot be believed"


def _may_help(heard: Heard) -> bool:
    """Whether asking again may bring an answer."""
    return heard.message is None or heard.message.code in _PASSING
