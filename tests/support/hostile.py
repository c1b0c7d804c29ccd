"""A table of numbers and listed texts with all that is hostile about them, for warehouses."""

import math
from typing import Any

import numpy as np
import pyarrow as pa


def hostile(rows: int = 3_000) -> pa.Table:
    """Return a table for the standard schema."""
    random = np.random.default_rng(7)
    strange = np.array([math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 0.0, 10.0, 18.0, 90.0])
    texts = np.array(
        ["a", "b", "c", "A", " a", "", "x", "B\t", "\u00a0c", "½", "Å", "\u212a", "no", "YES "], dtype=object
    )

    def with_nulls(cells: Any) -> pa.Array:
        return pa.array(cells, mask=random.random(rows) < 0.02)

    def numbers(low: float, high: float) -> pa.Array:
        usual = random.uniform(low, high, rows)
        return with_nulls(np.where(random.random(rows) < 0.1, random.choice(strange, rows), usual))

    return pa.table(
        {
            "treat": with_nulls(random.integers(-1, 3, rows)),
            "score": numbers(-1, 11),
            "ward": with_nulls(random.choice(texts, rows)),
            "age": numbers(10, 100),
            "smoker": with_nulls(random.choice(texts, rows)),
        }
    )
