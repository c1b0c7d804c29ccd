import html
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcausal import Study, Vault
from dpcausal.federation.console.settings import KEY
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.people import remove_person
from dpcausal.federation.site.site import Site
from tests.federation.console.conftest import Browser, answer_study

PAGES = ("/", "/budget", "/sent", "/log", "/health", "/people")


@pytest.fixture
def approved(new_browser: Callable[[], Browser], digest: str) -> str:
    for login in ("adams", "brown"):
        browser = new_browser()
        browser.login(login)
        browser.confirm(digest)
        assert browser.decide(digest).status_code == 302
    return digest


def test_two_people_approve_and_the_site_answers(
    folder: Path, approved: str, study: Study, requester: Key, browser: Browser
) -> None:
    browser.login("rita")
    budget = browser.get("/budget").text
    assert 'id="spent">ε 0<' in budget
    assert 'id="committed">ε 1<' in budget
    assert "Nothing left this site yet" in browser.get("/sent").text
    assert Site(folder).status(approved) == "approved"
    sealed = json.loads(answer_study(folder, study, requester))["body"]
    assert json.loads(sealed)["code"] == "answered"
    budget = browser.get("/budget").text
    assert 'id="spent">ε 1<' in budget
    assert 'id="committed">ε 0<' in budget
    assert "anna" in budget
    assert 'aria-label="Debits over time: epsilon 1 of 3"' in budget
    assert 'aria-label="Responses by month: 1 answered (filled), 0 not"' in budget
    (message,) = (folder / "messages").iterdir()
    assert message.name[:12] in browser.get("/sent").text
    page = browser.get(f"/sent/{message.name}").text
    assert "arm_moments" in page
    assert "ledger entry" in page
    download = browser.get(f"/sent/{message.name}/message.json")
    assert download.get_json() == json.loads(sealed)
    assert "attachment" in download.headers["Content-Disposition"]


def test_no_page_opens_the_table(  # noqa: PLR0917 (fixtures)
    folder: Path,
    approved: str,
    study: Study,
    requester: Key,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_study(folder, study, requester)
    (folder / "table.parquet").unlink()

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a page opened the table")

    monkeypatch.setattr(Vault, "__init__", refuse)
    (message,) = (folder / "messages").iterdir()
    for login in ("adams", "otto"):
        browser.login(login)
        for path in (*PAGES, f"/studies/{approved}", f"/sent/{message.name}", "/log/audit-log.csv"):
            assert browser.get(path).status_code == 200, path
        browser.post("/logout")
    second = Site(folder).receive(study.to_toml() + "# second version\n")
    browser.login("adams")
    browser.confirm(second)
    assert browser.decide(second).status_code == 302


def test_waiting_shows_what_a_custodian_asks_first(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    page = browser.get("/").text
    for words in ("scores", "Does treatment raise the score?", "anna", "ε 1", "allows it", "0 of 2", digest):
        assert words in page
    assert "<dd>today<br>" in page
    assert "ε 3 of the budget is left" in page
    assert "Read and decide" in page
    week = time.time() - 7 * 86_400
    os.utime(folder / "studies" / f"{digest}.toml", (week, week))
    assert "<dd>7 days ago<br>" in browser.get("/").text
    browser.post("/logout")
    browser.login("rita")
    assert "Read and decide" not in browser.get("/").text


def test_study_shows_review_text_changes_message_and_budget(
    folder: Path, browser: Browser, study: Study, digest: str
) -> None:
    newer = Site(folder).receive("# ask the board\n" + study.to_toml().replace("epsilon = 1.0", "epsilon = 1.5"))
    browser.login("adams")
    page = browser.get(f"/studies/{newer}").text
    assert f"<code>{newer}</code>" in page
    assert '<span class="comment"># ask the board</span>' in page
    assert '<span class="added">+epsilon = 1.5</span>' in page
    assert '<span class="removed">-epsilon = 1.0</span>' in page
    assert "Changes since" not in browser.get(f"/studies/{digest}").text
    assert "arm_moments" in page  # the numbers that would leave, by name
    assert "laplace noise, scale" in page
    assert '"Of epsilon 3: 0 spent, 0 committed to other studies, this study 1.5, other pending studies 1"' in page
    assert "<dt>left after</dt><dd>ε 1.5</dd>" in page
    assert "with laplace noise of scale" in page
    assert "A <em>deficit</em> is the sum" in page
    text = page.split('<pre class="text">')[1].split("</pre>")[0]
    shown = re.sub("<[^>]*>", "", text)
    assert html.unescape(shown).rstrip("\n") == Site(folder).inbox.text(newer).rstrip("\n")  # whole, as it is signed


def test_study_begins_in_plain_words_and_names_what_it_assumes(
    folder: Path, browser: Browser, study: Study, digest: str
) -> None:
    browser.login("adams")
    page = browser.get(f"/studies/{digest}").text
    assert page.index("who asks") < page.index("for how long") < page.index("The text that is signed")
    assert "Epsilon 1, 33% of the epsilon 3 that all studies of this table may spend together" in page
    assert "(from a table of 10,000 units)" in page
    assert "<code>dpcausal site review</code> at the command line shows the exact list" in page


def test_the_same_question_is_free(folder: Path, approved: str, study: Study, requester: Key, browser: Browser) -> None:
    answer_study(folder, study, requester)
    again = Site(folder).receive(study.to_toml() + "# asked again\n")
    browser.login("adams")
    assert "free: answered before" in browser.get(f"/studies/{again}").text
    assert "free: answered before" in browser.get("/budget").text
    assert "free: answered before" in browser.get("/").text


def test_a_lost_ledger_is_told(folder: Path, approved: str, study: Study, requester: Key, browser: Browser) -> None:
    answer_study(folder, study, requester)
    (folder / "ledger.db").unlink()
    browser.login("otto")
    for path in ("/budget", "/health", f"/studies/{approved}"):
        page = browser.get(path)
        assert page.status_code == 200
        assert "no file" in page.text


def test_a_broken_audit_log_is_told(folder: Path, approved: str, browser: Browser) -> None:
    log = folder / "audit_log.jsonl"
    log.write_text(log.read_text().replace('"what": "board"', '"what": "bored"'))
    browser.login("otto")
    assert browser.get("/log").status_code == 409
    health = browser.get("/health")
    assert health.status_code == 200
    assert "badge broken" in health.text


def test_a_changed_study_is_told_and_the_others_are_shown(
    folder: Path, browser: Browser, study: Study, digest: str
) -> None:
    changed = Site(folder).receive(study.to_toml() + "# other\n")
    file = folder / "studies" / f"{changed}.toml"
    file.write_text(file.read_text().replace("epsilon = 1.0", "epsilon = 0.1"))
    browser.login("adams")
    page = browser.get("/").text
    assert "1 file was changed" in page
    assert changed in page
    assert digest in page
    assert browser.get(f"/studies/{changed}").status_code == 404


def test_audit_log_is_filtered_and_exported(folder: Path, approved: str, browser: Browser) -> None:
    browser.login("rita")
    page = browser.get("/log?kind=approve&who=BROWN").text
    assert "Dr. Brown" in page
    assert "Dr. Adams" not in page
    exported = browser.get("/log/audit-log.jsonl").text.splitlines()
    assert [json.loads(line)["who"] for line in exported] == ["Dr. Adams", "Dr. Brown"]
    assert browser.get("/log/audit-log.csv").text.count("\n") == 3
    assert browser.get("/log?since=2999-01-01").text.count("<tr>") == 2
    assert browser.get("/log?page=x").status_code == 200


def test_a_rejection_needs_a_reason_and_stops_the_study(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    browser.confirm(digest)
    assert browser.decide(digest, "reject", "").status_code == 400
    assert browser.decide(digest, "reject", "outside the protocol").status_code == 302
    assert Site(folder).status(digest) == "rejected"
    assert "outside the protocol" in browser.get(f"/studies/{digest}").text


def test_health_and_people(browser: Browser, digest: str) -> None:
    browser.login("otto")
    health = browser.get("/health").text
    for words in ("whole, with all receipts", "1 of 1 studies wait", "GB free", "protocol", "backup", "in no network"):
        assert words in health
    people = browser.get("/people").text
    for words in ("Dr. Adams", "approver", "2 approvals by different people"):
        assert words in people


def test_an_approval_of_somebody_who_left_is_not_counted(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    browser.confirm(digest)
    browser.decide(digest)
    browser.post("/logout")
    browser.login("brown")
    assert "1 of 2" in browser.get("/").text
    remove_person(folder, "Dr. Adams")
    assert "0 of 2" in browser.get("/").text


def test_without_a_console_key_nobody_decides(folder: Path, browser: Browser, digest: str) -> None:
    (folder / KEY).unlink()
    browser.login("adams")
    browser.confirm(digest)
    answer = browser.decide(digest)
    assert answer.status_code == 409
    assert "create-console-key" in answer.text
    assert Site(folder).audit_log.decisions(digest) == ()
