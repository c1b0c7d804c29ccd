"""Attacks on the console, each with its result."""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from dpcausal import Study
from dpcausal.errors import StudyError
from dpcausal.federation.console.application import coordinator_console, site_console
from dpcausal.federation.console.security import local_path
from dpcausal.federation.console.settings import Settings
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.site.people import Person, add_person, remove_person
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.testing import standard_schema
from tests.federation.console.conftest import ADDRESS, COOKIE, PASSWORD, Browser, Clock
from tests.support.site_folders import confirm_settings

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def decisions(folder: Path) -> list[str]:
    return [entry.kind for entry in Site(folder).audit_log.entries() if entry.is_decision]


def test_a_form_without_the_token_of_the_session_changes_nothing(
    folder: Path, browser: Browser, new_browser: Callable[[], Browser], digest: str
) -> None:
    browser.login("adams")
    browser.confirm(digest)
    stolen = new_browser().token()  # of another session
    form = {"kind": "approve", "why": "", "mapping": "", "digest": digest}
    for token in ({}, {"csrf": ""}, {"csrf": stolen}, {"csrf": "é"}):
        answer = browser.client.post(f"/studies/{digest}/decision", base_url=ADDRESS, data=form | token)
        assert answer.status_code == 400
    assert browser.client.post("/logout", base_url=ADDRESS).status_code == 400
    assert decisions(folder) == []


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9999", "null"])
def test_a_form_from_another_origin_is_refused(folder: Path, browser: Browser, digest: str, origin: str) -> None:
    browser.login("adams")
    browser.confirm(digest)
    form = {"kind": "approve", "why": "", "mapping": "", "digest": digest, "csrf": browser.token("/people")}
    page = f"/studies/{digest}/decision"
    assert browser.client.post(page, base_url=ADDRESS, data=form, headers={"Origin": origin}).status_code == 400
    assert decisions(folder) == []
    assert browser.client.post(page, base_url=ADDRESS, data=form, headers={"Origin": ADDRESS}).status_code == 302
    assert decisions(folder) == ["approve"]


def test_no_page_changes_anything_by_its_address_alone(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    browser.confirm(digest)
    for path in (f"/studies/{digest}/decision?kind=approve&digest={digest}", "/logout", f"/confirm/{digest}"):
        assert browser.get(path).status_code == 405
    assert decisions(folder) == []


def test_a_planted_session_is_worth_nothing_after_the_login(
    browser: Browser, new_browser: Callable[[], Browser]
) -> None:
    attacker = new_browser()
    attacker.token()  # the attacker has an anonymous session, and plants its cookie
    planted = attacker.cookie
    assert planted
    browser.client.set_cookie(COOKIE, planted, domain="127.0.0.1")
    browser.login("adams")
    assert browser.cookie not in {"", planted}
    assert browser.get("/").status_code == 200
    assert attacker.get("/").headers["Location"].startswith("/login")


def test_a_token_that_the_console_did_not_make_is_not_taken_over(browser: Browser) -> None:
    browser.client.set_cookie(COOKIE, "chosen-by-somebody", domain="127.0.0.1")
    browser.token()
    assert browser.cookie not in {"", "chosen-by-somebody"}


def test_a_confirmation_gives_the_session_a_new_token(browser: Browser, digest: str) -> None:
    browser.login("adams")
    before = browser.cookie
    browser.confirm(digest)
    assert browser.cookie != before


def test_a_cookie_copied_before_the_logout_is_worth_nothing(
    browser: Browser, new_browser: Callable[[], Browser]
) -> None:
    browser.login("adams")
    thief = new_browser()
    thief.client.set_cookie(COOKIE, browser.cookie, domain="127.0.0.1")
    assert thief.get("/").status_code == 200
    assert browser.post("/logout").status_code == 302
    assert thief.get("/").status_code == 302


def test_the_file_of_sessions_holds_no_token(folder: Path, browser: Browser) -> None:
    browser.login("adams")
    assert browser.cookie.encode() not in (folder / "console.db").read_bytes()


def test_a_script_in_any_text_of_a_study_is_text(folder: Path, browser: Browser, study: Study) -> None:
    texts = (
        "name",
        "question",
        "requester",
        "eligibility",
        "time_zero",
        "by",
        "on",
        "source",
        "label",
        "other",
        "column",
    )
    scripts = {text: f"{SCRIPT}{text}" for text in (*texts, "comment")}
    schema, named = standard_schema(), {name: scripts[name] for name in texts[:5]}
    schema = replace(
        schema,
        treatment=replace(schema.treatment, labels=(scripts["label"], scripts["other"])),
        outcome=replace(schema.outcome, name=scripts["column"]),
    )
    bounds = {name: scripts[name] for name in ("by", "on", "source")}
    text = replace(study, schema=schema, bounds=bounds, **named).to_toml()  # type: ignore[arg-type]
    digest = Site(folder).receive(f"# {scripts['comment']}\n{text}")
    second = Site(folder).receive(f"{text}\n# {SCRIPT}\n")  # its page also shows the changes
    browser.login("adams")
    shown = [browser.get(path) for path in ("/", "/budget", f"/studies/{digest}", f"/studies/{second}")]
    assert all(page.status_code == 200 for page in shown)
    pages = "".join(page.text.replace("&#34;", "&quot;") for page in shown)
    assert [text for text, script in scripts.items() if str(escape(script)) not in pages] == []
    for page in shown:
        assert not re.search(r"<script|<img|onerror=(?!alert\(1\)&gt;)", page.text)


def test_a_script_in_people_reasons_and_logins_is_text(folder: Path, browser: Browser, digest: str) -> None:
    add_person(folder, Person(SCRIPT, ("reader",), login=f"{SCRIPT}x"))
    browser.login("adams")
    browser.confirm(digest)
    assert browser.decide(digest, "reject", SCRIPT).status_code == 302
    browser.post("/logout")
    browser.login(SCRIPT, "wrong")
    browser.login("otto")
    for path in ("/", "/people", "/log", f"/log?who={SCRIPT}&study={SCRIPT}&since={SCRIPT}", f"/studies/{digest}"):
        page = browser.get(path).text
        assert "<script" not in page, path
        assert "<img" not in page, path
    assert "&lt;script&gt;" in browser.get("/log").text


@pytest.mark.parametrize("hidden", ["\u2028", "\u2029", "\x85", "\u202e", "\u3164"])
def test_hidden_characters_show_no_false_line(folder: Path, browser: Browser, study: Study, hidden: str) -> None:
    text = f"# approve{hidden}epsilon = 0.1\n{study.to_toml()}"
    with pytest.raises(StudyError, match="invisible characters"):
        Site(folder).receive(text)
    Site(folder).inbox.store(text)  # as an earlier version of dpcausal did
    digest = Site(folder).receive(study.to_toml())
    browser.login("adams")
    page = browser.get(f"/studies/{digest}").text
    assert f'<span class="removed">-# approve⟨U+{ord(hidden):04X}⟩epsilon = 0.1</span>' in page
    assert hidden not in page
    assert f"- # approve⟨U+{ord(hidden):04X}⟩epsilon = 0.1" in Site(folder).review(digest).changes


@pytest.mark.parametrize(
    "path",
    [
        "/static/../settings.py",
        "/static/..%2f..%2fsettings.py",
        "/static/%2e%2e/application.py",
        "/static//etc/passwd",
        "/sent/..%2fsite.key",
        "/sent/..%2f..%2fanna.key",
        "/sent/..%2fpolicy.toml/message.json",
        "/sent/.hidden/message.json",
        "/studies/..%2f..%2fpolicy",
        "/log/..%2fsite.key",
        "/log/site.key",
    ],
)
def test_no_path_leads_out_of_the_pages(browser: Browser, folder: Path, path: str) -> None:
    (folder / "messages").mkdir()
    (folder / "messages" / ".hidden").write_text("{}")
    browser.login("otto")
    answer = browser.get(path)
    assert answer.status_code in {404, 308}
    assert (folder / "site.key").read_text().strip() not in answer.text


def test_a_prefix_of_a_digest_is_not_a_study(browser: Browser, digest: str) -> None:
    browser.login("adams")
    assert browser.get(f"/studies/{digest[:12]}").status_code == 404
    assert browser.get(f"/studies/{digest}").status_code == 200


@pytest.mark.parametrize("login", ["rita", "otto"])
def test_only_approvers_decide(folder: Path, browser: Browser, digest: str, login: str) -> None:
    browser.login(login)
    assert "Only people with the role approver decide" in browser.get(f"/studies/{digest}").text
    browser.confirm(digest)
    answer = browser.decide(digest)
    assert answer.status_code == 403
    assert "approver" in answer.text
    assert decisions(folder) == []


def test_only_operators_see_logins(browser: Browser, new_browser: Callable[[], Browser]) -> None:
    browser.login("adams")
    assert "Logins" not in browser.get("/people").text
    operator = new_browser()
    operator.login("otto")
    assert "Logins" in operator.get("/people").text


def test_strangers_see_no_page(browser: Browser, digest: str) -> None:
    for path in (
        "/",
        "/budget",
        "/sent",
        "/log",
        "/log/audit-log.csv",
        "/health",
        "/people",
        f"/studies/{digest}",
        "/no",
    ):
        answer = browser.get(path)
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/login")
    assert browser.post(f"/studies/{digest}/decision", at="/login").status_code == 302


def test_whoever_is_removed_from_the_people_is_out_at_once(folder: Path, browser: Browser) -> None:
    browser.login("adams")
    assert browser.get("/").status_code == 200
    remove_person(folder, "Dr. Adams")
    assert browser.get("/").status_code == 403
    assert browser.get("/").status_code == 302


def test_a_decision_needs_a_confirmation_for_this_very_study(
    folder: Path, browser: Browser, clock: Clock, study: Study, digest: str
) -> None:
    other = Site(folder).receive(replace(study, name="another").to_toml())
    browser.login("adams")
    assert browser.decide(digest).status_code == 403
    browser.confirm(other)
    assert browser.decide(digest).status_code == 403
    browser.confirm(digest)
    clock.now += 301
    assert browser.decide(digest).status_code == 403
    assert decisions(folder) == []
    browser.confirm(digest)
    assert browser.decide(digest).status_code == 302
    assert browser.decide(digest).status_code == 403  # each counts once
    assert decisions(folder) == ["approve"]


def test_a_confirmation_counts_once_also_for_forms_sent_at_once(
    folder: Path, browser: Browser, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.login("adams")
    browser.confirm(digest)
    form = {"kind": "approve", "why": "", "mapping": "", "digest": digest, "csrf": browser.token(f"/studies/{digest}")}
    second = browser.client.application.test_client()
    second.set_cookie(COOKIE, browser.cookie, domain="127.0.0.1")
    answers, decide = list[int](), SiteFolder.decide

    def decide_twice(*words: Any) -> None:
        """Send the form once more before the first answer is given."""
        if not answers:
            answers.append(0)
            answer = second.post(f"/studies/{digest}/decision", base_url=ADDRESS, data=form | {"kind": "reject"})
            answers[0] = answer.status_code
        decide(*words)

    monkeypatch.setattr(SiteFolder, "decide", decide_twice)
    form |= {"why": "board"}
    assert browser.client.post(f"/studies/{digest}/decision", base_url=ADDRESS, data=form).status_code == 302
    assert answers == [403]
    assert decisions(folder) == ["approve"]


def test_a_wrong_password_confirms_nothing(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    answer = browser.post(f"/confirm/{digest}", {"password": "wrong"})
    assert answer.status_code == 401
    assert browser.decide(digest).status_code == 403
    assert decisions(folder) == []


def test_the_digest_in_the_form_must_be_that_of_the_page(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    browser.confirm(digest)
    form = {"kind": "approve", "why": "", "digest": "0" * 64}
    assert browser.post(f"/studies/{digest}/decision", form).status_code == 400
    assert decisions(folder) == []


def test_nobody_signs_a_mapping_that_was_not_shown(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    browser.confirm(digest)
    shown = browser.get(f"/studies/{digest}").text
    assert '<input type="hidden" name="mapping" value="">' in shown
    policy = tomllib.loads((folder / FILE).read_text())
    (folder / FILE).write_text(tomli_w.dumps(policy | {"mapping": {"smoker": {"column": "smokes"}}}))
    confirm_settings(folder)
    refused = browser.decide(digest)
    assert refused.status_code == 400
    assert "is not the one that was shown" in refused.text
    assert decisions(folder) == []
    found = re.search(r'name="mapping" value="([0-9a-f]{64})"', browser.get(f"/studies/{digest}").text)
    assert found
    assert browser.decide(digest, mapping=found[1]).status_code == 302
    (entry,) = Site(folder).audit_log.decisions(digest)
    assert found[1] in entry.sealed


def test_one_person_is_not_two(folder: Path, browser: Browser, digest: str) -> None:
    browser.login("adams")
    for _ in range(2):
        browser.confirm(digest)
        browser.decide(digest)
    assert Site(folder).status(digest) == "undecided"


def test_requesters_do_not_approve_their_own_studies(folder: Path, browser: Browser, study: Study) -> None:
    digest = Site(folder).receive(replace(study, requester="DR.  adams").to_toml())
    browser.login("adams")
    browser.confirm(digest)
    assert browser.decide(digest).status_code == 409
    assert decisions(folder) == []


def test_no_approval_overrides_the_policy(folder: Path, browser: Browser, study: Study) -> None:
    digest = Site(folder).receive(replace(study, epsilon=2.5).to_toml())
    browser.login("adams")
    assert "epsilon is above 2" in browser.get(f"/studies/{digest}").text
    browser.confirm(digest)
    answer = browser.decide(digest)
    assert answer.status_code == 409
    assert "policy does not allow" in answer.text
    assert decisions(folder) == []


def test_guessing_passwords_is_stopped(folder: Path, browser: Browser, clock: Clock) -> None:
    answers = [browser.login("adams", f"guess number {number}").status_code for number in range(8)]
    assert answers == [401] * 5 + [429] * 3
    limited = browser.login("adams")
    assert limited.status_code == 429  # also with the right password
    assert limited.headers["Retry-After"] == "900"
    assert browser.login("brown").status_code == 302  # others are not locked out
    clock.now += 901
    assert browser.login("adams").status_code == 302
    lines = [json.loads(line) for line in (folder / "console_log.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines].count("failed login") == 5
    assert "guess number" not in (folder / "console_log.jsonl").read_text()


def test_guessing_many_accounts_from_one_address_is_stopped(folder: Path, browser: Browser) -> None:
    answers = [browser.login(f"account {number}", "guess").status_code for number in range(22)]
    assert answers == [401] * 20 + [429] * 2
    assert "account 3" not in (folder / "console_log.jsonl").read_text()  # it may be a password in the wrong field


def test_guessing_at_the_confirmation_is_stopped_too(browser: Browser, digest: str) -> None:
    browser.login("adams")
    page = f"/confirm/{digest}"
    answers = [browser.post(page, {"password": f"{number}"}).status_code for number in range(6)]
    assert answers == [401] * 5 + [429]


def test_the_log_of_failures_has_an_end_each_day(folder: Path, browser: Browser, clock: Clock) -> None:
    for _ in range(15):
        for number in range(10):
            browser.login(f"account {number}", "guess")
        clock.now += 901
    lines = (folder / "console_log.jsonl").read_text().splitlines()
    assert len(lines) == 101
    assert json.loads(lines[-1])["event"] == "more failed logins"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost", "127.0.0.1@evil.example", ""])
def test_another_host_is_refused(browser: Browser, host: str) -> None:
    answer = browser.client.get("/login", base_url=ADDRESS, headers={"Host": host})
    assert answer.status_code == 400
    assert "evil" not in answer.text


def test_a_large_form_is_refused(browser: Browser) -> None:
    token = browser.token()
    form = {"csrf": token, "login": "adams", "password": "x" * 30_000}
    assert browser.client.post("/login", base_url=ADDRESS, data=form).status_code == 413
    many = {"csrf": token} | {f"field{number}": "x" for number in range(50)}
    answer = browser.client.post("/login", base_url=ADDRESS, data=many, content_type="multipart/form-data")
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "evil.example",
        "/@evil.example",
        "/%0d%0aSet-Cookie:x",
        "",
    ],
)
def test_a_login_leads_to_no_other_site(browser: Browser, path: str) -> None:
    form = {"login": "adams", "password": PASSWORD, "next": path}
    answer = browser.post("/login", form, at="/login")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/"
    assert "Set-Cookie:x" not in str(answer.headers)


def test_a_login_leads_to_the_page_that_was_asked_for(browser: Browser, digest: str) -> None:
    assert browser.get(f"/studies/{digest}").headers["Location"] == f"/login?next=/studies/{digest}"
    form = {"login": "adams", "password": PASSWORD, "next": f"/studies/{digest}"}
    assert browser.post("/login", form, at="/login").headers["Location"] == f"/studies/{digest}"
    assert local_path("/budget") == "/budget"


def test_a_session_ends_when_it_is_not_used(browser: Browser, clock: Clock) -> None:
    browser.login("adams")
    clock.now += 14 * 60
    assert browser.get("/").status_code == 200
    clock.now += 16 * 60
    assert browser.get("/").status_code == 302


def test_a_session_ends_after_a_day_of_work(browser: Browser, clock: Clock, digest: str) -> None:
    browser.login("adams")
    for _ in range(7 * 6):
        clock.now += 10 * 60
        assert browser.get("/people").status_code == 200
    browser.confirm(digest)  # a new token is not a new session
    for _ in range(6):
        clock.now += 10 * 60
        browser.get("/people")
    clock.now += 60
    assert browser.get("/people").status_code == 302


def test_every_answer_has_the_headers(browser: Browser, digest: str) -> None:
    answers = [browser.get(path) for path in ("/login", "/", "/static/console.css", "/static/none")]
    browser.login("adams")
    answers += [browser.get(path) for path in ("/", f"/studies/{digest}", "/none", "/log/audit-log.csv")]
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "script-src" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "style=" not in answer.text
        assert "<script" not in answer.text


def test_consoles_on_one_host_do_not_replace_each_others_cookies(folder: Path, tmp_path: Path) -> None:
    workspace = Workspace.new(tmp_path / "workspace", "anna").folder
    made = (
        site_console(folder, Settings(address="http://127.0.0.1:8480")),
        site_console(folder, Settings(address="http://127.0.0.1:8482")),
        coordinator_console(workspace, Settings(address="http://127.0.0.1:8481")),
    )
    answers = [app.test_client().get("/login", base_url="http://127.0.0.1") for app in made]
    names = {answer.headers["Set-Cookie"].split("=")[0] for answer in answers}
    assert len(names) == len(made)  # browsers send and replace cookies without regard to ports


def test_cookies_are_guarded(folder: Path, browser: Browser) -> None:
    plain = browser.get("/login").headers["Set-Cookie"]
    assert "HttpOnly" in plain
    assert "SameSite=Lax" in plain
    settings = Settings(address="https://console.north.example")
    client = site_console(folder, settings, behind_proxy=True).test_client()
    answer = client.get("/login", base_url=settings.address, headers={"X-Forwarded-For": "192.0.2.1"})
    guarded = answer.headers["Set-Cookie"]
    assert guarded.startswith("__Host-dpcausal-")
    for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert part in guarded
    assert "Domain" not in guarded
    assert answer.headers["Strict-Transport-Security"]


def test_an_unexpected_error_shows_nothing(folder: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("aged forty-two in record 17")

    browser.login("adams")
    monkeypatch.setattr("dpcausal.federation.console.site_folder.SiteFolder.health", fail)
    answer = browser.get("/health")
    assert answer.status_code == 500
    assert "forty-two" not in answer.text
    assert "Traceback" not in answer.text
    log = (folder / "console_log.jsonl").read_text()
    assert "RuntimeError" in log
    assert "forty-two" not in log
