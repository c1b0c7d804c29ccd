"""Sums of many metrics, of their squares and of products of two, in every declared arm."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import exact
from dpcausal.queries.coerced import covariate, every_arm, in_ticks
from dpcausal.queries.features import is_measured
from dpcausal.queries.query import GRID, Norm, value_names
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Clip, Number, Shift, deficit
from dpcausal.sums.roots import root_above
from dpcausal.utils.validation import is_number

MetricColumn = Real | Binary

_PRODUCTS = Fraction(1, 4)
"""How much of its share a product uses with Laplace noise: variances need it, and it adds to the noise of the means."""


_BITS = 24
"""Binary digits after the point of the factors of a residual."""


class Residual(NamedTuple):
    """A column less a public multiple of another, held between public bounds: one number for each unit.

    Attributes:
        low: The lower bound of the difference; what is below counts as the bound.
    """

    label: str
    column: str
    other: str
    slope: float
    low: float
    high: float

    def check(self) -> None:
        """Raise unless it names two columns, a slope and bounds."""
        named = all(isinstance(each, str) for each in self[:3]) and self.column != self.other
        if not (named and all(map(is_number, self[3:])) and self.low < self.high):
            raise QueryError(
                expected="a residual with a name, two different columns, a slope and bounds low < high",
                got=repr(tuple(self))[:200],
                hint='write for instance ["clicks less 0.1 views", "clicks", "views", 0.1, -4, 6].',
            )

    def line(self, columns: Mapping[str, tuple[str, MetricColumn]]) -> Number:
        """Return it as ticks from the middle of its bounds, made of the ticks of the two columns."""
        half, middle = (self.high - self.low) / 2, self.low + (self.high - self.low) / 2
        (_, one), (_, other) = columns[self.column], columns[self.other]
        factors = (
            half_range(one) / half,
            -self.slope * half_range(other) / half,
            (middle_of(one) - self.slope * middle_of(other) - middle) / half,
        )
        if max(map(abs, factors)) > 2**14:
            raise QueryError(
                expected=f"bounds of {self.label} that are not far narrower than the columns that it is made of",
                got=f"{self.low:g} to {self.high:g}",
                hint="give wider bounds, or narrower ones of the columns.",
            )
        first, second, rest = (math.floor(factor * 2**_BITS + 0.5) for factor in factors)
        ticks = [in_ticks(*columns[name]) for name in (self.column, self.other)]
        whole = ticks[0] * first + ticks[1] * second + (rest * GRID + 2 ** (_BITS - 1))
        return Clip(Shift(whole, _BITS), -GRID, GRID)


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
        residuals: Columns that are made of two others, each a `Residual`; a metric names it as it names a column.
    """

    name: ClassVar[str] = "metric_moments"

    metrics: Sequence[Sequence[str]]
    weights: Sequence[float]
    residuals: Sequence[Residual] = ()

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
        made = tuple(Residual(*each) for each in self.residuals)
        for each in made:
            each.check()
        object.__setattr__(self, "residuals", made)

    @property
    def shares(self) -> dict[str, Fraction]:
        """The share of each column: that of its metric, or half of it where the metric has two; all add up to 1."""
        shares: dict[str, Fraction] = {}
        for columns, share in _metric_shares(self.metrics, self.weights):
            for name in columns:
                shares[name] = shares.get(name, Fraction(0)) + share / len(columns)
        return shares

    @property
    def products(self) -> dict[tuple[str, str], Fraction]:
        """The share of each product: half of that of its metrics. At most the shares of its columns."""
        products: dict[tuple[str, str], Fraction] = {}
        for columns, share in _metric_shares(self.metrics, self.weights):
            if len(columns) == 2:
                one, other = sorted(columns)
                products[one, other] = products.get((one, other), Fraction(0)) + share / 2
        return products

    @property
    def size_share(self) -> Fraction:
        """The share of the sizes with Laplace noise: near the best where a metric's mean is near one of its bounds."""
        return Fraction(1, 2 * math.ceil(len(self.shares) ** (2 / 3)))

    @property
    def used(self) -> set[str]:
        """The names of the columns that its metrics are made of, and of its residuals."""
        return {*self.shares, *(name for each in self.residuals for name in (each.column, each.other))}

    def columns(self, schema: Schema) -> dict[str, tuple[str, MetricColumn]]:
        """Return the columns by name, each with its name among coerced columns; that of a residual is empty."""
        coerced = _numbers(schema)
        made = {each.label: each for each in self.residuals}
        asked = [*self.shares, *(name for each in self.residuals for name in (each.column, each.other))]
        unknown = [name for name in asked if name not in coerced and name not in made]
        if unknown or {*made} & {*coerced}:
            raise QueryError(
                expected=f"metrics out of the Real and Binary columns without a scale: {', '.join(coerced)}",
                got=repr([*unknown, *({*made} & {*coerced})][0]),
                hint="declare every metric with its bounds.",
            )
        return {
            name: ("", Real(name, made[name].low, made[name].high)) if name in made else coerced[name]
            for name in self.shares
        }

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        columns = self.columns(schema)
        residuals = {each.label: each.line(_numbers(schema)) for each in self.residuals}
        lines = {name: residuals.get(name) or in_ticks(*each) for name, each in columns.items()}
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
        asked = tuple(
            cls(made, [1.0 + place for place in range(len(made))])
            for at, made in enumerate(metrics)
            if made and made not in metrics[:at]
        )
        if not pairs:
            return asked
        # A residual whose bounds cut off a part of what it can be, beside a metric of one of its columns.
        (one, other), halves = pairs[0], {each.name: half_range(each) for each in columns if is_measured(each)}
        residual = Residual("residual", one, other, 0.5 * halves[one] / halves[other], -halves[one] / 2, halves[one])
        return *asked, cls([["residual"], [other]], [1.0, 2.0], [residual])


@dataclass(frozen=True)
class SegmentMetrics(MetricMoments):
    """The sums of `MetricMoments`, and the same once more in every segment: in each value of some columns.

    One unit is in one segment of each column, so noise does not grow with the number of a column's values. The segments
    of all columns together have their own share of the budget.

    Attributes:
        segments: The columns, each a covariate with listed values.
        segment_share: The share of the budget that is spent on segments; columns divide it equally. The noise of a part
            with share s is 1 / s times that of the whole with Laplace noise, and the root of it with Gaussian noise.
    """

    name: ClassVar[str] = "segment_metrics"

    segments: Sequence[str] = ()
    segment_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        named = isinstance(self.segments, list | tuple) and all(isinstance(each, str) for each in self.segments)
        segments = tuple(self.segments) if named else ()
        share = self.segment_share
        if not segments or len(set(segments)) < len(segments) or not (is_number(share) and 0 < share < 1):
            raise QueryError(
                expected="different columns of segments, and the share of the budget that is spent on them",
                got=f"{self.segments!r} and {share!r}"[:200],
                hint='write for instance segments=["country"], segment_share=0.2.',
            )
        object.__setattr__(self, "segments", segments)
        object.__setattr__(self, "segment_share", float(share))

    def cells(self, schema: Schema) -> dict[str, tuple[str, ...]]:
        """Return what the segments of each column are called in the answer, by the column's name."""
        listed = {each.name: each for each in schema.covariates if isinstance(each, Binary | Category)}
        if wrong := [name for name in self.segments if name not in listed or name in self.used]:
            raise QueryError(
                expected="segments out of the covariates with listed values that are part of no metric",
                got=repr(wrong[0]),
                hint='declare the column of segments as a Category("country", values=[…]).',
            )
        return {name: value_names(listed[name]) for name in self.segments}

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        (whole,) = super().sums(schema, protects, norm)
        share = exact(self.segment_share)
        found = [_with_share(whole, 1 - share, norm)]
        for name, values in self.cells(schema).items():
            labels = tuple(f"_{arm} of {value}" for arm in range(whole.count) for value in values)
            part = replace(whole, cells={**whole.cells, covariate(name, schema): len(values)}, labels=labels)
            found.append(_with_share(part, share / len(self.segments), norm))
        return tuple(found)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: segments of one column, and of two."""
        listed = [each.name for each in schema.covariates if isinstance(each, Binary | Category)]
        columns = (schema.outcome, *schema.covariates)
        metrics = [[each.name] for each in columns if is_measured(each) and each.name not in listed[:2]][:2]
        return tuple(
            cls(metrics, [1.0] * len(metrics), segments=listed[:count], segment_share=0.25)
            for count in (1, 2)
            if metrics and len(listed) >= count
        )


def _with_share(sums: Sums, share: Fraction, norm: Norm) -> Sums:
    """Return sums with the noise that a share of the budget brings."""
    times = 1 / share if norm == "l1" else root_above(1 / share)
    return replace(sums, weights={name: times * each for name, each in sums.weights.items()})


@lru_cache(64)
def _metric_shares(
    metrics: tuple[tuple[str, ...], ...], weights: tuple[float, ...]
) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
    """Return the columns and the share of each metric; a release asks for them often."""
    exactly = [exact(weight) for weight in weights]
    whole = sum(exactly, Fraction(0))
    return tuple((columns, weight / whole) for columns, weight in zip(metrics, exactly, strict=True))


def _numbers(schema: Schema) -> dict[str, tuple[str, MetricColumn]]:
    """Return the columns that a metric may be made of, each with its name among coerced columns."""
    coerced = {schema.outcome.name: ("outcome", schema.outcome)}
    coerced |= {each.name: (f"covariate_{at}", each) for at, each in enumerate(schema.covariates)}  # type: ignore[misc]
    return {name: each for name, each in coerced.items() if is_measured(each[1])}


def half_range(column: MetricColumn) -> float:
    """Return half of a column's range; binary values are 0 and 1."""
    return (column.high - column.low) / 2 if isinstance(column, Real) else 0.5


def middle_of(column: MetricColumn) -> float:
    """Return the middle of a column's range; binary values are 0 and 1."""
    return column.low + (column.high - column.low) / 2 if isinstance(column, Real) else 0.5
