"""A coordinator's people are told what sites did, and what does not work."""

import base64
import json
from pathlib import Path

import pytest
import tomli_w
from typer.testing import CliRunner

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation import notices
from dpcausal.federation.protocol.messages import Code, Message, Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.testing import standard_schema
from tests.support.receivers import web_server
from tests.support.site_folders import example_study


def asked(workspace: Workspace, study: Study) -> str:
    """Store a request, as a coordinator does before it sends it, and return its id."""
    request = Request(study=study.to_toml(), ask="releases")
    text = workspace.key("anna").seal(request.to_json())
    Requests(workspace.store).store(request.id, study.digest, text)
    return request.id


def test_what_sites_did_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_NEXT_CALL", 0.0)
    monkeypatch.setenv("WEBHOOK", f"whsec_{base64.b64encode(b'k' * 32).decode()}")
    workspace = Workspace.new(tmp_path / "workspace", "anna")
    keys = {name: Key.make(name, tmp_path / f"{name}.key") for name in ("north", "south")}
    for name, key in keys.items():
        workspace.admit(name, key.public)
    study = example_study(standard_schema())
    early = asked(workspace, study)

    def say(site: str, code: Code) -> None:
        message = Message(request=early, study=study.digest, site=site, code=code)
        Requests(workspace.store).accept(early, site, keys[site].seal(message.to_json()))

    with web_server() as web:
        webhook = {"address": f"http://127.0.0.1:{web.port}/", "secret_from": "env:WEBHOOK"}
        document = {"version": 1, "notify": {"webhook": [webhook]}}
        (workspace.folder / "console.toml").write_text(tomli_w.dumps(document))

        def told() -> list[tuple[str, str]]:
            web.calls.clear()
            assert CliRunner().invoke(app, ["federation", "notify", str(workspace.folder)]).exit_code == 0
            found = [json.loads(body) for _, body in web.calls]
            return [(each["type"].removeprefix("dpcausal."), each["data"]["title"]) for each in found]

        say("south", "undecided")
        assert told() == [("failure", "backup: attention")]
        say("south", "undecided")
        say("north", "undecided")
        assert told() == [("waiting", "north has not decided on the study yet: scores")]
        say("north", "too_few_units")
        say("south", "rejected")
        assert told() == [
            ("decision", "south rejected the study: scores"),
            ("failure", "north did not answer; the console says why: scores"),
        ]
        assert told() == []
        workspace.store.write_bytes(b"SQLite format 3\0" + b"x" * 4096)
        assert told() == [("failure", "requests: broken")]
