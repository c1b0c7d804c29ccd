"""The treatment: every arm of a table, and which two are compared."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from dpcausal.errors import SchemaError
from dpcausal.schema.cells import Aliases, Value, checked_aliases, spellings
from dpcausal.schema.columns import Column, Indicator, check_values, meaning_of, plain, rules_of, spelled_out
from dpcausal.schema.real import Real, check_name
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.text import short_repr


@dataclass(frozen=True)
class Treatment(metaclass=Constructor):
    """The arms of a table, and which two of them are compared.

    Declare every arm that the table holds. Units in an arm that is not compared are outside the comparison: they count
    in neither arm. So do units whose arm is absent or not declared, unless `undeclared` sends them to an arm.

    Attributes:
        name: The column in the table.
        arms: Every arm, as written in the table.
        reference: The arm that the other is compared with; the first if left out.
        compare: The arm that is compared with the reference. A schema needs it where there are more than two arms; an
            experiment compares every arm.
        labels: What to call the arms in results, in the order of `arms`; column and value, `arm=drug`, if left out.
        undeclared: The arm to which an absent or undeclared value counts. If left out, such units are outside the
            comparison.
        aliases: Other spellings in a column of text, by arm: `{"placebo": ["plc", "sham"]}`.
        strict: Whether texts that differ in capitals or blanks are different values.

    Example:
        >>> Treatment("arm", arms=("placebo", "drug")).labels_or_values
        ('arm=placebo', 'arm=drug')
        >>> heparin = Treatment("heparin", arms=("none", "low", "high"), compare="high")
        >>> heparin.compared
        ('none', 'high')
        >>> heparin.units_may_be_outside
        True
    """

    _example = 'Treatment("arm", arms=("placebo", "drug"))'

    name: str
    arms: Sequence[Value] = (0, 1)
    reference: Value | None = None
    compare: Value | None = None
    labels: Sequence[str] | None = None
    undeclared: Value | None = None
    _: KW_ONLY
    aliases: Aliases = ()
    strict: bool = False

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.arms, str) or not isinstance(self.arms, Sequence):
            raise SchemaError(
                problem=f"The arms of the column {self.name!r} must be a list, not {self.arms!r}",
                hint='list every arm as it is written in the table, for instance ["placebo", "low dose", "high dose"].',
            )
        object.__setattr__(self, "arms", tuple(map(plain, self.arms)))
        check_values(self.name, self.arms)
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
            if len(set(self.labels)) != len(self.arms):
                raise SchemaError(
                    problem=f"The column {self.name!r} needs {len(self.arms)} different labels, one for each arm, not "
                    f"{self.labels!r}",
                    hint="give the labels in the order of the arms.",
                )
            check_plain_text(f"labels of column {self.name!r}", self.labels)
        object.__setattr__(self, "aliases", checked_aliases(self.name, self.arms, self.aliases))
        _ = self.spellings  # raises where one stands for two arms
        for role in ("reference", "compare", "undeclared"):
            self._check_arm(role)
        if self.compared[0] == self.compared[1]:
            raise SchemaError(
                problem=f"The arm {self.compared[0]!r} of the column {self.name!r} is compared with itself",
                hint="name another arm as reference or as compare.",
            )

    def _check_arm(self, role: str) -> None:
        arm = getattr(self, role)
        if arm is None:
            return
        object.__setattr__(self, role, plain(arm))
        if arm not in self.arms:
            raise SchemaError(
                problem=f"{role} must be one of the arms of the column {self.name!r}, {self.arms!r}, not {arm!r}",
                hint="declare every arm of the table in arms."
                if role != "undeclared"
                else "leave undeclared out: units whose arm is not declared are then outside the comparison.",
            )

    def check_compared(self) -> None:
        """Raise unless it is said which two arms are compared, where there are more."""
        if self.compare is None and len(self.arms) > 2:
            raise SchemaError(
                problem=f"The column {self.name!r} has {len(self.arms)} arms, {self.arms!r}, and none is named for the "
                f"comparison with {self.compared[0]!r}",
                hint=f"write compare={self._others[0]!r}; units in the remaining arms are outside the comparison.",
            )

    @property
    def _others(self) -> tuple[Value, ...]:
        reference = self.arms[0] if self.reference is None else self.reference
        return tuple(arm for arm in self.arms if arm != reference)

    @property
    def compared(self) -> tuple[Value, Value]:
        """The two arms that are compared, the reference first."""
        reference = self.arms[0] if self.reference is None else self.reference
        return reference, self._others[0] if self.compare is None else self.compare

    @property
    def outside(self) -> tuple[Value, ...]:
        """The declared arms that are outside the comparison."""
        return tuple(arm for arm in self.arms if arm not in self.compared)

    @property
    def values(self) -> Sequence[Value]:
        """The distinct values: the arms."""
        return self.arms

    @property
    def spellings(self) -> tuple[tuple[bytes, ...], ...]:
        """The texts that are read as each arm, folded unless `strict`."""
        return spellings(self.name, self.arms, self.aliases, strict=self.strict, words=True)

    @property
    def rules(self) -> str:
        """How cells of text are read, in words; empty where nothing is declared about it."""
        return rules_of(self.aliases, strict=self.strict)

    @property
    def units_may_be_outside(self) -> bool:
        """Whether a unit can be in neither of the two arms."""
        return bool(self.outside) or self.undeclared is None

    @property
    def labels_or_values(self) -> tuple[str, str]:
        """What to call the two compared arms in results, the reference first."""
        reference, other = map(self.label, self.compared)
        return reference, other

    @property
    def every_label(self) -> tuple[str, ...]:
        """What to call every declared arm in results, in the declared order."""
        return tuple(map(self.label, self.arms))

    @property
    def compared_places(self) -> tuple[int, int]:
        """The places of the two compared arms among the declared ones, the reference first."""
        reference, other = (list(self.arms).index(arm) for arm in self.compared)
        return reference, other

    @property
    def every_arm(self) -> "EveryArm":
        """The same column, for queries that see every declared arm."""
        return EveryArm(**{part.name: getattr(self, part.name) for part in fields(self)})

    @property
    def described(self) -> str:
        """The arms in words: which two are compared, and what is outside the comparison."""
        reference, other = (f"{arm} ({self.label(arm)})" if self.labels else str(arm) for arm in self.compared)
        outside = [str(arm) for arm in self.outside]
        outside += ["any value that is missing or not declared"] * (self.undeclared is None)
        return f"{other} compared with {reference}" + (f"; outside: {', '.join(outside)}" if outside else "")

    def label(self, arm: Value) -> str:
        """Return what to call an arm in results."""
        return self.labels[list(self.arms).index(arm)] if self.labels else f"{self.name}={arm}"

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        # Where undeclared values are outside the comparison, it does not matter which others are declared.
        known = self.compared if self.undeclared is None else (*self.compared, *sorted(self.outside, key=str))
        spelled = dict(zip(self.arms, spelled_out(self.spellings), strict=True))
        return {
            "name": self.name,
            "arms": list(map(meaning_of, known)),
            "spellings": [spelled[arm] for arm in known],
            "strict": self.strict,
            "undeclared": None if self.undeclared is None else meaning_of(self.undeclared),
        }


@dataclass(frozen=True)
class EveryArm(Treatment):
    """The treatment as a query reads it that sees every declared arm, whichever two are compared."""

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written: every arm, in the declared order."""
        return {
            "name": self.name,
            "every arm": list(map(meaning_of, self.arms)),
            "spellings": spelled_out(self.spellings),
            "strict": self.strict,
            "undeclared": None if self.undeclared is None else meaning_of(self.undeclared),
        }


TableColumn = Column | Treatment
"""Any column that a schema declares."""


def table_column(column: TableColumn) -> str:
    """Return the name of the table's column that a declared column is read from."""
    return column.of.name if isinstance(column, Indicator) else column.name


def listed_values(column: TableColumn) -> Sequence[Value]:
    """Return the values that a column lists: a treatment's arms, or none where it is a number."""
    return () if isinstance(column, Real) else column.values
