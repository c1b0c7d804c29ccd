"""Coverage, width and refusals of intervals on realistic tables, with a vault's answers and noise, and no ledger.

`python -m benchmarks.realistic --kind O B K --n 5000 20000 --runs 400 --publish`
"""

import argparse
import json
import multiprocessing
from pathlib import Path

from benchmarks.progress import progress
from benchmarks.realistic.runs import DELTA, EPSILON, ESTIMATORS, simulate, summary
from benchmarks.realistic.tables import KINDS

RESULTS = Path(__file__).parent.parent / "results" / "realistic.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=["O", "B", "K"])
    parser.add_argument("--n", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--estimator", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--delta", type=float, default=DELTA, help="an estimator takes 0 where that is narrower")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help="write the cells into the results of the documentation")
    parser.add_argument("--result", type=Path, default=Path("realistic.unpublished.json"))
    chosen = parser.parse_args()
    file = RESULTS if chosen.publish else chosen.result
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in chosen.kind:
        for n in chosen.n:
            tasks = [
                (name, n, run, tuple(chosen.estimator), chosen.epsilon, chosen.delta) for run in range(chosen.runs)
            ]
            with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
                done = list(progress(pool.imap(simulate, tasks, chunksize=5), len(tasks), f"{name} {n}"))
            for each in done[0]:
                cell = summary([run[each] for run in done])
                results.setdefault(f"{name} {n}", {})[each] = cell
                print(
                    f"{name} {n:>6} {each:25}", "  ".join(f"{key} {value}" for key, value in cell.items()), flush=True
                )
            file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
