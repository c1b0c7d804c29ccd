"""The coordinator: many sites as one source, or their effects pooled into one."""

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

from dpcausal.errors import RefusedError, StudyError
from dpcausal.federation.coordinator.aggregate import largest_noise, replay_estimate, sum_releases
from dpcausal.federation.coordinator.dispatch import DAYS, Dispatcher
from dpcausal.federation.coordinator.plausibility import SiteAnswer, suspicions
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.responses import SiteResponse, releases_of
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.coordinator.secure_release import check_range, check_sites, opened_releases, secure_caveats
from dpcausal.federation.coordinator.secure_rounds import SecureRounds, summary
from dpcausal.federation.protocol.messages import BEFORE, VERSION, Ask, Message, Request, request_id
from dpcausal.federation.protocol.question import Question
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.protocol.transport import Transport
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.pooling import pool
from dpcausal.queries import Query, StratumContrasts
from dpcausal.queries.calibration import Asked, calibrations
from dpcausal.release import Receipt, Release, receipts_in
from dpcausal.results.effect import Effect
from dpcausal.results.site_share import SiteShare
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.study.prepared import StudyResult
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import is_number


class Coordinator(metaclass=Constructor):
    """Sends one study to many sites and pools their answers. Sites need not trust it; it does not trust the transport.

    With `pooling="sums"` a coordinator is a source like any other: its answer is that of all sites' units in one
    table, with each site's noise. Otherwise it computes each site's effect and pools the effects.

    Every request and every valid message is in `store` before it is used. A new coordinator with the same store
    continues where a stopped one was, and does not ask a site again that has answered.

    Args:
        study: The study's text, or the `Path` of its file. Sites approve it by the digest of this text.
        roster: The sites, and their public keys.
        key: The key that signs requests; its owner is the study's requester.
        transport: Carries requests to sites.
        store: The file for requests and answers; `:memory:` to store nothing on disk.
        timeout: Seconds to wait for sites in each attempt.
        attempts: The largest number of attempts for a site that does not answer or that fails.
        min_sites: The smallest number of sites that an effect is computed from.
        on_response: Called with a site's name and what it did, as soon as that is known.
        days: For how many days a site may answer: a request that arrives later is refused, and nothing is paid. Masked
            sums have to arrive while the coordinator waits for them.
        protocol: The version of the protocol in which requests are written. Sites that know only the one before are
            found and asked in it without this, unless files are carried to them.
    """

    _example = 'Coordinator(study, roster, key, transport, store="answers.db")'

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
        days: float = DAYS,
        protocol: int = VERSION,
    ) -> None:
        self._text = _text_of(study)
        self.study = Study.from_toml(self._text)
        self._schema = self.study.schema
        _check(self.study, roster, key)
        if not (is_number(timeout) and timeout >= 0 and attempts >= 1 and 1 <= min_sites <= len(roster.keys)):
            raise StudyError(
                expected=f"a timeout of 0 or more, 1 or more attempts, and at least 1 of {len(roster.keys)} sites",
                got=f"timeout={timeout!r}, attempts={attempts!r}, min_sites={min_sites!r}",
                hint="the defaults are 60 seconds, 3 attempts and 1 site.",
            )
        if not (is_number(days) and 0 < days <= _MOST_DAYS and protocol in (BEFORE, VERSION)):
            raise StudyError(
                expected=f"days up to {_MOST_DAYS:g}, and version {BEFORE} or {VERSION} of the protocol",
                got=f"days={days!r}, protocol={protocol!r}",
                hint=f"the defaults are {DAYS:g} days and version {VERSION}.",
            )
        self._min_sites, self._on_response = min_sites, on_response
        self._dispatcher = Dispatcher(
            *(roster, key, transport, Requests(store), timeout, attempts),
            on_response=lambda response: on_response(response.site, response.words),
            days=days,
            protocol=protocol,
        )
        self._found: dict[str, SiteResponse] | None = None
        self._ticks: tuple[int, ...] = ()

    @property
    def request(self) -> Request:
        """The first request that carries the study: one for all sites."""
        ask: Ask = "keys" if self.study.secure_settings else "releases"
        return Request(study=self._text, ask=ask, version=self._dispatcher.protocol)

    @property
    def sealed(self) -> str:
        """The signed request, with its deadline: the text that travels.

        Raises:
            StudyError: If the study was withdrawn.
        """
        if self._dispatcher.is_withdrawn(self._text):
            raise StudyError(
                expected="a study that was not withdrawn",
                got="one that was",
                hint="write a new study text, with another name for instance.",
            )
        return self._dispatcher.sealed(self.request)

    @property
    def request_ids(self) -> frozenset[str]:
        """The ids of all requests about the study: the first one, and those in the store."""
        stored = self._dispatcher.requests.texts_of(digest_of_text(self._text))
        return frozenset({self.request.id, *(request_id(claimed_body(text)) for text in stored)})

    def withdraw(self) -> dict[str, str]:
        """Withdraw the study: take back its requests, tell all sites, and return what each of them did, in words.

        A site that knows of it answers the study no more, and pays nothing for it. What it has answered before stays
        paid for. Nobody is asked again, also by another coordinator with the same store; an effect is computed from
        the answers there. A new attempt needs a new study text.

        Raises:
            TransportError: If the transport is unavailable.
        """
        self._dispatcher.withdraw(self.request_ids)
        question = Question(self.study, Request(study=self._text, ask="withdraw"))
        found = self._dispatcher.ask(question, self._dispatcher.roster.keys)
        return {site: response.words for site, response in found.items()}

    def post(self) -> dict[str, str]:
        """Send the request to all sites that have not answered yet, and return what is known of each, in words.

        Nothing is computed. A later run finds the answers that arrive meanwhile.

        Raises:
            TransportError: If the transport is unavailable.
        """
        self._found = None
        return {site: response.words for site, response in self._asked().items()}

    def run(self) -> Effect:
        """Ask all sites that have not answered yet, and compute one effect from all answers.

        Raises:
            RefusedError: If too few of them answered; the message says what each one did. Or if a required diagnostic
                failed.
        """
        if self.study.pooling == "sums":
            return self.result().checked_effect()
        self._found = None
        effects = self.effects()
        absent = {site: response.words for site, response in self._asked().items() if not response.answered}
        return self._with_suspicions(pool(effects, self.study.pooling, absent), effects)

    def result(self) -> StudyResult:
        """Ask all sites that have not answered yet, and evaluate the whole study from the sums of their answers.

        With secure sums it includes required diagnostics and secondary analyses. Where a diagnostic failed there is no
        effect, though its price was paid: one session asks everything at once.

        Raises:
            RefusedError: If too few sites answered, or the study does not add up answers.
        """
        if self.study.pooling != "sums":
            raise RefusedError(
                expected='a study with pooling = "sums"', got=f"pooling {self.study.pooling}", hint="use run()."
            )
        self._found = None
        self._asked()  # first, so that no request for the number of units is needed
        result = self.study.evaluate(self)
        return result if result.effect is None else replace(result, effect=self._completed(result.effect))

    def effects(self) -> dict[str, Effect]:
        """Return the effect of each site that answered.

        Raises:
            RefusedError: If the study has secure sums: no site's numbers can be seen.
        """
        if self.study.secure_settings:
            raise RefusedError(
                expected='a study with aggregation = "plain" for effects of single sites',
                got="secure sums, of which only the total is opened",
                hint="use run().",
            )
        answers = self._answers(self._asked())
        return {
            site: replay_estimate(self.study, site, message, releases_of(message)) for site, message in answers.items()
        }

    def _completed(self, effect: Effect) -> Effect:
        """Return the effect of sums with the part of each site, and warnings of implausible numbers."""
        found = self._asked()
        receipts = self._receipts()
        shares = (
            SiteShare(site, response.words, response.message.n if response.message else None)
            for site, response in found.items()
        )
        summed = replace(
            effect,
            method=f"{effect.method}; from the {self._kind}sums of {len(receipts)} of {len(found)} sites",
            receipts=receipts,
            sites=tuple(shares),
        )
        return self._with_suspicions(summed, {} if self.study.secure_settings else self.effects())

    def _with_suspicions(self, effect: Effect, effects: Mapping[str, Effect]) -> Effect:
        """Return the effect with a warning, first of all, for each check of plausibility that a site fails."""
        messages = self._answers(self._asked())
        if self.study.secure_settings:
            answers = {"the sum": SiteAnswer(self.n, self.arm_sizes, self._opened(), effect)}
        else:
            answers = {
                site: SiteAnswer(message.n or 0, message.arm_sizes, releases_of(message), effects[site])
                for site, message in messages.items()
            }
        found = suspicions(answers, self.schema)
        if found and self.study.pooling == "sums":
            effect = replace(effect, no_interval=effect.no_interval or _OF_SUSPECT_SUMS)
        notes = _of_unknown_units(self._dispatcher.roster, messages)
        return replace(effect, warnings=(*found, *effect.warnings), notes=(*effect.notes, *notes))

    @property
    def schema(self) -> Schema:
        """What is public about the sites' tables."""
        return self._schema

    @property
    def is_scalable(self) -> bool:
        """Whether covariates can be given scales that are found: each site would find others."""
        return False

    @property
    def has_declared_scales(self) -> bool:
        """Whether covariates can be given the scales that typical values declare, the same at all sites."""
        return True

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return the same coordinator with covariates by their scores, as sites see them that found the same scales."""
        other = copy.copy(self)
        other._schema = self._schema.scaled(scales, indicators)  # noqa: SLF001 (its own copy)
        return other

    @property
    def n(self) -> int:
        """The number of units at the sites that answered. Before `run`, a free request asks sites for it."""
        return sum(message.n or 0 for message in self._members().values())

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each arm where the schema declares arms public; otherwise None."""
        if not self.schema.sizes_are_public:
            return None
        control, treated = zip(*(message.arm_sizes or (0, 0) for message in self._members().values()), strict=True)
        return sum(control), sum(treated)

    @property
    def rule(self) -> Rule:
        """How prices add up: additive, as at every site, whatever rule its own budget has."""
        return "additive"

    @property
    def caveats(self) -> tuple[str, ...]:
        """Caveats of an effect from here: which sites it includes, and what that means."""
        if self._found is None:
            return ()
        absent = ", ".join(
            f"{site} ({response.words})" for site, response in self._found.items() if not response.answered
        )
        notes = (f"without {absent}: the effect is that of the units at the sites that answered",) if absent else ()
        if len(self._members()) == 1:
            return notes
        strata = isinstance(self.study.questions()[0].query, StratumContrasts)
        settings = self.study.secure_settings
        of_noise = (_OF_SUMS,) if settings is None else secure_caveats(settings, len(self._members()))
        return (*notes, *of_noise, _OF_PERSONS, _OF_STRATA if strata else _OF_ONE_TABLE)

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the sum of all sites' noisy answers to a query of the study.

        Raises:
            RefusedError: If it is another query, or too few sites answered.
        """
        asked, this = self.study.site_questions(), Asked.of(query, guarantee, self.schema)
        if self.study.pooling != "sums" or this not in asked:
            raise RefusedError(
                expected='a query of a study with pooling = "sums", as its sites approved it',
                got=f"{query.name}, {guarantee}" if self.study.pooling == "sums" else f"{self.study.pooling}",
                hint='for sums, write a study with pooling = "sums"; otherwise use run().',
            )
        if self.study.secure_settings:
            return self._opened()[asked.index(this)]
        releases = {site: releases_of(message)[0] for site, message in self._answers(self._asked()).items()}
        noise = largest_noise(releases.values(), calibrations(query, self.schema, guarantee))
        return sum_releases(query, guarantee, noise, releases)

    def _opened(self) -> tuple[Release, ...]:
        """Return the releases of a secure sum, in the order of the study's queries."""
        settings = self.study.secure_settings
        self._asked()
        return opened_releases(self.study, settings, self._ticks, self._receipts()) if settings else ()

    @property
    def _kind(self) -> str:
        return "secure " if self.study.secure_settings else ""

    def _receipts(self) -> tuple[Receipt, ...]:
        """Return the receipts of the sites in the sum."""
        answers = self._answers(self._asked())
        found = ((site, receipt) for site, message in answers.items() for receipt in receipts_in(asdict(message)))
        return tuple(replace(receipt, site=site) for site, receipt in found)

    def _asked(self) -> dict[str, SiteResponse]:
        """Return each site's response to the study."""
        settings = self.study.secure_settings
        if self._found is None and settings:
            rounds = SecureRounds(self.study, settings, self._dispatcher, self._min_sites, self._on_response)
            opened = rounds.run()
            check_range(self.study, settings, opened.ticks, opened.responses)
            self._found, self._ticks = dict(opened.responses), opened.ticks
        if self._found is None:
            self._found = self._dispatcher.ask(Question(self.study, self.request))
        return self._found

    def _members(self) -> dict[str, Message]:
        """Return the messages of the sites whose units the effect includes, or would include."""
        facts = Question(self.study, Request(study=self._text, ask="facts"))
        return self._answers(
            self._dispatcher.ask(facts, self.study.sites or None) if self._found is None else self._found
        )

    def _answers(self, found: dict[str, SiteResponse]) -> dict[str, Message]:
        answers = {
            site: response.message
            for site, response in found.items()
            if response.message is not None and response.answered
        }
        if len(answers) < self._min_sites:
            raise RefusedError(
                problem=f"Answers of at least {self._min_sites} of {len(found)} sites are needed: "
                f"{summary(found.values())}",
                hint="contact these sites, then run again: answers are stored, and nothing is paid for twice.",
            )
        return answers


_MOST_DAYS = 3_650.0
_OF_SUMS = "answers of sites were added up; each site added its own noise"
_OF_PERSONS = "each unit is assumed to be at one site; epsilons add up for a person with records at several sites"
_OF_SUSPECT_SUMS = (
    "a site's numbers are implausible, and one wrong site moves sums by any amount; examine the site, then run the "
    "study without it, or with pooling = 'automatic'"
)
_OF_STRATA = "each site has its own strata: units are compared within sites only"
_OF_ONE_TABLE = "sites were analysed as one table: confounding by site is not adjusted for"


def _of_unknown_units(roster: Roster, answered: Iterable[str]) -> tuple[str, ...]:
    """Return a note on sites whose number of units is their own claim."""
    unknown = [site for site in answered if roster.sites[site].units is None]
    if not unknown:
        return ()
    return (f"numbers of units that were not agreed on beforehand, and rest on the site's word: {', '.join(unknown)}",)


def _text_of(study: str | Path) -> str:
    """Return the study's text unchanged: its digest is what sites approve."""
    if isinstance(study, str):
        return study
    try:
        return study.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise StudyError(
            problem=f"{study} cannot be read as a study file ({type(error).__name__})", hint="check the file name."
        ) from None


def _check(study: Study, roster: Roster, key: Key) -> None:
    if study.advice_for_sites:
        raise StudyError(
            expected="an estimator with one estimand at all sites",
            got=f"{study.method}, which chooses one for each table",
            hint=study.advice_for_sites,
        )
    if study.requester != key.owner:
        raise StudyError(
            expected=f"the key of {study.requester}, the study's requester",
            got=f"the key of {key.owner}",
            hint="sites accept only requests signed by the requester that the study names.",
        )
    if not roster.keys:
        raise StudyError(
            problem="The roster has no site that is not revoked",
            hint="add the sites first: dpcausal federation admit.",
        )
    if study.secure_settings:
        check_sites(study.secure_settings, roster)
    if unknown := sorted(set(study.epsilons) - set(roster.sites)):
        raise StudyError(
            problem=f"There are epsilons for sites that are not in the roster: {', '.join(unknown)}",
            hint="check the names.",
        )
