"""Sessions of a secure sum: what is opened, what falls silent, and what is refused."""

import json
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from dpcausal.errors import SessionError
from dpcausal.federation.secure.session import SiteSession
from tests.support.secure_sums import STUDY, SecureSum, masked_by, site_names

OTHER_STUDY = "5b" * 32
SITES, THRESHOLD = 5, 4


def numbers_of(names: list[str]) -> dict[str, list[int]]:
    """Return made-up numbers of sites, the largest and the smallest that a sum can hold among them."""
    return {name: [index - 2, 10**15 * index, -(2**60), 0] for index, name in enumerate(names)}


def totals(numbers: dict[str, list[int]], names: list[str]) -> list[int]:
    """Return the sums over some sites."""
    return [sum(column) for column in zip(*(numbers[name] for name in names), strict=True)]


def opened(silent: dict[str, int]) -> tuple[list[int], list[int]]:
    """Return the opened and the true sum when sites fall silent, each before an exchange from 1 to 5."""
    run = SecureSum(SITES, THRESHOLD)
    numbers = numbers_of(run.names)
    present = [[name for name in run.names if silent.get(name, 6) > exchange] for exchange in range(1, 6)]
    keyed, shared, masked, confirmed, unmasked = present
    run.keys = {name: run.keys[name] for name in keyed}
    run.share(keyed)
    run.shares = {name: run.shares[name] for name in shared}
    sent = run.mask({name: numbers[name] for name in masked})
    run.confirm(masked, by=confirmed)
    return run.open(sent, run.unmask(unmasked)), totals(numbers, masked)


def test_the_sum_of_all_sites_is_opened_exactly() -> None:
    found, true = opened({})
    assert found == true


@pytest.mark.parametrize("exchange", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("index", range(SITES))
def test_a_site_may_fall_silent_before_any_exchange(exchange: int, index: int) -> None:
    found, true = opened({site_names(SITES)[index]: exchange})
    assert found == true


@pytest.mark.parametrize("exchanges", list(combinations(range(1, 6), 2)))
def test_too_many_silent_sites_leave_the_sum_closed(exchanges: tuple[int, int]) -> None:
    with pytest.raises(SessionError):
        opened(dict(zip(site_names(SITES), exchanges, strict=False)))


def test_any_threshold_of_answers_opens_the_sum_and_one_fewer_does_not() -> None:
    run, numbers, sent = masked_run()
    run.confirm(run.names)
    answers = run.unmask(run.names)
    for by in combinations(run.names, THRESHOLD):
        assert run.open(sent, {name: answers[name] for name in by}) == totals(numbers, run.names)
    for by in combinations(run.names, THRESHOLD - 1):
        with pytest.raises(SessionError, match="shares that give the announced secret"):
            run.open(sent, {name: answers[name] for name in by})


def masked_run() -> tuple[SecureSum, dict[str, list[int]], dict[str, list[int]]]:
    """Return a run in which all sites masked their numbers, these numbers, and what they sent."""
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    numbers = numbers_of(run.names)
    return run, numbers, run.mask(numbers)


def test_the_same_input_gets_the_same_answer_also_from_a_stored_session() -> None:
    run, _, sent = masked_run()
    for _ in range(2):
        for name, session in run.sessions.items():
            assert session.keys() == run.keys[name]
            assert session.shares(run.keys) == run.shares[name]
        assert run.mask(numbers_of(run.names)) == sent
        run.confirm(run.names)
        first = dict(run.confirmed)
        run.sessions = {name: SiteSession.from_json(session.to_json()) for name, session in run.sessions.items()}
        run.confirm(run.names)
        assert run.confirmed == first
        assert run.unmask(run.names) == run.unmask(run.names)


def test_fewer_or_other_confirmations_of_the_same_sum_change_no_answer() -> None:
    run, _, _ = masked_run()
    run.confirm(run.names)
    session = run.sessions["site00"]
    some = {name: run.confirmed[name] for name in run.names[1:]}
    assert session.unmask(run.confirmed) == session.unmask(some)


def refused(session: SiteSession, ask: Callable[[], object]) -> str:
    """Return the message of a refusal that must leave the session as it was."""
    before = session.to_json()
    with pytest.raises(SessionError) as error:
        ask()
    assert session.to_json() == before
    return str(error.value)


def test_a_second_set_of_keys_is_refused() -> None:
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    session = run.sessions["site00"]
    fewer = {name: run.keys[name] for name in run.names[:THRESHOLD]}
    assert "same sites as before" in refused(session, lambda: session.shares(fewer))
    other = run.keys | {"site01": SecureSum(SITES, THRESHOLD).keys["site01"]}
    assert "same sites as before" in refused(session, lambda: session.shares(other))


def test_a_second_set_of_members_or_another_length_is_refused() -> None:
    run, _, _ = masked_run()
    session = run.sessions["site00"]
    fewer = {name: run.shares[name] for name in run.names[:THRESHOLD]}
    assert "same members and count" in refused(session, lambda: masked_by(session, fewer, 4))
    assert "same members and count" in refused(session, lambda: masked_by(session, run.shares, 3))


def test_a_second_sum_is_refused() -> None:
    run, _, _ = masked_run()
    run.confirm(run.names)
    session = run.sessions["site00"]
    assert "same sites in the sum" in refused(session, lambda: session.confirm(run.headers(run.names[:THRESHOLD])))


def test_members_that_masked_with_others_are_refused() -> None:
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    numbers = numbers_of(run.names)
    run.mask({"site00": numbers["site00"]}, run.names[:THRESHOLD])
    run.mask({name: numbers[name] for name in run.names[1:]})
    session = run.sessions["site01"]
    assert "different members" in refused(session, lambda: session.confirm(run.headers(run.names)))


def test_confirmations_of_two_sums_are_refused() -> None:
    """Two of four sites confirm another sum: neither reveals a share."""
    run, _, _ = masked_run()
    run.confirm(run.names, by=run.names[:2])
    run.confirm(run.names[1:], by=run.names[3:])
    for name in run.names[:2]:
        session = run.sessions[name]
        assert "that this site confirmed" in refused(session, partial(session.unmask, run.confirmed))
        own = dict.fromkeys(run.names[:2], run.confirmed[name])
        assert f"at least {THRESHOLD} sites" in refused(session, partial(session.unmask, own))


def test_shares_of_both_secrets_of_one_site_are_never_revealed() -> None:
    run, numbers, sent = masked_run()
    summed = run.names[1:]
    run.confirm(summed)
    answers = run.unmask(summed)
    for answer in answers.values():
        assert sorted(answer["seeds"]) == summed
        assert list(answer["mask_keys"]) == ["site00"]
    assert run.open({name: sent[name] for name in summed}, answers) == totals(numbers, summed)


def test_a_site_outside_the_sum_confirms_and_reveals_nothing() -> None:
    run, _, _ = masked_run()
    run.confirm(run.names[1:])
    session = run.sessions["site00"]
    assert "with this site" in refused(session, lambda: session.confirm(run.headers(run.names[1:])))
    assert "the exchange confirm" in refused(session, lambda: session.unmask(run.confirmed))


def test_exchanges_out_of_order_are_refused() -> None:
    run = SecureSum(SITES, THRESHOLD)
    session = run.sessions["site00"]
    others = SecureSum(SITES, THRESHOLD)
    others.share()
    header = {name: {"members_digest": ""} for name in run.names}
    assert "0 sites" not in refused(session, lambda: masked_by(session, others.shares, 4))
    assert "at least" in refused(session, lambda: session.confirm(header))
    assert "the exchange confirm" in refused(session, lambda: session.unmask({}))
    assert "the exchange mask" in refused(session, lambda: session.members_digest)


ALTERATIONS: dict[str, Callable[[str], object]] = {
    "altered": lambda text: ("0" if text[0] != "0" else "1") + text[1:],
    "cut": lambda text: text[:-2],
    "empty": lambda _: "",
    "not hexadecimal": lambda _: "xyz",
    "no text": lambda _: 7,
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_altered_ciphertexts_are_refused(alteration: str) -> None:
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    session = run.sessions["site00"]
    bad = json.loads(json.dumps(run.shares))
    bad["site01"]["ciphertexts"]["site00"] = ALTERATIONS[alteration](bad["site01"]["ciphertexts"]["site00"])
    assert "leave site01 out" in refused(session, lambda: masked_by(session, bad, 4))


def test_ciphertexts_of_another_sender_are_refused() -> None:
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    session = run.sessions["site00"]
    bad = run.shares | {"site01": run.shares["site02"]}
    assert "leave site01 out" in refused(session, lambda: masked_by(session, bad, 4))


BAD_KEYS: dict[str, Callable[[dict[str, Any]], object]] = {
    "of another study": lambda body: body | {"study": OTHER_STUDY},
    "without a mask key": lambda body: {name: body[name] for name in body if name != "mask"},
    "a number for a key": lambda body: body | {"channel": 7},
    "that everybody shares": lambda body: body | {"channel": "00" * 32},
    "no mapping": lambda _: ["study"],
}


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_keys_that_do_not_fit_are_refused(kind: str) -> None:
    run = SecureSum(SITES, THRESHOLD)
    session = run.sessions["site00"]
    bad: dict[str, Any] = run.keys | {"site01": BAD_KEYS[kind](run.keys["site01"])}
    refused(session, lambda: session.shares(bad))
    assert not session.peers


def test_messages_of_another_study_are_refused() -> None:
    run, other = SecureSum(SITES, THRESHOLD), SecureSum(SITES, THRESHOLD, OTHER_STUDY)
    run.share()
    other.share()
    session = run.sessions["site00"]
    assert "of another study" in refused(
        session, lambda: masked_by(session, run.shares | {"site01": other.shares["site01"]}, 4)
    )
    fresh = SecureSum(SITES, THRESHOLD).sessions["site00"]
    assert "of another study" in refused(fresh, lambda: fresh.shares(other.keys))


def test_sites_outside_the_study_are_refused() -> None:
    run = SecureSum(SITES, THRESHOLD)
    session = run.sessions["site00"]
    stranger = SiteSession.new(STUDY, "stranger", [*run.names, "stranger"], THRESHOLD)
    assert "1 of them others" in refused(session, lambda: session.shares(run.keys | {"stranger": stranger.keys()}))


def test_other_keys_under_this_sites_name_are_refused() -> None:
    run = SecureSum(SITES, THRESHOLD)
    session = run.sessions["site00"]
    other = SecureSum(SITES, THRESHOLD).keys["site00"]
    assert "own keys" in refused(session, lambda: session.shares(run.keys | {"site00": other}))


@pytest.mark.parametrize(("sites", "threshold"), [(4, 1), (4, 2), (4, 5), (2, 1)])
def test_a_threshold_that_two_sums_could_reach_is_refused(sites: int, threshold: int) -> None:
    with pytest.raises(SessionError, match="more than half"):
        SiteSession.new(STUDY, "site00", site_names(sites), threshold)


def test_a_name_outside_the_study_has_no_session() -> None:
    with pytest.raises(SessionError, match="a site of the study"):
        SiteSession.new(STUDY, "stranger", site_names(3), 2)


def differences(first: SecureSum, second: SecureSum) -> list[int]:
    """Return what is left of one site's masked numbers, 7 in one study and 5 in another, in their difference."""
    sent = []
    for run, number in ((first, 7), (second, 5)):
        run.share()
        sent.append(run.mask({"site00": [number] * 10})["site00"])
    return [(one - other) % 2**64 for one, other in zip(*sent, strict=True)]


def test_masks_of_two_sessions_do_not_cancel() -> None:
    for study in (STUDY, OTHER_STUDY):
        left = differences(SecureSum(SITES, THRESHOLD), SecureSum(SITES, THRESHOLD, study))
        assert len(set(left)) == 10
        assert 2 not in left


def test_reused_masks_would_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: secrets that are drawn once for all sessions. The difference of two masked numbers is open."""
    drawn = {name: SiteSession.new(STUDY, name, site_names(SITES), THRESHOLD) for name in site_names(SITES)}
    stored = {name: session.to_json() for name, session in drawn.items()}
    monkeypatch.setattr(SiteSession, "new", lambda _, name, *__: SiteSession.from_json(stored[name]))
    assert differences(SecureSum(SITES, THRESHOLD), SecureSum(SITES, THRESHOLD)) == [2] * 10


def test_masks_are_new_for_every_site() -> None:
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    masked = run.mask({name: [0] * 10 for name in run.names})
    assert len({number for numbers in masked.values() for number in numbers}) == SITES * 10


def test_a_session_prints_no_secret() -> None:
    run, _, _ = masked_run()
    session = run.sessions["site00"]
    document = json.loads(session.to_json())
    secrets = [document["channel_key"], document["mask_key"], document["seed"]]
    secrets += [share for pair in document["held"].values() for share in pair]
    assert not any(secret in repr(session) or str(bytes.fromhex(secret)) in repr(session) for secret in secrets)


def test_a_session_of_another_version_is_refused() -> None:
    document = json.loads(SecureSum(SITES, THRESHOLD).sessions["site00"].to_json())
    with pytest.raises(SessionError, match="version 1"):
        SiteSession.from_json(json.dumps(document | {"version": 2}))


@pytest.mark.parametrize("liar", range(SITES))
def test_one_sites_wrong_shares_are_passed_over_if_there_are_more_answers(liar: int) -> None:
    run, numbers, sent = masked_run()
    run.confirm(run.names)
    answers = json.loads(json.dumps(run.unmask(run.names)))
    liars = [run.names[liar], run.names[liar - 1]]
    for name in run.names:
        answers[liars[0]]["seeds"][name] = answers[liars[0]]["seeds"][name][:-1] + "x"
    assert run.open(sent, answers) == totals(numbers, run.names)
    wrong = answers[liars[1]]["seeds"]["site02"]
    answers[liars[1]]["seeds"]["site02"] = wrong[:-1] + ("0" if wrong[-1] != "0" else "1")
    with pytest.raises(SessionError, match="announced secret of site02"):
        run.open(sent, answers)


def test_answers_that_do_not_belong_together_are_refused() -> None:
    run, _, sent = masked_run()
    run.confirm(run.names)
    answers = run.unmask(run.names)
    fewer = {name: sent[name] for name in run.names[1:]}
    shorter = sent | {"site00": sent["site00"][:-1]}
    for masked in ({}, fewer, shorter):
        with pytest.raises(SessionError, match="do not belong together"):
            run.open(masked, answers)
    with pytest.raises(SessionError, match="integers from 0"):
        run.open(sent | {"site00": [-1, 0, 0, 0]}, answers)
