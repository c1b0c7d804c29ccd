"""Every engine against Python, on random schemas: `python -m checks.engines --schemas 300`.

For each schema all examples of all queries are asked, on a hostile table, and every integer that the engine adds up is
compared for every unit. PostgreSQL is the server that DPCAUSAL_POSTGRES names.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from dpcausal.schema import Schema
from dpcausal.testing.schemas import random_case
from dpcausal.testing.sums import OpenEngine, compare
from dpcausal.vault.engines import Engine, ExactInts
from tests.support.open_engines import OPENED, NotHereError

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


class Counting:
    """An engine that counts the sums which a warehouse did not add up itself."""

    def __init__(self, engine: Engine, counts: Counter[str]) -> None:
        self.fold, self.collect = engine.fold, engine.collect
        self._engine, self._counts = engine, counts

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of rows; see `Engine.aggregate`."""
        streamed: Any = getattr(self._engine, "streamed", None)
        if streamed is None:
            return self._engine.aggregate(cells, sums, whole=whole)
        passes: Callable[[], Any] = streamed._passes
        read: list[int] = []

        def counted() -> Any:
            read.append(1)
            return passes()

        streamed._passes = counted
        try:
            found = self._engine.aggregate(cells, sums, whole=whole)
        finally:
            streamed._passes = passes
        self._counts["streamed"] += found.size if read else 0
        return found


@dataclass
class Swept:
    """What was compared on one engine, and what was found."""

    counts: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


def sweep(open_engine: OpenEngine, places: Sequence[int], report: Callable[[str], None]) -> Swept:
    """Compare an engine with Python on the cases at some places."""
    swept = Swept()

    def opened(table: pa.Table, schema: Schema) -> Engine:
        return Counting(open_engine(table, schema), swept.counts)

    for place in places:
        try:
            compared = compare(opened, random_case(place))
        except Exception as error:  # noqa: BLE001 (the sweep goes on)
            swept.counts["broken"] += 1
            report(f"case {place}: {type(error).__name__}: {error}")
            continue
        swept.counts["schemas"] += 1
        swept.counts["integers"] += compared.expressions * compared.units
        swept.counts.update({name: int(value) for name, value in asdict(compared).items() if name != "found"})
        for line in compared.found:
            report(line)
    return swept


def main() -> None:
    """Print a line for each engine, and fail if one differs from Python."""
    parser = argparse.ArgumentParser(prog="python -m checks.engines", description=__doc__)
    parser.add_argument("--schemas", type=int, default=300, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the place of the first")
    parser.add_argument("--engines", nargs="+", choices=OPENED, default=list(OPENED))
    asked = parser.parse_args()
    lines, wrong = [], False
    for name in asked.engines:
        try:
            with OPENED[name]() as open_engine:
                places = range(asked.first, asked.first + asked.schemas)
                swept = sweep(open_engine, places, lambda line, name=name: print(f"{name}: {line}", flush=True))
        except NotHereError as error:
            print(f"{name}: not run: {error}", flush=True)
            continue
        lines.append(f"| {name} | {' | '.join(f'{swept.counts[each]:,}' for each in COLUMNS)} |")
        wrong |= any(swept.counts[each] for each in ("differing", "failing", "broken"))
    print("", f"| engine | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}", *lines, sep="\n")
    sys.exit("engines: they differ from Python" if wrong else None)


if __name__ == "__main__":
    main()
