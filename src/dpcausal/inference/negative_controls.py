"""Calibration by negative controls: outcomes that the treatment cannot change show the bias that is left."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.interval import check_level
from dpcausal.utils.arrays import Array
from dpcausal.utils.text import format_number

_FEWEST = 5
_GRID = 400
_NORMAL = NormalDist()


@dataclass(frozen=True)
class CalibratedEffect:
    """An effect calibrated by negative controls.

    Attributes:
        estimate: The effect less the mean bias of the controls.
        standard_error: Its standard error, with the spread of the bias.
        bias: The mean bias of the controls.
        bias_sd: The standard deviation of the bias from control to control, beyond their own errors.
        controls: The number of controls.
    """

    estimate: float
    standard_error: float
    bias: float
    bias_sd: float
    controls: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the calibrated interval."""
        check_level(level)
        half = _NORMAL.inv_cdf((1 + level) / 2) * self.standard_error
        return self.estimate - half, self.estimate + half

    def p_value(self, null: float = 0.0) -> float:
        """Return the calibrated two-sided p-value."""
        return 2 * _NORMAL.cdf(-abs(self.estimate - null) / self.standard_error)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"calibrated effect {format_number(self.estimate)} (95 % interval {format_number(low)} to "
            f"{format_number(high)}); bias of {self.controls} negative controls: mean {format_number(self.bias)}, "
            f"standard deviation {format_number(self.bias_sd)}"
        )


def calibrate_effect(effect: Effect, controls: Sequence[Effect]) -> CalibratedEffect:
    """Return an effect, calibrated by effects on outcomes that the treatment cannot change.

    A normal distribution is fitted to the estimates of the controls, by maximum likelihood; each has its own error,
    sampling and privacy noise together. The effect is taken to have a bias from the same distribution (Schuemie and
    others 2014, 2018). Controls must be measured on the scale of the effect, and the confounding must be of the same
    kind.

    Args:
        effect: The effect of interest.
        controls: The effects on negative controls, by the same estimator; at least five, better twenty or more.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Rehearsal, Schema, Treatment
        >>> plan = Rehearsal(Schema(treatment=Treatment("arm"), outcome=Real("y", 0, 1)), n=1_000)
        >>> effect = DifferenceInMeans().estimate(plan, epsilon=1.0)
        >>> calibrate_effect(effect, [effect] * 10).bias_sd
        0.0
    """
    errors = [each.standard_error for each in (effect, *controls)]
    if len(controls) < _FEWEST or not all(errors) or any(each.no_interval for each in (effect, *controls)):
        raise RefusedError(
            expected=f"at least {_FEWEST} negative controls, all with standard errors and intervals, as the effect",
            got=f"{len(controls)} controls, {sum(not error for error in errors)} effects without an error",
            hint="twenty or more controls are usual; ask for them in one family with estimate_family.",
        )
    if any(each.looks is not None for each in (effect, *controls)):
        raise RefusedError(
            expected="effects whose intervals are for one look",
            got="a look of several",
            hint="a calibrated interval does not hold at all looks; use effects of an experiment without cohorts.",
        )
    estimates = np.array([each.estimate for each in controls])
    variances = np.array([each or 0.0 for each in errors[1:]]) ** 2
    bias, bias_sd, error = _fitted(estimates, variances)
    own = effect.standard_error or 0.0
    total = math.sqrt(own**2 + bias_sd**2 + error**2)
    return CalibratedEffect(effect.estimate - bias, total, bias, bias_sd, len(controls))


def _fitted(estimates: Array, variances: Array) -> tuple[float, float, float]:
    """Return mean and standard deviation of the bias by maximum likelihood, and the standard error of the mean."""

    def at(sd: float) -> tuple[float, float, float]:
        weights = 1 / (variances + sd**2)
        mean = float((weights * estimates).sum() / weights.sum())
        misfit = float((np.log(weights) - weights * (estimates - mean) ** 2).sum() - math.log(weights.sum()))
        return misfit, mean, float(weights.sum() ** -0.5)

    largest = 3 * float(estimates.std()) + float(variances.max()) ** 0.5
    sds = np.r_[0.0, largest * np.geomspace(1e-3, 1, _GRID)]
    found = [at(float(sd)) for sd in sds]
    best = int(np.argmax([each[0] for each in found]))
    return found[best][1], float(sds[best]), found[best][2]
