"""What every estimator must do, as one check that third parties can use too.

Tables here are made up from a seed. They protect nobody, and nothing made from them should be published.
"""

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from dpcausal.cells import Value
from dpcausal.columns import Binary, Category
from dpcausal.curve import CurveEstimator, EffectCurve
from dpcausal.effect import Effect, Estimator
from dpcausal.errors import RefusedError
from dpcausal.guarantee import Guarantee
from dpcausal.ledger import Budget
from dpcausal.queries import Query
from dpcausal.real import Real
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.schema import Protects, Schema
from dpcausal.source import Source
from dpcausal.treatment import TableColumn, Treatment, listed_values
from dpcausal.vault import Vault

UNITS = 600

AnyEstimator = Estimator | CurveEstimator
Result = Effect | EffectCurve


def standard_schema(protects: Protects = "record", undeclared: Value | None = None) -> Schema:
    """Return a schema with columns of every kind: treat, score, ward, age and smoker.

    Args:
        protects: What one unit may change.
        undeclared: The arm to which an undeclared value counts; if left out, such units are outside the comparison.
    """
    return Schema(
        treatment=Treatment("treat", undeclared=undeclared),
        outcome=Real("score", 0, 10),
        covariates=[Category("ward", ["a", "b", "c"]), Real("age", 18, 90), Binary("smoker", values=("no", "yes"))],
        protects=protects,
    )


def synthetic_table(schema: Schema, n: int, seed: int = 0) -> pa.Table:
    """A made-up table that a schema describes. Every column is independent of every other: there is no effect."""
    generator = np.random.default_rng(seed)
    return pa.table({column.name: _cells(column, n, generator) for column in schema.columns})


def hostile_tables(schema: Schema, n: int) -> dict[str, pa.Table]:
    """Tables on which careless code fails, of the same types as `synthetic_table` makes."""
    usual = synthetic_table(schema, n)
    treatment, outcome = schema.treatment, schema.outcome.name
    place, kind = usual.column_names.index(treatment.name), usual.schema.field(treatment.name).type
    tables = {
        f"only {value!r}": usual.set_column(place, treatment.name, pa.array([value] * n, kind))
        for value in treatment.compared
    }
    lonely = [treatment.compared[1]] + [treatment.compared[0]] * (n - 1)
    tables["one treated"] = usual.set_column(place, treatment.name, pa.array(lonely, kind))
    tables["nothing known"] = pa.table({field.name: pa.nulls(n, field.type) for field in usual.schema})
    numbers = usual.schema.field(outcome).type
    if pa.types.is_floating(numbers):
        for name, value in (("far off", 1e308), ("infinite", -math.inf), ("not a number", math.nan)):
            at = usual.column_names.index(outcome)
            tables[f"outcomes {name}"] = usual.set_column(at, outcome, pa.array([value] * n, numbers))
    return tables


def _cells(column: TableColumn, n: int, generator: np.random.Generator) -> pa.Array:
    if isinstance(column, Real):
        return pa.array(generator.uniform(column.low, column.high, n))
    values = listed_values(column)
    return pa.array([values[place] for place in generator.integers(0, len(values), n)])


def check_estimator(estimator: AnyEstimator, schema: Schema | None = None) -> None:
    """Raise an AssertionError, saying which rule is broken, unless an estimator behaves as all must.

    Args:
        estimator: What to check, made for the columns of the schema.
        schema: What to check it on, without a `Unit`; `standard_schema()` if left out.

    Example:
        >>> from dpcausal import DifferenceInMeans
        >>> check_estimator(DifferenceInMeans())
    """
    schema = schema or standard_schema()
    _check_parameters(estimator)
    _check_rehearsal(estimator, schema)
    for name, table in (hostile_tables(schema, UNITS) | {"an ordinary table": synthetic_table(schema, UNITS)}).items():
        for epsilon, delta in ((0.01, 0.0), (1.0, 0.0), (1.0, 1e-6)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                _check_release(estimator, _vault(table, schema), epsilon, delta, f"on {name}")
    _check_estimate(estimator, schema)


def _must(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _check_parameters(estimator: AnyEstimator) -> None:
    _must(dataclasses.is_dataclass(estimator), "an estimator is a dataclass of its parameters")
    parameters: Any = estimator
    _must(parameters.__dataclass_params__.frozen, "an estimator is frozen")
    _must(dataclasses.replace(parameters) == estimator, "an estimator is made of its parameters and nothing else")


def _check_rehearsal(estimator: AnyEstimator, schema: Schema) -> None:
    effects = [estimator.estimate(Rehearsal(schema, n=UNITS), epsilon=epsilon) for epsilon in (0.5, 1.0, 2.0)]
    for effect, epsilon in zip(effects, (0.5, 1.0, 2.0), strict=True):
        _check_result(effect, "in rehearsal")
        _must(effect.rehearsed, "a rehearsed effect has receipts without ledger entries")
        _must(effect.guarantee.epsilon == epsilon, "the guarantee is the one asked for")
    sizes = [_privacy_sd(effect) for effect in effects]
    _must(sizes[0] > sizes[1] > sizes[2] > 0, "there is noise, and more epsilon means less of it")


def _check_release(estimator: AnyEstimator, vault: Vault, epsilon: float, delta: float, where: str) -> None:
    source = _only_a_source(vault)
    effect = estimator.estimate(source, epsilon=epsilon, delta=delta)
    _check_result(effect, where)
    asked = Guarantee(
        epsilon=epsilon, delta=delta, protects=vault.schema.protects, proof_status=effect.guarantee.proof_status
    )
    _must(effect.guarantee == asked, f"{where}, the guarantee is the one asked for")
    billed = math.fsum(receipt.epsilon for receipt in effect.receipts)
    _must(billed <= epsilon * (1 + 1e-12), f"{where}, receipts add up to no more than the epsilon asked for")
    _must(math.isclose(vault.ledger.spent.epsilon, billed), f"{where}, what was spent is what the receipts say")
    again = estimator.estimate(source, epsilon=epsilon, delta=delta)
    _must(again == effect, f"{where}, the same request gives the same effect")
    _must(math.isclose(vault.ledger.spent.epsilon, billed), f"{where}, the same request spends nothing")
    plan = estimator.estimate(Rehearsal(vault.schema, n=vault.n), epsilon=epsilon, delta=delta)
    bill = [[(receipt.query, receipt.epsilon, receipt.delta) for receipt in each.receipts] for each in (plan, effect)]
    _must(bill[0] == bill[1], f"{where}, a rehearsal asks, and is charged for, what the vault is asked")


def _check_estimate(estimator: AnyEstimator, schema: Schema) -> None:
    """With little noise, a made-up effect of a fifth of the outcome's range is found with its sign and size."""
    low, high = schema.outcome_bounds
    truth = (high - low) / 5
    table = synthetic_table(schema, 4 * UNITS)
    treated = np.array([value == schema.treatment.compared[1] for value in table[schema.treatment.name].to_pylist()])
    base = np.random.default_rng(1).uniform(0.3, 0.5, len(treated))
    if isinstance(schema.outcome, Real):
        outcome = pa.array(low + (high - low) * base + truth * treated)
    else:
        outcome = pa.array([schema.outcome.values[int(yes)] for yes in base + treated / 5 > 0.5])
        truth = 1.0
    place = table.column_names.index(schema.outcome.name)
    vault = _vault(table.set_column(place, schema.outcome.name, outcome), schema)
    effect = estimator.estimate(_only_a_source(vault), epsilon=100.0)
    found = effect.estimate if isinstance(effect, Effect) else effect.ate(effect.examples()[1])
    _must(abs(found - truth) < truth / 2, "an effect without confounding is found with its sign and size")


def _check_result(result: Result, where: str) -> None:
    _must(type(result).from_json(result.to_json()) == result, f"{where}, a result survives JSON")
    _must(bool(str(result) and result._repr_html_()), f"{where}, a result prints")
    _must(bool(result.assumptions and result.estimand and result.receipts), f"{where}, a result says what it rests on")
    if isinstance(result, Effect):
        numbers = [result.estimate, result.privacy_sd, 0.0 if result.sampling_sd is None else result.sampling_sd]
    else:
        numbers = [*result.effect(result.examples()[1]), *np.concatenate(result.standard_errors(result.examples()[1]))]
    _must(all(map(math.isfinite, numbers)), f"{where}, every number is finite")
    try:
        if isinstance(result, Effect):
            low, high = result.interval(0.95)
            _must(low <= result.estimate <= high, f"{where}, the interval holds the estimate")
        else:
            _check_bands(result, where)
    except RefusedError:
        _must("interval          none: " in str(result), f"{where}, a refused interval is printed as refused")


def _check_bands(curve: EffectCurve, where: str) -> None:
    effects = curve.effect(curve.examples()[1])
    alone, together = (curve.effect_interval(curve.examples()[1], simultaneous=each) for each in (False, True))
    inside = (together[0] <= alone[0]) & (alone[0] <= effects) & (effects <= alone[1]) & (alone[1] <= together[1])
    _must(bool(inside.all()) or len(effects) == 1, f"{where}, the band holds the curve, the wider band both")


def _privacy_sd(result: Result) -> float:
    if isinstance(result, Effect):
        return result.privacy_sd
    return float(result.standard_errors(result.examples()[1])[1].mean())


def _vault(table: pa.Table, schema: Schema) -> Vault:
    return Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=1000, delta=1e-3))


def _only_a_source(vault: Vault) -> Source:
    """A source that answers from a vault and has nothing else to reach for."""

    class OnlyASource:
        schema, n, arm_sizes, caveats = vault.schema, vault.n, vault.arm_sizes, vault.caveats

        @staticmethod
        def release(query: Query, guarantee: Guarantee) -> Release:
            return vault.release(query, guarantee)

    return OnlyASource()
