"""The command: `python -m benchmarks.accuracy --help`."""

import argparse
import json
from collections.abc import Sequence

from benchmarks.accuracy.summary import printed
from benchmarks.leaderboard.suite import PLANS, leaderboard, tables_for


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--suite", choices=["leaderboard"], default="leaderboard")
    parser.add_argument("--data", help="the folder that holds ihdp, lalonde, acic2016 and the leaderboard's other sets")
    parser.add_argument("--datasets", nargs="+", choices=sorted(PLANS), help="all, if left out")
    parser.add_argument("--results", default="leaderboard", help="a folder that keeps the leaderboard's runs")
    parser.add_argument("--repeats", type=int, default=50, help="estimates for each setting")
    parser.add_argument("--quick", action="store_true", help="one repeat, and done")
    parser.add_argument("--workers", type=int, default=2, help="processes; 0 for none but this one")
    parser.add_argument("--figures", help="a folder to draw figures into")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(given)
    known = tables_for(chosen.data)
    names = chosen.datasets or known
    if not set(names) <= set(known):
        parser.error(f"this suite has {', '.join(known)}" + ("" if chosen.data else ", and more with --data FOLDER"))
    result = leaderboard(
        names,
        chosen.data,
        chosen.results,
        repeats=1 if chosen.quick else chosen.repeats,
        workers=chosen.workers,
        figures=chosen.figures,
    )
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for title in ("lines", "choices"):
        if result[title]:
            print(printed(result[title], title), end="\n\n")


if __name__ == "__main__":
    main()
