"""The figure of an interval: its sources of uncertainty, the smallest worthwhile effect, and the planned interval.

One inline SVG without scripts. It needs no colour to be read: the parts also differ in their texture. It takes its
colours from the text around it, so it suits light and dark pages and notebooks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dpcausal.page.axis import Axis
from dpcausal.page.html_page import html_text
from dpcausal.utils.text import format_number

ACCENT = "var(--accent,#00897b)"
PARTS = ("sampling error", "differences between sites", "privacy noise")
_FILLS = {PARTS[0]: ACCENT, PARTS[1]: "url(#dpc-dots)", PARTS[2]: "url(#dpc-stripes)"}
_PATTERNS = (
    '<defs><pattern id="dpc-stripes" width="6" height="6" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><rect width="2.4" height="6" style="fill:{ACCENT}"/></pattern>'
    '<pattern id="dpc-dots" width="5" height="5" patternUnits="userSpaceOnUse">'
    f'<circle cx="2.5" cy="2.5" r="1.4" style="fill:{ACCENT}"/></pattern></defs>'
)
_BAR, _TOP = 20, 19
_FONT = 'style="font:13px system-ui,sans-serif;overflow:visible"'
HALO = "paint-order:stroke;stroke:var(--paper,transparent);stroke-width:5px"
"""Keeps text legible where it crosses a line, on pages with a known background."""


@dataclass(frozen=True, kw_only=True)
class IntervalFigure:
    """What the figure shows.

    Attributes:
        estimate: The estimate; None where only the width is known.
        half_widths: For each source of uncertainty in `PARTS` that there is, the half-width of an interval for it and
            for those before it. The last is that of the whole interval.
        smallest: The smallest worthwhile effect; 0 if none was given.
    """

    interval: tuple[float, float]
    half_widths: dict[str, float]
    label: str
    alt: str
    estimate: float | None = None
    smallest: float = 0.0
    planned: float | None = None
    planned_label: str = ""
    axis_title: str = ""

    def svg(self) -> str:
        """Return the figure as an inline SVG."""
        low, high = self.interval
        shown = [low, high, 0.0, self.smallest, -self.smallest]
        middle = self.estimate or 0.0
        shown += [] if self.planned is None else [middle - self.planned, middle + self.planned]
        axis = Axis.around(shown)
        bottom = 58 if self.planned is None else 106
        height = bottom + (44 if self.axis_title else 24)
        panels = ((_TOP, bottom),) if self.planned is None else ((_TOP, 54), (79, bottom))  # no line crosses a label
        parts = [_PATTERNS]
        for top, end in panels:
            parts += [*self._threshold(axis, top, end), axis.vertical(0.0, end, top=top)]
        parts += [f'<text x="0" y="14" font-weight="600" fill="currentColor">{html_text(self.label)}</text>']
        parts += [*self._bars(axis, 26), *self._planned(axis, 92), axis.svg(bottom, self.axis_title)]
        return (
            f'<svg width="100%" height="{height}" role="img" aria-label="{html_text(self.alt)}" {_FONT}>'
            f"{''.join(parts)}</svg>"
        )

    def _threshold(self, axis: Axis, top: float, bottom: float) -> Iterator[str]:
        """Yield the range of effects that are not worthwhile, with its limits."""
        if self.smallest:
            start, wide = axis.at(-self.smallest), axis.length(-self.smallest, self.smallest)
            box = f'x="{start}" width="{wide}" y="{top}" height="{bottom - top}"'
            yield f'<rect {box} fill="currentColor" fill-opacity=".09"/>'
            yield axis.vertical(-self.smallest, bottom, top=top, dashed=True)
            yield axis.vertical(self.smallest, bottom, top=top, dashed=True)

    def _bars(self, axis: Axis, y: float) -> Iterator[str]:
        """Yield the interval, divided into its sources of uncertainty from the middle outwards."""
        low, high = self.interval
        middle = (low + high) / 2 if self.estimate is None else self.estimate
        whole = max(self.half_widths.values(), default=0.0)
        left = right = middle
        for part, half in self.half_widths.items():
            share = half / whole if whole else 0.0
            lower, upper = middle - share * (middle - low), middle + share * (high - middle)
            ends = ((lower, upper),) if left == right else ((lower, left), (right, upper))
            for start, end in ends:
                yield (
                    f'<rect x="{axis.at(start)}" width="{axis.length(start, end)}" y="{y}" height="{_BAR}" '
                    f'style="fill:{_FILLS[part]};stroke:{ACCENT}" stroke-width="1.5"/>'
                )
            left, right = lower, upper
        if self.estimate is not None:
            yield (
                f'<circle cx="{axis.at(self.estimate)}" cy="{y + _BAR / 2}" r="7" fill="currentColor" '
                'style="stroke:var(--paper,#fff)" stroke-width="2"/>'
            )

    def _planned(self, axis: Axis, y: float) -> Iterator[str]:
        if self.planned is None:
            return
        middle = self.estimate or 0.0
        low, high = axis.at(middle - self.planned), axis.at(middle + self.planned)
        yield f'<text x="0" y="{y - 19}" fill="currentColor">{html_text(self.planned_label)}</text>'
        yield f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="currentColor" stroke-width="2"/>'
        for end in (low, high):
            yield f'<line x1="{end}" x2="{end}" y1="{y - 6}" y2="{y + 6}" stroke="currentColor" stroke-width="2"/>'


def named_widths(widths: tuple[float, float, float]) -> dict[str, float]:
    """Return half-widths by source, without sources that add nothing.

    Example:
        >>> named_widths((1.0, 1.0, 1.5))
        {'sampling error': 1.0, 'privacy noise': 1.5}
    """
    named, before = {}, 0.0
    for part, width in zip(PARTS, widths, strict=True):
        if width > before:
            named[part] = width
        before = max(before, width)
    return named


def notebook_figure(
    estimate: float | None, interval: tuple[float, float] | None, widths: tuple[float, float, float]
) -> str:
    """Return a small figure of an interval for a notebook; nothing where there is no finite interval."""
    if interval is None or not all(map(math.isfinite, interval)):
        return ""
    low, high = (format_number(end) for end in interval)
    half = format_number((interval[1] - interval[0]) / 2)
    label = f"expect ± {half}" if estimate is None else f"{format_number(estimate)} ({low} to {high})"
    shown = interval if estimate is not None else (-widths[-1], widths[-1])
    named = named_widths(widths)
    alt = f"95 % interval: {label}; half-widths {', '.join(f'{name} {format_number(named[name])}' for name in named)}"
    figure = IntervalFigure(
        interval=shown, half_widths=named, label=f"95 % interval: {label}", alt=alt, estimate=estimate
    )
    keys = legend(named, "").replace('class="key"', 'style="display:inline-block;margin-right:1.2em"')
    keys = keys.replace("<svg ", '<svg style="display:inline-block;margin-right:.4em" ')
    return f'<div style="max-width:36em">{figure.svg()}<div style="font-size:12px">{keys}</div></div>'


def part_name(part: str, *, biased: bool) -> str:
    """Return what a part of the interval is for; a bound on the bias is in the first of them."""
    return "sampling error and bias bound" if biased and part == PARTS[0] else part


def legend(parts: dict[str, float], smallest: str, *, biased: bool = False) -> str:
    """Return the key to the figure: a small sample of each texture, with its name."""
    keys = [(_swatch(_FILLS[part]), part_name(part, biased=biased)) for part in parts]
    if smallest:
        keys.append((_DASHES, f"smallest worthwhile effect, ± {smallest}"))
    return "".join(f'<span class="key">{swatch}{html_text(name)}</span>' for swatch, name in keys)


def _swatch(fill: str) -> str:
    rect = f'<rect x="1" y="1" width="22" height="10" style="fill:{fill};stroke:{ACCENT}"/>'
    return f'<svg width="24" height="12" aria-hidden="true">{rect}</svg>'


_DASHES = (
    '<svg width="24" height="12" aria-hidden="true"><rect width="24" height="12" fill="currentColor" '
    'fill-opacity=".09"/><line x1="2" x2="2" y1="0" y2="12" stroke="currentColor" stroke-width="2" '
    'stroke-dasharray="5 4"/><line x1="22" x2="22" y1="0" y2="12" stroke="currentColor" stroke-width="2" '
    'stroke-dasharray="5 4"/></svg>'
)
