"""Requests in a mailbox that come again with another deadline, are withdrawn, or cannot be read by an older site."""

import json
from dataclasses import replace

from dpcausal.federation.protocol.messages import BEFORE, Message, Request
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.utils.hash_chain import digest_of_text
from tests.federation.transports.mailbox.conftest import Desk


def post(desk: Desk, request: Request, *sites: str) -> None:
    document = {"text": desk.key("anna").seal(request.to_json()), "sites": list(sites)}
    assert desk.call("anna", "POST", "/requests", document) == (200, {})


def deadlines(desk: Desk, site: str) -> list[int | None]:
    return [Request.from_json(claimed_body(each["text"])).deadline for each in desk.waiting(site)]


def test_same_request_with_a_later_deadline_replaces_the_text_of_open_deliveries(desk: Desk) -> None:
    desk.joined("north", "south")
    request = Request(study="a = 1", ask="releases", deadline=5)
    post(desk, request, "north", "south")
    post(desk, replace(request, deadline=9), "south")
    assert (deadlines(desk, "north"), deadlines(desk, "south")) == ([9], [9])


def test_withdrawn_request_is_fetched_no_more_and_only_its_requester_withdraws_it(desk: Desk) -> None:
    desk.joined("north", "south")
    request = desk.ask("a = 1", "north", "south")
    place = desk.waiting("north")[0]["place"]
    document = {"place": place, "text": desk.message("north", request)}
    assert desk.call("north", "POST", "/messages", document)[0] == 200
    assert desk.call("ben", "POST", "/withdrawals", {"requests": [request.id]}) == (200, {"closed": 0})
    assert desk.call("south", "POST", "/withdrawals", {"requests": [request.id]})[0] == 401
    assert desk.call("anna", "POST", "/withdrawals", {"requests": ["x"]})[0] == 400
    place = desk.waiting("south")[0]["place"]
    assert desk.call("anna", "POST", "/withdrawals", {"requests": [request.id]}) == (200, {"closed": 1})
    assert desk.waiting("south") == []
    late = {"place": place, "text": desk.message("south", request)}
    assert desk.call("south", "POST", "/messages", late) == (404, {"code": "no_delivery"})
    found = desk.call("anna", "GET", f"/messages?request={request.id}")[1]["messages"]
    assert [each["site"] for each in found] == ["north"]  # what was answered stays
    assert desk.ask("a = 1", "south").id == request.id
    assert len(desk.waiting("south")) == 1


def test_site_that_cannot_read_a_request_can_say_so(desk: Desk) -> None:
    """It does not know the id, so that its message names the digest of the text."""
    desk.joined("north")
    request = desk.ask("a = 1", "north")
    (waiting,) = desk.waiting("north")
    about = digest_of_text(claimed_body(waiting["text"]))
    message = Message(request=about, study="", site="north", code="undecided", version=BEFORE)
    document = {"place": waiting["place"], "text": desk.key("north").seal(message.to_json())}
    assert desk.call("north", "POST", "/messages", document) == (404, {"code": "no_delivery"})
    document["text"] = desk.key("north").seal(replace(message, code="unreadable").to_json())
    assert desk.call("north", "POST", "/messages", document) == (200, {})
    (found,) = desk.call("anna", "GET", f"/messages?request={request.id}")[1]["messages"]
    assert json.loads(claimed_body(found["text"]))["code"] == "unreadable"
