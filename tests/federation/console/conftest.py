"""A site with a console: two approvers, a reader and an operator with local accounts, and a study that waits."""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.security import generate_password_hash
from werkzeug.test import TestResponse

from dpcausal import Study
from dpcausal.federation.console import accounts
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.application import site_console
from dpcausal.federation.console.settings import KEY, Settings
from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.people import Person, add_person, set_console_key
from dpcausal.federation.site.site import Site
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import example_study, make_site_folder, record_state

SCHEMA = standard_schema()
ADDRESS = "http://127.0.0.1:8480"
COOKIE = Settings(address=ADDRESS).cookie
PASSWORD = "several words that do not belong"  # noqa: S105 (of these tests only)


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Browser:
    """A client that reads the token of forms as a browser does."""

    client: FlaskClient

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(path, base_url=ADDRESS, buffered=True, **options)

    def token(self, path: str = "/login") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        assert found, path
        return found[1]

    def post(self, path: str, form: dict[str, str] | None = None, *, at: str = "/people") -> TestResponse:
        """Send a form with the token on the page `at`. All forms of a session have the same, and this page is quick."""
        return self.client.post(path, base_url=ADDRESS, data={"csrf": self.token(at), **(form or {})})

    def login(self, login: str, password: str = PASSWORD) -> TestResponse:
        return self.post("/login", {"login": login, "password": password}, at="/login")

    def confirm(self, digest: str) -> TestResponse:
        return self.post(f"/confirm/{digest}", {"password": PASSWORD})

    def decide(self, digest: str, kind: str = "approve", why: str = "board", mapping: str = "") -> TestResponse:
        form = {"kind": kind, "why": why, "digest": digest, "mapping": mapping}
        return self.post(f"/studies/{digest}/decision", form)

    @property
    def cookie(self) -> str:
        cookie = self.client.get_cookie(COOKIE, "127.0.0.1")
        return cookie.value if cookie else ""


@pytest.fixture(scope="session", autouse=True)
def quick_hashes() -> Iterator[None]:
    """Hash passwords with few steps: with the real number of them each login takes a tenth of a second."""
    real, monkeypatch = generate_password_hash, pytest.MonkeyPatch()
    monkeypatch.setattr(accounts, "generate_password_hash", lambda text, method: real(text, method=f"{method}:256:8:1"))
    monkeypatch.setattr(accounts, "_NOBODY", real("nobody", method="scrypt:256:8:1"))
    yield
    monkeypatch.undo()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A requester and a site, to be copied for each test."""
    folder = tmp_path_factory.mktemp("console")
    requester = Key.make("anna", folder / "anna.key")
    make_site_folder(
        folder / "north",
        "north",
        synthetic_table(SCHEMA, 400),
        SCHEMA,
        {"anna": requester.public},
        epsilon_per_study=2.0,
        budget={"epsilon": 3.0},
        approvals=2,
    )
    set_console_key(folder / "north", Key.make("console", folder / "north" / KEY).public)
    for name, role in (("Dr. Adams", "approver"), ("Dr. Brown", "approver"), ("Rita", "reader"), ("Otto", "operator")):
        login = name.removeprefix("Dr. ").lower()
        add_person(folder / "north", Person(name, (role,), login=login))  # type: ignore[arg-type]
        Accounts(folder / "north").set_password(login, PASSWORD)
    record_state(folder / "north")
    return folder


@pytest.fixture
def requester(made: Path) -> Key:
    return Key.read("anna", made / "anna.key")


@pytest.fixture
def study() -> Study:
    return example_study(SCHEMA)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "north", tmp_path / "north"))


@pytest.fixture
def digest(folder: Path, study: Study) -> str:
    return Site(folder).receive(study.to_toml())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def new_browser(folder: Path, clock: Clock) -> Callable[[], Browser]:
    app = site_console(folder, Settings(address=ADDRESS), clock=clock)

    def make() -> Browser:
        return Browser(app.test_client())

    return make


@pytest.fixture
def browser(new_browser: Callable[[], Browser]) -> Browser:
    return new_browser()


def answer_study(folder: Path, study: Study, requester: Key) -> str:
    """Let the site answer a study's request, as it does when the request arrives."""
    return Site(folder).answer(requester.seal(Request(study=study.to_toml(), ask="releases").to_json()))
