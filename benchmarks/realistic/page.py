"""The tables of the page on realistic tables, from stored results, and all of them as CSV."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.papers.paper import written
from benchmarks.realistic.runs import ESTIMATORS
from benchmarks.realistic.tables import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"
CSV = PAGE.with_suffix(".csv")
_REFERENCE = "AIPW without privacy"
_NUMBERS = (
    *("runs", "given", "coverage", "bias_over_sd", "half_width_over_ideal", "standard_error_over_sd", "half_width"),
    *("planned_half_width", "planned_refusals"),
)

Cell = Mapping[str, float]
Results = Mapping[str, Mapping[str, Cell]]
"""Summaries by table with its size, and by estimator."""


def page(results: Results, text: str) -> str:
    """Return the page's text with its table written afresh."""

    def shown(cell: Cell, reference: Cell) -> str:
        refused = "" if cell["given"] > 0.995 else f" ({100 * cell['given']:.0f})"
        return f"{100 * cell['coverage']:.1f}{refused}, {cell['half_width'] / reference['half_width']:.2f}"

    return written(text, {"coverage": _table(results, shown)})


def as_csv(results: Results) -> str:
    """Return a line for each table, size and estimator, a cell without a value empty."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(["table", "units", "estimator", *_NUMBERS])
    for at in _ordered(results):
        for estimator, cell in results[at].items():
            writer.writerow([*at.split(), estimator, *(cell.get(name) for name in _NUMBERS)])
    return held.getvalue()


def _ordered(results: Results) -> list[str]:
    return sorted(results, key=lambda at: (list(KINDS).index(at.split()[0]), int(at.split()[1])))


def _table(results: Results, show: Callable[[Cell, Cell], str]) -> Iterator[str]:
    """Yield a line for each table and a column for each estimator."""
    there = {estimator for cells in results.values() for estimator in cells}
    columns = [each for each in (_REFERENCE, *ESTIMATORS) if each in there]
    yield f"| table | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for at in _ordered(results):
        cells, (name, n) = results[at], at.split()
        shown = (show(cells[each], cells[_REFERENCE]) if each in cells else "" for each in columns)
        yield f"| {name}, {int(n):,} | {' | '.join(shown)} |"
