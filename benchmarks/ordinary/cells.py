"""All tables of this suite, by name."""

from benchmarks.ordinary.confounders import CONFOUNDERS
from benchmarks.ordinary.earlier import EARLIER
from benchmarks.ordinary.hospital import HOSPITAL
from benchmarks.ordinary.table import missing_covariates, missing_outcomes

_EARLIER = {table.name: table for table in EARLIER}

OUTCOMES_MISSING = (
    missing_outcomes(_EARLIER["O"], 0.02, 0.02),
    missing_outcomes(_EARLIER["O"], 0.2, 0.2),
    missing_outcomes(_EARLIER["O"], 0.2, 0.05),
    missing_outcomes(_EARLIER["NONLIN"], 0.02, 0.1),
    missing_outcomes(_EARLIER["EHR"], 0.05, 0.15),
)

COVARIATES_MISSING = (
    missing_covariates(_EARLIER["O"], 0.1, ("severity",)),
    missing_covariates(_EARLIER["LAB log 15"], 0.1, ("creatinine",)),
    missing_covariates(_EARLIER["NONLIN"], 0.1, ("bmi", "sbp")),
)

GROUPS = {
    "not seen before": HOSPITAL,
    "seen before": EARLIER,
    "missing outcomes": OUTCOMES_MISSING,
    "missing covariates": COVARIATES_MISSING,
    "many confounders": CONFOUNDERS,
}
"""Tables by what they are for. Estimators may have been tuned on all but the first group and the last."""

TABLES = {table.name: table for group in GROUPS.values() for table in group}
