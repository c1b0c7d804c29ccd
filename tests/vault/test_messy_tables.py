"""A messy table, read as declared, gives exactly the integers of the cleaned one."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import ArmMoments, Cut, Query, RegressionMoments, StratumContrasts
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.spark import SparkEngine
from dpcausal.vault.table import open_table
from tests.vault.messy_tables import CLEAN, MESSY, tables, write_messy
from tests.vault.on_spark import MARKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES: list[Query] = [
    ArmMoments(),
    RegressionMoments(["age", "age is missing", "weight", "sex", "saturation"]),
    StratumContrasts([Cut("sex"), Cut("smoker"), Cut("stage")], 3),
]


def exact_ints(engine: Engine, schema: dpc.Schema) -> dict[str, list[int]]:
    """Return the integers that became of each column, record by record in a fixed order."""
    found = engine.collect(column_names(schema), 10**6)
    order = np.lexsort(list(found.values()))
    return {name: column[order].tolist() for name, column in found.items()}


def answers(engine: Engine, schema: dpc.Schema) -> list[dict[str, int]]:
    guarantee = dpc.Guarantee(epsilon=1.0)
    return [dict(exact_answer(query, schema, engine, guarantee).ticks) for query in QUERIES]


def test_a_messy_csv_gives_exactly_the_integers_of_the_cleaned_table(tmp_path: Path) -> None:
    clean = write_messy(tmp_path / "messy.csv")
    assert clean.shape == (8_000, 13)
    messy, cleaned = open_table(tmp_path / "messy.csv", MESSY), open_table(clean, CLEAN)
    assert [column.name for column in MESSY.columns] == [column.name for column in CLEAN.columns]
    assert exact_ints(messy, MESSY) == exact_ints(cleaned, CLEAN)
    assert answers(messy, MESSY) == answers(cleaned, CLEAN)


def test_a_messy_table_read_without_its_rules_would_be_caught(tmp_path: Path) -> None:
    clean = write_messy(tmp_path / "messy.csv")
    messy, cleaned = (
        exact_ints(open_table(tmp_path / "messy.csv", CLEAN), CLEAN),
        exact_ints(open_table(clean, CLEAN), CLEAN),
    )
    assert all(messy[name] != cleaned[name] for name in column_names(CLEAN) if name != "covariate_2")


def test_an_indicator_is_a_covariate_like_any_other(tmp_path: Path) -> None:
    write_messy(tmp_path / "messy.csv")
    vault = dpc.Vault(tmp_path / "messy.csv", MESSY, ledger="sqlite://", budget=dpc.Budget(epsilon=99))
    effect = dpc.RegressionAdjustment(covariates=["age", "age is missing"]).estimate(vault, epsilon=9.0)
    assert "outcomes were read as numbers as in 1.234,5, without €, EUR" in effect.assumptions
    planned = dpc.RegressionAdjustment(covariates=["age", "age is missing"]).estimate(
        dpc.Rehearsal(MESSY, 8_000), epsilon=9.0
    )
    assert planned.receipts[0].query == effect.receipts[0].query
    curve = dpc.RLearner(covariates=["age"], basis=dpc.Polynomial(["age is missing"])).estimate(vault, epsilon=9.0)
    assert dpc.EffectCurve.from_json(curve.to_json()).schema == curve.schema


def test_record_by_record_the_messy_table_is_the_cleaned_one() -> None:
    messy, clean = tables(60)
    for place in range(0, 60, 3):
        one = exact_ints(open_table(messy.slice(place, 1), MESSY), MESSY)
        assert one == exact_ints(open_table(clean.slice(place, 1), CLEAN), CLEAN)


@MARKS[0]
@MARKS[1]
@pytest.mark.slow  # the gate reads the same rules by Spark in test_dialects
def test_a_messy_spark_frame_gives_the_same_integers(spark: "SparkSession") -> None:
    messy, clean = tables()
    engine = SparkEngine(spark.createDataFrame(messy), MESSY)
    cleaned = open_table(clean, CLEAN)
    assert exact_ints(engine, MESSY) == exact_ints(cleaned, CLEAN)
    assert answers(engine, MESSY) == answers(cleaned, CLEAN)
