"""The share of outcomes that are missing in each arm, which every effect shows where outcomes can be missing.

One small query counts units with and without an outcome, for a small part of the guarantee. Shares, their errors and
the warning are post-processing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from dpcausal.guarantee import Guarantee
from dpcausal.queries import MissingOutcomes
from dpcausal.release import Release, ValueOf
from dpcausal.results.curve import EffectCurve
from dpcausal.results.effect import Effect
from dpcausal.results.effect_measures import share_lines
from dpcausal.source import OwnQueriesSource, Source, guarantee_for, is_within
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.uncertainty.joint_estimate import JointEstimate

Result = TypeVar("Result")

_PART = 1 / 32
"""The most of epsilon that the counts may cost."""

_LEAST = 2.0**-19
"""The smallest epsilon that a guarantee may have, as a power of two."""

_WANTED, _WORST = 0.0075, 0.04
"""The standard deviation of the noise in an arm's share that is precise enough, and one that would hide everything. The
arm is taken to hold half of all units."""

_FAR, _MATERIAL = 3.0, 0.02
"""Shares differ where they are so many standard errors apart, and at least so far."""


def counting_missing(estimate: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate an estimator's method: where outcomes can be missing, a part of epsilon counts them in each arm."""

    @wraps(estimate)
    def counting(self: Any, source: Source, **options: Any) -> Result:  # noqa: ANN401 (as the method has it)
        guarantee = guarantee_for(source, options["epsilon"], options.get("delta", 0.0))
        counts = self.counts_missing and not is_within(source, OwnQueriesSource)
        price = counting_price(source, guarantee) if counts else None
        if price is None:
            return estimate(self, source, **options)
        result = estimate(self, OwnQueriesSource(source), **options | {"epsilon": guarantee.after(price).epsilon})
        counted: Result = _with_counts(result, source.release(MissingOutcomes(), price), guarantee.epsilon)
        return counted

    return counting


def _with_counts(result: Any, release: Release, epsilon: float) -> Any:  # noqa: ANN401 (an effect or a curve)
    """Return a result with the share of missing outcomes in each arm, and what was paid for it."""
    shares = missing_shares(release, result.arms)
    stored = all(each.stored for each in result.receipts)  # the estimate's own answers decide what is said of them
    paid = replace(
        result,
        guarantee=replace(result.guarantee, epsilon=epsilon),
        receipts=(*result.receipts, replace(release.receipt, stored=stored)),
    )
    warnings = () if release.receipt.digest is None else differing_shares(shares)
    if isinstance(paid, Effect):
        return replace(paid, missing_outcomes=shares, warnings=(*paid.warnings, *warnings))
    if isinstance(paid, EffectCurve) and not paid.rehearsed:
        return replace(paid, notes=(*warnings, *map("missing outcomes: {}".format, share_lines(shares)), *paid.notes))
    return paid


def counting_price(source: Source, guarantee: Guarantee) -> Guarantee | None:
    """Return the part of a guarantee that counting missing outcomes takes; None where it is not worth it.

    It is a power of two, so that other estimates from the same table find the counts stored. Only public numbers decide
    on it: the schema, the number of units and epsilon.
    """
    if not source.schema.outcome_may_be_missing:
        return None
    laplace_sd, most = 2 * math.sqrt(2), _PART * guarantee.epsilon
    half = source.n / 2
    wanted = min(most, max(laplace_sd / (_WANTED * max(half, 1.0)), _LEAST))
    epsilon = 2.0 ** math.floor(math.log2(wanted))
    hidden = laplace_sd / epsilon > _WORST * half
    return None if hidden or epsilon < _LEAST else Guarantee(epsilon=epsilon, protects=guarantee.protects)


def missing_shares(release: Release, arms: Sequence[str]) -> JointEstimate:
    """Return the share of missing outcomes in each arm, with the error of chance and that of the noise."""

    def formula(value: ValueOf) -> list[Numbers]:
        counted = [(value(f"missing_{arm}"), value(f"observed_{arm}")) for arm in (0, 1)]
        return [missing / within(missing + observed, 1.0, math.inf) for missing, observed in counted]

    sampling = []
    for arm, share in enumerate(formula(release.value)):
        units = max(release.value(f"missing_{arm}") + release.value(f"observed_{arm}"), 1.0)
        bounded = min(max(share, 0.0), 1.0)
        sampling.append(max(bounded * (1 - bounded), 1 / units) / units)
    return release.estimates(arms, formula, np.diag(sampling))


def differing_shares(shares: JointEstimate) -> tuple[str, ...]:
    """Return a warning where outcomes are missing more often in one arm, beyond what chance and noise explain."""
    control, treated = (max(share, 0.0) for share in shares.values)  # a share below 0 is noise
    apart = abs(treated - control)
    if apart < max(_MATERIAL, _FAR * shares.standard_error([-1.0, 1.0])):
        return ()
    more, less = sorted(zip(shares.values, shares.names, strict=True), reverse=True)
    often = f"with {more[1]} ({100 * more[0]:.0f} %) than with {less[1]} ({100 * max(less[0], 0.0):.0f} %)"
    text = (
        f"outcomes are missing more often {often}, beyond chance and noise. If units without an outcome differ from "
        "the others in what is not adjusted for, the estimate is biased, and the interval does not show it. Adjust for "
        "what predicts that an outcome is missing, or make it part of the outcome"
    )
    return (text,)
