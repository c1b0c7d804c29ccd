"""Sums of products of outcome, covariates and arm, for linear regressions of the outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME as OUTCOME_TICKS
from dpcausal.queries.coerced import TREATMENT, design, rounded
from dpcausal.queries.features import design_names, name_tuple, one_and_all
from dpcausal.queries.query import Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Constant, Number, sign

FINE = 2**10
"""Ticks from the middle of a range to its bounds in products of two numbers, so that sums of products are exact."""

CONSTANT, OUTCOME, FIRST_FEATURE = 0, 1, 2
"""Where in a unit's list of numbers its constant, its outcome and its features are."""


WEIGHTS: dict[tuple[bool, int, int], int] = {
    (True, 1, 0): 1,
    (True, 0, 0): 2,
    (False, 0, 0): 2,
    (False, 1, 0): 2,
    (True, 0, 1): 2,
    (False, 1, 1): 2,
    (False, 0, 2): 4,
    (False, 0, 1): 8,
    (True, 1, 1): 8,
    (False, 2, 0): 8,
    (True, 2, 0): 16,
    (True, 0, 2): 16,
}
"""How large a moment's noise is to be, in proportion: by whether it has the arm's sign, and by how many factors are the
outcome and how many are features. An adjusted difference depends most on the first and hardly on the last."""


@dataclass(frozen=True)
class Moment:
    """One sum over units: of the product of two of a unit's numbers, with the sign of its arm or without.

    A number's product with itself stands for the deficit, 1 less its square, which moves half as far.
    """

    first: int
    second: int
    signed: bool

    @property
    def deficit(self) -> bool:
        """Whether this is the sum of what squares lack to 1."""
        return self.first == self.second != CONSTANT


class ProductMoments(SummingQuery):
    """The base of queries that add up products of two of a unit's numbers, with the sign of its arm or without."""

    first_feature: ClassVar[int] = FIRST_FEATURE
    sizes: ClassVar[Mapping[int, float]] = {}
    """How far numbers of a unit reach that reach neither to 1 nor, as the outcome does, to half a range."""

    covariates: Sequence[str]
    interaction: bool

    def numbers(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of a unit's numbers; the constant has none."""
        return "", "outcome", *design_names(self.covariates, schema)

    def lines(self, schema: Schema) -> list[Number]:
        """Return a unit's numbers, in ticks of which FINE make 1."""
        return [Constant(FINE), rounded(OUTCOME_TICKS, FINE), *design(self.covariates, schema, FINE)]

    def weight(self, moment: Moment) -> int:
        """Return the size of a moment's noise, in proportion."""
        return WEIGHTS[self.kind(moment)]

    def kind(self, moment: Moment) -> tuple[bool, int, int]:
        """Return whether a moment has the arm's sign, how many factors are the outcome, and how many are features."""
        factors = (moment.first, moment.second)
        return moment.signed, factors.count(OUTCOME), sum(each >= self.first_feature for each in factors)

    def moments(self, schema: Schema) -> tuple[Moment, ...]:
        """Return the sums, in the order of the coordinates."""
        counted = schema.units_may_leave(schema.protects)
        return all_moments(len(self.numbers(schema)), interaction=self.interaction, counted=counted)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        names, lines = self.numbers(schema), self.lines(schema)
        whole, weights = {}, {}
        for moment in self.moments(schema):
            product = lines[moment.first] * lines[moment.second]
            part = FINE**2 - product if moment.deficit else product
            name = moment_name(moment, names)
            whole[name] = sign(TREATMENT) * part if moment.signed else part
            weights[name] = Fraction(self.weight(moment) * 2 * FINE**2)
        return (Sums({TREATMENT: 2}, {}, whole, weights),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        low, high = schema.outcome_bounds
        sizes, names = {OUTCOME: (high - low) / 2, **self.sizes}, self.numbers(schema)
        return {
            moment_name(each, names): sizes.get(each.first, 1.0) * sizes.get(each.second, 1.0) / FINE**2
            for each in self.moments(schema)
        }


@dataclass(frozen=True)
class RegressionMoments(ProductMoments):
    """Sums of products of outcome, covariates and arm, for linear regressions of the outcome.

    A unit's numbers are its outcome, z, and its features, x, all from -1 to 1: a number measured from the middle of its
    range, one of two values as -1 or 1, one of more values as 1 in that value's place and -1 elsewhere, the first value
    left out. With a sign for the arm, the answer holds the sums of +-1, z, +-z, x, +-x, zx and xx', and of what z² and
    x² lack to 1; with `interaction` also those of +-zx, +-xx' and the signed deficits; and the sum of 1 where units may
    leave the comparison.

    Attributes:
        interaction: Whether each arm gets a regression of its own.
    """

    name: ClassVar[str] = "regression_moments"

    covariates: Sequence[str]
    interaction: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        if not isinstance(self.interaction, bool):
            raise QueryError(
                expected="an interaction that is True or False",
                got=repr(self.interaction),
                hint="True gives each arm a regression of its own.",
            )

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(
            cls(covariates, interaction) for covariates in one_and_all(schema) for interaction in (True, False)
        )


@lru_cache
def all_moments(last: int, *, interaction: bool, counted: bool) -> tuple[Moment, ...]:
    """Return the sums of products of so many numbers; the first of all is the number of units in the comparison."""
    pairs = [(first, second) for first in range(last) for second in range(first, last)]
    plain = [Moment(first, second, signed=False) for first, second in (pairs if counted else pairs[1:])]
    signed = [Moment(first, second, signed=True) for first, second in pairs if first == CONSTANT or interaction]
    return *plain, *signed


def moment_name(moment: Moment, numbers: Sequence[str]) -> str:
    """Return the name of a sum, given the names of a unit's numbers."""
    if not moment.signed and moment.first == moment.second == CONSTANT:
        return "compared"
    parts = ["arm"] if moment.signed else []
    if moment.deficit:
        parts.append(f"deficit of {numbers[moment.first]}")
    else:
        parts += [numbers[place] for place in (moment.first, moment.second) if place != CONSTANT]
    return " * ".join(parts)
