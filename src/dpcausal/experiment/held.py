"""What holding residuals between bounds may do to a metric that is linearised around an earlier release.

A residual beyond its bounds counts as the bound, so that the metric moves less than units do. How many are beyond is
not released. Two things tell, and cost nothing: the mean square of what is held, and, where the column is a metric of
its own, its mean, from which the mean of what is not held follows.
"""

from typing import NamedTuple

_USUAL = 0.06
"""The mean square of what is held, in squared distances to the nearer bound, up to which hardly anything is lost: it is
0.04 where bounds are five standard deviations away."""

_LOST = 2.0
"""What is lost of an effect, for each part of that mean square beyond the usual. Units that are large are more often
beyond, and move more: in simulations of ratios 0.1 to 0.3 of an effect was lost at mean squares of 0.12 to 0.18."""

_MOST = 0.3
"""The mean square from which on there is no interval: what is lost is then no longer small."""

_SDS = 2.0
"""What stands out by so many standard deviations of the noise in it."""

_NOTE = 0.05
"""The share of an effect that may be lost from which on readers are told."""


class Held(NamedTuple):
    """What the bounds of a residual may do to the difference of two arms.

    Attributes:
        square: The mean square of the residual about its mean, in squared distances to the nearer bound: the larger of
            both arms. 0 where the metric is no ratio.
        noise_sd: The noise in it.
        moved: How far the difference of the arms is from that of residuals that are not held, where it is released.
        moved_sd: The noise in it.
    """

    square: float
    noise_sd: float
    moved: float = 0.0
    moved_sd: float = 0.0

    @property
    def lost(self) -> float:
        """The share of an effect that may be lost."""
        return _LOST * max(min(self.square, _MOST) - _USUAL, 0.0)

    @property
    def bias(self) -> float:
        """By how much the difference may be off, by what is released of residuals that are not held."""
        return abs(self.moved) if abs(self.moved) > _SDS * self.moved_sd else 0.0

    def left_out(self, difference: float) -> float:
        """Return the largest bias to allow for, given the difference."""
        return max(abs(difference) * self.lost / (1 - self.lost), self.bias)

    @property
    def refusal(self) -> str:
        """Why there is no interval; empty where there is one."""
        many = self.square - _SDS * self.noise_sd > _MOST
        return "so many units may be beyond the earlier bounds that the metric hardly moves; take wider ones" * many

    @property
    def note(self) -> str:
        """What readers should know; empty where nothing stands out."""
        if not self.bias and self.lost < _NOTE:
            return ""
        return (
            "units beyond the earlier bounds count as these, so that the metric moves less than they do; the interval "
            "allows for what that may take off the effect. Take wider bounds next time"
        )
