"""Rehearsals with noise tell how often real tables get no interval."""

import re

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.planning.interval_refusals import REHEARSALS, count_refusals
from tests.support.engines import fresh_noise


def table(n: int, count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    x = np.clip(random.normal(0, 1 / 3, (n, count)), -1, 1)
    sum_ = x.sum(axis=1) / count**0.5
    treat = random.random(n) < 1 / (1 + np.exp(-sum_))
    outcome = np.clip(0.5 + 0.3 * sum_ + 0.05 * treat + random.normal(0, 0.2, n), 0, 1)
    return pa.table({"t": treat.astype(int), "y": outcome} | {f"x{place}": x[:, place] for place in range(count)})


@pytest.mark.parametrize(
    ("n", "count", "least", "most"),
    [(20_000, 1, 0.0, 0.05), (2_000, 3, 0.0, 0.2), (500, 3, 0.7, 1.0)],
)
def test_as_many_are_refused_as_rehearsals_say(n: int, count: int, least: float, most: float) -> None:
    names = [f"x{place}" for place in range(count)]
    columns = [dpc.Real(name, -1, 1) for name in names]
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=columns)
    estimator, guarantee = dpc.RegressionAdjustment(covariates=names), dpc.Guarantee(epsilon=1.0)
    expected = count_refusals(estimator, dpc.Rehearsal(schema, n=n, outcome_sd=0.22, confounding=0.15), guarantee)
    assert least <= expected / REHEARSALS <= most
    refused = 0
    for seed in range(12):
        refused += bool(estimator.estimate(fresh_noise(table(n, count, seed), schema), epsilon=1.0).no_interval)
    # The standard deviation of the difference is 0.17 in the middle case; in the others hardly any should differ.
    assert abs(refused / 12 - expected / REHEARSALS) <= (0.5 if 0.1 < expected / REHEARSALS < 0.9 else 0.25)


def test_the_plan_says_so() -> None:
    columns = [dpc.Real(name, -1, 1) for name in "abc"]
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=columns)
    guarantee = dpc.Guarantee(epsilon=1.0)
    told = {
        n: str(dpc.plan(dpc.RegressionAdjustment(covariates=["a", "b", "c"]), dpc.Rehearsal(schema, n=n), guarantee))
        for n in (600, 50_000)
    }
    assert re.search(r"no interval +in \d+ of 40 rehearsals with noise \(\d+ %\); the price would be spent", told[600])
    assert "no interval       in none of 40 rehearsals with noise" in told[50_000]


def test_the_same_plan_says_the_same(schema: dpc.Schema) -> None:
    asked = dpc.DoublyRobust(covariates=["age"]), dpc.Rehearsal(schema, n=3_000), dpc.Guarantee(epsilon=1.0)
    assert count_refusals(*asked) == count_refusals(*asked)


def test_an_estimator_may_ask_as_much_as_it_likes() -> None:
    class Often:
        def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
            asked = [dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta) for _ in range(50)]
            return asked[-1]

    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    assert count_refusals(Often(), dpc.Rehearsal(schema, n=1_000), dpc.Guarantee(epsilon=1.0)) == 0


def test_a_plan_that_is_told_little_promises_intervals_only_where_noise_leaves_them() -> None:
    """On a table as records of care have it, all such studies of 8,000 units have an interval."""
    columns = [dpc.Real("age", 30, 100), dpc.Real("severity", 0, 24)]
    schema = dpc.Schema(
        treatment=dpc.Treatment("treated", undeclared=0), outcome=dpc.Real("y", 0, 100), covariates=columns
    )
    asked, guarantee = dpc.RegressionAdjustment(covariates=["age", "severity"]), dpc.Guarantee(epsilon=1.0)
    assert count_refusals(asked, dpc.Rehearsal(schema, n=8_000), guarantee) == 0
    assert count_refusals(asked, dpc.Rehearsal(schema, n=200), guarantee) > REHEARSALS / 2
