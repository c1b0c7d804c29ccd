"""Processes that race and are killed where checkpoints are written: real processes, real SIGKILL."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal.ledger import running_total
from tests.ledger.long_ledgers import AS_OF, BUDGET, checkpoints

EVERY, RACERS, KILLS, REQUESTS = 4, 4, 8, 12

# All processes ask the same questions of one ledger.
RACE = f"""
import os, random, signal, sys, time
from dpcausal import Ledger
from dpcausal.ledger import running_total
from tests.ledger.long_ledgers import answer

running_total.CHECKPOINT_EVERY = {EVERY}

def start():
    child = os.fork()
    if child > 0:
        return child
    try:
        ledger = Ledger(sys.argv[1])
        for place in range({REQUESTS}):
            answer(ledger, f"r{{place}}")
    except BaseException:
        os._exit(1)
    os._exit(0)

racers = [start() for _ in range({RACERS})]
moments = random.Random(7)
for _ in range({KILLS}):
    doomed = start()
    time.sleep(moments.uniform(0, 0.1))
    os.kill(doomed, signal.SIGKILL)
    os.waitpid(doomed, 0)
racers.append(start())
ended = [os.waitpid(racer, 0)[1] for racer in racers]
sys.exit(any(ended))
"""


def race(url: str, program: str) -> bool:
    """Whether all processes that were left alone came to their end."""
    dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    command = [sys.executable, "-c", program, url]
    return subprocess.run(command, cwd=Path(__file__).parents[2], timeout=120, check=False).returncode == 0  # noqa: S603 (our own text)


def test_checkpoints_hold_where_processes_race_and_are_killed(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if ledger_url == "sqlite://":
        pytest.skip("only one process can use a ledger in memory")
    monkeypatch.setattr(running_total, "CHECKPOINT_EVERY", EVERY)
    assert race(ledger_url, RACE)
    ledger = dpc.Ledger(ledger_url)
    assert checkpoints(ledger) == list(range(EVERY, 48, EVERY))
    kinds = Counter(entry.kind for entry in ledger.entries())
    assert [kinds[kind] for kind in ("grant", "debit", "release")] == [REQUESTS] * 3
    assert ledger.spent.epsilon == 1.2


def test_a_ledger_that_lets_processes_in_together_is_caught(tmp_path: Path) -> None:
    """The mutant: all look at once, and all but one then write where another has written, or cannot write at all."""
    together = """
import time
from sqlalchemy import Connection
from dpcausal import Ledger

alone, append = Connection.exec_driver_sql, Ledger._append
Connection.exec_driver_sql = lambda self, statement: alone(self, statement.replace("IMMEDIATE", "DEFERRED"))

def append_late(self, *entry):
    time.sleep(0.05)
    return append(self, *entry)

Ledger._append = append_late
"""
    assert not race(f"sqlite:///{tmp_path / 'ledger.db'}", together + RACE)
