"""What is public about a table: declared by a person, never inferred from its records."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w

from dpcausal.errors import SchemaError
from dpcausal.schema.checks import check_added, check_entry, check_outcome
from dpcausal.schema.columns import (
    Binary,
    Category,
    Column,
    Indicator,
    Unit,
    column_from_dict,
    column_to_dict,
    declared_dict,
    indicator_of,
)
from dpcausal.schema.data_handling import covariate_handling, data_handling
from dpcausal.schema.layer import LayerClaim
from dpcausal.schema.real import Real
from dpcausal.schema.scale import Scale
from dpcausal.schema.treatment import TableColumn, Treatment, table_column
from dpcausal.utils.documents import text_of, toml_of
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.text import html_table, short_repr, table_rows
from dpcausal.utils.validation import build, check_keys

Protects = Literal["record", "record_within_arm", "outcome"]
"""What one person may change between two neighbouring tables, from most to least; n is public in all three.

`record`: everything about one unit. `record_within_arm`: everything but the arm, which a trial's design fixed and
published. `outcome`: the outcome only; covariates and arm are public.
"""

PROTECTS: tuple[Protects, ...] = ("record", "record_within_arm", "outcome")
"""Strongest first."""


def _hint(role: str, column: object) -> str:
    """Return what to write in place of what is no declaration of a column, with its name where that is known."""
    name = column if isinstance(column, str) else getattr(column, "name", "")
    if role == "outcome" and isinstance(column, Sequence) and not isinstance(column, str):
        return "a schema has one outcome; for several, make a schema for each, or see estimate_family and Experiment."
    if role == "outcome" and isinstance(column, Category):
        return (
            f"an outcome is a number, Real({name!r}, low=0, high=100), or has two values, Binary({name!r}, values=…)."
        )
    if role == "treatment" and isinstance(column, Real | Binary | Category):
        return "write Schema(treatment=Treatment(…), outcome=…, covariates=[…])."
    if role == "treatment":
        return f"declare every arm of the table: Treatment({name or 'arm'!r}, arms=('placebo', 'drug'))."
    return f"declare each column with its bounds or values, for instance Real({name or role!r}, low=0, high=100)."


@dataclass(frozen=True)
class Schema(metaclass=Constructor):
    """What is public about a table.

    Attributes:
        treatment: Every arm of the table, and which two are compared.
        outcome: The outcome, with public bounds.
        covariates: What else is known of each unit.
        unit: How several records of one unit become one; left out when each record is its own unit.
        protects: What one unit may change between neighbouring tables (see `Protects`). Declared once for a data set:
            its ledger remembers it.
        entry: The column that says when a unit entered a growing table, such as the week of enrolment. A unit's value
            must be the same in all of its records and in every version of the table: only by this column may a schedule
            of looks be paid for once. Declared once for a data set: its ledger remembers it. Left out where there are
            no schedules.
        required: Covariates without which a unit is outside the comparison, as one without an outcome is unless the
            outcome declares `missing`.
        claim: Leave it out: a vault takes from its ledger which buckets of a layer its units are in.

    Example:
        >>> schema = Schema(treatment=Treatment("arm"), outcome=Real("score", 0, 100), covariates=[Real("age", 16, 60)])
        >>> Schema.from_toml(schema.to_toml()) == schema
        True
    """

    _example = "Schema(treatment=Treatment(…), outcome=Real(…), covariates=[…])"

    treatment: Treatment
    outcome: Real | Binary
    covariates: Sequence[Column] = ()
    unit: Unit | None = None
    protects: Protects = "record"
    entry: str | None = None
    required: Sequence[str] = ()
    claim: LayerClaim | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not isinstance(self.covariates, Sequence):
            raise SchemaError(
                problem=f"covariates must be a list, not {self.covariates!r}",
                hint="put the columns into a list: [...].",
            )
        object.__setattr__(self, "covariates", tuple(self.covariates))
        kinds = (
            (self.treatment, Treatment, "treatment", "a Treatment"),
            (self.outcome, Real | Binary, "outcome", "a Real or a Binary"),
            *(
                (column, Real | Binary | Category, "covariate", "a Real, Binary or Category")
                for column in self.covariates
            ),
        )
        for column, kind, role, wanted in kinds:
            if not isinstance(column, kind):
                raise SchemaError(
                    problem=f"The {role} must be {wanted}, not {column!r}",
                    hint=_hint(role, column),
                )
        self.treatment.check_compared()
        check_outcome(self.outcome)
        self._add_indicators()
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SchemaError(
                problem=f"The column {twice!r} is declared twice: a column has one role",
                hint="remove it from the covariates, or correct its name.",
            )
        if self.protects not in PROTECTS:
            raise SchemaError(
                problem=f"protects must be one of {', '.join(PROTECTS)}, not {self.protects!r}",
                hint='choose "record" unless the arms of a trial, or everything but the outcome, are public.',
            )
        self._check_unit([table_column(column) for column in self.columns])
        if self.entry is not None:
            check_entry(self.entry, self.columns, self.unit)
        self._check_required()

    def _add_indicators(self) -> None:
        """Declare whether a covariate is missing, right after it."""
        covariates: list[Column] = []
        for column in (column for column in self.covariates if not isinstance(column, Indicator)):
            covariates.append(column)
            if column.indicator:
                covariates.append(indicator_of(column))
        object.__setattr__(self, "covariates", tuple(covariates))

    def _check_required(self) -> None:
        """Raise unless covariates that are required can be missing: none declares what counts in place of a value."""
        names = (self.required,) if isinstance(self.required, str) else tuple(dict.fromkeys(self.required))
        object.__setattr__(self, "required", names)
        can_be = [column.name for column in self.covariates if self._can_be_missing(column)]
        wrong = [name for name in names if name not in can_be]
        if wrong:
            raise SchemaError(
                problem="required can name covariates without a declared missing value, which are "
                f"{', '.join(can_be) or 'none'}, and not {', '.join(map(repr, wrong))}",
                hint="name covariates of the schema, and leave missing out of a column that is required.",
            )

    def _can_be_missing(self, column: Column) -> bool:
        """Return whether a column can lack a value: nothing is declared in its place, and it is no total."""
        total = self.unit is not None and column.name in self.unit.added
        return column.missing is None and not total and not isinstance(column, Indicator)

    def _check_unit(self, names: list[str]) -> None:
        """Raise where a protected value decides whose a record is or, with public arms, which record counts."""
        if self.unit is not None and not isinstance(self.unit, Unit):
            name = self.unit if isinstance(self.unit, str) else "patient"
            raise SchemaError(
                problem=f"unit must be a Unit, not {self.unit!r}",
                hint=f'write unit=Unit({name!r}, by="visit", keep="first"), or leave it out where each unit has one '
                "record.",
            )
        if self.unit is not None:
            check_added(self.unit, (self.outcome, *self.covariates))
        if self.unit is not None and self.unit.name in names:
            raise SchemaError(
                problem=f"The column {self.unit.name!r} says whose a record is, and is also treatment, outcome or "
                "covariate",
                hint="name the column that says which person a record belongs to.",
            )
        outcome = {self.outcome.name}
        protected = {"record": set(), "record_within_arm": {*names} - {self.treatment.name}, "outcome": outcome}
        if self.unit is not None and self.unit.by in protected[self.protects]:
            raise SchemaError(
                problem=f"A unit's records are ordered by {self.unit.by!r}, which is not public, while their arms are",
                hint='order by a visit number or a date, or declare protects="record".',
            )

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """Treatment, outcome and covariates, in this order."""
        return (self.treatment, self.outcome, *self.covariates)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns whose values `protects` declares public, in alphabetical order."""
        if self.protects == "record":
            return ()
        columns = (self.treatment,) if self.protects == "record_within_arm" else (self.treatment, *self.covariates)
        return tuple(sorted({table_column(column) for column in columns} | ({self.unit.by} if self.unit else set())))

    @property
    def outcome_bounds(self) -> tuple[float, float]:
        """The public bounds of the outcome; 0 and 1 for a yes-or-no outcome."""
        if isinstance(self.outcome, Real):
            return self.outcome.low, self.outcome.high
        return 0.0, 1.0

    def narrowed(self, low: float, high: float) -> Self:
        """Return the schema with narrower public bounds of the outcome; outcomes beyond count as the bound.

        A declared value for a missing outcome counts as before, or as the bound where that is beyond.

        Example:
            >>> schema = Schema(treatment=Treatment("arm"), outcome=Real("cost", 0, 200_000))
            >>> schema.narrowed(0, 50_000).outcome_bounds
            (0.0, 50000.0)
        """
        outcome = self.outcome
        if not isinstance(outcome, Real) or not outcome.low <= low < high <= outcome.high:
            least, most = self.outcome_bounds
            raise SchemaError(
                expected=f"an outcome that is a number, and bounds within {least:g} and {most:g}",
                got=f"outcome {outcome.name!r} and bounds {low!r} to {high!r}",
                hint="bounds can be made narrower, not wider; a binary outcome has the narrowest already.",
            )
        return replace(self, outcome=outcome.narrowed(low, high))

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return the schema as models see it: covariates by their scores on public scales.

        A missing value of a covariate with a scale counts as the score 0, unless the column declares `missing`.

        Args:
            scales: The scale of each covariate that is to have one.
            indicators: Covariates for which to declare a yes-or-no covariate too, "<name> is missing".

        Example:
            >>> schema = Schema(Treatment("arm"), Binary("died"), covariates=[Real("creatinine", 0, 15)])
            >>> view = schema.scaled({"creatinine": Scale([(0.2, -1), (1, 0), (4, 1)])}, indicators=["creatinine"])
            >>> [column.name for column in view.covariates]
            ['creatinine', 'creatinine is missing']
            >>> view.covariates[0].missing_value
            1.0
        """
        seen = {column.name: column for column in self.covariates if not isinstance(column, Indicator)}
        numbers = [name for name, column in seen.items() if isinstance(column, Real)]
        wrong = [*(each for each in scales if each not in numbers), *(each for each in indicators if each not in seen)]
        wrong += [self.entry] if self.entry in {*scales, *indicators} else []
        if wrong:
            raise SchemaError(
                expected="scales of covariates that are numbers, indicators of covariates, and not the column of entry",
                got=", ".join(map(repr, wrong)),
                hint=f"name some of {', '.join(name for name in numbers if name != self.entry) or 'none'}.",
            )
        seen |= {name: replace(seen[name], scale=scale) for name, scale in scales.items()}  # type: ignore[arg-type]
        seen |= {name: replace(seen[name], indicator=True) for name in indicators}
        return replace(self, covariates=tuple(seen.get(column.name, column) for column in self.covariates))

    @property
    def scales(self) -> tuple[tuple[str, Scale], ...]:
        """The scales of covariates that have one, by name, as `scaled` gave them."""
        numbers = (column for column in self.covariates if isinstance(column, Real))
        return tuple((column.name, column.scale) for column in numbers if column.scale)

    @property
    def data_handling(self) -> tuple[str, ...]:
        """How the treatment and the outcome were read, in words: what every effect rests on."""
        return data_handling(self.treatment, self.outcome, self.unit, self.required_columns)

    def covariate_handling(self, names: Collection[str]) -> tuple[str, ...]:
        """Return as what missing cells of these covariates count, in words; nothing without covariates.

        Example:
            >>> ages = [Real("age", 20, 60, indicator=True), Binary("smoker")]
            >>> schema = Schema(treatment=Treatment("arm"), outcome=Binary("died"), covariates=ages)
            >>> schema.covariate_handling(["age", "age is missing", "smoker"])
            ('a covariate that is missing or not declared counted as: age 40 with an indicator, smoker 0',)
        """
        never = (*(self.unit.added if self.unit else ()), *self.required)
        return covariate_handling([each for each in self.covariates if each.name in names and each.name not in never])

    @property
    def required_columns(self) -> tuple[Column, ...]:
        """The columns without which a unit is outside the comparison: the outcome, unless it declares `missing`."""
        outcome = (self.outcome,) if self.outcome_may_be_missing else ()
        return *outcome, *(column for column in self.covariates if column.name in self.required)

    def requiring(self, names: Collection[str]) -> Self:
        """Return the schema with further required covariates: those of these that declare no value for a missing one.

        Example:
            >>> schema = Schema(treatment=Treatment("arm"), outcome=Binary("died"), covariates=[Real("before", 0, 10)])
            >>> [column.name for column in schema.requiring(["before"]).required_columns]
            ['died', 'before']
        """
        found = [column.name for column in self.covariates if column.name in names and self._can_be_missing(column)]
        return self if set(found) <= set(self.required) else replace(self, required=(*self.required, *found))

    @property
    def outcome_may_be_missing(self) -> bool:
        """Whether a unit can lack its outcome, and is then outside the comparison."""
        return self._can_be_missing(self.outcome)

    @property
    def units_may_be_outside(self) -> bool:
        """Whether a unit can be in neither of the two arms that are compared."""
        return self.treatment.units_may_be_outside or bool(self.required_columns)

    def units_may_leave(self, protects: Protects) -> bool:
        """Return whether one unit's change can take it out of the comparison: then the number compared is private."""
        return bool(self.required_columns) or (protects == "record" and self.treatment.units_may_be_outside)

    def bounded_as(self, protects: Protects) -> Protects:
        """Return what bounds must allow one unit to change, so that a guarantee holds that protects this.

        Where a unit can lack a required value, its change may take it out of the comparison. Bounds for a change of the
        whole record cover that: docs/proofs/comparison.md.
        """
        return "record" if self.required_columns else protects

    @property
    def sizes_are_public(self) -> bool:
        """Whether the number of units in each compared arm is public."""
        return self.bounded_as(self.protects) != "record"

    @staticmethod
    def draft(frame: object) -> None:
        """Print a schema to fill in, from the names and types of a frame's columns. No value is read.

        For a file, `dpcausal init FILE` writes a study file to fill in.

        Example:
            >>> import pyarrow as pa
            >>> Schema.draft(pa.table({"arm": ["drug"], "age": [54.0]}))
            # From names and types: no value was read. ...
            schema = Schema(
            ...
                    Category("arm", values=[...]),  # text
                    Real("age", low=..., high=...),
                ],
            ...
        """
        from dpcausal.schema.draft import draft_of  # noqa: PLC0415 (slow to load, and for a first hour only)

        print(draft_of(frame))  # noqa: T201 (what it is for: a person copies it)

    @property
    def declared_rows(self) -> list[tuple[str, str]]:
        """What is declared about the table, in words, by role."""
        return [
            ("treatment", f"{self.treatment.name}: {' against '.join(reversed(self.treatment.labels_or_values))}"),
            ("outcome", _described(self.outcome)),
            *table_rows("covariates", tuple(map(_described, self.covariates))),
            *([("unit", str(self.unit))] if self.unit else []),
            ("protects", self.protects),
            *([("entry", self.entry)] if self.entry else []),
            *([("units", str(self.claim))] if self.claim else []),
        ]

    def _repr_html_(self) -> str:
        """Return every declared column for a notebook."""
        return html_table("Schema: what is public about a table", self.declared_rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values, without absent ones."""
        document: dict[str, Any] = {
            "protects": self.protects,
            **({"entry": self.entry} if self.entry else {}),
            "treatment": declared_dict(self.treatment),
            "outcome": column_to_dict(self.outcome),
        }
        if self.unit is not None:
            document["unit"] = declared_dict(self.unit)
        if self.required:
            document["required"] = list(self.required)
        declared = (column for column in self.covariates if not isinstance(column, Indicator))
        document["covariates"] = [column_to_dict(column) for column in declared]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the schema that `to_dict` wrote."""
        optional = ("protects", "required", "unit", "covariates", "entry")
        check_keys("schema", document, ("treatment", "outcome"), optional)
        return cls(
            treatment=build("treatment", Treatment, document["treatment"]),
            outcome=column_from_dict("outcome", document["outcome"]),  # type: ignore[arg-type]
            covariates=tuple(column_from_dict("covariate", column) for column in document.get("covariates", ())),
            unit=build("unit", Unit, document["unit"]) if "unit" in document else None,
            protects=document.get("protects", "record"),
            entry=document.get("entry"),
            required=document.get("required", ()),
        )

    def to_toml(self) -> str:
        """Return the schema as a TOML document that a person can read and approve."""
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, document: str | Path) -> Self:
        """Return a schema from TOML text, or from the file at a `Path`."""
        return cls.from_dict(toml_of("a schema", text_of("a schema", document, SchemaError), SchemaError))


def _described(column: Column) -> str:
    """Return a column's name with its bounds or values, in words."""
    if isinstance(column, Real):
        further = "".join(f", {words}" for words in (column.in_models, column.rules) if words)
        return f"{_named(column)}: {column.low:,g} to {column.high:,g}{further}"
    return f"{_named(column)}: {', '.join(map(str, column.values))}"


def _named(column: Column) -> str:
    return column.name if column.title == column.name else f"{column.name}, {column.title}"
