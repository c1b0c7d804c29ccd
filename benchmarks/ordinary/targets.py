"""What was to be reached, written down before the estimators were changed, and whether a summary reaches it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.ordinary.cells import GROUPS, TABLES
from benchmarks.ordinary.runs import ESTIMATORS
from benchmarks.ordinary.summary import Cell, Cells, proportion_limits

_RIGHT = ("LAB lin 3.5", "LAB lin 7", "LAB lin 15", "LAB lin 150", "REG", "C", "T25", "T40")
"""Tables on which models of main effects are right."""

_ADJUSTING = tuple(each for each in ESTIMATORS if each not in {"first ranked", "strata"})


@dataclass(frozen=True)
class Target:
    """A range for one number of some cells.

    Attributes:
        about: What it asks for, in words.
        number: The number of a summary.
        low: The least that reaches it.
        high: The most that reaches it.
        tables: The tables that it is for.
        estimators: The estimators that it is for.
        best: Whether it is enough that one of the estimators reaches it.
    """

    about: str
    number: str
    low: float
    high: float
    tables: Sequence[str]
    estimators: Sequence[str] = ("first ranked",)
    best: bool = False


@dataclass(frozen=True)
class Judged:
    """Whether one cell reaches a target: `met`, `missed`, or `unclear` where more runs would have to show."""

    at: str
    estimator: str
    verdict: str
    shown: str
    distance: float


def _names(*groups: str) -> tuple[str, ...]:
    return tuple(table.name for group in groups for table in GROUPS[group])


_FRESH, _SEEN = _names("not seen before"), _names("seen before")
_Y, _X = _names("missing outcomes"), _names("missing covariates")
_ALL, _EACH = tuple(TABLES), tuple(ESTIMATORS)

TARGETS = (
    Target("first ranked, tables not seen before: given at least 98 %", "given", 0.98, 1, _FRESH),
    Target("first ranked, tables not seen before: coverage 93 to 97.5 %", "coverage", 0.93, 0.975, _FRESH),
    Target("first ranked, tables seen before: given at least 98 %", "given", 0.98, 1, _SEEN),
    Target("first ranked, tables seen before: coverage 93 to 97.5 %", "coverage", 0.93, 0.975, _SEEN),
    Target(
        "each model that adjusts, where models are right: given at least 95 %", "given", 0.95, 1, _RIGHT, _ADJUSTING
    ),
    Target(
        "each model that adjusts, where models are right: coverage 93 to 98 %",
        "coverage",
        0.93,
        0.98,
        _RIGHT,
        _ADJUSTING,
    ),
    Target("first ranked, outcomes missing: given at least 98 %", "given", 0.98, 1, _Y),
    Target("first ranked, outcomes missing: coverage 93 to 97 %", "coverage", 0.93, 0.97, _Y),
    Target("first ranked, covariates missing: given at least 95 %", "given", 0.95, 1, _X),
    Target("first ranked, covariates missing: coverage at least 92 %", "coverage", 0.92, 1, _X),
    Target("all: planned half width 0.8 to 1.25 times that realised", "plan_over_realised", 0.8, 1.25, _ALL, _EACH),
    Target("all: wrong sign in the verdict at most 2.5 %", "wrong_sign", 0, 0.025, _ALL, _EACH),
)

_LAB = tuple(name for name in _SEEN if name.startswith("LAB"))

WIDTHS = (
    *(
        Target(f"first ranked, {label}: half width at most {most} times AIPW's", "width", 0, most, tables)
        for label, most, tables in (
            ("O", 1.1, ("O",)),
            ("B", 1.4, ("B",)),
            ("K", 1.15, ("K",)),
            ("LAB", 1.4, _LAB),
            ("EHR", 1.6, ("EHR",)),
            ("REG", 1.1, ("REG",)),
            ("COST", 1.25, ("COST",)),
        )
    ),
    *(
        Target(
            f"best model that adjusts, {name}: half width at most {most} times AIPW's",
            "width",
            0,
            most,
            (name,),
            _ADJUSTING,
            best=True,
        )
        for name, most in (("T25", 1.4), ("T40", 2.3), ("C", 1.4), ("EHR", 1.6))
    ),
)


def judged(target: Target, cells: Cells) -> list[Judged]:
    """Return whether each cell that a target is for reaches it, at the table's usual size."""
    found = list(_each(target, cells))
    if target.best and found:
        return [min(found, key=lambda each: each.distance)]
    return found


def _each(target: Target, cells: Cells) -> Iterator[Judged]:
    for name in target.tables:
        at = f"{name} {TABLES[name].n}"
        of: Mapping[str, Cell] = cells.get(at, {})
        for estimator in target.estimators:
            if estimator in of and (target.number in of[estimator] or target.number == "coverage"):
                yield _judge(target, at, estimator, of[estimator])


def _judge(target: Target, at: str, estimator: str, cell: Cell) -> Judged:
    value = cell.get(target.number)
    if value is None:
        return Judged(at, estimator, "missed", "no interval", 1.0)
    distance = max(target.low - value, value - target.high, 0.0)
    if target.number == "width":
        low, high = value - 2 * cell["width_error"], value + 2 * cell["width_error"]
    elif target.number == "plan_over_realised":
        low = high = value
    else:
        low, high = proportion_limits(value, cell["runs"] * (cell["given"] if target.number == "coverage" else 1))
    verdict = "met" if distance == 0 else "missed" if high < target.low or low > target.high else "unclear"
    shown = f"{100 * value:.0f} %" if target.number in {"given", "coverage", "wrong_sign"} else f"{value:.2f}"
    if target.number == "width":
        shown += f" ({cell['width_over_main']:.2f} times that of main effects)"
    return Judged(at, estimator, verdict, shown, distance)
