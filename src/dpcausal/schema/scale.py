"""The scale of a covariate: the public, increasing, piecewise-linear map from its values to scores from -1 to 1."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from dpcausal.errors import SchemaError
from dpcausal.utils.validation import is_number

Transform = Literal["linear", "log"]
"""How a covariate enters models: by itself, or by its logarithm."""

TRANSFORMS: tuple[Transform, ...] = ("linear", "log")

MOST_KNOTS = 64
REACH = 2.6
"""How many standard deviations from the median have the scores -1 and 1."""

TYPICAL = 1.645
"""How many standard deviations from the median the central 90 % of values reach."""

_BEYOND = 1 / 64
"""What scores beyond the knots of a scale differ by, where it is made to reach further."""

LEAST_GAP = 1e-100
"""How far apart the values of two knots must be, so that no step of floating point overflows."""


@dataclass(frozen=True)
class Scale:
    """A public, increasing map from the values of a covariate to scores from -1 to 1, linear between its knots.

    Values beyond the first or the last knot have the score of that knot. A scale is made of public constants, or
    computed from releases: never from the table.

    Attributes:
        knots: Pairs of a value and its score, both rising.

    Example:
        >>> Scale([(0.2, -1), (1.0, 0), (4.0, 1)]).value_at(0.5)
        2.5
    """

    knots: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        try:
            pairs = [(value, score) for value, score in self.knots]
        except (TypeError, ValueError):
            pairs = []
        if not (
            2 <= len(pairs) <= MOST_KNOTS
            and all(is_number(number) for pair in pairs for number in pair)
            and all(-1 <= score <= 1 for _, score in pairs)
            and all(a[1] < b[1] and b[0] - a[0] >= LEAST_GAP for a, b in itertools.pairwise(pairs))
        ):
            raise SchemaError(
                expected=f"2 to {MOST_KNOTS} pairs of a value and a score from -1 to 1, both rising",
                got=repr(self.knots)[:200],
                hint="write for instance Scale([(0.2, -1), (1.0, 0), (4.0, 1)]).",
            )
        object.__setattr__(self, "knots", tuple((float(value), float(score)) for value, score in pairs))

    @property
    def reach(self) -> tuple[float, float]:
        """The values of the first and the last knot; values beyond have their scores."""
        return self.knots[0][0], self.knots[-1][0]

    def score_at(self, value: float) -> float:
        """Return the score of a value."""
        if value <= self.knots[0][0]:
            return self.knots[0][1]
        for (low, below), (high, above) in itertools.pairwise(self.knots):
            if value <= high:
                return below + (above - below) * ((value - low) / (high - low))
        return self.knots[-1][1]

    def value_at(self, score: float) -> float:
        """Return the value that has a score; of the nearer end where no value has it."""
        for (low, below), (high, above) in itertools.pairwise(self.knots):
            if score <= above:
                return low + (high - low) * max((score - below) / (above - below), 0.0) if score < above else high
        return self.knots[-1][0]

    def reaching(self, low: float, high: float) -> Self:
        """Return a scale that rises from one value to another, and has nearly the same scores between its own knots.

        Scores become smaller by a share of 1/64, which those of values beyond the first and the last knot have.

        Example:
            >>> Scale([(1, -1), (3, 1)]).reaching(0, 50).knots
            ((0.0, -1.0), (1.0, -0.984375), (3.0, 0.984375), (50.0, 1.0))
        """
        inner = [(value, score * (1 - _BEYOND)) for value, score in self.knots]
        first = [(low, inner[0][1] - _BEYOND)] if inner[0][0] - low >= LEAST_GAP else []
        last = [(high, inner[-1][1] + _BEYOND)] if high - inner[-1][0] >= LEAST_GAP else []
        return type(self)([*first, *inner, *last])
