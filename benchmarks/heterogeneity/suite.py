"""The suite: which tables, which sizes, how often."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.heterogeneity.tables import GENERATED, IHDP, table
from benchmarks.heterogeneity.work import curves, done, rows, tasks_of
from benchmarks.papers.dp_cate import boosting
from benchmarks.papers.dp_cate.contestants import DELTA

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
REPEATS = {2_700: 10, 10_000: 10, 50_000: 5}
"""By number of units."""

_LARGE = (10_000, 50_000)
"""Of the paper's tables; at its own 2,700 units they are in benchmarks.papers.dp_cate."""


@dataclass(frozen=True)
class Plan:
    """Which sizes a table has, and what part of the repeats it gets."""

    sizes: tuple[int, ...] = tuple(REPEATS)
    share: float = 1.0

    def repeats(self, n: int) -> int:
        """How many tables of a size there are; IHDP has ten realisations."""
        return max(round(REPEATS.get(n, 10) * self.share), 1)


PLANS: dict[str, Plan] = {
    "generated": Plan(),
    "Dataset 1": Plan(_LARGE),
    IHDP: Plan((747,)),
    "Dataset 2, five covariates": Plan(_LARGE, 0.6),
    "Dataset 2": Plan(_LARGE, 0.3),
}
"""Tables with more covariates take longer, and get fewer repeats."""


def tables_for(folder: str | None) -> list[str]:
    """All tables, or those that need no files."""
    return [name for name in PLANS if folder or name in GENERATED]


def heterogeneity(names: Sequence[str], folder: str | None, *, quick: bool, kept: Path | None) -> dict[str, Any]:
    """Run what has not been run yet, and sum up."""
    epsilons = (1.0,) if quick else EPSILONS
    tasks = [
        task
        for name in names
        for n in (PLANS[name].sizes[:1] if quick else PLANS[name].sizes)
        for task in tasks_of(name, n, 1 if quick else PLANS[name].repeats(n), epsilons)
    ]
    runs = done(tasks, folder, kept)
    return {
        "suite": "heterogeneity",
        "delta": DELTA,
        "level": 0.95,
        "left_out": [] if boosting.installed() else ["Niu et al. 2022: interpret-core is not installed"],
        "tables": {name: _about(name, folder) for name in names},
        "rows": rows(runs),
        "curves": curves(2_700, (8.0,)) if quick else curves(10_000, (0.5, 2.0, 8.0)),
    }


def _about(name: str, folder: str | None) -> dict[str, Any]:
    """Return what is public about a table, and how far its effects vary."""
    chosen = table(name, 1_000, 0, folder)
    schema = chosen.data.schema("record")
    return {
        "covariates": len(chosen.data.covariates),
        "functions": len(chosen.basis.names(schema)),
        "basis": type(chosen.basis).__name__,
        "outcome": list(schema.outcome_bounds),
        "sd_of_effect": round(float(chosen.effects.std()), 4),
    }
