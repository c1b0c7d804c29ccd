"""No requester of a mailbox sees or changes anything of another's, on SQLite and on PostgreSQL."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.rotation import sign_rotation
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.mailbox.store import MailboxStore
from tests.federation.transports.mailbox.conftest import Desk

STUDY = "anna's study"


@dataclass(frozen=True)
class Held:
    """What is anna's: the site north with an open and an answered request, west that is invited, and revoked south."""

    desk: Desk
    open: Request
    answered: Request
    place: int

    def snapshot(self) -> dict[str, Any]:
        """Return all that anna and her sites see; times of calls apart."""
        desk = self.desk
        sites = desk.call("anna", "GET", "/sites")[1]["sites"]
        messages = [desk.call("anna", "GET", f"/messages?request={each.id}")[1] for each in (self.open, self.answered)]
        own = [each for each in desk.waiting("north") if json.loads(each["text"])["signer"] == "anna"]
        refused = desk.call("south", "GET", "/requests?after=0")
        return {"sites": [each | {"seen": 0} for each in sites], "messages": messages, "own": own, "south": refused}


@pytest.fixture
def held(desk: Desk) -> Held:
    desk.joined("north", "south")
    assert desk.call("anna", "POST", "/revocations", {"site": "south"}) == (200, {})
    answered = desk.ask("answered", "north")
    (waiting,) = desk.waiting("north")
    place = waiting["place"]
    assert desk.call("north", "POST", "/messages", {"place": place, "text": desk.message("north", answered)})[0] == 200
    execute(desk, "UPDATE mailbox_invitations SET expires = 1")  # days after they were used
    return Held(desk, desk.ask(STUDY, "north"), answered, place)


def execute(desk: Desk, *statements: str) -> None:
    engine = create_engine(desk.database)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def invite_again(held: Held) -> None:
    for site in ("north", "south"):
        invitation = held.desk.invite(site, by="ben", status=409)
        assert held.desk.join(invitation, Key.make(site, held.desk.folder / f"impostor-{site}.key")) == 403


def replace_an_open_invitation(held: Held) -> None:
    annas = held.desk.invite("west")
    bens = held.desk.invite("west", by="ben", status=409)
    assert held.desk.join(bens, Key.make("west", held.desk.folder / "impostor.key")) == 403
    assert held.desk.join(annas) == 200
    assert held.desk.call("anna", "POST", "/revocations", {"site": "west"}) == (200, {})


def revoke(held: Held) -> None:
    for site in ("north", "south", "nowhere"):
        assert held.desk.call("ben", "POST", "/revocations", {"site": site}) == (404, {"code": "not_found"})


def list_sites(held: Held) -> None:
    held.desk.join(held.desk.invite("east", by="ben"))
    held.desk.ask("another", "east", by="ben")
    (own,) = held.desk.call("ben", "GET", "/sites")[1]["sites"]
    assert (own["site"], own["waiting"]) == ("east", 1)


def read_messages(held: Held) -> None:
    for request in (held.open, held.answered):
        assert held.desk.call("ben", "GET", f"/messages?request={request.id}") == (200, {"messages": []})


def collect_messages(held: Held) -> None:
    assert held.desk.call("ben", "POST", "/collected", {"places": [held.place, held.place + 1]}) == (200, {})


def withdraw(held: Held) -> None:
    requests = [held.open.id, held.answered.id]
    assert held.desk.call("ben", "POST", "/withdrawals", {"requests": requests}) == (200, {"closed": 0})


def send_the_same_request(held: Held) -> None:
    """Send the request that anna sent, to her site and for collection, before and after she sends it again."""
    for study in (STUDY, "answered"):
        held.desk.ask(study, by="ben")
        held.desk.ask(study, "north", by="ben")
    read_messages(held)


def take_part_as_a_site(held: Held) -> None:
    for method, target in (("GET", "/requests?after=0"), ("POST", "/messages")):
        assert held.desk.call("ben", method, target) == (401, {"code": "unknown"})


def replace_a_key(held: Held) -> None:
    """Send the record of a rotation that the site has signed, and read those of its sites."""
    record = sign_rotation(held.desk.key("north"), Key.make("north", held.desk.folder / "next.key"))
    assert held.desk.call("ben", "POST", "/rotations", {"text": record}) == (401, {"code": "unknown"})
    assert held.desk.call("ben", "GET", "/rotations") == (200, {"rotations": []})


ATTEMPTS: dict[str, tuple[Callable[[Held], None], ...]] = {
    "POST /invitations": (invite_again, replace_an_open_invitation),
    "POST /revocations": (revoke,),
    "POST /rotations": (replace_a_key,),
    "GET /rotations": (replace_a_key,),
    "GET /sites": (list_sites,),
    "GET /messages": (read_messages,),
    "POST /collected": (collect_messages,),
    "POST /requests": (send_the_same_request,),
    "POST /withdrawals": (withdraw,),
    "GET /requests": (take_part_as_a_site,),
    "POST /messages": (take_part_as_a_site,),
    "GET /health": (),  # nobody's
    "POST /join": (invite_again,),
}


@pytest.mark.parametrize("name", sorted({each.__name__ for attempts in ATTEMPTS.values() for each in attempts}))
def test_requester_neither_sees_nor_changes_what_is_anothers(held: Held, name: str) -> None:
    attempt = next(each for attempts in ATTEMPTS.values() for each in attempts if each.__name__ == name)
    before = held.snapshot()
    attempt(held)
    after = held.snapshot()
    if attempt is replace_an_open_invitation:  # which adds a site of anna's own
        after["sites"] = [each for each in after["sites"] if each["site"] != "west"]
    assert after == before


def test_every_address_is_attempted(desk: Desk) -> None:
    rules = desk.app.application.url_map.iter_rules()
    assert {f"{method} {each.rule}" for each in rules for method in (each.methods or set()) - {"HEAD"}} == set(ATTEMPTS)


def test_request_that_another_sent_first_reaches_the_site_and_its_answer_whoever_it_is_for(desk: Desk) -> None:
    desk.joined("north")
    desk.ask(STUDY, "north", by="ben")
    asked = desk.ask(STUDY, "north")
    bens, annas = desk.waiting("north")
    assert [json.loads(each["text"])["signer"] for each in (bens, annas)] == ["ben", "anna"]
    answer = desk.message("north", asked)
    assert desk.call("north", "POST", "/messages", {"place": annas["place"], "text": answer})[0] == 200
    target = f"/messages?request={asked.id}"
    assert desk.call("ben", "GET", target) == (200, {"messages": []})
    assert [each["text"] for each in desk.call("anna", "GET", target)[1]["messages"]] == [answer]


def test_expired_invitation_of_a_site_that_never_joined_frees_its_name(desk: Desk) -> None:
    desk.invite("north", expires=int(time.time()) - 1)
    assert desk.join(desk.invite("north", by="ben")) == 200
    desk.invite("north", status=409)


def test_sites_of_a_removed_requester_go_to_the_first_that_remains(desk: Desk) -> None:
    desk.joined("north")
    MailboxStore(desk.database, 1).create({"ben": desk.key("ben").public})
    assert desk.call("anna", "GET", "/sites") == (401, {"code": "unknown"})
    assert [each["site"] for each in desk.call("ben", "GET", "/sites")[1]["sites"]] == ["north"]
    assert desk.call("ben", "POST", "/revocations", {"site": "north"}) == (200, {})
