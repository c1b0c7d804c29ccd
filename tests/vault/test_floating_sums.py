"""Sums of ticks are the same integers in floating point, for as many units as they are exact for."""

from collections.abc import Callable

import duckdb
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, ArmMoments, MetricMoments, Query, RegressionMoments
from dpcausal.sums import numbers
from dpcausal.sums.numbers import Shift, deficit
from dpcausal.testing import hostile_tables, standard_schema, synthetic_table
from dpcausal.vault import adding
from dpcausal.vault.engines import MOST_UNITS_IN_FLOATING_POINT, TickExpression
from dpcausal.vault.engines import duckdb as duckdb_engine
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.table import open_table

SCHEMA = standard_schema()
QUERIES: list[Query] = [
    query for kind in (ArmMoments, MetricMoments, RegressionMoments) for query in kind.examples(SCHEMA)
]
HOSTILE = "outcomes not a number", "one treated"
TABLES = {name: hostile_tables(SCHEMA, 40)[name] for name in HOSTILE} | {"usual": synthetic_table(SCHEMA, 3_000)}


DEFICIT: TickExpression = adding.sql_text(deficit(numbers.Ticks("outcome")))  # type: ignore[assignment]
EVERY = f"SELECT CAST(range AS INTEGER) AS outcome FROM range({-GRID}, {GRID + 1})"


def differing(expression: TickExpression, rows: str = EVERY) -> int:
    """Return in how many rows the two spellings differ."""
    unlike = f"({expression}) <> ({expression.floating}) OR abs({expression.floating}) > {GRID}"
    ((count,),) = duckdb.connect().execute(f"SELECT COUNT(*) FROM ({rows}) WHERE {unlike}").fetchall()
    return int(count)


def test_both_spellings_agree_on_every_tick() -> None:
    assert differing(DEFICIT) == 0


def test_both_spellings_of_a_product_agree() -> None:
    others = (
        f"SELECT outcome, CAST((abs(outcome) * CAST(7919 AS BIGINT)) % {2 * GRID + 1} - {GRID} AS INTEGER) "
        f"AS covariate_0 FROM ({EVERY})"
    )
    product = Shift(numbers.Ticks("outcome") * numbers.Ticks("covariate_0"), GRID.bit_length() - 1)
    assert differing(adding.sql_text(product), others) == 0  # type: ignore[arg-type]


def test_a_spelling_that_rounds_otherwise_is_caught() -> None:
    assert differing(TickExpression(DEFICIT, DEFICIT.floating.replace("FLOOR", "CEIL"))) > 0


@pytest.mark.parametrize("name", TABLES)
def test_answers_are_the_same_integers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []
    monkeypatch.setattr(DuckDBEngine, "_coerced", recorded(used))
    engine, promised = open_table(TABLES[name], SCHEMA), Guarantee(epsilon=1.0)
    for query in QUERIES:
        used.clear()
        floating = exact_answer(query, SCHEMA, engine, promised)
        assert any(used) or isinstance(query, RegressionMoments)  # of many features, which a kernel adds up
        with monkeypatch.context() as patch:
            patch.setattr(duckdb_engine, "MOST_UNITS_IN_FLOATING_POINT", -1)
            used.clear()
            assert exact_answer(query, SCHEMA, engine, promised) == floating
            assert not any(used)


def recorded(used: list[bool]) -> Callable[..., str]:
    """Return the method that writes a coerced table, and notes whether numbers are DOUBLE there."""
    own = DuckDBEngine._coerced

    def coerced(self: DuckDBEngine, *expressions: str, floating: bool = False) -> str:
        used.append(floating)
        return own(self, *expressions, floating=floating)

    return coerced


def test_only_ticks_are_added_up_in_floating_point() -> None:
    """Other expressions may be too large: a sum of 2^60 is exact, and 1 beside it is not lost."""
    engine = open_table(TABLES["usual"], SCHEMA)
    large = f"(CAST(outcome AS BIGINT) * 0 + {2**60 + 1})"
    found = engine.aggregate({}, ["1", TickExpression("outcome"), large], whole=True)
    assert found[2] == found[0] * (2**60 + 1)


def test_most_units_leave_every_partial_sum_exact() -> None:
    assert MOST_UNITS_IN_FLOATING_POINT * GRID == 2**53
    assert float(2**53 - 1) + 1.0 == 2**53


def test_units_are_counted_when_a_vault_opens() -> None:
    table = synthetic_table(SCHEMA, 300)
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    assert vault._engine._units == vault.n == 300  # type: ignore[attr-defined]
