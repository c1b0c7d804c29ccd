"""Columns of a table, and whose records they are: each with what is public about it."""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from dpcausal.errors import SchemaError

Value = str | int | float | bool
"""A value that a person can declare and a table can hold."""


def check_name(name: object) -> None:
    """Raise unless this can be the name of a column."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise SchemaError(
            expected="a column name",
            got=repr(name),
            hint="give the name of a column as a non-empty string without NUL characters.",
        )


def is_number(value: object) -> bool:
    """Whether a value is a finite number, of Python or of numpy; True and False are none."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def plain(value: Value) -> Value:
    """A value of numpy as one of Python, so that it can be written down."""
    return value.item() if hasattr(value, "item") else value


def check_values(name: str, values: Sequence[Value]) -> None:
    """Raise unless these can be the values of a column."""
    texts = all(isinstance(value, str) and "\0" not in value for value in values)
    if not texts and not all(isinstance(value, bool) or is_number(value) for value in values):
        raise SchemaError(
            expected=f"values of column {name!r} that are all strings or all finite numbers",
            got=repr(values),
            hint="declare each value as it stands in the table; strings must not hold NUL characters.",
        )
    if len(set(values)) != len(values) or len(values) < 2:
        raise SchemaError(
            expected=f"two or more different values for column {name!r}",
            got=repr(values),
            hint="list every value once.",
        )


@dataclass(frozen=True)
class Real:
    """A number between two public bounds.

    Values outside are moved to the nearer bound, silently. A value that is absent, not a number, or text that does not
    read as a number counts as `missing`, which is the midpoint of the bounds unless declared.

    Attributes:
        name: The column in the table.
        low: A public lower bound: from a codebook or the literature, never from the table.
        high: A public upper bound.
        missing: What an absent value counts as.

    Example:
        >>> Real("age", 16, 60).missing_value
        38.0
    """

    name: str
    low: float
    high: float
    missing: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if not (is_number(self.low) and is_number(self.high) and _can_be_divided(float(self.low), float(self.high))):
            raise SchemaError(
                expected=f"numbers low < high, within 1e70 of 0 and apart, as bounds of column {self.name!r}",
                got=f"low={self.low!r}, high={self.high!r}",
                hint="write numbers without quotation marks."
                if isinstance(self.low, str) or isinstance(self.high, str)
                else "take the bounds from a codebook or the literature; they must not come from the table.",
            )
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if self.missing is not None and not (is_number(self.missing) and self.low <= self.missing <= self.high):
            raise SchemaError(
                expected=f"a missing value of column {self.name!r} within {self.low} and {self.high}",
                got=repr(self.missing),
                hint="an absent value must count as something in range, or leave it out for the midpoint.",
            )

    @property
    def missing_value(self) -> float:
        """What an absent value counts as."""
        return self.low + (self.high - self.low) / 2 if self.missing is None else float(self.missing)

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        return {"name": self.name, "low": self.low, "high": self.high, "missing": self.missing_value}


def _can_be_divided(low: float, high: float) -> bool:
    """Whether the grid between two bounds, and squares of its steps, are far from where floats end."""
    return -1e70 <= low < low + (high - low) / 2 < high <= 1e70 and high - low >= 1e-100


@dataclass(frozen=True)
class Binary:
    """One of two public values: a yes-or-no outcome or covariate.

    Any other value counts as `missing`, which is the first of the two unless declared.

    Attributes:
        name: The column in the table.
        values: How the two values are written in the table.
        labels: What to call them in results; the values themselves if left out.
        missing: What an absent or unknown value counts as.

    Example:
        >>> Binary("died", values=("no", "yes")).missing_value
        'no'
    """

    name: str
    values: tuple[Value, Value] = (0, 1)
    labels: tuple[str, str] | None = None
    missing: Value | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "values", tuple(map(plain, self.values)))
        check_values(self.name, self.values)
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
        if len(self.values) != 2 or (self.labels is not None and len(set(self.labels)) != 2):
            raise SchemaError(
                expected=f"two values, and two different labels if any, for column {self.name!r}",
                got=f"values={self.values!r}, labels={self.labels!r}",
                hint="any other value counts as the first of the two; a covariate with more values is a Category.",
            )
        _check_missing(self.name, self.missing, self.values)

    @property
    def missing_value(self) -> Value:
        """What an absent or unknown value counts as."""
        return self.values[0] if self.missing is None else self.missing

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        return _meaning_of_values(self)

    @property
    def labels_or_values(self) -> tuple[str, str]:
        """What to call the two values in results."""
        return self.labels or (f"{self.name}={self.values[0]}", f"{self.name}={self.values[1]}")


@dataclass(frozen=True)
class Category:
    """One of a public list of values.

    Any other value counts as `missing`, which is the last of the list unless declared.

    Attributes:
        name: The column in the table.
        values: Every value that is told apart, as written in the table.
        missing: What an absent or unknown value counts as.

    Example:
        >>> Category("race", ["black", "hispanic", "other"]).missing_value
        'other'
    """

    name: str
    values: Sequence[Value]
    missing: Value | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.values, str):
            raise SchemaError(
                expected=f"a list of values for column {self.name!r}",
                got=repr(self.values),
                hint='write the values as a list, for instance ["low", "high"].',
            )
        object.__setattr__(self, "values", tuple(map(plain, self.values)))
        check_values(self.name, self.values)
        _check_missing(self.name, self.missing, self.values)

    @property
    def missing_value(self) -> Value:
        """What an absent or unknown value counts as."""
        return self.values[-1] if self.missing is None else self.missing

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        return _meaning_of_values(self)


Column = Real | Binary | Category
"""A covariate or an outcome."""


def meaning_of(value: Value) -> str | float:
    """Return what a declared value stands for, however it was written: 1, 1.0 and True are one number."""
    return value if isinstance(value, str) else float(value)


def _meaning_of_values(column: Binary | Category) -> dict[str, Any]:
    values, missing = column.values, column.missing_value
    plain = list(map(meaning_of, values))
    return {"name": column.name, "values": plain, "missing": plain[list(values).index(missing)]}


def _check_missing(name: str, missing: Value | None, values: Sequence[Value]) -> None:
    if missing is not None and missing not in values:
        raise SchemaError(
            expected=f"a missing value of column {name!r} that is one of {values!r}",
            got=repr(missing),
            hint="an absent value must count as one of the declared values.",
        )


@dataclass(frozen=True)
class Unit:
    """Whose privacy is protected, when a table holds several records of one person.

    Exactly one record of each unit is used: the first or last by a column, ties broken by the declared columns' values,
    so that the choice does not depend on how the table happens to be stored.

    Attributes:
        name: The column that says which person a record belongs to.
        by: The column that orders one person's records, for instance a date.
        keep: Which of them is used.
    """

    name: str
    by: str
    keep: Literal["first", "last"] = "first"

    def __post_init__(self) -> None:
        check_name(self.name)
        check_name(self.by)
        if self.keep not in ("first", "last"):
            raise SchemaError(
                expected='keep="first" or keep="last"',
                got=repr(self.keep),
                hint="choose which record of a unit counts.",
            )


Declared = TypeVar("Declared")

_KINDS: dict[str, Callable[..., Column]] = {"real": Real, "binary": Binary, "category": Category}


def column_to_dict(column: Column) -> dict[str, Any]:
    """A column's declaration as plain values, its kind first."""
    kind = next(kind for kind, made in _KINDS.items() if made is type(column))
    return {"kind": kind, **declared_dict(column)}


def declared_dict(declared: Any) -> dict[str, Any]:  # noqa: ANN401 (any declaration)
    """What was declared, as plain values; what was left out stays out."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(declared).items()
        if value is not None
    }


def meant(name: object, names: Iterable[str]) -> str:
    """Which of some public names a person may have meant, as a question for a hint; empty where none is near.

    Example:
        >>> meant("DoublyRobust", ["difference_in_means", "doubly_robust"])
        "did you mean 'doubly_robust'? "
    """
    known = {str(each).casefold(): str(each) for each in names}
    near = get_close_matches(str(name).casefold(), known, n=1)
    return f"did you mean {known[near[0]]!r}? " if near else ""


def check_keys(what: str, document: object, needed: tuple[str, ...], optional: tuple[str, ...]) -> None:
    """Raise unless a document holds every needed name and no unknown one."""
    keys = set(document) if isinstance(document, Mapping) else set()
    if not set(needed) <= keys <= {*needed, *optional}:
        strange = sorted(map(str, keys - {*needed, *optional}))
        near = meant(strange[0], {*needed, *optional} - keys) if strange else ""
        raise SchemaError(
            expected=f"{what} with {', '.join(needed)} and at most {', '.join(optional)}",
            got=", ".join(sorted(map(str, keys))) or repr(document),
            hint=f"{near}correct the names in the document.",
        )


def build(what: str, made: Callable[..., Declared], document: object) -> Declared:
    """A declaration from a document that must hold its parts and nothing else."""
    parts = fields(made)  # type: ignore[arg-type]
    needed = tuple(part.name for part in parts if part.default is MISSING)
    check_keys(what, document, needed, tuple(part.name for part in parts if part.name not in needed))
    return made(**document)  # type: ignore[arg-type]


def column_from_dict(what: str, document: object) -> Column:
    """The column that `column_to_dict` wrote."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or kind not in _KINDS:
        raise SchemaError(
            expected=f"a {what} of kind {', '.join(_KINDS)}",
            got=repr(kind),
            hint='write for instance kind = "real".',
        )
    return build(what, _KINDS[kind], {key: value for key, value in document.items() if key != "kind"})
