"""How a report writes an effect: risks as percentages, and all its numbers with the same decimals."""

import math
from dataclasses import dataclass
from typing import Self

from dpcausal.page.numbers import number, percent, short
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema

_SIGNIFICANT = 2
"""The digits of the half-width, which decide the decimals of everything beside it."""


@dataclass(frozen=True)
class OutcomeScale:
    """How numbers on the scale of the outcome are written.

    Attributes:
        risks: Whether the outcome is binary: its mean is a risk, and effects are in percentage points.
        described: Whether the effect is a number that somebody described, not a difference between arms.
    """

    risks: bool
    decimals: int
    described: bool

    @classmethod
    def of(cls, effect: Effect, interval: tuple[float, float] | None, schema: Schema | None) -> Self:
        """Return the scale of an effect: its half-width has two digits, and the estimate as many decimals."""
        risks = schema is not None and isinstance(schema.outcome, Binary) and not effect.quantity
        half = (interval[1] - interval[0]) / 2 if interval else 0.0
        size = half if 0 < half < math.inf else effect.standard_error or effect.privacy_sd or abs(effect.estimate)
        size *= 100 if risks else 1
        decimals = max(0, _SIGNIFICANT - 1 - math.floor(math.log10(size))) if size else 0
        return cls(risks, decimals, described=effect.quantity == effect.estimand)

    def number(self, value: float) -> str:
        """Return a difference without its unit."""
        return number(100 * value if self.risks else value, self.decimals)

    def size(self, value: float) -> str:
        """Return a difference with its unit."""
        return f"{self.number(value)} percentage points" if self.risks else self.number(value)

    def level(self, value: float) -> str:
        """Return a mean, or a risk as a percentage."""
        return percent(value, self.decimals) if self.risks else self.number(value)

    def given(self, value: float) -> str:
        """Return a difference that a person chose, with its own digits."""
        if not self.risks:
            return short(value)
        points = float(f"{100 * value:.6g}")
        if points == 1:
            return "1 percentage point"
        return f"{short(points)} percentage points"

    def limits(self, interval: tuple[float, float]) -> str:
        """Return the limits of an interval."""
        return f"{self.number(interval[0])} to {self.number(interval[1])}"

    def outcome(self, effect: Effect) -> str:
        """Return what the arms differ in, as the beginning of a sentence."""
        if effect.quantity:
            return f"The {effect.quantity}"
        if self.risks:
            return f"The risk of {effect.outcome}"
        return f"Mean {effect.outcome}"
