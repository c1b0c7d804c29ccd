"""The tables of the page on realistic tables, from stored results."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.realistic.tables import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"
_BEGIN, _END = "<!-- results begin -->", "<!-- results end -->"

Results = Mapping[str, Mapping[str, Mapping[str, float]]]


def page(results: Results, text: str) -> str:
    """Return the page's text with its tables written afresh."""
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    return before + _BEGIN + "\n\n" + "\n".join(_tables(results)) + "\n" + _END + after


def _tables(results: Results) -> Iterator[str]:
    for at in sorted(results, key=lambda at: (list(KINDS).index(at.split()[0]), int(at.split()[1]))):
        name, n = at.split()
        cells = results[at]
        reference = cells["AIPW without privacy"]["half_width"]
        runs = min(int(cell["runs"]) for cell in cells.values())
        yield f"### {name}, {int(n):,} units\n"
        yield f"{KINDS[name].about[0].upper()}{KINDS[name].about[1:]}. {runs} runs.\n"
        yield (
            "| estimator | intervals given, % | coverage, % | bias / sd | half width / ideal | standard error / sd "
            "| half width / AIPW without privacy | planned / realised half width | refused: planned, real, % |"
        )
        yield "|---|---|---|---|---|---|---|---|---|"
        for estimator, cell in cells.items():
            plan = cell.get("planned_half_width")
            refused, coverage = 100 * (1 - cell["given"]), cell.get("coverage")
            covered = "none" if coverage is None else f"{100 * coverage:.1f}"
            yield (
                f"| {estimator} | {100 * cell['given']:.0f} | {covered} | {cell['bias_over_sd']:.2f} "
                f"| {cell['half_width_over_ideal']:.2f} | {cell['standard_error_over_sd']:.2f} "
                f"| {cell['half_width'] / reference:.2f} | "
                + (
                    f"{plan / cell['half_width']:.2f} | {100 * cell['planned_refusals']:.0f}, {refused:.0f} |"
                    if plan is not None
                    else "| |"
                )
            )
        yield ""
