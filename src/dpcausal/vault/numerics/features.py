"""Covariates as numbers that a score can be made of: exact integers, each from one row alone."""

import math
from collections.abc import Sequence
from functools import cached_property

from dpcausal.queries import GRID
from dpcausal.queries.coerced import features
from dpcausal.queries.features import covariates_named, feature_names
from dpcausal.queries.profiles import design_lines
from dpcausal.schema.schema import Schema
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import Constant, Number
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.engines import Batch


class Features:
    """The features of some covariates, in ticks of which GRID make 1; a constant comes first.

    A number is within -1 and 1, one of two values is -1 or 1, one of more values is 1 in that value's place: with the
    constant, features have a squared length of at most one more than there are covariates.
    """

    def __init__(self, covariates: Sequence[str], schema: Schema) -> None:
        self._schema, self.covariates = schema, covariates_named(covariates, schema)
        names = [column.name for column in schema.covariates]
        self.columns = tuple(f"covariate_{names.index(column.name)}" for column in self.covariates)
        self.names = feature_names(covariates, schema)
        self.size = len(self.names)
        self.root = math.sqrt(len(self.covariates) + 1)  # what features are divided by to have a length of at most 1
        self.scale = GRID * self.root  # the same in ticks

    @cached_property
    def _lines(self) -> list[Number]:
        return [Constant(GRID), *features([column.name for column in self.covariates], self._schema)]

    def ticks(self, batch: Batch) -> Int64s:
        """Return the features of some rows, one line a feature."""
        return evaluate(self._lines, batch)

    def codes(self, batch: Batch) -> dict[str, Int64s]:
        """Return the covariates of some rows by their names."""
        return {column.name: batch[name] for column, name in zip(self.covariates, self.columns, strict=True)}

    def design(self, batch: Batch) -> list[Int64s]:
        """Return the features of a linear regression: no constant, and listed values as -1 or 1, without the first."""
        return design_lines(self.codes(batch), self.covariates)
