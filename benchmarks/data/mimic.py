"""MIMIC-III and MIMIC-IV as a table for DP-CATE's Figure 6: what ventilation does to the red blood cell count.

Schröder, Melnychuk and Feuerriegel (2025), Supplement H: eight confounders, each averaged over the ten hours before a
random moment of a stay in intensive care, mechanical ventilation as the treatment, and the red blood cell count after
it as the outcome. Here, differently from the paper:

- one moment for each patient, in the first stay, so that a unit is a person;
- the outcome is the first count in the day after the moment, as measured; the paper changes it to respond more to
  treatment and does not say how;
- values beyond public bounds are moved to them, where the paper leaves out what is beyond percentiles of the data,
  which would have to be paid for.

The moment follows from the number of the stay alone, so that the same files give the same table.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

import dpcausal as dpc
from benchmarks.data.files import data_file, is_here
from benchmarks.datasets import DataSet, connection

HOURS_BEFORE = 10
HOURS_AFTER = 24

# Item numbers, in laboratory and chart, as in MIT-LCP's mimic-code: CareVue's and MetaVision's.
_LAB_ITEMS = {"sodium": [50983], "rbc": [51279], "glucose": [50931], "hematocrit": [51221]}
_CHART_ITEMS = {"heart_rate": [211, 220045], "respiratory_rate": [615, 618, 220210, 224690]}

COVARIATES = (
    dpc.Real("heart_rate", 20, 220),
    dpc.Real("sodium", 110, 170),
    dpc.Real("rbc", 1, 8),
    dpc.Real("glucose", 20, 600),
    dpc.Real("hematocrit", 10, 65),
    dpc.Real("respiratory_rate", 0, 60),
    dpc.Real("age", 18, 90),
    dpc.Binary("female"),
)
"""Bounds are what an intensive care unit's devices and laboratories report, in their units, rounded outwards."""


@dataclass(frozen=True)
class _Version:
    """A version of MIMIC: the columns that are needed of each file, and how they become the tables of one query."""

    name: str
    columns: Mapping[str, tuple[str, ...]]
    tables: str


# Settings of the ventilator that are charted while a patient is ventilated: mode, minute volume, tidal volume, airway
# pressures, plateau pressure and PEEP.
_VENTILATOR_SETTINGS = (
    *(720, 223849),
    *(445, 448, 449, 450, 1340, 1486, 1600, 224687),
    *(639, 654, 681, 682, 683, 684, 224684, 224685, 224686),
    *(218, 436, 444, 535, 224695, 224696, 224697, 224746, 224747),
    *(543, 60, 437, 505, 506, 686, 220339, 224700),
)
_HOURS_VENTILATED = 4
"""A charted setting counts for this long; nurses chart them at least so often."""

MIMIC_III = _Version(
    name="mimic-iii",
    columns={
        "PATIENTS": ("SUBJECT_ID", "GENDER", "DOB"),
        "ICUSTAYS": ("SUBJECT_ID", "ICUSTAY_ID", "INTIME", "OUTTIME"),
        "LABEVENTS": ("SUBJECT_ID", "ITEMID", "CHARTTIME", "VALUENUM"),
        "CHARTEVENTS": ("ICUSTAY_ID", "ITEMID", "CHARTTIME", "VALUE", "VALUENUM", "ERROR"),
    },
    tables=f"""
    people AS (SELECT subject_id::BIGINT AS subject, gender, dob::TIMESTAMP AS born, NULL::BIGINT AS age_then,
        NULL::BIGINT AS year_then FROM "PATIENTS"),
    stays AS (SELECT subject_id::BIGINT AS subject, icustay_id::BIGINT AS stay, intime::TIMESTAMP AS start,
        outtime::TIMESTAMP AS finish FROM "ICUSTAYS"),
    labs AS (SELECT subject_id::BIGINT AS subject, itemid::BIGINT AS item, charttime::TIMESTAMP AS charted,
        try_cast(valuenum AS DOUBLE) AS number FROM "LABEVENTS"),
    charts AS (SELECT icustay_id::BIGINT AS stay, itemid::BIGINT AS item, charttime::TIMESTAMP AS charted,
        try_cast(valuenum AS DOUBLE) AS number, value FROM "CHARTEVENTS"
        WHERE icustay_id IS NOT NULL AND coalesce(error, '0') != '1'),
    ventilation AS (SELECT stay, charted AS start, charted + INTERVAL {_HOURS_VENTILATED} HOUR AS finish FROM charts
        WHERE item IN {_VENTILATOR_SETTINGS} AND value IS NOT NULL AND value != 'Other/Remarks')""",  # noqa: S608
)

MIMIC_IV = _Version(
    name="mimic-iv",
    columns={
        "hosp/patients": ("subject_id", "gender", "anchor_age", "anchor_year"),
        "icu/icustays": ("subject_id", "stay_id", "intime", "outtime"),
        "hosp/labevents": ("subject_id", "itemid", "charttime", "valuenum"),
        "icu/chartevents": ("stay_id", "itemid", "charttime", "valuenum"),
        "icu/procedureevents": ("stay_id", "itemid", "starttime", "endtime"),
    },
    # 225792 is invasive ventilation.
    tables="""
    people AS (SELECT subject_id::BIGINT AS subject, gender, NULL::TIMESTAMP AS born, anchor_age::BIGINT AS age_then,
        anchor_year::BIGINT AS year_then FROM "hosp/patients"),
    stays AS (SELECT subject_id::BIGINT AS subject, stay_id::BIGINT AS stay, intime::TIMESTAMP AS start,
        outtime::TIMESTAMP AS finish FROM "icu/icustays"),
    labs AS (SELECT subject_id::BIGINT AS subject, itemid::BIGINT AS item, charttime::TIMESTAMP AS charted,
        try_cast(valuenum AS DOUBLE) AS number FROM "hosp/labevents"),
    charts AS (SELECT stay_id::BIGINT AS stay, itemid::BIGINT AS item, charttime::TIMESTAMP AS charted,
        try_cast(valuenum AS DOUBLE) AS number FROM "icu/chartevents"),
    ventilation AS (SELECT stay_id::BIGINT AS stay, starttime::TIMESTAMP AS start, endtime::TIMESTAMP AS finish
        FROM "icu/procedureevents" WHERE itemid::BIGINT = 225792)""",
)


def mimic_iii(folder: Path | str | None) -> DataSet:
    """Return DP-CATE's table from MIMIC-III; the folder holds `mimic-iii/PATIENTS.csv.gz` and the others."""
    return _data(MIMIC_III, folder)


def mimic_iv(folder: Path | str | None) -> DataSet:
    """Return the same from MIMIC-IV; the folder holds `mimic-iv/hosp/patients.csv.gz` and the others."""
    return _data(MIMIC_IV, folder)


def _data(version: _Version, folder: Path | str | None) -> DataSet:
    database = connection().cursor()
    for table, columns in version.columns.items():
        _open(database, version.name, table, columns, folder)
    return DataSet(
        name={"mimic-iii": "MIMIC-III", "mimic-iv": "MIMIC-IV"}[version.name],
        table=database.sql(_query(version)).to_arrow_table(),
        treatment=dpc.Treatment("ventilated", undeclared=0),
        outcome=dpc.Real("rbc_after", 1, 8),
        covariates=COVARIATES,
        truth=math.nan,  # observational: nobody knows it
        short=("hematocrit", "rbc", "respiratory_rate", "age"),
        strata=(dpc.Cut("hematocrit", [25, 30, 35]), dpc.Cut("age", [50, 65, 80])),
        treated_share=0.3,
        outcome_sd=0.6,
    )


def _open(
    database: duckdb.DuckDBPyConnection, name: str, table: str, columns: Iterable[str], folder: Path | str | None
) -> None:
    """Make a file a view of text columns under the file's own name; it may be unpacked."""
    packed = f"{name}/{table}.csv.gz"
    unpacked = packed.removesuffix(".gz")
    file = data_file(unpacked if is_here(unpacked, folder) else packed, folder)
    text = str(file).replace("'", "''")
    database.execute(f"""CREATE OR REPLACE TEMP VIEW "{table}" AS
        SELECT * FROM read_csv('{text}', header = true, all_varchar = true)""")  # noqa: S608 (a file of the user's)
    found = {each[0].lower() for each in database.execute(f'DESCRIBE "{table}"').fetchall()}
    missing = [column for column in columns if column.lower() not in found]
    if missing:
        raise ValueError(f"expected the columns {', '.join(columns)} in {file}, got none called {', '.join(missing)}")


def _query(version: _Version) -> str:
    means = ", ".join(
        f"avg(number) FILTER (item IN ({', '.join(map(str, items))})) AS {name}"
        for name, items in {**_LAB_ITEMS, **_CHART_ITEMS}.items()
    )
    lab_items, chart_items = (
        ", ".join(str(item) for items in each.values() for item in items) for each in (_LAB_ITEMS, _CHART_ITEMS)
    )
    window = f"BETWEEN moment - INTERVAL {HOURS_BEFORE} HOUR AND moment"
    complete = " AND ".join(f"{column.name} IS NOT NULL" for column in COVARIATES)
    names = ", ".join(column.name for column in COVARIATES)
    return f"""WITH {version.tables},
    firsts AS (SELECT * FROM stays QUALIFY row_number() OVER (PARTITION BY subject ORDER BY start, stay) = 1),
    moments AS (SELECT subject, stay, start, start + to_seconds({HOURS_BEFORE} * 3600
            + (epoch(finish) - epoch(start) - {HOURS_BEFORE} * 3600) * (stay * 2654435761 % 4294967296) / 4294967296)
            AS moment
        FROM firsts WHERE finish - start > INTERVAL {HOURS_BEFORE} HOUR),
    measured AS (
        SELECT stay, item, number FROM moments JOIN labs USING (subject)
            WHERE item IN ({lab_items}) AND charted {window}
        UNION ALL
        SELECT stay, item, number FROM moments JOIN charts USING (stay)
            WHERE item IN ({chart_items}) AND charted {window}),
    means AS (SELECT stay, {means} FROM measured GROUP BY stay),
    outcomes AS (SELECT stay, arg_min(number, charted) AS rbc_after FROM moments JOIN labs USING (subject)
        WHERE item IN ({", ".join(map(str, _LAB_ITEMS["rbc"]))}) AND number IS NOT NULL
            AND charted > moment AND charted <= moment + INTERVAL {HOURS_AFTER} HOUR GROUP BY stay),
    ventilated AS (SELECT DISTINCT moments.stay FROM moments JOIN ventilation USING (stay)
        WHERE moment BETWEEN ventilation.start AND ventilation.finish),
    units AS (SELECT stay, means.* EXCLUDE (stay), rbc_after,
        coalesce(date_diff('year', born, start), age_then + year(start) - year_then)::DOUBLE AS age,
        (gender = 'F')::BIGINT AS female,
        (stay IN (SELECT stay FROM ventilated))::BIGINT AS ventilated
        FROM moments JOIN people USING (subject) JOIN means USING (stay) JOIN outcomes USING (stay))
    SELECT ventilated, rbc_after, {names} FROM units WHERE age >= 18 AND {complete} ORDER BY stay"""  # noqa: S608
