"""Sums of many metrics, of their squares and of products of two, in every declared arm."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import exact
from dpcausal.queries.coerced import every_arm, in_ticks
from dpcausal.queries.features import is_measured
from dpcausal.queries.query import GRID, Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Number, Shift, deficit
from dpcausal.sums.roots import root_above
from dpcausal.utils.validation import is_number

MetricColumn = Real | Binary

_PRODUCTS = Fraction(1, 4)
"""How much of its share a product uses with Laplace noise: variances need it, and it adds to the noise of the means."""


@dataclass(frozen=True)
class MetricMoments(SummingQuery):
    """In every declared arm: the number of units and, for each column of the metrics, its total and deficit of squares.

    For a metric of two columns also the sum of their product. Values z are measured from the middle of their range, and
    h is half the range; the deficit is the sum of h² - z², and products are of such values. A binary column has no
    deficit, which would be 0. The metrics share the noise by their weights, and the sizes are paid for once. One unit
    is in one arm, so noise does not grow with their number.

    Attributes:
        metrics: For each metric the names of its columns, one or two: a mean; or a numerator and a denominator, or a
            metric and a covariate. A column may be part of several metrics.
        weights: The weight of each metric: its share of the whole, once divided by the sum of all.
    """

    name: ClassVar[str] = "metric_moments"

    metrics: Sequence[Sequence[str]]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        listed = isinstance(self.metrics, Sequence) and isinstance(self.weights, Sequence)
        metrics = (
            tuple(tuple(each) if isinstance(each, list | tuple) else () for each in self.metrics) if listed else ()
        )
        named = all(
            len(each) == len(set(each)) in (1, 2) and all(isinstance(name, str) for name in each) for each in metrics
        )
        weights = tuple(self.weights) if listed else ()
        if not metrics or not named or len(weights) != len(metrics) or not all(is_number(w) and w > 0 for w in weights):
            raise QueryError(
                expected="metrics of one or two different columns each, and a positive weight for each metric",
                got=f"{self.metrics!r} and {self.weights!r}"[:200],
                hint='write for instance metrics=[["visits"], ["clicks", "views"]], weights=[1, 1].',
            )
        object.__setattr__(self, "metrics", metrics)
        object.__setattr__(self, "weights", tuple(map(float, weights)))

    @property
    def shares(self) -> dict[str, Fraction]:
        """The share of each column: that of its metric, or half of it where the metric has two; all add up to 1."""
        shares: dict[str, Fraction] = {}
        for columns, share in self._metric_shares():
            for name in columns:
                shares[name] = shares.get(name, Fraction(0)) + share / len(columns)
        return shares

    @property
    def products(self) -> dict[tuple[str, str], Fraction]:
        """The share of each product: half of that of its metrics. At most the shares of its columns."""
        products: dict[tuple[str, str], Fraction] = {}
        for columns, share in self._metric_shares():
            if len(columns) == 2:
                one, other = sorted(columns)
                products[one, other] = products.get((one, other), Fraction(0)) + share / 2
        return products

    def _metric_shares(self) -> list[tuple[Sequence[str], Fraction]]:
        weights = [exact(weight) for weight in self.weights]
        whole = sum(weights, Fraction(0))
        return [(columns, weight / whole) for columns, weight in zip(self.metrics, weights, strict=True)]

    @property
    def size_share(self) -> Fraction:
        """The share of the sizes with Laplace noise: near the best where a metric's mean is near one of its bounds."""
        return Fraction(1, 2 * math.ceil(len(self.shares) ** (2 / 3)))

    def columns(self, schema: Schema) -> dict[str, tuple[str, MetricColumn]]:
        """Return the columns by name, each with its name among coerced columns."""
        coerced = {schema.outcome.name: ("outcome", schema.outcome)}
        coerced |= {each.name: (f"covariate_{at}", each) for at, each in enumerate(schema.covariates)}  # type: ignore[misc]
        numbers = [name for name, (_, each) in coerced.items() if is_measured(each)]
        unknown = [name for name in self.shares if name not in numbers]
        if unknown:
            raise QueryError(
                expected=f"metrics out of the Real and Binary columns without a scale: {', '.join(numbers)}",
                got=repr(unknown[0]),
                hint="declare every metric with its bounds.",
            )
        return {name: coerced[name] for name in self.shares}

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        columns = self.columns(schema)
        lines = {name: in_ticks(*each) for name, each in columns.items()}
        totals, deficits, products, size = self._weights(protects, norm)
        numbers: dict[str, Number] = {"size": ONE}
        weights = {"size": size}
        for name, (_, column) in columns.items():
            numbers[f"total{{}} of {name}"], weights[f"total{{}} of {name}"] = lines[name], totals[name]
            if isinstance(column, Real):
                numbers[f"deficit{{}} of {name}"] = deficit(lines[name])
                weights[f"deficit{{}} of {name}"] = deficits[name]
        for (one, other), weight in products.items():
            name = f"product{{}} of {one} and {other}"
            numbers[name], weights[name] = Shift(lines[one] * lines[other], GRID.bit_length() - 1), weight
        return (Sums({every_arm(schema): len(schema.treatment.arms)}, numbers, {}, weights, everyone=True),)

    def _weights(
        self, protects: Protects, norm: Norm
    ) -> tuple[dict[str, Fraction], dict[str, Fraction], dict[tuple[str, str], Fraction], Fraction]:
        """Return the weights of totals, deficits, products and sizes: noise is shared as metrics are weighted."""
        moves, shares, products = protects == "record", self.shares, self.products
        if norm == "l2":
            totals = {name: 2 * GRID * root_above(1 / share) for name, share in shares.items()}
            crossed = {pair: 2 * GRID * root_above(1 / share) for pair, share in products.items()}
            crossing = sum(products.values(), Fraction(0))
            return totals, totals, crossed, root_above(4 / (1 - crossing)) if moves else Fraction(1)
        in_products = {name for pair in products for name in pair}
        free = {name: 1 - _PRODUCTS if name in in_products and not moves else 1 for name in shares}
        totals = {name: 2 * GRID / share for name, share in shares.items()}
        deficits = {name: 2 * weight / free[name] for name, weight in totals.items()}
        crossed = {pair: 2 * GRID / (share * _PRODUCTS) for pair, share in products.items()}
        return totals, deficits, crossed, 1 / self.size_share if moves else Fraction(1)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        half = {name: half_range(each) for name, (_, each) in self.columns(schema).items()}
        ticks = {f"total{{}} of {name}": each / GRID for name, each in half.items()}
        ticks |= {f"deficit{{}} of {name}": each**2 / GRID for name, each in half.items()}
        products = {f"product{{}} of {one} and {other}": half[one] * half[other] for one, other in self.products}
        return ticks | {name: each / GRID for name, each in products.items()}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: one metric, several, and pairs that share columns."""
        columns = (schema.outcome, *schema.covariates)
        names = [each.name for each in columns if is_measured(each)][:3]
        pairs = [[*pair] for pair in itertools.combinations(names, 2)]
        each = [[name] for name in names]
        metrics = [each[:1], [*each, *pairs[:1]], pairs]
        return tuple(
            cls(made, [1.0 + place for place in range(len(made))])
            for at, made in enumerate(metrics)
            if made and made not in metrics[:at]
        )


def half_range(column: MetricColumn) -> float:
    """Return half of a column's range; binary values are 0 and 1."""
    return (column.high - column.low) / 2 if isinstance(column, Real) else 0.5


def middle_of(column: MetricColumn) -> float:
    """Return the middle of a column's range; binary values are 0 and 1."""
    return column.low + (column.high - column.low) / 2 if isinstance(column, Real) else 0.5
