"""The figure of the sites of a pooled effect: a forest plot as one inline SVG."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.page.axis import Axis
from dpcausal.page.html_page import html_text
from dpcausal.page.interval_figure import ACCENT, HALO

_STEP = 42


@dataclass(frozen=True)
class SiteLine:
    """One line of a forest plot.

    Attributes:
        weight: Its weight, which sizes its square; 0 leaves it empty. None for the pooled effect, a diamond.
    """

    label: str
    estimate: float
    low: float
    high: float
    weight: float | None


def site_svg(lines: Sequence[SiteLine], *, title: str, alt: str) -> str:
    """Return a forest plot."""
    axis = Axis.around([0.0, *(end for line in lines for end in (line.low, line.high))])
    bottom = _STEP * len(lines) + 8
    parts = [axis.vertical(0.0, bottom)]
    for place, line in enumerate(lines):
        y = _STEP * place + 30
        weight, wide = (600, 4) if line.weight is None else (400, 2)
        ends = f'x1="{axis.at(line.low)}" x2="{axis.at(line.high)}" y1="{y}" y2="{y}"'
        text = f'<text x="0" y="{y - 16}" font-weight="{weight}" fill="currentColor" style="{HALO}">'
        parts += [
            f"{text}{html_text(line.label)}</text>",
            f'<line {ends} style="stroke:{ACCENT}" stroke-width="{wide}"/>',
            f'<svg x="{axis.at(line.estimate)}" y="{y}" style="overflow:visible">{_mark(line.weight)}</svg>',
        ]
    return (
        f'<svg width="100%" height="{bottom + 44}" role="img" aria-label="{html_text(alt)}" '
        f'style="font:13px system-ui,sans-serif;overflow:visible">'
        f"{''.join(parts)}{axis.svg(bottom, title)}</svg>"
    )


def _mark(weight: float | None) -> str:
    if weight is None:
        return '<path d="M-9 0 0 -8 9 0 0 8Z" fill="currentColor"/>'
    half = 3 + 5 * weight**0.5
    fill = ACCENT if weight else "var(--paper,#fff)"
    return (
        f'<rect x="{-half:.1f}" y="{-half:.1f}" width="{2 * half:.1f}" height="{2 * half:.1f}" '
        f'style="fill:{fill};stroke:{ACCENT}" stroke-width="1.5"/>'
    )
