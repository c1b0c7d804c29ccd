"""Rehearsals with noise tell how often real tables get no interval."""

import re

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.planning.interval_refusals import REHEARSALS, count_refusals
from tests.support.engines import fresh_noise
from tests.support.slow import sampled

RUNS = 12


def table(n: int, count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    x = np.clip(random.normal(0, 1 / 3, (n, count)), -1, 1)
    sum_ = x.sum(axis=1) / count**0.5
    treat = random.random(n) < 1 / (1 + np.exp(-sum_))
    outcome = np.clip(0.5 + 0.3 * sum_ + 0.05 * treat + random.normal(0, 0.2, n), 0, 1)
    return pa.table({"t": treat.astype(int), "y": outcome} | {f"x{place}": x[:, place] for place in range(count)})


KINDS = [dpc.RegressionAdjustment, dpc.DoublyRobust, dpc.InverseWeighting]


CASES = [(kind, (1.0, 0.02)[(at + place) % 2]) for at, kind in enumerate(KINDS) for place in (0, 1)]


@pytest.mark.parametrize(("kind", "epsilon"), sampled(CASES, 3))
def test_as_many_are_refused_as_rehearsals_say(kind: type, epsilon: float) -> None:
    names = ["x0", "x1", "x2"]
    columns = [dpc.Real(name, -1, 1) for name in names]
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=columns)
    estimator, rehearsal = kind(covariates=names), dpc.Rehearsal(schema, n=3_000, outcome_sd=0.22, confounding=0.15)
    share = count_refusals(estimator, rehearsal, dpc.Guarantee(epsilon=epsilon)) / REHEARSALS
    refused = 0
    for seed in range(RUNS):
        refused += bool(estimator.estimate(fresh_noise(table(3_000, 3, seed), schema), epsilon=epsilon).no_interval)
    # Two shares, each with its chance: in the middle their difference has a standard deviation of 0.16.
    assert abs(refused / RUNS - share) <= (0.5 if 0.1 < share < 0.9 else 0.25)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(0.001, r"in \d+ of 40 rehearsals with noise \(\d+ %\); the price would be spent"), (5.0, "in none of 40")],
)
def test_the_plan_says_so(epsilon: float, words: str) -> None:
    covariates = [dpc.Real("x", 0, 1)]
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=covariates)
    asked = dpc.RegressionAdjustment(covariates=["x"]), dpc.Rehearsal(schema, n=50_000 if epsilon > 1 else 500)
    assert re.search(f"no interval +{words}", str(dpc.plan(*asked, dpc.Guarantee(epsilon=epsilon))))


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
