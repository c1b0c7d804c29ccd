"""Sums of the outcome, of covariates and of their products: how covariates spread and predict the outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcausal.queries.coerced import OUTCOME, everyone_compared, features
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.summing import CovariateSumsQuery
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Number, Shift, deficit

_SHIFT = GRID.bit_length() - 1


def explained(schema: Schema, centre: float) -> float:
    """Return the share of the outcome's variance that covariates are expected to explain.

    It is a quarter; for an event, the variance of the event, as for a predictor with a standard deviation of one logit.

    Args:
        centre: The mean outcome, in half ranges from the middle of its range.
    """
    return (1 - min(abs(centre), 0.99) ** 2) / 4 if isinstance(schema.outcome, Binary) else 0.25


@dataclass(frozen=True)
class CovariateMoments(CovariateSumsQuery):
    """Sums of the outcome, of all covariates, of their products with the outcome, and of what squares lack.

    A number is measured from the middle of its range in half ranges, one of two values is -1 or 1, one of more values
    is 1 in that value's place and 0 elsewhere: the features of a score. The deficit of a number x is the sum of 1 - x².
    Arms play no part, but for the number of units where these may leave the comparison. A covariate costs no more than
    a number, however many values it has.
    """

    name: ClassVar[str] = "covariate_moments"

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        lines = dict(zip(self.features(schema), features(self.covariates, schema), strict=True))
        half = GRID // 2
        numbers: dict[str, Number] = {"outcome": OUTCOME}
        numbers |= {f"total of {name}": line for name, line in lines.items()}
        numbers |= {f"outcome * {name}": Shift(OUTCOME * line + half, _SHIFT) for name, line in lines.items()}
        numbers |= {f"deficit of {name}": deficit(lines[name]) for name in self.numbers(schema)}
        weights = {name: Fraction(2 * GRID if name == "outcome" else GRID) for name in numbers}
        compared = everyone_compared(schema)
        return (Sums({}, numbers | compared, weights=weights | dict.fromkeys(compared, Fraction(1))),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        names, outcome = self.features(schema), outcome_tick(schema)
        ticks = {"outcome": outcome, **{f"outcome * {name}": outcome for name in names}}
        ticks |= {f"total of {name}": 1 / GRID for name in names}
        return ticks | {f"deficit of {name}": 1 / GRID for name in self.numbers(schema)}
