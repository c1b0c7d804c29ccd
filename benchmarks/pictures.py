"""How figures look, and how they are kept."""

from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

STYLE: dict[Any, Any] = {"font.size": 11, "axes.titlesize": 12, "axes.spines.top": False, "axes.spines.right": False}


def keep(figure: Figure, path: Path, dpi: int = 110) -> None:
    """Save a figure as a PNG file of few colours, which is a third of the size."""
    held = BytesIO()
    figure.savefig(held, dpi=dpi)
    Image.open(held).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
