"""What a scorecard is made of: its lines, and which look it is."""

from dataclasses import dataclass
from typing import Literal

from dpcausal.experiment.metric import MetricKind

Verdict = Literal["better", "worse", "no clear difference", "no interval", "not judged"]

SEGMENTS_NOTE = (
    "Differences between segments are not tested. Segments are judged together, apart from all units, and the number "
    "of units in a segment is private."
)
"""What stands beside the lines of segments."""

NONE = "none"
"""What is written where there is no number."""


@dataclass(frozen=True, kw_only=True)
class ScorecardLine:
    """One metric, one arm against the control.

    Attributes:
        kind: `mean`, `proportion` or `ratio`.
        treated: The arm that is compared with it.
        control_mean: The metric in the control arm, noise included.
        treated_mean: The metric in the other arm.
        difference: The second minus the first.
        low: The lower limit of the interval of the difference; None where there is none.
        high: The upper limit.
        lift: The difference relative to the control arm; None where the control arm may be 0.
        lift_low: The lower limit of its interval (Fieller).
        lift_high: The upper limit.
        p_value: The p-value of no difference, for this metric alone.
        adjusted_p_value: The same, adjusted for all comparisons of the scorecard.
        detectable: The smallest true difference that an experiment with these errors finds with 80 % power.
        sampling_sd: The standard error without privacy noise.
        privacy_sd: The standard deviation of the privacy noise.
        verdict: `better`, `worse`, `no clear difference`, `no interval`, or `not judged` where the arms' sizes do
            not fit those that were declared.
        no_interval: Why there is no interval; empty where there is one.
        unit: The unit of the metric; empty where it has none.
        description: What the metric measures; empty where nobody says so.
        owner: Who answers questions about it.
        segment: Among which units, such as `country=DE`; empty for all units.
    """

    metric: str
    kind: MetricKind
    control: str
    treated: str
    control_mean: float
    treated_mean: float
    difference: float
    low: float | None
    high: float | None
    lift: float | None
    lift_low: float | None
    lift_high: float | None
    p_value: float | None
    adjusted_p_value: float | None
    detectable: float
    sampling_sd: float
    privacy_sd: float
    verdict: Verdict
    no_interval: str
    unit: str = ""
    description: str = ""
    owner: str = ""
    segment: str = ""
