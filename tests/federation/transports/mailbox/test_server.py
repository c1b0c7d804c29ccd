"""What the mailbox's application accepts and what it refuses, on SQLite and on PostgreSQL."""

import hashlib
import json
import time
from typing import Any

import pytest

from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import parted
from dpcausal.federation.transports.mailbox import store as database
from dpcausal.federation.transports.mailbox.calls import LONGEST_MESSAGE, LONGEST_REQUEST, SCHEME, sign_call
from dpcausal.federation.transports.mailbox.transport import calls_of
from tests.federation.transports.mailbox.conftest import ADDRESS, Desk


def test_request_reaches_its_sites_and_the_message_its_requester(desk: Desk) -> None:
    desk.joined("north", "south")
    asked = desk.ask("a study", "north")
    (waiting,) = desk.waiting("north")
    assert json.loads(waiting["text"])["body"] == asked.to_json()
    text = desk.message("north", asked)
    assert desk.call("north", "POST", "/messages", {"place": waiting["place"], "text": text}) == (200, {})
    status, found = desk.call("anna", "GET", f"/messages?request={asked.id}")
    assert (status, found["messages"]) == (200, [{"place": waiting["place"], "site": "north", "text": text}])
    assert desk.waiting("north") == []
    assert "event=message site=north" in desk.lines[-1]
    assert "code=undecided" in desk.lines[-1]


def test_message_posted_twice_counts_once_and_is_forgotten_after_collection(desk: Desk) -> None:
    desk.joined("north")
    asked = desk.ask("a study", "north")
    posted = {"place": desk.waiting("north")[0]["place"], "text": desk.message("north", asked)}
    for _ in range(2):
        assert desk.call("north", "POST", "/messages", posted)[0] == 200
    _, found = desk.call("anna", "GET", f"/messages?request={asked.id}")
    assert len(found["messages"]) == 1
    assert desk.call("anna", "POST", "/collected", {"places": [posted["place"]]})[0] == 200
    assert desk.call("anna", "GET", f"/messages?request={asked.id}")[1] == {"messages": []}
    assert desk.call("north", "POST", "/messages", posted)[0] == 200  # its reply was lost, and it sends again
    assert desk.call("anna", "GET", f"/messages?request={asked.id}")[1] == {"messages": []}


def test_long_requests_arrive_in_parts_that_a_reply_holds(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.joined("north")
    for study in "abcd":
        desk.ask(study * 1_000, "north")
    monkeypatch.setattr(database, "LONGEST_REPLY", 6_000)
    first = desk.waiting("north")
    assert len(first) == 2
    rest = desk.call("north", "GET", f"/requests?after={first[-1]['place']}")[1]["requests"]
    assert len({each["place"] for each in first + rest}) == 4
    monkeypatch.setattr(database, "LONGEST_REPLY", 10)
    assert len(desk.waiting("north")) == 1  # one in any case


def test_request_posted_twice_is_delivered_once_until_it_is_answered(desk: Desk) -> None:
    desk.joined("north")
    desk.ask("a study", "north")
    asked = desk.ask("a study", "north")
    (waiting,) = desk.waiting("north")
    posted = {"place": waiting["place"], "text": desk.message("north", asked)}
    assert desk.call("north", "POST", "/messages", posted)[0] == 200
    desk.ask("a study", "north")
    (again,) = desk.waiting("north")
    assert again["place"] > waiting["place"]


def test_what_is_enclosed_for_a_site_reaches_it_alone_and_goes_with_its_answer(desk: Desk) -> None:
    desk.joined("north", "south")
    request, text = Request(study="a study", ask="releases"), ""

    def post() -> None:
        nonlocal text
        text = desk.key("anna").seal(request.to_json())
        for site in ("north", "south"):  # in several calls, as for many sites
            document = {"text": text, "sites": {site: f"for {site}"}}
            assert desk.call("anna", "POST", "/requests", document) == (200, {})

    post()
    (waiting,) = desk.waiting("south")
    assert parted(waiting["text"]) == (text, "for south")
    posted = {"place": waiting["place"], "text": desk.message("south", request)}
    assert desk.call("south", "POST", "/messages", posted)[0] == 200
    assert [each["text"] for each in desk.waiting("north")] == [f"{text}\nfor north"]
    desk.ask("a study", "south")  # asked again without it: nothing of it is left
    assert parted(desk.waiting("south")[0]["text"])[1] == ""
    assert desk.call("anna", "POST", "/withdrawals", {"requests": [request.id]})[0] == 200
    desk.ask("a study", "north")
    assert parted(desk.waiting("north")[0]["text"])[1] == ""
    document = {"text": text, "sites": {"north": 7}}
    assert desk.call("anna", "POST", "/requests", document) == (400, {"code": "malformed"})


def test_what_is_enclosed_for_many_sites_goes_in_calls_that_the_server_takes() -> None:
    enclosed = {f"site{place:04}": '"' * 100_000 for place in range(50)}
    sent = list(calls_of("a request", [*enclosed, "other"], enclosed))
    assert len(sent) == 3
    assert all(len(json.dumps(each)) <= LONGEST_REQUEST for each in sent)
    assert {site: text for each in sent for site, text in each["sites"].items()} == enclosed | {"other": ""}
    assert list(calls_of("a request", ["north"], {})) == [{"text": "a request", "sites": ["north"]}]


def test_after_skips_earlier_deliveries(desk: Desk) -> None:
    desk.joined("north")
    for study in ("one", "two"):
        desk.ask(study, "north")
    first, second = desk.waiting("north")
    assert desk.call("north", "GET", f"/requests?after={first['place']}")[1] == {"requests": [second]}


def test_site_sees_and_answers_only_its_own_deliveries(desk: Desk) -> None:
    desk.joined("north", "south")
    asked = desk.ask("a study", "north")
    (waiting,) = desk.waiting("north")
    assert desk.waiting("south") == []
    own, others = desk.message("south", asked), desk.message("north", asked)
    for text, code in ((own, "no_delivery"), (others, "malformed")):
        status, found = desk.call("south", "POST", "/messages", {"place": waiting["place"], "text": text})
        assert (status >= 400, found) == (True, {"code": code})
    assert desk.call("south", "GET", f"/messages?request={asked.id}") == (401, {"code": "unknown"})
    assert desk.call("south", "GET", "/sites") == (401, {"code": "unknown"})
    assert len(desk.waiting("north")) == 1


def test_token_joins_once_and_before_it_expires(desk: Desk) -> None:
    invitation = desk.invite("north")
    assert desk.join(invitation) == 200
    assert desk.join(invitation) == 200  # the same key: its first reply was lost
    thief = Key.make("north", desk.folder / "thief.key")
    assert desk.join(invitation, thief) == 403
    assert "outcome=refused" in desk.lines[-1]
    assert desk.join(desk.invite("south", expires=int(time.time()) - 1)) == 403
    assert desk.call("south", "GET", "/requests?after=0") == (401, {"code": "unknown"})


def test_token_of_another_site_or_without_the_secret_does_not_join(desk: Desk) -> None:
    north, desk_key = desk.invite("north"), desk.key("south")
    other = type(north)(north.address, north.authority, "south", north.secret, north.expires)
    assert desk.join(other, desk_key) == 403
    guessed = type(north)(north.address, north.authority, "north", "00" * 32, north.expires)
    assert desk.join(guessed) == 403


def test_revoked_site_is_refused_at_once(desk: Desk) -> None:
    desk.joined("north")
    assert desk.call("anna", "POST", "/revocations", {"site": "north"}) == (200, {})
    assert desk.call("north", "GET", "/requests?after=0") == (401, {"code": "unknown"})
    assert desk.call("anna", "POST", "/revocations", {"site": "west"}) == (404, {"code": "not_found"})


def test_forged_call_is_refused_and_does_not_use_up_the_rate(desk: Desk) -> None:
    desk.joined("north")
    thief = Key.make("north", desk.folder / "thief.key")
    target = "/requests?after=0"
    for header in (
        sign_call(thief, ADDRESS, "GET", target, b""),
        sign_call(desk.key("north"), ADDRESS, "GET", "/requests?after=1", b""),
        sign_call(desk.key("north"), ADDRESS, "POST", target, b""),
        sign_call(desk.key("north"), "https://other.example", "GET", target, b""),
        f"{SCHEME} north",
        "Bearer north",
        "",
    ):
        for _ in range(10):
            assert desk.call("north", "GET", target, header=header) == (401, {"code": "unknown"})
    assert desk.call("north", "GET", target)[0] == 200


def test_body_that_was_not_signed_is_refused(desk: Desk) -> None:
    desk.joined("north")
    asked = desk.ask("a study", "north")
    posted = {"place": desk.waiting("north")[0]["place"], "text": desk.message("north", asked)}
    other = json.dumps(posted).encode() + b" "
    assert desk.call("north", "POST", "/messages", posted, body=other) == (401, {"code": "unknown"})


def test_replayed_and_badly_timed_calls_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.joined("north")
    target = "/requests?after=0"
    header = sign_call(desk.key("north"), ADDRESS, "GET", target, b"")
    assert desk.call("north", "GET", target, header=header)[0] == 200
    assert desk.call("north", "GET", target, header=header) == (409, {"code": "replayed"})
    now = time.time()
    monkeypatch.setattr("dpcausal.federation.transports.mailbox.store.time.time", lambda: now + 301)
    late = sign_call(desk.key("north"), ADDRESS, "GET", target, b"")
    assert desk.call("north", "GET", target, header=late) == (401, {"code": "clock"})


def test_rate_limit_holds_over_processes(desk: Desk) -> None:
    desk.joined("north", "south")
    second = database.MailboxStore(desk.database, 1)  # another process has its own store
    refused = 0
    for place in range(30):
        if place % 2:
            refused += second.admit("site", "north", time.time_ns() // 1000)[0] == "busy"
        else:
            refused += desk.call("north", "GET", "/requests?after=0")[0] == 429
    assert 1 <= refused <= 12
    assert desk.call("south", "GET", "/requests?after=0")[0] == 200


def test_malformed_message_is_refused(desk: Desk) -> None:
    desk.joined("north")
    documents: list[Any] = [
        {"place": 1, "text": 5},
        {"place": -1, "text": desk.message("north", desk.ask("a study", "north"))},
        {"place": 10**30, "text": desk.message("north", desk.ask("a study", "north"))},
        {"place": True, "text": "x"},
        {"place": 1, "text": "x", "site": "south"},
        {"place": 1, "text": "not signed"},
        [],
    ]
    for document in documents:
        assert desk.call("north", "POST", "/messages", document) == (400, {"code": "malformed"})


def test_too_large_body_is_refused_before_the_signature_is_used(desk: Desk) -> None:
    desk.joined("north")
    body = b"x" * (LONGEST_MESSAGE + 1)
    header = sign_call(desk.key("north"), ADDRESS, "POST", "/messages", body)
    assert desk.send("POST", "/messages", body, {"Authorization": header}) == (413, {"code": "too_large"})
    assert desk.send("POST", "/join", b"x" * 200_000, {}) == (413, {"code": "too_large"})


def test_sql_and_paths_in_names_are_refused(desk: Desk) -> None:
    desk.joined("north")
    digest = hashlib.sha256(b"").hexdigest()
    for name in ("' OR 1=1 --", "north'; DROP TABLE mailbox_callers; --", "../north", "a" * 100, "ä"):
        header = f"{SCHEME} {name}:{time.time_ns() // 1000}:{digest}:{'00' * 64}".encode().decode("latin-1")
        assert desk.call("north", "GET", "/requests?after=0", header=header) == (401, {"code": "unknown"})
        invited = {"site": name, "pass_digest": "00" * 32, "expires": 2**40}
        assert desk.call("anna", "POST", "/invitations", invited) == (400, {"code": "malformed"})
    assert desk.call("anna", "GET", "/messages?request=%27%20OR%201=1") == (400, {"code": "malformed"})
    assert desk.call("north", "GET", "/requests?after=0%20OR%201=1") == (400, {"code": "malformed"})
    assert desk.call("north", "GET", "/requests?after=0")[0] == 200


def test_path_tricks_find_nothing(desk: Desk) -> None:
    for target in ("/", "//requests", "/requests/", "/requests/../sites", "/static/x", "/sites%2f"):
        assert desk.call("anna", "GET", target) == (404, {"code": "not_found"})


def test_status_lists_each_site(desk: Desk) -> None:
    desk.joined("north", "south")
    desk.ask("a study", "north")
    assert desk.waiting("north")
    _, found = desk.call("anna", "GET", "/sites")
    assert [(each["site"], each["waiting"], each["seen"] > 0) for each in found["sites"]] == [
        ("north", 1, True),
        ("south", 0, False),
    ]
