"""The engine of bounds, broken on purpose: each way, and a description of which it would claim too small a bound."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal.sums import cases, certificates, intervals, maximum, pairs, polynomials, sensitivity
from dpcausal.sums.cases import NO_CELL, Domain
from dpcausal.sums.choices import Choice
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import (
    GRID,
    ONE,
    Code,
    Lookup,
    Number,
    Shift,
    Ticks,
    Where,
    deficit,
    equals,
    indicator,
    sign,
)
from dpcausal.sums.pairs import NEW, OLD, Kind, Pairs
from dpcausal.sums.roots import root_above
from tests.sums.neighbours import Case
from tests.sums.random_descriptions import CHANGES, CODES

Breaks = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, tuple[Breaks, Case]] = {}

ARM, RECEIVED, OUTCOME = Code("treatment", 2), Code("covariate_1", 2), Ticks("outcome")
TREATED = indicator(equals(ARM, 1))


def told(
    numbers: Mapping[str, tuple[Number, int]],
    whole: Mapping[str, tuple[Number, int]] | None = None,
    *,
    cells: dict[Number, int] | None = None,
    protects: str = "record",
    norm: Any = "l1",
    leaves: bool = False,
    everyone: bool = False,
) -> Case:
    """Return sums of numbers with their weights."""
    every = {**numbers, **(whole or {})}
    description = Sums(
        cells or {},
        {name: each for name, (each, _) in numbers.items()},
        {name: each for name, (each, _) in (whole or {}).items()},
        {name: Fraction(weight) for name, (_, weight) in every.items()},
        everyone,
    )
    return Case(description, Domain(CODES, CHANGES[protects], leaves), norm)


TOTAL = {"total": (OUTCOME, GRID)}
MOMENTS = {"total": (OUTCOME, 4 * GRID), "deficit": (deficit(OUTCOME), GRID)}
ROUNDED = {"product": (Shift(OUTCOME * Ticks("covariate_0"), 50), 1)}


def mutant(what: str, case: Case) -> Callable[[Breaks], Breaks]:
    """List a way to break the engine, with a description that shows it."""

    def listed(breaks: Breaks) -> Breaks:
        MUTANTS[what] = breaks, case
        return breaks

    return listed


def _without_kind(cells: str, *, absent: bool | None = None) -> Breaks:
    def breaks(patch: pytest.MonkeyPatch) -> None:
        kinds = pairs.kinds

        def fewer(model: cases.Model) -> list[Kind]:
            return [each for each in kinds(model) if each.cells != cells or absent not in (None, each.absent)]

        patch.setattr(certificates, "kinds", fewer)
        patch.setattr(sensitivity, "kinds", fewer)

    return breaks


mutant("a unit that goes to another cell is forgotten", told(TOTAL | {"size": (ONE, 1)}, cells={ARM: 2}))(
    _without_kind("apart")
)
mutant("a unit that goes to no cell is forgotten", told({"size": (ONE, 1)}, cells={Code("covariate_2", 3): 1}))(
    _without_kind("one", absent=False)
)
mutant("a unit that leaves the comparison is forgotten", told({"size": (ONE, 1)}, leaves=True))(
    _without_kind("one", absent=True)
)
mutant(
    "a unit in no cell is forgotten",
    told(
        {"size": (ONE, 1)},
        {"outside": (Where(equals(Code("arm", 3), 2), OUTCOME), GRID)},
        cells={Code("arm", 3): 2},
        protects="outcome",
    ),
)(_without_kind("none"))
mutant("a unit that stays in its cell is forgotten", told(TOTAL, protects="outcome"))(_without_kind("same"))


@mutant("a protected column is treated as fixed", told({"received": (sign(RECEIVED), 1)}, protects="record_within_arm"))
def _(patch: pytest.MonkeyPatch) -> None:
    slots = cases._slots

    def fixed(variables: Any, cells: Any, every: Any, domain: Domain) -> Any:
        return slots(variables, cells, every, dataclasses.replace(domain, changes=domain.changes - {"covariate_1"}))

    patch.setattr(cases, "_slots", fixed)


@mutant(
    "a sum of protected columns is treated as fixed",
    told({"change": (OUTCOME - Ticks("covariate_0"), GRID)}, protects="outcome"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    form = cases._form
    patch.setattr(
        cases, "_form", lambda read, weight, whole, changes: form(read, weight, whole, changes and len(read.terms) < 2)
    )


def _bending(share: int) -> Breaks:
    def breaks(patch: pytest.MonkeyPatch) -> None:
        add = Choice.add

        def less(self: Choice, ranges: Any, squared: Any) -> None:
            before = self.size
            add(self, ranges, squared)
            for side in squared:
                low, high = ranges[side]
                self.bends[side][before:] = [(high - low) ** 2 // share if share else 0] * (self.size - before)

        patch.setattr(Choice, "add", less)

    return breaks


mutant("deficits are counted half", told(MOMENTS, norm="l2"))(_bending(8))
mutant("deficits are not counted", told(MOMENTS, norm="l2", protects="outcome"))(_bending(0))


@mutant(
    "a square is taken to count alike in both arms",
    told({}, {"difference": (sign(ARM) * deficit(OUTCOME), GRID), "total": (OUTCOME, 3 * GRID)}, norm="l2"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pairs, "_factors", lambda *_: True)


@mutant("rounding is left out", told(ROUNDED, protects="outcome"))
def _(patch: pytest.MonkeyPatch) -> None:
    form = cases._form

    def exact(read: Any, *rest: Any) -> Any:
        return dataclasses.replace(form(read, *rest), error=(0, 0))

    patch.setattr(cases, "_form", exact)


@mutant(
    "a rounded factor is taken as exact",
    told({"product": (4 * Shift(OUTCOME * Ticks("covariate_0"), 50), 1)}, protects="outcome"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(polynomials, "product_ends", lambda *_: (0, 0))


@mutant("the error of one unit stands for that of two", told(ROUNDED, protects="outcome"))
def _(patch: pytest.MonkeyPatch) -> None:
    form = cases._form

    def half(read: Any, *rest: Any) -> Any:
        made = form(read, *rest)
        return dataclasses.replace(made, error=(made.error[0] // 2, made.error[1] // 2))

    patch.setattr(cases, "_form", half)


@mutant(
    "only the first of sums that have no column in common is counted",
    told({"one": (OUTCOME, GRID), "other": (Ticks("covariate_0"), GRID)}),
)
def _(patch: pytest.MonkeyPatch) -> None:
    tied = maximum.tied
    patch.setattr(maximum, "tied", lambda tables: tied(tables)[:1])


@mutant("shares are rounded down", told({"size": (ONE, 3)}, cells={ARM: 2}))
def _(patch: pytest.MonkeyPatch) -> None:
    table = maximum.ChoiceTable
    patch.setattr(certificates, "ChoiceTable", lambda choices, values: table(choices, np.maximum(values - 1, 0)))


@mutant("roots are rounded down", told({"size": (ONE, 1)}, cells={ARM: 2}, norm="l2"))
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(certificates, "root_above", lambda number: root_above(number) - Fraction(1, 10**12))


@mutant("only the upper ends of ranges are corners", told(TOTAL))
def _(patch: pytest.MonkeyPatch) -> None:
    add = Choice.add
    patch.setattr(
        Choice,
        "add",
        lambda self, ranges, squared: add(self, {side: (high, high) for side, (_, high) in ranges.items()}, squared),
    )


@mutant("the last case of a column is left out", told({"level": (indicator(equals(Code("covariate_2", 3), 2)), 1)}))
def _(patch: pytest.MonkeyPatch) -> None:
    merged = cases._merged
    patch.setattr(cases, "_merged", lambda found: merged(list(found)[:-1]))


@mutant("a unit takes nothing to its new cell", told(TOTAL | {"size": (ONE, 1)}, cells={ARM: 2}))
def _(patch: pytest.MonkeyPatch) -> None:
    forms = Pairs._forms
    patch.setattr(Pairs, "_forms", lambda self: (each for each in forms(self) if each[1] != (NEW,)))


@mutant(
    "sums over all cells are left out where the cell changes", told(TOTAL, {"treated": (TREATED, 1)}, cells={ARM: 2})
)
def _(patch: pytest.MonkeyPatch) -> None:
    forms = Pairs._forms

    def fewer(self: Pairs) -> Any:
        return (each for each in forms(self) if self.kind.cells != "apart" or each[1] != (OLD, NEW))

    patch.setattr(Pairs, "_forms", fewer)


@mutant(
    "a unit without an arm keeps its arm",
    told({"size": (ONE, 1)}, cells={Code("arm", 3): 2}, protects="record_within_arm", leaves=True, everyone=True),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cases, "ARMS", frozenset())


@mutant("cells from the second on are one", told({"size": (ONE, 1)}, cells={Code("covariate_2", 3): 3}))
def _(patch: pytest.MonkeyPatch) -> None:
    merged = cases._merged
    patch.setattr(
        cases, "_merged", lambda found: merged([(ranges, cell if cell == NO_CELL else 0) for ranges, cell in found])
    )


@mutant("the last value of a table is left out", told({"weight": (Lookup(Shift(OUTCOME + GRID, 20), (1, 2, 9)), 1)}))
def _(patch: pytest.MonkeyPatch) -> None:
    interval = intervals.interval

    def shorter(tree: Number, ranges: Any) -> Any:
        return (min(tree.values[:-1]), max(tree.values[:-1])) if isinstance(tree, Lookup) else interval(tree, ranges)

    patch.setattr(cases, "interval", shorter)


def products(*lines: Number) -> Case:
    """Return all products of two of some numbers from -GRID to GRID, each with a weight of its own."""
    pairs = enumerate(itertools.combinations(lines, 2))
    return told({f"{at}": (Shift(one * other, 20), (10 + at) * GRID) for at, (one, other) in pairs})


LINES = OUTCOME, Ticks("covariate_0"), Ticks("covariate_3")


@mutant("choices are made alike by less than the larger table", products(*LINES, GRID * sign(RECEIVED)))
def _(patch: pytest.MonkeyPatch) -> None:
    raised = maximum._Counting._raised
    patch.setattr(
        maximum._Counting,
        "_raised",
        lambda self, chosen: {key: values * 3 // 4 for key, values in raised(self, chosen).items()},
    )


@mutant(
    "variables that are made free keep to their first case",
    products(*LINES, *(GRID * indicator(equals(Code("covariate_2", 3), value)) for value in (1, 2))),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cases, "_hull", lambda ranges: next(iter(ranges)))
