"""One run: a fresh table, a fresh vault for each estimator, and what each of them printed."""

import re
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.reference import knowing, plain
from benchmarks.ordinary.table import Draw, Table, Values
from dpcausal.queries import StratumContrasts
from dpcausal.results.effect import Effect, Estimator
from dpcausal.source import RecordingSource, Source

EPSILON, DELTA = 1.0, 1e-6
NO_REPORT = "no report"
_BUDGET = dpc.Budget(epsilon=100, delta=1e-3)

Run = dict[str, Any]
"""What one estimator gave on one table, as a line of JSON."""


@cache
def _ranking(name: str, n: int, *, adjusted: bool) -> dpc.Ranking:
    table, guarantee = TABLES[name], dpc.Guarantee(epsilon=EPSILON, delta=DELTA)
    return dpc.rank_estimators(table.rehearsal(n), guarantee, covariates=None if adjusted else [])


def first_ranked(table: Table, n: int) -> dpc.Ranking:
    """Return the ranking that a planner of a table would go by."""
    return _ranking(table.name, n, adjusted=not table.randomised)


def _strata(table: Table, n: int) -> Estimator | None:
    """Return the strata that the ranking lists, if it lists any."""
    ranking = _ranking(table.name, n, adjusted=True)
    listed = (candidate.estimator for candidate in (*ranking.candidates, *ranking.not_ranked))
    return next((each for each in listed if isinstance(each, dpc.Stratification)), None)


ESTIMATORS: dict[str, Callable[[Table, int], Estimator | None]] = {
    "first ranked": lambda table, n: first_ranked(table, n).best,
    "doubly robust": lambda table, _: dpc.DoublyRobust(covariates=table.names),
    "doubly robust, ATO": lambda table, _: dpc.DoublyRobust(covariates=table.names, estimand="ATO"),
    "weighting, ATE": lambda table, _: dpc.InverseWeighting(covariates=table.names),
    "weighting, ATO": lambda table, _: dpc.InverseWeighting(covariates=table.names, estimand="ATO"),
    "regression": lambda table, _: dpc.RegressionAdjustment(covariates=table.names),
    "strata": _strata,
}


def _estimate(key: str, estimator: Estimator, table: Table, n: int, source: Source) -> Effect:
    if key == "first ranked":
        return first_ranked(table, n).estimate(source)
    return estimator.estimate(source, epsilon=EPSILON, delta=DELTA)


def drawn(name: str, n: int, run: int) -> Draw:
    """Return the table of a run: the same for every estimator and every version of the code."""
    return TABLES[name].draw(np.random.default_rng((zlib.crc32(name.encode()), n, run)), n)


def simulate(task: tuple[str, int, int, Sequence[str]]) -> dict[str, Run]:
    """Return what each of these estimators gave on one table."""
    name, n, run, keys = task
    start = time.process_time()
    table, draw = TABLES[name], drawn(name, n, run)
    right = {estimand: (_short(value), _short(error)) for estimand, (value, error) in knowing(table, draw).items()}
    usual = tuple(_short(number) for number in plain(draw))
    before = (time.process_time() - start) / len(keys)
    found: dict[str, Run] = {}
    for key in keys:
        start = time.process_time()
        gave = _one(key, table, n, draw)
        cpu = before + time.process_time() - start
        if run > 0:
            gave.pop("printed", None)  # the words of the first run are enough
        found[key] = {"run": run, **gave, "aipw": right, "plain": usual, "cpu": _short(cpu)}
    return found


def _one(key: str, table: Table, n: int, draw: Draw) -> Run:
    try:
        estimator = ESTIMATORS[key](table, n)
        if estimator is None:
            return {"error": "not ranked"}
        plan = _interval(_estimate(key, estimator, table, n, table.rehearsal(n))).get("half")
        vault = dpc.Vault(draw.table(), table.schema, ledger="sqlite://", budget=_BUDGET)
        source = RecordingSource(vault)
        effect = _estimate(key, estimator, table, n, source)
        kind = _verdict(effect, estimator, table, vault)
    except Exception as failed:  # noqa: BLE001 (a failure is a result too)
        return {"error": f"{type(failed).__name__}: {failed}"[:300]}
    estimand = estimand_of(effect.estimand)
    return (
        {"estimator": type(estimator).__name__, "of": estimand, "estimate": _short(effect.estimate)}
        | _interval(effect)
        | ({"shift": _short(_shift(source, effect, table, draw))} if estimand == "strata" else {})
        | {"plan": plan, "verdict": kind, "warnings": len(effect.warnings), "printed": effect.estimand}
    )


def _interval(effect: Effect) -> Run:
    """Return the half width, and the middle where it is not the estimate; or why there is no interval."""
    if effect.no_interval:
        return {"refused": effect.no_interval[:120]}
    low, high = effect.interval(0.95)
    middle, half = (low + high) / 2, (high - low) / 2
    return {"half": _short(half)} | ({} if abs(middle - effect.estimate) < 1e-6 * half else {"middle": _short(middle)})


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def _verdict(effect: Effect, estimator: Estimator, table: Table, vault: dpc.Vault) -> str:
    """Return the conclusion of the effect's report, or that there is no report."""
    study = dpc.Study(
        name="ordinary",
        question="Does it help?",
        schema=table.schema,
        estimator=estimator,
        epsilon=EPSILON,
        delta=DELTA,
        design="trial" if table.randomised else "observational",
    )
    try:
        return dpc.Report.of(effect, study, vault.ledger, date=date(2026, 1, 1)).verdict.kind
    except Exception:  # noqa: BLE001 (the effect counts all the same)
        return NO_REPORT


def estimand_of(printed: str) -> str:
    """Return the estimand that an effect prints: a key of the truths, `strata`, or the words where none is known."""
    for pattern, key in (
        (r"\bstrata\b", "strata"),
        ("overlap", "ATO"),
        ("(on|in|of|among) the treated", "ATT"),
        ("^average treatment effect", "ATE"),
    ):
        if re.search(pattern, printed):
            return key
    return printed


def _shift(source: RecordingSource, effect: Effect, table: Table, draw: Draw) -> float:
    """Return by how much the effect in strata, each counting as it does for the estimator, exceeds the average one."""
    compared = ~np.isnan(draw.columns["y"])
    (by,) = [release.query.by for release in source.releases if isinstance(release.query, StratumContrasts)]
    codes = [_codes(cut, table, draw)[compared] for cut in by]
    _, stratum = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    treated = draw.columns["treated"][compared]
    t, c, effects = (np.bincount(stratum.ravel(), each) for each in (treated, 1 - treated, draw.effect[compared]))
    found = re.search(r"cap (\d+)", effect.method)
    cap = float(found[1]) if found else np.inf
    both = (t > 0) & (c > 0)
    t, c, effects = t[both], c[both], effects[both]
    counts = np.minimum(t, cap * c) + np.minimum(c, cap * t)
    return float((counts * effects / (t + c)).sum() / counts.sum() - draw.effect[compared].mean())


def _codes(cut: dpc.Cut, table: Table, draw: Draw) -> Values:
    """Return the bin or value of each unit, a missing cell counting as its column declares."""
    name, edges = cut.name, cut.edges
    if name.endswith(" is missing"):
        return np.isnan(draw.columns[name.removesuffix(" is missing")]).astype(float)
    column = next(each for each in table.schema.covariates if each.name == name)
    values = draw.columns[name]
    gone = np.array([value is None for value in values]) if values.dtype == object else np.isnan(values)
    filled = np.where(gone, column.missing_value, values)
    codes: Values = (
        np.digitize(filled.astype(float), edges) if edges else np.unique(filled.astype(str), return_inverse=True)[1]
    )
    return codes
