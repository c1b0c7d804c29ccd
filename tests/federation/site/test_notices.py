"""Events of a site reach people by e-mail and programs by signed webhooks, each once, over real connections."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner, Result

from checks.documents import ROOT, blocks
from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.federation.operation import channels, health, notices
from dpcausal.federation.operation.channels import Mail, NotifySettings
from dpcausal.federation.operation.heartbeat import Heartbeat, hold_lock
from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site import notices as site_notices
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.summary import in_short
from dpcausal.federation.transports.mailbox.settings import Mailbox
from tests.support.receivers import PASSWORD, MailServer, WebServer, mail_server, web_server
from tests.support.site_folders import approve_study, record_state, signed

SECRET = f"whsec_{base64.b64encode(b'k' * 32).decode()}"
SENDER, RECIPIENT = "dpcausal@north.example", "adams@north.example"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


@pytest.fixture
def notified(folder: Path, mail: MailServer, web: WebServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site that tells of events by both, and has told that it has no backup."""
    monkeypatch.setenv("NORTH_WEBHOOK", SECRET)
    monkeypatch.setattr(notices, "_NEXT_CALL", 0.0)
    by_mail = {"host": "127.0.0.1", "port": mail.port, "tls": "none", "sender": SENDER, "to": [RECIPIENT]}
    by_web = {"address": f"http://127.0.0.1:{web.port}/dpcausal", "secret_from": "env:NORTH_WEBHOOK"}
    write(folder, mail=[by_mail], webhook=[by_web])
    assert notify(folder).output == "Sent 2 messages.\n"
    assert titles(mail) == ["backup: attention"]
    web.calls.clear()
    return folder


def write(folder: Path, **notify: list[dict[str, Any]]) -> None:
    document = {"version": 1, "address": "https://console.north.example", "notify": notify}
    (folder / "console.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    record_state(folder)


def notify(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["site", "notify", str(folder), *words])


def titles(mail: MailServer) -> list[str]:
    """Return the subjects of all mails since the last call."""
    found = [str(each["Subject"]).removeprefix("[dpcausal site north] ") for each in mail.mails]
    mail.mails.clear()
    return found


def text(mail: MailServer) -> str:
    return "\n".join(each.get_content() for each in mail.mails)


def answer(folder: Path, requester: Key, study: Study) -> None:
    Site(folder).answer(requester.seal(Request(study=study.to_toml(), ask="releases").to_json()))


def on_a_later_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_notices, "today", lambda: "2999-01-01")


def test_study_that_waits_is_told_once_in_plain_words(
    notified: Path, mail: MailServer, web: WebServer, study: Study
) -> None:
    digest = Site(notified).receive(study.to_toml())
    assert notify(notified).output == "Sent 2 messages.\n"
    assert notify(notified).output == "Sent 0 messages.\n"
    (sent,), ((_, body),) = mail.mails, web.calls
    assert (sent["From"], sent["To"], sent["Auto-Submitted"]) == (SENDER, RECIPIENT, "auto-generated")
    for words in (
        "who asks: anna, named in this site's policy",
        "what: Does treatment raise the score?",
        "about whom: The study reads the columns",
        "what it costs: At most epsilon 1, delta 0, of a budget of epsilon 3.",
        f"https://console.north.example/studies/{digest}",
    ):
        assert words in sent.get_content()
    told = json.loads(body)
    assert told["type"] == "dpcausal.waiting"
    assert told["data"]["text"] in sent.get_content().replace("\r\n", "\n")
    assert told["data"]["study"] == digest


def test_decisions_are_told_at_once_and_debits_on_a_later_day(
    notified: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve_study(notified, study)
    answer(notified, requester, study)
    assert notify(notified).exit_code == 0
    assert titles(mail) == ["a person approved: scores"]
    assert notify(notified).exit_code == 0
    assert titles(mail) == []
    on_a_later_day(monkeypatch)
    assert notify(notified).exit_code == 0
    (sent,) = mail.mails
    assert "debited epsilon 1, delta 0 for the study 'scores'" in sent.get_content()
    assert notify(notified).output == "Sent 0 messages.\n"
    assert len(titles(mail)) == 1
    refused = replace(study, name="another")
    site = Site(notified)
    site.decide(signed(notified, site.receive(refused.to_toml()), "reject", why="too broad"))
    assert notify(notified).exit_code == 0
    assert "refused the study 'another', and wrote: too broad." in text(mail)


def test_unanswered_request_is_told_on_a_later_day_without_its_code(
    notified: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve_study(notified, study)
    policy = notified / "policy.toml"
    policy.write_text(policy.read_text().replace("minimum_units = 100", "minimum_units = 100000"))
    record_state(notified)
    for _ in range(3):
        answer(notified, requester, study)
    notify(notified)
    assert titles(mail) == ["a person approved: scores"]
    on_a_later_day(monkeypatch)
    notify(notified)
    assert "was not answered on" in text(mail)
    assert "units" not in text(mail)
    assert titles(mail) == ["not answered: scores"]


def numbers_told(folder: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: Any) -> list[str]:
    """Answer a study, let another one wait, and return what of the answer, or of what is left, was told later."""
    approve_study(folder, study)
    answer(folder, requester, study)
    on_a_later_day(monkeypatch)
    Site(folder).receive(replace(study, name="next").to_toml())
    notify(folder)
    assert len(mail.mails) == 3
    (message,) = (folder / "messages").glob("[0-9a-f]*")
    answered = json.loads(message.read_text())
    assert answered["n"] == 400
    numbers = [value for release in answered["answer"]["releases"] for value in release["values"]]
    told = text(mail).replace(":", " ").split()
    return [str(each) for each in (answered["n"], "left", *numbers) if str(each) in told]


def test_nothing_that_a_table_decides_is_in_a_message(
    notified: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert numbers_told(notified, mail, requester, study, monkeypatch) == []


def test_mutant_that_tells_the_number_of_units_is_noticed(
    notified: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = in_short
    monkeypatch.setattr(site_notices, "in_short", lambda *given, **named: right(*given, **{**named, "n": 400}))
    assert numbers_told(notified, mail, requester, study, monkeypatch) == ["400"]


def test_mutant_that_tells_what_is_left_is_noticed(
    notified: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_notices, "_TOLD", (*site_notices._TOLD, "what is left"))
    right = in_short
    ledger = Site(notified).ledger()
    monkeypatch.setattr(site_notices, "in_short", lambda *given, **named: right(*given, **{**named, "ledger": ledger}))
    assert "left" in numbers_told(notified, mail, requester, study, monkeypatch)


def test_stopped_poller_is_told_and_that_it_runs_again(notified: Path, mail: MailServer) -> None:
    place = notified / "mailbox"
    place.mkdir()
    (place / "connection.toml").write_text('address = "https://localhost"')
    Heartbeat(time.time() - 900, time.time(), every=30.0).write(place)
    held = hold_lock(place)
    notify(notified)
    assert titles(mail) == []
    os.close(held)
    Heartbeat(time.time() - 900, time.time() - 800, every=30.0).write(place)
    for told in (["the service has stopped (polling: broken)"], []):
        notify(notified)
        assert titles(mail) == told
    held = hold_lock(place)
    notify(notified)
    assert titles(mail) == ["over: the service has stopped (polling: broken)"]
    os.close(held)
    notify(notified)
    assert len(titles(mail)) == 1


def test_lost_contact_is_told_after_a_day_because_a_poller_has_none_while_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=1_000_000.0)
    monkeypatch.setattr(notices, "time", SimpleNamespace(time=lambda: clock.now))
    observed = notices.Observed()
    check = health.Check("mailbox", health.ATTENTION, "last contact …")
    now = dict(notices.conditions_of([check], "look"))
    for hours, told in ((0, 0), (23, 0), (24, 1), (25, 0)):
        clock.now = 1_000_000.0 + hours * 3600
        assert len(list(observed.begun(now))) == told


@pytest.mark.parametrize(("days", "told"), [(40, []), (29, ["within 30"]), (6, ["within 7"]), (-2, ["is not valid"])])
def test_end_of_a_certificate_is_told(days: int, told: list[str]) -> None:
    level = health.BROKEN if days < 0 else health.ATTENTION if days < health.DAYS_LEFT else health.HEALTHY
    now = dict(notices.conditions_of([health.Check("certificate", level, f"{days} days left", days)], "look"))
    found = list(notices.Observed().begun(now))
    assert [word in each.title for each, word in zip(found, told, strict=True)] == [True] * len(told)


def test_an_end_that_comes_nearer_is_told_again() -> None:
    observed, found = notices.Observed(), list[str]()
    for days in (40, 29, 20, 6, 5, 200, 29):
        level = health.ATTENTION if days < health.DAYS_LEFT else health.HEALTHY
        checks = [health.Check("certificate", level, "", days)]
        found += [each.title for each in observed.begun(dict(notices.conditions_of(checks, "look")))]
    within = [f"a certificate ends within {days} days" for days in (30, 7)]
    assert found == [*within, f"over: {within[1]}", within[0]]


def test_end_of_approvals_and_of_the_budget_is_told(
    notified: Path, mail: MailServer, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = notified / "policy.toml"
    policy.write_text(f"approval_days = 31\n{policy.read_text()}")
    record_state(notified)
    approve_study(notified, replace(study, name="slow"))
    for days, told in ((31, "a person approved: slow"), (29, "an approval ends: slow"), (5, "an approval ends: slow")):
        monkeypatch.setattr(site_notices, "_days_left", lambda *_, days=days: days)
        notify(notified)
        assert titles(mail) == [told]
    for name in ("first", "second"):
        large = replace(study, name=name, epsilon=1.4 if name == "first" else 1.3)
        approve_study(notified, large)
        answer(notified, requester, large)
    notify(notified)
    assert not any("budget" in title for title in titles(mail))
    on_a_later_day(monkeypatch)
    notify(notified)
    assert "less than 25% of the budget left" in titles(mail)


def test_channel_gets_the_events_that_it_asks_for(
    notified: Path, mail: MailServer, web: WebServer, study: Study
) -> None:
    address = f"http://127.0.0.1:{web.port}/dpcausal"
    own = {"address": address, "secret_from": "env:NORTH_WEBHOOK", "events": ["failure"]}
    by_mail = {"host": "localhost", "port": mail.port, "tls": "none", "sender": SENDER, "to": [RECIPIENT]}
    write(notified, mail=[{**by_mail, "events": ["waiting", "decision"]}], webhook=[own])
    Site(notified).receive(study.to_toml())
    assert notify(notified).output == "Sent 1 message.\n"
    assert (len(mail.mails), len(web.calls)) == (1, 0)
    assert notify(notified, "--test").output == "Sent 2 messages.\n"


def test_many_events_at_once_are_few_messages(
    notified: Path, mail: MailServer, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "_MOST", 3)
    site = Site(notified)
    for number in range(5):
        site.receive(replace(study, name=f"study {number}").to_toml())
    notify(notified)
    assert titles(mail) == ["anna asks: study 0", "anna asks: study 1", "3 more events"]
    assert notify(notified).output == "Sent 0 messages.\n"


def test_dead_receiver_gets_it_later_and_delays_nobody_else(
    notified: Path, mail: MailServer, web: WebServer, study: Study
) -> None:
    web.status = 503
    Site(notified).receive(study.to_toml())
    done = notify(notified)
    assert (done.exit_code, "Sent 1 message." in done.output) == (1, True)
    assert "Not sent, and tried again by the next call: webhook to http://127.0.0.1" in done.output
    assert notify(notified).exit_code == 1
    web.status = 200
    assert (notify(notified).output, len(mail.mails)) == ("Sent 1 message.\n", 1)
    assert len({headers["webhook-id"] for headers, _ in web.calls}) == 1


@pytest.mark.parametrize("status", [302, 307])
def test_webhook_goes_nowhere_else(notified: Path, web: WebServer, study: Study, status: int) -> None:
    web.status = status
    Site(notified).receive(study.to_toml())
    assert notify(notified).exit_code == 1
    assert len(web.calls) == 1


def test_message_that_is_refused_does_not_stop_the_others(notified: Path, mail: MailServer, study: Study) -> None:
    site = Site(notified)
    site.receive(study.to_toml())
    mail.refused = "554 no"
    assert notify(notified).exit_code == 1
    site.receive(replace(study, name="later").to_toml())
    mail.refused = ""
    notify(notified)
    assert titles(mail) == ["anna asks: later", "anna asks: scores"]


def test_receiver_that_is_silent_or_slow_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_LONGEST", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        slow = Mail(host="127.0.0.1", port=port, tls="none", sender=SENDER, to=[RECIPIENT])
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            slow.send({"id": "msg_1", "about": "", "title": "", "text": "", "link": "", "kind": "test"})
        assert time.monotonic() - began < 5
    monkeypatch.setattr(channels, "_LONGEST", 20.0)
    with pytest.raises(ConnectionRefusedError):
        slow.send({"id": "msg_1", "about": "", "title": "", "text": "", "link": "", "kind": "test"})


def test_killed_after_sending_it_sends_again_under_the_same_id(notified: Path, web: WebServer, study: Study) -> None:
    Site(notified).receive(study.to_toml())
    document = notified / "console.toml"
    settings = NotifySettings.read(notified)
    write(notified, webhook=[{"address": settings.channels[1].address, "secret_from": "env:NORTH_WEBHOOK"}])  # type: ignore[attr-defined]
    command = """
import os, signal, sys
from pathlib import Path
from dpcausal.cli import app
from dpcausal.federation.operation.channels import Webhook
sent = Webhook.send
Webhook.send = lambda *given: (sent(*given), os.kill(os.getpid(), signal.SIGKILL))
app(["site", "notify", sys.argv[1]])
"""
    killed = subprocess.run([sys.executable, "-c", command, str(notified)], check=False, timeout=60)  # noqa: S603
    assert (killed.returncode, len(web.calls), document.exists()) == (-signal.SIGKILL, 1, True)
    assert notify(notified).output == "Sent 1 message.\n"
    (first, body), (again, same) = web.calls
    assert (first["webhook-id"], body) == (again["webhook-id"], same)


def documented() -> Callable[..., bool]:
    """Return the function that the page on operation gives to receivers."""
    page = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
    (snippet,) = [each.body for each in blocks(page) if each.language == "python" and "def is_genuine" in each.body]
    names: dict[str, Any] = {}
    exec(snippet, names)  # noqa: S102
    found: Callable[..., bool] = names["is_genuine"]
    return found


def test_documented_verification_finds_tampering_and_replay(notified: Path, web: WebServer, study: Study) -> None:
    Site(notified).receive(study.to_toml())
    notify(notified)
    (headers, body) = web.calls[0]
    is_genuine = documented()
    other = f"whsec_{base64.b64encode(b'x' * 32).decode()}"
    assert is_genuine(SECRET, headers, body, set())
    assert not is_genuine(SECRET, headers, body.replace(b"anna", b"otto"), set())
    assert not is_genuine(other, headers, body, set())
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        assert not is_genuine(SECRET, headers | {name: headers[name][:-1]}, body, set())
    seen: set[str] = set()
    assert is_genuine(SECRET, headers, body, seen)
    assert not is_genuine(SECRET, headers, body, seen)
    old = str(int(time.time()) - 600)
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed_then = channels.signature(key, headers["webhook-id"], old, body.decode())
    then = headers | {"webhook-timestamp": old, "webhook-signature": signed_then}
    assert not is_genuine(SECRET, then, body, set())


def test_mail_goes_through_starttls_and_a_login(
    folder: Path, tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Mailbox.create(tmp_path / "tls", "https://localhost:8443", "sqlite:///mailbox.db", {}, 10)
    certificate = tmp_path / "both.pem"
    certificate.write_bytes(b"".join((made.folder / name).read_bytes() for name in ("server.pem", "server.key")))
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    password.chmod(0o600)
    Site(folder).receive(study.to_toml())
    with mail_server(certificate) as server:
        by_mail = {"host": "localhost", "port": server.port, "sender": SENDER, "to": [RECIPIENT]}
        write(folder, mail=[by_mail | {"user": "north", "password_from": f"file:{password}"}])
        done = notify(folder)
        assert "Sent 0 messages." in done.output
        assert "SSLCertVerificationError" in done.output  # an authority that nobody trusts
        monkeypatch.setenv("SSL_CERT_FILE", str(made.folder / "authority.pem"))
        assert notify(folder).output == "Sent 1 message.\n"
        assert (len(server.mails), server.logins) == (1, [PASSWORD])
        password.write_text("wrong")
        done = notify(folder, "--test")
        assert (done.exit_code, "wrong" in done.output) == (1, False)
        password.chmod(0o640)
        assert "chmod 600" in notify(folder).output


BY_MAIL = {"host": "mail.example", "sender": SENDER, "to": [RECIPIENT]}
BY_WEB = {"address": "https://ops.example/hook", "secret_from": "env:NORTH_WEBHOOK"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "names nobody"),
        ({"mail": [BY_MAIL, BY_MAIL]}, "somebody twice"),
        ({"mail": [BY_MAIL | {"tls": "none"}]}, "none on this machine only"),
        ({"mail": [BY_MAIL | {"to": []}]}, "plain e-mail addresses"),
        ({"mail": [BY_MAIL | {"to": ["a@b\nBcc: c@d"]}]}, "plain e-mail addresses"),
        ({"mail": [BY_MAIL | {"password": "4711"}]}, "no part named 'password'"),
        ({"mail": [BY_MAIL | {"user": "north", "password_from": "4711"}]}, "no secret in the settings"),
        ({"mail": [BY_MAIL | {"port": 0}]}, "below 65536"),
        ({"webhook": [BY_WEB | {"address": "http://ops.example/hook"}]}, "https"),
        ({"webhook": [BY_WEB | {"address": "https://a:4711@ops.example/hook"}]}, "without a password"),
        ({"webhook": [BY_WEB | {"secret_from": "env:NOBODY_SET_THIS"}]}, "no secret in NOBODY_SET_THIS"),
        ({"webhook": [BY_WEB | {"secret_from": "env:SHORT"}]}, "at least 24 bytes"),
        ({"webhook": [BY_WEB | {"events": ["lunch"]}]}, "waiting, decision"),
        ({"pigeon": [BY_WEB]}, "no part named 'pigeon'"),
    ],
)
def test_settings_that_cannot_be_right_are_refused_without_a_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("NORTH_WEBHOOK", SECRET)
    monkeypatch.setenv("SHORT", "whsec_4711")
    write(folder, **settings)
    with pytest.raises(StudyError) as error:
        NotifySettings.read(folder)
    assert said in str(error.value)
    assert "4711" not in str(error.value)


def test_notes_that_cannot_be_read_are_named(notified: Path) -> None:
    (notified / "notices.json").write_text("{}x")
    done = notify(notified)
    assert (done.exit_code, "move the file away" in done.output) == (2, True)
