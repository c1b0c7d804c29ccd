"""The tables and the figure of docs/bakeoff.md, from stored results."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks.bakeoff.methods import PEERS
from benchmarks.bakeoff.runs import NONE, OURS
from benchmarks.bakeoff.tables import SETTINGS
from benchmarks.pictures import BLUE, GREEN, GREY, INK, PURPLE, STYLE, VERMILLION, keep

ROOT = Path(__file__).parents[2]
PAGE, FIGURE = ROOT / "docs" / "bakeoff.md", ROOT / "docs" / "figures" / "bakeoff.svg"
START, END = "<!-- results: begin -->", "<!-- results: end -->"

_LOOKS = {
    OURS: (BLUE, "o"),
    "parametric bootstrap": (INK, "s"),
    "GDP bootstrap": (GREEN, "^"),
    "little bootstraps, mean": (PURPLE, "D"),
    "little bootstraps, median": (VERMILLION, "v"),
    "Evans and King": (BLUE, "P"),
    NONE: (GREY, "x"),
}
"""A colour, and a marker of its own, for each."""


def table(results: Mapping[str, Any]) -> str:
    """Return coverage and width of every method at each setting's largest n, as a table of markdown."""
    cells = {}
    for name in SETTINGS:
        n = max(int(key.split()[1]) for key in results["cells"] if key.split()[0] == name)
        cells[name] = results["cells"][f"{name} {n}"]
    lines = [f"| | {' | '.join(cells)} |", f"|{'---|' * (len(cells) + 1)}"]
    for key in (OURS, *PEERS, NONE):
        shown = [_cell(of[key]) if key in of else "" for of in cells.values()]
        lines.append(f"| {'**dpcausal**' if key == OURS else key} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _cell(cell: Mapping[str, float]) -> str:
    return "no interval" if cell["given"] == 0 else f"{100 * cell['coverage']:.0f} %, {cell['width']:.2f}"


def methods() -> str:
    """Return who the peers are, as a table of markdown."""
    lines = ["| method | published by | guarantee here, for replacing one record |", "|---|---|---|"]
    lines += [f"| {key} | {peer.label} | {peer.guarantee} |" for key, peer in PEERS.items()]
    return "\n".join(lines)


def simplified() -> str:
    """Return how the peers are simpler than in print, as CSV."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["method", "published by", "simpler than in print"])
    rows.writerows([key, peer.label, peer.simplified] for key, peer in PEERS.items())
    return text.getvalue()


def generated(results: Mapping[str, Any]) -> str:
    """Return all that is generated of the page."""
    return f"{START}\n\n{table(results)}\n\n## The methods\n\n{methods()}\n\n{END}"


def write(results: Mapping[str, Any]) -> None:
    """Write the results into the page, and draw its figure."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    PAGE.write_text(before + generated(results) + after, encoding="utf-8")
    PAGE.with_suffix(".csv").write_text(simplified(), encoding="utf-8")
    draw(results, FIGURE)


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draw coverage against half width, one panel for each kind of table, at the largest n."""
    mpl.use("Agg")
    with plt.rc_context(STYLE):
        names = [name for name in SETTINGS if any(key.split()[0] == name for key in results["cells"])]
        figure, panels = plt.subplots(1, len(names), figsize=(3.1 * len(names), 4.2), sharey=True, squeeze=False)
        for axes, name in zip(panels[0], names, strict=True):
            n = max(int(key.split()[1]) for key in results["cells"] if key.split()[0] == name)
            axes.axhspan(93, 97, color="#dddddd", zorder=0)
            for key, cell in results["cells"][f"{name} {n}"].items():
                if cell["given"] == 0:
                    continue
                colour, marker = _LOOKS[key]
                size, order = (6, 4) if key == OURS else (10, 3)  # ours on top of those that are as good
                axes.plot(
                    cell["width"],
                    100 * cell["coverage"],
                    marker,
                    color=colour,
                    markersize=size,
                    zorder=order,
                    label=key,
                )
            axes.set_xscale("log")
            axes.set_title(f"{name}, n {n:,}")
            axes.set_xlabel("half width over that\nwithout privacy")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "25" else "")
        panels[0][0].set_ylabel("covers, %")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
        figure.tight_layout(rect=(0, 0.14, 1, 1))
        keep(figure, path)
        plt.close(figure)
