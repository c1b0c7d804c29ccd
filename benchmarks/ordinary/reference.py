"""Estimates without privacy on the same tables: by whoever knows the models, and by whoever has the table only."""

from collections.abc import Iterator

import numpy as np

from benchmarks.ordinary.table import Draw, Table, Values, expit, flag


def knowing(table: Table, draw: Draw) -> dict[str, tuple[float, float]]:
    """Return estimate and standard error of AIPW with the right features, without missing covariates, by estimand."""
    return _aipw(_design(table.features(draw)), draw)


def plain(draw: Draw) -> tuple[float, float]:
    """Return those of AIPW with main effects of what is recorded: missing numbers as their mean, with indicators."""
    return _aipw(_design(np.column_stack(list(_recorded(draw)))), draw)["ATE"]


def _recorded(draw: Draw) -> Iterator[Values]:
    for name in draw.complete:
        column = draw.columns[name]
        if column.dtype == object:
            values = sorted({value for value in column if value is not None})
            yield from (flag(column == value) for value in values[1:])
            yield flag(column == None)  # noqa: E711 (cell by cell)
        else:
            gone = np.isnan(column)
            yield np.where(gone, np.nanmean(column), column)
            yield flag(gone)


def _design(features: Values) -> Values:
    spread = features.std(axis=0)
    varying = features[:, spread > 0]
    return np.column_stack([np.ones(len(features)), (varying - varying.mean(axis=0)) / spread[spread > 0]])


def _aipw(design: Values, draw: Draw) -> dict[str, tuple[float, float]]:
    """Return estimates and standard errors among units with an outcome."""
    compared = ~np.isnan(draw.columns["y"])
    x, t, y = design[compared], draw.columns["treated"][compared], draw.columns["y"][compared]
    p = np.clip(_propensity(x, t), 0.005, 0.995)
    m0, m1 = (x @ np.linalg.lstsq(x[t == arm], y[t == arm], rcond=None)[0] for arm in (0, 1))
    found = {}
    for estimand, weight in {"ATE": np.ones(len(t)), "ATO": p * (1 - p), "ATT": p}.items():
        scores = weight * (m1 - m0 + t * (y - m1) / p - (1 - t) * (y - m0) / (1 - p))
        estimate = float(scores.sum() / weight.sum())
        error = (scores - weight * estimate).std(ddof=1) / weight.mean() / len(t) ** 0.5
        found[estimand] = (estimate, float(error))
    return found


def _propensity(x: Values, t: Values) -> Values:
    at = np.zeros(x.shape[1])
    for _ in range(30):
        p = expit(x @ at)
        information = (x * (p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(x.shape[1])
        step = np.linalg.solve(information, x.T @ (t - p))
        at += step
        if np.abs(step).max() < 1e-8:
            break
    return expit(x @ at)
