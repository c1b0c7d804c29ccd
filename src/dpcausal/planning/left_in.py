"""Confounding that an adjustment leaves in: how much to expect from public numbers, and intervals that allow for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.estimators.average.stratification import Stratification
from dpcausal.estimators.base import names_in
from dpcausal.planning.strata import confounding_left
from dpcausal.queries.cuts import cuts_of
from dpcausal.rehearsal import Rehearsal
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Schema
from dpcausal.source import Source


@dataclass(frozen=True)
class LeavingIn:
    """An estimator that leaves confounding in, up to a bound: its intervals allow for it.

    Attributes:
        bound: The confounding that it may leave in, in either direction, in the outcome's units.
    """

    estimator: Estimator
    bound: float

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta."""
        return _allowing_for(self.bound, self.estimator.estimate(source, epsilon=epsilon, delta=delta))


def adjusts_for(estimator: Estimator) -> tuple[str, ...]:
    """Return the covariates that an estimator adjusts for; a winsorised one by the estimator that it runs."""
    estimator = getattr(estimator, "estimator", estimator)
    by = getattr(estimator, "by", None)
    return tuple(cut.name for cut in cuts_of(by)) if by else tuple(getattr(estimator, "covariates", ()))


def confounders_of(estimator: Estimator, schema: Schema) -> tuple[str, ...]:
    """Return the declared covariates that an adjustment is about: those it uses, and those that have no other role.

    It is empty where the estimator adjusts for nothing, or where its design makes the arms comparable.
    """
    used, roles = adjusts_for(estimator), names_in(estimator)
    by_design = getattr(estimator, "identified_by_design", False)
    declared = (column.name for column in schema.covariates)
    return tuple(name for name in declared if name in used or name not in roles) if used and not by_design else ()


def expected_left_in(estimator: Estimator, confounders: Sequence[str], rehearsal: Rehearsal) -> float:
    """Return the confounding that an adjustment is expected to leave in.

    Strata leave in what is within their bins. Confounders that an adjustment does not use may have all of it.
    """
    inner = getattr(estimator, "estimator", estimator)
    if isinstance(inner, Stratification):
        return confounding_left(cuts_of(inner.by), confounders, rehearsal)
    unused = [name for name in confounders if name not in adjusts_for(inner)]
    return rehearsal.confounding * rehearsal.sd if unused else 0.0


def with_expected_left_in(effect: Effect, bound: float, rehearsal: Rehearsal) -> Effect:
    """Return an effect whose interval allows for the confounding that was expected to be left in.

    Confounding is expected in standard deviations of the outcome. Where none was given, a table with a smaller one than
    its bounds suggest has less of it: no more than the sampling error of arms of equal size would imply.
    """
    known = effect.sampling_sd if rehearsal.outcome_sd is None and not effect.rehearsed else None
    implied = rehearsal.sd if known is None else known * math.sqrt(effect.n) / 2
    return _allowing_for(bound * min(implied / rehearsal.sd, 1.0) if rehearsal.sd else 0.0, effect)


def _allowing_for(bound: float, effect: Effect) -> Effect:
    """Return an effect whose interval allows for this confounding, where it is a difference in mean outcomes."""
    return effect if effect.quantity or effect.ratio else effect.with_left_in(bound)
