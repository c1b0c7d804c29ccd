"""Each site sees the ciphertexts for itself alone: none can be swapped, replayed or shown differently unseen."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dpcausal.errors import SessionError
from dpcausal.federation.secure import channel, session
from dpcausal.federation.secure.masks import agreed_key
from dpcausal.federation.secure.session import SiteSession
from dpcausal.utils.hash_chain import digest_of
from tests.support.secure_sums import SecureSum, received_by

SITES, THRESHOLD, NUMBERS = 4, 3, [7, -1]


@pytest.fixture
def shared() -> SecureSum:
    """A run in which all sites shared their secrets."""
    run = SecureSum(SITES, THRESHOLD)
    run.share()
    return run


def names_of(run: SecureSum) -> dict[str, dict[str, Any]]:
    """Return what a site sees of the others' answers: the names of their sharings."""
    return {name: {"study": body["study"], "sharing": body["sharing"]} for name, body in run.shares.items()}


def shared_again(run: SecureSum, name: str, older: str) -> dict[str, Any]:
    """Return the sharing of a site whose session was put back to a copy from before the first one."""
    run.sessions[name] = SiteSession.from_json(older)
    return run.sessions[name].shares(run.keys)


def refuses(run: SecureSum, received: dict[str, str]) -> bool:
    """Return whether site00 refuses these ciphertexts, and stays as it was."""
    asked = run.sessions["site00"]
    before = asked.to_json()
    with suppress(SessionError):
        asked.mask(names_of(run), len(NUMBERS), received)
    return asked.to_json() == before


def test_a_site_needs_only_the_names_of_sharings_and_its_own_ciphertexts(shared: SecureSum) -> None:
    numbers = dict.fromkeys(shared.names, NUMBERS)
    sent = {}
    for name, own in numbers.items():
        mask = shared.sessions[name].mask(names_of(shared), 2, received_by(name, shared.shares))
        sent[name] = [(number + each) % 2**64 for number, each in zip(own, mask, strict=True)]
    shared.confirm(shared.names)
    assert shared.open(sent, shared.unmask(shared.names)) == [SITES * number for number in NUMBERS]


def swapped(shared: SecureSum) -> dict[str, str]:
    """Show the ciphertext of one sender as that of another."""
    own = received_by("site00", shared.shares)
    return own | {"site01": own["site02"]}


def for_another(shared: SecureSum) -> dict[str, str]:
    """Show a site the ciphertext for another one."""
    return received_by("site00", shared.shares) | {"site01": shared.shares["site01"]["ciphertexts"]["site02"]}


def absent(shared: SecureSum) -> dict[str, str]:
    """Leave one ciphertext out."""
    return {sender: text for sender, text in received_by("site00", shared.shares).items() if sender != "site01"}


@pytest.mark.parametrize("attack", [swapped, for_another, absent])
def test_ciphertexts_that_are_not_the_ones_for_this_site_are_refused(
    shared: SecureSum, attack: Callable[[SecureSum], dict[str, str]]
) -> None:
    assert refuses(shared, attack(shared))


def test_a_sites_own_ciphertext_is_not_taken_for_one_to_it(shared: SecureSum, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both directions of a pair agree on one secret: only the names in the key tell them apart. Without them it is."""

    def returned(run: SecureSum) -> dict[str, str]:
        return received_by("site00", run.shares) | {"site01": run.shares["site00"]["ciphertexts"]["site01"]}

    assert refuses(shared, returned(shared))
    with monkeypatch.context() as mutant:
        mutant.setattr(channel.Link, "key", lambda link, *keys: agreed_key(*keys, "channel", link.sharing))
        mutant.setattr(channel, "new_sharing", lambda: "one")
        run = SecureSum(SITES, THRESHOLD)
        run.share()
        assert not refuses(run, returned(run))


def test_a_ciphertext_of_an_earlier_sharing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same keys, sender and receiver: only the name of the sharing tells them apart. With one name, none does."""

    def replayed() -> bool:
        run = SecureSum(SITES, THRESHOLD)
        older = run.sessions["site01"].to_json()
        run.share()
        old = received_by("site00", run.shares)
        run.shares["site01"] = shared_again(run, "site01", older)
        return refuses(run, old)

    assert replayed()
    monkeypatch.setattr(channel, "new_sharing", lambda: "one")
    assert not replayed()


def different_views() -> SecureSum:
    """Return a run in which site00 saw an earlier sharing of site03 than the other sites."""
    run = SecureSum(SITES, THRESHOLD)
    older = run.sessions["site03"].to_json()
    run.share()
    run.mask({"site00": NUMBERS})
    run.shares["site03"] = shared_again(run, "site03", older)
    run.mask(dict.fromkeys(run.names[1:], NUMBERS))
    return run


def test_sites_that_saw_different_sharings_confirm_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of the members holds the names of their sharings; a mutant with their keys alone confirms."""
    run = different_views()
    for name in run.names:
        with pytest.raises(SessionError, match="different members"):
            run.sessions[name].confirm(run.headers(run.names))
    monkeypatch.setattr(session, "digest_of", lambda *parts: digest_of(*(parts[:1] if len(parts) == 2 else parts)))
    run = different_views()
    run.confirm(run.names)


def test_version_4_shows_all_ciphertexts_and_agrees_on_their_digest() -> None:
    """A site of version 4 computes the same digest of the members, and needs no name of a sharing."""
    run = SecureSum(SITES, THRESHOLD)
    run.share(named=False)
    assert all(body.keys() == {"study", "ciphertexts"} for body in run.shares.values())
    for each in run.sessions.values():
        each.mask(run.shares, 2)
    members = {name: digest_of(run.keys[name], body["ciphertexts"]) for name, body in run.shares.items()}
    study = run.shares["site00"]["study"]
    assert {each.members_digest for each in run.sessions.values()} == {digest_of("members", study, members, 2)}


def test_a_site_shares_in_one_version_only(shared: SecureSum) -> None:
    one = shared.sessions["site00"]
    with pytest.raises(SessionError, match="same version"):
        one.shares(shared.keys, named=False)
    with pytest.raises(SessionError, match="own shares"):
        one.mask(shared.shares, 2)
