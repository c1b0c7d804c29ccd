"""AIM, and MST in the place of PrivSyn: synthetic data by OpenDP, then matching without privacy on them.

OpenDP's `extras.mbi` has AIM (McKenna et al. 2022) and MST (McKenna et al. 2021) and not PrivSyn, which has no package.
MST stands for it: both choose pairs of columns privately, measure them with Gaussian noise and generate a table that
agrees with them. It needs the package mbi, which is not a dependency of this project. Covariates are the short list,
numbers in `BINS` bins of their public range, the outcome in `OUTCOME_BINS`: every column more costs seconds of
compiling a model. AIM has `ROUNDS` rounds and pairs only.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np

import dpcausal as dpc
from benchmarks.accuracy.references import matching, scores
from benchmarks.datasets import DataSet
from benchmarks.papers.private.grid import DELTA
from benchmarks.papers.private.methods import only
from benchmarks.papers.private.printed import Floats

ALGORITHMS = ("AIM", "MST")
BINS, OUTCOME_BINS = 4, 16
ROUNDS, STEPS = 8, 250


def available() -> bool:
    """Whether the package that OpenDP needs for synthetic data is there."""
    return find_spec("mbi") is not None


def estimate(data: DataSet, algorithm: str, epsilon: float) -> float:
    """Return matching without privacy on a synthetic table of as many units."""
    table = _synthetic(only(data, data.short), algorithm, epsilon)
    arms = np.asarray(table[data.treatment.name].to_numpy(), dtype=float)
    if len(np.unique(arms)) < 2:
        return 0.0
    columns = [_number(table[name]) for name in data.short]
    return matching(scores(np.column_stack(columns), arms), arms, table[data.outcome.name].to_numpy().astype(float))


def _number(column: Any) -> Floats:  # noqa: ANN401 (of polars, an extra)
    """Return a column from 0 to 1, letters by their place."""
    values: Floats = np.unique(column.to_numpy(), return_inverse=True)[1].astype(float)
    return values / max(values.max(), 1.0)


def _synthetic(data: DataSet, algorithm: str, epsilon: float) -> Any:  # noqa: ANN401
    import opendp.prelude as dp  # noqa: PLC0415 (an extra)
    import polars as pl  # noqa: PLC0415

    dp.enable_features("contrib")
    keys, cuts, columns = _declared(data)
    rho = _rho(epsilon)
    context = dp.Context.compositor(
        data=pl.DataFrame(columns).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    chosen = {
        "AIM": lambda: dp.mbi.AIM(queries=2, rounds=ROUNDS, estimator=_fitted),
        "MST": lambda: dp.mbi.MST(estimator=_fitted),
    }[algorithm]()
    # Parts of the budget are added up with rounding, and then refused for being too much: leave a little over.
    with patch("opendp.extras.mbi._mst.prior", lambda part: part * (1 - 1e-12)):
        table = context.query(rho=rho).contingency_table(keys=keys, cuts=cuts, algorithm=chosen).release()
    return table.synthesize(rows=data.n)


def _fitted(domain: object, losses: object, *, potentials: object = None) -> object:
    from mbi.estimation import mirror_descent  # noqa: PLC0415 (an extra)

    return mirror_descent(domain, losses, potentials=potentials, iters=STEPS)


def _declared(data: DataSet) -> tuple[dict[str, list[Any]], dict[str, list[float]], dict[str, list[Any]]]:
    """Return the public values of columns, the public cuts of those that are numbers, and the columns."""
    keys: dict[str, list[Any]] = {data.treatment.name: [0, 1]}
    columns: dict[str, list[Any]] = {data.treatment.name: data.column(data.treatment.name).astype(int).tolist()}
    cuts: dict[str, list[float]] = {}
    for column, bins in [*((column, BINS) for column in data.covariates), (data.outcome, OUTCOME_BINS)]:
        values = data.column(column.name)
        if isinstance(column, dpc.Real):
            cuts[column.name] = np.linspace(column.low, column.high, bins + 1)[1:-1].tolist()
            columns[column.name] = np.clip(values, column.low, column.high).astype(float).tolist()
        else:
            whole = not isinstance(column.values[0], str)
            keys[column.name] = [int(value) for value in column.values] if whole else list(column.values)
            columns[column.name] = values.astype(int).tolist() if whole else values.tolist()
    return keys, cuts, columns


def _rho(epsilon: float) -> float:
    """Return the zero-concentrated budget that gives epsilon and delta."""
    tail = math.log(1 / DELTA)
    return (math.sqrt(epsilon + tail) - math.sqrt(tail)) ** 2


@contextmanager
def timer() -> Iterator[Callable[[], float]]:
    """Measure seconds of processor time."""
    start = time.process_time()
    yield lambda: time.process_time() - start
