"""Made-up tables for checks."""

import math

import numpy as np
import pyarrow as pa

from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn, Treatment, listed_values


def standard_schema(
    protects: Protects = "record", undeclared: Value | None = None, *, complete: bool | None = None
) -> Schema:
    """Return a schema with columns of every kind: treat, score, ward (by which units enter), age and smoker.

    Args:
        protects: What one unit may change.
        undeclared: The arm to which an undeclared value counts; if left out, such units are outside the comparison.
        complete: Whether a missing outcome counts as 5, so that no unit is outside for the lack of one. If left out,
            where arms are public or `undeclared` sends every unit to an arm.
    """
    complete = protects != "record" or undeclared is not None if complete is None else complete
    return Schema(
        treatment=Treatment("treat", undeclared=undeclared),
        outcome=Real("score", 0, 10, missing=5.0 if complete else None),
        covariates=[Category("ward", ["a", "b", "c"]), Real("age", 18, 90), Binary("smoker", values=("no", "yes"))],
        protects=protects,
        entry="ward",
    )


def synthetic_table(schema: Schema, n: int, seed: int = 0) -> pa.Table:
    """Make a table that a schema describes. Its columns are independent of each other, so there is no effect."""
    generator = np.random.default_rng(seed)
    return pa.table({column.name: _cells(column, n, generator) for column in schema.columns})


def hostile_tables(schema: Schema, n: int) -> dict[str, pa.Table]:
    """Make tables on which careless code fails, with the same types as those of `synthetic_table`."""
    usual = synthetic_table(schema, n)
    treatment, outcome = schema.treatment, schema.outcome.name
    place, kind = usual.column_names.index(treatment.name), usual.schema.field(treatment.name).type
    tables = {
        f"only {value!r}": usual.set_column(place, treatment.name, pa.array([value] * n, kind))
        for value in treatment.compared
    }
    lonely = [treatment.compared[1]] + [treatment.compared[0]] * (n - 1)
    tables["one treated"] = usual.set_column(place, treatment.name, pa.array(lonely, kind))
    tables["nothing known"] = pa.table({field.name: pa.nulls(n, field.type) for field in usual.schema})
    numbers = usual.schema.field(outcome).type
    if pa.types.is_floating(numbers):
        for name, value in (("far off", 1e308), ("infinite", -math.inf), ("not a number", math.nan)):
            at = usual.column_names.index(outcome)
            tables[f"outcomes {name}"] = usual.set_column(at, outcome, pa.array([value] * n, numbers))
    return tables


def _cells(column: TableColumn, n: int, generator: np.random.Generator) -> pa.Array:
    if isinstance(column, Real):
        return pa.array(generator.uniform(column.low, column.high, n))
    values = listed_values(column)
    return pa.array([values[place] for place in generator.integers(0, len(values), n)])
