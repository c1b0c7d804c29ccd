"""Plans of what is ranked first on ordinary tables, beside the half widths that came.

`python -m benchmarks.ordinary.plans` runs no study: realised half widths are the stored ones. It stores what it finds,
and writes it into the page.
"""

import json
import math
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.page import FILE, PLANS, publish
from benchmarks.ordinary.runs import first_ranked
from benchmarks.ordinary.table import Draw, Table
from dpcausal.planning.precision import half_width

_UNITS = 200_000
_EDGES = np.linspace(0, 1, 1_001)

Found = dict[str, dict[str, float]]
"""By table, the plan from guesses, the plan that knows arms and outcome, and what came."""


def main() -> None:
    PLANS.write_text(json.dumps(compared(), indent=1) + "\n", encoding="utf-8")
    publish()


def compared() -> Found:
    """Return plans and realised half widths of all tables that were run."""
    cells = json.loads(FILE.read_text(encoding="utf-8"))["cells"]
    found = {}
    for name, table in TABLES.items():
        realised = cells.get(f"{name} {table.n}", {}).get("first ranked", {}).get("half_width")
        if realised:
            ranking = first_ranked(table, table.n)
            sources = {"guessed": table.rehearsal(table.n), "known": informed(table)}
            plans = {key: half_width(ranking.estimate(source)) for key, source in sources.items()}
            found[name] = {key: float(f"{plan:.4g}") for key, plan in plans.items()} | {"realised": realised}
    return found


def informed(table: Table) -> dpc.Rehearsal:
    """Return the expectations of a planner who knows arms and outcome from a large table of the same kind.

    That is not to know how covariates are distributed, or what shapes models should have; but which may be missing.
    """
    draw = table.draw(np.random.default_rng(zlib.crc32(table.name.encode())), _UNITS)
    outcomes, treated = draw.columns["y"].astype(float), draw.columns["treated"] == 1
    seen = ~np.isnan(outcomes)
    arms = [seen & ~treated, seen & treated]
    sd = math.sqrt(np.mean([outcomes[arm].var() for arm in arms]))
    known: dict[str, Any] = {
        "schema": replace(table.schema, covariates=[_indicated(column, draw) for column in table.covariates]),
        "treated_share": float(treated[seen].mean()),
        "outcome_mean": float(outcomes[seen].mean()),
        "compared_share": float(seen.mean()),
        "confounding": 0.0,
    }
    if isinstance(table.outcome, dpc.Real):
        known["outcome_sd"] = sd
    if not table.randomised:
        without = outcomes - draw.effect * treated
        shares = [np.histogram(draw.propensity[arm], _EDGES)[0] / arm.sum() for arm in arms]
        known["overlap"] = float(np.minimum(*shares).sum())
        known["confounding"] = abs(float(without[arms[1]].mean() - without[arms[0]].mean())) / sd
    return replace(table.rehearsal(table.n), **known)


def _indicated(column: Any, draw: Draw) -> Any:  # noqa: ANN401 (any kind of column)
    """Return a column with an indicator if it is a number that lacks values."""
    lacks = isinstance(column, dpc.Real) and np.isnan(draw.columns[column.name].astype(float)).any()
    return replace(column, indicator=True) if lacks else column


if __name__ == "__main__":
    main()
