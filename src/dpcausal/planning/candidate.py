"""An estimator and its expected error, as it is ranked."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from dpcausal.estimators.average.winsorised import Winsorised
from dpcausal.results.effect import Estimator
from dpcausal.utils.text import format_number

Shape = Literal["unknown", "linear"]
"""What is known about how outcomes and treatment depend on covariates: nothing, or that models of main effects hold."""

_PREFERENCE = 2.0
"""Where shapes are unknown, an estimator with a model comes first only where it is so much more precise than strata."""

_TAIL_PREFERENCE = 1.1
"""Winsorising, which assumes something about the tail, comes first only where it is so much more precise."""


class NotRanked(StrEnum):
    """Why a candidate is listed apart, in words; empty for those that are ranked."""

    NO = ""
    OTHER_EFFECT = "another effect: that in the overlap population"
    NOT_ADJUSTED = "not adjusted"


@dataclass(frozen=True)
class Candidate:
    """An estimator and its expected error.

    Attributes:
        half_width: The expected half width of the 95 % interval, which allows for the bias: the distance to the truth
            that the estimate stays within in 95 % of studies. Infinite where no interval is expected.
        bias: The confounding that is expected to stay in the estimate.
        delta: The delta to use: 0 where Laplace noise is smaller than the Gaussian noise that a delta allows.
        whole: Whether it adjusts for every confounder without a model.
        left_out: The confounders that it does not adjust for.
        not_ranked: Why it is listed apart, if it is.
    """

    estimator: Estimator
    label: str
    half_width: float
    sampling_sd: float
    privacy_sd: float
    bias: float
    delta: float
    assumes: str
    whole: bool = False
    not_ranked: NotRanked = NotRanked.NO
    left_out: tuple[str, ...] = ()

    @property
    def interval(self) -> bool:
        """Whether it is expected to yield an interval."""
        return math.isfinite(self.half_width)

    @property
    def line(self) -> str:
        """What a table of candidates says of it."""
        half = format_number(self.half_width) if self.interval else "none"
        return f"{half:>10} {format_number(self.bias):>9} {self.delta:>6g}  {self.label}"

    def order(self, shape: Shape) -> tuple[bool, bool, float, float]:
        """Return what candidates are sorted by: their width, or their noise where no interval is expected.

        One that leaves confounders out comes after all that adjust for every one and are expected to give an interval.
        """
        factor = _PREFERENCE if shape == "unknown" and not self.whole else 1.0
        if isinstance(self.estimator, Winsorised):
            factor *= _TAIL_PREFERENCE
        noise = math.hypot(self.sampling_sd, self.privacy_sd, self.bias)
        return not self.interval, bool(self.left_out), self.half_width * factor, noise
