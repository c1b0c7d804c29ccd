"""The public facts that bind a ledger to its data set, and the names of that data set's versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpcausal.errors import LedgerError, SchemaError
from dpcausal.schema.columns import Unit, declared_dict
from dpcausal.schema.schema import Protects, Schema
from dpcausal.utils.validation import LONGEST_VERSION, build, check_keys, is_version

_UNPROVED = "allow_unproved"
"""Of earlier ledgers: the queries without a proof that a vault allowed. There are none any more."""


@dataclass(frozen=True)
class DataSet:
    """What is public about a data set, in all its versions. A ledger holds every vault to what the first one declared.

    Attributes:
        protects: What one unit may change, as the schema declares it.
        unit: How several records of one unit become one, if they do.
        public: The columns that are declared public.
        entry: The column by which units enter a growing table, if it is declared.
    """

    protects: Protects
    unit: Unit | None = None
    public: tuple[str, ...] = ()
    entry: str | None = None

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Return what a schema declares public about a data set."""
        unit = schema.unit.identity if schema.unit else None  # studies of one data set may add up other columns
        return cls(schema.protects, unit, schema.public_columns, schema.entry)

    def to_dict(self) -> dict[str, Any]:
        """Return the data set as plain values, the unit in its parts."""
        return {
            "protects": self.protects,
            "unit": declared_dict(self.unit) if self.unit else None,
            "public": list(self.public),
            **({"entry": self.entry} if self.entry else {}),  # as in ledgers of before it could be declared
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            SchemaError: If it holds anything else, or releases without a proof were allowed.
        """
        check_keys("data set", document, ("protects", "unit", "public"), ("entry", _UNPROVED))
        if document.get(_UNPROVED):
            raise SchemaError(
                expected="a data set of which every release has a proof",
                got=f"one that allowed {', '.join(map(str, document[_UNPROVED]))}, which has none",
                hint="keep this ledger with the version of dpcausal that wrote it.",
            )
        unit = document["unit"]
        return cls(
            document["protects"],
            build("unit", Unit, unit) if unit is not None else None,
            tuple(document["public"]),
            document.get("entry"),
        )

    def __str__(self) -> str:
        unit = f"one unit for each {self.unit}" if self.unit else "units"
        public = f"public columns {', '.join(self.public)}" if self.public else "no public columns"
        entry = f", units enter by {self.entry}" if self.entry else ""
        return f"{unit}, protects {self.protects}, {public}{entry}"


def check_version(text: object) -> None:
    """Raise unless a text may name a version of a data set."""
    if not is_version(text):
        raise LedgerError(
            problem=f"as_of must be a date or a name on one line, of at most {LONGEST_VERSION} printable characters"
            + ("" if isinstance(text, str) else f", not {text!r}"),
            hint='say publicly which state of the data this is, for instance as_of="2026-06-30".',
        )
