"""Tables that the studies are made on, and vaults around them."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.columns import Column
from dpcausal.schema import Protects

Floats = NDArray[np.float64]

BUDGET = dpc.Budget(epsilon=1000, delta=0.1)


@dataclass(frozen=True)
class Table:
    """A table, what is public about it, and its true effect.

    Attributes:
        name: What it is called in results.
        rows: The records, an Arrow table.
        treatment: The declared treatment.
        outcome: The declared outcome; its bounds are chosen without looking at the table.
        covariates: The declared covariates.
        truth: The average treatment effect that an estimate is after.
    """

    name: str
    rows: Any
    treatment: dpc.Binary
    outcome: dpc.Real
    covariates: tuple[Column, ...]
    truth: float

    @property
    def of(self) -> list[str]:
        """The names of the covariates."""
        return [column.name for column in self.covariates]

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.rows)

    def schema(self, protects: Protects) -> dpc.Schema:
        """What is public about the table."""
        return dpc.Schema(treatment=self.treatment, outcome=self.outcome, covariates=self.covariates, protects=protects)

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows, for a vault or an engine."""
        return connection().from_arrow(self.rows)

    def vault(self, protects: Protects = "record") -> dpc.Vault:
        """A new vault with its own ledger, so that nothing asked before is remembered."""
        return dpc.Vault(self.relation(), self.schema(protects), ledger="sqlite://", budget=BUDGET)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """One database for all vaults: opening one takes longer than most questions."""
    return duckdb.connect(config={"threads": 1})


def synth(generator: Generator, n: int = 1000, dimensions: int = 20) -> Table:
    """The matching paper's Synth: uniform covariates, a logistic score, a linear outcome, an effect of one half.

    The outcome's bounds are round numbers: its mean is near 2.5, and it hardly ever leaves 0 to 5.
    """
    x = generator.random((n, dimensions))
    a, b = generator.uniform(-1, 1, dimensions), generator.uniform(0, 0.4, dimensions)
    arm = (generator.random(n) < sigmoid((2 * x - 1) @ a)).astype(int)
    columns = {f"x{place}": x[:, place] for place in range(dimensions)}
    y = x @ b + 0.5 * arm + generator.uniform(0, 0.1, n)
    return Table(
        name="Synth",
        rows=pa.table({**columns, "t": arm, "y": y}),
        treatment=dpc.Binary("t"),
        outcome=dpc.Real("y", 0, 5),
        covariates=tuple(dpc.Real(name, 0, 1) for name in columns),
        truth=0.5,
    )


def cells(generator: Generator, n: int, size: int, imbalance: float | None = None) -> Table:
    """The multi-site paper's Synth: one covariate with `size` values, and outcomes within 0 and 1."""
    a = generator.uniform(-1, 1) if imbalance is None else imbalance
    b = generator.uniform(0, 0.4)
    cell = generator.integers(0, size, n)
    x = cell / max(size - 1, 1)
    arm = (generator.random(n) < sigmoid(a * (2 * x - 1))).astype(int)
    return Table(
        name="Synth",
        rows=pa.table({"x": cell, "t": arm, "y": b * x + 0.5 * arm + generator.uniform(0, 0.1, n)}),
        treatment=dpc.Binary("t"),
        outcome=dpc.Real("y", 0, 1),
        covariates=(dpc.Category("x", list(range(size))),),
        truth=0.5,
    )


def sigmoid(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-values))
