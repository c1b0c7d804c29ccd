"""A curve for each arm on a public grid, such as survival over time, with bands."""

from dataclasses import dataclass

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.arrays import Array


@dataclass(frozen=True)
class ArmCurves:
    """A curve for each arm on a public grid. It holds noise, and is never projected or smoothed.

    Attributes:
        quantity: What the curves show, such as `survival`.
        along: What the grid is made of, such as `months`.
        arms: The arms, the reference first.
        estimates: The values with their joint error, arm after arm.

    Example:
        >>> flat = JointEstimate(("a", "b"), (0.5, 0.7), ((0.01, 0.0), (0.0, 0.01)), ())
        >>> curves = ArmCurves("survival", "months", (12.0,), ("placebo", "drug"), flat)
        >>> curves.values("drug")
        array([0.7])
    """

    quantity: str
    along: str
    grid: tuple[float, ...]
    arms: tuple[str, ...]
    estimates: JointEstimate

    def __post_init__(self) -> None:
        if len(self.estimates.values) != len(self.grid) * len(self.arms):
            raise QueryError(
                expected=f"{len(self.grid)} values for each of {len(self.arms)} arms",
                got=str(len(self.estimates.values)),
                hint="give the values arm after arm.",
            )

    def values(self, arm: str) -> Array:
        """Return one arm's curve, noise included."""
        return self._of(np.array(self.estimates.values), arm)

    def band(self, arm: str, level: float = 0.95, *, simultaneous: bool = True) -> tuple[Array, Array]:
        """Return the limits of one arm's curve: together for all points of all arms, or each for itself."""
        errors = np.sqrt(np.maximum(np.diag(self.estimates.covariance), 0.0))
        if simultaneous:
            half = errors * self.estimates.simultaneous(level)
        else:
            half = errors * [
                _single(self.estimates, place).simultaneous(level) for place in range(len(self.estimates.names))
            ]
        values = np.array(self.estimates.values)
        return self._of(values - half, arm), self._of(values + half, arm)

    def difference(self) -> JointEstimate:
        """Return the last arm's curve minus the first one's, with its joint error; its names are the grid's points.

        Example:
            >>> flat = JointEstimate(("a", "b"), (0.5, 0.7), ((0.01, 0.0), (0.0, 0.01)), ())
            >>> curves = ArmCurves("survival", "months", (12.0,), ("placebo", "drug"), flat)
            >>> round(curves.difference().value("12"), 2)
            0.2
        """
        points = len(self.grid)
        return self.estimates.mapped(
            [f"{point:.12g}" for point in self.grid], lambda every: every[-points:] - every[:points]
        )

    def _of(self, values: Array, arm: str) -> Array:
        place = self.arms.index(arm)
        part: Array = values[place * len(self.grid) : (place + 1) * len(self.grid)]
        return part


def _single(estimates: JointEstimate, place: int) -> JointEstimate:
    return estimates.mapped([estimates.names[place]], lambda every: every[place : place + 1])
