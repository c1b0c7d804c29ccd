"""A site that polls: what it sends, what it stores, how long it waits."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.protocol.messages import Message
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.mailbox.calls import CallFailedError
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.poller import Outbox, Poller, client_in

REQUEST = "ab" * 32


class Script(Client):
    """A server that replies as a script says: a reason for a failure, or the texts of requests by their places."""

    def __init__(self, *replies: str | dict[int, str]) -> None:
        super().__init__("https://localhost", "", None)  # type: ignore[arg-type]
        self.replies = list(replies)
        self.posted: list[Any] = []

    def call(
        self, method: str, path: str, document: Mapping[str, Any] | None = None, **query: object
    ) -> dict[str, Any]:
        del method, query
        reply = self.replies.pop(0) if self.replies else {}
        if isinstance(reply, str):
            raise CallFailedError(reply, got=reply, hint="none", retry_after=7.0 if reply == "busy" else 0.0)
        if path == "/messages":
            self.posted.append(document)
            return {}
        return {"requests": [{"place": place, "text": text} for place, text in reply.items()]}

    def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return Key.make("north", tmp_path / "site.key")


def poller(client: Client, tmp_path: Path, key: Key, lines: list[str], every: float = 30.0) -> Poller:
    def answer(request: str) -> str:
        if request == "broken":
            raise StudyError(expected="a policy", got="none", hint="correct it.")
        lines.append(f"computed {request}")
        return key.seal(Message(request=REQUEST, study="cd" * 32, site="north", code="undecided").to_json())

    return Poller(client, Outbox(tmp_path / "outbox"), answer, lines.append, every)


def test_answers_are_sent_and_each_study_has_one_line(tmp_path: Path, key: Key) -> None:
    client, lines = Script({1: "one"}, {}, {}), list[str]()
    assert poller(client, tmp_path, key, lines).poll() == 1
    assert [posted["place"] for posted in client.posted] == [1]
    assert lines == [
        "event=connected",
        "computed one",
        f"event=study study={'cd' * 32} request={'ab' * 32} outcome=undecided",
    ]
    assert not list(Outbox(tmp_path / "outbox").messages())


def test_message_is_stored_before_it_is_sent_and_sent_later_without_computing_again(tmp_path: Path, key: Key) -> None:
    lines: list[str] = []
    with pytest.raises(CallFailedError):
        poller(Script({1: "one"}, "reset"), tmp_path, key, lines).poll()
    ((place, text),) = Outbox(tmp_path / "outbox").messages()
    client = Script({}, {})
    assert poller(client, tmp_path, key, lines).poll() == 1  # a new process
    assert client.posted == [{"place": place, "text": text}]
    assert lines.count("computed one") == 1
    assert not list(Outbox(tmp_path / "outbox").messages())


def test_message_that_the_server_does_not_want_is_dropped(tmp_path: Path, key: Key) -> None:
    lines: list[str] = []
    poller(Script({1: "one"}, "no_delivery", {}), tmp_path, key, lines).poll()
    assert not list(Outbox(tmp_path / "outbox").messages())
    assert f"event=dropped reason=no_delivery request={REQUEST}" in lines


def test_pause_grows_with_failures_up_to_a_cap_and_is_random(tmp_path: Path, key: Key) -> None:
    lines: list[str] = []
    polling = poller(Script(*["refused"] * 40), tmp_path, key, lines)
    pauses = [polling.turn() for _ in range(40)]
    for place, pause in enumerate(pauses):
        assert 0.5 <= pause / min(2.0 * 2.0**place, 300.0) <= 1.5
    assert len(set(pauses)) == 40
    assert statistics.mean(pauses[10:]) == pytest.approx(300, rel=0.25)
    assert len([line for line in lines if "event=disconnected reason=refused" in line]) == 1


def test_success_between_failures_never_shortens_the_pause(tmp_path: Path, key: Key) -> None:
    polling = poller(Script("refused", {}, "reset", {}, "refused", {}), tmp_path, key, [])
    pauses = [polling.turn() for _ in range(6)]
    assert all(22.5 <= pause <= 37.5 for pause in pauses[1::2])
    assert all(1.0 <= pause <= 3.0 for pause in pauses[::2])


def test_server_that_is_busy_sets_the_pause(tmp_path: Path, key: Key) -> None:
    assert poller(Script("busy"), tmp_path, key, []).turn() == 7.0


def test_site_that_cannot_answer_keeps_the_request_open(tmp_path: Path, key: Key) -> None:
    client, lines = Script({1: "broken"}), list[str]()
    assert poller(client, tmp_path, key, lines).turn() >= 150
    assert client.posted == []
    assert "event=failed error=StudyError" in lines[-1]


def test_site_that_has_not_joined_says_how(tmp_path: Path, key: Key) -> None:
    with pytest.raises(StudyError, match="join-mailbox"):
        client_in(tmp_path, key)
