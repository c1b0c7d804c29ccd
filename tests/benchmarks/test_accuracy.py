"""The data sets of the papers and what estimates are compared with."""

import os
from dataclasses import replace

import duckdb
import numpy as np
import pytest

import dpcausal as dpc
from benchmarks import datasets
from benchmarks.accuracy.references import features_as_in_library, matching, references, scores
from benchmarks.data.files import is_here
from dpcausal.vault.answers.logistic import public_fit, score
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.numerics.features import Features
from tests.support.engines import CachedEngine

FOLDER = os.environ.get("DPCAUSAL_DATA")
needs_ihdp = pytest.mark.skipif(
    not is_here("ihdp/ihdp_npci_1.csv", FOLDER),
    reason="the environment variable DPCAUSAL_DATA names no folder with ihdp",
)
PUBLISHED = [
    pytest.param("IHDP", 747, 139, 4.0161, marks=needs_ihdp),
    ("Lalonde", 445, 185, 1794.34),
    ("ACIC", 4802, 858, 2.1281),
]


def test_synth_is_the_same_every_time_and_confounded() -> None:
    data, again = datasets.synth(), datasets.synth()
    assert data.table.equals(again.table)
    assert data.table.num_rows == 1000
    assert len(data.covariates) == 20
    assert data.column("t").sum() == 490
    outcomes = data.column("y")
    assert isinstance(data.outcome, dpc.Real)
    assert data.outcome.low < outcomes.min() < outcomes.max() < data.outcome.high
    compared = references(data)
    assert compared["truth"] == 0.5
    assert compared["difference_in_means"] == pytest.approx(0.613, abs=5e-4)
    assert compared["matching"] == pytest.approx(0.538, abs=5e-4)


def test_matching_by_hand() -> None:
    score, arms = np.arange(10) / 10, np.array([0, 1] * 5)
    # Every unit has the whole other arm as neighbours, so this is the difference in means.
    assert matching(score, arms.astype(float), np.arange(10.0)) == pytest.approx(1.0)


def test_the_reference_fits_the_score_that_the_library_fits() -> None:
    data = datasets.synth(n=200, dimensions=3)
    schema = data.schema("outcome")
    engine = DuckDBEngine(duckdb.from_arrow(data.table), schema)
    features = Features(data.names, schema)
    batch = engine.collect(("treatment", *features.columns), 1000)
    library = score(public_fit(engine, features), features.ticks(batch), features)
    assert scores(features_as_in_library(data), data.column("t")) == pytest.approx(library, abs=1e-5)


def test_the_engine_that_remembers_gives_the_same_integers() -> None:
    data = datasets.synth(n=100, dimensions=2)
    table, schema = duckdb.from_arrow(data.table), data.schema("record")
    plain, kept = DuckDBEngine(table, schema), CachedEngine(table, schema)
    columns = ("treatment", "outcome", "covariate_1")
    for _ in range(2):
        assert (plain.aggregate({"treatment": 2}, ["outcome"]) == kept.aggregate({"treatment": 2}, ["outcome"])).all()
        folded = [each.fold(columns, lambda batch: batch["outcome"].sum(keepdims=True)) for each in (plain, kept)]
        assert folded[0] == folded[1]
        for name in columns:
            assert (plain.collect(columns, 1000)[name] == kept.collect(columns, 1000)[name]).all()


def test_data_that_are_not_shipped_need_a_folder() -> None:
    with pytest.raises(FileNotFoundError, match="expected ihdp"):
        datasets.load("IHDP", None)


@pytest.mark.parametrize(("name", "size", "treated", "truth"), PUBLISHED)
def test_files_are_read_as_declared(name: str, size: int, treated: int, truth: float) -> None:
    data = datasets.load(name, FOLDER)
    assert data.table.num_rows == size
    assert data.column(data.treatment.name).sum() == treated
    assert data.truth == pytest.approx(truth, abs=1e-4)
    for column in data.covariates:
        if isinstance(column, dpc.Real):
            values = data.column(column.name)
            assert ((values < column.low) | (values > column.high)).mean() < 0.01
        else:
            assert set(data.column(column.name)) <= set(column.values)


@pytest.mark.parametrize("name", [pytest.param("IHDP", marks=needs_ihdp), "Lalonde", "ACIC"])
def test_declared_bounds_do_not_come_from_the_data(name: str) -> None:
    data = datasets.load(name, FOLDER)
    assert data.outcome == replace(data.schema("record").outcome, missing=None)
    assert data.not_private_bounds().outcome != data.outcome
