"""What was to be reached, written down before the estimators were changed, and whether a summary reaches it."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.ordinary.cells import GROUPS, TABLES
from benchmarks.ordinary.summary import Cell, Cells, proportion_limits


@dataclass(frozen=True)
class Target:
    """A range for one number of what is ranked first on some tables.

    Attributes:
        about: What it asks for, in words.
        number: The number of a summary.
        low: The least that reaches it.
        high: The most that reaches it.
        tables: The tables that it is for.
    """

    about: str
    number: str
    low: float
    high: float
    tables: Sequence[str]


@dataclass(frozen=True)
class Judged:
    """Whether one cell reaches a target: `met`, `missed`, or `unclear` where more runs would have to show."""

    at: str
    verdict: str
    shown: str
    distance: float


def _names(*groups: str) -> tuple[str, ...]:
    return tuple(table.name for group in groups for table in GROUPS[group])


_FRESH, _SEEN = _names("not seen before"), _names("seen before")
_Y, _X = _names("missing outcomes"), _names("missing covariates")

TARGETS = (
    Target("tables not seen before: given at least 98 %", "given", 0.98, 1, _FRESH),
    Target("tables not seen before: coverage 93 to 97.5 %", "coverage", 0.93, 0.975, _FRESH),
    Target("tables seen before: given at least 98 %", "given", 0.98, 1, _SEEN),
    Target("tables seen before: coverage 93 to 97.5 %", "coverage", 0.93, 0.975, _SEEN),
    Target("outcomes missing: given at least 98 %", "given", 0.98, 1, _Y),
    Target("outcomes missing: coverage 93 to 97 %", "coverage", 0.93, 0.97, _Y),
    Target("covariates missing: given at least 95 %", "given", 0.95, 1, _X),
    Target("covariates missing: coverage at least 92 %", "coverage", 0.92, 1, _X),
    Target("all: planned half width 0.8 to 1.25 times that realised", "plan_over_realised", 0.8, 1.25, tuple(TABLES)),
    Target("all: wrong sign in the verdict at most 2.5 %", "wrong_sign", 0, 0.025, tuple(TABLES)),
    *(
        Target(f"{label}: half width at most {most} times AIPW's", "width", 0, most, tables)
        for label, most, tables in (
            ("O", 1.1, ("O",)),
            ("B", 1.4, ("B",)),
            ("K", 1.15, ("K",)),
            ("LAB", 1.4, tuple(name for name in _SEEN if name.startswith("LAB"))),
            ("EHR", 1.6, ("EHR",)),
            ("REG", 1.1, ("REG",)),
            ("COST", 1.25, ("COST",)),
        )
    ),
)


def judged(target: Target, cells: Cells) -> list[Judged]:
    """Return whether each cell that a target is for reaches it, at the table's usual size."""
    found = []
    for name in target.tables:
        at = f"{name} {TABLES[name].n}"
        cell = cells.get(at, {}).get("first ranked")
        if cell and (target.number in cell or target.number == "coverage"):
            found.append(_judge(target, at, cell))
    return found


def _judge(target: Target, at: str, cell: Cell) -> Judged:
    value = cell.get(target.number)
    if value is None:
        return Judged(at, "missed", "no interval", 1.0)
    distance = max(target.low - value, value - target.high, 0.0)
    if target.number == "width":
        low, high = value - 2 * cell["width_error"], value + 2 * cell["width_error"]
    elif target.number == "plan_over_realised":
        low = high = value
    else:
        low, high = proportion_limits(value, cell["runs"] * (cell["given"] if target.number == "coverage" else 1))
    verdict = "met" if distance == 0 else "missed" if high < target.low or low > target.high else "unclear"
    shown = f"{100 * value:.0f} %" if target.number in {"given", "coverage", "wrong_sign"} else f"{value:.2f}"
    return Judged(at, verdict, shown, distance)
