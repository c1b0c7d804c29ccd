import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import tomli_w

from dpcausal import Study
from dpcausal.errors import RefusedError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.application import coordinator_console
from dpcausal.federation.console.settings import Settings
from dpcausal.federation.coordinator.coordinator import Coordinator
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.roster import Member
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.heartbeat import Heartbeat
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import LocalTransport
from dpcausal.federation.site.people import Person, add_person
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.store import MailboxStore
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


def test_studies_show_how_many_sites_did_what(browser: Browser) -> None:
    page = browser.get("/").text
    another, scores = (counts(part) for part in page.split('<th scope="row">')[1:])
    assert scores == {"answered": 1, "silent": 1}
    assert another == {"undecided": 1, "silent": 1}
    assert "ε 1</td>" in page


def counts(page: str) -> dict[str, int]:
    """Return the numbers of sites in each state, as a page has them."""
    return {
        state: int(number.replace(",", "")) for number, state in re.findall(r"</span>([0-9,]+) ([a-z ]+)</span>", page)
    }


def test_effect_is_reported_from_stored_answers_and_nothing_is_sent(browser: Browser, workspace: Path) -> None:
    store = Requests(workspace / "requests.db")
    requests = {text: request for request, _, text, _ in store.asked()}
    before = [(request, store.attempts(request)) for request in requests.values()]
    shown = browser.get(f"/effects/{next(iter(requests.values()))}")
    assert '<div class="verdict"><strong>' in shown.text
    assert "confidence interval" in shown.text
    assert "all sites: " in shown.text  # the forest plot
    assert "1 of 2 sites answered. Without an answer: south." in shown.text
    assert counts(shown.text) == {"answered": 1, "silent": 1}
    assert shown.headers["Content-Security-Policy"].endswith("; style-src-attr 'unsafe-inline'")
    assert "style-src-attr" not in browser.get("/").headers["Content-Security-Policy"]
    report = browser.get(f"/effects/{next(iter(requests.values()))}/report.html")
    assert report.headers["Content-Disposition"].startswith("attachment")
    assert "<h2>Appendix</h2>" in report.text
    refused = browser.get(f"/effects/{list(requests.values())[1]}").text
    assert "No site has answered yet." in refused
    assert "<script" not in refused
    assert [(request, store.attempts(request)) for request in requests.values()] == before
    assert browser.get("/effects/none").status_code == 404
    roster = workspace / "roster.toml"
    roster.write_text(roster.read_text().replace("units = 400", "units = 401"))  # so that the answer counts no more
    assert '<div class="verdict">' not in browser.get(f"/effects/{next(iter(requests.values()))}").text


def test_pages_of_many_sites_are_short_and_filtered(browser: Browser, workspace: Path) -> None:
    Workspace(workspace).admit_all({f"hospital-{place}": Member(f"{place:064x}") for place in range(1, 1_000)})
    request = Requests(workspace / "requests.db").asked()[0][0]
    for path, states in (("/", {}), (f"/effects/{request}", {"state": "silent"}), ("/sites", {"state": "never"})):
        page = browser.get(path).text
        assert len(page) < 60_000, path
        if states:
            assert page.count('<tr><th scope="row">') == 100
            assert "Part 1 of 11" in page
            assert "hospital-77<" not in page
            found = browser.get(path, query_string={**states, "site": "HOSPITAL-77"}).text
            assert found.count('<tr><th scope="row">') == 11
            assert "hospital-779<" in found
            assert "No such site" in browser.get(path, query_string={"state": "revoked"}).text
    assert counts(browser.get("/").text.split("scores")[1]) == {"answered": 1, "silent": 1_000}


def test_sites_are_heard_by_the_server_the_mailbox_and_messages(browser: Browser, workspace: Path) -> None:
    assert states_of_sites(browser) == {"north": "within-an-hour", "south": "never"}  # by its message
    now = time.time()
    (workspace / "nvflare" / "server").mkdir(parents=True)
    Heartbeat(now, sites={"south": now - 5_000}).write(workspace / "nvflare" / "server")
    assert states_of_sites(browser)["south"] == "within-a-day"
    Heartbeat(now, sites={"south": now - 800_000}).write(workspace / "nvflare" / "server")
    assert states_of_sites(browser)["south"] == "longer-ago"
    mailbox = workspace / "mailbox"
    mailbox.mkdir()
    settings = {"version": 1, "address": "https://mail.example", "database": "sqlite:///m.db", "requesters": {}}
    settings["requesters"] = {"anna": "ab" * 32}
    (mailbox / "mailbox.toml").write_text(tomli_w.dumps(settings))
    assert states_of_sites(browser)["south"] == "longer-ago"
    assert not (mailbox / "m.db").exists()
    (mailbox / "m.db").write_text("damaged")
    assert 'role="alert"' in browser.get("/sites").text
    (mailbox / "m.db").unlink()
    store = MailboxStore(f"sqlite:///{mailbox}/m.db", 1)
    store.create({"anna": "ab" * 32})
    assert store.invite("anna", "south", "pass", int(now) + 60)
    assert store.join("south", "pass", "cd" * 32, "")
    assert store.admit("site", "south", int(now * 1e6))[0] == "admitted"
    assert states_of_sites(browser)["south"] == "within-an-hour"


def states_of_sites(browser: Browser) -> dict[str, str]:
    """Return when each site was last heard from, as the page of sites says."""
    found = re.findall(
        r'<th scope="row">(\w+)</th><td data-label="last heard[^"]*"><span class="badge ([a-z-]+)"',
        browser.get("/sites").text,
    )
    return dict(found)


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
