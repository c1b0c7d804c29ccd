"""A simulated table like TCGA: far more columns than noisy sums can hold, and what can still be learned from it.

After the gene-expression experiment of the paper, whose data need an agreement: 9,659 records, 4,000 columns, treatment
by the sum of the ten columns that vary most, one effect for everybody.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import BUDGET, DataSet
from benchmarks.papers.dp_cate.contestants import DELTA
from benchmarks.papers.dp_cate.influence import SECOND_STAGES, Rows, finite_version, networks
from benchmarks.papers.dp_cate.printed import quiet
from dpcausal.errors import DpcausalError

Narrow = NDArray[np.float32]

EFFECT = 1.0
EPSILON = 1.0
TEN = 10
_FACTORS = 20
_FRESH = 1_000


@dataclass(frozen=True)
class Wide:
    """The table's columns, arms and outcomes, and fresh profiles."""

    columns: Narrow
    arms: NDArray[np.int64]
    outcomes: Narrow
    fresh: Narrow


def drawn(units: int, columns: int, seed: int) -> Wide:
    """Columns that vary less and less, half of it in common with others by way of twenty factors."""
    design = np.random.default_rng(0)  # the same for each table: how columns hang together is about genes, not units
    loadings = design.standard_normal((_FACTORS, columns), dtype=np.float32)
    loadings /= np.linalg.norm(loadings, axis=0)
    sizes = (3 * np.arange(1, columns + 1) ** -0.25).astype(np.float32)
    generator = np.random.default_rng((seed, 1))
    values = generator.standard_normal((units + _FRESH, columns), dtype=np.float32)
    values += generator.standard_normal((units + _FRESH, _FACTORS), dtype=np.float32) @ loadings
    values *= sizes / np.sqrt(np.float32(2))
    total = values[:units, :TEN].sum(axis=1)
    total /= 3 * np.sqrt(np.float32(TEN))
    arms = (generator.random(units) < 1 / (1 + np.exp(-1.5 * total))).astype(np.int64)
    outcomes = EFFECT * arms + total + generator.standard_normal(units, dtype=np.float32)
    return Wide(values[:units], arms, outcomes, values[units:])


def _names(count: int) -> list[str]:
    return [f"x{place}" for place in range(count)]


def _data(table: Wide, columns: Narrow, ends: float) -> DataSet:
    named = dict(zip(_names(columns.shape[1]), columns.T, strict=True))
    return DataSet(
        name="wide",
        table=pa.table({"t": table.arms, "y": table.outcomes} | {name: pa.array(each) for name, each in named.items()}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", -10, 10),
        covariates=tuple(dpc.Real(name, -ends, ends) for name in named),
        truth=EFFECT,
    )


def _projected(columns: Narrow, kind: str) -> Narrow:
    """Ten numbers for each record, by a public rule that looks at no other record; nearly all within 3 of 0."""
    if kind == "blocks":  # of columns in the order in which they are known to vary
        blocks = np.array_split(columns, TEN, axis=1)
        return np.column_stack([block.sum(axis=1) / np.sqrt(np.float32(block.shape[1])) for block in blocks])
    signs = np.random.default_rng(1).choice([-1, 1], (columns.shape[1], TEN)).astype(np.float32)
    sums: Narrow = columns @ signs / np.sqrt(np.float32(columns.shape[1]))
    return sums


Ask = Callable[[Wide], tuple[DataSet, Narrow, Any]]


def _learner(covariates: int, functions_of: int) -> dpc.RLearner:
    return dpc.RLearner(covariates=_names(covariates), basis=dpc.Polynomial(_names(functions_of)))


def _first(count: int, estimator: Any) -> Ask:  # noqa: ANN401 (of a curve or of an average)
    """Return the first columns, which are known to vary most."""
    return lambda table: (_data(table, table.columns[:, :count], 12), table.fresh[:, :TEN], estimator)


def _sum(table: Wide) -> tuple[DataSet, Narrow, Any]:
    sums = [each[:, :TEN].sum(axis=1, keepdims=True) / TEN for each in (table.columns, table.fresh)]
    return _data(table, sums[0], 4), sums[1], _learner(1, 1)


def _projection(kind: str) -> Ask:
    def ask(table: Wide) -> tuple[DataSet, Narrow, Any]:
        return _data(table, _projected(table.columns, kind), 3), _projected(table.fresh, kind), _learner(TEN, TEN)

    return ask


def _all(table: Wide) -> tuple[DataSet, Narrow, Any]:
    count = table.columns.shape[1]
    return _data(table, table.columns, 12), table.fresh, _learner(count, count)


TEN_COLUMNS = "R-learner, ten public columns"

WAYS: dict[str, Ask] = {
    "difference in means": _first(TEN, dpc.DifferenceInMeans()),
    "doubly robust average, ten public columns": _first(TEN, dpc.DoublyRobust(covariates=_names(TEN))),
    TEN_COLUMNS: _first(TEN, _learner(TEN, TEN)),
    "R-learner, the sum of ten public columns": _sum,
    "R-learner, ten sums of neighbouring columns": _projection("blocks"),
    "R-learner, ten random sums of all columns": _projection("random"),
    "R-learner, ten public columns, models of 100": _first(100, _learner(100, TEN)),
}

REFUSED = "R-learner, all columns"


SHOWN = 100
"""How many fresh profiles are kept for the figure."""


def asked(units: int, columns: int, repeat: int) -> list[dict[str, Any]]:
    """Return what each way of asking releases at one epsilon: its error, processor time, or why it was refused."""
    table = drawn(units, columns, repeat)
    ways = WAYS if repeat else WAYS | {REFUSED: _all}
    return [{"way": way} | _asked(table, ask) for way, ask in ways.items()]


def shown(units: int, columns: int, epsilons: tuple[float, ...]) -> dict[str, Any]:
    """Return the effects of some fresh profiles, with the sum of all their columns, at each epsilon."""
    table = drawn(units, columns, 0)
    data, fresh, estimator = WAYS[TEN_COLUMNS](table)
    lines = []
    for epsilon in epsilons:
        vault = dpc.Vault(data.relation(), data.schema("record"), ledger="sqlite://", budget=BUDGET)
        curve = estimator.estimate(vault, epsilon=epsilon, delta=DELTA)
        lines.append({"epsilon": epsilon, "effects": _listed(curve.effect(fresh[:SHOWN]))})
    return {"sums": _listed(table.fresh[:SHOWN].sum(axis=1)), "lines": lines}


def printed(units: int, columns: int, first: int) -> dict[str, Any]:
    """Return the paper's finite version with a network of the first columns: effects, and noise at epsilon 1."""
    table = drawn(units, columns, 0)
    own, fresh = (each[:, :first].astype(np.float64) / 12 for each in (table.columns, table.fresh[:SHOWN]))
    places = np.random.default_rng(2).uniform(-1, 1, (256, first))
    rows = Rows(own, table.arms.astype(np.float64), table.outcomes.astype(np.float64), (-10.0, 10.0), places)
    with quiet():
        effects, sd = finite_version(rows, fresh, networks("R", SECOND_STAGES["network"]()), DELTA)
    return {"columns": first, "effects": _listed(effects), "sd": sd}


def _listed(values: Any) -> list[float]:  # noqa: ANN401 (an array of any kind)
    return [round(float(value), 3) for value in values]


def _asked(table: Wide, ask: Ask) -> dict[str, Any]:
    start = time.process_time()
    data, fresh, estimator = ask(table)
    vault = dpc.Vault(data.relation(), data.schema("record"), ledger="sqlite://", budget=BUDGET)
    opened = time.process_time()
    try:
        found = estimator.estimate(vault, epsilon=EPSILON, delta=DELTA)
    except DpcausalError as refused:
        return {
            "error": None,
            "refused": str(refused),
            "opening": opened - start,
            "seconds": time.process_time() - opened,
        }
    effects = found.effect(fresh) if isinstance(found, dpc.EffectCurve) else np.array([found.estimate])
    error = float(np.sqrt(np.mean((effects - EFFECT) ** 2)))
    return {"error": error, "refused": None, "opening": opened - start, "seconds": time.process_time() - opened}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean error and the median processor time of a way of asking."""
    errors = [run["error"] for run in runs if run["error"] is not None]
    return {
        "repeats": len(runs),
        "pehe": float(f"{np.mean(errors):.4g}") if errors else None,
        "refused": runs[0]["refused"],
        "opening_seconds": round(float(np.median([run["opening"] for run in runs])), 2),
        "seconds": round(float(np.median([run["seconds"] for run in runs])), 2),
    }
