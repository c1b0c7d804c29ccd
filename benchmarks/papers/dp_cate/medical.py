"""A medical curve on open data, in the place of MIMIC-III: what quitting smoking does to weight, by age and by dose.

NHEFS, as in Hernán and Robins (2020), with nine confounders. The paper shows the effect of ventilation by hematocrit.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks import datasets
from benchmarks.papers.dp_cate import references
from benchmarks.papers.dp_cate.contestants import DELTA, vault
from benchmarks.papers.dp_cate.printed import finite
from benchmarks.papers.dp_cate.tables import Table

ALONG = {"age": (25, 75), "smokeintensity": (0, 40)}
"""Covariates that the curve runs along, with their public bounds."""

TYPICAL: dict[str, float] = {
    "age": 45,
    "sex": 0,
    "race": 0,
    "wt71": 70,
    "smokeintensity": 20,
    "smokeyrs": 25,
    "education": 3,
    "exercise": 1,
    "active": 1,
}
"""A public profile; one covariate at a time runs through its range."""

PLACES = 51


@cache
def _table(folder: Path | None, along: str) -> Table:
    data = datasets.nhefs(folder)
    places = np.linspace(*ALONG[along], PLACES)
    profiles = {name: np.full(PLACES, TYPICAL[name]) for name in data.names} | {along: places}
    profiles = {
        name: cells if isinstance(column, dpc.Real) else cells.astype(int)
        for column, (name, cells) in zip(data.covariates, profiles.items(), strict=True)
    }
    return Table(data, profiles, np.zeros(PLACES), dpc.Polynomial([along]))


def curve(folder: Path | None, along: str, epsilons: tuple[float, ...]) -> dict[str, Any]:
    """Return the effect along a covariate, with bands at each epsilon, without privacy, and as printed."""
    table = _table(folder, along)
    effects, errors = references.same_functions(table)
    lines = []
    for epsilon in epsilons:
        learner = dpc.RLearner(covariates=table.data.names, basis=table.basis)
        found = learner.estimate(vault(table), epsilon=epsilon, delta=DELTA)
        band = () if found.no_interval else found.effect_interval(table.profiles)
        lines.append(
            {
                "epsilon": epsilon,
                "effect": _listed(found.effect(table.profiles)),
                "band": [*map(_listed, band)],
                "no_interval": found.no_interval,
            }
        )
    fit = finite(table, "R", "forest")
    return {
        "along": along,
        "n": table.data.n,
        "places": _listed(table.profiles[along]),
        "no_privacy": {
            "effect": _listed(effects),
            "low": _listed(effects - 1.96 * errors),
            "high": _listed(effects + 1.96 * errors),
        },
        "lines": lines,
        "printed": {"effect": _listed(fit.effects), "sd": fit.sd},
    }


def _listed(values: Any) -> list[float]:  # noqa: ANN401 (an array of any kind)
    return [round(float(value), 3) for value in values]
