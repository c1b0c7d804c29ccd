"""Coverage, width and refusals of intervals on realistic tables, with a vault's answers and noise, and no ledger.

`python -m benchmarks.realistic --kind O B K --n 5000 20000 --runs 400 --publish`

With --publish, cells replace those of the documentation, and the page is written afresh.
"""

import argparse
import json
import multiprocessing

from benchmarks.parts import add_result_options, result_file
from benchmarks.progress import progress
from benchmarks.realistic.page import CSV, PAGE, as_csv, page
from benchmarks.realistic.runs import DELTA, EPSILON, ESTIMATORS, planned, simulate, summary
from benchmarks.realistic.tables import KINDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=["O", "B", "K"])
    parser.add_argument("--n", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--estimator", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--delta", type=float, default=DELTA, help="an estimator takes 0 where that is narrower")
    parser.add_argument("--workers", type=int, default=2)
    add_result_options(parser)
    chosen = parser.parse_args()
    file = result_file(parser, chosen, "realistic")
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in chosen.kind:
        for n in chosen.n:
            tasks = [
                (name, n, run, tuple(chosen.estimator), chosen.epsilon, chosen.delta) for run in range(chosen.runs)
            ]
            with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
                done = list(progress(pool.imap(simulate, tasks, chunksize=5), len(tasks), f"{name} {n}"))
            for each in done[0]:
                runs = [run[each] for run in done]
                cell = summary(runs) | planned(name, n, each, chosen.epsilon, chosen.delta)
                results.setdefault(f"{name} {n}", {})[each] = cell
                print(f"{name} {n:>6} {each:25}", "  ".join(f"{key} {cell[key]}" for key in cell), flush=True)
            file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if chosen.publish:
        PAGE.write_text(page(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        CSV.write_text(as_csv(results), encoding="utf-8")


if __name__ == "__main__":
    main()
