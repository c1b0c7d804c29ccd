"""The common style of all figures, and their rendering."""

from io import BytesIO
from typing import TYPE_CHECKING

from dpcausal.errors import require_library
from dpcausal.report.section import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

CONTROL, TREATED, PALE = "#b35806", "#2166ac", "#aac7e2"
"""The colours of the arms, also for the colour-blind, and of what an effect may be."""

_MAX_LENGTH = 40


def blank_figure(width: float, height: float) -> "tuple[Figure, Axes]":
    """Return an empty figure of this size in inches, and its axes."""
    require_library("matplotlib", "draws figures", "plots")
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def thousands(axis: "Axis") -> None:
    """Write the numbers of an axis with commas between thousands."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def render(title: str, figure: "Figure", alt: str) -> Picture:
    """Render a figure as an SVG image, reproducibly to the byte."""
    from matplotlib import rc_context  # noqa: PLC0415 (an extra)

    image = BytesIO()
    with rc_context({"svg.hashsalt": "dpcausal"}):
        figure.savefig(image, format="svg", metadata={"Date": None})
    return Picture(title, image.getvalue(), alt)


def shorten(name: str) -> str:
    """Shorten a name to fit beside an axis, and replace characters that cannot be drawn."""
    line = "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(name.split()))
    return line if len(line) <= _MAX_LENGTH else line[: _MAX_LENGTH - 1] + "…"
