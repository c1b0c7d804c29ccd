"""The health of a site, as its operator and a monitor see it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.operation import health
from dpcausal.federation.operation.archive import LAST_BACKUP
from dpcausal.federation.operation.heartbeat import Heartbeat, hold_lock
from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.certificates import write_certificate
from tests.support.ports import reserved_port
from tests.support.site_folders import approve_study, make_site_folder, person_key


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["site", *map(str, words)])


def look(folder: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit status and the checks."""
    done = run("status", folder, "--json")
    checks: dict[str, dict[str, Any]] = json.loads(done.output)["checks"]
    return done.exit_code, checks


@pytest.fixture
def kit(folder: Path) -> Iterator[Path]:
    """A kit that a process serves, connected a moment ago."""
    kit = folder / "nvflare" / "kit"
    (kit / "startup").mkdir(parents=True)
    (kit / "startup" / "fed_client.json").write_text("{}")
    write_certificate(kit / "startup" / "client.crt", 200)
    write_certificate(kit / "startup" / "rootCA.pem", 2000)
    now = time.time()
    Heartbeat(now - 100, now, 0.25, "0.1.0").write(kit)
    held = hold_lock(kit)
    yield kit
    os.close(held)


@pytest.fixture
def healthy(folder: Path, kit: Path, tmp_path: Path) -> Path:
    assert kit.exists()
    person_key(folder, "a person")
    assert run("backup", folder, "--out", tmp_path / "north.backup").exit_code == 0
    return folder


def test_healthy_site_has_exit_status_0_and_tells_everything(healthy: Path) -> None:
    status, checks = look(healthy)
    assert status == 0, checks
    assert checks["serving"]["value"] is True
    assert checks["connected"]["value"] is True
    assert checks["clock"]["value"] == 0.25
    assert checks["certificate"]["value"] == 200
    assert checks["waiting"]["value"] == 0
    assert checks["ledger"]["value"] is True
    assert checks["budget"]["value"]["left"] == {"epsilon": 3.0, "delta": 0.0}
    assert checks["versions"]["value"]["protocol"] == 5
    assert checks["versions"]["value"]["server"] == "0.1.0"
    assert {"ledger", "audit_log", "policy"} <= checks["versions"]["value"].keys()
    assert "site north: healthy" in run("status", healthy).output


def test_status_needs_no_table(healthy: Path) -> None:
    (healthy / "table.parquet").unlink()
    assert look(healthy)[0] == 0


def test_site_without_a_network_is_healthy_without_a_process(folder: Path, tmp_path: Path) -> None:
    run("backup", folder, "--out", tmp_path / "b")
    status, checks = look(folder)
    assert status == 0
    assert "by files" in checks["serving"]["words"]


def test_waiting_study_needs_attention(healthy: Path, study: Study) -> None:
    Site(healthy).receive(study.to_toml())
    status, checks = look(healthy)
    assert (status, checks["waiting"]["value"]) == (1, 1)
    approve_study(healthy, study)
    assert look(healthy)[0] == 0


@pytest.mark.parametrize(
    ("beat", "check", "level"),
    [
        (Heartbeat(1.0, 2.0), "connected", 1),
        (Heartbeat(1.0), "connected", 1),
        (Heartbeat(1.0, 4e9, -120.0), "clock", 1),
        (Heartbeat(1.0, 4e9, None), "clock", 0),
    ],
)
def test_site_that_reaches_no_server_or_has_a_wrong_clock(
    healthy: Path, kit: Path, beat: Heartbeat, check: str, level: int
) -> None:
    beat.write(kit)
    status, checks = look(healthy)
    assert status == level
    assert checks[check]["level"] == health.LEVELS[level]


def test_killed_process_is_broken_although_its_heartbeat_is_fresh(folder: Path, kit: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from dpcausal.federation.operation.heartbeat import hold_lock"
    )
    program += "; hold_lock(Path(sys.argv[1])); print(1, flush=True); time.sleep(60)"
    (kit / "serving.lock").unlink()  # that of the fixture
    with subprocess.Popen([sys.executable, "-c", program, str(kit)], stdout=subprocess.PIPE) as child:  # noqa: S603
        assert child.stdout is not None
        child.stdout.readline()
        assert look(folder)[1]["serving"]["value"] is True
        child.send_signal(signal.SIGKILL)
    status, checks = look(folder)
    assert (status, checks["serving"]["value"]) == (2, False)


@pytest.mark.parametrize(
    ("days", "since", "level"), [(31, -1, "healthy"), (29, -1, "attention"), (-1, -9, "broken"), (9, 3, "broken")]
)
def test_certificate_that_ends_soon_or_is_not_valid(
    healthy: Path, kit: Path, days: int, since: int, level: str
) -> None:
    write_certificate(kit / "startup" / "client.crt", days, since)
    assert look(healthy)[1]["certificate"]["level"] == level


def test_absent_ledger_and_lost_receipts_are_broken(healthy: Path, study: Study, requester: Key) -> None:
    approve_study(healthy, study)
    before = (healthy / "ledger.db").read_bytes()
    Site(healthy).answer(requester.seal(Request(study=study.to_toml(), ask="releases").to_json()))
    assert look(healthy)[0] == 0
    (healthy / "ledger.db").write_bytes(before)
    status, checks = look(healthy)
    assert (status, checks["ledger"]["level"]) == (2, "broken")
    assert "lacks the receipts of answers that this site paid for: 1: this ledger was" in checks["ledger"]["words"]
    (healthy / "ledger.db").unlink()
    assert look(healthy)[0] == 2


def test_changed_audit_log_is_broken(healthy: Path, study: Study) -> None:
    approve_study(healthy, study)
    log = healthy / "audit_log.jsonl"
    log.write_text(log.read_text().replace("approve", "approva"))
    assert look(healthy)[1]["audit_log"]["level"] == "broken"


@pytest.mark.parametrize(("free", "level"), [(10**12, 0), (5 * 10**8, 1), (10**7, 2)])
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: int) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    assert health.check_disk(tmp_path).level == level


def test_old_backup_needs_attention(healthy: Path) -> None:
    (healthy / LAST_BACKUP).write_text(json.dumps({"at": time.time() - 8 * 86_400}))
    assert look(healthy)[1]["backup"]["level"] == "attention"
    (healthy / LAST_BACKUP).unlink()
    assert look(healthy)[1]["backup"]["words"] == "never"


def test_folder_without_a_site_is_exit_status_2(tmp_path: Path) -> None:
    assert run("status", tmp_path).exit_code == 2


def test_metrics_hold_each_check_in_the_format_of_prometheus(healthy: Path) -> None:
    text = run("metrics", healthy).output
    assert "# TYPE dpcausal_level gauge\ndpcausal_level 0.0\n" in text
    assert 'dpcausal_certificate_days_left{check="certificate"} 200.0' in text
    assert 'dpcausal_check_level{check="ledger"} 0.0' in text
    assert 'dpcausal_budget_epsilon{part="left"} 3.0' in text
    assert 'dpcausal_budget_epsilon{part="committed"} 0.0' in text
    assert 'protocol="5"' in text


def test_metrics_are_served_anew_at_each_look(healthy: Path, study: Study) -> None:
    address = f"127.0.0.1:{reserved_port()}"
    command = [sys.executable, "-m", "dpcausal", "site", "metrics", str(healthy), "--listen", address]
    with subprocess.Popen(command) as server:  # noqa: S603
        try:
            assert "dpcausal_waiting_studies" in _fetched(address)
            Site(healthy).receive(study.to_toml())
            assert 'dpcausal_waiting_studies{check="waiting"} 1.0' in _fetched(address)
            (healthy / "policy.toml").unlink()
            assert "dpcausal_level 2.0" in _fetched(address)
        finally:
            server.kill()


def test_address_that_cannot_be_served_is_told(folder: Path) -> None:
    for address in ("nonsense", "127.0.0.1:99999999", "192.0.2.1:80"):
        done = run("metrics", folder, "--listen", address)
        assert done.exit_code == 2
        assert "127.0.0.1:9464" in done.output


def _fetched(address: str) -> str:
    end = time.monotonic() + 200
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as reply:
                return str(reply.read().decode())
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_site_in_a_mailbox_asks_for_a_process_that_polls(folder: Path) -> None:
    mailbox = folder / "mailbox"
    mailbox.mkdir()
    (mailbox / "connection.toml").write_text('address = "https://localhost:1"')
    code, checks = look(folder)
    assert (code, checks["polling"]["level"]) == (2, "broken")
    assert "dpcausal site poll" in checks["polling"]["words"]
    assert "serving" not in checks
    held, now = hold_lock(mailbox), time.time()
    Heartbeat(now - 1_000, now - 700, every=30.0).write(mailbox)
    _, checks = look(folder)
    assert [checks[name]["level"] for name in ("polling", "mailbox")] == ["healthy", "attention"]
    Heartbeat(now - 1_000, now - 700, every=600.0).write(mailbox)
    _, checks = look(folder)
    assert checks["mailbox"]["level"] == "healthy"
    os.close(held)
    assert look(folder)[1]["polling"]["level"] == "healthy"  # as a scheduler leaves it between two polls


def test_second_process_does_not_poll(folder: Path) -> None:
    mailbox = folder / "mailbox"
    mailbox.mkdir()
    (mailbox / "connection.toml").write_text('address = "https://localhost:1"')
    (mailbox / "authority.pem").write_text("")
    held = hold_lock(mailbox)
    refused = run("poll", folder)
    os.close(held)
    assert refused.exit_code == 2
    assert "A process polls the mailbox" in refused.output


def test_status_names_a_ledger_that_the_policy_contradicts(folder: Path) -> None:
    policy = folder / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace('as_of = "2026-06-30"', 'as_of = "2026-12-31"'))
    _, checks = look(folder)
    assert checks["ledger"]["level"] == "broken"
    assert "dpcausal ledger add-version" in checks["ledger"]["words"]
    policy.write_text(text.replace("[budget]\nepsilon = 3.0", "[budget]\nepsilon = 5.0"))
    assert policy.read_text() != text
    _, checks = look(folder)
    assert checks["ledger"]["level"] == "broken"
    assert "cannot be raised" in checks["ledger"]["words"]


def test_status_names_a_ledger_from_before_its_first_answer_that_lost_some(folder: Path) -> None:
    """It is whole, and no vault opens on it any more."""
    address = f"sqlite:///{folder / 'ledger.db'}"
    Ledger.restore(address, by="Ann", reason="nothing was lost", lost_epsilon=0.0)
    assert look(folder)[1]["ledger"]["level"] == "healthy"
    Ledger.restore(address, by="Ann", reason="disk lost", lost_epsilon=1.0)
    check = look(folder)[1]["ledger"]
    assert (check["level"], "before its first vault" in check["words"]) == ("broken", True)


@pytest.mark.parametrize("changes", [{}, {"witness": "witness.log"}])
def test_command_that_declares_a_version_works_as_the_status_prints_it(tmp_path: Path, changes: dict[str, str]) -> None:
    folder, schema = tmp_path / "north", standard_schema()
    make_site_folder(folder, "north", synthetic_table(schema, 10), schema, {}, **changes)
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace('as_of = "2026-06-30"', 'as_of = "2026-12-31"'))
    words = look(folder)[1]["ledger"]["words"]
    command = shlex.split(words.partition("declare it with: dpcausal ")[2])
    assert CliRunner().invoke(app, command).exit_code == 0
    assert look(folder)[1]["ledger"]["level"] == "healthy"


def test_status_names_a_folder_that_others_may_open(folder: Path) -> None:
    assert look(folder)[1]["access"]["level"] == "healthy"
    folder.chmod(0o750)
    checks = look(folder)[1]
    assert checks["access"]["level"] == "attention"
    assert "chmod 700" in checks["access"]["words"]
