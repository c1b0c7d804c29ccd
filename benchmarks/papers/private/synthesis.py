"""AIM, and MST in the place of PrivSyn: synthetic data by OpenDP, then matching without privacy on them.

OpenDP's `extras.mbi` has AIM (McKenna et al. 2022) and MST (McKenna et al. 2021) and not PrivSyn, which has no package.
MST stands for it: both choose pairs of columns privately, measure them with Gaussian noise and generate a table that
agrees with them. It needs the package mbi, which is not a dependency of this project. Covariates are the short list,
numbers in `BINS` bins of their public range, the outcome in `OUTCOME_BINS`. AIM chooses among pairs. With so few
columns the whole table of cells fits into memory, so a model is fitted to it as it is, by mirror descent like OpenDP's
own; that one compiles a graphical model for each fit, which takes minutes for each estimate.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
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
STEPS = 200


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
    return values / max(float(values.max()), 1.0)


def _synthetic(data: DataSet, algorithm: str, epsilon: float) -> Any:  # noqa: ANN401
    import opendp.prelude as dp  # noqa: PLC0415 (an extra)
    import polars as pl  # noqa: PLC0415
    from opendp.extras import mbi  # noqa: PLC0415

    dp.enable_features("contrib")
    keys, cuts, columns = _declared(data)
    rho = _rho(epsilon)
    context = dp.Context.compositor(
        data=pl.DataFrame(columns).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    chosen = mbi.AIM(queries=2, estimator=_fitted) if algorithm == "AIM" else mbi.MST(estimator=_fitted)
    with _calibrated(data.name):
        table = context.query(rho=rho).contingency_table(keys=keys, cuts=cuts, algorithm=chosen).release()
    return table.synthesize(rows=data.n).drop_nulls()


_SIZES: dict[tuple[str, ...], float] = {}
"""Sizes of noise, which depend on public numbers alone."""


@contextmanager
def _calibrated(name: str) -> Iterator[None]:
    """Find sizes of noise to within a thousandth and once, in place of to the last bit and for every estimate.

    Each estimate would take half a minute otherwise, nearly all of it for that. Also leave a little of the budget over:
    its parts are added up with rounding, and then refused for being too much.
    """

    def size(make: Callable[[float], Any], d_in: object, d_out: object, *_: object, **__: object) -> float:
        key = name, make.__qualname__, repr(d_in), repr(d_out)
        if key not in _SIZES:
            low, high = 1e-4, 1e6
            while high > 1.001 * low:
                middle = math.sqrt(low * high)
                low, high = (low, middle) if make(middle).check(d_in, d_out) else (middle, high)
            _SIZES[key] = high
        return _SIZES[key]

    with (
        patch("opendp.mod.binary_search_param", size),
        patch("opendp.extras.mbi._table.binary_search_param", size),
        patch("opendp.extras.mbi._mst.prior", lambda part: part * (1 - 1e-12)),
    ):
        yield


def _fitted(domain: Any, losses: Any, *, potentials: Any = None) -> Any:  # noqa: ANN401, ARG001 (OpenDP's signature)
    """Return the distribution over all cells that agrees best with noisy marginals."""
    from mbi import CliqueVector, Factor, MarkovRandomField  # type: ignore[import-not-found]  # noqa: PLC0415 (an extra)
    from mbi.estimation import minimum_variance_unbiased_total  # type: ignore[import-not-found]  # noqa: PLC0415

    total = float(minimum_variance_unbiased_total(losses))
    known = [(_others(domain, each.clique), np.asarray(each.noisy_measurement, float), each.stddev) for each in losses]
    cells = descended(domain.shape, known, total)
    whole = tuple(domain.attrs)
    logarithms = CliqueVector(domain, [whole], {whole: Factor(domain, np.log(cells))})
    counts = CliqueVector(domain, [whole], {whole: Factor(domain, total * cells)})
    return MarkovRandomField(potentials=logarithms, marginals=counts, total=total)


def _others(domain: Any, clique: Sequence[str]) -> tuple[int, ...]:  # noqa: ANN401
    return tuple(place for place, name in enumerate(domain.attrs) if name not in clique)


def descended(shape: Sequence[int], known: Sequence[tuple[tuple[int, ...], Floats, float]], total: float) -> Floats:
    """Return shares of cells by mirror descent on the squared distance to noisy marginals.

    Args:
        shape: How many values each column has.
        known: For each marginal the columns that are summed over, the noisy counts and their standard deviation.
        total: The number of units.
    """

    def slopes(cells: Floats) -> tuple[float, Floats]:
        loss, slope = 0.0, np.zeros(shape)
        for others, counts, sd in known:
            marginal = total * cells.sum(axis=others, keepdims=True)
            missed = (marginal - counts.reshape(marginal.shape)) / sd
            loss += float((missed**2).sum()) / 2
            slope = slope + missed * total / sd
        return loss, slope

    cells = np.full(shape, 1 / math.prod(shape))
    loss, slope = slopes(cells)
    step = 1 / (float(np.abs(slope).max()) + 1e-12)
    for _ in range(STEPS):
        further = np.log(cells) - step * slope
        moved = np.exp(further - further.max())
        moved = np.maximum(moved / moved.sum(), 1e-12)
        new_loss, new_slope = slopes(moved)
        if new_loss <= loss:
            cells, loss, slope, step = moved, new_loss, new_slope, 1.5 * step
        else:
            step /= 2
    return cells / float(cells.sum())


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
