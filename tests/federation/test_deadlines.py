"""Requests that come too late or were withdrawn cost nothing, and sites of the version before are still asked."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from dpcausal import Study
from dpcausal.errors import RefusedError, StudyError
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.protocol.messages import BEFORE, MEANINGS, Ask, Message, Request
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.protocol.transport import NOTHING, LocalTransport
from dpcausal.federation.site.site import Site
from dpcausal.utils.hash_chain import digest_of_text
from tests.federation.conftest import Answerer, Federation, always, message_in, request_in
from tests.support.site_folders import approve_study


@dataclass(frozen=True)
class Recording(LocalTransport):
    """Sites in this process, and what was asked and withdrawn, in order."""

    events: list[str] = field(default_factory=list)

    def ask(self, request: str, sites: Sequence[str], *others: object) -> None:
        self.events.append(Request.from_json(claimed_body(request)).ask)
        super().ask(request, sites, *others)  # type: ignore[arg-type]

    def withdraw(self, requests: Sequence[str]) -> None:
        self.events.append(f"withdraw {len(requests)}")


def asked(federation: Federation, study: Study, **parts: object) -> str:
    request = replace(Request(study=study.text, ask="releases"), **parts)  # type: ignore[arg-type]
    return federation.anna.seal(request.to_json())


def spent(federation: Federation) -> dict[str, float]:
    return {name: Site(federation.folder / name).ledger().spent.epsilon for name in federation.tables}


def secure(federation: Federation) -> Study:
    terms = {"honest": 2, "colluding": 0}
    return federation.study(aggregation="secure", secure=terms, sites=federation.roster.keys, epsilon=5.0)


def before_deadlines(answer: Answerer, federation: Federation, name: str) -> Answerer:
    """Return a site of the version before: it reads no request of this one, and says so as it did."""

    def answered(request: str) -> str:
        body = claimed_body(request)
        if json.loads(body)["version"] == BEFORE:
            return answer(request)
        refusal = Message(request=digest_of_text(body), study="", site=name, code="unreadable", version=BEFORE)
        return federation.key(name).seal(refusal.to_json())

    return answered


def test_late_request_is_refused_before_any_debit_and_an_answer_that_was_paid_is_sent_again(
    federation: Federation,
) -> None:
    study, north = federation.study(), Site(federation.folder / "north")
    for ask in ("releases", "facts"):
        late = message_in(north.answer(asked(federation, study, ask=ask, deadline=1)))
        assert (late.code, late.n, late.answer) == ("expired", None, None)
    assert spent(federation)["north"] == 0.0
    first = message_in(north.answer(asked(federation, study, deadline=2**40)))
    assert first.code == "answered"
    assert message_in(north.answer(asked(federation, study, deadline=1))) == first
    assert spent(federation)["north"] == 1.0


def test_site_outside_a_secure_sum_pays_nothing_when_its_request_arrives_late(federation: Federation) -> None:
    study, kept = secure(federation), list[str]()
    honest = federation.honest("west")

    def off_in_round_three(request: str) -> str:
        if request_in(request).ask == "masked":
            kept.append(request)
            raise ConnectionError
        return honest(request)

    federation.sites["west"] = off_in_round_three
    transport = Recording({name: federation._listening(name) for name in federation.tables})
    federation.coordinator(study, transport=transport, attempts=1, timeout=0.01).run()
    asks = ("keys", "shares", "masked", "confirm", "unmask")
    rounds = [event for place, ask in enumerate(asks, 1) for event in (ask, f"withdraw {place}")]
    assert transport.events == rounds
    request = request_in(kept[0])
    assert request.deadline is not None
    late = federation.anna.seal(replace(request, deadline=1).to_json())
    assert message_in(honest(late)).code == "expired"
    assert spent(federation) == {"north": 5.0, "south": 5.0, "west": 0.0}


def test_masked_sums_are_due_while_the_coordinator_waits_and_the_rest_within_days(federation: Federation) -> None:
    dispatcher = federation.coordinator(federation.study(), timeout=100.0, attempts=3, days=2.0)._dispatcher
    due = {
        ask: Request.from_json(claimed_body(dispatcher.sealed(Request(study="", ask=ask)))).deadline
        for ask in ("masked", "confirm")
    }
    apart = due["confirm"] - due["masked"]  # type: ignore[operator]
    assert 2 * 86_400 - 370 < apart < 2 * 86_400 - 300
    with pytest.raises(StudyError, match="days up to"):
        federation.coordinator(federation.study(), days=0.0)


def test_withdrawn_study_is_answered_no_more_and_costs_nothing(federation: Federation) -> None:
    study, other = federation.study(), federation.study(name="another")
    answered = federation.sites["north"]
    answered(asked(federation, study))
    transport = Recording({name: federation._listening(name) for name in federation.tables})
    told = federation.coordinator(study, transport=transport).withdraw()
    assert told == dict.fromkeys(federation.tables, MEANINGS["withdrawn"])
    assert transport.events == ["withdraw 1", "withdraw"]
    with pytest.raises(RefusedError, match="know the study as withdrawn"):
        federation.coordinator(study).run()
    assert spent(federation) == {"north": 1.0, "south": 0.0, "west": 0.0}
    assert {each.name: each.status for each in Site(federation.folder / "south").studies()} == {
        "scores": "withdrawn",
        "another": "approved",
    }
    assert federation.coordinator(other).run().n == 600


def test_withdrawn_study_is_not_asked_again_and_its_answers_still_count(federation: Federation) -> None:
    study, store = federation.study(), federation.folder / "store.db"
    away = {name: federation.sites.pop(name) for name in ("south", "west")}
    federation.coordinator(study, store=store, attempts=1).run()
    told = federation.coordinator(study, store=store, attempts=1).withdraw()
    assert told == {"north": MEANINGS["withdrawn"], "south": "did not answer", "west": "did not answer"}
    federation.sites |= away  # back, without a word of the withdrawal
    federation.asked.clear()
    effect = federation.coordinator(study, store=store).run()
    assert (effect.n, federation.asked) == (300, [])
    assert effect.sites is not None
    assert {share.status for share in effect.sites if share.site != "north"} == {
        "was not asked: the study is withdrawn"
    }
    with pytest.raises(StudyError, match="not withdrawn"):
        _ = federation.coordinator(study, store=store).sealed
    assert spent(federation) == {"north": 1.0, "south": 0.0, "west": 0.0}


def test_withdrawing_needs_no_word_of_a_revoked_site_and_is_not_in_the_version_before(federation: Federation) -> None:
    members = dict(federation.roster.sites)
    members["west"] = replace(members["west"], revoked=True)
    told = federation.coordinator(federation.study(), roster=Roster(members), protocol=BEFORE).withdraw()
    assert told == dict.fromkeys(("north", "south"), MEANINGS["withdrawn"])


def test_withdrawal_outlives_older_copies_of_a_sites_files(federation: Federation) -> None:
    """Without its record in the ledger, a restore would bring back a study that is approved and not withdrawn."""
    study, folder = federation.study(), federation.folder / "north"
    before = shutil.copytree(folder, federation.folder / "copy")
    withdrawal = federation.anna.seal(Request(study=study.text, ask="withdraw").to_json())
    assert message_in(Site(folder).answer(withdrawal)).code == "withdrawn"
    assert message_in(Site(folder).answer(withdrawal)).code == "withdrawn"
    assert [entry.kind for entry in Site(folder).audit_log.stream()].count("withdraw") == 1
    with pytest.raises(StudyError, match="one that was withdrawn"):
        approve_study(folder, study, "b person")
    for file in before.rglob("*"):
        if file.is_file() and file.name not in {"ledger.db", "witness.log"}:
            shutil.copy(file, folder / file.relative_to(before))
    shutil.rmtree(folder / "studies")
    shutil.copytree(before / "studies", folder / "studies")
    assert message_in(Site(folder).answer(asked(federation, study))).code == "undecided"
    assert spent(federation)["north"] == 0.0


def test_site_that_did_not_store_a_study_does_not_confirm_its_withdrawal(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = replace(federation.study(), name="one too many")
    monkeypatch.setattr("dpcausal.federation.site.stores._MOST", 0)
    withdrawal = federation.anna.seal(Request(study=study.text, ask="withdraw").to_json())
    assert message_in(federation.sites["north"](withdrawal)).code == "undecided"


def test_nobody_withdraws_anothers_study(federation: Federation) -> None:
    study = federation.study()
    forged = federation.key("south").seal(Request(study=study.text, ask="withdraw").to_json())
    assert message_in(federation.sites["north"](forged)).code == "unknown_requester"
    assert Site(federation.folder / "north").status(study.digest) == "approved"


def test_sites_of_the_version_before_are_asked_in_it(federation: Federation) -> None:
    federation.sites["south"] = before_deadlines(federation.honest("south"), federation, "south")
    heard: list[tuple[str, str]] = []
    study = federation.study(pooling="minimum_variance")
    store = federation.folder / "store.db"
    effect = federation.coordinator(study, store=store, on_response=lambda *each: heard.append(each)).run()
    assert {share.site: share.status for share in effect.sites} == dict.fromkeys(federation.tables, "answered")
    assert ("south", "speaks only version 4 of the protocol") in heard
    federation.asked.clear()
    assert federation.coordinator(study, store=store).run() == effect
    assert federation.asked == []  # answers in both versions are stored
    assert spent(federation) == dict.fromkeys(federation.tables, 1.0)
    with pytest.raises(RefusedError, match="south speaks only version 4"):  # before anybody pays for a sum
        federation.coordinator(secure(federation), min_sites=3).run()
    assert spent(federation) == dict.fromkeys(federation.tables, 1.0)


@dataclass(frozen=True)
class Slow(LocalTransport):
    """Sites whose messages to one request arrive when the coordinator asks the next time, as those of a rare poller."""

    waiting: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        key = Request.from_json(claimed_body(request)).id
        for site, message in self.waiting.pop(key, ()):
            on_response(site, message)
        super().ask(request, sites, timeout, lambda *each: self.waiting.setdefault(key, []).append(each), enclosed)


def test_slow_site_of_the_version_before_is_asked_in_it_too(federation: Federation) -> None:
    federation.sites["south"] = before_deadlines(federation.honest("south"), federation, "south")
    study, store = federation.study(pooling="minimum_variance"), federation.folder / "store.db"
    transport = Slow({name: federation._listening(name) for name in federation.tables})
    found = [
        federation.coordinator(study, transport=transport, store=store, attempts=1, timeout=0.0).post()["south"]
        for _ in range(3)
    ]
    assert found == ["did not answer", "speaks only version 4 of the protocol", "answered"]
    assert spent(federation) == dict.fromkeys(federation.tables, 1.0)


def test_deadline_is_used_again_until_half_of_its_days_are_over(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10**9
    monkeypatch.setattr("time.time", lambda: now)
    dispatcher = federation.coordinator(federation.study(), days=10.0, timeout=9.0)._dispatcher

    def deadline(ask: Ask) -> int:
        found = Request.from_json(claimed_body(dispatcher.sealed(Request(study="", ask=ask)))).deadline
        assert found is not None
        return found

    first, masked = deadline("releases"), deadline("masked")
    now += 4 * 86_400
    assert deadline("releases") == first
    assert deadline("masked") > masked
    now += 2 * 86_400
    assert deadline("releases") == first + 6 * 86_400


def test_coordinator_of_the_version_before_is_answered_in_it(federation: Federation) -> None:
    study = federation.study()
    found = message_in(federation.sites["north"](asked(federation, study, version=BEFORE)))
    assert (found.code, found.version) == ("answered", BEFORE)
    refused = message_in(federation.sites["north"](federation.key("south").seal("{}")))
    assert refused.code == "unknown_requester"
    effect = federation.coordinator(study, protocol=BEFORE).run()
    assert effect.n == 600
    assert spent(federation)["north"] == 1.0


def test_old_refusal_that_is_sent_again_does_not_make_a_site_old(federation: Federation) -> None:
    older = before_deadlines(federation.honest("south"), federation, "south")
    replayed = older(asked(federation, federation.study(), deadline=5))
    honest = federation.honest("south")
    found = federation.coordinator(federation.study(), on_response=lambda *_: None)
    federation.sites["south"] = always(replayed)
    with pytest.raises(RefusedError, match="south sent an invalid response: it answers another request"):
        federation.coordinator(federation.study(), min_sites=3, attempts=1).run()
    federation.sites["south"] = honest
    assert found.run().n == 600
