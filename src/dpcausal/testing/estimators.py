"""What every estimator must do, as one check."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpcausal.errors import BudgetExceededError, RefusedError
from dpcausal.guarantee import Guarantee
from dpcausal.ledger import Budget
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.results.curve import CurveEstimator, EffectCurve
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RecordingSource
from dpcausal.testing.tables import hostile_tables, standard_schema, synthetic_table
from dpcausal.utils.arrays import Array
from dpcausal.utils.other_names import called_as
from dpcausal.vault import Vault

UNITS = 600

PRICES = ((0.01, 0.0), (1.0, 0.0), (1.0, 1e-6))
"""The epsilons and deltas that an estimator is checked with."""

_OUTSIDE = 3
"""How many units are outside the comparison for each one in it, in the check of tables with another arm."""

AnyEstimator = Estimator | CurveEstimator
Result = Effect | EffectCurve
Asked = list[tuple[str, Guarantee, str]]


@called_as("check_estimator(MyEstimator())")
def check_estimator(estimator: AnyEstimator, schema: Schema | None = None, *, is_effect: bool = True) -> None:
    """Raise an AssertionError that names the broken rule, unless an estimator behaves as all must.

    Args:
        estimator: The estimator, made for the columns of the schema.
        schema: The schema of the tables to check it on, without a `Unit`; `standard_schema()` by default.
        is_effect: Whether it estimates an average effect of the treatment, which is then looked for.

    Example:
        >>> from dpcausal import DifferenceInMeans
        >>> check_estimator(DifferenceInMeans())
    """
    schema = schema or standard_schema()
    _check_parameters(estimator)
    _check_rehearsal(estimator, schema)
    rehearsed = {price: _asked_in_rehearsal(estimator, schema, *price) for price in PRICES}
    for name, table, prices in _tables(schema):
        vault = _vault(table, schema)
        for price in prices:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                asked = _check_release(estimator, vault, *price, f"on {name}")
            _must(asked == rehearsed[price], f"on {name}, the queries are those of the rehearsal, at the same prices")
    _check_budget(estimator, schema)
    if not is_effect:
        return
    _check_estimate(estimator, schema)
    if schema.treatment.undeclared is None:
        _check_estimate(estimator, _with_another_arm(schema), outside=_OUTSIDE)


def _tables(schema: Schema) -> Iterator[tuple[str, pa.Table, Sequence[tuple[float, float]]]]:
    """Yield tables with the prices to check on each: on hostile ones one in turn, on an ordinary one all."""
    for (name, table), price in zip(hostile_tables(schema, UNITS).items(), itertools.cycle(PRICES), strict=False):
        yield name, table, [price]
    yield "an ordinary table", synthetic_table(schema, UNITS), PRICES


def _must(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _check_parameters(estimator: AnyEstimator) -> None:
    _must(dataclasses.is_dataclass(estimator), "an estimator is a dataclass of its parameters")
    parameters: Any = estimator
    _must(parameters.__dataclass_params__.frozen, "an estimator is frozen")
    _must(dataclasses.replace(parameters) == estimator, "an estimator is made of its parameters and nothing else")


def _check_rehearsal(estimator: AnyEstimator, schema: Schema) -> None:
    epsilons = (0.5, 1.0, 2.0)
    effects = [estimator.estimate(Rehearsal(schema, n=UNITS), epsilon=epsilon) for epsilon in epsilons]
    if not isinstance(effects[0], Effect):  # a curve is shrunk where noise is large, and its noise with it
        epsilons = (4.0, 8.0, 16.0)
        effects = [estimator.estimate(Rehearsal(schema, n=UNITS), epsilon=epsilon) for epsilon in epsilons]
    for effect, epsilon in zip(effects, epsilons, strict=True):
        _check_result(effect, "in rehearsal")
        _must(effect.rehearsed, "a rehearsed effect has receipts without ledger entries")
        _must(effect.guarantee.epsilon == epsilon, "the guarantee is the one asked for")
    sizes = [_privacy_sd(effect) for effect in effects]
    _must(sizes[0] > sizes[1] > sizes[2] > 0, "there is noise, and more epsilon means less of it")


def _asked_in_rehearsal(estimator: AnyEstimator, schema: Schema, epsilon: float, delta: float) -> Asked:
    recording = RecordingSource(Rehearsal(schema, n=UNITS))
    estimator.estimate(recording, epsilon=epsilon, delta=delta)
    return _asked(recording.releases)


def _asked(releases: list[Release]) -> Asked:
    """Return the queries behind releases. Numbers in them may come from earlier answers; names and prices may not."""
    return [(each.query.name, each.guarantee, each.family) for each in releases]


def _check_release(estimator: AnyEstimator, vault: Vault, epsilon: float, delta: float, where: str) -> Asked:
    """Check an estimator on a vault that may have answered before, and return what it asked."""
    source = RecordingSource(vault)  # which has nothing of the vault to reach for
    before, entries = vault.ledger.spent.epsilon, len(vault.ledger.entries())
    effect = estimator.estimate(source, epsilon=epsilon, delta=delta)
    asked = _asked(source.releases)
    _check_result(effect, where)
    asked_for = Guarantee(epsilon=epsilon, delta=delta, protects=vault.schema.protects)
    _must(
        effect.guarantee in (asked_for, dataclasses.replace(asked_for, delta=0.0)),
        f"{where}, the guarantee is the one asked for, or has delta 0 where that needs less noise",
    )
    billed_delta = math.fsum(receipt.delta for receipt in effect.receipts)
    _must(billed_delta <= effect.guarantee.delta * (1 + 1e-12), f"{where}, receipts add up to no more than its delta")
    billed = math.fsum(receipt.epsilon for receipt in effect.receipts)
    _must(billed <= epsilon * (1 + 1e-12), f"{where}, receipts add up to no more than the epsilon asked for")
    new = math.fsum(receipt.epsilon for receipt in effect.receipts if (receipt.entry or 0) >= entries)
    spent = vault.ledger.spent.epsilon
    _must(math.isclose(spent - before, new, abs_tol=1e-9), f"{where}, the receipts add up to what was spent")
    again = estimator.estimate(source, epsilon=epsilon, delta=delta)
    _must(again == effect, f"{where}, the same request gives the same effect")
    _must(vault.ledger.spent.epsilon == spent, f"{where}, the same request spends nothing")
    return asked


def _check_budget(estimator: AnyEstimator, schema: Schema) -> None:
    """Check that an estimator spends nothing where the budget is a little too small for all its queries."""
    rehearsed = estimator.estimate(Rehearsal(schema, n=UNITS), epsilon=1.0)
    price = math.fsum(receipt.epsilon for receipt in rehearsed.receipts)
    budget = Budget(epsilon=0.999 * price)
    vault = Vault(synthetic_table(schema, UNITS), schema, ledger="sqlite://", budget=budget)
    try:
        estimator.estimate(vault, epsilon=1.0)
    except BudgetExceededError:
        _must(
            vault.ledger.spent.epsilon == 0,
            "a budget that is too small for all queries is refused before the first: extend BaseEstimator",
        )


def _check_estimate(estimator: AnyEstimator, schema: Schema, outside: int = 0) -> None:
    """Check that an effect of a fifth of the outcome's range is found, with its sign and size, under little noise.

    Args:
        outside: How many units are outside the comparison for each one in it. They have the largest outcome, so that an
            estimator which counts them anywhere is far off.
    """
    low, high = schema.outcome_bounds
    truth = (high - low) / 5
    treatment, table = schema.treatment, synthetic_table(schema, 4 * UNITS)
    drawn = np.random.default_rng(3).integers(0, 2, 4 * UNITS)
    arms = [treatment.compared[place] for place in drawn]
    if outside:
        arms = [arm if unit % (1 + outside) == 0 else treatment.outside[0] for unit, arm in enumerate(arms)]
    cells = pa.array([arm if isinstance(arm, str) else float(arm) for arm in arms])
    table = table.set_column(table.column_names.index(treatment.name), treatment.name, cells)
    treated = np.array([arm == treatment.compared[1] for arm in arms])
    base = np.random.default_rng(1).uniform(0.3, 0.5, len(treated))
    far = np.array([arm in treatment.outside for arm in arms])
    if isinstance(schema.outcome, Real):
        outcome = pa.array(np.where(far, high, low + (high - low) * base + truth * treated))
    else:
        outcome = pa.array([schema.outcome.values[int(yes)] for yes in (base + treated / 5 > 0.5) | far])
        truth = 1.0
    vault = _vault(_in_roles(estimator, table, schema, outcome, treated), schema)
    effect = estimator.estimate(RecordingSource(vault), epsilon=100.0)
    found = effect.estimate if isinstance(effect, Effect) else effect.ate(effect.examples()[1])
    among = ", also where most units are in an arm outside the comparison" if outside else ""
    _must(abs(found - truth) < truth / 2, f"an effect without confounding is found with its sign and size{among}")


def _with_another_arm(schema: Schema) -> Schema:
    """Return a schema with one more arm, which is outside the comparison."""
    treatment = schema.treatment
    reference, compare = treatment.compared
    numbers = [float(arm) for arm in treatment.arms if not isinstance(arm, str)]
    arms = (*treatment.arms, max(numbers) + 1 if numbers else "another arm")
    wider = dataclasses.replace(treatment, arms=arms, reference=reference, compare=compare, labels=None)
    return dataclasses.replace(schema, treatment=wider)


def _in_roles(estimator: AnyEstimator, table: pa.Table, schema: Schema, outcome: pa.Array, treated: Array) -> pa.Table:
    """Return a table in which the columns that an estimator names agree with one effect.

    Everybody receives what was assigned, values before are equal, in all periods but the last nobody is treated, and
    who is treated is on the treated side of a cutoff.
    """
    columns = {column.name: column for column in schema.covariates}
    cells = {schema.outcome.name: outcome}
    if received := columns.get(getattr(estimator, "received", "")):
        cells[received.name] = pa.array([received.values[int(yes)] for yes in treated])  # type: ignore[union-attr]
    if before := columns.get(getattr(estimator, "before", "")):
        cells[before.name] = pa.array([before.missing_value] * len(treated))
    if period := columns.get(getattr(estimator, "period", "")):
        last = np.array([each == period.values[-1] for each in table[period.name].to_pylist()])  # type: ignore[union-attr]
        untreated = np.array(outcome.to_pylist())
        low, high = schema.outcome_bounds
        cells[schema.outcome.name] = pa.array(untreated - (high - low) / 5 * (treated & ~last))
    if running := columns.get(getattr(estimator, "running", "")):
        design: Any = estimator
        far = np.random.default_rng(2).uniform(0.01, 0.99, len(treated)) * design.bandwidth
        above = treated != design.treated_below
        cells[running.name] = pa.array(design.cutoff + np.where(above, far, -far))
    for name, values in cells.items():
        table = table.set_column(table.column_names.index(name), name, values)
    return table


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
