"""The jump at a cutoff: two lines that least squares fit on both sides of it."""

import numpy as np

import dpcausal as dpc
from tests.statistics.case import Case
from tests.statistics.references import Reference, line_of, one
from tests.statistics.tables import columns

CUTOFF, BANDWIDTH = 0.1, 0.6


def discontinuity() -> Reference:
    """Return the difference of both lines at the cutoff, with its standard error."""
    a, y = columns()["a"], columns()["y"]
    at, variance = [], 0.0
    for own in ((a < CUTOFF) & (a >= CUTOFF - BANDWIDTH), (a >= CUTOFF) & (a <= CUTOFF + BANDWIDTH)):
        line = line_of(a[own] - CUTOFF)
        fitted, rest = np.linalg.lstsq(line, y[own], rcond=None)[:2]
        at.append(float(fitted[0]))
        variance += float(rest[0]) / (own.sum() - 2) * float(np.linalg.inv(line.T @ line)[0, 0])
    return one(at[1] - at[0], variance**0.5, means=(at[0], at[1]))


CASES = (
    Case(
        "regression discontinuity",
        dpc.RegressionDiscontinuity("a", cutoff=CUTOFF, bandwidth=BANDWIDTH),
        discontinuity,
        words="effect at the cutoff",
        linear=True,
    ),
)
