"""A synthetic population that is as public expectations say. Nobody is in it.

Queries are answered from it by the functions that answer them in a vault, so that a plan cannot disagree with what is
then asked. Its size does not depend on n: a sum over n units is the sum over it, times n over its size.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import NormalDist
from typing import Self, cast

import numpy as np

from dpcausal.guarantee import Guarantee
from dpcausal.queries import (
    GRID,
    CellMoments,
    ChangeMoments,
    Coordinate,
    CutoffMoments,
    EventCounts,
    InstrumentMoments,
    LookMetrics,
    MetricMoments,
    Norm,
    Query,
    ReceivedMoments,
    StratumCounts,
    SubgroupMoments,
    WeightedCounts,
    WeightedCovariates,
)
from dpcausal.queries.look_moments import norm_of
from dpcausal.schema.columns import Column, Indicator
from dpcausal.schema.expectations import MISSING, Expectations
from dpcausal.schema.real import Real
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.context import AnswerContext, Draws
from dpcausal.vault.engines import OUTSIDE
from dpcausal.vault.engines.memory import MemoryEngine

_SIZE, _LARGEST, _FEWEST = 2**14, 2**20, 64
"""The number of units in the population; more where an arm would have fewer than the last number, up to the second."""

_EXPLAINED = 0.25
"""The share of the outcome's variance within an arm that covariates explain, where a query uses them."""

_RECEIVED = (0.125, 0.875)
"""The share that receives the treatment in each arm: three quarters of units are compliers."""

_NORMAL = NormalDist()
_OUTCOME = ""
"""The outcome's name among the columns of a role; no covariate is called so."""


def expected_sums(
    query: Query, expectations: Expectations, coordinates: Iterable[Coordinate], guarantee: Guarantee
) -> dict[str, float]:
    """Return the expected answer to a query that adds up units, in the schema's units."""
    parts = {part.name: getattr(expectations, part.name) for part in fields(Expectations)}
    smallest = min(share for share in expectations.arm_shares if share)
    size = min(max(_SIZE, math.ceil(_FEWEST / smallest)), _LARGEST)
    sums = _sums(query, Expectations(**parts | {"n": size}), norm_of(guarantee))  # type: ignore[arg-type]
    return {at.name: sums[at.name] * at.tick * expectations.n / size for at in coordinates}


@lru_cache(1024)
def _sums(query: Query, expectations: Expectations, norm: Norm) -> Mapping[str, int]:
    engine = _engine(expectations, _Roles.of(query, expectations))
    # A sum depends on nothing else of the guarantee, and draws nothing.
    guarantee = Guarantee(epsilon=1.0, delta=0.0 if norm == "l1" else 1e-6)
    context = AnswerContext(query, expectations.schema, engine, guarantee, cast("Draws", None))
    return ANSWERS[type(query)](context).ticks


@dataclass(frozen=True)
class _Roles:
    """What a query uses columns as.

    Attributes:
        predictors: Covariates that explain the outcome.
        received: The covariate that holds the treatment received, if any.
        measures: Other numbers, each with an earlier one, or the outcome, that it correlates with; with itself where
            it correlates with none.
        repeat: Whether the other numbers are the outcome at other times.
        time: Whether the outcome is a time of follow-up.
    """

    predictors: tuple[str, ...] = ()
    confound: bool = True
    received: str = ""
    measures: tuple[tuple[str, str], ...] = ()
    repeat: bool = False
    independent: tuple[str, ...] = ()
    time: bool = False

    @classmethod
    def of(cls, query: Query, expectations: Expectations) -> Self:
        """Return the roles that a query gives to columns."""
        schema = expectations.schema
        read = {column.name for column in query.reads(schema)}
        names = tuple(column.name for column in schema.covariates if column.name in read)
        roles = cls(predictors=names)
        match query:
            case ChangeMoments(before=before, after=after):
                roles = cls(measures=(*([(after, _OUTCOME)] if after else []), (before, after)), repeat=True)
            case MetricMoments(used=used):
                measures = _measures([name for name in names if name in used], _pairs(query), schema.outcome.name)
                roles = cls(measures=measures, independent=tuple(name for name in names if name not in used))
            case LookMetrics(cohorts=cohorts):
                metrics = _measures(_without(cohorts.name, names), _pairs(query.moments), schema.outcome.name)
                roles = cls(measures=metrics, independent=(cohorts.name,))
            case ReceivedMoments(received=received) | InstrumentMoments(received=received):
                roles = cls(predictors=_without(received, names), received=received)
            case WeightedCounts(event=event):
                independent = (event,) if event else ()
                roles = cls(predictors=_without(event, names), independent=independent, time=bool(event))
            case EventCounts():
                roles = cls(independent=names, time=True)
            case CutoffMoments():
                roles = cls(predictors=names, confound=False)
            case WeightedCovariates(score=score):
                roles = cls(predictors=tuple(score), independent=tuple(name for name in names if name not in score))
            case CellMoments() | SubgroupMoments() | StratumCounts():
                roles = cls(independent=names)
        return roles


def _without(name: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(each for each in names if each != name)


def _pairs(query: MetricMoments) -> list[tuple[str, str]]:
    """Return which two columns of a metric belong together."""
    return [*query.products, *((each.column, each.other) for each in query.residuals)]


def _measures(names: Iterable[str], products: Iterable[tuple[str, str]], outcome: str) -> tuple[tuple[str, str], ...]:
    """Return metrics, each with an earlier one that it is multiplied with."""
    found = {outcome: _OUTCOME}
    for name in names:
        others = [one if other == name else other for one, other in products if name in (one, other)]
        known = [_OUTCOME if other == outcome else other for other in others if other in found]
        found[name] = known[0] if known else name
    return tuple((name, other) for name, other in found.items() if name != outcome)


@lru_cache(16)
def _engine(expectations: Expectations, roles: _Roles) -> MemoryEngine:
    """Return the population as those see it who use its columns in some roles."""
    schema = expectations.schema
    arms = _arms(expectations)
    first, second = schema.treatment.compared_places
    treatment = np.select([arms == first, arms == second], [0, 1], OUTSIDE)
    scores = _scores(expectations, roles, treatment, arms)
    columns = {"treatment": treatment, "arm": arms, "outcome": _outcomes(scores[_OUTCOME], expectations, roles)}
    for place, column in enumerate(schema.covariates):
        if column.name in scores:
            columns[f"covariate_{place}"] = _covariate(column, scores[column.name], expectations, roles)
    return MemoryEngine({name: codes.astype(np.int64) for name, codes in columns.items()})


def _arms(expectations: Expectations) -> Int64s:
    """Return the place of every unit's arm; behind the last one for those in none."""
    ends = np.rint(np.cumsum(expectations.arm_shares) * expectations.n)
    return np.searchsorted(ends, np.arange(expectations.n), side="right").astype(np.int64)


def _scores(expectations: Expectations, roles: _Roles, treatment: Int64s, arms: Int64s) -> dict[str, Array]:
    """Return a normal score for the outcome and for each covariate that has a role.

    Within an arm it has a variance of 1, and covariates are independent.
    """
    predictors, measures = roles.predictors, dict(roles.measures)
    names = [_OUTCOME, *predictors, *roles.independent, *measures, *([roles.received] if roles.received else [])]
    scores = dict(zip(names, _independent(len(names), arms), strict=True))
    if predictors:
        apart = expectations.apart / math.sqrt(len(predictors)) * roles.confound
        share = expectations.treated_share
        shifts = apart * np.select([treatment == 0, treatment == 1], [-share, 1 - share], 0.0)
        columns = [column for column in expectations.schema.covariates if column.name in predictors]
        for column in columns:  # what is cut into codes is moved further, so that the codes are as far apart
            scores[column.name] += shifts * (1.0 if isinstance(column, Real) else math.sqrt(math.pi / 2))
        lines = np.array([_standardised(column, scores[column.name], expectations) for column in columns])
        slopes = _slopes(len(columns), expectations, roles)
        scores[_OUTCOME] = slopes @ lines + math.sqrt(1 - float(slopes @ slopes)) * scores[_OUTCOME]
    scores[_OUTCOME] = _smoothed(scores[_OUTCOME], arms)
    alike = expectations.correlation
    for name, other in measures.items():
        if other != name:
            scores[name] = alike * scores[other] + math.sqrt(1 - alike**2) * scores[name]
    if roles.received:
        edges = [-_NORMAL.inv_cdf(share) for share in _RECEIVED]
        scores[roles.received] -= np.select([treatment == 0, treatment == 1], edges, 0.0)
    return scores


def _independent(count: int, arms: Int64s) -> Array:
    """Return so many normal numbers of each unit: of mean 0, variance 1 and correlation 0 in each arm."""
    table = np.random.default_rng(0).standard_normal((count, len(arms)))  # a public seed: these protect nothing
    for arm in np.unique(arms):
        part = table[:, arms == arm]
        part = part - part.mean(axis=1, keepdims=True)
        if part.shape[1] > 2 * count:
            part = np.linalg.solve(np.linalg.cholesky(np.cov(part, bias=True).reshape(count, count)), part)
        table[:, arms == arm] = part
    return np.asarray(table)


def _smoothed(scores: Array, arms: Int64s) -> Array:
    """Return scores whose distribution within an arm is normal to the last unit, in the same order."""
    found = scores.copy()
    for arm in np.unique(arms):
        inside = np.flatnonzero(arms == arm)
        inside = inside[np.argsort(scores[inside])]
        found[inside] = scores[inside].mean() + _quantiles(len(inside))
    return found


@lru_cache(16)
def _quantiles(count: int) -> Array:
    """Return so many quantiles of the normal distribution, equally far apart."""
    return np.array([_NORMAL.inv_cdf((place + 0.5) / count) for place in range(count)])


def _slopes(count: int, expectations: Expectations, roles: _Roles) -> Array:
    """Return the slopes of the outcome's score on so many predictors.

    Along the direction in which arms differ the slope follows from confounding. What else predictors explain is across
    that direction.
    """
    apart = expectations.apart * roles.confound
    along = np.full(count, 1 / math.sqrt(count))
    slope = expectations.confounding / apart if apart else math.sqrt(_EXPLAINED)
    across = np.where(np.arange(count) % 2, -1.0, 1.0)
    across -= along * (along @ across)
    length = float(np.linalg.norm(across))
    rest = math.sqrt(max(_EXPLAINED - slope**2, 0.0))
    return np.asarray(slope * along + (rest / length * across if length > 1e-9 else 0.0))


def _shares(column: Column, expectations: Expectations) -> Array:
    """Return the expected share of each value of a listed covariate."""
    if isinstance(column, Indicator):
        return np.array([1 - MISSING, MISSING])
    share = expectations.expected_share(column)
    if share is not None:
        return np.array([1 - share, share])
    return np.full(len(column.values), 1 / len(column.values))  # type: ignore[union-attr]


def _codes(column: Column, scores: Array, expectations: Expectations) -> Int64s:
    """Return the places of a listed covariate's values, cut from normal scores."""
    edges = [_NORMAL.inv_cdf(share) for share in np.cumsum(_shares(column, expectations))[:-1].tolist()]
    return np.searchsorted(edges, scores).astype(np.int64)


def _standardised(column: Column, scores: Array, expectations: Expectations) -> Array:
    """Return a predictor as a number of mean 0 and variance 1 among everybody but for what arms differ by."""
    if isinstance(column, Real):
        return scores
    shares = _shares(column, expectations)
    places = np.arange(len(shares)) - shares @ np.arange(len(shares))
    return np.asarray((places / math.sqrt(shares @ places**2))[_codes(column, scores, expectations)])


def _outcomes(scores: Array, expectations: Expectations, roles: _Roles) -> Int64s:
    """Return outcomes in ticks."""
    low, high = expectations.schema.outcome_bounds
    mean, sd = (expectations.mean - low) / (high - low), expectations.sd / (high - low)
    if not isinstance(expectations.schema.outcome, Real):
        return _ticks(_is_yes(scores, mean))
    return _ticks(_times(scores, mean) if roles.time else _spread(scores, mean, sd))


def _covariate(column: Column, scores: Array, expectations: Expectations, roles: _Roles) -> Int64s:
    """Return a covariate as coercion would make it."""
    repeated = roles.repeat and column.name in dict(roles.measures)
    if not isinstance(column, Real):
        return _is_yes(scores, expectations.mean).astype(np.int64) if repeated else _codes(column, scores, expectations)
    width = column.high - column.low
    if repeated:
        mean = min(max((expectations.mean - column.low) / width, 0.0), 1.0)
        return _ticks(_spread(scores, mean, expectations.sd / width))
    middle, spread = expectations.covariate_middle(column), expectations.covariate_spread(column)
    if column.name in dict(roles.measures):
        return _ticks(_spread(scores, (1 + middle) / 2, spread / 2))
    return _ticks((1 + np.clip(middle + spread * scores, -1, 1)) / 2)


def _is_yes(scores: Array, share: float) -> Array:
    """Return 1 for this share of units, those of the highest scores, and 0 for others."""
    return np.asarray(scores > -_NORMAL.inv_cdf(share), dtype=float) if 0 < share < 1 else np.full(len(scores), share)


def _times(scores: Array, mean: float) -> Array:
    """Return exponential times of this mean, those beyond 1 counted as 1."""
    low, high = 1e-6, 1e6
    for _ in range(100):
        rate = math.sqrt(low * high)
        low, high = (rate, high) if -math.expm1(-rate) / rate > mean else (low, rate)
    reached = np.array([math.erfc(score / math.sqrt(2)) / 2 for score in scores.tolist()])
    return np.asarray(np.minimum(-np.log(reached) / low, 1.0))


def _ticks(shares: Array) -> Int64s:
    """Return numbers from 0 to 1 as ticks."""
    return np.rint((2 * shares - 1) * GRID).astype(np.int64)


def _spread(scores: Array, mean: float, sd: float) -> Array:
    """Return numbers from 0 to 1 of this mean and standard deviation: their logits are normal.

    In the middle of the range they are nearly normal, near a bound lognormal from there.
    """
    most = math.sqrt(mean * (1 - mean))
    if sd <= 1e-9 or most <= 1e-9:
        return np.full(len(scores), mean)
    middle, width = _logit_normal(mean, min(sd, 0.99 * most))
    return np.asarray(_expit(middle + width * scores))


@lru_cache(256)
def _logit_normal(mean: float, sd: float) -> tuple[float, float]:
    """Return the mean and the standard deviation of normal logits of numbers with this mean and standard deviation."""
    scores = np.linspace(-9, 9, 361)
    masses = np.exp(-(scores**2) / 2)
    masses /= masses.sum()

    def middle_for(width: float, start: float) -> float:
        """Return the mean of the logits, by Newton's method within an interval that only shrinks."""
        low, high, middle = -60.0 - 8 * width, 60.0 + 8 * width, start
        for _ in range(60):
            numbers = _expit(middle + width * scores)
            excess, slope = float(masses @ numbers) - mean, float(masses @ (numbers * (1 - numbers)))
            low, high = (middle, high) if excess < 0 else (low, middle)
            newton = middle - excess / slope if slope > 0 else low
            last, middle = middle, newton if low < newton < high else (low + high) / 2
            if abs(middle - last) <= 1e-13 * max(abs(middle), 1.0):
                break
        return middle

    least, most = 1e-6, 1e3
    middle = middle_for(least, 0.0)
    for _ in range(40):
        width = math.sqrt(least * most)
        middle = middle_for(width, middle)
        squares = masses @ _expit(middle + width * scores) ** 2
        least, most = (least, width) if squares - mean**2 > sd**2 else (width, most)
    return middle_for(least, middle), least


def _expit(logits: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -700, 700))))
