import json
from dataclasses import replace
from typing import Any

import pytest

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import BEFORE, MEANINGS, Message, Request, request_id
from dpcausal.utils.hash_chain import digest_of_text

REQUEST = Request(study="a = 1", ask="releases")
MESSAGE = Message(
    request=REQUEST.id,
    study=digest_of_text("a = 1"),
    site="north",
    code="answered",
    n=7,
    arm_sizes=(3, 4),
    as_of="2026-06-30",
    answer={"a": 1},
)


def test_request_and_message_survive_a_round_trip() -> None:
    assert Request.from_json(REQUEST.to_json()) == REQUEST
    assert Message.from_json(MESSAGE.to_json()) == MESSAGE
    assert Request.from_json(replace(REQUEST, deadline=5).to_json()).deadline == 5
    for code in MEANINGS:
        if code != "answered":
            message = Message(request="", study="", site="north", code=code)
            assert Message.from_json(message.to_json()) == message


def test_request_id_is_that_of_the_question_whatever_its_deadline() -> None:
    assert replace(REQUEST, deadline=5).id == REQUEST.id == request_id(replace(REQUEST, deadline=7).to_json())
    assert replace(REQUEST, deadline=5).to_json() != REQUEST.to_json()
    assert len({REQUEST.id, replace(REQUEST, ask="facts").id, replace(REQUEST, version=BEFORE).id}) == 3
    assert request_id("no request") == digest_of_text("no request")
    assert digest_of_text("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    "changes",
    [
        {"version": True},
        {"version": "3"},
        {"code": "perhaps"},
        {"n": None},
        {"n": -1},
        {"n": True},
        {"n": 7.0},
        {"n": 2**60},
        {"arm_sizes": [3, 5]},
        {"arm_sizes": [7]},
        {"arm_sizes": [-1, 8]},
        {"arm_sizes": "34"},
        {"as_of": None},
        {"as_of": "two\nlines"},
        {"as_of": "x" * 65},
        {"answer": [1]},
        {"answer": {"a": float("nan")}},
        {"site": 3},
        {"request": None},
        {"more": 1},
        {"code": "failed"},
    ],
)
def test_invalid_messages_are_refused(changes: dict[str, Any]) -> None:
    text = json.dumps(json.loads(MESSAGE.to_json()) | changes, sort_keys=True)
    with pytest.raises(TransportError, match="as this version of dpcausal writes it"):
        Message.from_json(text)


def test_version_before_is_read_and_written_as_it_was() -> None:
    before = replace(REQUEST, version=BEFORE, deadline=5)
    assert json.loads(before.to_json()) == {"ask": "releases", "carries": [], "study": "a = 1", "version": 4}
    assert Request.from_json(before.to_json()) == replace(before, deadline=None)
    assert replace(MESSAGE, version=BEFORE) == Message.from_json(replace(MESSAGE, version=BEFORE).to_json())
    for later in (
        json.dumps(json.loads(before.to_json()) | {"ask": "withdraw"}, sort_keys=True),
        json.dumps(json.loads(before.to_json()) | {"deadline": 5}, sort_keys=True),
    ):
        with pytest.raises(TransportError):
            Request.from_json(later)
    with pytest.raises(TransportError):
        Message.from_json(Message(request="", study="", site="north", code="expired", version=BEFORE).to_json())


@pytest.mark.parametrize("deadline", [-1, 1.5, True, "5"])
def test_deadline_that_is_no_time_is_refused(deadline: object) -> None:
    text = json.dumps(json.loads(REQUEST.to_json()) | {"deadline": deadline}, sort_keys=True)
    with pytest.raises(TransportError):
        Request.from_json(text)


@pytest.mark.parametrize("version", [3, 6])
def test_another_version_of_the_protocol_is_refused_by_name(version: int) -> None:
    for kind, part in ((Message, MESSAGE), (Request, REQUEST)):
        text = json.dumps(json.loads(part.to_json()) | {"version": version}, sort_keys=True)
        with pytest.raises(
            TransportError, match=rf"version 5 of the protocol, or 4, not version {version}(.|\n)*older side"
        ):
            kind.from_json(text)


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "[" * 100_000, '{"a": 1e999}', MESSAGE.to_json() + " "])
def test_invalid_texts_are_refused(text: str) -> None:
    for kind in (Message, Request):
        with pytest.raises(TransportError):
            kind.from_json(text)


def test_another_spelling_of_a_message_is_refused() -> None:
    twice = MESSAGE.to_json().replace('"n": 7', '"n": 7, "n": 7')
    with pytest.raises(TransportError):
        Message.from_json(twice)
