"""Every engine against Python, on random schemas: `python -m checks.engines --schemas 300`.

For each schema all examples of all queries are asked, on a hostile table, and every integer that the engine adds up is
compared for every unit. PostgreSQL is the server that DPCAUSAL_POSTGRES names.
"""

import argparse
import functools
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict

import pyarrow as pa

from dpcausal.schema.schema import Schema
from dpcausal.vault.engines import Engine
from tests.support.conformance.schemas import random_case
from tests.support.conformance.sums import OpenEngine, compare
from tests.support.open_engines import OPENED, Counting, NotHereError

COLUMNS = {
    "schemas": "schemas",
    "examples": "examples",
    "expressions": "expressions",
    "units": "units",
    "integers": "integers compared",
    "streamed": "of streamed rows",
    "differing": "differing",
    "failing": "errors that a cell decides",
    "broken": "errors at any cell",
    "refused": "schemas refused by type",
}


def sweep(
    open_engine: OpenEngine, places: Sequence[int], minutes: float, report: Callable[[str], None]
) -> Counter[str]:
    """Compare an engine with Python on the cases at some places; none is begun after so many minutes."""
    counts: Counter[str] = Counter()

    def opened(table: pa.Table, schema: Schema) -> Engine:
        return Counting(open_engine(table, schema), counts)

    end = time.monotonic() + 60 * minutes
    for place in places:
        if time.monotonic() > end:
            break
        try:
            compared = compare(opened, random_case(place))
        except Exception as error:  # noqa: BLE001 (the sweep goes on)
            counts["broken"] += 1
            report(f"case {place}: {type(error).__name__}: {error}")
            continue
        counts["schemas"] += 1
        counts["integers"] += compared.expressions * compared.units
        counts.update({name: int(value) for name, value in asdict(compared).items() if name != "found"})
        for line in compared.found:
            report(line)
    return counts


def main() -> None:
    """Print a line for each engine, and fail if one differs from Python."""
    parser = argparse.ArgumentParser(prog="python -m checks.engines", description=__doc__)
    parser.add_argument("--schemas", type=int, default=300, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the place of the first")
    parser.add_argument("--engines", nargs="+", choices=OPENED, default=list(OPENED))
    parser.add_argument("--minutes", type=float, default=math.inf, help="for each engine, after which no case is begun")
    asked = parser.parse_args()
    lines, wrong = [], False
    for name in asked.engines:
        try:
            with OPENED[name]() as open_engine:
                places = range(asked.first, asked.first + asked.schemas)
                report = functools.partial(print, f"{name}:", flush=True)
                counts = sweep(open_engine, places, asked.minutes, report)
        except NotHereError as error:
            print(f"{name}: not run: {error}", flush=True)
            continue
        lines.append(f"| {name} | {' | '.join(f'{counts[each]:,}' for each in COLUMNS)} |")
        wrong |= any(counts[each] for each in ("differing", "failing", "broken"))
    print("", f"| engine | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}", *lines, sep="\n")
    sys.exit("engines: they differ from Python" if wrong else None)


if __name__ == "__main__":
    main()
