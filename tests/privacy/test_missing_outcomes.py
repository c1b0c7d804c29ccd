"""No unit moves the four counts beyond their joint bound, whatever is protected; counts that overlap are caught."""

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.calibration import calibrate
from dpcausal.errors import QueryError
from dpcausal.queries import MissingOutcomes
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

NUMBER = dpc.Real("y", 0, 10, missing_codes=[-9])
ANSWER = dpc.Binary("y", values=("no", "yes"))
DATABASE = connect(threads=1)
CELLS: dict[str, list[object]] = {
    "number": [0.0, 5.0, 10.0, -1e308, float("inf"), -9.0, float("nan"), None],
    "text": ["1", "2,5", "-9", "", "unknown", None],
    "answer": ["no", "YES", "maybe", "", None],
}
ARMS = (0, 1, 2, None)

Unit = tuple[int | None, object]


def schema(kind: str, protects: Protects = "record") -> dpc.Schema:
    outcome = ANSWER if kind == "answer" else NUMBER
    return dpc.Schema(treatment=dpc.Treatment("t", arms=(0, 1, 2), compare=1), outcome=outcome, protects=protects)


def counts(units: Sequence[Unit], kind: str) -> list[int]:
    """The query's own answer, without noise."""
    arms, cells = zip(*units, strict=True)
    kinds = pa.float64() if kind == "number" else pa.string()
    table = DATABASE.from_arrow(pa.table({"t": pa.array(arms, pa.int64()), "y": pa.array(cells, kinds)}))
    declared = schema(kind)
    ticks = exact_answer(MissingOutcomes(), declared, open_table(table, declared), dpc.Guarantee(epsilon=1)).ticks
    return [ticks[name] for name in MissingOutcomes.counts]


def moved(one: Sequence[int], other: Sequence[int], norm: str) -> float:
    changes = np.subtract(one, other)
    return float(np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("protects", PROTECTS)
def test_no_neighbour_moves_the_counts_beyond_the_bound(kind: str, protects: Protects) -> None:
    """Also where only the outcome changes: who lacks one is a part of it, so the bound is attained at each level."""
    rest: list[Unit] = [(0, CELLS[kind][0]), (1, CELLS[kind][1]), (1, None)]
    answers = {each: counts([*rest, each], kind) for each in itertools.product(ARMS, CELLS[kind])}
    pairs = [
        (answers[one], answers[other])
        for one, other in itertools.combinations(answers, 2)
        if protects == "record" or one[0] == other[0]
    ]
    for norm, delta in (("l1", 0.0), ("l2", 1e-6)):
        guarantee = dpc.Guarantee(epsilon=1, delta=delta, protects=protects)
        bound = float(calibrate(MissingOutcomes(), schema(kind, protects), guarantee).sensitivity.bound)
        worst = max(moved(*pair, norm) for pair in pairs)
        assert worst <= bound
        assert worst == pytest.approx(bound, rel=1e-9)
        assert worst > 1.4 * bound / 2  # so a bound for units that are added, and not replaced, is caught


def test_counts_are_of_the_compared_arms() -> None:
    units: list[Unit] = [(0, 1.0), (0, None), (1, -9.0), (1, float("nan")), (1, 9.0), (2, None), (None, None)]
    assert counts(units, "number") == [1, 1, 1, 2]
    assert counts([(0, "yes"), (0, "maybe"), (1, None), (1, " No ")], "answer") == [1, 1, 1, 1]


def test_all_units_beside_those_without_an_outcome_are_caught() -> None:
    """The mutant: the number in each arm in place of those with an outcome. A unit in the other arm moves four."""

    def overlapping(units: Sequence[Unit]) -> list[int]:
        found = counts(units, "number")
        return [found[0] + found[1], found[1], found[2] + found[3], found[3]]

    rest: list[Unit] = [(0, 1.0), (1, 1.0)]
    bound = float(MissingOutcomes().sensitivity(schema("number"), "record", "l1").bound)
    assert moved(overlapping([*rest, (0, None)]), overlapping([*rest, (1, None)]), "l1") > bound


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(ARMS), st.none() | st.floats()), min_size=1, max_size=6),
    st.tuples(st.sampled_from(ARMS), st.none() | st.floats()),
)
def test_bound_holds_for_outcomes_of_any_kind(units: list[Unit], new: Unit) -> None:
    one, other = counts(units, "number"), counts([new, *units[1:]], "number")
    assert moved(one, other, "l1") <= 2
    assert sum(one) == sum(arm in (0, 1) for arm, _ in units)


def test_outcome_that_is_never_missing_is_refused_before_anything_is_spent() -> None:
    declared = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1, missing=0))
    vault = dpc.Vault(
        pa.table({"t": [0, 1], "y": [0.1, None]}), declared, ledger="sqlite://", budget=dpc.Budget(epsilon=1)
    )
    with pytest.raises(QueryError, match="can be missing"):
        vault.release(MissingOutcomes(), dpc.Guarantee(epsilon=1))
    assert vault.ledger.spent.epsilon == 0
    assert MissingOutcomes.examples(declared) == ()
