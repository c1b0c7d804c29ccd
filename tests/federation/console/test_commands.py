import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.settings import FILE, Settings
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.site.people import People
from dpcausal.federation.site.site import Site
from tests.federation.console.conftest import PASSWORD
from tests.support.ports import reserved_port

PROVIDER = '[provider]\nissuer = "{}"\nclient_id = "console"\nclient_secret = "hidden"\n'


def run(*words: object, text: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words], input=text)
    return result.exit_code, result.output


def test_set_password_needs_a_person_and_a_long_password(folder: Path) -> None:
    assert run("site", "set-password", folder, "nobody", text=f"{PASSWORD}\n")[0] == 2
    assert run("site", "set-password", folder, "adams", text="short\n")[0] == 2
    assert not Accounts(folder).check("adams", "short")
    code, output = run("site", "set-password", folder, "adams", text="a new password of some length\n")
    assert (code, output) == (0, "Set the password of Dr. Adams.\n")
    assert Accounts(folder).check("adams", "a new password of some length")
    assert not Accounts(folder).check("adams", PASSWORD)
    assert (folder / "console_accounts.json").stat().st_mode & 0o777 == 0o600


def test_console_key_is_created_once_and_recorded(folder: Path) -> None:
    assert run("site", "create-console-key", folder)[0] == 2
    before = People.read(folder).console_key
    (folder / "console.key").unlink()
    assert run("site", "create-console-key", folder)[0] == 0
    assert People.read(folder).console_key != before
    assert (folder / "console.key").stat().st_mode & 0o777 == 0o600
    assert People.read(folder).console_key in Site(folder).audit_log.entries()[-1].what


def test_people_of_a_coordinator_need_a_workspace(tmp_path: Path) -> None:
    folder = Workspace.new(tmp_path / "workspace", "anna").folder
    add = ("federation", "add-person")
    assert run(*add, folder, "Anna", "--role", "reader", "--login", "anna")[0] == 0
    assert run("federation", "set-password", folder, "anna", text=f"{PASSWORD}\n")[0] == 0
    assert run(*add, tmp_path, "Anna", "--role", "reader", "--login", "anna")[0] == 2
    assert run(*add, folder, "Eve", "--role", "king", "--login", "eve")[0] == 2


@pytest.mark.parametrize("listen", ["0.0.0.0:8480", "192.0.2.1:8480", ":8480", "console.example:8480"])
def test_console_is_not_reachable_from_elsewhere_without_a_proxy(folder: Path, listen: str) -> None:
    code, output = run("site", "console", folder, "--listen", listen)
    assert code == 2
    assert "--behind-proxy" in output


def test_a_proxy_needs_an_address_with_tls(folder: Path) -> None:
    code, output = run("site", "console", folder, "--behind-proxy")
    assert code == 2
    assert "https" in output


@pytest.mark.parametrize("kind", ["site", "federation"])
def test_an_address_with_tls_needs_a_proxy(folder: Path, tmp_path: Path, kind: str) -> None:
    shown = folder if kind == "site" else Workspace.new(tmp_path / "workspace", "anna").folder
    (shown / FILE).write_text('version = 1\naddress = "https://console.north.example"\n')
    code, output = run(kind, "console", shown)
    assert code == 2
    assert "add --behind-proxy" in output


@pytest.mark.parametrize(
    "text",
    [
        'version = 2\naddress = "https://a.example"',
        'version = 1\naddress = "http://a.example"',
        'version = 1\naddress = "https://a.example?x=1"',
        'version = 1\naddress = "https://user@a.example"',
        'version = 1\nadress = "https://a.example"',
        "version = 1\nidle_minutes = 0",
        "version = 1\nabsolute_hours = 1000",
        "version = 1\n" + PROVIDER.format("http://login.example"),
        'version = 1\n[provider]\nissuer = "https://a.example"\nclient_id = "x"',
        "version =",
    ],
)
def test_settings_that_are_wrong_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(StudyError):
        Settings.read(tmp_path, "127.0.0.1:8480")


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("version = 1\n" + PROVIDER.format("https://login.example"))
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(StudyError, match="chmod 600"):
        Settings.read(tmp_path, "127.0.0.1:8480")
    (tmp_path / FILE).chmod(0o600)
    settings = Settings.read(tmp_path, "127.0.0.1:8480")
    assert settings.address == "http://127.0.0.1:8480"
    assert settings.provider
    assert settings.provider.origin == "https://login.example"


def test_gunicorn_serves_the_console_and_stops(folder: Path) -> None:
    port = reserved_port()
    words = [sys.executable, "-m", "dpcausal", "site", "console", str(folder), "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:  # noqa: S603
        try:
            for _ in range(800):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/login", timeout=5) as answer:
                        page, headers = answer.read().decode(), answer.headers
                    break
                except OSError:
                    assert server.poll() is None
                    time.sleep(0.25)
            else:
                pytest.fail("the console does not answer")
        finally:
            os.kill(server.pid, signal.SIGTERM)
        assert server.wait(60) == 0
    assert "<h1>Log in</h1>" in page
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert (folder / "console.db").stat().st_mode & 0o777 == 0o600
