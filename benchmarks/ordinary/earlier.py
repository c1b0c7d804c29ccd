"""Tables on which intervals of earlier versions failed, or could have: constants may have been chosen on these."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.ordinary.table import Draw, Table, Values, assigned, expit, flag
from benchmarks.realistic.tables import KINDS


def _laboratory(random: Generator, n: int, *, shape: str, high: float) -> Draw:
    creatinine = np.clip(np.exp(0.05 + 0.4 * random.normal(0, 1, n)), 0.2, high)
    age = np.clip(random.normal(62, 14, n), 18, 100)
    a, z = (age - 62) / 14, _acting(creatinine, shape)
    uniform = random.random(n)
    y = 50 + 4 * z + 3 * a + 8 * random.normal(0, 1, n)
    outcomes = np.clip(y, 0, 100), np.clip(y + 2, 0, 100)
    complete = {"age": age, "creatinine": creatinine}
    return assigned(random, complete, expit(-0.8 + 0.6 * z + 0.4 * a), outcomes, uniform=uniform)


def _acting(creatinine: Values, shape: str) -> Values:
    """Return what creatinine does: in proportion, or by its logarithm."""
    acting: Values = np.log(creatinine) / 0.4 - 0.125 if shape == "log" else (creatinine - 1.14) / 0.47
    return np.clip(acting, -4, 6)


def _laboratory_table(shape: str, high: float) -> Table:
    def draw(random: Generator, n: int) -> Draw:
        return _laboratory(random, n, shape=shape, high=high)

    def features(draw: Draw) -> Values:
        return np.column_stack([draw.complete["age"], _acting(draw.complete["creatinine"], shape)])

    acts = "by its logarithm" if shape == "log" else "in proportion"
    return Table(
        f"LAB {shape} {high:g}",
        f"creatinine on bounds of 0 to {high:g}, which acts {acts}, and age",
        dpc.Real("y", 0, 100),
        (dpc.Real("age", 18, 100), dpc.Real("creatinine", 0, high)),
        draw,
        features,
        treated_share=0.35,
        outcome_mean=51,
        outcome_sd=9.5,
    )


def _records(random: Generator, n: int) -> Draw:
    u = random.normal(0, 1, n)
    age = np.clip(62 + 14 * (0.5 * u + 0.87 * random.normal(0, 1, n)), 18, 100)
    creat = np.clip(np.exp(0.05 + 0.4 * (0.4 * u + 0.9 * random.normal(0, 1, n))), 0.2, 15)
    crp = np.clip(np.exp(2.5 + 1.2 * random.normal(0, 1, n) + 0.2 * u), 0, 400)
    hb = np.clip(13.2 - 0.8 * u + 1.5 * random.normal(0, 1, n), 4, 20)
    female = flag(random.random(n) < 0.48)
    diabetes = flag(random.random(n) < expit(-1.2 + 0.5 * u))
    chf = flag(random.random(n) < expit(-2 + 0.7 * u))
    ward = random.choice(["med", "surg", "icu", "other"], n, p=[0.5, 0.3, 0.15, 0.05])
    charlson = np.minimum(random.poisson(np.exp(0.4 + 0.4 * u)), 15).astype(float)
    before = np.clip(random.gamma(0.7, 4, n), 0, 60)
    icu, a, lc, lp = ward == "icu", (age - 62) / 14, np.log(creat), np.log1p(crp) - 2.5
    score = -1.75 + 0.35 * a + 0.5 * lc + 0.25 * lp - 0.15 * (hb - 13.2) / 1.7 + 0.1 * female + 0.25 * diabetes
    score += 0.3 * chf + 0.6 * icu - 0.3 * (ward == "surg") + 0.08 * (charlson - 1.6)
    base = -3.75 + 0.55 * a + 0.15 * a**2 + 0.6 * lc + 0.3 * lp - 0.2 * (hb - 13.2) / 1.7 + 0.2 * diabetes
    base += 0.4 * chf + 0.9 * icu + 0.12 * (charlson - 1.6) + 0.02 * before
    p0, p1 = expit(base), expit(base - 0.45 + 0.15 * a)
    uniform, u = random.random(n), random.random(n)
    complete = {
        "age": age,
        "creat": creat,
        "crp": crp,
        "hb": hb,
        "female": female,
        "diabetes": diabetes,
        "chf": chf,
        "ward": ward.astype(object),
        "charlson": charlson,
        "los_prior": before,
    }
    outcomes = flag(u < p0), flag(u < p1)
    return assigned(random, complete, expit(score), outcomes, uniform=uniform, effect=p1 - p0)


def _record_features(draw: Draw) -> Values:
    x = draw.complete
    wards = [flag(x["ward"] == ward) for ward in ("surg", "icu", "other")]
    same = [x[name] for name in ("age", "hb", "female", "diabetes", "chf", "charlson", "los_prior")]
    return np.column_stack([*same, *wards, np.log(x["creat"]), np.log1p(x["crp"]), ((x["age"] - 62) / 14) ** 2])


def _cost(random: Generator, n: int) -> Draw:
    age = random.uniform(20, 80, n)
    z = 0.3 * (age - 50) / 17 + random.normal(0, 1, n)
    none = random.random(n) < expit(-0.3 - 0.5 * z)
    before = np.where(none, 0, np.exp(7.2 + 0.8 * z + 0.8 * random.normal(0, 1, n)))
    uniform, spread, spends = random.random(n), random.normal(0, 1, n), random.random(n)
    y0, y1 = (
        np.minimum(
            np.where(spends < expit(-0.4 - 0.5 * z + 0.25 * arm), 0, np.exp(7.6 + 0.7 * z - 0.12 * arm + 1.0 * spread)),
            500_000,
        )
        for arm in (0, 1)
    )
    complete = {"cost_before": np.minimum(before, 500_000), "age": age}
    return assigned(random, complete, np.full(n, 0.67), (y0, y1), uniform=uniform)


def _registry(random: Generator, n: int) -> Draw:
    severity = np.clip(random.beta(2, 3, n) * 10, 0, 10)
    age = np.clip(random.normal(64, 11, n), 20, 100)
    male = flag(random.random(n) < 0.55)
    centre = random.choice(list("ABCDE"), n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    off = np.select([centre == each for each in "ABCDE"], [-0.6, 0.3, 0.9, -1.2, 1.2])
    a = (age - 64) / 11
    propensity = np.clip(expit(1.05 * (severity - 4) + 0.35 * a + off), 0.02, 0.98)
    y0 = np.clip(70 - 3.5 * severity - 4 * a + 1.5 * male + 1.2 * off + random.normal(0, 9, n), 0, 100)
    y1 = np.clip(y0 + (2 + 1.5 * (severity - 4) - 0.8 * a) + random.normal(0, 1, n), 0, 100)
    complete = {"severity": severity, "age": age, "male": male, "centre": centre.astype(object)}
    return assigned(random, complete, propensity, (y0, y1))


def _registry_features(draw: Draw) -> Values:
    x = draw.complete
    return np.column_stack([x["severity"], x["age"], x["male"], *(flag(x["centre"] == each) for each in "BCDE")])


def _trial(random: Generator, n: int) -> Draw:
    base = np.clip(random.normal(24, 5, n), 0, 60)
    uniform = random.random(n)
    y0 = np.clip(0.75 * base + 3 + random.normal(0, 5, n), 0, 60)
    return assigned(random, {"base": base}, np.full(n, 0.5), (y0, np.clip(y0 - 2.5, 0, 60)), uniform=uniform)


def _nonlinear(random: Generator, n: int) -> Draw:
    bmi = np.clip(22 + random.gamma(2.5, 2.2, n), 12, 60)
    sbp = np.clip(random.normal(132, 17, n) + 0.6 * (bmi - 27), 70, 250)
    smoker = flag(random.random(n) < 0.27)
    age = np.clip(random.normal(55, 14, n), 18, 95)
    b, q, a = (bmi - 27.5) / 3.5, (sbp - 132) / 17, (age - 55) / 14
    score = -0.5 + 0.5 * b - 0.25 * (b**2 - 1) + 0.6 * q * (q > 0) + 0.35 * a * smoker + 0.2 * a
    effect = -0.6 - 0.5 * (b > 0) * b + 0.4 * smoker * a
    level = 5.5 + 0.6 * np.exp(0.4 * np.clip(b, -3, 3)) + 0.5 * q**2 + 0.6 * smoker * a + 0.4 * a
    y0 = np.clip(level + 1.1 * random.normal(0, 1, n), 0, 20)
    complete = {"bmi": bmi, "sbp": sbp, "smoker": smoker, "age": age}
    return assigned(random, complete, expit(score), (y0, np.clip(y0 + effect, 0, 20)))


def _nonlinear_features(draw: Draw) -> Values:
    x = draw.complete
    b, q, a = (x["bmi"] - 27.5) / 3.5, (x["sbp"] - 132) / 17, (x["age"] - 55) / 14
    smoker, above = x["smoker"], np.maximum(b, 0)
    curve = np.exp(0.4 * np.clip(b, -3, 3))
    return np.column_stack([b, b**2, above, curve, q, np.maximum(q, 0), q**2, smoker, a, smoker * a])


def _realistic(name: str, features: Callable[[Draw], Values]) -> Table:
    """Return a table of the page on realistic tables."""
    kind = KINDS[name]

    def draw(random: Generator, n: int) -> Draw:
        drawn = kind.draw(random, n)
        everyone = np.ones(n)
        return Draw(drawn.columns, drawn.propensity, drawn.effect, drawn.complete, (everyone, everyone))

    return Table(
        name,
        kind.about,
        kind.outcome,
        kind.covariates,
        draw,
        features,
        treated_share=kind.treated_share,
        outcome_mean=kind.outcome_mean,
        outcome_sd=kind.outcome_sd,
        randomised=kind.randomised,
    )


def _patient_features(draw: Draw) -> Values:
    x = draw.complete
    a, s, c = (x["age"] - 68) / 12, (x["severity"] - 7.5) / 4.3, x["comorbidities"]
    bends = np.log1p(x["severity"] / 2), np.tanh(s), np.maximum(a, 0) * a, a * s * (s > 0)
    return np.column_stack([a, s, x["sex"], c, a**2, a * s, *bends])


def _main_features(draw: Draw) -> Values:
    """Return main effects; values of a category as indicators."""
    columns: list[Values] = []
    for column in draw.complete.values():
        if column.dtype == object:
            columns += [flag(column == value) for value in sorted(set(column))[1:]]
        else:
            columns.append(column)
    return np.column_stack(columns)


LABORATORY = tuple(_laboratory_table(shape, high) for shape in ("lin", "log") for high in (3.5, 7, 15, 150))

ELECTRONIC_RECORDS = Table(
    "EHR",
    "electronic records, ten confounders, skewed laboratory values, 20 % treated, 6 % events",
    dpc.Binary("y"),
    (
        dpc.Real("age", 18, 100),
        dpc.Real("creat", 0, 15),
        dpc.Real("crp", 0, 400),
        dpc.Real("hb", 4, 20),
        dpc.Binary("female"),
        dpc.Binary("diabetes"),
        dpc.Binary("chf"),
        dpc.Category("ward", ["med", "surg", "icu", "other"]),
        dpc.Real("charlson", 0, 15),
        dpc.Real("los_prior", 0, 60),
    ),
    _records,
    _record_features,
    treated_share=0.2,
    outcome_mean=0.06,
)

COST = Table(
    "COST",
    "randomised 2 to 1, costs with many zeros on bounds of 0 to 500,000",
    dpc.Real("y", 0, 500_000),
    (dpc.Real("cost_before", 0, 500_000), dpc.Real("age", 18, 90)),
    _cost,
    lambda draw: np.column_stack([np.log1p(draw.complete["cost_before"]), draw.complete["age"]]),
    treated_share=0.67,
    outcome_mean=4_000,
    outcome_sd=9_000,
    randomised=True,
)

REGISTRY = Table(
    "REG",
    "registry with little overlap and an effect that grows with severity",
    dpc.Real("y", 0, 100),
    (
        dpc.Real("severity", 0, 10),
        dpc.Real("age", 20, 100),
        dpc.Binary("male"),
        dpc.Category("centre", list("ABCDE")),
    ),
    _registry,
    _registry_features,
    treated_share=0.5,
    outcome_mean=57,
    outcome_sd=13,
)

TRIAL = Table(
    "TRIAL",
    "small trial with a baseline score",
    dpc.Real("y", 0, 60),
    (dpc.Real("base", 0, 60),),
    _trial,
    lambda draw: draw.complete["base"][:, None],
    outcome_mean=20,
    outcome_sd=6.2,
    randomised=True,
    n=800,
)

NONLINEAR = Table(
    "NONLIN",
    "curved outcome and propensity with interactions",
    dpc.Real("y", 0, 20),
    (dpc.Real("bmi", 12, 60), dpc.Real("sbp", 70, 250), dpc.Binary("smoker"), dpc.Real("age", 18, 95)),
    _nonlinear,
    _nonlinear_features,
    treated_share=0.4,
    outcome_mean=7,
    outcome_sd=2,
)

REALISTIC = tuple(
    _realistic(name, _patient_features if name in "OMBK" else _main_features)
    for name in ("O", "M", "B", "K", "C", "T25", "T40")
)

EARLIER = (*LABORATORY, ELECTRONIC_RECORDS, COST, REGISTRY, TRIAL, NONLINEAR, *REALISTIC)
