"""The health and the backups of a coordinator."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.federation.coordinator.backup import restore_workspace
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.heartbeat import Heartbeat, hold_lock
from dpcausal.federation.transports.mailbox.settings import Mailbox
from tests.support.ports import reserved_port


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["federation", *map(str, words)])


def look(folder: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit status and the checks."""
    done = run("status", folder, "--json")
    checks: dict[str, dict[str, Any]] = json.loads(done.output)["checks"]
    return done.exit_code, checks


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.new(tmp_path / "workspace", "anna")
    made.admit("north", "ab" * 32)
    made.admit("south", "cd" * 32)
    Requests(made.store).store("1", "2", "text")
    return made


def test_coordinator_without_a_network_is_healthy_after_a_backup(workspace: Workspace, tmp_path: Path) -> None:
    assert look(workspace.folder)[0] == 1
    assert run("backup", workspace.folder, "--out", tmp_path / "b").exit_code == 0
    status, checks = look(workspace.folder)
    assert (status, checks["requests"]["value"]) == (0, 1)
    assert "federation workspace: healthy" in run("status", workspace.folder).output


def test_sites_that_are_not_connected_are_named(workspace: Workspace) -> None:
    server = workspace.network / "server"
    server.mkdir(parents=True)
    Heartbeat(1.0, time.time(), sites={"north": time.time(), "south": 2.0}).write(server)
    held = hold_lock(server)
    try:
        checks = look(workspace.folder)[1]
        assert checks["serving"]["value"] is True
        assert checks["sites"] == {
            "level": "attention",
            "words": "1 of 2 connected; not: south",
            "value": {"north": True, "south": False},
        }
        assert checks["certificate_server"]["level"] == "broken"
        assert 'dpcausal_site_connected{site="south"} 0.0' in run("metrics", workspace.folder).output
    finally:
        os.close(held)
    assert look(workspace.folder)[1]["serving"]["level"] == "broken"


def test_end_of_the_mailboxs_certificate_is_told_thirty_days_before(workspace: Workspace) -> None:
    mailbox = Mailbox.create(
        workspace.folder / "mailbox", f"https://localhost:{reserved_port()}", "sqlite:///mailbox.db", {}, 90
    )
    levels = {90: "healthy", 32: "healthy", 29: "attention", 0: "broken"}
    found: dict[str, Any] = {}
    for days, level in levels.items():
        mailbox.renew(days)
        found = look(workspace.folder)[1]["certificate_mailbox"]
        assert (found["level"], found["value"]) == (level, days - 1)
    assert "expired on" in found["words"]
    (mailbox.folder / "server.pem").unlink()
    checks = look(workspace.folder)[1]
    assert checks["certificate_mailbox"]["level"] == checks["serving_mailbox"]["level"] == "broken"
    assert "serving" not in checks  # sites do not answer by files


def test_damaged_store_is_broken(workspace: Workspace) -> None:
    workspace.store.write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    assert look(workspace.folder)[1]["requests"]["level"] == "broken"
    assert run("backup", workspace.folder, "--out", workspace.folder / "b").exit_code == 2


def test_backup_is_restored_elsewhere_with_keys_only_on_demand(workspace: Workspace, tmp_path: Path) -> None:
    for words, keys in (([], False), (["--with-keys"], True)):
        file, place = tmp_path / f"b{keys}", tmp_path / f"elsewhere{keys}"
        done = run("backup", workspace.folder, "--out", file, *words)
        assert ("Not in it: private keys" in done.output) is not keys
        assert run("restore", file, place).exit_code == 0
        restored = Workspace(place)
        assert restored.roster == workspace.roster
        assert Requests(restored.store)._found("SELECT text FROM requests") == [("text",)]
        assert (place / "anna.key").exists() is keys


def test_backup_of_a_site_is_no_workspace(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="federation backup"):
        restore_workspace(workspace.store, tmp_path / "new")


def test_update_kit_needs_a_network(workspace: Workspace) -> None:
    assert run("update-kit", workspace.folder).exit_code == 2
