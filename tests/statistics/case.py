"""An estimator on one table, with its closed form: what every check and mutant of statistics is run on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered
from dpcausal.results.curve import CurveEstimator
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import Protects
from tests.statistics.references import Reference
from tests.statistics.samplers import Undrawn
from tests.statistics.tables import Kind, schema, table
from tests.support.engines import CachedEngine

Result = dpc.Effect | dpc.EffectCurve

AVERAGE = "average treatment effect"
"""The words for an effect that is neither on the treated nor in the overlap population."""


@dataclass(frozen=True)
class Case:
    """An estimator and its closed form.

    Attributes:
        name: Its name in the list of mutants.
        estimator: The estimator.
        reference: What it computes without noise; None where only noise is looked at.
        words: What its printed estimand must say.
        protects: What the schema protects.
        table: Which table.
        may_leave: Whether the number of compared units is private.
        epsilon: With noise, its price: so large that noise moves the estimate in proportion.
        delta: The same.
        pairs: How many pairs of opposite draws show its noise; 0 where moving single coordinates shows enough.
        linear: Whether noise moves the estimate in proportion, so that the printed noise must be nearly exact.
        pending: The checks that it does not pass yet, each with the reason.
    """

    name: str
    estimator: Estimator | CurveEstimator
    reference: Callable[[], Reference] | None
    words: str = AVERAGE
    protects: Protects = "record"
    table: Kind = "plain"
    may_leave: bool = False
    epsilon: float = 4.0
    delta: float = 0.0
    pairs: int = 40
    linear: bool = False
    pending: dict[str, str] = field(default_factory=dict)

    def ask(self, sampler: Undrawn, *, epsilon: float | None = None) -> Result:
        """Return what the estimator makes of the table with these draws."""
        declared = schema(self.protects, self.table, may_leave=self.may_leave)
        source = Unmetered(_engine(self.table, declared), declared, sampler)
        return self.estimator.estimate(source, epsilon=epsilon or self.epsilon, delta=self.delta)


@cache
def _engine(kind: Kind, declared: dpc.Schema) -> CachedEngine:
    return CachedEngine.of(table(kind), declared)
