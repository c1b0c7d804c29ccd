"""The data sets of the private-matching paper, each with public bounds written down by hand.

Loaders take the folder that holds `ihdp`, `lalonde` and the others. Lalonde, NHEFS and ACIC's first realisation are
shipped and need none: see `benchmarks.data`.

Bounds are round numbers such as a codebook would give. None is computed from the data; values beyond are moved to the
bound, as the library does with any table. The outcomes of IHDP, ACIC and Synth are simulated and have no codebook:
there bounds are round numbers on the scale of the simulation, wider than its outcomes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.data.files import data_file
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import Protects

BUDGET = dpc.Budget(epsilon=1000, delta=0.1)
"""Enough for anything that is asked of one vault here."""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """One database for each process: opening one takes longer than most estimates."""
    return duckdb.connect(config={"threads": 1})


@dataclass(frozen=True)
class DataSet:
    """A table, what is public about it, and the effect that an estimator should find.

    Attributes:
        name: What to call it.
        table: The records.
        treatment: The treatment.
        outcome: The outcome with public bounds.
        covariates: All covariates with public bounds or values.
        truth: The effect: the mean of simulated effects over the units in the table, or a trial's difference in means.
        short: A few covariates that matter, for estimators to which each one costs accuracy.
        strata: One or two covariates that matter, in public bins.
        treated_share: The share of treated units that a planner would expect.
        outcome_sd: The outcome's standard deviation within an arm that a planner would expect.
        covariate_sd: The same of covariates that are numbers, as a share of half their range.
        randomised: Whether it is known that treatment was given at random.
    """

    name: str
    table: Any
    treatment: dpc.Treatment
    outcome: dpc.Real | dpc.Binary
    covariates: tuple[Column, ...]
    truth: float
    short: tuple[str, ...] = ()
    strata: tuple[str | dpc.Cut, ...] = ()
    treated_share: float = 0.5
    outcome_sd: float | None = None
    covariate_sd: float = 1 / 3
    randomised: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all covariates."""
        return tuple(column.name for column in self.covariates)

    def schema(self, protects: Protects) -> dpc.Schema:
        """Return the declaration that goes with the table."""
        # No outcome is missing.
        outcome = replace(self.outcome, missing=self.outcome.missing_value)  # type: ignore[arg-type]
        return dpc.Schema(treatment=self.treatment, outcome=outcome, covariates=self.covariates, protects=protects)

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.table)

    def relation(self) -> duckdb.DuckDBPyRelation:
        """Return the records, for a vault or an engine."""
        return connection().from_arrow(self.table)

    def vault(self, protects: Protects = "record") -> dpc.Vault:
        """Return a new vault with its own ledger, so that every question is answered anew."""
        return dpc.Vault(self.relation(), self.schema(protects), ledger="sqlite://", budget=BUDGET)

    def column(self, name: str) -> NDArray[Any]:
        """One column of the table."""
        values: NDArray[Any] = self.table[name].to_numpy()
        return values

    def not_private_bounds(self) -> "DataSet":
        """NOT PRIVATE: the same with bounds taken from the data, as the paper did. Only to compare with the paper."""
        return replace(
            self,
            outcome=self._fitted(self.outcome) if isinstance(self.outcome, dpc.Real) else self.outcome,
            covariates=tuple(
                self._fitted(column) if isinstance(column, dpc.Real) else column for column in self.covariates
            ),
        )

    def _fitted(self, column: dpc.Real) -> dpc.Real:
        values = self.column(column.name)
        return dpc.Real(column.name, float(values.min()), float(values.max()))


_IHDP_BOUNDS = {4: (-5, 20), 5: (-5, 20), 8: (-5, 20), 9: (0, 260), 10: (0, 70)}


def ihdp(folder: Path | None, realisation: int = 1) -> DataSet:
    """Hill's simulation on the Infant Health and Development Program, one realisation of setting A."""
    values = np.loadtxt(data_file(f"ihdp/ihdp_npci_{realisation}.csv", folder), delimiter=",")
    names = ["treatment", "y", "y_other", "mu0", "mu1", *(f"x{place}" for place in range(1, 26))]
    columns = dict(zip(names, values.T, strict=True))
    # x1 to x6 are standardised: four standard deviations. The rest are yes or no, one of them written 1 or 2.
    reals = [dpc.Real(f"x{place}", -4, 4) for place in range(1, 7)]
    listed = [dpc.Binary(f"x{place}", values=(1, 2) if place == 14 else (0, 1)) for place in range(7, 26)]
    return DataSet(
        name="IHDP",
        table=pa.table({name: columns[name] for name in names if name not in {"y_other", "mu0", "mu1"}}),
        treatment=dpc.Treatment("treatment", undeclared=0),
        outcome=dpc.Real("y", *_IHDP_BOUNDS.get(realisation, (-5, 15))),
        covariates=(*reals, *listed),
        truth=float((columns["mu1"] - columns["mu0"]).mean()),
        # Birth weight, mother's age, married, no school degree. The study is confounded by whom it left out.
        short=("x1", "x6", "x9", "x10"),
        strata=("x9", "x10"),
        treated_share=0.2,
        outcome_sd={9: 20.0, 10: 7.0}.get(realisation, 1.5),
        covariate_sd=0.25,  # they are standardised, and bounds are four standard deviations away
    )


def lalonde(folder: Path | None = None) -> DataSet:
    """Dehejia and Wahba's sample of the National Supported Work trial, both arms randomised."""
    table = pa.csv.read_csv(data_file("lalonde/nsw_dw_445.csv", folder))
    # The programme took people of working age; yearly earnings of its intake are below 60,000 dollars with few
    # exceptions, which count as 60,000.
    earnings = [dpc.Real(name, 0, 60_000) for name in ("re74", "re75")]
    listed = [dpc.Binary(name) for name in ("black", "hisp", "marr", "nodegree")]
    return DataSet(
        name="Lalonde",
        table=table.drop_columns(["rownames", "data_id"]),
        treatment=dpc.Treatment("treat", undeclared=0),
        outcome=dpc.Real("re78", 0, 60_000),
        covariates=(dpc.Real("age", 16, 60), dpc.Real("educ", 0, 18), *listed, *earnings),
        truth=1794.34,  # the trial's difference in means, as reported
        short=("age", "educ", "black", "nodegree"),
        strata=("black", "nodegree"),
        treated_share=0.4,
        outcome_sd=7_000,
        randomised=True,
    )


# What the perinatal study recorded, under anonymous names: ages, heights, weights and scores in round numbers.
_ACIC_BOUNDS: dict[tuple[float, float], str] = {
    (10, 50): "1",
    (0, 60): "3 58",
    (0, 40): "4",
    (40, 80): "5",
    (50, 300): "6 27",
    (0, 10): "7 8 9 10 11 12 13 14 15 16 30 31 32 33 39 40 41 42 46 47 48 49 50 52 53 55 56",
    (0, 20): "18 25 29",
    (0, 100): "23 34 37 44",
    (0, 70): "20 28 57",
    (0, 130): "19 26",
    (0, 50): "35",
    (100, 1000): "36",
    (0, 30): "43 45",
}
_ACIC_YES_OR_NO = "17 22 38 51 54"
_ACIC_LETTERS = {"x_2": "ABCDEF", "x_21": "ABCDEFGHIJKLMNOP", "x_24": "ABCDE"}


def _acic_column(name: str) -> Column:
    place = name.removeprefix("x_")
    if name in _ACIC_LETTERS:
        return dpc.Category(name, list(_ACIC_LETTERS[name]))
    if place in _ACIC_YES_OR_NO.split():
        return dpc.Binary(name)
    return next(dpc.Real(name, *bounds) for bounds, places in _ACIC_BOUNDS.items() if place in places.split())


_ACIC_OUTCOMES = {
    1: (-15, 30),
    2: (0, 100),
    3: (-20, 30),
    4: (-10, 40),
    5: (-60, 20),
    6: (-10, 60),
    7: (-40, 140),
    8: (-20, 70),
    9: (-20, 30),
    10: (-80, -20),
}


def acic(folder: Path | None = None, realisation: int = 1) -> DataSet:
    """Return the ACIC challenge of 2016: real covariates, simulated arms and outcomes."""
    table = pa.csv.read_csv(data_file("acic2016/x.csv", folder))
    simulated = pa.csv.read_csv(data_file(f"acic2016/zymu_{realisation}.csv", folder))
    arm, control, treated, mu0, mu1 = (simulated[name].to_numpy() for name in ("z", "y0", "y1", "mu0", "mu1"))
    covariates = tuple(_acic_column(name) for name in table.column_names)
    outcomes = pa.array(np.where(arm == 1, treated, control))
    return DataSet(
        name="ACIC",
        table=table.append_column("z", pa.array(arm)).append_column("y", outcomes),
        treatment=dpc.Treatment("z", undeclared=0),
        outcome=dpc.Real("y", *_ACIC_OUTCOMES[realisation]),
        covariates=covariates,
        truth=float((mu1 - mu0).mean()),
        # Names are anonymous, so these were picked by what they do in the simulation, in place of what a study's
        # authors know about their own covariates.
        short=("x_20", "x_23", "x_24", "x_44"),
        strata=(dpc.Cut("x_23", [50, 55, 60, 65]), dpc.Cut("x_44", [50, 55, 60, 65])),
        treated_share=0.2 if realisation == 1 else 0.3,
        outcome_sd=5.0,
    )


SYNTH_EFFECT = 0.5


def synth(n: int = 1000, dimensions: int = 20, seed: int = 0) -> DataSet:
    """Return the paper's simulation: uniform covariates, a logistic score, a linear outcome, one effect."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, (n, dimensions))
    a, b = generator.uniform(-1, 1, dimensions), generator.uniform(0, 0.4, dimensions)
    arm = (generator.uniform(0, 1, n) < 1 / (1 + np.exp(-(2 * x - 1) @ a))).astype(int)
    y = x @ b + SYNTH_EFFECT * arm + generator.uniform(0, 0.1, n)
    names = [f"x{place + 1}" for place in range(dimensions)]
    order = np.argsort(-np.abs(a * b))  # the design is known to whoever simulates
    short = tuple(names[place] for place in order[:4])
    return DataSet(
        name="Synth",
        table=pa.table({"t": arm, "y": y, **dict(zip(names, x.T, strict=True))}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 5),
        covariates=tuple(dpc.Real(name, 0, 1) for name in names),
        truth=SYNTH_EFFECT,
        short=short,
        strata=tuple(dpc.Cut(name, [0.25, 0.5, 0.75]) for name in short[:2]),
        outcome_sd=0.3,
        covariate_sd=0.58,  # even, by design
    )


def nhefs(folder: Path | None = None) -> DataSet:
    """Return those who smoked in 1971 with a weight in 1982; treatment is to have stopped. Nine confounders.

    Hernán and Robins (2020), What if, chapter 12: adjusted 3.4 kg (2.4 to 4.5), and 2.5 without adjustment.
    """
    table = pa.csv.read_csv(data_file("nhefs/NHEFS.csv", folder))
    # Round numbers such as a codebook would give; nobody is expected to lose or gain more than 50 kg in eleven years.
    return DataSet(
        name="NHEFS",
        table=table.filter(pa.compute.is_valid(table["wt82_71"])),
        treatment=dpc.Treatment("qsmk", undeclared=0),
        outcome=dpc.Real("wt82_71", -50, 50),
        covariates=(
            dpc.Real("age", 25, 75),
            dpc.Binary("sex"),
            dpc.Binary("race"),
            dpc.Real("wt71", 35, 115),
            dpc.Real("smokeintensity", 0, 40),
            dpc.Real("smokeyrs", 0, 50),
            dpc.Category("education", [1, 2, 3, 4, 5]),
            dpc.Category("exercise", [0, 1, 2]),
            dpc.Category("active", [0, 1, 2]),
        ),
        truth=3.4,  # adjusted without privacy
        treated_share=0.25,
        outcome_sd=8.0,
    )


_FROM_FILES: dict[str, Callable[[Path | None], DataSet]] = {"IHDP": ihdp, "Lalonde": lalonde, "ACIC": acic}
NAMES: Sequence[str] = (*_FROM_FILES, "Synth")


def from_files(names: Sequence[str]) -> bool:
    """Whether any of these data sets needs a folder of files: IHDP, which is not shipped."""
    return "IHDP" in names


@cache
def load(name: str, folder: str | None) -> DataSet:
    """Return a data set by its name; the folder holds `ihdp`, and the others need none."""
    if name == "Synth":
        return synth()
    return _FROM_FILES[name](Path(folder) if folder else None)
