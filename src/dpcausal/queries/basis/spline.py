"""A smooth function of each covariate, added up."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpcausal.queries.basis.functions import LENGTH, check_count, check_integer, lookup, places, rounded
from dpcausal.queries.features import covariates_named, name_tuple
from dpcausal.queries.profiles import Codes
from dpcausal.queries.query import value_names
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Int64s
from dpcausal.utils.other_names import Constructor


@dataclass(frozen=True)
class Spline(metaclass=Constructor):
    """A smooth function of each number, and a step for each listed value, added up.

    Functions of a number are cubic B-splines on equal pieces of its range.

    Attributes:
        pieces: Into how many pieces a range is cut; each number has three functions more than that.
    """

    disjoint: ClassVar[bool] = False
    level: ClassVar[bool] = False

    covariates: Sequence[str]
    pieces: int = 2
    kind: Literal["spline"] = field(default="spline", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        check_integer("pieces", self.pieces, 1, 100)

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """Return the covariates of the functions."""
        return covariates_named(self.covariates, schema)

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each function. All covariates but the first go without their first function."""
        names: list[str] = []
        for column in self.reads(schema):
            if isinstance(column, Real):
                own = [f"{column.name} piece {piece}" for piece in range(1, self.pieces + 4)]
            else:
                own = list(value_names(column))
            names += own[1:] if names else own
        check_count(len(names))
        return tuple(names)

    def reach(self, schema: Schema) -> float:
        """Return the largest sum of the functions' sizes: each covariate's sum to 1."""
        return math.sqrt(len(self.reads(schema)))

    def ticks(self, codes: Codes, schema: Schema) -> Int64s:
        """Return the functions of some profiles in ticks of which LENGTH make 1, one line a function."""
        columns = self.reads(schema)
        share = LENGTH / math.sqrt(len(columns))
        lines: list[Int64s] = []
        for column in columns:
            if isinstance(column, Real):
                own = [table[lookup(codes[column.name])] for table in rounded(_splines(self.pieces), share)]
            else:
                own = [np.where(codes[column.name] == place, int(share), 0) for place in range(len(column.values))]
            lines += own[1:] if lines else own
        return np.array(lines, dtype=np.int64)


@cache
def _splines(pieces: int) -> NDArray[np.float64]:
    """Return cubic B-splines on equal pieces, at the tabulated places, one line a function (Cox and de Boor)."""
    inner = np.linspace(-1, 1, pieces + 1)
    knots = np.concatenate([[-1.0] * 3, inner, [1.0] * 3])
    at = np.minimum(places(), np.nextafter(1.0, 0.0))
    lines = [((low <= at) & (at < high)).astype(float) for low, high in itertools.pairwise(knots)]
    for degree in range(1, 4):
        raised = []
        for place in range(len(lines) - 1):
            left, right = knots[place + degree] - knots[place], knots[place + degree + 1] - knots[place + 1]
            rising = (at - knots[place]) / left * lines[place] if left else 0.0 * at
            falling = (knots[place + degree + 1] - at) / right * lines[place + 1] if right else 0.0 * at
            raised.append(rising + falling)
        lines = raised
    return np.array(lines)
