"""What each query would be expected to give, by public numbers only."""

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from dpcausal.calibration import smoothness
from dpcausal.columns import Real
from dpcausal.errors import QueryError
from dpcausal.expectations import Expectations
from dpcausal.guarantee import Guarantee
from dpcausal.queries import (
    GRID,
    ArmMoments,
    ArmTotals,
    AugmentedScores,
    BlockEffects,
    CovariateSums,
    Cut,
    EffectMoments,
    EffectWeights,
    InfluenceEffects,
    MatchedContrast,
    NoisyMatchedContrast,
    ObjectivePerturbedLogistic,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Query,
    RegressionMoments,
    ScoreCounts,
    StratumContrasts,
    StratumCounts,
    StratumMatches,
    SubgroupMoments,
    WeightedArms,
    WeightedCovariates,
)
from dpcausal.queries.basis import basis_values
from dpcausal.queries.cuts import bins
from dpcausal.queries.features import covariates_named, feature_names
from dpcausal.queries.profiles import spread_out
from dpcausal.queries.query import value_names
from dpcausal.queries.regression_moments import CONSTANT, FIRST_FEATURE, OUTCOME


@singledispatch
def expected(query: Query, expecting: Expectations, guarantee: Guarantee) -> dict[str, float]:  # noqa: ARG001
    """What a query would be expected to give without noise and without an effect, in the schema's own terms."""
    raise QueryError(
        expected="a query that can be rehearsed", got=query.name, hint="only listed questions may be asked of a table."
    )


@expected.register
def _(_: ArmTotals | ArmMoments, expecting: Expectations, __: Guarantee) -> dict[str, float]:
    low, high = expecting.schema.outcome_bounds
    mean = expecting.mean - (low + high) / 2
    each = {"total": mean, "deficit": ((high - low) / 2) ** 2 - mean**2 - expecting.sd**2, "size": 1.0}
    sizes = expecting.expected_sizes
    values = {f"{name}_{arm}": value * sizes[arm] for name, value in each.items() for arm in (0, 1)}
    return values | {"compared": float(expecting.compared)}


@expected.register
def _(query: StratumContrasts, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if every stratum had the same share of treated units."""
    return {"effect": 0.0} | _strata(query.by, query.cap, expecting)


@expected.register
def _(query: StratumMatches, expecting: Expectations, guarantee: Guarantee) -> dict[str, float]:
    """As if one stratum, which decides on the noise, had twice the average in one arm and a third in the other."""
    values = {"effect": 0.0} | _strata(query.by, query.weight_cap, expecting)
    if query.bound == "smooth":
        beta = smoothness(guarantee.epsilon * float(query.shares["effect"]), guarantee.delta)
        strata = math.prod(bins(query.by, expecting.schema))
        few, many = min(expecting.expected_sizes) / strata / 3, 2 * max(expecting.expected_sizes) / strata
        moves = (
            2 + 2 * (many + k) / max(few - k, 1.0)
            for k in range(min(expecting.compared, math.ceil(10 / beta), 100_000))
        )
        bound = max(math.exp(-beta * k) * min(move, expecting.compared + 1) for k, move in enumerate(moves))
        values["log_sensitivity"] = math.log(2 * GRID * bound) / beta
    return values


def _strata(by: Sequence[Cut], cap: int, expecting: Expectations) -> dict[str, float]:
    c, t = expecting.expected_sizes
    size = min(t, cap * c) + min(c, cap * t)
    freedom = expecting.compared - min(2 * math.prod(bins(by, expecting.schema)), expecting.compared / 2)
    sums = {"size": size, "squares": freedom * expecting.sd**2, "weight_square_sum": size**2 * (1 / t + 1 / c)}
    return sums | {"compared": float(expecting.compared)}


@expected.register
def _(
    query: OutputPerturbedLogistic | ObjectivePerturbedLogistic, expecting: Expectations, _: Guarantee
) -> dict[str, float]:
    """As if covariates had nothing to do with treatment."""
    c, t = expecting.expected_sizes
    values = dict.fromkeys(feature_names(query.covariates, expecting.schema), 0.0)
    return values | {"intercept": math.log(t / c) * math.sqrt(len(query.covariates) + 1)}


@expected.register
def _(query: WeightedArms, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if every unit had the score that the intercept alone gives."""
    c, t = expecting.expected_sizes
    weights = _weights(query.estimand, _score(query.coefficients, query.covariates), query.clip)
    low, high = expecting.schema.outcome_bounds
    mean = expecting.mean - (low + high) / 2
    control, treated = c * weights[0], t * weights[1]
    return {
        "weighted_difference": (treated - control) * mean,
        "weighted_sum": (treated + control) * mean,
        "weight_difference": treated - control,
        "weight_sum": treated + control,
        "deficit": (treated + control) * (((high - low) / 2) ** 2 - mean**2 - expecting.sd**2),
        "weight_square_sum": control * weights[0] + treated * weights[1],
        "compared": float(expecting.compared),
    }


def _score(coefficients: Sequence[float], covariates: Sequence[str]) -> float:
    """The score that the intercept alone gives."""
    return 1 / (1 + math.exp(-min(max(coefficients[0] / math.sqrt(len(covariates) + 1), -30), 30)))


def _weights(estimand: str, score: float, clip: float) -> tuple[float, float]:
    """What a unit of each arm weighs."""
    score = min(max(score, clip), 1 - clip)
    return {
        "ATE": (1 / (1 - score), 1 / score),
        "ATT": (score / (1 - score), 1.0),
        "ATC": (1.0, (1 - score) / score),
        "ATO": (score, 1 - score),
    }[estimand]


@expected.register
def _(query: RegressionMoments, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if covariates explained a quarter of the outcome's variance and were all the confounding.

    Each feature has an equal part in both; none has to do with another.
    """
    variances: list[float] = []
    for column in covariates_named(query.covariates, expecting.schema):
        if isinstance(column, Real):
            variances.append(expecting.covariate_sd**2)
        else:
            share = 1 / len(column.values)
            variances += [4 * share * (1 - share)] * (len(column.values) - 1)
    count = len(variances)
    low, high = expecting.schema.outcome_bounds
    sizes = expecting.expected_sizes
    squares = [1.0, ((high - low) / 2) ** 2, *(1.0 for _ in variances)]
    tables = []
    for arm in (0, 1):
        apart = (-1, 1)[arm] * sizes[1 - arm] / expecting.compared * expecting.confounding
        line = [1.0, expecting.mean - (low + high) / 2 + apart * expecting.sd]
        line += [2 * apart * math.sqrt(variance / count) for variance in variances]
        table = np.outer(line, line)
        table[OUTCOME, OUTCOME] += expecting.sd**2
        for place, variance in enumerate(variances, start=FIRST_FEATURE):
            table[place, place] += variance
            table[OUTCOME, place] += expecting.sd / 2 * math.sqrt(variance / count)
        tables.append(sizes[arm] * table)
    values = {}
    names = (at.name for at in query.sensitivity(expecting.schema, "record", "l1").coordinates)
    for name, moment in zip(names, query.moments(expecting.schema), strict=True):
        table = tables[1] - tables[0] if moment.signed else tables[1] + tables[0]
        value = float(table[moment.first, moment.second])
        values[name] = float(table[CONSTANT, CONSTANT]) * squares[moment.first] - value if moment.deficit else value
    return values


@expected.register
def _(query: AugmentedScores, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if regressions explained a quarter of the variance and every unit had the propensity of its arm's share."""
    c, t = expecting.expected_sizes
    n, score = expecting.compared, min(max(t / expecting.compared, query.clip), 1 - query.clip)
    low, high = expecting.schema.outcome_bounds
    largest = (query.limit * (high - low) / 2) ** 2
    targets = {"ATE": n, "ATT": t, "ATO": n * score * (1 - score)}[query.estimand]
    control, treated = _weights(query.estimand, score, query.clip)
    squares = min((c * control**2 + t * treated**2) * expecting.sd**2 * 3 / 4, n * largest)
    squared_targets = {"ATE": float(n), "ATT": float(t), "ATO": n * (score * (1 - score)) ** 2}[query.estimand]
    sums = {
        "score": 0.0,
        "target_sum": float(targets),
        "deficit": n * largest - squares,
        "product": 0.0,
        "target_square_sum": squared_targets,
    }
    return sums | {"clipped": 0.0}


@expected.register
def _(query: OutcomesBelow, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if outcomes were normal with the expected mean and standard deviation."""
    distance = (query.threshold - expecting.mean) / max(expecting.sd, 1e-300)
    return {"below": expecting.n * (1 + math.erf(distance / math.sqrt(2))) / 2}


@expected.register
def _(query: MatchedContrast | NoisyMatchedContrast, expecting: Expectations, guarantee: Guarantee) -> dict[str, float]:
    """As if, without a limit, the busiest units served ten times as often as their arm does on average."""
    n, (c, t) = expecting.compared, expecting.expected_sizes
    few, many = min(c, t), max(c, t)
    most = 10 * many / few
    chosen = min(math.sqrt(guarantee.epsilon * query.error * many * most / math.sqrt(2)), most)
    limit = max(chosen, many / few, 1.0) if query.limit is None else float(query.limit)
    return {
        "effect": 0.0,
        "squares": 3 * n / 4 * expecting.sd**2,
        "freedom": 3 * n / 4,
        "largest": (1 + limit) / n,
        "squared": 1.2 * (1 / c + 1 / t),
        "limit_0": limit,
        "limit_1": limit,
        "matched": 1.0,
    }


@expected.register
def _(query: SubgroupMoments, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if all groups were of one size."""
    whole = expected(ArmMoments(), expecting, Guarantee(epsilon=1.0))
    groups = query.cells.names(expecting.schema)
    return {f"{name} of {group}": value / len(groups) for group in groups for name, value in whole.items()}


@expected.register
def _(query: EffectMoments, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if covariates were spread evenly, explained a quarter of the outcome's variance and not the treatment."""
    names = query.basis.names(expecting.schema)
    values = basis_values(query.basis, spread_out(query.basis.reads(expecting.schema), 1024), expecting.schema)
    n, share = (
        expecting.compared,
        min(max(expecting.expected_sizes[1] / expecting.compared, query.clip), 1 - query.clip),
    )
    overlap = share * (1 - share)
    products = n * (overlap if query.learner == "residual" else 1.0) * values.T @ values / len(values)
    low, high = expecting.schema.outcome_bounds
    largest = (query.limit * (high - low) / 2) ** 2
    squares = min(expecting.sd**2 * 3 / 4 / (1.0 if query.learner == "residual" else overlap), largest)
    sums = {f"{names[i]} by {names[j]}": float(products[i, j]) for i, j in query.pairs(expecting.schema)}
    sums |= {f"effect * {name}": 0.0 for name in names}
    return sums | {"deficit": n * (largest - squares), "clipped": 0.0}


@expected.register
def _(query: EffectWeights, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    return dict.fromkeys(query.basis.names(expecting.schema), 0.0)


@expected.register
def _(query: BlockEffects, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if each block told the effect as well as a difference in means of twice as many units in each arm does."""
    low, high = expecting.schema.outcome_bounds
    sizes = [max(size / query.blocks, 1.0) for size in expecting.expected_sizes]
    largest = (query.limit * (high - low) / 2) ** 2
    spread = min(2 * expecting.sd**2 * (1 / sizes[0] + 1 / sizes[1]), largest)
    deficits = {f"deficit of {name}": query.blocks * (largest - spread) for name in query.names}
    return dict.fromkeys(query.names, 0.0) | deficits


@expected.register
def _(query: InfluenceEffects, expecting: Expectations, _: Guarantee) -> dict[str, float]:  # noqa: ARG001
    return dict.fromkeys(query.names, 0.0)


@expected.register
def _(query: StratumCounts, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if all strata were of one size."""
    bins, sizes = query.bins(expecting.schema), expecting.expected_sizes
    return {f"size_{arm} of {name}": sizes[arm] / len(bins) for name in bins for arm in (0, 1)}


@expected.register
def _(query: ScoreCounts, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if every unit had the score that the intercept alone gives."""
    bins, sizes = query.bins(), expecting.expected_sizes
    found = bins[int(np.searchsorted(query.edges, _score(query.coefficients, query.covariates), side="right"))]
    return {f"size_{arm} of {name}": sizes[arm] * float(name == found) for name in bins for arm in (0, 1)}


@expected.register
def _(query: CovariateSums, expecting: Expectations, _: Guarantee) -> dict[str, float]:
    """As if covariates had nothing to do with treatment, and listed values were equally frequent."""
    sizes, weights = expecting.expected_sizes, (1.0, 1.0)
    if isinstance(query, WeightedCovariates):
        weights = _weights(query.estimand, _score(query.coefficients, query.score), query.clip)
    values = {"size_1": float(sizes[1]), "compared": float(expecting.compared)}
    for arm in (0, 1):
        weight_sum = sizes[arm] * weights[arm]
        values |= {f"weight_sum_{arm}": weight_sum, f"weight_square_sum_{arm}": weight_sum * weights[arm]}
        for column in covariates_named(query.covariates, expecting.schema):
            listed = () if isinstance(column, Real) or len(column.values) == 2 else value_names(column)
            values |= {f"total_{arm} of {column.name}": 0.0}
            values |= {f"total_{arm} of {name}": weight_sum / len(listed) for name in listed}
            values |= {f"deficit_{arm} of {column.name}": weight_sum * (1 - expecting.covariate_sd**2)}
    return values
