"""True effects from a large draw of each table: `python -m benchmarks.ordinary.truth [NAME …]`."""

import json
import sys
from collections.abc import Mapping
from functools import cache

import numpy as np

from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.table import Draw, Table
from benchmarks.parts import PUBLISHED

FILE = PUBLISHED / "ordinary_truths.json"
_DRAWS, _UNITS = 20, 200_000

Truth = Mapping[str, Mapping[str, float]]
"""Effects by population (`all` units, or those that are `compared` because their outcome is observed) and estimand."""


def sums(draw: Draw) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the sums of weighted effects and of weights, by population and estimand."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    lost, seen = (1 - draw.propensity) * draw.observed[0], draw.propensity * draw.observed[1]
    for population, (control, treated) in {
        "all": (1 - draw.propensity, draw.propensity),
        "compared": (lost, seen),
    }.items():
        share = control + treated
        weights = {"ATE": share, "ATO": control * treated / share, "ATT": treated}
        found[population] = {
            estimand: (float((weight * draw.effect).sum()), float(weight.sum())) for estimand, weight in weights.items()
        }
    return found


def true_effects(table: Table, draws: int = _DRAWS, units: int = _UNITS) -> dict[str, dict[str, float]]:
    """Return the true effects of a table, from many units."""
    random = np.random.default_rng(987)
    parts = [sums(table.draw(random, units)) for _ in range(draws)]
    found: dict[str, dict[str, float]] = {}
    for population, estimands in parts[0].items():
        for estimand in estimands:
            effects, weights = np.sum([part[population][estimand] for part in parts], axis=0)
            found.setdefault(population, {})[estimand] = float(f"{effects / weights:.6g}")
    return found


@cache
def truths() -> dict[str, Truth]:
    """Return the stored true effects of all tables."""
    found: dict[str, Truth] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def main() -> None:
    stored = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in sys.argv[1:] or TABLES:
        stored[name] = true_effects(TABLES[name])
        print(name, stored[name], flush=True)
        FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
