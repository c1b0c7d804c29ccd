"""The parts of a planned error are those that then come, on tables that are drawn in another way than a rehearsal's."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.results.effect import Effect
from dpcausal.utils.arrays import Array
from tests.support.slow import SLOW

N, DRAWS = 20_000, 3
LOG_SDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Eight lognormal confounders, most of their values far below their bounds."""

NAMES = [f"x{place}" for place in range(len(LOG_SDS))]
DELTA = 1e-6


@dataclass(frozen=True)
class Cohort:
    """A table whose treatment follows a logistic regression, with outcomes that depend on values and on logarithms."""

    logit_sd: float
    missing: float = 0.0

    def draw(self, random: np.random.Generator, n: int) -> tuple[dict[str, Any], Array, Array]:
        """Return the columns, the propensities, and what the outcome is expected to be."""
        z = random.normal(size=(len(LOG_SDS), n))
        along = z.sum(axis=0) / math.sqrt(len(z))
        propensity = 1 / (1 + np.exp(-self.logit_sd * along))
        treated = random.random(n) < propensity
        level = 50 + 4 * along + 2 * (z[0] - z[1])
        outcome = np.clip(level + 8 * random.normal(size=n), 0, 100)
        values = np.exp(np.array(LOG_SDS)[:, None] * z)
        values[2, random.random(n) < self.missing] = np.nan
        columns = dict(zip(NAMES, values, strict=True)) | {"arm": treated.astype(int), "score": outcome}
        return columns, propensity, level

    @property
    def schema(self) -> dpc.Schema:
        numbers = [dpc.Real(name, 0, 20, indicator=name == "x2" and self.missing > 0) for name in NAMES]
        return dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real("score", 0, 100), covariates=numbers)

    @property
    def rehearsal(self) -> dpc.Rehearsal:
        """What somebody expects who knows arms, outcome and the spread of covariates, but not that these are skewed."""
        columns, propensity, level = self.draw(np.random.default_rng(99), 200_000)
        arms = [columns["arm"] == 0, columns["arm"] == 1]
        edges = np.linspace(0, 1, 401)
        shares = [np.histogram(propensity[arm], edges)[0] / arm.sum() for arm in arms]
        sd = math.sqrt(np.mean([columns["score"][arm].var() for arm in arms]))
        control, treated = (float(level[arm].mean()) for arm in arms)
        return dpc.Rehearsal(
            self.schema,
            N,
            outcome_mean=50,
            outcome_sd=sd,
            covariate_sd=0.07,
            overlap=float(np.minimum(*shares).sum()),
            confounding=(treated - control) / sd,
        )

    def effects(self, estimator: Any) -> list[Effect]:
        found = []
        for seed in range(DRAWS):
            columns, _, _ = self.draw(np.random.default_rng(seed), N)
            table = pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})
            budget = dpc.Budget(epsilon=1, delta=DELTA)
            vault = dpc.Vault(table, self.schema, ledger="sqlite://", budget=budget)
            found.append(estimator.estimate(vault, epsilon=1.0, delta=DELTA))
        return found


EVEN, UNEVEN, LACKING = Cohort(0.8), Cohort(1.6), Cohort(0.8, missing=0.05)
LIMITS = (("sampling_sd", 0.8, 1.25), ("privacy_sd", 0.75, 1.25), ("bias_bound", 0.5, 2.0))
"""Between which a planned part must be of what comes. Noise in a score also widens the privacy noise of weights, where
a plan, which has no noise, is rather too narrow."""

DOUBLY_ROBUST = dpc.DoublyRobust(covariates=NAMES)
OTHERS = (dpc.RegressionAdjustment(covariates=NAMES), dpc.InverseWeighting(covariates=NAMES))


@pytest.mark.parametrize(
    ("cohort", "estimator"),
    [
        pytest.param(EVEN, DOUBLY_ROBUST, id="doubly robust"),
        pytest.param(UNEVEN, DOUBLY_ROBUST, id="doubly robust, poor overlap", marks=SLOW),
        pytest.param(LACKING, DOUBLY_ROBUST, id="doubly robust, missing values", marks=SLOW),
        *(
            pytest.param(cohort, each, id=f"{type(each).__name__}, overlap {cohort.logit_sd}", marks=SLOW)
            for cohort in (EVEN, UNEVEN)
            for each in OTHERS
        ),
    ],
)
def test_each_part_of_the_error_is_expected(cohort: Cohort, estimator: Any) -> None:
    plan, effects = estimator.estimate(cohort.rehearsal, epsilon=1.0, delta=DELTA), cohort.effects(estimator)
    for part, least, most in LIMITS:
        realised = median(getattr(effect, part) for effect in effects)
        assert least <= getattr(plan, part) / realised <= most, part
