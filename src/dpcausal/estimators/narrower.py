"""The delta to use: all of it, or none where that means less noise."""

from dataclasses import replace

from dpcausal.calibration import Noise, calibrate
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.schema import Schema


def narrower(query: Query, schema: Schema, guarantee: Guarantee, coordinate: str) -> Guarantee:
    """Return the guarantee, with delta 0 where Laplace noise in that coordinate has the smaller standard deviation.

    Both calibrations follow from public facts alone, and delta 0 is the stronger promise. Gaussian noise pays for a
    delta that a few numbers hardly need; Laplace noise grows faster with their number.

    Args:
        query: What will be asked.
        schema: What is public about the table.
        guarantee: What may be spent.
        coordinate: The name of the number that matters most to the estimate.

    Example:
        >>> from dpcausal import Real, Treatment
        >>> from dpcausal.queries import ArmTotals
        >>> trial = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1), protects="record_within_arm")
        >>> allowed = Guarantee(epsilon=1.0, delta=1e-6, protects="record_within_arm")
        >>> narrower(ArmTotals(), trial, allowed, "total_1").delta
        0.0
    """
    if guarantee.delta == 0 or query.noise != "either":
        return guarantee
    pure = replace(guarantee, delta=0.0)
    sds = [_sd(calibrate(query, schema, each), coordinate) for each in (pure, guarantee)]
    return pure if sds[0] <= sds[1] else guarantee


def _sd(noise: Noise, coordinate: str) -> float:
    place = [at.name for at in noise.sensitivity.coordinates].index(coordinate)
    return (noise.scales[place] or 0.0) * (2**0.5 if noise.family == "laplace" else 1.0)
