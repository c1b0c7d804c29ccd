"""Logs of NVFlare's processes: JSON lines, and of NVFlare's own only those that tell something."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.nvflare import logs
from dpcausal.utils.hash_chain import digest_of_text

JOB = "server.561c1067-016b-47e9-90aa-b3145adbe059"


def record(name: str, level: int, message: str, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "", 0, message, (), None)
    vars(made).update(extra)
    return made


@pytest.mark.parametrize(
    ("name", "level", "message", "passes"),
    [
        ("root", logging.INFO, "Server started", True),
        ("nvflare.FederatedClient", logging.INFO, "Successfully registered client:north for project x.", True),
        ("nvflare.FederatedClient", logging.INFO, "Got engine after 0.5 seconds", False),
        ("nvflare.ClientManager", logging.INFO, "Client: New admin requester joined", False),
        ("nvflare.AuxRunner", logging.INFO, "registered aux handler for topic fed.event", False),
        ("nvflare.CoreCell", logging.ERROR, f"[ME=server] cannot send to '{JOB}': target_unreachable", False),
        ("nvflare.CoreCell", logging.WARNING, f"[ME=server] no connection to child {JOB}", False),
        ("nvflare.CoreCell", logging.ERROR, "[ME=server] cannot send to 'north': target_unreachable", True),
        ("nvflare.AppCommandProcessor", logging.ERROR, "no app command func for topic messages", False),
        ("nvflare.AppCommandProcessor", logging.ERROR, "no app command func for topic other", True),
        ("nvflare.AuxRunner", logging.WARNING, "anything", True),
        ("dpcausal.studies", logging.INFO, "study", True),
    ],
)
def test_only_lines_that_tell_something_pass(name: str, level: int, message: str, passes: bool) -> None:
    assert logs.Told().filter(record(name, level, message)) is passes


def test_settings_are_a_configuration_that_logging_accepts() -> None:
    program = "import json, logging.config, sys; logging.config.dictConfig(json.loads(sys.argv[1])); "
    program += "logging.getLogger().warning('a line\\nin two')"
    command = [sys.executable, "-c", program, logs.settings()]  # in a process: this one's log is pytest's
    (line,) = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()  # noqa: S603
    told = json.loads(line)
    assert (told["level"], told["event"], told["message"]) == ("WARNING", "log", "a line\nin two")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    written: list[str] = []

    class Handler(logging.Handler):
        def emit(self, made: logging.LogRecord) -> None:
            written.append(logs.JsonLines().format(made))

    logger = logging.getLogger("dpcausal.studies")
    monkeypatch.setattr(logger, "handlers", [Handler()])
    monkeypatch.setattr(logger, "level", logging.INFO)
    monkeypatch.setattr(logger, "propagate", False)
    return written


def test_a_study_is_one_line_with_its_day_and_no_time(lines: list[str], tmp_path: Path) -> None:
    anna, north = Key.make("anna", tmp_path / "a"), Key.make("north", tmp_path / "n")
    request = Request(study="text", ask="releases")
    message = Message(request=request.id, study=digest_of_text("text"), site="north", code="undecided")
    logs.log_answer(anna.seal(request.to_json()), north.seal(message.to_json()))
    logs.log_study(
        anna.seal(request.to_json()), {"north": north.seal(message.to_json()), "west": "x"}, ["west", "east"]
    )
    at_site, at_server = map(json.loads, lines)
    day = at_site.pop("day")
    assert len(day) == len("2026-01-01")
    asked = {"level": "INFO", "event": "study", "study": digest_of_text("text"), "requester": "anna", "ask": "releases"}
    assert at_site == asked | {"code": "undecided"}
    assert at_server["sites"] == {"east": "silent", "west": "invalid"}


def test_what_a_stranger_sends_is_not_repeated_in_a_line(lines: list[str]) -> None:
    logs.log_answer('{"body": "evil\\u001b[2J", "signature": "", "signer": "evil\\u001b[2J"}', "evil")
    assert "evil" not in lines[0]
    assert json.loads(lines[0])["ask"] == "unreadable"
