"""The tables of the leaderboard: published ones from files, and generated ones with a known effect.

Bounds are round numbers, of published sets from what they are about. Outcomes of IHDP and ACIC are simulated on a scale
of its own in each realisation: there bounds are round numbers that hold that realisation's outcomes.
"""

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

import dpcausal as dpc
from benchmarks.data.files import data_file
from benchmarks.datasets import DataSet, acic, ihdp, lalonde, synth
from dpcausal.schema.columns import Column

EFFECT = 0.3


def generated(n: int, dimensions: int, seed: int, sign: int = 1) -> DataSet:
    """Return a confounded table: four even covariates decide on treatment and outcome; effects from 0.15 to 0.45.

    The propensity is logistic in these four, kept within 0.05 and 0.95; the outcome's mean is linear in them in each
    arm, and outcomes have a beta distribution around it. A difference in means is a fifth too large, or with `sign` -1
    a fifth too small.
    """
    generator = np.random.default_rng((n, dimensions, seed))
    x = generator.uniform(0, 1, (n, dimensions))
    signs = np.array([1, -1, 1, -1])
    score = np.clip(1 / (1 + np.exp(-sign * 1.25 * (x[:, :4] - 0.5) @ signs)), 0.05, 0.95)
    arm = (generator.random(n) < score).astype(int)
    mean = 0.3 + (x[:, :4] - 0.5) @ (signs * [0.1, 0.15, 0.1, 0.1]) + EFFECT * (0.5 + x[:, 0]) * arm
    names = [f"x{place + 1}" for place in range(dimensions)]
    return DataSet(
        name=f"generated, n {n:,}, d {dimensions}" + (", turned" if sign < 0 else ""),
        table=pa.table({"t": arm, "y": generator.beta(5 * mean, 5 * (1 - mean)), **dict(zip(names, x.T, strict=True))}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1),
        covariates=tuple(dpc.Real(name, 0, 1) for name in names),
        truth=EFFECT,
        short=tuple(names),
        strata=tuple(dpc.Cut(name, [0.25, 0.5, 0.75]) for name in names[:2]),
        outcome_sd=0.2,
        covariate_sd=0.58,
    )


def twins(folder: Path | None) -> DataSet:
    """Twins of low weight: does the heavier one live through the first year more often? Both outcomes are known.

    Which twin is seen is drawn here, by length of pregnancy, the mother's age and cigarettes, so it is confounded.
    """
    with gzip.open(data_file("twins/Twin_data.csv.gz", folder), "rt") as file:
        header, *lines = file.read().splitlines()
    values = np.array([line.split(",") for line in lines], dtype=float)
    names = [name[1:-1] for name in header.split(",")]  # in quotation marks of several kinds
    known = dict(zip(names, values.T, strict=True))
    died = (values[:, -2:] < 9999).astype(int)
    score = 0.1 * (known["gestat"] - 33) + 0.05 * (known["dmage"] - 27) - 0.05 * known["cigar"]
    arm = (np.random.default_rng(0).random(len(values)) < 1 / (1 + np.exp(-score))).astype(int)
    bounds = {"gestat": (15, 50), "dmage": (10, 60), "cigar": (0, 60), "wtgain": (0, 100)}
    return DataSet(
        name="Twins",
        table=pa.table({name: known[name] for name in bounds} | {"heavier": arm, "died": np.choose(arm, died.T)}),
        treatment=dpc.Treatment("heavier", undeclared=0),
        outcome=dpc.Binary("died"),
        covariates=tuple(dpc.Real(name, *limits) for name, limits in bounds.items()),
        truth=float((died[:, 1] - died[:, 0]).mean()),
        short=tuple(bounds),
        strata=(dpc.Cut("gestat", [28, 31, 34, 37]), dpc.Cut("dmage", [20, 30])),
        outcome_sd=0.38,
    )


def _trial(
    name: str, table: pa.Table, columns: tuple[dpc.Treatment, dpc.Real | dpc.Binary], covariates: tuple[Column, ...]
) -> DataSet:
    """Return a randomised trial, whose own difference in means counts as the truth."""
    treatment, outcome = columns
    arms = np.array(table[treatment.name].to_pylist()) == treatment.compared[1]
    outcomes = table[outcome.name].to_numpy()
    return DataSet(
        name=name,
        table=table,
        treatment=treatment,
        outcome=outcome,
        covariates=covariates,
        truth=float(outcomes[arms].mean() - outcomes[~arms].mean()),
        short=tuple(column.name for column in covariates),
        randomised=True,
    )


def star(folder: Path | None) -> DataSet:
    """Tennessee's trial of small classes in kindergarten: reading and mathematics together."""
    table = pa.csv.read_csv(data_file("star/star_ecdat_5748.csv", folder))
    table = table.filter(pa.compute.not_equal(table["classk"], "regular.with.aide"))
    table = table.append_column("total", pa.compute.add(table["tmathssk"], table["treadssk"]))
    covariates = (
        dpc.Binary("freelunk", values=("no", "yes")),
        dpc.Category("race", ["white", "black", "other"]),
        dpc.Binary("sex", values=("boy", "girl")),
        dpc.Real("totexpk", 0, 40),
    )
    columns = (
        dpc.Treatment("classk", arms=("regular", "small.class"), undeclared="regular"),
        dpc.Real("total", 600, 1260),
    )
    return replace(_trial("STAR", table, columns, covariates), strata=("freelunk", "race"), outcome_sd=70)


def ist(folder: Path | None) -> DataSet:
    """Return the International Stroke Trial: aspirin and death."""
    table = pa.csv.read_csv(data_file("ist/ist_prr_subset.csv.gz", folder))
    covariates = (
        dpc.Real("AGE", 16, 100),
        dpc.Binary("SEX", values=("M", "F")),
        dpc.Category("RXHEP", ["N", "L", "H"]),
    )
    columns = dpc.Treatment("RXASP", arms=("N", "Y"), undeclared="N"), dpc.Binary("DIED")
    strata = (dpc.Cut("AGE", [60, 70, 80]), "SEX")
    return replace(_trial("IST", table, columns, covariates), strata=strata, outcome_sd=0.4)


def hillstrom(folder: Path | None) -> DataSet:
    """Return an e-mail experiment: does an e-mail about men's wear bring visits?"""
    table = pa.csv.read_csv(data_file("hillstrom/hillstrom.csv", folder))
    table = table.filter(pa.compute.not_equal(table["segment"], "Womens E-Mail"))
    covariates = (dpc.Real("recency", 1, 12), dpc.Real("history", 0, 4000), dpc.Binary("newbie"), dpc.Binary("womens"))
    columns = dpc.Treatment("segment", arms=("No E-Mail", "Mens E-Mail"), undeclared="No E-Mail"), dpc.Binary("visit")
    return replace(_trial("Hillstrom", table, columns, covariates), strata=("newbie", "womens"), outcome_sd=0.35)


FROM_FILES: dict[str, Callable[[Path | None], DataSet]] = {
    **{f"IHDP {place}": lambda folder, place=place: ihdp(folder, place) for place in range(1, 11)},  # type: ignore[misc]
    "Lalonde": lalonde,
    **{f"ACIC {place}": lambda folder, place=place: acic(folder, place) for place in range(1, 11)},  # type: ignore[misc]
    "Twins": twins,
    "STAR": star,
    "IST": ist,
    "Hillstrom": hillstrom,
}
"""Tables that are read from the folder a user names."""


@lru_cache(maxsize=4)
def table(name: str, repeat: int, folder: str | None) -> DataSet:
    """Return a table by its name; generated ones are new for each repeat."""
    if name == "Synth":
        return synth()
    if name in FROM_FILES:
        return FROM_FILES[name](Path(folder) if folder else None)
    n, dimensions, sign = (int(part) for part in name.split("/"))
    return generated(n, dimensions, repeat, sign)


def generated_name(n: int, dimensions: int, sign: int = 1) -> str:
    """Return the name by which `table` knows a generated table."""
    return f"{n}/{dimensions}/{sign}"
