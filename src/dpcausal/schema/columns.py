"""Columns of a table, and whose records they are: each with what is public about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Literal

from dpcausal.errors import SchemaError
from dpcausal.schema.cells import Aliases, Value, checked_aliases, checked_formats, spellings
from dpcausal.schema.real import Real, check_name, titled
from dpcausal.schema.scale import Scale
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.text import short_repr
from dpcausal.utils.validation import build, is_number

__all__ = [
    "Binary",
    "Category",
    "Column",
    "Real",
    "Unit",
    "Value",
    "check_name",
    "check_values",
    "column_from_dict",
    "column_to_dict",
    "declared_dict",
    "indicator_of",
    "meaning_of",
    "plain",
    "rules_of",
    "spelled_out",
]


def plain(value: Value) -> Value:
    """Return a value of numpy as one of Python, so that it can be serialised."""
    return value.item() if hasattr(value, "item") else value


def check_values(name: str, values: Sequence[Value]) -> None:
    """Raise unless these can be the values of a column."""
    texts = all(isinstance(value, str) and "\0" not in value for value in values)
    if not texts and not all(isinstance(value, bool) or is_number(value) for value in values):
        raise SchemaError(
            problem=f"The values of the column {name!r} must all be strings or all be finite numbers, not {values!r}",
            hint="declare each value as it stands in the table; strings must not hold NUL characters.",
        )
    check_plain_text(f"values of column {name!r}", [value for value in values if isinstance(value, str)])
    if len(set(values)) != len(values) or len(values) < 2:
        raise SchemaError(
            problem=f"The column {name!r} must have two or more different values, not {values!r}",
            hint="list every value once.",
        )


@dataclass(frozen=True)
class Binary(metaclass=Constructor):
    """One of two public values: a yes-or-no outcome or covariate.

    Any other value is missing: a unit without an outcome is outside the comparison, and a missing covariate counts as
    the first of the two, unless `missing` is declared. In a column of text, capitals and surrounding blanks are
    ignored, and yes, no, true, false, y, n, t and f stand for 1 and 0 where these are the values.

    Attributes:
        name: The column in the table.
        values: How the two values are written in the table.
        labels: What to call them in results; the values themselves if left out.
        missing: What an absent or unknown value counts as. Of an outcome, every unit without one gets this value, which
            is rarely true: left out, such units are outside the comparison.
        aliases: Other spellings in a column of text, by value: `{"yes": ["y", "ja"]}`.
        strict: Whether texts that differ in capitals or blanks are different values.
        label: What sentences and axes call the column, such as "death"; its name if left out.
        indicator: For a covariate: whether to declare a yes-or-no covariate too, "<name> is missing".

    Example:
        >>> Binary("died", values=("no", "yes")).missing_value
        'no'
    """

    _example = 'Binary("died", values=("no", "yes"))'

    name: str
    values: tuple[Value, Value] = (0, 1)
    labels: tuple[str, str] | None = None
    missing: Value | None = None
    _: KW_ONLY
    aliases: Aliases = ()
    strict: bool = False
    label: str | None = None
    indicator: bool = False

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_name(self.name)
        _ = self.title  # raises where a text cannot be printed
        object.__setattr__(self, "values", tuple(map(plain, self.values)))
        check_values(self.name, self.values)
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
            check_plain_text(f"labels of column {self.name!r}", self.labels)
        if len(self.values) != 2 or (self.labels is not None and len(set(self.labels)) != 2):
            raise SchemaError(
                problem=f"The column {self.name!r} must have two values, and two different labels if any, not "
                f"values={self.values!r} and labels={self.labels!r}",
                hint="any other value is missing; a covariate with more values is a Category.",
            )
        _check_missing(self.name, self.missing, self.values)
        object.__setattr__(self, "aliases", checked_aliases(self.name, self.values, self.aliases))
        _ = self.spellings  # raises where one stands for two values

    @property
    def title(self) -> str:
        """What sentences and axes call the column."""
        return titled(self.name, self.label)

    @property
    def missing_value(self) -> Value:
        """What an absent or unknown value counts as."""
        return self.values[0] if self.missing is None else self.missing

    @property
    def spellings(self) -> tuple[tuple[bytes, ...], ...]:
        """The texts that are read as each value, folded unless `strict`."""
        return spellings(self.name, self.values, self.aliases, strict=self.strict, words=True)

    @property
    def rules(self) -> str:
        """How cells of text are read, in words; empty where nothing is declared about it."""
        return rules_of(self.aliases, strict=self.strict)

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        return _meaning_of_values(self)

    @property
    def labels_or_values(self) -> tuple[str, str]:
        """What to call the two values in results."""
        return self.labels or (f"{self.name}={self.values[0]}", f"{self.name}={self.values[1]}")


_WORDS_FOR_MISSING = (
    *("unknown", "not known", "missing", "not recorded", "not stated", "not available", "not reported"),
    *("unspecified", "no answer", "na", "n/a", "nan", "null"),
)


@dataclass(frozen=True)
class Category(metaclass=Constructor):
    """One of a public list of values.

    Any other value counts as `missing`, which is the last of the list unless declared. So absent values have a level of
    their own where one is declared for them: by `missing`, or at the end of the list by a word such as "unknown" or
    "not recorded". In a column of text, capitals and surrounding blanks are ignored.

    Attributes:
        name: The column in the table.
        values: Every distinct value, as written in the table.
        missing: What an absent or unknown value counts as.
        aliases: Other spellings in a column of text, by value: `{"black": ["b", "african american"]}`.
        strict: Whether texts that differ in capitals or blanks are different values.
        label: What sentences and axes call the column, such as "death"; its name if left out.
        indicator: For a covariate: whether to declare a yes-or-no covariate too, "<name> is missing".

    Example:
        >>> Category("race", ["black", "hispanic", "not recorded"]).missing_value
        'not recorded'
    """

    _example = 'Category("ward", values=["a", "b", "c"])'

    name: str
    values: Sequence[Value]
    missing: Value | None = None
    _: KW_ONLY
    aliases: Aliases = ()
    strict: bool = False
    label: str | None = None
    indicator: bool = False

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_name(self.name)
        _ = self.title  # raises where a text cannot be printed
        if isinstance(self.values, str):
            raise SchemaError(
                problem=f"The values of the column {self.name!r} must be a list, not {self.values!r}",
                hint='write the values as a list, for instance ["low", "high"].',
            )
        object.__setattr__(self, "values", tuple(map(plain, self.values)))
        check_values(self.name, self.values)
        _check_missing(self.name, self.missing, self.values)
        object.__setattr__(self, "aliases", checked_aliases(self.name, self.values, self.aliases))
        _ = self.spellings  # raises where one stands for two values

    @property
    def title(self) -> str:
        """What sentences and axes call the column."""
        return titled(self.name, self.label)

    @property
    def missing_value(self) -> Value:
        """What an absent or unknown value counts as."""
        return self.values[-1] if self.missing is None else self.missing

    @property
    def lists_missing(self) -> bool:
        """Whether it is declared what a value that is absent means: by `missing`, or by what its own level is called.

        Example:
            >>> [Category("smoking", ["never", "ever", last]).lists_missing for last in ("Not recorded", "often")]
            [True, False]
        """
        return self.missing is not None or str(self.missing_value).strip().lower() in _WORDS_FOR_MISSING

    @property
    def spellings(self) -> tuple[tuple[bytes, ...], ...]:
        """The texts that are read as each value, folded unless `strict`."""
        return spellings(self.name, self.values, self.aliases, strict=self.strict)

    @property
    def rules(self) -> str:
        """How cells of text are read, in words; empty where nothing is declared about it."""
        return rules_of(self.aliases, strict=self.strict)

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        return _meaning_of_values(self)


@dataclass(frozen=True)
class Indicator(Binary):
    """Whether a value is missing: 1 where a cell is absent or does not read as declared, otherwise 0.

    A schema makes one for each covariate that is declared with `indicator=True`, and of the outcome where a query asks
    how many outcomes are missing.

    Attributes:
        of: The column whose value may be missing.
    """

    of: Real | Binary | Category = field(kw_only=True)

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        return {"name": self.name, "missing": self.of.meaning}


Column = Real | Binary | Category
"""A covariate or an outcome."""


def meaning_of(value: Value) -> str | float:
    """Return what a declared value stands for, however it was written: 1, 1.0 and True are one number."""
    return value if isinstance(value, str) else float(value)


def indicator_of(column: Column) -> Indicator:
    """Return the covariate that indicates whether another is missing.

    Example:
        >>> indicator_of(Real("age", 16, 60)).name
        'age is missing'
    """
    held = replace(column, scale=None) if isinstance(column, Real) else column
    return Indicator(f"{column.name} is missing", of=held)


def _meaning_of_values(column: Binary | Category) -> dict[str, Any]:
    values, missing = column.values, column.missing_value
    plain = list(map(meaning_of, values))
    return {
        "name": column.name,
        "values": plain,
        "missing": plain[list(values).index(missing)],
        "spellings": spelled_out(column.spellings),
        "strict": column.strict,
    }


def spelled_out(spellings: Sequence[Sequence[bytes]]) -> list[list[str]]:
    """Return spellings as texts that can be written down."""
    return [[text.decode("utf-8", "surrogatepass") for text in texts] for texts in spellings]


def rules_of(aliases: Aliases, *, strict: bool) -> str:
    """How cells of text are read, in words; empty where nothing is declared about it."""
    others = [f"{' or '.join(texts)} for {value}" for value, texts in dict(aliases).items()]
    return ", ".join(others + ["capitals and blanks tell texts apart"] * strict)


def _check_missing(name: str, missing: Value | None, values: Sequence[Value]) -> None:
    if missing is not None and missing not in values:
        raise SchemaError(
            problem=f"missing of the column {name!r} must be one of its values, {values!r}, not {missing!r}",
            hint="an absent value must count as one of the declared values.",
        )


@dataclass(frozen=True)
class Unit(metaclass=Constructor):
    """Whose privacy is protected, when a table holds several records of one person.

    One record of each unit is used: the first or last by a column, ties broken by the declared columns' values, so that
    the choice does not depend on how the table happens to be stored. Columns in `sum` and `count` are the exception:
    they are added up over all records of the unit, and the total is moved to the bounds of the column.

    Attributes:
        name: The column that says which person a record belongs to.
        by: The column that orders one person's records, for instance a date. Text is ordered by the numbers that it
            holds, and otherwise letter by letter, which is right for dates that are written year first.
        keep: Which of them is used.
        sum: Numbers to add up, for instance revenue: `low` and `high` bound a unit's total, and a cell that is missing
            or no number adds nothing. Of a yes-or-no column the total is whether any of the unit's records says yes.
        count: Columns, declared as `Real`, of which to count the records where the cell is not empty.
        date_format: How dates in a column of text are written by which records are ordered, as in `Real`. A text that
            is no such date comes last.

    Example:
        >>> Unit("user", by="time", sum=["revenue"]).added
        ('revenue',)
    """

    _example = 'Unit("patient", by="visit", keep="first")'

    name: str
    by: str
    keep: Literal["first", "last"] = "first"
    _: KW_ONLY
    sum: Sequence[str] = ()
    count: Sequence[str] = ()
    date_format: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_name(self.by)
        if self.date_format is not None:
            formats = checked_formats(self.by, self.date_format)
            object.__setattr__(self, "date_format", formats[0] if len(formats) == 1 else formats)
        for rule in ("sum", "count"):
            names = getattr(self, rule)
            if isinstance(names, str) or not all(isinstance(name, str) for name in names):
                raise SchemaError(
                    problem=f"{rule} must be a list of column names, not {names!r}", hint=f'write {rule}=["revenue"].'
                )
            object.__setattr__(self, rule, tuple(sorted(names)))
        if len(set(self.added)) != len(self.added):
            raise SchemaError(
                expected="each column once in sum or in count",
                got=repr(self.added),
                hint="remove the one that stands twice.",
            )
        if self.keep not in ("first", "last"):
            raise SchemaError(
                problem=f'keep must be "first" or "last", not {self.keep!r}',
                hint="choose which record of a unit counts.",
            )

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that are added up over all records of a unit."""
        return (*self.sum, *self.count)

    @property
    def formats(self) -> tuple[str, ...]:
        """How dates are written by which records are ordered; empty where nothing is declared about it."""
        return () if self.date_format is None else checked_formats(self.by, self.date_format)

    @property
    def identity(self) -> "Unit":
        """Whose records these are and which of them is used, whatever else a study adds up over them."""
        return replace(self, sum=(), count=())

    def __str__(self) -> str:
        rules = (("added up: ", self.sum), ("counted: ", self.count))
        added = "".join(f"; {rule}{', '.join(names)}" for rule, names in rules if names)
        dates = f", dates written {' or '.join(self.formats)}" if self.formats else ""
        return f"{self.name} ({self.keep} by {self.by}{dates}{added})"


_KINDS: dict[str, Callable[..., Column]] = {"real": Real, "binary": Binary, "category": Category}


def column_to_dict(column: Column) -> dict[str, Any]:
    """Return a column's declaration as plain values, its kind first."""
    kind = next(kind for kind, made in _KINDS.items() if made is type(column))
    return {"kind": kind, **declared_dict(column)}


def declared_dict(declared: Any) -> dict[str, Any]:  # noqa: ANN401 (any declaration)
    """Return a declaration as plain values, without what is at its default."""
    values = ((part, getattr(declared, part.name)) for part in fields(declared))
    return {
        part.name: _plain_part(part.name, value)
        for part, value in values
        if value is not None and not (part.kw_only and value == part.default)
    }


def _plain_part(name: str, value: Any) -> object:  # noqa: ANN401 (of any declaration)
    if name == "aliases":
        return {key if isinstance(key, str) else str(key).lower(): list(texts) for key, texts in value}
    if isinstance(value, Scale):
        return [list(knot) for knot in value.knots]
    return list(value) if isinstance(value, tuple) else value


def column_from_dict(what: str, document: object) -> Column:
    """Return the column that `column_to_dict` wrote."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or kind not in _KINDS:
        raise SchemaError(
            expected=f"kind of {what} out of {', '.join(_KINDS)}",
            got=repr(kind),
            hint='write for instance kind = "real".',
        )
    return build(what, _KINDS[kind], {key: value for key, value in document.items() if key != "kind"})
