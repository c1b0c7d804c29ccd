"""Matched contrasts: public values depend on nothing private, and outcomes move the rest as claimed."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, MatchedContrast
from dpcausal.queries.matched_contrast import COEFFICIENT_TICKS
from dpcausal.vault.answers.matched_contrast import contrast
from dpcausal.vault.numerics.matching import matched
from dpcausal.vault.table import open_table

Int64s = NDArray[np.int64]

QUERY = MatchedContrast(["x"], 2, None, 0.01)
MOVES = {"effect": 2 * GRID * COEFFICIENT_TICKS, "squares": 4 * GRID + 1}

TABLES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 1), st.sampled_from([-GRID, -1, 0, 7, GRID])), min_size=2, max_size=25
)


@given(TABLES, st.data(), st.sampled_from([QUERY, replace(QUERY, limit=1), replace(QUERY, neighbours=5)]))
def test_one_outcome_moves_the_sums_as_claimed_and_no_public_value(
    units: list[tuple[int, int, int]], data: st.DataObject, query: MatchedContrast
) -> None:
    scores, arms, outcomes = (np.array(part, dtype=np.int64) for part in zip(*units, strict=True))
    place = data.draw(st.integers(0, len(units) - 1))
    changed = outcomes.copy()
    changed[place] = data.draw(st.sampled_from([-GRID, GRID]))
    one, other = (contrast(query, scores, arms, each, 1.0) for each in (outcomes, changed))
    assert one.public_values == other.public_values
    for name, moves in MOVES.items():
        assert abs(one.ticks[name] - other.ticks[name]) <= moves


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_matched_contrast_keeps_its_bound_on_all_small_tables(n: int) -> None:
    """Every table of scores 0 to 2 in both arms. The sum is linear in outcomes, so one change for each unit will do."""
    for units in itertools.combinations_with_replacement(list(itertools.product(range(3), (0, 1))), n):
        scores, arms = (np.array(part, dtype=np.int64) for part in zip(*units, strict=True))
        for query in (QUERY, replace(QUERY, limit=1)):
            low = contrast(query, scores, arms, np.full(n, -GRID), 1.0)
            for place in range(n):
                outcomes = np.full(n, -GRID)
                outcomes[place] = GRID
                high = contrast(query, scores, arms, outcomes, 1.0)
                assert high.public_values == low.public_values
                assert abs(high.ticks["effect"] - low.ticks["effect"]) <= MOVES["effect"]
                assert abs(high.ticks["squares"] - low.ticks["squares"]) <= MOVES["squares"]


def test_matched_contrast_bound_is_attained() -> None:
    scores, arms = np.array([0, 1, 2, 3, 4]), np.array([1, 0, 0, 0, 0])
    low, high = np.full(5, -GRID), np.full(5, -GRID)
    high[0] = GRID
    one, other = (contrast(QUERY, scores, arms, each, 1.0) for each in (low, high))
    assert abs(one.ticks["effect"] - other.ticks["effect"]) == MOVES["effect"]


def test_dividing_by_the_number_of_matches_found_is_caught() -> None:
    """The mutant, the paper's equation (4): where matches run out, one outcome stands for more than was paid for."""
    scores, arms = np.array([0, 1, 2, 3, 4, 5]), np.array([1, 0, 0, 0, 0, 0])
    neighbours, limit = 5, 1
    claimed = limit + 1  # times the range, for the sum over units
    has, serves = matched(scores, arms, neighbours, (neighbours * limit, neighbours * limit))
    assert (has[arms == 0] == 1).all()  # every control unit finds the one treated unit and nobody else
    printed = 1 + (1 / has[arms == 0]).sum()
    ours = 1 + serves[0] / neighbours
    assert printed == 6 > claimed
    assert ours <= claimed


def schema_of(protects: dpc.schema.schema.Protects) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("x", 0, 1)],
        protects=protects,
    )


def table_of(seed: int, n: int = 60) -> dict[str, NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    x = np.round(generator.uniform(0, 1, n), 1)  # ties
    return {"t": (generator.random(n) < x).astype(float), "y": generator.uniform(0, 1, n), "x": x}


@pytest.mark.parametrize("seed", range(5))
def test_public_values_do_not_depend_on_outcomes_and_nothing_depends_on_order(seed: int) -> None:
    schema, one = schema_of("outcome"), dpc.Guarantee(epsilon=1, protects="outcome")
    columns = table_of(seed)
    shuffled = {name: values[np.random.default_rng(9).permutation(60)] for name, values in columns.items()}
    other = columns | {"y": np.linspace(0, 1, 60)}
    first, again, changed = (
        exact_answer(QUERY, schema, open_table(pa.table(each), schema), one) for each in (columns, shuffled, other)
    )
    assert first.public_values == changed.public_values
    assert first.public_values == again.public_values
    assert first.ticks == again.ticks


def test_matching_where_covariates_are_private_is_refused() -> None:
    schema = schema_of("record")
    vault = dpc.Vault(pa.table(table_of(0)), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=9))
    for protects in ("record", "outcome"):
        with pytest.raises(dpc.DpcausalError):
            vault.release(QUERY, dpc.Guarantee(epsilon=1, protects=protects))
    assert vault.ledger.spent.epsilon == 0
