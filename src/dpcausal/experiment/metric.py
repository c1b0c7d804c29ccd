"""Metrics of an experiment, as they are declared."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from dpcausal.errors import SchemaError
from dpcausal.queries.metric_moments import MetricColumn, Residual
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, column_from_dict, column_to_dict
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.validation import build, check_keys, is_number

MetricKind = Literal["mean", "proportion", "ratio"]

_TABLES = ("column", "denominator", "covariate")
_TEXTS = ("unit", "description", "owner")
_LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class Earlier(metaclass=Constructor):
    """What an earlier release, or public knowledge, says of a metric of two columns. It is public.

    With it, one number for each unit is added up, column less slope times the other column, in place of two numbers and
    their product: there is less to hide, between narrower bounds.

    Attributes:
        slope: For a ratio the earlier ratio; with a covariate the slope on it. Any slope gives an effect that is right
            as long as few units are beyond the bounds; a good one gives a narrow interval.
        low: The lower bound of column less slope times the other; what is below counts as the bound.
        high: The upper bound.
        centre: With a covariate, its earlier mean: arms' means and lifts rest on it, the difference does not. A ratio
            has none, since the mean of its denominator is released: the denominator must be a metric too.

    Example:
        >>> views = Real("views", 0, 100, missing=0)
        >>> earlier = Earlier(slope=0.1, low=-4, high=6)
        >>> print(Metric(Real("clicks", 0, 50, missing=0), denominator=views, earlier=earlier).residual_in_words)
        clicks less 0.1 times views, held between -4 and 6
    """

    _example = "Earlier(slope=0.1, low=-4, high=6)"

    slope: float
    low: float
    high: float
    centre: float | None = None

    def __post_init__(self) -> None:
        numbers = self.slope, self.low, self.high, 0.0 if self.centre is None else self.centre
        if not all(map(is_number, numbers)) or not self.low < self.high:
            raise SchemaError(
                problem=f"slope, low, high and centre must be numbers, with low < high, not {self!r}"[:300],
                hint="take them from an earlier scorecard, which is public: Earlier.ratio(effect, denominator).",
            )

    @classmethod
    def ratio(cls, effect: Effect, denominator: float, *, spread: float = 5.0) -> Self:
        """Return what the effect of a ratio in an earlier scorecard says of it.

        Args:
            effect: The effect, as `Scorecard.effect` returns it.
            denominator: The earlier mean of the denominator, which is a metric of its own.
            spread: How many standard deviations of the difference its bounds are apart from 0.
        """
        if (
            effect.arm_sizes is None
            or not effect.sampling_sd
            or "denominator" not in effect.estimator.get("metric", ())
        ):
            raise SchemaError(
                expected="the effect of a ratio metric, with sampling error, means and sizes of its arms",
                got=f"one of {effect.outcome}",
                hint='take it from a scorecard: scorecard.effect("clicks per views").',
            )
        sizes = dict(zip(effect.arm_sizes.names, effect.arm_sizes.values, strict=True))
        parts = sum(1 / max(sizes[arm], 1.0) for arm in effect.arms)
        bound = spread * effect.sampling_sd * abs(denominator) / math.sqrt(parts)
        return cls(slope=effect.compared_means().values[0], low=-bound, high=bound)


@dataclass(frozen=True, kw_only=True)
class _Declared:
    """The parts of a metric that have defaults."""

    denominator: MetricColumn | None = None
    covariate: MetricColumn | None = None
    earlier: Earlier | None = None
    name: str = ""
    weight: float = 1.0
    lower_is_better: bool = False
    unit: str = ""
    description: str = ""
    owner: str = ""


@dataclass(frozen=True)
class Metric(_Declared, metaclass=Constructor):
    """A metric of an experiment: the mean of a column, a proportion, or a ratio of two sums.

    The bounds of a column are its cap: values beyond count as the bound, so a mean is a capped mean. A ratio metric is
    the sum of one column over the sum of another, such as clicks per view; each unit is a user, or a cluster where
    clusters were randomised, with sums over its members. An experiment needs `missing` in both columns: as what a
    missing value counts, often 0.

    Attributes:
        column: What is averaged: a `Real` with public bounds, or a `Binary` for a proportion; the numerator of a ratio.
        denominator: What the sum is divided by, for a ratio metric.
        covariate: The same or a similar number from before the experiment, to reduce variance (CUPED). Not for a ratio.
        earlier: What an earlier release says of a ratio or of a metric with a covariate, for less noise.
        name: What to call the metric; the column's name, or "clicks per views", if left out.
        weight: Its share of the budget, relative to the other metrics.
        lower_is_better: Whether a decrease is an improvement.
        unit: The unit of its numbers, such as EUR; none for a proportion.
        description: What it measures, over which time.
        owner: Who answers questions about it.

    Example:
        >>> Metric(Real("clicks", 0, 50), denominator=Real("views", 0, 100)).label
        'clicks per views'
        >>> Metric(Binary("bought")).kind
        'proportion'
    """

    _example = 'Metric(Real("revenue", 0, 200, missing=0)), or Metric(clicks, denominator=views) for a ratio'

    column: MetricColumn

    def __post_init__(self) -> None:
        columns = (self.column, *(each for each in (self.denominator, self.covariate) if each is not None))
        if not all(isinstance(each, Real | Binary) for each in columns):
            raise SchemaError(
                expected="columns of a metric that are a Real or a Binary",
                got=repr(columns)[:200],
                hint='write for instance Metric(Real("revenue", 0, 200, missing=0)).',
            )
        if self.denominator is not None and self.covariate is not None:
            raise SchemaError(
                expected="a ratio metric without a covariate",
                got=f"{self.label!r} with the covariate {self.covariate.name!r}",
                hint="adjust the numerator and the denominator as metrics of their own, or leave the covariate out.",
            )
        if self.earlier is not None and (
            len(columns) == 1 or (self.earlier.centre is None) != (self.denominator is not None)
        ):
            raise SchemaError(
                problem="earlier= is for a metric with a covariate, whose earlier mean is the centre, or for a ratio, "
                f"which has no centre, not {self.earlier!r}"[:400],
                hint="a metric of one column takes narrower bounds from an earlier release: Real(…, low, high).",
            )
        for_models = any(isinstance(each, Real) and (each.indicator or each != each.measured) for each in columns)
        if for_models or len({each.name for each in columns}) != len(columns):
            raise SchemaError(
                expected="different columns without indicator, typical and transform",
                got=f"columns {', '.join(each.name for each in columns)} of {self.label!r}",
                hint="leave them out: a metric is in its own unit, and missing= says what a missing value counts as.",
            )
        if not is_number(self.weight) or self.weight <= 0 or not isinstance(self.lower_is_better, bool):
            raise SchemaError(
                expected="a positive weight, and lower_is_better true or false",
                got=f"{self.weight!r} and {self.lower_is_better!r} for {self.label!r}",
                hint="leave them out for equal weights and metrics that should rise.",
            )
        words = (self.label, *(getattr(self, text) for text in _TEXTS))
        if not all(isinstance(each, str) and len(each) <= _LONGEST for each in words):
            raise SchemaError(
                expected=f"a name, unit, description and owner of at most {_LONGEST} characters",
                got=repr(words)[:200],
                hint="write them between quotes.",
            )
        check_plain_text("texts of a metric", words)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, one or two, as `MetricMoments` has them."""
        return tuple(each.name for each in self.declared)

    @property
    def declared(self) -> tuple[MetricColumn, ...]:
        """The columns that are added up: those in the table, or the one that is made of both."""
        if self.residual is not None:
            return (Real(self.residual.label, self.residual.low, self.residual.high),)
        return self.in_table

    @property
    def in_table(self) -> tuple[MetricColumn, ...]:
        """The columns in the table."""
        second = self.denominator or self.covariate
        return (self.column, *([second] if second else []))

    @property
    def names_in_table(self) -> tuple[str, ...]:
        """The names of the columns in the table."""
        return tuple(each.name for each in self.in_table)

    @property
    def residual(self) -> Residual | None:
        """With `earlier`: the column less the slope times the other one."""
        if self.earlier is None:
            return None
        one, other = self.names_in_table
        slope, low, high = self.earlier.slope, self.earlier.low, self.earlier.high
        return Residual(f"{one} less {slope!r} {other} from {low!r} to {high!r}", one, other, slope, low, high)

    @property
    def residual_in_words(self) -> str:
        """What is added up for each unit, in words; empty without `earlier`."""
        if self.residual is None:
            return ""
        _, one, other, slope, low, high = self.residual
        return f"{one} less {slope:g} times {other}, held between {low:g} and {high:g}"

    @property
    def without_missing(self) -> tuple[str, ...]:
        """Which of its columns do not say what a missing value counts as; a covariate need not."""
        columns = (each for each in (self.column, self.denominator) if each is not None)
        return tuple(each.name for each in columns if each.missing is None)

    def missing_handling(self, schema: Schema) -> tuple[str, ...]:
        """Return as what missing values of its columns count, in words; nothing of a total, which is never missing."""
        never = (*(schema.unit.added if schema.unit else ()), *(column.name for column in schema.required_columns))
        columns = (each for each in (self.column, self.denominator) if each is not None and each.name not in never)
        return tuple(f"a missing {each.name} counted as {each.missing_value}" for each in columns)

    @property
    def label(self) -> str:
        """What to call it."""
        return self.name or " per ".join(each.name for each in (self.column, self.denominator) if each)

    @property
    def kind(self) -> MetricKind:
        """What it is: a mean, a proportion or a ratio."""
        if self.denominator is not None:
            return "ratio"
        return "proportion" if isinstance(self.column, Binary) else "mean"

    def to_dict(self) -> dict[str, Any]:
        """Return the metric as plain values, without what is at its default."""
        document: dict[str, Any] = {"name": self.name} if self.name else {}
        document |= {"weight": self.weight} if self.weight != 1 else {}
        document |= {"lower_is_better": True} if self.lower_is_better else {}
        document |= {"earlier": _stated(asdict(self.earlier))} if self.earlier else {}
        document |= {text: getattr(self, text) for text in _TEXTS if getattr(self, text)}
        tables = {table: getattr(self, table) for table in _TABLES}
        return document | {table: column_to_dict(column) for table, column in tables.items() if column is not None}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the metric that `to_dict` wrote."""
        optional = (*_TABLES[1:], "earlier", "name", "weight", "lower_is_better", *_TEXTS)
        check_keys("metric", document, ("column",), optional)
        columns = {table: column_from_dict(table, document[table]) for table in _TABLES if table in document}
        earlier = {"earlier": build("earlier", Earlier, document["earlier"])} if "earlier" in document else {}
        return cls(**{**document, **columns, **earlier})


def _stated(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stated: TOML has no None."""
    return {key: value for key, value in words.items() if value is not None}
