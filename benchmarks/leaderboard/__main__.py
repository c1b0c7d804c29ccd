"""The command: `python -m benchmarks.leaderboard --help`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy.summary import printed
from benchmarks.data.files import add_data_option
from benchmarks.leaderboard.contestants import GROUPS
from benchmarks.leaderboard.figures import draw
from benchmarks.leaderboard.page import publish
from benchmarks.leaderboard.suite import PLANS, leaderboard, tables_for


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--datasets", nargs="+", choices=sorted(PLANS), help="all, if left out")
    parser.add_argument("--results", default="leaderboard", help="a folder that keeps the leaderboard's runs")
    parser.add_argument("--epsilons", nargs="+", type=float, help="the leaderboard's plan, if left out")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS, help="whose estimators to run")
    parser.add_argument("--repeats", type=int, default=50, help="estimates for each setting")
    parser.add_argument("--quick", action="store_true", help="one repeat, and done")
    parser.add_argument("--workers", type=int, default=2, help="processes; 0 for none but this one")
    parser.add_argument("--figures", help="a folder to draw figures into")
    parser.add_argument("--publish", action="store_true", help="put the leaderboard's run into the documentation")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(given)
    chosen.data = str(chosen.data) if chosen.data else None
    known = tables_for(chosen.data)
    names = chosen.datasets or known
    if not set(names) <= set(known):
        parser.error(f"this suite has {', '.join(known)}" + ("" if chosen.data else ", and more with --data FOLDER"))
    if chosen.publish and chosen.quick:
        parser.error("a quick run is not published")
    result = leaderboard(
        names,
        chosen.data,
        chosen.results,
        repeats=1 if chosen.quick else chosen.repeats,
        workers=chosen.workers,
        epsilons=chosen.epsilons,
        groups=chosen.groups,
    )
    if chosen.publish:
        publish(result)
    if chosen.figures:
        draw(result, Path(chosen.figures))
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for title in ("lines", "choices"):
        if result[title]:
            print(printed(result[title], title), end="\n\n")


if __name__ == "__main__":
    main()
