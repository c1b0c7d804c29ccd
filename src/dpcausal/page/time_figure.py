"""Figures over time: a total that grows from day to day, and counts by month.

Inline SVG without scripts, in the colours of the page around it, as `interval_figure` is.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from dpcausal.page.axis import Axis
from dpcausal.page.html_page import html_text
from dpcausal.page.interval_figure import ACCENT

_TOP, _HIGH = 34, 120
_BOTTOM = _TOP + _HIGH
_MOST_BARS = 24
_FEW_BARS, _FEW_DAYS = 8, 30


def growth_svg(days: Mapping[date, float], *, limit: float, until: date, label: str, limit_label: str) -> str:
    """Return the figure of a total over days as an inline SVG.

    Args:
        days: What was added on each day.
        limit: What the total may reach; a dashed line.
        label: The title, also for those who do not see the figure.
        until: The last day of the axis, unless something was added later.

    Example:
        >>> svg = growth_svg({date(2026, 3, 1): 1.0}, limit=2.0, until=date(2026, 3, 9), label="1 of 2",
        ...                  limit_label="budget")
        >>> svg.count("2026-0")
        2
    """
    added = sorted(days.items())
    first = min((day for day, _ in added), default=until) - timedelta(days=1)
    last = max((until, *(day for day, _ in added))) + timedelta(days=1)
    axis, whole = Axis(0.0, float((last - first).days)), max(limit, sum(days.values())) or 1.0
    parts, total = [], 0.0
    for place, (day, amount) in enumerate(added):
        before, total = total, total + amount
        end = added[place + 1][0] if place + 1 < len(added) else last
        start, wide = axis.at((day - first).days), axis.length((day - first).days, (end - first).days)
        low, high = _height(before, whole), _height(total, whole)
        parts += [
            f'<rect x="{start}" width="{wide}" y="{high}" height="{_BOTTOM - high:.1f}" {_AREA}/>',
            f'<line x1="{start}" x2="{start}" y1="{low}" y2="{high}" {_LINE}/>',
            f'<line x1="{start}" x2="{axis.at((end - first).days)}" y1="{high}" y2="{high}" {_LINE}/>',
        ]
    at = _height(limit, whole)
    parts += [
        f'<line x1="0" x2="100%" y1="{at}" y2="{at}" stroke="currentColor" stroke-dasharray="5 4"/>',
        f'<text x="100%" y="{at - 5}" text-anchor="end" fill="currentColor">{html_text(limit_label)}</text>',
    ]
    ticks = {"start": first, "middle": first + (last - first) // 2, "end": last - timedelta(days=1)}
    for place, (anchor, day) in enumerate(ticks.items()):
        if anchor != "middle" or (last - first).days > _FEW_DAYS:
            parts.append(_text(f"{50 * place}%", _BOTTOM + 18, day.isoformat(), anchor))
    return _svg(label, parts)


def months_svg(months: Mapping[str, Sequence[int]], *, label: str) -> str:
    """Return counts by month as an inline SVG: the first count of each month filled, the second outlined above it.

    Example:
        >>> months_svg({"2025-12": (3, 1), "2026-02": (1, 0)}, label="5 answers").count("<rect")
        3
    """
    shown = {month: months.get(month, (0, 0)) for month in _months(min(months), max(months))} if months else {}
    shown = dict([*shown.items()][-_MOST_BARS:])
    whole = max(map(sum, shown.values()), default=0) or 1
    step = 100 / max(len(shown), _FEW_BARS)
    parts = []
    for place, (month, counts) in enumerate(shown.items()):
        left, total = step * place, 0
        for count, style in zip(counts, (f"fill:{ACCENT}", "fill:none"), strict=True):
            low, total = _height(total, whole), total + count
            high = _height(total, whole)
            if count:
                box = f'x="{left + 0.1 * step:.2f}%" width="{0.8 * step:.2f}%" y="{high}" height="{low - high:.1f}"'
                parts.append(f'<rect {box} style="{style};stroke:{ACCENT}" stroke-width="1.5"/>')
        if len(shown) <= _FEW_BARS:
            parts.append(_text(f"{left + 0.5 * step:.2f}%", _height(total, whole) - 4, f"{total:,}", "middle"))
        if place % (2 if len(shown) <= _FEW_BARS else 6) == 0:
            parts.append(_text(f"{left + 0.1 * step:.2f}%", _BOTTOM + 18, month, "start"))
    return _svg(label, parts)


def _months(first: str, last: str) -> list[str]:
    """Return all months from one to another."""
    low, high = (12 * int(month[:4]) + int(month[5:7]) - 1 for month in (first, last))
    return [f"{each // 12}-{each % 12 + 1:02d}" for each in range(low, high + 1)]


_AREA = f'style="fill:{ACCENT}" fill-opacity=".25"'
_LINE = f'style="stroke:{ACCENT}" stroke-width="2"'


def _height(value: float, whole: float) -> float:
    return round(_BOTTOM - _HIGH * value / whole, 1)


def _text(x: str, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor">{html_text(words)}</text>'


def _svg(label: str, parts: Sequence[str]) -> str:
    base = f'<line x1="0" x2="100%" y1="{_BOTTOM}" y2="{_BOTTOM}" stroke="currentColor" stroke-opacity=".5"/>'
    title = f'<text x="0" y="14" font-weight="600" fill="currentColor">{html_text(label)}</text>'
    return (
        f'<svg width="100%" height="{_BOTTOM + 24}" role="img" aria-label="{html_text(label)}" '
        f'style="font:13px system-ui,sans-serif;overflow:visible">{title}{"".join(parts)}{base}</svg>'
    )
