"""Tables such as practice has, with known effects, and estimators without privacy to compare with.

Each has covariates of different spread on wide public bounds, as a codebook would give them. True effects are means
over four million draws, with a standard error below 0.1 %.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc
from dpcausal.schema.columns import Column
from dpcausal.utils.arrays import Array


@dataclass(frozen=True)
class Draw:
    """One table drawn.

    Attributes:
        columns: Covariates, `treated` and the outcome `y`; a missing cell is NaN.
        propensity: Each unit's probability of treatment.
        effect: Each unit's expected effect.
        complete: The covariates before cells went missing.
    """

    columns: dict[str, Array]
    propensity: Array
    effect: Array
    complete: dict[str, Array]

    def table(self) -> pa.Table:
        """Return the table, with nulls for missing cells."""
        return pa.table({name: pa.array(column, from_pandas=True) for name, column in self.columns.items()})


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes:
        name: One letter or a short name.
        about: What it is like, in words.
        outcome: The outcome with its public bounds.
        covariates: The covariates with theirs.
        draw: Draws a table of n units.
        truth: True effects, by estimand.
        treated_share: The share of treated units that a planner would expect.
        outcome_mean: The outcome's mean that a planner would expect.
        outcome_sd: Its standard deviation.
        randomised: Whether treatment was given at random.
        confounding: The confounding that a planner would expect, as `Rehearsal` has it.
        names: The covariates' names.
    """

    name: str
    about: str
    outcome: dpc.Real | dpc.Binary
    covariates: tuple[Column, ...]
    draw: Callable[[Generator, int], Draw]
    truth: Mapping[str, float]
    treated_share: float = 0.5
    outcome_mean: float | None = None
    outcome_sd: float | None = None
    randomised: bool = False
    confounding: float = 0.3
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.schema.covariates))

    @property
    def schema(self) -> dpc.Schema:
        """What is public about it."""
        return dpc.Schema(treatment=dpc.Treatment("treated"), outcome=self.outcome, covariates=self.covariates)

    def rehearsal(self, n: int) -> dpc.Rehearsal:
        """Return the expectations of a planner who knows a similar study."""
        return dpc.Rehearsal(
            self.schema,
            n,
            treated_share=self.treated_share,
            outcome_mean=self.outcome_mean,
            outcome_sd=self.outcome_sd,
            confounding=0.0 if self.randomised else self.confounding,
        )


def expit(logits: Array) -> Array:
    return 1 / (1 + np.exp(-logits))


def _patients(random: Generator, n: int) -> dict[str, Array]:
    return {
        "age": np.clip(random.normal(68, 12, n), 30, 100),
        "severity": np.clip(random.gamma(3, 2.5, n), 0, 24),
        "sex": random.integers(0, 2, n).astype(float),
        "comorbidities": np.minimum(random.poisson(1.2, n), 8).astype(float),
    }


_PATIENTS: tuple[Column, ...] = (
    dpc.Real("age", 30, 100),
    dpc.Real("severity", 0, 24),
    dpc.Binary("sex"),
    dpc.Real("comorbidities", 0, 8),
)


def _standard(patients: dict[str, Array]) -> tuple[Array, Array, Array, Array]:
    return (
        (patients["age"] - 68) / 12,
        (patients["severity"] - 7.5) / 4.3,
        patients["sex"],
        (patients["comorbidities"] - 1.2) / 1.1,
    )


def _drawn(  # noqa: PLR0913, PLR0917
    random: Generator, covariates: dict[str, Array], propensity: Array, y0: Array, y1: Array, effect: Array
) -> Draw:
    treated = (random.random(len(propensity)) < propensity).astype(float)
    columns = covariates | {"treated": treated, "y": np.where(treated == 1, y1, y0)}
    return Draw(columns, propensity, effect, covariates)


def _scored(random: Generator, n: int, *, curved: bool) -> Draw:
    patients = _patients(random, n)
    a, s, sex, c = _standard(patients)
    score = -0.6 - 0.5 * a - 0.4 * s + 0.2 * sex + 0.2 * c
    if curved:
        score += -0.3 + 0.35 * (a**2 - 1) + 0.35 * a * s
    effect = 4 + 2 * np.tanh(s) - 1.5 * a * (a > 0) + sex
    decline = 5 * a + 3 * a**2 + 6 * np.log1p(patients["severity"] / 2) + 3 * a * s * (s > 0) + 2 * c
    y0 = 55 - decline + random.normal(0, 8, n)
    low, high = np.clip(y0, 0, 100), np.clip(y0 + effect, 0, 100)
    return _drawn(random, patients, expit(score), low, high, high - low)


def observational(random: Generator, n: int) -> Draw:
    """Draw scores of 0 to 100 with interactions, a varying effect and a logistic propensity; 39 % are treated."""
    return _scored(random, n, curved=False)


def misspecified(random: Generator, n: int) -> Draw:
    """Draw the same with a propensity that is quadratic and interacted: models of main effects are wrong."""
    return _scored(random, n, curved=True)


def rare(random: Generator, n: int) -> Draw:
    """Draw a rare binary outcome (4.9 %) with 13 % treated; 44 % of propensities are below 0.1."""
    patients = _patients(random, n)
    a, s, sex, c = _standard(patients)
    propensity = expit(-1.95 + 0.4 * a + 0.5 * s - 0.2 * sex + 0.2 * c)
    base = -3.3 + 0.6 * a + 0.5 * s + 0.25 * c + 0.2 * sex + 0.2 * a * s
    p0, p1, u = expit(base), expit(base - 0.5 - 0.2 * s), random.random(n)
    return _drawn(random, patients, propensity, (u < p0).astype(float), (u < p1).astype(float), p1 - p0)


def cost(random: Generator, n: int) -> Draw:
    """Draw a randomised trial of lognormal costs (mean 5,280, sd 6,570) on public bounds of 0 to 200,000."""
    patients = _patients(random, n)
    a, s, sex, c = _standard(patients)
    y0 = np.exp(8.6 + 0.25 * s + 0.15 * c + 0.1 * a + random.normal(0, 0.9, n) - 0.9**2 / 2)
    y1 = y0 * np.where(sex == 1, 0.80, 0.90)
    return _drawn(random, patients, np.full(n, 0.5), y0, y1, y1 - y0)


_LACKING = {"bmi": 0.1, "creatinine": 0.1, "hba1c": 0.15}
"""How often laboratory values of the cohort are missing."""

_COHORT: tuple[Column, ...] = (
    dpc.Real("age", 18, 100),
    dpc.Binary("female"),
    dpc.Real("bmi", 12, 60),
    dpc.Real("systolic", 70, 220),
    dpc.Real("creatinine", 0, 8),
    dpc.Real("hba1c", 3, 15),
    dpc.Category("smoking", ["never", "former", "current"]),
    dpc.Binary("diabetes"),
    dpc.Binary("heart_failure"),
    dpc.Binary("copd"),
    dpc.Real("admissions", 0, 10),
    dpc.Real("deprivation", 1, 10),
)
_INDICATED = tuple(
    replace(column, indicator=True) if isinstance(column, dpc.Real) and column.name in _LACKING else column
    for column in _COHORT
)
_SMOKING = ("never", "former", "current")


def cohort(random: Generator, n: int) -> Draw:
    """Draw a hospital cohort: 12 confounders, 22 % treated, 8 % events; one laboratory value in ten is missing."""
    age = np.clip(random.normal(66, 13, n), 18, 100)
    a = (age - 66) / 13
    female = (random.random(n) < 0.48).astype(float)
    diabetes = (random.random(n) < expit(-1.2 + 0.3 * a)).astype(float)
    failure = (random.random(n) < expit(-2.0 + 0.6 * a)).astype(float)
    smoking = random.choice(3, n, p=[0.5, 0.32, 0.18])
    copd = (random.random(n) < expit(-2.2 + 0.8 * (smoking > 0) + 0.2 * a)).astype(float)
    bmi = np.clip(random.normal(28 + diabetes, 5, n), 12, 60)
    systolic = np.clip(random.normal(136 + 4 * a, 19, n), 70, 220)
    creatinine = np.clip(random.lognormal(0.02 + 0.12 * a + 0.25 * failure, 0.35, n), 0, 8)
    hba1c = np.clip(random.normal(5.6 + 1.4 * diabetes, 0.8, n), 3, 15)
    admissions = np.minimum(random.poisson(np.exp(-0.4 + 0.5 * failure + 0.2 * copd)), 10).astype(float)
    deprivation = np.clip(np.rint(random.normal(5.5, 2.6, n)), 1, 10)
    treatment = -1.25 - 0.25 * a + 0.15 * female + 0.3 * diabetes - 0.35 * failure - 0.15 * copd
    treatment += (
        -0.2 * (creatinine - 1.1) / 0.45 + 0.15 * (hba1c - 6) / 1 - 0.15 * admissions - 0.04 * (deprivation - 5.5)
    )
    base = -2.88 + 0.55 * a - 0.15 * female + 0.15 * diabetes + 0.55 * failure + 0.3 * copd + 0.2 * (smoking == 2)
    base += 0.25 * (creatinine - 1.1) / 0.45 + 0.12 * admissions + 0.05 * (deprivation - 5.5) - 0.01 * (bmi - 28)
    propensity, u = expit(treatment), random.random(n)
    p0, p1 = expit(base), expit(base - 0.35)
    complete: dict[str, Array] = {
        "age": age,
        "female": female,
        "bmi": bmi,
        "systolic": systolic,
        "creatinine": creatinine,
        "hba1c": hba1c,
        "smoking": np.array(_SMOKING, dtype=object)[smoking],
        "diabetes": diabetes,
        "heart_failure": failure,
        "copd": copd,
        "admissions": admissions,
        "deprivation": deprivation,
    }
    drawn = _drawn(random, complete, propensity, (u < p0).astype(float), (u < p1).astype(float), p1 - p0)
    gone = {name: random.random(n) < share for name, share in _LACKING.items()}
    lacking = {name: np.where(away, np.nan, complete[name]) for name, away in gone.items()}
    return Draw(drawn.columns | lacking, propensity, drawn.effect, complete)


def _ten(random: Generator, n: int, slope: float) -> Draw:
    """Draw ten normal confounders with this slope in the propensity's logit, and an outcome of 0 to 100."""
    x = random.normal(0, 1, (10, n))
    signs = np.where(np.arange(10) % 2, -1.0, 1.0)
    propensity = expit(slope * signs @ x)
    y0 = np.clip(50 + 2.5 * signs @ x + random.normal(0, 8, n), 0, 100)
    y1 = np.clip(y0 + 3, 0, 100)
    covariates = {f"x{place}": np.clip(each, -4, 4) for place, each in enumerate(x)}
    return _drawn(random, covariates, propensity, y0, y1, y1 - y0)


def ten_apart_25(random: Generator, n: int) -> Draw:
    """Draw ten confounders with standardised mean differences of 0.25."""
    return _ten(random, n, 0.293)


def ten_apart_40(random: Generator, n: int) -> Draw:
    """Draw ten confounders with standardised mean differences of 0.4."""
    return _ten(random, n, 0.68)


_TEN = tuple(dpc.Real(f"x{place}", -4, 4) for place in range(10))

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "O",
            "observational, 39 % treated, outcome 0 to 100",
            dpc.Real("y", 0, 100),
            _PATIENTS,
            observational,
            {"ATE": 3.7641, "ATO": 3.7638, "ATT": 3.7434},
            treated_share=0.4,
            outcome_mean=40,
            outcome_sd=13,
        ),
        Kind(
            "M",
            "as O, with a nonlinear propensity",
            dpc.Real("y", 0, 100),
            _PATIENTS,
            misspecified,
            {"ATE": 3.7641, "ATO": 3.6820, "ATT": 3.6392},
            treated_share=0.4,
            outcome_mean=40,
            outcome_sd=13,
        ),
        Kind(
            "B",
            "observational, 13 % treated, 4.9 % events",
            dpc.Binary("y"),
            _PATIENTS,
            rare,
            {"ATE": -0.02265, "ATO": -0.03438, "ATT": -0.04067},
            treated_share=0.13,
            outcome_mean=0.05,
        ),
        Kind(
            "K",
            "randomised, lognormal costs on bounds of 0 to 200,000",
            dpc.Real("y", 0, 200_000),
            _PATIENTS,
            cost,
            {"ATE": -856.8, "ATO": -856.8, "ATT": -856.8},
            outcome_mean=5_000,
            outcome_sd=6_500,
            randomised=True,
        ),
        Kind(
            "C",
            "hospital cohort, 12 confounders, 22 % treated, 8 % events, missing laboratory values",
            dpc.Binary("y"),
            _COHORT,
            cohort,
            {"ATE": -0.02215, "ATO": -0.01892, "ATT": -0.01796},
            treated_share=0.22,
            outcome_mean=0.08,
        ),
        Kind(
            "CI",
            "as C, with indicators of missing laboratory values",
            dpc.Binary("y"),
            _INDICATED,
            cohort,
            {"ATE": -0.02215, "ATO": -0.01892, "ATT": -0.01796},
            treated_share=0.22,
            outcome_mean=0.08,
        ),
        Kind(
            "T25",
            "ten confounders, standardised mean differences of 0.25",
            dpc.Real("y", 0, 100),
            _TEN,
            ten_apart_25,
            {"ATE": 3.0, "ATO": 3.0},
            outcome_sd=11,
        ),
        Kind(
            "T40",
            "ten confounders, standardised mean differences of 0.4",
            dpc.Real("y", 0, 100),
            _TEN,
            ten_apart_40,
            {"ATE": 3.0, "ATO": 3.0},
            outcome_sd=11,
        ),
    )
}


def design(kind: Kind, draw: Draw) -> Array:
    """Return a constant and the standardised complete covariates, values of a category as indicators."""
    columns: list[Array] = []
    for column in kind.covariates:
        values = draw.complete[column.name]
        if isinstance(column, dpc.Category):
            columns += [(values == value).astype(float) for value in column.values[1:]]
        else:
            columns.append(values.astype(float))
    x = np.column_stack(columns)
    return np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)])


def aipw(kind: Kind, draw: Draw) -> tuple[float, float]:
    """Return the estimate and standard error of AIPW with main effects, without privacy and without missing cells."""
    t, y, x = draw.columns["treated"], draw.columns["y"].astype(float), design(kind, draw)
    at = np.zeros(x.shape[1])
    for _ in range(25):
        p = expit(x @ at)
        at += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (t - p))
    p = np.clip(expit(x @ at), 0.01, 0.99)
    m0, m1 = (x @ np.linalg.lstsq(x[t == arm], y[t == arm], rcond=None)[0] for arm in (0, 1))
    scores = m1 - m0 + t * (y - m1) / p - (1 - t) * (y - m0) / (1 - p)
    return float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(len(t)))
