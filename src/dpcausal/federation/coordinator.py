"""Many sites as one source, or their effects pooled into one."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from dpcausal.calibration import calibrate
from dpcausal.effect import Effect, SiteShare
from dpcausal.errors import RefusedError, StudyError
from dpcausal.federation.aggregate import sum_releases
from dpcausal.federation.dispatch import Dispatcher
from dpcausal.federation.protocol import Message, Request
from dpcausal.federation.replay import replayed
from dpcausal.federation.requests import Requests
from dpcausal.federation.roster import Roster
from dpcausal.federation.signatures import Key
from dpcausal.federation.transport import Transport
from dpcausal.federation.validation import Question, SiteResponse, releases_of
from dpcausal.guarantee import Guarantee
from dpcausal.pooling import pool
from dpcausal.queries import Query, StratumContrasts
from dpcausal.release import Release
from dpcausal.schema import Schema
from dpcausal.study import Study
from dpcausal.validation import is_number


class Coordinator:
    """Asks many sites the question of one study. Sites need not trust it, and it does not trust the transport.

    Where the study adds up sums, a coordinator is a source like any other: its answer is that of all sites' units in
    one table, with each site's noise. Otherwise it asks each site for its effect and pools them.

    Everything that it asks and believes is in `store` before it is used. A coordinator that was stopped, made anew with
    the same store, goes on where it was: it asks no site again that has answered.

    Args:
        study: The study's text, or the `Path` of its file. Sites approve it by the digest of this text.
        roster: The sites, and their keys.
        key: What requests are signed with; its owner is the study's requester.
        transport: How requests reach sites.
        store: The file for requests and answers; `:memory:` for one that forgets.
        timeout: How many seconds to wait for sites each time they are asked.
        attempts: How often a site is asked that does not answer or that fails.
        min_sites: From fewer sites there is no effect.
        on_response: Called with a site and words on what it did, as they become known.
    """

    def __init__(  # noqa: PLR0913
        self,
        study: str | Path,
        roster: Roster,
        key: Key,
        transport: Transport,
        *,
        store: str | Path,
        timeout: float = 60.0,
        attempts: int = 3,
        min_sites: int = 1,
        on_response: Callable[[str, str], None] = lambda _site, _words: None,
    ) -> None:
        self._text = _text_of(study)
        self.study = Study.from_toml(self._text)
        _check(self.study, roster, key)
        if not (is_number(timeout) and timeout >= 0 and attempts >= 1 and 1 <= min_sites <= len(roster.keys)):
            raise StudyError(
                expected=f"a timeout of 0 or more, 1 or more attempts, and at least 1 of {len(roster.keys)} sites",
                got=f"timeout={timeout!r}, attempts={attempts!r}, min_sites={min_sites!r}",
                hint="leave them out for a minute, three attempts and one site.",
            )
        self._min_sites = min_sites
        self._dispatcher = Dispatcher(roster, key, transport, Requests(store), timeout, attempts, on_response)
        self._found: dict[str, SiteResponse] | None = None

    @property
    def request(self) -> Request:
        """What the study asks of its sites: one request for all."""
        return Request(study=self._text, ask="releases")

    @property
    def sealed(self) -> str:
        """The same with the requester's signature: the text that is sent."""
        return self._dispatcher.key.seal(self.request.to_json())

    def run(self) -> Effect:
        """Ask all sites that have not answered yet, and make one effect of what they say.

        Raises:
            RefusedError: If too few of them answered; the message says what each one did.
        """
        self._found = None
        if self.study.pooling == "sums":
            return self._summed()
        effects = self.effects()
        absent = {site: response.words for site, response in self._asked().items() if not response.answered}
        return pool(effects, self.study.pooling, absent)

    def effects(self) -> dict[str, Effect]:
        """Each answering site's own effect, where the study pools effects."""
        answers = self._answers(self._asked())
        return {site: replayed(self.study, site, told, releases_of(told)) for site, told in answers.items()}

    def _summed(self) -> Effect:
        found = self._asked()  # first, so that the number of units need not be asked for
        guarantee = self.study.guarantee()
        effect = self.study.estimator.estimate(self, epsilon=guarantee.epsilon, delta=guarantee.delta)
        releases = self._releases()
        shares = (
            SiteShare(site, response.words, response.message.n if response.message else None)
            for site, response in found.items()
        )
        return replace(
            effect,
            method=f"{effect.method}; from the sums of {len(releases)} of {len(found)} sites",
            receipts=tuple(replace(release.receipt, site=site) for site, release in releases.items()),
            sites=tuple(shares),
        )

    @property
    def schema(self) -> Schema:
        """What is public about the sites' tables."""
        return self.study.schema

    @property
    def n(self) -> int:
        """The number of units at the sites that answered. Before the study's question, sites are asked for it, free."""
        return sum(message.n or 0 for message in self._members().values())

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """Their number in each arm where the schema declares arms public; otherwise None."""
        if self.schema.protects == "record":
            return None
        control, treated = zip(*(message.arm_sizes or (0, 0) for message in self._members().values()), strict=True)
        return sum(control), sum(treated)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of an effect from here should know: who is in it, who is not, and what that means."""
        if self._found is None:
            return ()
        absent = ", ".join(
            f"{site} ({response.words})" for site, response in self._found.items() if not response.answered
        )
        notes = (f"without {absent}: the effect is of units of the sites that answered",) if absent else ()
        if len(self._members()) == 1:
            return notes
        strata = isinstance(self.study.questions()[0][0], StratumContrasts)
        return (*notes, *_OF_SUMS, _OF_STRATA if strata else _OF_ONE_TABLE)

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """The sum of all sites' noisy answers to the study's question.

        Raises:
            RefusedError: If it is another question, or too few sites answered.
        """
        asked = self.study.questions()[0]
        if self.study.pooling != "sums" or (query, guarantee) != asked:
            raise RefusedError(
                expected="the question of a study that adds up sums, as its sites approved it",
                got=f"{query.name}, {guarantee}" if self.study.pooling == "sums" else f"{self.study.pooling}",
                hint='write another study: with pooling = "sums" for sums; otherwise use run().',
            )
        return sum_releases(query, guarantee, calibrate(query, self.schema, guarantee), self._releases())

    def _releases(self) -> dict[str, Release]:
        return {site: releases_of(message)[0] for site, message in self._answers(self._asked()).items()}

    def _asked(self) -> dict[str, SiteResponse]:
        """What each site did when it was asked the study's question."""
        if self._found is None:
            self._found = self._dispatcher.ask(Question(self.study, self.request))
        return self._found

    def _members(self) -> dict[str, Message]:
        """The messages of those sites whose units count, or would."""
        facts = Question(self.study, Request(study=self._text, ask="facts"))
        return self._answers(self._dispatcher.ask(facts) if self._found is None else self._found)

    def _answers(self, found: dict[str, SiteResponse]) -> dict[str, Message]:
        answers = {
            site: response.message
            for site, response in found.items()
            if response.message is not None and response.answered
        }
        if len(answers) < self._min_sites:
            raise RefusedError(
                expected=f"answers from at least {self._min_sites} of {len(found)} sites",
                got=_told(found.values()),
                hint="see to the sites, then ask again: what was answered is kept, and not paid for twice.",
            )
        return answers


_OF_SUMS = (
    "answers were added up, and each site added noise of its own",
    "a unit is taken to be at one site; epsilons add up for a person with records at several sites",
)
_OF_STRATA = "each site's strata are its own: units are compared within sites only"
_OF_ONE_TABLE = (
    "sites were compared as one table: where they differ both in who is treated and in outcomes, that is not "
    "adjusted for"
)


def _told(found: Iterable[SiteResponse]) -> str:
    """What sites did, those named together that did the same."""
    sites: dict[str, list[str]] = {}
    for response in found:
        sites.setdefault(response.words, []).append(response.site)
    return "; ".join(f"{', '.join(named)} {words}" for words, named in sites.items())


def _text_of(study: str | Path) -> str:
    """The study's text, to the letter: its digest is what sites approve."""
    if isinstance(study, str):
        return study
    try:
        return study.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise StudyError(
            expected="the Path of a study file", got=f"{study} ({type(error).__name__})", hint="check its name."
        ) from None


def _check(study: Study, roster: Roster, key: Key) -> None:
    if study.requester != key.owner:
        raise StudyError(
            expected=f"the key of {study.requester}, who asks by the study",
            got=f"that of {key.owner}",
            hint="sites believe only the requester whose name is in the study.",
        )
    if not roster.keys:
        raise StudyError(
            expected="a roster with at least one site that is not revoked", got="none", hint="enter the sites first."
        )
    if unknown := sorted(set(study.epsilons) - set(roster.sites)):
        raise StudyError(
            expected="epsilons of sites that are in the roster", got=", ".join(unknown), hint="check the names."
        )
