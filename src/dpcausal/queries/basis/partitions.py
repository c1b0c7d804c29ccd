"""Functions that are 1 for the members of one group and 0 for everyone else."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from dpcausal.queries.basis.functions import LENGTH, check_count
from dpcausal.queries.cuts import Cut, bins, cuts_of
from dpcausal.queries.features import covariates_named
from dpcausal.queries.profiles import Codes, ticks_of
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Int64s
from dpcausal.utils.other_names import Constructor


@dataclass(frozen=True)
class Cells(metaclass=Constructor):
    """One function for each group of a partition: 1 for its members and 0 for everyone else."""

    disjoint: ClassVar[bool] = True
    level: ClassVar[bool] = False

    by: Sequence[Cut]
    kind: Literal["cells"] = field(default="cells", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", cuts_of(self.by))

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """Return the covariates of the functions."""
        return covariates_named([cut.name for cut in self.by], schema)

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each function."""
        check_count(math.prod(bins(self.by, schema)))
        each = [cut.bin_names(schema) for cut in self.by]
        return tuple(", ".join(names) for names in itertools.product(*each))

    def reach(self, schema: Schema) -> float:
        """Return the largest sum of the functions' sizes."""
        return 1.0

    def profiles(self, schema: Schema) -> list[tuple[Value, ...]]:
        """Return one profile of each group, in the middle of it."""
        values: list[Sequence[Value]] = []
        for cut, column in zip(self.by, self.reads(schema), strict=True):
            if isinstance(column, Real):
                edges = itertools.pairwise((column.low, *cut.edges, column.high))
                values.append([(low + high) / 2 for low, high in edges])
            else:
                values.append(column.values)
        return list(itertools.product(*values))

    def places(self, codes: Codes, schema: Schema) -> Int64s:
        """Return the group of each profile."""
        place = np.zeros(len(codes[self.by[0].name]), dtype=np.int64)
        for cut, column, count in zip(self.by, self.reads(schema), bins(self.by, schema), strict=True):
            own = codes[column.name]
            if isinstance(column, Real):
                own = np.searchsorted([ticks_of(column, edge) for edge in cut.edges], own, side="right")
            place = place * count + own
        return place

    def ticks(self, codes: Codes, schema: Schema) -> Int64s:
        """Return the functions of some profiles in ticks of which LENGTH make 1, one line a function."""
        places = self.places(codes, schema)
        return np.where(places == np.arange(len(self.names(schema)))[:, None], LENGTH, 0)
