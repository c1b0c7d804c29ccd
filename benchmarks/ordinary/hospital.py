"""Tables as a hospital statistician meets them, written without a look at any estimator.

Values are skewed and bounds are those of a codebook. Treatment and outcome depend on covariates partly in proportion,
partly by logarithms and partly by thresholds. Effects vary. A laboratory value that was not measured was not known to
the doctor either: treatment depends on what is recorded.
"""

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.ordinary.table import Draw, Table, Values, assigned, expit, flag


def _unrecorded(draw: Draw, name: str) -> Values:
    """Return which cells of a column of numbers are missing."""
    return flag(np.isnan(draw.columns[name]))


def heart_failure(random: Generator, n: int) -> Draw:
    """Draw discharges after heart failure: a drug started before discharge, days alive out of hospital within 90."""
    frail = random.normal(0, 1, n)
    age = np.clip(
        np.rint(77 + 10.5 * (0.55 * frail + 0.83 * random.normal(0, 1, n)) - 1.5 * random.exponential(2, n)), 18, 105
    )
    female = flag(random.random(n) < expit(-0.25 + 0.03 * (age - 77)))
    diabetes = flag(random.random(n) < expit(-0.55 - 0.015 * (age - 77)))
    creatinine = np.clip(
        np.exp(0.12 + 0.008 * (age - 77) + 0.12 * diabetes - 0.18 * female + 0.38 * random.normal(0, 1, n)), 0.3, 20
    )
    ntprobnp = np.clip(
        np.exp(8.0 + 0.25 * frail + 0.75 * np.log(creatinine) + 0.95 * random.normal(0, 1, n)), 20, 70_000
    )
    systolic = np.clip(np.rint(127 - 3.5 * (np.log(ntprobnp) - 8.2) + 19 * random.normal(0, 1, n)), 60, 260)
    admissions = np.minimum(random.poisson(np.exp(-0.35 + 0.4 * frail + 0.3 * random.normal(0, 1, n))), 30).astype(
        float
    )
    place = random.random(n) + 0.006 * (age - 77)
    ward = np.where(place < 0.42, "cardiology", np.where(place < 0.85, "medicine", "geriatrics")).astype(object)

    unmeasured = random.random(n) < np.where(ward == "cardiology", 0.05, np.where(ward == "medicine", 0.14, 0.2))
    lacking = {
        "ntprobnp": unmeasured,
        "creatinine": random.random(n) < 0.02,
        "systolic": random.random(n) < 0.03,
    }
    seen = np.where(unmeasured, 0.0, np.log(ntprobnp) - 8.2)
    pressure = np.where(lacking["systolic"], 126, systolic)
    kidney = np.where(lacking["creatinine"], 1.1, creatinine)
    chance = (
        -0.7 + 0.25 * seen - 0.3 * unmeasured + 0.45 * diabetes - 1.3 * flag(kidney > 2.0) - 0.9 * flag(pressure < 100)
    )
    chance += 1.1 * flag(ward == "cardiology") - 0.5 * flag(ward == "geriatrics") - 0.06 * np.maximum(age - 75, 0)
    chance -= 0.1 * np.minimum(admissions, 4)

    burden = 0.45 * (np.log(ntprobnp) - 8.2) + 0.04 * (age - 77) + 0.5 * np.log(creatinine / 1.1)
    burden += 0.55 * flag(systolic < 105) + 0.22 * np.minimum(admissions, 6) + 0.15 * diabetes
    burden += -0.35 * flag(ward == "cardiology") - 0.7
    benefit = -0.42 - 0.18 * diabetes - 0.12 * np.clip(np.log(ntprobnp) - 8.2, -2, 2) + 0.3 * flag(creatinine > 2.0)
    u, days, early = random.random(n), random.random(n), random.poisson(0.9, n)
    outcomes = []
    for arm in (0, 1):
        events = u < expit(burden + arm * benefit)
        # Of those who come back or die, most lose a week or three, and a few almost all.
        lost = np.where(events, 4 + 86 * days ** np.exp(1.25 - 0.35 * np.clip(burden, -3, 3)), np.minimum(early, 6))
        outcomes.append(np.rint(90 - np.minimum(lost, 90)))
    observed = expit(3.1 + 0.02 * (age - 77) - 0.5 * flag(ward == "medicine"))
    complete = {
        "ntprobnp": ntprobnp,
        "creatinine": creatinine,
        "systolic": systolic,
        "age": age,
        "female": female,
        "diabetes": diabetes,
        "admissions": admissions,
        "ward": ward,
    }
    return assigned(
        random,
        complete,
        expit(chance),
        (outcomes[0], outcomes[1]),
        observed=(observed, observed),
        lacking=lacking,
    )


def _heart_failure_features(draw: Draw) -> Values:
    x = draw.complete
    peptide, kidney, age = np.log(x["ntprobnp"]) - 8.2, np.log(x["creatinine"] / 1.1), x["age"] - 77
    return np.column_stack(
        [
            *(peptide, peptide**2, kidney, flag(x["creatinine"] > 2.0), x["systolic"], flag(x["systolic"] < 100)),
            *(flag(x["systolic"] < 105), age, np.maximum(x["age"] - 75, 0), age**2, x["female"], x["diabetes"]),
            *(np.minimum(x["admissions"], 4), np.minimum(x["admissions"], 6), peptide * age, peptide * kidney),
            *(flag(x["ward"] == "cardiology"), flag(x["ward"] == "geriatrics")),
            *(_unrecorded(draw, "ntprobnp"), _unrecorded(draw, "ntprobnp") * peptide),
            *(_unrecorded(draw, "creatinine") * flag(x["creatinine"] > 2.0), _unrecorded(draw, "systolic")),
        ]
    )


def hip_replacement(random: Generator, n: int) -> Draw:
    """Draw a registry of hip replacements: uncemented stems, which surgeons choose for the fit, and a hip score."""
    frail = random.normal(0, 1, n)
    age = np.clip(np.rint(69 + 9.5 * (0.45 * frail + 0.9 * random.normal(0, 1, n))), 18, 105)
    female = flag(random.random(n) < 0.58)
    bmi = np.clip(17.5 + random.gamma(4.8, 2.2, n) - 0.05 * (age - 69), 14, 75)
    illness = 0.75 * frail + 0.03 * (age - 69) + 0.05 * (bmi - 28) + 0.8 * random.normal(0, 1, n)
    asa = np.array(["I", "II", "III", "IV"], dtype=object)[np.digitize(illness, [-1.35, 0.75, 2.6])]
    frailty = np.clip(np.rint(3 + 1.25 * frail + 0.5 * random.normal(0, 1, n)), 1, 9)
    volume = np.clip(
        np.rint(
            np.exp(
                random.choice(
                    np.log([35, 60, 90, 140, 210, 320, 480, 900]), n, p=[0.05, 0.09, 0.14, 0.18, 0.2, 0.17, 0.12, 0.05]
                )
            )
        ),
        1,
        2_000,
    )
    before = np.clip(
        np.rint(19 - 2.2 * frail - 0.15 * (bmi - 28) + 1.2 * (1 - female) + 7 * random.normal(0, 1, n)), 0, 48
    )

    severe = flag(asa == "III") + flag(asa == "IV")
    chance = 0.35 - 0.07 * (age - 69) - 1.1 * flag(age >= 75) - 0.35 * (frailty - 3) - 0.35 * severe
    chance += 0.3 * np.log(volume / 200) - 0.3 * female * flag(age >= 65) - 0.02 * (bmi - 28)

    after = 38.5 + 0.24 * (before - 19) - 1.1 * (frailty - 3) - 0.13 * (bmi - 28) - 1.5 * flag(bmi >= 40)
    after += -0.05 * np.maximum(age - 70, 0) - 1.2 * flag(asa == "III") - 3.0 * flag(asa == "IV")
    after += 0.6 * np.log(volume / 200)
    gain = 1.3 + 0.9 * flag(age < 65) - 0.35 * (frailty - 3) - 1.1 * flag(age >= 80) + 0.25 * np.log(volume / 200)
    # Most do well and a few do badly: errors have a long tail below, and the score ends at 48.
    error = 4.2 - random.gamma(1.6, 3.6, n) + 2.5 * random.normal(0, 1, n)
    outcomes = [np.clip(np.rint(after + arm * gain + error), 0, 48) for arm in (0, 1)]
    answers = 2.05 - 0.22 * (frailty - 3) - 0.25 * flag(age < 60)
    complete = {
        "asa": asa,
        "bmi": bmi,
        "age": age,
        "female": female,
        "frailty": frailty,
        "volume": volume,
        "score_before": before,
    }
    lacking = {
        "bmi": random.random(n) < np.where(volume < 120, 0.16, 0.07),
        "score_before": random.random(n) < 0.05,
    }
    return assigned(
        random,
        complete,
        expit(chance),
        (outcomes[0], outcomes[1]),
        observed=(expit(answers), expit(answers + 0.55)),
        lacking=lacking,
    )


def _hip_replacement_features(draw: Draw) -> Values:
    x = draw.complete
    age, asa = x["age"], x["asa"]
    return np.column_stack(
        [
            *(age - 69, flag(age >= 75), np.maximum(age - 70, 0), flag(age < 65), flag(age >= 80), flag(age < 60)),
            *(x["frailty"], flag(asa == "II"), flag(asa == "III"), flag(asa == "IV"), np.log(x["volume"] / 200)),
            *(x["female"], x["female"] * flag(age >= 65), x["bmi"], flag(x["bmi"] >= 40), x["score_before"]),
        ]
    )


_SMOKING = ("never", "former", "current")
_THRESHOLD = 0.9


def _risk(age: Values, male: Values, smoking: Values, recorded: tuple[Values, Values, Values]) -> Values:
    """Return the score that doctors go by, with recorded lipids, blood pressure and HbA1c."""
    lipids, pressure, sugar = recorded
    habits = 0.55 * flag(smoking == "current") + 0.15 * flag(smoking == "former")
    measured = 1.1 * np.log(lipids / 3.7) + 0.012 * (pressure - 133) + 0.8 * flag(sugar >= 48)
    return 0.095 * (age - 57) + 0.45 * male + habits + measured


def _statins(random: Generator, n: int, *, costs: bool) -> Draw:
    age = np.clip(np.rint(44 + 32 * random.beta(1.6, 2.0, n) + 2 * random.normal(0, 1, n)), 25, 100)
    male = flag(random.random(n) < 0.49)
    deprivation = random.choice(5, n, p=[0.23, 0.22, 0.2, 0.19, 0.16]).astype(float) + 1
    habits = random.random(n) - 0.035 * (deprivation - 3)
    smoking = np.array(_SMOKING, dtype=object)[np.where(habits > 0.45, 0, np.where(habits > 0.17, 1, 2))]
    weight = random.normal(0, 1, n) + 0.12 * (deprivation - 3)
    diabetes = random.random(n) < expit(-2.9 + 0.6 * weight + 0.04 * (age - 57))
    hba1c = np.clip(
        np.where(diabetes, 42 + random.gamma(2.2, 8, n), 37 + 2 * weight + 3 * random.normal(0, 1, n)), 15, 200
    )
    systolic = np.clip(np.rint(133 + 0.35 * (age - 57) + 3.5 * weight + 14 * random.normal(0, 1, n)), 70, 260)
    ratio = np.clip(np.exp(1.3 + 0.12 * male + 0.1 * weight + 0.26 * random.normal(0, 1, n)), 1, 20)
    visits = np.minimum(
        random.negative_binomial(1.3, 1.3 / (1.3 + np.exp(1.1 + 0.2 * weight + 0.012 * (age - 57))), n), 200
    )
    visits = visits.astype(float)

    lacking = {
        "hba1c": random.random(n) < np.where(diabetes, 0.02, 0.3),
        "ratio": random.random(n) < expit(-1.8 - 0.12 * np.minimum(visits, 8)),
        "systolic": random.random(n) < 0.02,
    }
    known = np.where(lacking["hba1c"], 38, hba1c)
    lipids = np.where(lacking["ratio"], 3.7, ratio)
    pressure = np.where(lacking["systolic"], 133, systolic)
    risk = _risk(age, male, smoking, (lipids, pressure, known))
    # Doctors follow a threshold of risk, and most of them follow it most of the time.
    chance = (
        -1.85 + 0.75 * risk + 1.8 * flag(risk > _THRESHOLD) + 0.35 * np.log1p(visits) - 0.55 * flag(lacking["ratio"])
    )
    chance += -0.1 * (deprivation - 3) - 0.9 * flag(age > 75)

    hazard = (
        -2.75 + 0.075 * (age - 57) + 0.4 * male + 0.6 * flag(smoking == "current") + 0.2 * flag(smoking == "former")
    )
    hazard += 0.9 * np.log(ratio / 3.7) + 0.014 * (systolic - 133) + 0.011 * (hba1c - 40) + 0.1 * (deprivation - 3)
    hazard += 0.18 * np.log1p(visits)
    relief = -0.38 - 0.35 * np.log(ratio / 3.7) + 0.2 * flag(age > 70)
    u = random.random(n)
    if costs:
        usual = np.exp(6.2 + 0.5 * np.log1p(visits) + 0.012 * (age - 57) + 0.75 * random.normal(0, 1, n))
        stay = np.exp(8.3 + 0.01 * (age - 57) + 0.7 * random.normal(0, 1, n))
        outcomes = [
            np.minimum(usual + arm * 140 + stay * (u < expit(hazard + arm * relief)), 100_000) for arm in (0, 1)
        ]
    else:
        outcomes = [flag(u < expit(hazard + arm * relief)) for arm in (0, 1)]
    stays = expit(2.5 + 0.02 * (age - 57) + 0.2 * np.log1p(visits))
    complete = {
        "age": age,
        "systolic": systolic,
        "ratio": ratio,
        "hba1c": hba1c,
        "smoking": smoking,
        "male": male,
        "deprivation": deprivation,
        "visits": visits,
    }
    return assigned(
        random,
        complete,
        expit(chance),
        (outcomes[0], outcomes[1]),
        observed=(stays, stays),
        lacking=lacking,
    )


def statin_events(random: Generator, n: int) -> Draw:
    """Draw patients of general practices, statins by a threshold of risk, and events within three years."""
    return _statins(random, n, costs=False)


def statin_costs(random: Generator, n: int) -> Draw:
    """Draw the same patients with the costs of two years' care."""
    return _statins(random, n, costs=True)


def _statin_features(draw: Draw) -> Values:
    x = draw.complete
    known = np.where(_unrecorded(draw, "hba1c") == 1, 38, x["hba1c"])
    lipids = np.where(_unrecorded(draw, "ratio") == 1, 3.7, x["ratio"])
    pressure = np.where(_unrecorded(draw, "systolic") == 1, 133, x["systolic"])
    current, former = flag(x["smoking"] == "current"), flag(x["smoking"] == "former")
    risk = _risk(x["age"], x["male"], x["smoking"], (lipids, pressure, known))
    return np.column_stack(
        [
            *(risk, flag(risk > _THRESHOLD), np.log1p(x["visits"]), _unrecorded(draw, "ratio"), x["deprivation"]),
            *(flag(x["age"] > 75), flag(x["age"] > 70), x["age"], x["age"] ** 2, x["male"], current, former),
            *(np.log(x["ratio"]), x["systolic"], x["hba1c"], np.log1p(x["visits"]) ** 2, risk**2),
        ]
    )


HEART_FAILURE = Table(
    "HF",
    "heart-failure discharges, a drug started in hospital, days alive out of hospital within 90",
    dpc.Real("y", 0, 90),
    (
        dpc.Real("ntprobnp", 0, 70_000, missing=3_000, indicator=True),
        dpc.Real("creatinine", 0, 20, missing=1.1),
        dpc.Real("systolic", 50, 260, missing=125),
        dpc.Real("age", 18, 110),
        dpc.Binary("female"),
        dpc.Binary("diabetes"),
        dpc.Real("admissions", 0, 30),
        dpc.Category("ward", ["cardiology", "medicine", "geriatrics"]),
    ),
    heart_failure,
    _heart_failure_features,
    treated_share=0.35,
    outcome_mean=80,
    outcome_sd=18,
)

HIP_REPLACEMENT = Table(
    "HIP",
    "hip replacements, uncemented stems chosen for the fit, a hip score after a year, answered less often in one arm",
    dpc.Real("y", 0, 48),
    (
        dpc.Real("frailty", 1, 9),
        dpc.Real("age", 18, 110),
        dpc.Category("asa", ["I", "II", "III", "IV"]),
        dpc.Real("bmi", 10, 80),
        dpc.Binary("female"),
        dpc.Real("volume", 0, 2_000),
        dpc.Real("score_before", 0, 48),
    ),
    hip_replacement,
    _hip_replacement_features,
    treated_share=0.4,
    outcome_mean=38,
    outcome_sd=8,
)

_STATIN_COVARIATES = (
    dpc.Real("age", 18, 110),
    dpc.Real("ratio", 0, 20, missing=4, indicator=True),
    dpc.Real("systolic", 60, 260),
    dpc.Real("hba1c", 15, 200, missing=38),
    dpc.Category("smoking", list(_SMOKING)),
    dpc.Binary("male"),
    dpc.Real("deprivation", 1, 5),
    dpc.Real("visits", 0, 200),
)

STATIN_EVENTS = Table(
    "STATIN",
    "statins in general practice by a threshold of risk, poor overlap, cardiovascular events within three years",
    dpc.Binary("y"),
    _STATIN_COVARIATES,
    statin_events,
    _statin_features,
    treated_share=0.35,
    outcome_mean=0.1,
)

STATIN_COSTS = Table(
    "STATIN-COST",
    "the same patients, costs of two years' care on bounds of 0 to 100,000",
    dpc.Real("y", 0, 100_000),
    _STATIN_COVARIATES,
    statin_costs,
    _statin_features,
    treated_share=0.35,
    outcome_mean=2_500,
    outcome_sd=3_500,
)

HOSPITAL = (HEART_FAILURE, HIP_REPLACEMENT, STATIN_EVENTS, STATIN_COSTS)
"""The tables that no estimator was tuned on."""
