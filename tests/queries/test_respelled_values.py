"""1, 1.0 and True mean the same: an answer that was paid for is found again however the values are written."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.queries.query import value_names

N = 2_000
SPELLINGS: dict[str, tuple[Any, Any]] = {
    "whole numbers": ([1, 2, 3], (0, 1)),
    "floats": ([1.0, 2.0, 3.0], (0.0, 1.0)),
    "truth values": ([True, 2, 3], (False, True)),
}
OF = ["ward", "sick", "age"]
ASKED: dict[str, Any] = {
    "DifferenceInMeans": dpc.DifferenceInMeans(),
    "ArmContrasts": dpc.ArmContrasts(by=["ward"]),
    "ScheduledDifference": dpc.ScheduledDifference("ward", 2),
    "Stratification": dpc.Stratification(by=["ward", "sick"]),
    "InverseWeighting": dpc.InverseWeighting(covariates=OF),
    "RegressionAdjustment": dpc.RegressionAdjustment(covariates=OF),
    "DoublyRobust": dpc.DoublyRobust(covariates=OF),
    "ExactMatching": dpc.ExactMatching(by=["ward"]),
    "SubgroupEffects": dpc.SubgroupEffects(by=["ward", "sick"]),
    "RLearner, polynomial": dpc.RLearner(covariates=OF, basis=dpc.Polynomial(OF)),
    "RLearner, spline": dpc.RLearner(covariates=OF, basis=dpc.Spline(OF, 1)),
    "RLearner, cells": dpc.RLearner(covariates=OF, basis=dpc.Cells(["ward"])),  # type: ignore[list-item]
    "DRLearner": dpc.DRLearner(covariates=OF, basis=dpc.Polynomial(OF)),
    "KernelLearner": dpc.KernelLearner(covariates=OF, n_features=3),
    "Overlap": dpc.Overlap(by=["ward"]),
    "Overlap of a score": dpc.Overlap(covariates=OF),
    "Balance": dpc.Balance(covariates=OF),
}


def schema(spelling: str) -> dpc.Schema:
    wards, two = SPELLINGS[spelling]
    return dpc.Schema(
        treatment=dpc.Treatment("t", two, undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),  # as matching needs it
        covariates=[dpc.Category("ward", wards), dpc.Binary("sick", two), dpc.Real("age", 0, 100)],
        entry="ward",
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = np.random.default_rng(0)
    whole = {"t": draw.integers(0, 2, N), "ward": draw.integers(1, 4, N), "sick": draw.integers(0, 2, N)}
    return pa.table(whole | {"y": draw.random(N), "age": draw.uniform(0, 100, N)})


@pytest.mark.parametrize("name", ASKED)
def test_respelled_values_give_the_stored_answer(name: str, table: pa.Table) -> None:
    delta = 1e-6 if name in ("ExactMatching", "KernelLearner") else 0.0
    opened: dpc.Vault | None = None
    found = []
    for spelling in SPELLINGS:
        budget = dpc.Budget(epsilon=2, delta=1e-6)
        opened = dpc.Vault(table, schema(spelling), ledger=opened.ledger if opened else "sqlite://", budget=budget)
        found.append(ASKED[name].estimate(opened, epsilon=2.0, delta=delta))
        assert opened.ledger.spent.epsilon == pytest.approx(2.0)
    assert found[0].receipts == found[1].receipts == found[2].receipts


def test_values_are_named_by_their_meaning() -> None:
    names = {value_names(dpc.Category("ward", values)) for values, _ in SPELLINGS.values()}
    assert names == {("ward=1", "ward=2", "ward=3")}
    assert value_names(dpc.Category("dose", [-0.0, 0.5, 1e22])) == ("dose=0", "dose=0.5", "dose=1e+22")
    assert value_names(dpc.Category("ward", ["1", "1.0"])) == ("ward=1", "ward=1.0")
