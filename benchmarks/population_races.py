"""Many experiments that draw from one population's budget at once, in processes that are killed meanwhile.

`python -m benchmarks.population_races --json`

First, experiments race for a budget that affords only a part of them. Then those that have a budget spend a part of it
and give the rest back. Real processes, real SIGKILL, a real database: PostgreSQL where DPCAUSAL_POSTGRES names a
server, otherwise an SQLite file. Whatever a killed process did not confirm is asked again by another.

With `--buckets 250`, two experiments race for each bucket of a layer, and the others for the rest of the budget.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.guarantee import Event
from tests.support.postgres import VARIABLE, fresh_database

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dpcausal", "dpcausal.ledger", "psycopg", "tests.support.postgres"])
NAME, AS_OF, LAYER = "shoppers", "2026-06-30", "page"
PRICE, SPENT = dpc.Budget(epsilon=0.01), Event(family="laplace", epsilon=0.004, delta=0.0, mu=0.0)


OPENED = threading.local()


def population_at(url: str) -> dpc.Population:
    """Return the population, which each thread opens once, as a server would."""
    population: dpc.Population | None = getattr(OPENED, "population", None)
    if population is None:
        population = OPENED.population = dpc.Population(url, NAME)
    return population


def ask(url: str, experiment: str) -> dpc.Ledger:
    """Ask for an experiment's budget; one that is called bucket-7-1 asks for bucket 7 of the layer."""
    words = experiment.split("-")
    buckets = (int(words[1]),) if words[0] == "bucket" else ()
    layer = LAYER if buckets else ""
    return population_at(url).allocate(experiment, PRICE, as_of=AS_OF, layer=layer, buckets=buckets)


def allocate(url: str, experiment: str) -> str:
    """Ask for an experiment's budget, and return what came of it."""
    try:
        ask(url, experiment)
    except BudgetExceededError:
        return "refused"
    except LedgerError as error:
        if ", and is still open" not in str(error):
            raise
        return "taken"
    return "allocated"


def spend_and_close(url: str, experiment: str) -> str:
    """Spend a part of an experiment's budget, unless that was done before, and give the rest back."""
    population, ledger = population_at(url), ask(url, experiment)
    ledger.grant("query", SPENT, {})  # also where it was granted before, and the ledger closed since
    ledger.debit("query")
    return str(population.close(experiment))


def work(url: str, task: Callable[[str, str], str], names: Sequence[str], threads: int, line: Connection) -> None:
    """Live the life of one process: do some tasks in threads, and confirm each."""
    confirming = threading.Lock()

    def do(name: str) -> None:
        answer = task(url, name)
        with confirming:
            line.send((name, answer))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(do, names))


class Worker:
    """A process, and the tasks that it did not confirm yet."""

    def __init__(self, url: str, task: Callable[[str, str], str], names: Sequence[str], threads: int) -> None:
        self.left = dict.fromkeys(names)
        self.line, there = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=work, args=(url, task, names, threads, there))
        self.process.start()
        there.close()

    def hear(self) -> Iterator[tuple[str, str]]:
        """Yield the confirmed tasks so far; a process that was killed may have sent a part of one."""
        try:
            while self.line.poll():
                name, answer = self.line.recv()
                del self.left[name]
                yield name, answer
        except (EOFError, OSError):
            self.process.join()


def with_kills(  # noqa: PLR0913, PLR0917
    url: str,
    task: Callable[[str, str], str],
    names: Sequence[str],
    processes: int,
    threads: int,
    kills: int,
    random: Random,
) -> tuple[dict[str, str], int]:
    """Do tasks in several processes, some of which are killed at random moments; return the answers and the kills."""
    share = [names[place::processes] for place in range(processes)]
    workers = [Worker(url, task, part, threads) for part in share if part]
    answers: dict[str, str] = {}
    killed, at_most = 0, len(names)
    due = sorted(random.uniform(0, 0.95) * at_most for _ in range(kills))  # spread over the answers, not over time
    while workers:
        wait([worker.line for worker in workers], timeout=1)
        for worker in list(workers):
            answers.update(worker.hear())
            if not worker.process.is_alive():
                answers.update(worker.hear())
                workers.remove(worker)
                if worker.process.exitcode and worker.process.exitcode > 0:
                    raise RuntimeError("a process ended with an error, which it printed")  # it was not killed
                if worker.left:
                    workers.append(Worker(url, task, list(worker.left), threads))
        if workers and killed < kills and len(answers) >= due[killed]:
            chosen = random.choice(workers)
            time.sleep(random.uniform(0, 0.05))
            chosen.process.kill()
            chosen.process.join()
            killed += 1
    return answers, killed


def measure(  # noqa: PLR0913, PLR0917
    url: str, count: int, closed: int, kills: int, seed: int, processes: int, threads: int, buckets: int = 0
) -> dict[str, object]:
    """Race for a budget, close a part of what was allocated, and compare the ledgers with what was confirmed.

    Args:
        url: The database.
        count: How many experiments ask for a budget.
        closed: How many of those that have one are closed again.
        kills: How many processes are killed meanwhile.
        seed: Of the moments to kill at.
        processes: How many processes ask.
        threads: How many requests each has in flight.
        buckets: How many buckets a layer has, for each of which two of the experiments ask.
    """
    random, everybody = Random(seed), count - 2 * buckets  # noqa: S311 (moments to kill at)
    affordable = everybody * 7 // 10
    cap = PRICE.epsilon * (affordable + (buckets > 0) + 0.5)
    layers = {LAYER: dpc.Layer("bucket", buckets)} if buckets else None
    population = dpc.Population.create(url, NAME, dpc.Budget(epsilon=round(cap, 6)), layers=layers)
    if buckets:  # so that the others find the cost of the layer charged already
        population.allocate("bucket-0-0", PRICE, as_of=AS_OF, layer=LAYER, buckets=[0])
    names = [f"experiment-{place}" for place in range(everybody)]
    names += [f"bucket-{place}-{rival}" for place in range(buckets) for rival in range(2)]
    random.shuffle(names)
    begun = time.perf_counter()
    answers, killed = with_kills(url, allocate, names, processes, threads, kills, random)
    seconds = time.perf_counter() - begun
    population = dpc.Population(url, NAME)
    population.verify()
    experiments = population.experiments()
    there = [each.name for each in experiments]
    held = [bucket for each in experiments if each.claim for bucket in each.claim.buckets]
    confirmed = {name for name, answer in answers.items() if answer == "allocated"}
    over_cap = population.allocated.epsilon > population.budget.epsilon
    closing = sorted(confirmed)[:closed]
    returns, killed_closing = with_kills(url, spend_and_close, closing, processes, threads, kills // 4, random)
    population.verify()
    after = population.experiments()
    price, spent = (Fraction(str(amount)) for amount in (PRICE.epsilon, SPENT.epsilon))
    # By person: experiments on everybody add up, and of the layer's each person is in one.
    costs = {name: spent if name in closing else price for name in confirmed}
    costliest = max((cost for name, cost in costs.items() if name.startswith("bucket")), default=Fraction(0))
    expected = sum(cost for name, cost in costs.items() if not name.startswith("bucket")) + costliest
    ledgers = [dpc.Ledger(f"{url}?ledger={NAME}/{name}") for name in closing[:20]]
    layered = {
        "buckets": buckets,
        "buckets_of_two": len(held) - len(set(held)),
        "buckets_of_none": buckets - len(set(held)),
        "buckets_taken": sum(answer == "taken" for answer in answers.values()),
    }
    return {
        "requests": count,
        "in_flight_at_once": processes * threads,
        "processes_killed": killed,
        "affordable": affordable + buckets,
        "allocated": len(there),
        "allocated_twice": len(there) - len(set(there)),
        "confirmed_and_lost": len(confirmed - set(there)),
        "allocated_and_not_confirmed": len(set(there) - confirmed),
        "not_answered": len(set(names) - set(answers)),
        "over_cap": over_cap or population.allocated.epsilon > population.budget.epsilon,
        "requests_a_second": round(count / seconds, 1),
        "closed": len(returns),
        "processes_killed_while_closing": killed_closing,
        "allocated_after_closing": population.allocated.epsilon,
        "allocated_after_closing_is_exact": population.allocated.epsilon == float(expected),
        "closed_without_record": len(set(closing) - {each.name for each in after if each.returned}),
        "ledgers_that_spent_another_amount": sum(ledger.spent.epsilon != SPENT.epsilon for ledger in ledgers),
        **(layered if buckets else {}),
    }


def failures(found: Mapping[str, object]) -> list[str]:
    """Return what should not have happened."""
    zeros: tuple[str, ...] = (
        "allocated_twice",
        "confirmed_and_lost",
        "allocated_and_not_confirmed",
        "not_answered",
        "over_cap",
    )
    zeros += ("closed_without_record", "ledgers_that_spent_another_amount", "buckets_of_two", "buckets_of_none")
    wrong = [name for name in zeros if found.get(name)]
    wrong += ["allocated"] * (found["allocated"] != found["affordable"])
    return wrong + ["allocated_after_closing"] * (not found["allocated_after_closing_is_exact"])


@contextmanager
def fresh_place() -> Iterator[str]:
    if VARIABLE in os.environ:
        with fresh_database() as url:
            yield url
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{Path(folder) / 'population.db'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000, help="experiments that ask for a budget")
    parser.add_argument("--closed", type=int, default=100, help="experiments that are closed again")
    parser.add_argument("--kills", type=int, default=60, help="processes that are killed")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--buckets", type=int, default=0, help="of a layer, for each of which two experiments ask")
    parser.add_argument("--threads", type=int, default=5, help="requests in flight in each process")
    parser.add_argument("--seed", type=int, default=0, help="of the moments to kill at")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    with fresh_place() as url:
        found = measure(
            url,
            chosen.requests,
            chosen.closed,
            chosen.kills,
            chosen.seed,
            chosen.processes,
            chosen.threads,
            chosen.buckets,
        )
        found = {"database": url.partition(":")[0].partition("+")[0], **found}
    print(
        json.dumps(found, indent=1) if chosen.json else "\n".join(f"{name}: {value}" for name, value in found.items())
    )
    sys.exit(bool(failures(found)))


if __name__ == "__main__":
    main()
