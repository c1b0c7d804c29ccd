"""Moments of columns in formulas, such as `mean(dose)`, and the sums that they are made of."""

from collections.abc import Callable

from dpcausal.errors import QueryError
from dpcausal.queries.custom_sums import quoted
from dpcausal.queries.quantities import middle_and_half
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.sums.expressions import Call, Name, check_arguments
from dpcausal.uncertainty.derivatives import Numbers

MOMENTS = {"mean": "column", "variance": "column", "covariance": "column, column"}
"""The moments, with what their arguments are."""

COUNT = "1"
"""What a unit adds to the number of units."""


def moment(call: Call, schema: Schema, sum_of: Callable[[str], Numbers]) -> Numbers:
    """Return a moment of columns: variances and covariances with n - 1 as their divisor.

    Args:
        call: The moment, such as `covariance(dose, score)`.
        sum_of: The value of a sum, by what a unit adds to it.

    Raises:
        QueryError: If the arguments are no columns.
    """
    one, *others = columns_of(call)
    middle, half = middle_and_half(one, schema)
    n, total = sum_of(COUNT), sum_of(_centred(one))
    if call.function == "mean":
        return float(middle) + total / n
    if others and others != [one]:
        product = sum_of(" * ".join(map(_centred, sorted((one, *others)))))
        return (product - total * sum_of(_centred(*others)) / n) / (n - 1)
    # The square of a column of two values is the largest one: it lacks nothing.
    is_number = any(column.name == one and isinstance(column, Real) for column in schema.columns)
    deficit = sum_of(f"deficit({quoted(one)})") if is_number else 0.0
    return (n * float(half) ** 2 - deficit - total**2 / n) / (n - 1)


def columns_of(call: Call) -> tuple[str, ...]:
    """Return the names of the columns of a moment."""
    wanted = MOMENTS[call.function]
    check_arguments(call.function, call.arguments, wanted, wanted.count(",") + 1)
    named = tuple(each.name for each in call.arguments if isinstance(each, Name))
    if len(named) < len(call.arguments):
        raise QueryError(
            expected=f"{call.function}({wanted})",
            got="another expression",
            hint="give the mean of an expression as a sum of your own, divided by n.",
        )
    return named


def _centred(name: str) -> str:
    return f"centred({quoted(name)})"
