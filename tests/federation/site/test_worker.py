"""A site's answer in a process of its own: whatever happens there, a signed message comes out here."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal import DoublyRobust, Study
from dpcausal.cli import app
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, opened
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.ledger import Ledger
from dpcausal.utils.hash_chain import digest_of_text
from tests.support.site_folders import approve_study
from tests.support.slow import marked


def message_in(folder: Path, text: str) -> Message:
    return Message.from_json(opened(text, {"north": Site(folder).public_key})[1])


def change_policy(folder: Path, was: str, becomes: str) -> None:
    file = folder / "policy.toml"
    assert was in file.read_text()
    file.write_text(file.read_text().replace(was, becomes))


@pytest.fixture
def request_text(folder: Path, requester: Key, study: Study) -> str:
    approve_study(folder, study)
    return requester.seal(Request(study=study.to_toml(), ask="releases").to_json())


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], object]:
    """Let some code run first in every Python that is started from now on."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    return (tmp_path / "sitecustomize.py").write_text


def test_worker_returns_the_answer_of_the_site(folder: Path, request_text: str) -> None:
    assert run_in_subprocess(folder, request_text) == Site(folder).answer(request_text)


@pytest.mark.parametrize(
    "mishap",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os; os.abort()",
        "raise SystemExit(3)",
        "print('the patient in bed 7')",
        "import sys; sys.stdout.write('{}'); raise SystemExit(0)",
    ],
)
def test_crash_becomes_a_signed_message(
    meddle: Callable[[str], object], folder: Path, study: Study, request_text: str, mishap: str
) -> None:
    meddle(mishap)
    text = run_in_subprocess(folder, request_text)
    message = message_in(folder, text)
    assert (message.code, message.answer) == ("stopped", None)
    assert message.study == digest_of_text(study.to_toml())
    assert "bed 7" not in text
    assert Site(folder).audit_log.entries()[-1].what == f"{message.request} stopped"


def test_worker_is_stopped_at_its_time_limit(
    meddle: Callable[[str], object], tmp_path: Path, folder: Path, request_text: str
) -> None:
    change_policy(folder, "seconds = 60", "seconds = 1")
    pids = tmp_path / "pid"
    meddle(f"import os, time; open({str(pids)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    assert message_in(folder, run_in_subprocess(folder, request_text)).code == "stopped"
    assert not Path(f"/proc/{pids.read_text()}").exists()


def test_orphaned_worker_stops_itself(
    meddle: Callable[[str], object], tmp_path: Path, folder: Path, request_text: str
) -> None:
    change_policy(folder, "seconds = 60", "seconds = 1")
    meddle(
        "import time\ndef slow(event, args):\n"
        "    if event == 'import' and args[0] == 'dpcausal.federation.site.site':\n        time.sleep(60)\n"
        "import sys; sys.addaudithook(slow)",
    )
    command = [sys.executable, "-m", "dpcausal.federation.site", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as child:  # noqa: S603
        assert child.wait(20) < 0


def test_worker_is_stopped_at_its_memory_limit(
    meddle: Callable[[str], object], tmp_path: Path, folder: Path, request_text: str
) -> None:
    hungry = (
        "import sys\ndef hungry(event, args):\n"
        "    if event == 'import' and args[0] == 'dpcausal.federation.site.site':\n        bytearray(1_500_000_000)\n"
        "sys.addaudithook(hungry)"
    )
    meddle(hungry)
    assert message_in(folder, run_in_subprocess(folder, request_text)).code == "answered"  # 2 GB are enough
    change_policy(folder, 'memory = "2 GB"', 'memory = "1 GB"')
    assert message_in(folder, run_in_subprocess(folder, request_text)).code == "stopped"


def test_worker_killed_between_debit_and_answer_pays_once(
    meddle: Callable[[str], object], tmp_path: Path, folder: Path, request_text: str
) -> None:
    meddle(
        "import os, sys\nfrom dpcausal.ledger import Ledger\nfirst = Ledger.debit\n"
        "def debit(self, request):\n    first(self, request)\n    os.kill(os.getpid(), 9)\nLedger.debit = debit",
    )
    assert message_in(folder, run_in_subprocess(folder, request_text)).code == "stopped"
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    assert [entry.kind for entry in ledger.entries()] == ["open", *["site"] * 3, "bind", "grant", "debit"]
    meddle("")
    assert message_in(folder, run_in_subprocess(folder, request_text)).code == "answered"
    assert [entry.kind for entry in ledger.entries()] == ["open", *["site"] * 3, "bind", "grant", "debit", "release"]
    assert ledger.spent.epsilon == 1.0


_KILLED = """
import os
from {module} import {owner}
whole, calls = {owner}.{name}, []
def stopped(*given):
    calls.append(given)
    if len(calls) == {call}:
        {before}os.kill(os.getpid(), 9)
    return whole(*given)
{owner}.{name} = stopped
"""
_DONE, _ANSWERS, _LEDGER = "whole(*given); ", "dpcausal.ledger.answers", "dpcausal.ledger"
_RESPONSES = "dpcausal.federation.site.stores"
CRASHES = {
    "before the reservation": (_LEDGER, "Ledger", "grant", 1, ""),
    "after the reservation": (_LEDGER, "Ledger", "grant", 1, _DONE),
    "after the debit": (_LEDGER, "Ledger", "debit", 1, _DONE),
    "before the answer is stored": (_ANSWERS, "Answers", "store", 1, ""),
    "after the answer is stored": (_ANSWERS, "Answers", "store", 1, _DONE),
    "before the message is stored": (_RESPONSES, "ResponseStore", "store", 1, ""),
    "after the message is stored": (_RESPONSES, "ResponseStore", "store", 1, _DONE),
}
CRASHES_IN_GATE = (
    "after the reservation",
    "after the debit",
    "before the answer is stored",
    "after the message is stored",
)


def count(folder: Path, kind: str) -> int:
    return sum(entry.kind == kind for entry in Ledger(f"sqlite:///{folder / 'ledger.db'}").entries())


def stored_message(folder: Path) -> bool:
    return any((folder / "messages").glob("[!.]*"))


def released_by(ledger: Ledger) -> list[object]:
    return [entry.content["release"]["values"] for entry in ledger.entries() if entry.kind == "release"]


def killed(meddle: Callable[[str], object], folder: Path, request: str, crash: tuple[str, str, str, int, str]) -> None:
    """Have a site's worker killed at one point of an answer, and let the approvals expire meanwhile."""
    meddle(_KILLED.format(**dict(zip(("module", "owner", "name", "call", "before"), crash, strict=True))))
    assert message_in(folder, run_in_subprocess(folder, request)).code == "stopped"
    meddle("")


@pytest.mark.parametrize(
    ("point", "late"),
    [
        *((each, "approvals") if each in CRASHES_IN_GATE else marked((each, "approvals")) for each in CRASHES),
        marked(("after the reservation", "deadline")),
        ("after the debit", "deadline"),
    ],
)
def test_answer_that_was_debited_is_owed_wherever_the_site_was_killed(  # noqa: PLR0917 (fixtures)
    meddle: Callable[[str], object],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    requester: Key,
    study: Study,
    request_text: str,
    point: str,
    late: str,
) -> None:
    killed(meddle, folder, request_text, CRASHES[point])
    debits, stored = count(folder, "debit"), count(folder, "release")
    site, asked = Site(folder), Request(study=study.to_toml(), ask="releases", deadline=None)
    if late == "approvals":
        monkeypatch.setattr("dpcausal.federation.site.decisions.is_in_time", lambda *_: False)
    else:
        asked = replace(asked, deadline=1)
    is_owed = bool(debits) and not stored_message(folder)
    listed = CliRunner().invoke(app, ["site", "review", str(folder)]).output
    assert ("; paid, answer not yet fetched: scores" in listed) == is_owed
    waiting = [bool(each.owed) for each in site.studies() if each.digest == study.digest]
    shown = [bool(each.owed) for each in SiteFolder(folder).studies.values() if each.digest == study.digest]
    assert {*waiting, *shown} == {is_owed}
    if late == "approvals":
        waits = not debits
        (check,) = (each for each in site_status(folder).checks if each.name == "waiting")
        assert check.value == int(waits)
        assert ("1 paid, answer not yet fetched" in check.words) == is_owed
        assert [each.digest for each in SiteFolder(folder).waiting] == [study.digest] * waits
    request, ledger = requester.seal(asked.to_json()), site.ledger()
    spent, before = ledger.spent, released_by(ledger)
    answer = message_in(folder, site.answer(request))
    assert ledger.spent == spent
    assert count(folder, "debit") == debits
    if not debits:
        assert answer.code == {"approvals": "undecided", "deadline": "expired"}[late]
        return
    assert answer.code == "answered"
    released = released_by(ledger)
    assert [each["values"] for each in (answer.answer or {})["releases"]] == released
    assert released[:stored] == before  # one noise for what was stored
    assert message_in(folder, Site(folder).answer(request)) == answer


def test_part_of_an_answer_that_was_debited_waits_for_an_approval_of_the_rest(
    meddle: Callable[[str], object],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    requester: Key,
    study: Study,
) -> None:
    several = replace(study, estimator=DoublyRobust(covariates=["age"]))
    approve_study(folder, several)
    request = requester.seal(Request(study=several.to_toml(), ask="releases").to_json())
    killed(meddle, folder, request, (_ANSWERS, "Answers", "store", 1, _DONE))
    assert (count(folder, "debit"), spent := Site(folder).ledger().spent.epsilon) == (1, spent)
    assert 0 < spent < 1.0
    with monkeypatch.context() as expired:
        expired.setattr("dpcausal.federation.site.decisions.is_in_time", lambda *_: False)
        assert [(each.waits, each.owed) for each in Site(folder).studies()] == [(True, False)]
        assert message_in(folder, Site(folder).answer(request)).code == "undecided"
    assert (count(folder, "debit"), count(folder, "grant"), Site(folder).ledger().spent.epsilon) == (1, 1, spent)
    approve_study(folder, several, "b person")
    assert message_in(folder, Site(folder).answer(request)).code == "answered"
    assert Site(folder).ledger().spent.epsilon == pytest.approx(1.0)


def test_study_of_several_queries_that_was_paid_is_not_waiting(
    monkeypatch: pytest.MonkeyPatch, folder: Path, requester: Key, study: Study
) -> None:
    """Its later queries depend on its answers, so that only its debits show that it was paid."""
    several = replace(study, estimator=DoublyRobust(covariates=["age"]))
    approve_study(folder, several)
    request = requester.seal(Request(study=several.to_toml(), ask="releases").to_json())
    with monkeypatch.context() as stopped:
        stopped.setattr("dpcausal.federation.site.stores.ResponseStore.store", lambda *_: 1 / 0)
        assert message_in(folder, Site(folder).answer(request)).code == "failed"
    monkeypatch.setattr("dpcausal.federation.site.decisions.is_in_time", lambda *_: False)
    (found,) = (each for each in Site(folder).studies() if each.digest == several.digest)
    assert (found.words, found.waits) == ("expired; paid, answer not yet fetched", False)
    assert message_in(folder, Site(folder).answer(request)).code == "answered"
    (found,) = (each for each in Site(folder).studies() if each.digest == several.digest)
    assert (found.words, found.waits) == ("expired, answered", False)


def test_ledger_that_pays_for_the_rest_is_caught(
    monkeypatch: pytest.MonkeyPatch, folder: Path, requester: Key, study: Study, request_text: str
) -> None:
    """Without the limit to what was debited, an expired approval would pay for a study of which a part was debited."""
    site, ledger = Site(folder), Site(folder).ledger()
    monkeypatch.setattr("dpcausal.federation.site.decisions.is_in_time", lambda *_: False)
    monkeypatch.setattr(Ledger, "is_debited_for", lambda *_: True)
    assert message_in(folder, site.answer(request_text)).code == "undecided"
    assert ledger.spent.epsilon == 0
    monkeypatch.setattr(Ledger, "spends", property(lambda _: True, lambda *_: None))
    assert message_in(folder, site.answer(request_text)).code == "answered"
    assert ledger.spent.epsilon == 1.0


def test_parent_of_the_worker_imports_no_heavy_library() -> None:
    code = (
        "import sys, dpcausal.federation.site.worker; "
        "print([name for name in ('numpy', 'duckdb', 'sqlalchemy', 'opendp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"
