"""One call from a table to an effect, for a first look."""

from dataclasses import replace
from typing import overload

from dpcausal.errors import QueryError
from dpcausal.estimators.average import ESTIMATORS, estimator_for, suggest_estimator
from dpcausal.estimators.base import epsilon_by_name
from dpcausal.ledger import Budget
from dpcausal.results.curve import CurveEstimator, EffectCurve
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Schema
from dpcausal.vault import Vault
from dpcausal.vault.engines.resources import Resources


@overload
def estimate(
    table: object,
    schema: Schema,
    estimator: str | Estimator = ...,
    *,
    epsilon: float,
    delta: float = ...,
    resources: Resources | None = ...,
) -> Effect: ...


@overload
def estimate(
    table: object,
    schema: Schema,
    estimator: CurveEstimator,
    *,
    epsilon: float,
    delta: float = ...,
    resources: Resources | None = ...,
) -> EffectCurve: ...


@epsilon_by_name(3, "estimate(table, schema, epsilon=1.0)")
def estimate(  # noqa: PLR0913
    table: object,
    schema: Schema,
    estimator: str | Estimator | CurveEstimator = "difference_in_means",
    *,
    epsilon: float,
    delta: float = 0.0,
    resources: Resources | None = None,
) -> Effect | EffectCurve:
    """Estimate an effect, or a curve of effects, from a table in one call.

    The budget is the price of this call, and the ledger is in memory: nothing records the spending, and the effect
    notes it. If more than one query will ever be asked of the table, open a `Vault`.

    Example:
        >>> import pyarrow as pa
        >>> from dpcausal import Real, Schema, Treatment, estimate
        >>> table = pa.table({"treat": [0, 1] * 5_000, "score": [4.0, 6.0] * 5_000})
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 10))
        >>> effect = estimate(table, schema, epsilon=1.0)
        >>> abs(effect.estimate - 2) < 0.5
        True
    """
    if isinstance(estimator, str) and estimator not in ESTIMATORS:
        raise QueryError(
            problem=f"There is no estimator named {estimator!r}; there are {', '.join(ESTIMATORS)}",
            hint=f"{suggest_estimator(estimator)}To set parameters, pass the estimator itself.",
        )
    if isinstance(estimator, type):
        raise QueryError(
            problem=f"{estimator.__name__} is the class of an estimator, not an estimator",
            hint=f"make one of it: {estimator.__name__}().",
        )
    chosen = estimator_for(estimator, schema) if isinstance(estimator, str) else estimator
    budget = Budget(epsilon=epsilon, delta=delta)
    vault = Vault(table, schema, ledger="sqlite://", budget=budget, resources=resources)
    effect = chosen.estimate(vault, epsilon=epsilon, delta=delta)
    return replace(effect, notes=(*effect.notes, "the ledger was in memory: nothing records this spending"))
