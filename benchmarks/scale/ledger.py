"""What a long ledger costs to open, use, verify and add up: `python -m benchmarks.scale.ledger --json`.

Ledgers in SQLite files, the longest of 100,000 entries. Opening one and asking it should cost the same whatever its
length; what reads all of it should cost in proportion.
"""

import argparse
import itertools
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import dpcausal as dpc
from benchmarks.progress import progress
from dpcausal.ledger.accounting import tight_epsilon
from dpcausal.ledger.chain import Entry
from tests.support.long_ledger import short_ledger, write_long_ledger

DELTA = 1e-6
SHORTER = (1_000, 10_000)


def ask(ledger: dpc.Ledger, request: str, grant: Entry, release: Entry) -> None:
    """All that a ledger does for one question, from the search for an answer to its keeping."""
    ledger.stored(request)
    ledger.grant(request, grant.events, grant.content["question"])
    ledger.debit(request)
    ledger.store(request, json.dumps(release.content["release"]))


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least of several times: whatever else the machine does can only add."""

    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return min(once() for _ in range(rounds))


def peak_megabytes(work: Callable[[], object]) -> float:
    """Return the most memory that Python held during the work beyond what it held before."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def measure_one(entries: int) -> dict[str, float]:
    """Return the figures of a ledger of so many entries."""
    _, grant, _, release = short_ledger()
    tight_epsilon(grant.events, DELTA)  # loads what it needs, which takes a second
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'ledger.db'}"
        write_long_ledger(url, entries)
        ledger, questions = dpc.Ledger(url), itertools.count()
        return {
            "entries": entries,
            "seconds_to_open": seconds(lambda: dpc.Ledger(url), 9),
            "megabytes_to_open": peak_megabytes(lambda: dpc.Ledger(url)),
            "seconds_to_ask": seconds(lambda: ask(ledger, f"question {next(questions)}", grant, release), 9),
            "seconds_to_verify": seconds(ledger.verify, 3),
            "megabytes_to_verify": peak_megabytes(ledger.verify),
            "seconds_to_compose": seconds(lambda: tight_epsilon(grant.events * (entries // 3), DELTA), 3),
            "seconds_to_verify_and_compose": seconds(lambda: ledger.tight_epsilon(DELTA), 3),
        }


def measure(entries: int = 100_000) -> dict[str, object]:
    """Return the figures of a ledger of so many entries and of shorter ones, and the longest's over the shortest's.

    Whole thousands of entries are the dearest to open: the last checkpoint is as far away as it can be.
    """
    lengths = [*SHORTER, entries]
    table = [measure_one(length) for length in progress(lengths, len(lengths), "ledgers")]
    first, last = table[0], table[-1]
    return {"ledgers": table, "longest_to_shortest": {name: round(last[name] / first[name], 2) for name in first}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000, help="of the longest ledger")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result = measure(chosen.entries)
    print(json.dumps(result, indent=1) if chosen.json else "\n".join(f"{name}: {of}" for name, of in result.items()))


if __name__ == "__main__":
    main()
