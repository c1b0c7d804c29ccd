"""A federation by mailbox that lost its folders: its backups bring it back, and a drill proves that they do."""

import json
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpcausal.cli import app
from dpcausal.federation.console.state import State
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.archive import LAST_BACKUP
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.people import Person, add_person
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.poller import client_in
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.transport import invite
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.mailbox_server import MailboxServer
from tests.support.site_folders import make_site_folder

pytestmark = pytest.mark.xdist_group("mailbox")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]


def joined_site(server: MailboxServer, folder: Path) -> Key:
    table = synthetic_table(standard_schema(), 50, seed=1)
    make_site_folder(folder, folder.name, table, standard_schema(), {"anna": server.anna.public})
    key = Key.read(folder.name, folder / "site.key")
    server.join(key, folder / "mailbox")
    return key


def test_lost_workspace_and_site_are_restored_and_no_site_is_invited_again(tmp_path: Path) -> None:
    file, site_file = tmp_path / "workspace.backup", tmp_path / "north.backup"
    with MailboxServer(tmp_path / "workspace", workers=1) as server:
        key = joined_site(server, tmp_path / "north")
        invite(server.client, server.folder / "mailbox" / "invitations", "later", server.mailbox.authority, 3600)
        State(server.folder).log("login", "Anna", "127.0.0.1")
        assert run("federation", "backup", server.folder, "--out", file, "--with-keys").exit_code == 0
        assert run("site", "backup", tmp_path / "north", "--out", site_file, "--with-keys").exit_code == 0
        server.kill()
        shutil.rmtree(server.folder)
        shutil.rmtree(tmp_path / "north")

        drilled = run("federation", "drill", file)
        assert drilled.exit_code == 0, drilled.output
        assert "answered a signed call: 1 sites have joined" in drilled.output
        drilled = run("site", "drill", site_file)
        assert drilled.exit_code == 0, drilled.output
        assert "signed with its own key: unknown_requester" in drilled.output

        restored = run("federation", "restore", file, server.folder)
        assert "requester anna of the mailbox" in restored.output
        assert [line["event"] for line in State(server.folder).logged(1)] == ["login"]
        assert run("site", "restore", site_file, tmp_path / "north").exit_code == 1  # people confirm it first
        server.start()
        assert client_in(tmp_path / "north" / "mailbox", key).call("GET", "/requests", after=0) == {"requests": []}
        assert Site(tmp_path / "north").public_key == key.public
    with sqlite3.connect(server.folder / "mailbox" / "mailbox.db") as database:  # an open invitation would be revived
        assert database.execute("SELECT site FROM mailbox_invitations").fetchall() == [("north",)]


def test_backup_without_keys_holds_no_secret_of_a_mailbox_and_its_drill_says_what_is_missing(tmp_path: Path) -> None:
    workspace = Workspace.new(tmp_path / "workspace", "anna")
    keys = {"anna": workspace.key("anna").public}
    address = "postgresql+psycopg://mail:4711secret@db.example/mailbox"
    Mailbox.create(workspace.folder / "mailbox", "https://mail.example:8443", address, keys, 10)
    (workspace.folder / "console_accounts.json").write_text('{"accounts": {"anna": "4711secret"}}')
    State(workspace.folder)
    (workspace.folder / "mailbox" / "both.pem").write_text("-----BEGIN PRIVATE KEY-----\n4711secret")
    add_person(workspace.folder, Person("Dr. Adams", ("reader",), login="adams"))
    (workspace.folder / "mailbox" / "invitations").mkdir()
    (workspace.folder / "mailbox" / "invitations" / "north.json").write_text('{"secret": "4711secret"}')
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    done = run("federation", "backup", workspace.folder, "--out", plain)
    assert (
        "the database of the mailbox, which is not in the workspace: postgresql+psycopg://mail:LEFT-OUT" in done.output
    )
    found = members(plain)
    assert not [name for name in found if name.endswith(".key") or "console.db" in name]
    assert not [name for name, content in found.items() if b"4711secret" in content or b"PRIVATE KEY" in content]
    drilled = run("federation", "drill", plain)
    assert drilled.exit_code == 1
    assert "--with-keys" in drilled.output
    restored = run("federation", "restore", plain, tmp_path / "restored").output
    assert "Missing: the secret of database in mailbox/mailbox.toml" in restored
    assert "person Dr. Adams" in restored
    assert run("federation", "backup", workspace.folder, "--out", whole, "--with-keys").exit_code == 0
    assert {
        "mailbox/both.pem",
        "mailbox/server.key",
        "mailbox/authority.key",
        "anna.key",
        "console_accounts.json",
    } <= members(whole).keys()
    drilled = run("federation", "drill", whole)  # with a database of its own: never that in use
    assert (drilled.exit_code, "with an empty database" in drilled.output) == (0, True), drilled.output


def test_status_knows_what_the_last_backup_lacks(tmp_path: Path) -> None:
    workspace = Workspace.new(tmp_path / "workspace", "anna")

    def backup_check() -> tuple[str, str]:
        check = json.loads(run("federation", "status", workspace.folder, "--json").stdout)["checks"]["backup"]
        return check["level"], check["words"]

    assert run("federation", "backup", workspace.folder, "--out", tmp_path / "b").exit_code == 0
    assert backup_check()[0] == "healthy"
    assert "without keys" in backup_check()[1]
    Mailbox.create(workspace.folder / "mailbox", "https://mail.example:8443", "sqlite:///mailbox.db", {}, 10)
    level, words = backup_check()
    assert level == "attention"
    assert "it lacks mailbox/mailbox.toml and 2 more files" in words
    note = workspace.folder / LAST_BACKUP
    note.write_text(json.dumps({"at": json.loads(note.read_text())["at"]}))  # of a version that left the mailbox out
    assert "it lacks roster.toml" in backup_check()[1]
