import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import FileTransport, LocalTransport, parted

REQUEST = Request(study="a study", ask="facts")


@pytest.fixture
def asked(tmp_path: Path) -> str:
    return Key.make("anna", tmp_path / "anna.key").seal(REQUEST.to_json())


@pytest.fixture
def answers(tmp_path: Path) -> dict[str, str]:
    """What two sites answer."""
    return {
        name: Key.make(name, tmp_path / f"{name}.key").seal(
            Message(request=REQUEST.id, study="", site=name, code="rejected").to_json()
        )
        for name in ("north", "south")
    }


def test_site_that_raises_does_not_stop_the_others(asked: str) -> None:
    def broken(request: str) -> str:
        raise ZeroDivisionError(request)

    received: list[tuple[str, str]] = []
    transport = LocalTransport({"north": broken, "south": str.upper})
    transport.ask(asked, ["north", "absent", "south"], 0.0, lambda *response: received.append(response))
    assert received == [("south", asked.upper())]


def test_request_goes_out_and_messages_come_in(tmp_path: Path, asked: str, answers: dict[str, str]) -> None:
    transport, received = FileTransport(tmp_path / "exchange"), dict[str, str]()
    transport.ask(asked, ["north", "south"], 0.0, received.__setitem__)
    assert received == {}
    out = tmp_path / "exchange" / "out" / f"{REQUEST.id}.request.json"
    assert out.read_text() == asked
    assert list(out.parent.iterdir()) == [out]
    for name, text in answers.items():
        (tmp_path / "exchange" / "in" / f"from {name}.message.json").write_text(text)
    transport.ask(asked, ["north", "south"], 60.0, received.__setitem__)
    assert received == answers


def test_each_site_gets_what_is_enclosed_for_it_alone(tmp_path: Path, asked: str) -> None:
    enclosed, got = {"north": '{"n": 1}', "south": '{"s": 2}'}, dict[str, str]()

    def site(name: str) -> Callable[[str], str]:
        return lambda text: got.setdefault(name, text)

    LocalTransport({name: site(name) for name in enclosed}).ask(asked, [*enclosed], 0.0, lambda *_: None, enclosed)
    assert {name: parted(text) for name, text in got.items()} == {name: (asked, enclosed[name]) for name in enclosed}
    files = FileTransport(tmp_path / "exchange")
    files.ask(asked, ["north", "south"], 0.0, lambda *_: None, enclosed)
    out = tmp_path / "exchange" / "out"
    assert {file.name: file.read_text() for file in out.iterdir()} == {
        f"{REQUEST.id}.{name}.request.json": text for name, text in got.items()
    }
    files.withdraw([REQUEST.id])
    assert [*out.iterdir()] == []


def test_files_without_a_message_to_this_request_are_ignored(
    tmp_path: Path, asked: str, answers: dict[str, str]
) -> None:
    transport, received = FileTransport(tmp_path), list[str]()
    transport.write(asked)
    folder = tmp_path / "in"
    other = Message(request="another", study="", site="south", code="rejected").to_json()
    stranger = Message(request=REQUEST.id, study="", site="nobody", code="rejected").to_json()
    for name, content in {
        "half": answers["south"][:50].encode(),
        "bytes": b"\xff\xfe\x00",
        "deep": b'{"body": ' + b"[" * 100_000,
        "large": b" " * 20_000_000 + answers["south"].encode(),
        "other": Key.make("x", tmp_path / "x.key").seal(other).encode(),
        "stranger": Key.make("y", tmp_path / "y.key").seal(stranger).encode(),
    }.items():
        (folder / f"{name}.message.json").write_bytes(content)
    (folder / "folder.message.json").mkdir()
    os.mkfifo(folder / "pipe.message.json")
    (folder / "north.txt").write_text(answers["north"])
    (folder / "north.message.json").write_text(answers["north"])
    transport.ask(asked, ["north", "south"], 0.0, lambda site, _text: received.append(site))
    assert received == ["north"]


def test_late_file_is_found_before_the_timeout(tmp_path: Path, asked: str, answers: dict[str, str]) -> None:
    transport, received = FileTransport(tmp_path), list[str]()
    transport.write(asked)
    file = tmp_path / "in" / "north.message.json"
    late = threading.Timer(0.3, lambda: file.write_text(answers["north"]))
    late.start()
    begun = time.monotonic()
    transport.ask(asked, ["north"], 60.0, lambda site, _text: received.append(site))
    late.join()
    assert received == ["north"]
    assert time.monotonic() - begun < 30


def test_timeout_ends_the_wait(tmp_path: Path, asked: str) -> None:
    begun = time.monotonic()
    FileTransport(tmp_path).ask(asked, ["north"], 0.2, lambda *_: None)
    assert time.monotonic() - begun >= 0.2


def test_unusable_folder_is_refused(tmp_path: Path, asked: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TransportError, match="cannot be read or written"):
        FileTransport(tmp_path / "file").ask(asked, ["north"], 0.0, lambda *_: None)
