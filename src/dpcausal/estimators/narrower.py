"""The delta to use: all of it, or none where that means less noise."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import Query
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Receipt
from dpcausal.schema.schema import Schema
from dpcausal.source import Source


def narrower(query: Query, source: Source, guarantee: Guarantee, coordinate: str) -> Guarantee:
    """Return the guarantee, with delta 0 where Laplace noise in that coordinate has the smaller standard deviation.

    Both calibrations follow from public facts alone, and delta 0 is the stronger promise. Gaussian noise pays for a
    delta that a few numbers hardly need; Laplace noise grows faster with their number. Under a zCDP budget Gaussian
    noise is always used, because it costs less.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> from dpcausal.queries import ArmTotals
        >>> trial = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1, missing=0), protects="record_within_arm")
        >>> allowed = Guarantee(epsilon=1.0, delta=1e-6, protects="record_within_arm")
        >>> expected = [Rehearsal(trial, 100, rule=rule) for rule in ("additive", "zcdp")]
        >>> [narrower(ArmTotals(), source, allowed, "total_1").delta for source in expected]
        [0.0, 1e-06]
    """
    if guarantee.delta == 0 or query.noise != "either" or source.rule == "zcdp":
        return guarantee
    pure = replace(guarantee, delta=0.0)
    sds = [noise_sd(query, source.schema, each, coordinate) for each in (pure, guarantee)]  # type: ignore[arg-type]
    return pure if sds[0] <= sds[1] else guarantee


@lru_cache(1024)
def noise_sd(query: Query, schema: Schema, guarantee: Guarantee, coordinate: str, rule: Rule = "additive") -> float:
    """Return the standard deviation of the noise in a number of an answer, in ticks; rehearsals ask for it again."""
    noise = calibrate(query, schema, guarantee, rule)
    place = next(place for place, at in enumerate(noise.sensitivity.coordinates) if at.name == coordinate)
    return (noise.scales[place] or 0.0) * (2**0.5 if noise.family == "laplace" else 1.0)


def spent(allowed: Guarantee, receipts: Sequence[Receipt]) -> Guarantee:
    """Return what may be spent, with no more delta than queries had."""
    return replace(allowed, delta=min(sum(receipt.delta for receipt in receipts), allowed.delta))
