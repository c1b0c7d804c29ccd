import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dpcausal import Study
from dpcausal.errors import RefusedError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.application import coordinator_console
from dpcausal.federation.console.settings import Settings
from dpcausal.federation.coordinator.coordinator import Coordinator
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import LocalTransport
from dpcausal.federation.site.people import Person, add_person
from dpcausal.federation.site.site import Site
from tests.federation.console.conftest import ADDRESS, PASSWORD, Browser
from tests.support.site_folders import approve_study


@pytest.fixture
def workspace(tmp_path: Path, made: Path, folder: Path, study: Study) -> Path:
    """A coordinator that asked two studies: north answered one, south none."""
    workspace = Workspace.new(tmp_path / "workspace", "bertha")
    (workspace.folder / "anna.key").write_text((made / "anna.key").read_text())
    north = Site(folder)
    workspace.admit("north", north.public_key, 400)
    workspace.admit("south", Key.make("south", tmp_path / "south.key").public)
    for name in ("first", "second"):
        approve_study(folder, study, by=f"the {name} person")
    transport = LocalTransport({"north": north.answer})
    key = workspace.key("anna")
    for asked in (study, replace(study, name="another", question="<script>alert(1)</script>")):
        coordinator = Coordinator(
            asked.to_toml(), workspace.roster, key, transport, store=workspace.store, timeout=0, attempts=1
        )
        if asked == study:
            coordinator.run()
        else:
            with pytest.raises(RefusedError):
                coordinator.run()
    add_person(workspace.folder, Person("Anna", ("reader",), login="anna"))
    Accounts(workspace.folder).set_password("anna", PASSWORD)
    return workspace.folder


@pytest.fixture
def browser(workspace: Path) -> Browser:
    browser = Browser(coordinator_console(workspace, Settings(address=ADDRESS)).test_client())
    browser.login("anna")
    return browser


def test_matrix_shows_what_each_site_did(browser: Browser) -> None:
    page = browser.get("/").text
    another, scores = page.split('<th scope="row">')[1:]
    assert "scores" in scores
    assert "badge answered" in scores
    assert "badge silent" in scores
    assert "1 of 2" in scores
    assert "badge undecided" in another
    assert "0 of 2" in another


def test_effect_is_computed_from_stored_answers_and_nothing_is_sent(
    browser: Browser, workspace: Path, study: Study
) -> None:
    store = Requests(workspace / "requests.db")
    requests = {text: request for request, _, text, _ in store.asked()}
    before = [(request, store.attempts(request)) for request in requests.values()]
    page = browser.get(f"/effects/{next(iter(requests.values()))}").text
    assert "95 % interval" in page
    assert "south: did not answer" in page
    refused = browser.get(f"/effects/{list(requests.values())[1]}").text
    assert "Answers of at least 1 of 2 sites" in refused
    assert "<script" not in refused
    assert [(request, store.attempts(request)) for request in requests.values()] == before
    assert browser.get("/effects/none").status_code == 404


def test_roster_shows_the_days_of_certificates(browser: Browser, workspace: Path) -> None:
    records = workspace / "nvflare" / ".nvflare" / "cert_approves"
    records.mkdir(parents=True)
    for number, (name, days) in enumerate({"north": 20, "localhost": 300}.items()):
        until = (datetime.now(UTC) + timedelta(days=days, hours=1)).isoformat()
        approval = {"name": name, "certificate": {"valid_until": until}}
        (records / f"{number}.json").write_text(json.dumps({"approval": approval}))
    page = browser.get("/sites").text
    assert "badge attention" in page
    assert "20 days" in page
    assert "300 days" in page
    assert "none: by mailbox or by files" in page  # south's


def test_nobody_decides_at_the_coordinator(browser: Browser) -> None:
    assert browser.post(f"/confirm/{'0' * 64}", {"password": PASSWORD}).status_code == 404
    assert browser.get("/people").status_code == 200
    assert "Anna" in browser.get("/people").text


def test_an_empty_workspace_has_pages(tmp_path: Path) -> None:
    folder = Workspace.new(tmp_path / "empty", "anna").folder
    add_person(folder, Person("Anna", ("reader",), login="anna"))
    Accounts(folder).set_password("anna", PASSWORD)
    browser = Browser(coordinator_console(folder, Settings(address=ADDRESS)).test_client())
    browser.login("anna")
    assert "No study was sent" in browser.get("/").text
    assert "The roster is empty" in browser.get("/sites").text
