"""The axis of an inline SVG figure. Positions are percentages: figures fit any width, and their text keeps its size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from dpcausal.page.html_page import html_text
from dpcausal.page.numbers import number

_MARGIN = 0.04
_TICKS = 5
_EDGE = 6.0
"""Labels of ticks so near to an edge, in percent, are aligned to it."""


@dataclass(frozen=True)
class Axis:
    """A horizontal axis."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float]) -> Self:
        """Return an axis that shows these values, with a margin."""
        low, high = min(values), max(values)
        margin = _MARGIN * (high - low) or 1.0
        return cls(low - margin, high + margin)

    def at(self, value: float) -> str:
        """Return the position of a value.

        Example:
            >>> Axis(-1.0, 1.0).at(0.5)
            '75.00%'
        """
        return f"{self._percent(value):.2f}%"

    def length(self, low: float, high: float) -> str:
        """Return the length between two values."""
        return f"{max(self._percent(high) - self._percent(low), 0.0):.2f}%"

    def _percent(self, value: float) -> float:
        return 100 * (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> tuple[float, ...]:
        """About five round numbers on the axis.

        Example:
            >>> Axis(-1.2, 3.4).ticks
            (-1.0, 0.0, 1.0, 2.0, 3.0)
        """
        step = self._step()
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return tuple(place * step for place in range(first, last + 1))

    def _step(self) -> float:
        rough = (self.high - self.low) / _TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        return next(power * each for each in (1, 2, 5, 10) if power * each >= rough)

    def svg(self, y: float, title: str) -> str:
        """Return the axis at a height: a line, its ticks with their numbers, and below them a title."""
        decimals = max(0, -math.floor(math.log10(self._step())))
        parts = [f'<line x1="0" x2="100%" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity=".5"/>']
        for tick in self.ticks:
            at = self.at(tick)
            percent = self._percent(tick)
            anchor = "start" if percent < _EDGE else "end" if percent > 100 - _EDGE else "middle"
            parts.append(f'<line x1="{at}" x2="{at}" y1="{y}" y2="{y + 5}" stroke="currentColor" stroke-opacity=".5"/>')
            words = html_text(number(tick, decimals))
            parts.append(f'<text x="{at}" y="{y + 19}" text-anchor="{anchor}" fill="currentColor">{words}</text>')
        parts.append(
            f'<text x="50%" y="{y + 38}" text-anchor="middle" fill="currentColor">{html_text(title)}</text>'
            if title
            else ""
        )
        return "".join(parts)

    def vertical(self, value: float, bottom: float, *, top: float = 0, dashed: bool = False) -> str:
        """Return a vertical line at a value, from one height to another."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        at = self.at(value)
        width = 2 if dashed else 1
        ends = f'x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"'
        return f'<line {ends} stroke="currentColor" stroke-width="{width}"{dashes}/>'
