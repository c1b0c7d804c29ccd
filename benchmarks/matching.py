"""What matching costs beside the sort that it starts with: `python -m benchmarks.matching --units 1000000 --json`.

CPU time of both, taken in turns in one run; medians. Scores overlap as in a usual study; limits: none, ample and tight.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.progress import progress
from dpcausal.vault.numerics.matching import matched


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(units: int, neighbours: int, rounds: int) -> list[dict[str, float]]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=units)
    arms = (generator.random(units) < 1 / (1 + np.exp(-x))).astype(np.int64)
    scores = np.rint(2**40 / (1 + np.exp(-x))).astype(np.int64)
    matched(scores[:1000], arms[:1000], neighbours, (9, 9))  # compiled now, not in the measurement
    table = []
    for limit in (units, 4 * neighbours, neighbours + 1):
        sorts, matches = [], []
        for _ in progress(range(rounds), rounds, f"limit {limit:,}"):
            sorts.append(cpu(lambda: np.argsort(scores, kind="stable")))
            matches.append(cpu(lambda limit=limit: matched(scores, arms, neighbours, (limit, limit))))  # type: ignore[misc]
        sort, match = statistics.median(sorts), statistics.median(matches)
        table.append({"units": units, "limit": limit, "sort": sort, "matching": match, "ratio": round(match / sort, 2)})
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--neighbours", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    table = measure(chosen.units, chosen.neighbours, chosen.rounds)
    print(json.dumps(table, indent=1) if chosen.json else "\n".join(map(str, table)))


if __name__ == "__main__":
    main()
