"""Secure sums from a study to an effect: five rounds, sites that fall silent, and everything paid once."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpcausal import Study
from dpcausal.errors import RefusedError, StudyError
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.messages import BEFORE, STEPS, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body, claimed_signer
from dpcausal.federation.protocol.transport import parted, with_enclosed
from dpcausal.federation.secure import messages as secure_messages
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.utils.hash_chain import digest_of_text
from tests.federation.conftest import Federation, message_in, request_in

NAMES = ("east", "north", "south", "west")
HONEST = 3


@pytest.fixture
def four(tmp_path: Path) -> Federation:
    """Four sites of 400, 300, 200 and 100 units."""
    schema = standard_schema()
    sizes = dict(zip(NAMES, (400, 300, 200, 100), strict=True))
    tables = {name: synthetic_table(schema, n, seed) for seed, (name, n) in enumerate(sizes.items())}
    return Federation(tmp_path, tables, schema)


def secure_study(federation: Federation, **changes: Any) -> Study:
    """Return a study with secure sums of all sites, which they have approved."""
    terms: dict[str, Any] = {
        "aggregation": "secure",
        "secure": {"honest": HONEST, "colluding": 0},
        "sites": federation.roster.keys,
        "epsilon": 5.0,
    }
    return federation.study(**terms | changes)


def paid(federation: Federation) -> dict[str, int]:
    """Return the number of debits in each site's ledger."""
    ledgers = {name: Site(federation.folder / name).ledger() for name in federation.tables}
    return {name: [entry.kind for entry in each.entries()].count("debit") for name, each in ledgers.items()}


def silent_from(federation: Federation, name: str, step: str) -> None:
    """Let a site fall silent from one round on."""
    honest = federation.honest(name)
    last = STEPS.index(step)

    def answer(request: str) -> str:
        asked = request_in(request).ask
        if asked in STEPS and STEPS.index(asked) >= last:
            raise ConnectionError
        return honest(request)

    federation.sites[name] = answer


def carried(store: Path, study: Study) -> dict[str, Request]:
    """Return the request of each round in a coordinator's store."""
    texts = Requests(store).texts_of(digest_of_text(study.text))
    requests = [Request.from_json(claimed_body(text)) for text in texts]
    assert len({request.ask for request in requests}) == len(requests)
    return {request.ask: request for request in requests}


def test_secure_sum_has_one_tables_noise_and_is_paid_once(four: Federation) -> None:
    study = secure_study(four)
    heard: list[tuple[str, str]] = []
    effect = four.coordinator(study, on_response=lambda *each: heard.append(each)).run()
    assert effect.n == 1000
    assert effect.guarantee == study.guarantee()
    assert {term.parts for term in effect.noise} == {4 / HONEST}
    assert [(share.site, share.status, share.n) for share in effect.sites] == [
        (name, "answered", table.num_rows) for name, table in four.tables.items()
    ]
    assert "secure sums of 4 of 4 sites" in effect.method
    assert "only the sum over 4 sites was opened" in str(effect.notes)
    assert "its own noise" not in str(effect.notes)
    assert paid(four) == dict.fromkeys(NAMES, 1)
    assert [receipt.site for receipt in effect.receipts] == list(NAMES)
    assert heard[0] == ("east", "answered (round 1 of 5, one-time keys: 1 of 4 sites)")
    assert heard[-1] == ("west", "answered (round 5 of 5, opening: 4 of 4 sites)")
    truth = four.coordinator(four.study(epsilon=90.0)).run().estimate
    assert abs(effect.estimate - truth) < 6 * effect.privacy_sd


@pytest.mark.parametrize("step", STEPS)
def test_sum_is_opened_without_a_site_that_falls_silent(four: Federation, step: str) -> None:
    silent_from(four, "north", step)
    effect = four.coordinator(secure_study(four), attempts=1).run()
    inside = step in ("confirm", "unmask")
    assert effect.n == (1000 if inside else 700)
    assert {term.parts for term in effect.noise} == {(4 if inside else 3) / HONEST}
    assert ("2 of 3 shares, less than the guarantee needs" in str(effect.notes)) == (not inside)
    statuses = {share.site: share.status for share in effect.sites}
    assert statuses["north"] == ("answered" if inside else f"did not answer in round {STEPS.index(step) + 1} of 5")
    assert paid(four) == dict.fromkeys(NAMES, 1) | ({} if inside else {"north": 0})


@pytest.mark.parametrize("step", STEPS)
def test_too_few_sites_are_refused_and_a_later_run_continues(four: Federation, step: str, tmp_path: Path) -> None:
    study, store = secure_study(four), tmp_path / "requests.db"
    for name in ("north", "south"):
        silent_from(four, name, step)
    with pytest.raises(
        RefusedError, match=rf"at least 3 of 4 sites are needed in round {STEPS.index(step) + 1} of 5"
    ) as refusal:
        four.coordinator(study, store=store, attempts=1).run()
    before = STEPS.index(step) < STEPS.index("masked")
    assert ("nothing was paid" in str(refusal.value)) == before
    assert sum(paid(four).values()) == {"keys": 0, "shares": 0, "masked": 2}.get(step, 4)
    four.sites = {name: four.honest(name) for name in four.tables}
    effect = four.coordinator(study, store=store, attempts=1).run()
    assert effect.n == 1000
    assert paid(four) == dict.fromkeys(NAMES, 1)
    asked = len(four.asked)
    assert four.coordinator(study, store=store).run().estimate == effect.estimate
    assert len(four.asked) == asked  # all of it is stored


def test_a_member_revoked_after_the_shares_is_silent_from_then_on(four: Federation, tmp_path: Path) -> None:
    study, store = secure_study(four), tmp_path / "requests.db"
    for name in ("north", "south"):
        silent_from(four, name, "masked")
    with pytest.raises(RefusedError, match="round 3 of 5"):
        four.coordinator(study, store=store, attempts=1).run()
    four.sites = {name: four.honest(name) for name in four.tables}
    roster = Roster({**four.roster.sites, "north": replace(four.roster.sites["north"], revoked=True)})
    effect = four.coordinator(study, store=store, roster=roster, attempts=1).run()
    assert effect.n == 700
    status = {share.site: share.status for share in effect.sites}["north"]
    assert status == "is revoked in the roster, and was not asked in round 3 of 5"
    assert paid(four) == dict.fromkeys(NAMES, 1) | {"north": 0}


def test_sum_with_a_wrong_share_is_opened_once_another_site_answers(four: Federation, tmp_path: Path) -> None:
    study, store = secure_study(four), tmp_path / "requests.db"

    def wrong(body: dict[str, Any]) -> None:
        seeds = body["answer"].get("unmask", {}).get("seeds", {})
        seeds |= {name: "0" * len(share) for name, share in seeds.items()}

    four.lie("north", wrong)
    silent_from(four, "west", "unmask")
    with pytest.raises(RefusedError, match="shares that give the announced secret"):
        four.coordinator(study, store=store, attempts=1).run()
    four.sites["west"] = four.honest("west")
    assert four.coordinator(study, store=store, attempts=1).run().n == 1000
    assert paid(four) == dict.fromkeys(NAMES, 1)


def test_sites_answer_each_round_for_one_set_only(four: Federation, tmp_path: Path) -> None:
    study, store = secure_study(four), tmp_path / "requests.db"
    four.coordinator(study, store=store).run()
    requests = carried(store, study)
    for step in STEPS[1:]:
        fewer = Request(study=study.text, ask=step, carries=requests[step].carries[1:])
        absent = message_in(four.honest("west")(four.anna.seal(fewer.to_json())))
        assert absent.code == ("answered" if step == "unmask" else "refused_step"), step
    again = message_in(four.honest("west")(four.anna.seal(requests["masked"].to_json())))
    assert again.code == "answered"
    assert paid(four) == dict.fromkeys(NAMES, 1)


def forged(texts: tuple[str, ...], change: Callable[[dict[str, Any]], object], key: Key) -> tuple[str, ...]:
    body = json.loads(claimed_body(texts[0]))
    change(body)
    return (key.seal(json.dumps(body, sort_keys=True)), *texts[1:])


def test_texts_that_a_site_did_not_sign_are_refused(four: Federation, tmp_path: Path) -> None:
    study, store = secure_study(four), tmp_path / "requests.db"
    silent_from(four, "west", "shares")
    four.coordinator(study, store=store).run()
    texts = carried(store, study)["shares"].carries
    other = Key.make("east", tmp_path / "other.key")
    signed = json.loads(texts[0])["signer"]
    for name, carries in {
        "another key": forged(texts, lambda _: None, other),
        "a site twice": (*texts, texts[0]),
        "another study": forged(texts, lambda body: body.update(study="0" * 64), four.key(signed)),
        "a stranger": (*texts[1:], Key.make("eve", tmp_path / "eve.key").seal(claimed_body(texts[0]))),
        "too few": texts[:2],
    }.items():
        request = Request(study=study.text, ask="shares", carries=carries)
        assert message_in(four.honest("west")(four.anna.seal(request.to_json()))).code == "refused_step", name
    assert paid(four)["west"] == 0


def test_check_of_signatures_has_teeth(four: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that reads texts without verifying them takes keys that somebody else signed."""
    study, store = secure_study(four), tmp_path / "requests.db"
    silent_from(four, "west", "shares")
    four.coordinator(study, store=store).run()
    texts = carried(store, study)["shares"].carries
    signer = json.loads(texts[0])["signer"]
    carries = forged(texts, lambda _: None, Key.make(signer, tmp_path / "other.key"))
    request = four.anna.seal(Request(study=study.text, ask="shares", carries=carries).to_json())
    assert message_in(four.honest("west")(request)).code == "refused_step"
    monkeypatch.setattr(secure_messages, "opened", lambda text, _: (claimed_signer(text), claimed_body(text)))
    assert message_in(four.honest("west")(request)).code == "answered"


def test_a_site_gets_its_own_ciphertexts_alone(four: Federation, tmp_path: Path) -> None:
    study, store, texts = secure_study(four), tmp_path / "requests.db", dict[str, str]()

    def listening(name: str) -> Callable[[str], str]:
        def answer(text: str) -> str:
            if request_in(text).ask == "masked":
                texts[name] = text
            return four.honest(name)(text)

        return answer

    four.sites = {name: listening(name) for name in NAMES}
    four.coordinator(study, store=store).run()
    asked = carried(store, study)["shares"]
    made = {site: message_in(text).answer or {} for site, text, _ in Requests(store).messages(asked.id)}
    for sender, answer in made.items():
        for receiver, ciphertext in answer["shares"]["ciphertexts"].items():
            assert [name for name in NAMES if ciphertext in texts[name]] == [receiver], sender
    assert len({parted(text)[0] for text in texts.values()}) == 1  # one signed request for all


def test_enclosed_ciphertexts_that_do_not_fit_are_refused_unpaid(four: Federation) -> None:
    """Nor do they keep the site from answering the right ones."""
    honest, codes = four.honest("west"), set[str]()

    def attacked(text: str) -> str:
        request, enclosed = parted(text)
        if enclosed:
            sealed = json.loads(enclosed)
            sender, first = next(iter(sealed.items()))
            swapped = dict(zip(sealed, [*sealed.values()][::-1], strict=True))
            wrongs: list[object] = [swapped, [], sealed | {sender: 7}, sealed | {sender: f"{'0' * 8}{first[8:]}"}]
            for wrong in wrongs:
                codes.add(message_in(honest(with_enclosed(request, json.dumps(wrong)))).code)
            codes.add(message_in(honest(request)).code)
            assert paid(four)["west"] == 0
        return honest(text)

    four.sites["west"] = attacked
    assert four.coordinator(secure_study(four), attempts=1).run().n == 1000
    assert codes == {"refused_step"}


def test_answer_whose_header_names_another_sharing_is_left_out(four: Federation) -> None:
    """Every other site would refuse its ciphertexts."""

    def lie(body: dict[str, Any]) -> None:
        if body["answer"] and "shares" in body["answer"]:
            body["answer"]["shares"]["sharing"] = "0" * 64

    four.lie("north", lie)
    assert four.coordinator(secure_study(four), attempts=1).run().n == 700


def test_version_4_of_the_protocol_opens_the_sum_as_before(four: Federation, tmp_path: Path) -> None:
    study, store = secure_study(four), tmp_path / "requests.db"
    assert four.coordinator(study, store=store, protocol=BEFORE).run().n == 1000
    assert {request.version for request in carried(store, study).values()} == {BEFORE}
    assert "ciphertexts" in carried(store, study)["masked"].carries[0]
    asked = len(four.asked)
    assert four.coordinator(study, store=store).run().n == 1000  # continues in the version in which it began
    assert len(four.asked) == asked
    assert paid(four) == dict.fromkeys(NAMES, 1)


def test_masked_numbers_say_nothing_by_themselves(four: Federation, tmp_path: Path) -> None:
    """The high bits of masked numbers are as good as random; those of a plain release are all alike."""
    study, store = secure_study(four), tmp_path / "requests.db"
    four.coordinator(study, store=store).run()
    masked = carried(store, study)["masked"]
    answers = [Message.from_json(claimed_body(text)).answer for _, text, _ in Requests(store).messages(masked.id)]
    highest = [number >> 56 for answer in answers for number in (answer or {})["masked"]]
    assert len(set(highest)) > len(highest) / 2


def test_plain_releases_are_refused_for_a_secure_study_and_the_reverse(four: Federation) -> None:
    secure, plain = secure_study(four), four.study()
    asked = Request(study=secure.to_toml(), ask="releases"), Request(study=plain.to_toml(), ask="keys")
    for request in asked:
        sealed = four.anna.seal(request.to_json())
        assert message_in(four.honest("west")(sealed)).code == "unreadable"
    assert sum(paid(four).values()) == 0


def test_site_without_budget_refuses_before_anything_is_shared(
    four: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "remaining_after", lambda *_: None)
    with pytest.raises(RefusedError, match="too little budget left in round 1 of 5"):
        four.coordinator(secure_study(four)).run()
    assert not any((four.folder / name / "sessions").exists() for name in NAMES)


def test_impossible_sum_is_refused(four: Federation) -> None:
    study = secure_study(four)

    def lie(body: dict[str, Any]) -> None:
        if body["answer"] and "masked" in body["answer"]:
            numbers = body["answer"]["masked"]
            body["answer"]["masked"] = [(number + 2**50) % 2**64 for number in numbers]

    four.lie("west", lie)
    with pytest.raises(RefusedError, match="it is larger than so many units"):
        four.coordinator(study).run()


@pytest.mark.parametrize("kind", ["channel", "mask"])
def test_site_with_an_unusable_key_is_left_out(four: Federation, kind: str) -> None:
    """Every other site would refuse it, and the round could never go on."""

    def lie(body: dict[str, Any]) -> None:
        if body["answer"] and "keys" in body["answer"]:
            body["answer"]["keys"][kind] = "0" * 64

    four.lie("north", lie)
    effect = four.coordinator(secure_study(four), attempts=1).run()
    assert effect.n == 700
    assert paid(four) == dict.fromkeys(NAMES, 1) | {"north": 0}


def test_coordinator_checks_the_studys_sites_against_its_roster(four: Federation, tmp_path: Path) -> None:
    other = Roster({**four.roster.sites, "west": Member(Key.make("west", tmp_path / "new.key").public)})
    with pytest.raises(StudyError, match=r"lacks sites.*west"):
        four.coordinator(secure_study(four), roster=other)
    with pytest.raises(RefusedError, match="only the total"):
        four.coordinator(secure_study(four)).effects()
