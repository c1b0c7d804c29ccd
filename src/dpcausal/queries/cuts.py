"""Strata: groups of units by public values or edges of covariates."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpcausal.errors import QueryError
from dpcausal.queries.query import value_names
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import did_you_mean, is_number

_HINT = (
    'write for instance by=["race", Cut("age", [25, 35, 45])], in a study file '
    'by = ["race", { name = "age", edges = [25, 35, 45] }].'
)


@dataclass(frozen=True)
class Cut(metaclass=Constructor):
    """A covariate that defines strata: a listed one by its values, a real one by public edges.

    Attributes:
        name: The covariate.
        edges: For a real covariate, where one bin ends and the next begins, in rising order. An edge belongs to the bin
            above it. Values are compared on the grid that divides the covariate's range into 2^21 ticks.
    """

    _example = 'Cut("age", [40, 60])'

    name: str
    edges: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.edges, Sequence) or not all(map(is_number, self.edges)):
            raise QueryError(
                problem=f"The edges of {self.name!r} must be a list of numbers, not {self.edges!r}",
                hint=_HINT,
            )
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))

    def __str__(self) -> str:
        """Return the covariate and its edges, or the first and the last where there are many."""
        if not self.edges:
            return self.name
        shown = self.edges if len(self.edges) <= 6 else (self.edges[0], "…", self.edges[-1])
        text = ", ".join(each if isinstance(each, str) else f"{each:g}" for each in shown)
        return f"{self.name} cut at {text}" + (f" ({len(self.edges)} edges)" if len(self.edges) > 6 else "")

    def bins(self, schema: Schema) -> int:
        """Return the number of strata by this covariate alone."""
        column = next((column for column in schema.covariates if column.name == self.name), None)
        rising = all(low < high for low, high in itertools.pairwise(self.edges))
        if (
            isinstance(column, Real)
            and self.edges
            and rising
            and column.reach[0] < self.edges[0] <= self.edges[-1] < column.reach[1]
        ):
            return len(self.edges) + 1
        if isinstance(column, Binary | Category) and not self.edges:
            return len(column.values)
        if column is None:
            known = [each.name for each in schema.covariates]
            problem = f"{self.name!r} is not a covariate of the schema, which has {', '.join(known) or 'none'}"
            raise QueryError(problem=problem, hint=f"{did_you_mean(self.name, known)}{_HINT}")
        if not isinstance(column, Real):
            problem = f"{self.name!r} has listed values, which are its strata, and takes no edges"
        elif not self.edges:
            problem = f"{self.name!r} is a number, and strata need the edges where it is cut"
        else:
            low, high = column.reach
            problem = f"The edges of {self.name!r} must rise between {low:g} and {high:g}, not be {list(self.edges)}"
        raise QueryError(problem=problem, hint=_HINT)

    def bin_names(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each stratum by this covariate alone."""
        self.bins(schema)
        column = next(column for column in schema.covariates if column.name == self.name)
        if not isinstance(column, Real):
            return value_names(column)
        edges = [f"{edge:.12g}" for edge in self.edges]
        inner = (f"{low} ≤ {self.name} < {high}" for low, high in itertools.pairwise(edges))
        return f"{self.name} < {edges[0]}", *inner, f"{self.name} ≥ {edges[-1]}"


MOST_STRATA = 100_000


def rising_edges(
    edges: object, most: int, of: str, hint: str, within: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, ...]:
    """Return public edges as numbers; raise unless they are a few in rising order, between two numbers."""
    listed = list(edges) if isinstance(edges, Iterable) else []
    numbers = all(map(is_number, listed)) and 1 <= len(listed) <= most
    if not (numbers and all(low < high for low, high in itertools.pairwise((within[0], *listed, within[1])))):
        raise QueryError(expected=f"1 to {most} rising {of}", got=repr(edges)[:100], hint=hint)
    return tuple(map(float, listed))


def cuts_of(by: Sequence[str | Cut | Mapping[str, Any]]) -> tuple[Cut, ...]:
    """Return a list of cuts, each from itself, from a name, or from its plain values."""
    if isinstance(by, str | Cut):
        raise QueryError(expected="a list of covariates", got=repr(by), hint="put it into a list: by=[...].")
    made = tuple(cut if isinstance(cut, Cut) else Cut(cut) if isinstance(cut, str) else Cut(**cut) for cut in by)
    if len({cut.name for cut in made}) != len(made) or not made:
        raise QueryError(
            expected="one or more different covariates",
            got=f"{[cut.name for cut in made]}",
            hint=_HINT,
        )
    return made


def bins(by: Sequence[Cut], schema: Schema) -> tuple[int, ...]:
    """Return the number of bins of each covariate; their product is the number of strata."""
    each = tuple(cut.bins(schema) for cut in by)
    if math.prod(each) > MOST_STRATA:
        raise QueryError(
            expected=f"at most {MOST_STRATA:,} strata",
            got=f"{math.prod(each):,}",
            hint="use fewer covariates or wider bins; strata without both arms add nothing.",
        )
    return each


def strata_columns(by: Sequence[Cut], schema: Schema) -> tuple[TableColumn, ...]:
    """Return the columns that outcomes in strata depend on."""
    names = {cut.name for cut in by}
    return schema.treatment, schema.outcome, *(column for column in schema.covariates if column.name in names)


def single_cut(schema: Schema) -> Sequence[tuple[Cut, ...]]:
    """Return, for examples, strata by the first listed covariate, or by thirds of a number; none without covariates."""
    return single_cuts(schema)[:1]


def single_cuts(schema: Schema) -> Sequence[tuple[Cut, ...]]:
    """Return, for examples, strata by each listed covariate and by thirds of each number."""
    return [(cut,) for cut in (*_listed(schema), *_thirds(schema))]


def double_cut(schema: Schema) -> Sequence[tuple[Cut, ...]]:
    """Return, for examples, strata by the last listed covariate and by thirds of a number, where there are both."""
    return [(listed, number) for listed in _listed(schema)[-1:] for number in _thirds(schema)[:1]]


def _listed(schema: Schema) -> list[Cut]:
    return [Cut(column.name) for column in schema.covariates if not isinstance(column, Real)]


def _thirds(schema: Schema) -> list[Cut]:
    numbers = [(column.name, *column.reach) for column in schema.covariates if isinstance(column, Real)]
    return [Cut(name, [low + (high - low) * third / 3 for third in (1, 2)]) for name, low, high in numbers]
