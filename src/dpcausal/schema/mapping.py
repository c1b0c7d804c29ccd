"""Local names and codes: how a table calls what a schema declares.

A mapping turns a schema into that of a table whose columns and codes are called otherwise, place by place. So a cell
becomes the same integer as in a table with the schema's own words, and every bound and proof holds as it does there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dpcausal.errors import SchemaError
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Column, Indicator, check_name, check_values
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import Treatment
from dpcausal.utils.hash_chain import digest_of
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.validation import build

if TYPE_CHECKING:
    from dpcausal.schema.schema import Schema

AnyColumn = TypeVar("AnyColumn", bound=Column | Treatment)


@dataclass(frozen=True, kw_only=True)
class LocalColumn:
    """A column of a table, for one that a schema declares under another name, or with other values.

    Attributes:
        column: Its name in the table.
        codes: How each declared value is written there: all as numbers, or all as texts, of which a value may have
            several. Empty where values are written as declared. A cell with any other code is missing.

    Example:
        >>> LocalColumn(column="gender_concept_id", codes={"female": 8532, "male": 8507}).column
        'gender_concept_id'
    """

    column: str
    codes: Mapping[str, Value | Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.column)
        if not isinstance(self.codes, Mapping):
            raise SchemaError(
                problem=f"codes of the column {self.column!r} must say how each value is written, not {self.codes!r}",
                hint="for instance codes = { female = 8532, male = 8507 }.",
            )
        written: list[Any] = [
            code for each in self.codes.values() for code in (each if isinstance(each, list | tuple) else [each])
        ]
        several = any(isinstance(each, list | tuple) for each in self.codes.values())
        if any(each == [] for each in self.codes.values()) or (
            several and not all(isinstance(c, str) for c in written)
        ):
            raise SchemaError(
                problem=f"Of the column {self.column!r}, several codes for one value must be texts",
                hint="for several numbers, make a view of the table with one number for each value.",
            )
        if written:
            check_values(self.column, written)
        check_plain_text(f"codes of column {self.column!r}", self.codes)

    def seen_as(self, column: AnyColumn) -> AnyColumn:
        """Return a declared column as it stands in the table."""
        if not self.codes:
            return replace(column, name=self.column)
        if isinstance(column, Real):
            raise SchemaError(
                problem=f"The column {column.name!r} is a number, and the mapping has codes for it",
                hint="declare it as a Binary or a Category, or take the codes out of the mapping.",
            )
        absent = [str(value) for value in column.values if _written(value) not in self.codes]
        if absent:
            raise SchemaError(
                problem=f"The mapping has no code for these values of {column.name!r}: {', '.join(absent)}",
                hint="add their codes to the mapping, or declare only values that it has.",
            )
        codes = [_texts(self.codes[_written(value)]) for value in column.values]
        places: dict[Value, Value] = {value: each[0] for value, each in zip(column.values, codes, strict=True)}
        others = {each[0]: each[1:] for each in codes if len(each) > 1}
        written: dict[str, Any] = {"name": self.column, "aliases": others, "strict": True}
        values = tuple(places.values())
        if isinstance(column, Treatment):
            roles = {role: getattr(column, role) for role in ("reference", "compare", "undeclared")}
            arms: dict[str, Any] = {role: arm if arm is None else places[arm] for role, arm in roles.items()}
            return replace(column, arms=values, **arms, **written)
        written |= {"values": values, "missing": None if column.missing is None else places[column.missing]}
        return replace(column, **written)

    def __str__(self) -> str:
        codes = ", ".join(f"{' or '.join(map(str, _texts(each)))} as {value}" for value, each in self.codes.items())
        return f"{self.column}{f': {codes}; anything else is missing' if codes else ''}"


@dataclass(frozen=True)
class ColumnMapping:
    """The columns of a table that a schema calls otherwise.

    Attributes:
        columns: The local column of each declared one that is called or coded otherwise.

    Example:
        >>> from dpcausal import Binary, Real, Schema, Treatment
        >>> sex = LocalColumn(column="gender_concept_id", codes={"female": 8532, "male": 8507})
        >>> schema = Schema(Treatment("arm"), Real("score", 0, 10), [Binary("sex", ("female", "male"))])
        >>> ColumnMapping({"sex": sex}).local(schema).covariates[0].values
        (8532, 8507)
    """

    columns: Mapping[str, LocalColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [each.column for each in self.columns.values()]
        if len({name.casefold() for name in names}) != len(names):
            raise SchemaError(
                problem="The mapping reads two declared columns from one column of the table",
                hint="one column has one role: remove one of the two.",
            )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read a mapping from plain values.

        Raises:
            SchemaError: If it is none.
        """
        return cls({name: build(f"mapping of {name}", LocalColumn, each) for name, each in document.items()})

    @property
    def digest(self) -> str:
        """What people approve of it; empty for a table that is read as declared."""
        plain = {name: {"column": each.column, "codes": dict(each.codes)} for name, each in self.columns.items()}
        return digest_of(plain) if plain else ""

    def local(self, schema: "Schema") -> "Schema":
        """Return the schema of the table itself: the same columns in the same order, by their local names and codes.

        Raises:
            SchemaError: If a declared value has no code, or two columns are one. Only declarations decide.
        """
        if not self.columns:
            return schema
        unit = schema.unit and replace(
            schema.unit,
            name=self._name(schema.unit.name),
            by=self._name(schema.unit.by),
            sum=tuple(map(self._name, schema.unit.sum)),
            count=tuple(map(self._name, schema.unit.count)),
        )
        return replace(
            schema,
            treatment=self._column(schema.treatment),
            outcome=self._column(schema.outcome),
            covariates=tuple(self._column(each) for each in schema.covariates if not isinstance(each, Indicator)),
            unit=unit,
            entry=schema.entry and self._name(schema.entry),
            required=tuple(map(self._name, schema.required)),
        )

    def lines(self, schema: "Schema") -> tuple[str, ...]:
        """Return, in words, where columns of a schema are read from."""
        read = (name for name in dict.fromkeys(_read(schema)) if name in self.columns)
        return tuple(f"{name} from {self.columns[name]}" for name in read)

    def _name(self, name: str) -> str:
        return self.columns[name].column if name in self.columns else name

    def _column(self, column: AnyColumn) -> AnyColumn:
        if isinstance(column, Indicator):
            return replace(column, of=self._column(column.of))
        return self.columns[column.name].seen_as(column) if column.name in self.columns else column


def _read(schema: "Schema") -> list[str]:
    unit = schema.unit
    return [*(each.name for each in schema.columns), *((unit.name, unit.by) if unit else ())]


def _written(value: Value) -> str:
    """Return a declared value as the key of a mapping, exactly."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(float(value))


def _texts(code: object) -> list[Any]:
    """Return the codes of a value, of which there may be several texts."""
    return [*code] if isinstance(code, list | tuple) else [code]
