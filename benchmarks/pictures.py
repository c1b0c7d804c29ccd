"""How figures look, and how they are stored: as SVG files that `checks.figures` can read and turn dark.

The colours are of Okabe and Ito's palette, and each has a contrast of at least 3 to 1 on the site's light and dark
backgrounds. Series differ by marker or dashes as well, so that a figure reads in black and white.
"""

import re
from io import StringIO
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

BLUE, VERMILLION, GREEN, PURPLE, GREY, INK = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b6b6b", "#000000"
BAND = "#d3e0ea"
"""The fill of a band behind a curve."""

_NUMBER = re.compile(r"-?\d+\.\d{3,}")

STYLE: dict[Any, Any] = {"font.size": 11, "axes.titlesize": 12, "axes.spines.top": False, "axes.spines.right": False}


RENDERING: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "svg.fonttype": "none",
    "svg.hashsalt": "dpcausal",
}
"""Text stays text. `compact` names Verdana, which is as wide, where the reader has no DejaVu."""


def keep(figure: Figure, path: Path) -> None:
    """Save a figure as an SVG file without a background, the same bytes for the same figure."""
    held = StringIO()
    with rc_context(RENDERING):
        figure.savefig(held, format="svg", transparent=True, metadata={"Date": None})
    path.write_text(compact(held.getvalue()), encoding="utf-8")


def compact(svg: str) -> str:
    """Return an SVG with coordinates rounded to a hundredth of a point, without metadata, comments and indentation."""
    svg = re.sub(r"'DejaVu Sans'(?!,)", "'DejaVu Sans', Verdana, sans-serif", svg)
    svg = re.sub(r" *<metadata>.*?</metadata>\n|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    return re.sub(r'="[^"]*"', lambda attribute: _NUMBER.sub(_rounded, attribute[0]), svg)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
