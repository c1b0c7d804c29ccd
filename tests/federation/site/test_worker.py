"""A site's answer in a process of its own: whatever happens there, a signed message comes out here."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcausal import Study
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, opened
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.ledger import Ledger
from dpcausal.utils.hash_chain import digest_of_text
from tests.support.site_folders import approve_study


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


def test_parent_of_the_worker_imports_no_heavy_library() -> None:
    code = (
        "import sys, dpcausal.federation.site.worker; "
        "print([name for name in ('numpy', 'duckdb', 'sqlalchemy', 'opendp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"
