"""The coordinator's side of a secure sum: five rounds, of which each is asked once and stored before it is used."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from dpcausal.errors import RefusedError, SessionError, TransportError
from dpcausal.federation.coordinator.dispatch import Dispatcher
from dpcausal.federation.coordinator.responses import SiteResponse
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.protocol.messages import STEPS, Request, Step
from dpcausal.federation.protocol.question import Question
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.secure.coordinator import open_sum
from dpcausal.federation.secure.messages import carried_sites, header_part, members_digest_in
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of_text

ROUNDS: Mapping[Step, str] = {
    "keys": "one-time keys",
    "shares": "encrypted shares",
    "masked": "masked sums",
    "confirm": "confirmations",
    "unmask": "opening",
}
"""The rounds in words."""

_UNPAID = "nothing was paid yet. Contact these sites, then run again: the round continues."
_PAID = (
    "sites that sent masked sums have paid. Contact the others, then run again: the round continues with the same "
    "sites, and nothing is paid twice. A sum that cannot be opened needs a new study text, with its own price."
)


@dataclass(frozen=True)
class OpenedSum:
    """The sum over sites, and what each site did.

    Attributes:
        responses: What each site of the study did; the sites in the sum have answered with their masked numbers.
    """

    ticks: tuple[int, ...]
    responses: Mapping[str, SiteResponse]


class SecureRounds:
    """The rounds of one study's secure sum.

    The store holds the request of each round that was begun. A new coordinator with the same store continues there, in
    the same version of the protocol: the sites of a round never change, because a site answers each round for one set
    of sites only.

    Args:
        min_sites: The smallest number of sites in the sum; never below the threshold.
        on_response: Called with a site's name and what it did.
    """

    def __init__(
        self,
        study: Study,
        settings: SecureSettings,
        dispatcher: Dispatcher,
        min_sites: int,
        on_response: Callable[[str, str], None],
    ) -> None:
        self._study, self._settings, self._dispatcher = study, settings, dispatcher
        self._least, self._on_response = max(min_sites, settings.threshold), on_response
        self._begun = self._stored_requests()
        self._version = self._begun["shares"].version if "shares" in self._begun else dispatcher.protocol
        self._dispatcher = replace(dispatcher, protocol=self._version)
        self._shares: dict[str, SiteResponse] = {}

    def run(self) -> OpenedSum:
        """Run the rounds that are left, and open the sum."""
        responses, is_new = dict[str, SiteResponse](), "unmask" not in self._begun
        keys = self._round("keys", self._settings.sites, (), responses)
        shares = self._shares = self._round("shares", keys, _texts(keys.values()), responses)
        masked = self._round("masked", shares, self._headers("shares", shares), responses)
        masked = self._agreeing(masked, lambda answer: members_digest_in(answer["header"]), "masked", responses)
        confirmed = self._round("confirm", masked, self._headers("masked", masked), responses)
        summed, members = carried_sites(self._begun["confirm"]), carried_sites(self._begun["masked"])
        confirmed = self._agreeing(confirmed, lambda answer: answer["confirm"]["summed_digest"], "confirm", responses)
        opened = self._round("unmask", summed, _texts(confirmed.values()), responses, members, summed)
        numbers = {site: _answer(masked[site])["masked"] for site in summed if site in masked}
        bodies = {site: _answer(each)["keys"] for site, each in keys.items()}
        try:
            ticks = self._opened(numbers, bodies, opened)
        except SessionError:  # a share is wrong: those who have not answered yet may have a right one
            found = self._dispatcher.ask(Question(self._study, self._begun["unmask"], members, summed), summed)
            opened = {site: response for site, response in found.items() if response.answered}
            try:
                ticks = self._opened(numbers, bodies, opened)
            except SessionError as error:
                raise RefusedError(problem=error.problem, hint=error.hint) from None
        if is_new:
            self._close(STEPS)
        late = {site: SiteResponse(site, "answered too late") for site in members if site not in numbers}
        silent = {site: each for site, each in responses.items() if not each.answered}
        return OpenedSum(tuple(ticks), dict(sorted((late | silent | {site: masked[site] for site in numbers}).items())))

    def _round(  # noqa: PLR0913, PLR0917 (the last two are of the last round)
        self,
        step: Step,
        sites: Collection[str],
        carries: tuple[str, ...],
        responses: dict[str, SiteResponse],
        members: tuple[str, ...] = (),
        summed: tuple[str, ...] = (),
    ) -> dict[str, SiteResponse]:
        """Ask sites one round, record what each did, and return the answers of those that answered."""
        begun = self._begun.get(step)
        request = begun or Request(study=self._study.text, ask=step, carries=carries, version=self._version)
        asked = sites if step in ("keys", "unmask") else carried_sites(request)
        question = Question(self._study, request, members, summed)
        found = self._stored(step, question)
        if not self._is_over(step, found):
            if step == "masked":
                question = replace(question, enclosed=self._ciphertexts(asked))
            self._begun[step] = request
            self._close(STEPS[: STEPS.index(step)])
            counting = replace(self._dispatcher, on_response=self._counted(step, len(asked)))
            found = counting.ask(question, asked)
        for site in asked:
            response = found.get(site) or SiteResponse(site, "did not answer")
            in_round = SiteResponse(site, f"{response.words} in round {_place(step)}")
            responses[site] = response if response.answered else in_round
        answers = {site: response for site, response in found.items() if response.answered and site in asked}
        self._check_enough(step, answers, [responses[site] for site in asked])
        return answers

    def _stored(self, step: Step, question: Question) -> dict[str, SiteResponse]:
        """Return the stored answers to a round. Once the members are chosen, theirs stay whatever the roster says now.

        The keys and shares of a member that was revoked since are needed to open the sum without it.
        """
        if step not in ("keys", "shares") or "masked" not in self._begun:
            return self._dispatcher.stored(question)
        sites = self._dispatcher.roster.sites
        chosen = Roster({site: replace(member, revoked=False) for site, member in sites.items()})
        return replace(self._dispatcher, roster=chosen).stored(question)

    def _headers(self, step: Step, answers: Mapping[str, SiteResponse]) -> tuple[str, ...]:
        """Return what other sites see of answers to a round, in one order."""
        if not header_part(step, self._version):
            return _texts(answers.values())
        return tuple(sorted(_answer(each)["header"] for each in answers.values()))

    def _ciphertexts(self, members: Collection[str]) -> dict[str, str]:
        """Return what each member gets for itself alone: the ciphertexts that the others made for it."""
        if not header_part("shares", self._version):
            return {}
        made = {site: _answer(self._shares[site])["shares"]["ciphertexts"] for site in members}
        return {
            site: json.dumps({sender: each[site] for sender, each in made.items() if sender != site})
            for site in members
        }

    def _close(self, steps: Collection[Step]) -> None:
        """Withdraw the requests of rounds that are over: a late answer would be of no use, and masked sums cost."""
        over = [self._begun[step].id for step in steps if step in self._begun]
        if not over:
            return
        with suppress(TransportError):  # the round that follows meets the same transport
            self._dispatcher.withdraw(over)

    def _opened(
        self, numbers: Mapping[str, Any], keys: Mapping[str, Any], answers: Mapping[str, SiteResponse]
    ) -> list[int]:
        """Open the sum with the answers to the last round."""
        shares = {site: _answer(each)["unmask"] for site, each in answers.items()}
        return open_sum(numbers, keys, shares, self._settings.threshold)

    def _is_over(self, step: Step, found: Collection[str]) -> bool:
        """Return whether a later round has begun, or enough sites answered the last one: then nobody is asked again."""
        later = STEPS[STEPS.index(step) + 1 :]
        return any(each in self._begun for each in later) or (not later and len(found) >= self._settings.threshold)

    def _agreeing(
        self,
        answers: dict[str, SiteResponse],
        digest: Callable[[Mapping[str, Any]], str],
        step: Step,
        responses: dict[str, SiteResponse],
    ) -> dict[str, SiteResponse]:
        """Return the answers that agree on the set of sites with most others."""
        digests = {site: digest(_answer(response)) for site, response in answers.items()}
        usual, _ = Counter(digests.values()).most_common(1)[0]
        for site in answers:
            if digests[site] != usual:
                responses[site] = SiteResponse(site, "names another set of sites than the others")
        agreeing = {site: response for site, response in answers.items() if digests[site] == usual}
        self._check_enough(step, agreeing, [responses[site] for site in answers])
        return agreeing

    def _check_enough(self, step: Step, answers: Collection[str], found: Iterable[SiteResponse]) -> None:
        fixed = step in ("confirm", "unmask")
        least = self._settings.threshold if fixed else self._least
        if len(answers) < least:
            listed = list(found)
            raise RefusedError(
                problem=f"Answers of at least {least} of {len(listed)} sites are needed in round {_place(step)}, "
                f"{ROUNDS[step]}: {summary(listed)}",
                hint=_UNPAID if step in ("keys", "shares") else _PAID,
            )

    def _counted(self, step: Step, total: int) -> Callable[[SiteResponse], None]:
        """Return what to call with each response, which adds the round and how many sites have answered it."""
        answered = set[str]()

        def report(response: SiteResponse) -> None:
            if response.answered:
                answered.add(response.site)
            progress = f"round {_place(step)}, {ROUNDS[step]}: {len(answered)} of {total} sites"
            self._on_response(response.site, f"{response.words} ({progress})")

        return report

    def _stored_requests(self) -> dict[Step, Request]:
        """Return the first request of each round that was begun."""
        begun: dict[Step, Request] = {}
        for text in self._dispatcher.requests.texts_of(digest_of_text(self._study.text)):
            try:
                request = Request.from_json(claimed_body(text))
            except TransportError:  # of another version of dpcausal
                continue
            for step in STEPS:
                if request.ask == step:
                    begun.setdefault(step, request)
        return begun


def summary(found: Iterable[SiteResponse]) -> str:
    """Return what sites did, with those named together that did the same."""
    sites: dict[str, list[str]] = {}
    for response in found:
        sites.setdefault(response.words, []).append(response.site)
    return "; ".join(f"{', '.join(named)} {_in_plural(words, len(named))}" for words, named in sites.items())


def _in_plural(words: str, count: int) -> str:
    """Return what one site did as what so many did."""
    verb, _, rest = words.partition(" ")
    plural = {"has": "have", "does": "do", "knows": "know", "was": "were"}
    return f"{plural.get(verb, verb)} {rest}".rstrip() if count > 1 else words


def _answer(response: SiteResponse) -> Mapping[str, Any]:
    """Return the content of a valid answer."""
    return (response.message.answer if response.message else None) or {}


def _texts(responses: Iterable[SiteResponse]) -> tuple[str, ...]:
    """Return the signed texts of answers, in one order."""
    return tuple(sorted(response.text for response in responses))


def _place(step: Step) -> str:
    return f"{STEPS.index(step) + 1} of {len(STEPS)}"
