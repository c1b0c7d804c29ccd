"""All units, with an outcome or without: their mean covariates, over which regressions are averaged.

Regressions among units with an outcome say what the outcome of a unit is expected to be in each arm. If outcomes are
missing at random given covariates and arm, that holds for units without an outcome too, and the effect in all units is
the difference of the two regressions at the mean covariates of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.estimators.narrower import narrower
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateTotals
from dpcausal.queries.features import design_names
from dpcausal.release import Receipt
from dpcausal.source import Source
from dpcausal.utils.arrays import Array

_SHARE = 0.1
"""The share of the guarantee that the means get: their noise counts as far as effects vary with covariates."""

OVER_ALL = " over all units, with an outcome or without"
"""Whose effect it is, in words of an estimand."""

EFFECTS_VARY = 1.0
"""The prior variance of half the difference between the arms' slopes, as a share of that of their mean. An average over
other units than those compared must not be shrunk towards one effect for all."""


@dataclass(frozen=True)
class AllUnits:
    """The units of both arms, whether or not they have an outcome."""

    n: float
    centre: Array
    noise: Array
    receipt: Receipt
    notes: tuple[str, ...]


def missing_at_random(covariates: Sequence[str]) -> str:
    """Return the assumption on units without an outcome."""
    return f"outcomes are missing at random given the arm and {', '.join(covariates)}"


def ask_all_units(source: Source, covariates: Sequence[str], allowed: Guarantee) -> tuple[AllUnits, Guarantee]:
    """Return the mean covariates of all units, and what is left of a guarantee."""
    query = CovariateTotals(covariates)
    names = [f"total of {name}" for name in design_names(covariates, source.schema)]
    first, rest = allowed.split(_SHARE)
    first = narrower(query, source, first, names[0])
    if first.delta == 0:
        rest = replace(rest, delta=allowed.delta)
    release = source.release(query, first)
    counted = "units" in release.names
    n = min(max(release.value("units"), 2.0), float(source.n)) if counted else float(source.n)
    centre = np.clip([release.value(name) / n for name in names], -1.0, 1.0)
    noise = np.diag([release.variance(name) for name in names])
    if counted:
        noise = noise + release.variance("units") * np.outer(centre, centre)
    missing = min(max(release.value("missing"), 0.0), n)
    note = f"averaged over about {n:,.0f} units, of which about {missing:,.0f} have no outcome (noisy)"
    if release.receipt.digest is None:
        share = f"{missing / n:.0%} of outcomes" if missing else "no outcome"
        note = f"rehearsed as if {share} were missing; where units without one differ, the interval will be wider"
    return AllUnits(n, centre, noise / n**2, release.receipt, (note,)), rest
