"""The command: `python -m benchmarks.federation_year --help`. It needs libfaketime, and the history of the checkout."""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from benchmarks.federation_year.clock import Clock, restart_with_clock
from benchmarks.federation_year.keepers import COMMIT
from benchmarks.federation_year.year import Year

RESULT = Path(__file__).parents[1] / "results" / "federation_year.json"


def main() -> None:
    """Live through a year, and store what was found; a book that does not balance is an error, and stores nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation_year", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--publish", action="store_true", help="write into the results that the documentation reports")
    chosen = parser.parse_args()
    restart_with_clock()
    began, clock = time.monotonic(), Clock()
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = Year(Path(folder), clock, chosen.seed).run()
    finally:
        clock.remove()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found |= {
        "seed": chosen.seed,
        "older": COMMIT,
        "seconds": round(time.monotonic() - began),
        "processor_seconds": round(sum(each.ru_utime + each.ru_stime for each in used)),
    }
    text = f"{json.dumps(found, indent=1)}\n"
    if chosen.publish:
        RESULT.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
