"""Processes killed between request and answer, and processes racing for the last of a budget.

`python -m benchmarks.ledger_faults --trials 200 --json`

Real processes, real SIGKILL, real ledgers: an SQLite file, and PostgreSQL where DPCAUSAL_POSTGRES names a server.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from random import Random
from statistics import median

import pyarrow as pa

import dpcausal as dpc
from benchmarks.progress import progress
from dpcausal.errors import BudgetExceededError
from dpcausal.ledger.chain import Entry
from dpcausal.results.effect import Estimator
from tests.support.postgres import VARIABLE, fresh_database

# Processes are forked from a clean server: a process that has run queries holds threads, which do not survive a fork.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dpcausal", "tests.support.postgres"])
RACERS, ATTEMPTS, AFFORDABLE = 8, 5, 12
PRICE = 0.1
AS_OF = "2026-06-30"
WARM_UP = 5
ALONE, SCHEDULE = dpc.DifferenceInMeans(), dpc.ScheduledDifference("week")


def open_vault(url: str, request: int, budget: dpc.Budget) -> dpc.Vault:
    """Return a vault whose schema, and so whose requests, differ from those of every other number."""
    table = pa.table({"arm": [0, 1] * 500, "y": [0.25, 0.75] * 500, "week": [1, 2, 3, 3] * 250})
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("y", 0, 1 + request / 1000),
        covariates=[dpc.Category("week", [1, 2, 3])],
        entry="week",
    )
    return dpc.Vault(table, schema, ledger=url, budget=budget, as_of=AS_OF)


def ask(url: str, request: int, budget: dpc.Budget, estimator: Estimator, line: Connection) -> None:
    """Live the life of one process: open, say so, ask, say what was answered."""
    vault = open_vault(url, request, budget)
    line.send("asking")
    line.send(estimator.estimate(vault, epsilon=PRICE).to_json())


@dataclass
class Killed:
    """What was found after each kill and after asking again."""

    moments: Counter[str] = field(default_factory=Counter)
    under_counted: int = 0
    double_debited: int = 0
    changed_answers: int = 0
    looks_lost_or_stored_twice: int = 0
    unanswered_on_retry: int = 0
    chain_broken: int = 0


def start(
    url: str, request: int, budget: dpc.Budget, estimator: Estimator
) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    here, there = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=ask, args=(url, request, budget, estimator, there))
    process.start()
    there.close()
    assert here.poll(60)
    assert here.recv() == "asking"
    return process, here


def answer_of(line: Connection) -> str | None:
    """Return what a process sent before it ended."""
    try:
        return str(line.recv()) if line.poll(60) else None
    except EOFError:
        return None


def _is_same(first: str, second: str) -> bool:
    """Return whether two effects are the same; the second says of its answers that they were stored."""
    return dpc.Effect.from_json(first) == dpc.Effect.from_json(second)


def entries_of(url: str, before: int) -> list[Entry]:
    """Return the entries after the first `before` ones; reading them verifies the whole chain."""
    return list(dpc.Ledger(url).entries()[before:])


def timed(url: str, request: int, budget: dpc.Budget, estimator: Estimator) -> float:
    """Return the seconds from request to answer of a process that is left alone."""
    process, line = start(url, request, budget, estimator)
    begun = time.perf_counter()
    answer_of(line)
    seconds = time.perf_counter() - begun
    process.join()
    return seconds


def kill_and_retry(url: str, trials: int, random: Random, estimator: Estimator = ALONE) -> Killed:
    """Kill a process at a random moment between its request and its answer, look, then ask the same again.

    A schedule asks three looks, one after the other, under one debit.
    """
    found = Killed()
    budget = dpc.Budget(epsilon=1000)
    dpc.Ledger.create(url, budget, as_of=AS_OF)
    warm_up = min(WARM_UP, trials)
    usual = median(timed(url, trials + place, budget, estimator) for place in range(warm_up))
    looks = 3 if estimator == SCHEDULE else 0
    before = len(entries_of(url, 0))
    for request in progress(range(trials), trials, f"kills, {url.partition(':')[0]}"):
        process, line = start(url, request, budget, estimator)
        time.sleep(random.uniform(0, 1.2 * usual))
        process.kill()  # SIGKILL
        process.join()
        first = answer_of(line)
        try:
            kinds = [entry.kind for entry in entries_of(url, before)]
            found.moments["answered" if first else kinds[-1] if kinds else "before any entry"] += 1
            found.under_counted += first is not None and "debit" not in kinds
            process, line = start(url, request, budget, estimator)
            second = answer_of(line)
            process.join()
            kinds = [entry.kind for entry in entries_of(url, before)]
        except dpc.DpcausalError:
            found.chain_broken += 1
            continue
        found.unanswered_on_retry += second is None
        found.changed_answers += first is not None and second is not None and not _is_same(first, second)
        found.double_debited += kinds.count("debit") != 1 or kinds.count("grant") != 1
        found.looks_lost_or_stored_twice += kinds.count("look") != looks
        before += len(kinds)
        spent = dpc.Ledger(url).spent.epsilon
        found.under_counted += abs(spent - PRICE * (request + 1 + warm_up)) > 1e-9
    return found


def race_one(url: str, racer: int, budget: dpc.Budget, barrier: Barrier, line: Connection) -> None:
    """Ask several different questions as soon as all racers are ready, and say how many were answered."""
    vaults = [open_vault(url, racer * ATTEMPTS + attempt, budget) for attempt in range(ATTEMPTS)]
    barrier.wait(60)
    answered = 0
    for vault in vaults:
        try:
            dpc.DifferenceInMeans().estimate(vault, epsilon=PRICE)
            answered += 1
        except BudgetExceededError:
            pass
    line.send(answered)


def race(url: str) -> dict[str, float | int | bool]:
    """Eight processes ask forty questions of a budget that affords twelve and a half."""
    budget = dpc.Budget(epsilon=PRICE * (AFFORDABLE + 0.5))
    dpc.Ledger.create(url, budget, as_of=AS_OF)
    barrier = PROCESSES.Barrier(RACERS)
    lines, processes = [], []
    for racer in range(RACERS):
        here, there = PROCESSES.Pipe(duplex=False)
        processes.append(PROCESSES.Process(target=race_one, args=(url, racer, budget, barrier, there)))
        processes[-1].start()
        there.close()
        lines.append(here)
    answered = sum(int(answer_of(line) or 0) for line in lines)
    for process in processes:
        process.join()
    spent = dpc.Ledger(url).spent.epsilon
    return {"answered": answered, "spent": spent, "over_cap": spent > budget.epsilon}


@contextmanager
def fresh_ledger(backend: str) -> Iterator[str]:
    if backend == "postgresql":
        with fresh_database() as url:
            yield url
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{Path(folder) / 'ledger.db'}"


def measure(backend: str, trials: int, races: int, seed: int) -> dict[str, object]:
    with fresh_ledger(backend) as url:
        killed = kill_and_retry(url, trials, Random(seed))  # noqa: S311 (moments to kill at)
    outcomes = []
    for _ in progress(range(races), races, f"races, {backend}"):
        with fresh_ledger(backend) as url:
            outcomes.append(race(url))
    return as_document(trials, killed) | {
        "races": races,
        "races_over_cap": sum(bool(outcome["over_cap"]) for outcome in outcomes),
        "races_with_exactly_the_affordable_number": sum(outcome["answered"] == AFFORDABLE for outcome in outcomes),
    }


def measure_schedule(backend: str, trials: int, seed: int) -> dict[str, object]:
    """Kill processes that ask the looks of a schedule."""
    with fresh_ledger(backend) as url:
        killed = kill_and_retry(url, trials, Random(seed), SCHEDULE)  # noqa: S311 (moments to kill at)
    return as_document(trials, killed) | {"looks_lost_or_stored_twice": killed.looks_lost_or_stored_twice}


def as_document(trials: int, killed: Killed) -> dict[str, object]:
    return {
        "trials": trials,
        "killed_when_last_entry_was": dict(killed.moments),
        "under_counted": killed.under_counted,
        "double_debited": killed.double_debited,
        "changed_answers": killed.changed_answers,
        "unanswered_on_retry": killed.unanswered_on_retry,
        "chain_broken": killed.chain_broken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="kills for each kind of ledger")
    parser.add_argument("--races", type=int, default=10, help="races for each kind of ledger")
    parser.add_argument("--seed", type=int, default=0, help="of the moments to kill at")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    backends = ["sqlite", *(["postgresql"] if VARIABLE in os.environ else [])]
    result = {backend: measure(backend, chosen.trials, chosen.races, chosen.seed) for backend in backends}
    schedules = {f"{backend}, schedule": measure_schedule(backend, chosen.trials, chosen.seed) for backend in backends}
    if "postgresql" not in result:
        sys.stderr.write(f"PostgreSQL left out: {VARIABLE} names no server\n")
    told = result | schedules
    if chosen.json:
        print(json.dumps(told, indent=1))
    else:
        for backend, (name, value) in itertools.chain(*([(b, pair) for pair in r.items()] for b, r in told.items())):
            print(f"{backend}: {name} {value}")
    failures = ["under_counted", "double_debited", "changed_answers", "unanswered_on_retry", "chain_broken"]
    failures += ["races_over_cap", "looks_lost_or_stored_twice"]
    bad = any(line.get(name) for line in told.values() for name in failures)
    sys.exit(bad or any(line["races"] != line["races_with_exactly_the_affordable_number"] for line in result.values()))


if __name__ == "__main__":
    main()
