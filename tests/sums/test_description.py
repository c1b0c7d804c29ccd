"""What is no description is refused, and names of sums follow from those of cells."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import QueryError
from dpcausal.queries import ArmMoments
from dpcausal.sums.adding import addends
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import totals
from dpcausal.sums.numbers import GRID, ONE, Between, Bin, Clip, Code, Constant, Ticks, Where, equals, indicator, sign
from dpcausal.sums.printing import sql
from dpcausal.vault import adding
from dpcausal.vault.table import open_table
from tests.sums.agreement import disagreements, uneven
from tests.vault.sql_texts import THREE_ARMS

ARM, OUTCOME = Code("treatment", 2), Ticks("outcome")
BINS = Bin(OUTCOME, (0,))
UNITS = {"treatment": np.array([0, 1, 1, 1]), "outcome": np.array([5, -7, GRID, 0]), "arm": np.array([0, 1, 2, 2])}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sums({OUTCOME: 2}, {"size": ONE}),
        lambda: Sums({ARM: 0}, {"size": ONE}),
        lambda: Sums({ARM: 2}, {}),
        lambda: Sums({ARM: 2}, {"size": ONE}, labels=("_0",)),
        lambda: Sums({ARM: 2}, {"size": ONE}, labels=("_0", "_0")),
        lambda: Sums({ARM: 2}, {"size": ONE}, {"size_1": ONE}),
        lambda: Sums({}, {"square": OUTCOME * OUTCOME * 4}),
        lambda: Sums({}, {"size": ONE}, weights={"total": Fraction(1)}),
        lambda: Sums({}, {"size": ONE}, weights={"size": Fraction(0)}),
        lambda: Sums({}, {"size": ONE}, weights={"size": 0.1}),  # type: ignore[dict-item]
    ],
)
def test_what_is_no_description_is_refused(make: Any) -> None:
    with pytest.raises(QueryError):
        make()


def test_labels_of_cells_stand_in_names_once() -> None:
    sums = Sums({ARM: 2}, {"total{} of {}": OUTCOME, "size": ONE}, {"all": ONE})
    assert sums.names == ("total_0 of {}", "size_0", "total_1 of {}", "size_1", "all")
    assert Sums({}, {"total of {}": OUTCOME}).names == ("total of {}",)


def test_units_beyond_the_last_cell_count_only_in_sums_over_all() -> None:
    sums = Sums({Code("arm", 3): 2}, {"total": OUTCOME}, {"everyone": ONE}, everyone=True)
    assert totals(sums, UNITS) == {"total_0": 5, "total_1": -7, "everyone": 4}


def test_what_is_the_same_in_a_cell_is_multiplied_in_after_adding_up() -> None:
    signed = {
        "difference": sign(ARM) * OUTCOME,
        "total": OUTCOME,
        "lacking": GRID - OUTCOME,
        "treated": indicator(equals(ARM, 1)),
    }
    wanted = addends(Sums({ARM: 2}, {}, signed))
    assert wanted.numbers == (OUTCOME, ONE)
    found = np.array([[5, 1], [GRID - 7, 3]], dtype=object)
    assert wanted.totals(found) == totals(wanted.sums, UNITS)
    assert wanted.totals(found)["difference"] == GRID - 12


@pytest.mark.parametrize("wrong", [OUTCOME + 1, OUTCOME * sign(ARM), Constant(0)])
def test_sql_that_is_not_what_the_description_says_is_seen(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_table(uneven(), THREE_ARMS)
    assert disagreements(engine, THREE_ARMS, [ArmMoments()]) == []
    monkeypatch.setattr(adding, "sql_text", lambda number: sql(wrong if number == OUTCOME else number))
    assert len(disagreements(engine, THREE_ARMS, [ArmMoments()])) >= 2


@pytest.mark.parametrize(
    "sums",
    [
        Sums({}, {"far": Where(Between(8192 * (OUTCOME * OUTCOME), 2**53 + 1, 2**60), OUTCOME)}),
        Sums({BINS: 2, Clip(BINS, 0, 9): 2, Clip(Clip(BINS, 0, 9), 0, 5): 2}, {"size": ONE}),
        Sums({Clip(OUTCOME, 5, 5): 6}, {"size": ONE}),
    ],
    ids=["a condition beyond what floating point holds", "cells of one text", "a factor of one value"],
)
def test_odd_descriptions_are_added_up_as_they_say(sums: Sums) -> None:
    engine = open_table(uneven(), THREE_ARMS)
    units = engine.collect(("treatment", "outcome"), 10**6)
    assert adding.add_up(engine, sums) == totals(sums, units)
