"""Products of powers of covariates."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpcausal.queries.basis.functions import LENGTH, check_count, check_integer, lookup, places, rounded, towards_zero
from dpcausal.queries.features import covariates_named, name_tuple
from dpcausal.queries.profiles import Codes, design_lines
from dpcausal.queries.query import GRID, value_names
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Int64s
from dpcausal.utils.other_names import Constructor


@dataclass(frozen=True)
class Polynomial(metaclass=Constructor):
    """A constant and products of powers of covariates, up to a degree in all.

    Powers of a number are Legendre polynomials of it over its range; one of two values is -1 or 1, one of more values
    -1 or 1 for each but the first.

    Attributes:
        degree: The largest degree; 1 for effects that are linear in covariates.
    """

    _example = 'Polynomial(["age"])'

    disjoint: ClassVar[bool] = False
    level: ClassVar[bool] = True

    covariates: Sequence[str]
    degree: int = 1
    kind: Literal["polynomial"] = field(default="polynomial", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        check_integer("degree", self.degree, 1, 6)

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """Return the covariates of the functions."""
        return covariates_named(self.covariates, schema)

    def _factors(self, schema: Schema) -> list[list[tuple[str, int]]]:
        """Return the factors of each covariate, each with its name and degree."""
        factors = []
        for column in self.reads(schema):
            if isinstance(column, Real):
                powers = range(1, self.degree + 1)
                factors.append([(column.name + (f"^{power}" if power > 1 else ""), power) for power in powers])
            elif len(column.values) == 2:
                factors.append([(column.name, 1)])
            else:
                factors.append([(name, 1) for name in value_names(column)[1:]])
        return factors

    def _products(self, schema: Schema) -> list[tuple[tuple[int, int], ...]]:
        """Return the covariates and factors of each function."""
        places = [
            [(covariate, factor, degree) for factor, (_, degree) in enumerate(offered)]
            for covariate, offered in enumerate(self._factors(schema))
        ]
        check_count(sum(map(len, places)))
        products: list[tuple[tuple[int, int], ...]] = [()]
        for count in range(1, min(self.degree, len(places)) + 1):
            for chosen in itertools.combinations(places, count):
                products += [
                    tuple((covariate, factor) for covariate, factor, _ in each)
                    for each in itertools.product(*chosen)
                    if sum(degree for *_, degree in each) <= self.degree
                ]
                check_count(len(products))
        return products

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each function."""
        factors = self._factors(schema)
        return tuple(
            " * ".join(factors[covariate][factor][0] for covariate, factor in product) or "constant"
            for product in self._products(schema)
        )

    def reach(self, schema: Schema) -> float:
        """Return the largest sum of the functions' sizes."""
        return math.sqrt(len(self._products(schema)))

    def ticks(self, codes: Codes, schema: Schema) -> Int64s:
        """Return the functions of some profiles in ticks of which LENGTH make 1, one line a function."""
        factors: list[list[Int64s]] = []
        for column in self.reads(schema):
            if isinstance(column, Real):
                tables = [rounded(_power(power), GRID) for power in range(1, self.degree + 1)]
                factors.append([table[lookup(codes[column.name])] for table in tables])
            else:
                factors.append(design_lines(codes, [column]))
        products = self._products(schema)
        size = len(codes[self.covariates[0]])
        share = math.floor(LENGTH * GRID / math.sqrt(len(products)))
        lines = []
        for product in products:
            line = np.full(size, GRID, dtype=np.int64)
            for covariate, factor in product:
                line = towards_zero(line * factors[covariate][factor], GRID)
            lines.append(towards_zero(line * share, GRID * GRID))
        return np.array(lines)


@cache
def _power(degree: int) -> NDArray[np.float64]:
    """Return Legendre's polynomial of a degree, at the tabulated places."""
    values: NDArray[np.float64] = np.polynomial.Legendre.basis(degree)(places())
    return values
