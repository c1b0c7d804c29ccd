"""A schema to fill in, from the names and types of a frame's columns."""

import json
from collections.abc import Mapping

import narwhals as nw

from dpcausal.errors import TableError

_REAL = "Real({name}, low=..., high=...),"

_LINES: dict[str, str] = {
    "integer": f"{_REAL}  # whole numbers, or codes",
    "number": _REAL,
    "boolean": "Binary({name}, values=(False, True)),",
    "text": "Category({name}, values=[...]),  # text",
    "date": "Real({name}, low=..., high=..., since=...),  # dates, as days since a day",
    "other": "# {name} is of a type that cannot be used",
}
"""How to declare a covariate of each family of types."""

_DRAFT = """\
# From names and types: no value was read. Replace every "..." and "<column>" by what a codebook, a protocol or the
# literature says, never by what the table shows. Keep among the covariates only what was known before treatment.
# Text or codes with many values: Category("x", values=[...]); with two: Binary("x", values=(..., ...)).
# Text that holds numbers: Real("x", low=..., high=...); that holds dates: since="2020-01-31" too.
from dpcausal import Binary, Category, Real, Schema, Treatment, Unit

schema = Schema(
    treatment=Treatment("<column>", arms=(..., ...)),  # every arm as the table writes it, the reference first
    outcome=Real("<column>", low=..., high=...),  # yes or no: Binary("<column>", values=(..., ...))
    covariates=[
{covariates}
    ],
    # unit=Unit("<column>", by="<column>"),  # if people have several records: whose they are, and their order
)"""


def draft_of(frame: object) -> str:
    """Return the declaration to fill in, as Python."""
    return _DRAFT.format(
        covariates="\n".join(
            f"        {_LINES[family].format(name=json.dumps(name))}" for name, family in _families(frame).items()
        )
    )


def _families(frame: object) -> Mapping[str, str]:
    """Return the family of each column's type. No record of the frame is looked at."""
    try:
        empty = nw.from_native(frame).head(0)  # type: ignore[call-overload]
    except (TypeError, nw.exceptions.DuplicateError):
        raise TableError(
            expected="a pandas, polars or pyarrow table with each column once",
            got=type(frame).__name__,
            hint="for a file, write a study file to fill in with: dpcausal init FILE.",
        ) from None
    return {name: _family(kind) for name, kind in empty.collect_schema().items()}


def _family(kind: nw.dtypes.DType) -> str:
    if kind.is_integer():
        return "integer"
    if kind.is_numeric():
        return "number"
    if isinstance(kind, nw.Date | nw.Datetime):
        return "date"
    if isinstance(kind, nw.Boolean):
        return "boolean"
    return "text" if isinstance(kind, nw.String | nw.Categorical | nw.Enum | nw.Object) else "other"
