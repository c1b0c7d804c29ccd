"""A hospital's csv as hospitals write them, the same table cleaned, and what is declared about either."""

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

import dpcausal as dpc

FIRST = dt.date(2015, 1, 1)
MESSY = dpc.Schema(
    treatment=dpc.Treatment(
        "arm", arms=("usual care", "new drug"), aliases={"new drug": ["drug", "nd"]}, undeclared="usual care"
    ),
    outcome=dpc.Real("costs", 0, 50_000, decimal=",", thousands=".", strip=["€", "EUR"]),
    covariates=[
        dpc.Category("sex", ["female", "male", "not recorded"], aliases={"female": ["f", "w"], "male": ["m"]}),
        dpc.Binary("smoker"),
        dpc.Binary("diabetes", values=("nein", "ja"), aliases={"ja": ["yes", "1"], "nein": ["no", "0"]}),
        dpc.Real("age", 18, 100, missing=50, strip=["years", "yrs", "y"], indicator=True),
        dpc.Real("weight", 30, 200, strip=["kg"], decimal=","),
        dpc.Real("saturation", 0.5, 1, percent=True),
        dpc.Real("platelets", 0, 1_000_000, thousands=","),
        dpc.Real("income", 0, 200_000, thousands=" ", indicator=True),
        dpc.Real("admitted", 0, 3_650, since=FIRST, date_format=["%d.%m.%Y", "%Y-%m-%d"]),
        dpc.Category("ward", ["Innere Medizin", "Chirurgie", "Gynäkologie", "other"]),
        dpc.Category("stage", [1, 2, 3, 4], missing=1, aliases={4: ["IV", "four"]}),
    ],
)
"""What is declared about the messy table: 13 columns."""

_PLAIN: dict[str, Any] = {"decimal": ".", "thousands": "", "strip": (), "percent": False, "date_format": "%Y-%m-%d"}


def _clean(column: Any) -> Any:
    if isinstance(column, dpc.Real):
        return replace(column, since=None, **_PLAIN)
    return replace(column, aliases=(), strict=True)


CLEAN = replace(
    MESSY,
    treatment=_clean(MESSY.treatment),
    outcome=_clean(MESSY.outcome),
    covariates=[_clean(column) for column in MESSY.covariates if not column.name.endswith("is missing")],
)
"""What is declared about the cleaned one: bounds and values, and nothing about how cells are written."""


def tables(size: int = 8_000) -> tuple[pa.Table, pa.Table]:
    """Return the messy table, all of it text, and the cleaned one, each column of its type."""
    draw = random.Random(8)  # noqa: S311
    records = [_record(draw) for _ in range(size)]
    types = {name: pa.string() if isinstance(records[0][name][1], str) else pa.float64() for name in records[0]}
    messy = pa.table({name: pa.array([each[name][0] for each in records], pa.string()) for name in types})
    clean = pa.table({name: pa.array([each[name][1] for each in records], kind) for name, kind in types.items()})
    return messy, clean


def write_messy(file: Path, size: int = 8_000) -> pa.Table:
    """Write the messy table as csv; return the cleaned one."""
    messy, clean = tables(size)
    csv.write_csv(messy, file)
    return clean


def _record(draw: random.Random) -> dict[str, tuple[str | None, Any]]:
    """Return for each column a cell as it is written, and what it means."""
    cells: dict[str, tuple[str | None, Any]] = {
        "arm": _listed(draw, {"usual care": ["usual care"], "new drug": ["new drug", "drug", "ND"]}, "usual care"),
        "costs": _number(draw, round(draw.lognormvariate(8, 1), 2), lambda x: _german(x, draw)),
        "sex": _listed(draw, {"female": ["female", "f", "w"], "male": ["male", "m"]}, "not recorded"),
        "smoker": _listed(draw, {0: ["no", "false", "n", "f", "0"], 1: ["yes", "true", "y", "t", "1", "1.0"]}, 0.0),
        "diabetes": _listed(draw, {"nein": ["nein", "no", "0"], "ja": ["ja", "yes", "1"]}, "nein"),
        "age": _number(draw, draw.randint(15, 103), lambda x: f"{x}{draw.choice(['', ' years', 'Y', ' yrs'])}"),
        "weight": _number(draw, round(draw.gauss(80, 20), 1), lambda x: _comma(x) + draw.choice(["", " KG", "kg"])),
        "saturation": _number(draw, round(draw.uniform(80, 100), 1), lambda x: f"{x}{draw.choice(['%', ' %'])}"),
        "platelets": _number(draw, draw.randint(900, 900_000), lambda x: draw.choice([f"{x:,}", str(x)])),
        "income": _number(draw, draw.randint(0, 250_000), lambda x: _spaced(x, draw)),
        "admitted": _day(draw),
        "ward": _listed(draw, {name: [name] for name in ("Innere Medizin", "Chirurgie", "Gynäkologie")}, "other"),
        "stage": _listed(draw, {1: ["1"], 2: ["2", "2.0"], 3: ["3"], 4: ["4", "iv", "FOUR"]}, 1.0),
    }  # fmt: skip
    messy, clean = cells["saturation"]
    cells["saturation"] = messy, None if clean is None else float(f"{clean}e-2")
    return cells


def _blanks(text: str, draw: random.Random) -> str:
    return draw.choice(["", "", "", " ", "\t", "\u00a0"]) + text + draw.choice(["", "", "", " ", "  ", "\u00a0"])


def _listed(draw: random.Random, spelled: dict[Any, list[str]], missing: Any) -> tuple[str | None, Any]:
    if draw.random() < 0.06:
        return draw.choice([None, "", "?", "unknown", "n/a"]), missing
    value = draw.choice(list(spelled))
    text = draw.choice(spelled[value])
    text = draw.choice([text, text.upper(), text.lower(), text.capitalize()])
    return _blanks(text, draw), value if isinstance(value, str) else float(value)


def _number(draw: random.Random, value: float, write: Callable[[Any], str]) -> tuple[str | None, float | None]:
    if draw.random() < 0.06:
        return draw.choice([None, "", "NA", "not done", "-", "12;5"]), None
    return _blanks(write(value), draw), float(value)


def _comma(value: float) -> str:
    return str(value).replace(".", ",")


def _spaced(value: int, draw: random.Random) -> str:
    return f"{value:,}".replace(",", draw.choice([" ", "\u00a0", "\u202f"]))


def _german(value: float, draw: random.Random) -> str:
    text = f"{value:,.2f}".translate(str.maketrans(",.", ".,"))
    return draw.choice([text, f"{text} €", f"€ {text}", f"{text} eur", f"{value:.2f}".replace(".", ",")])


def _day(draw: random.Random) -> tuple[str | None, float | None]:
    if draw.random() < 0.06:
        return draw.choice([None, "", "30.02.2016", "2016-13-01", "soon", "31/12/2016"]), None
    day = FIRST + dt.timedelta(days=draw.randint(-300, 4_000))
    short = f"{day.day}.{day.month}.{day.year}"
    forms = [short, f"{day:%d.%m.%Y}", f"{day:%Y-%m-%d}", f"{day:%Y-%m-%d} 07:30"]
    return _blanks(draw.choice(forms), draw), float((day - FIRST).days)
