"""An estimator run on no data: what it would ask, what that costs, and how wide its interval would be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from dpcausal.calibration import calibrate, smoothness
from dpcausal.columns import Real
from dpcausal.effect import number
from dpcausal.errors import QueryError, SchemaError
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
    ObjectivePerturbedLogistic,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Query,
    RegressionMoments,
    ScoreCounts,
    ScrambledContrast,
    StratumContrasts,
    StratumCounts,
    StratumMatches,
    SubgroupMoments,
    WeightedArms,
    WeightedCovariates,
)
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import spread_out
from dpcausal.queries.regression import CONSTANT, FIRST_FEATURE, OUTCOME
from dpcausal.queries.scores import covariates_named, feature_names
from dpcausal.queries.strata import bins
from dpcausal.release import Receipt, Release
from dpcausal.schema import Schema


@dataclass(frozen=True)
class Rehearsal:
    """A source without a table: every release is what would be expected, without noise but with its known size.

    Attributes:
        schema: What is public about the table to be.
        n: The number of units.
        treated_share: The share of them expected in the treated arm.
        outcome_mean: The outcome's expected mean; the middle of its bounds if left out.
        outcome_sd: The outcome's expected standard deviation within an arm; if left out, that of an outcome spread
            evenly over its bounds, or of a yes-or-no outcome with the expected mean.
        confounding: By how much of that standard deviation the arms' mean outcomes are expected to differ for reasons
            other than treatment; social scientists call 0.2 a small difference.
        covariate_sd: The expected standard deviation of covariates that are numbers, as a share of half their range.

    Example:
        >>> from dpcausal import Binary, DifferenceInMeans, Real, Schema
        >>> schema = Schema(treatment=Binary("treat"), outcome=Real("re78", 0, 60_000))
        >>> for n in (445, 5_000):
        ...     plan = DifferenceInMeans().estimate(Rehearsal(schema, n=n, outcome_sd=7_000), epsilon=1.0)
        ...     low, high = plan.interval(0.95)
        ...     print(n, round((high - low) / 2, -2))
        445 2100.0
        5000 400.0
    """

    schema: Schema
    n: int
    treated_share: float = 0.5
    outcome_mean: float | None = None
    outcome_sd: float | None = None
    confounding: float = 0.1
    covariate_sd: float = 1 / 3

    def __post_init__(self) -> None:
        low, high = self.schema.outcome_bounds
        mean, sd = self.mean, self.sd
        holds = (
            self.n >= 2
            and 0 < self.treated_share < 1
            and low <= mean <= high
            and 0 <= sd <= (high - low) / 2
            and 0 <= self.confounding <= 1
            and 0 < self.covariate_sd <= 1
        )
        if not holds:
            raise SchemaError(
                expected=f"n of at least 2, a treated share between 0 and 1, an outcome mean from {low:g} to {high:g}, "
                f"an outcome sd of at most {(high - low) / 2:g}, confounding from 0 to 1 and a covariate sd up to 1",
                got=f"n={self.n!r}, treated_share={self.treated_share!r}, outcome_mean={mean!r}, outcome_sd={sd!r}, "
                f"confounding={self.confounding!r}, covariate_sd={self.covariate_sd!r}",
                hint="these are your expectations, from the literature or a pilot; none may come from the table.",
            )

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The expected number of units in each arm where the schema declares arms public; otherwise None."""
        return None if self.schema.protects == "record" else self.expected_sizes

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed."""
        outcome = f"an outcome of mean {number(self.mean)} and standard deviation {number(self.sd)}"
        assumed = (f"rehearsed with {self.treated_share:.0%} of {self.n:,} units treated and {outcome}",)
        if not self.schema.covariates:
            return assumed
        spread = f"numbers among them have a standard deviation of {self.covariate_sd:.2g} half ranges"
        moved = f"the confounding they are about moves the difference by {self.confounding:g} standard deviations"
        return (
            *assumed,
            f"where covariates are used they explain a quarter of the outcome's variance; {spread}; {moved}",
        )

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """What the query would be expected to give, with the noise it would have and the price it would cost."""
        noise = calibrate(query, self.schema, guarantee)
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta)
        values = expected(query, self, guarantee)
        steps = tuple(round(values[at.name] / at.step) for at in noise.sensitivity.coordinates)
        return Release.of(query, guarantee, noise, steps, values, receipt)

    @property
    def mean(self) -> float:
        """The outcome's expected mean."""
        low, high = self.schema.outcome_bounds
        return (low + high) / 2 if self.outcome_mean is None else self.outcome_mean

    @property
    def sd(self) -> float:
        """The outcome's expected standard deviation within an arm."""
        low, high = self.schema.outcome_bounds
        if self.outcome_sd is not None:
            return self.outcome_sd
        if isinstance(self.schema.outcome, Real):
            return (high - low) / math.sqrt(12)
        return math.sqrt(max(self.mean * (1 - self.mean), 0.0))

    @property
    def expected_sizes(self) -> tuple[int, int]:
        """The expected number of units in each arm, at least one."""
        treated = min(max(round(self.n * self.treated_share), 1), self.n - 1)
        return self.n - treated, treated


@singledispatch
def expected(query: Query, rehearsal: Rehearsal, guarantee: Guarantee) -> dict[str, float]:  # noqa: ARG001
    """What a query would be expected to give without noise and without an effect, in the schema's own terms."""
    raise QueryError(
        expected="a query that can be rehearsed", got=query.name, hint="only listed questions may be asked of a table."
    )


@expected.register
def _(_: ArmTotals | ArmMoments, rehearsal: Rehearsal, __: Guarantee) -> dict[str, float]:
    low, high = rehearsal.schema.outcome_bounds
    mean = rehearsal.mean - (low + high) / 2
    each = {"total": mean, "deficit": ((high - low) / 2) ** 2 - mean**2 - rehearsal.sd**2, "size": 1.0}
    sizes = rehearsal.expected_sizes
    return {f"{name}_{arm}": value * sizes[arm] for name, value in each.items() for arm in (0, 1)}


@expected.register
def _(query: StratumContrasts, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if every stratum had the same share of treated units."""
    return {"effect": 0.0} | _strata(query.by, query.cap, rehearsal)


@expected.register
def _(query: StratumMatches, rehearsal: Rehearsal, guarantee: Guarantee) -> dict[str, float]:
    """As if one stratum, which decides on the noise, had twice the average in one arm and a third in the other."""
    values = {"effect": 0.0} | _strata(query.by, query.design_cap, rehearsal)
    if query.bound == "smooth":
        beta = smoothness(guarantee.epsilon * float(query.shares["effect"]), guarantee.delta)
        strata = math.prod(bins(query.by, rehearsal.schema))
        few, many = min(rehearsal.expected_sizes) / strata / 3, 2 * max(rehearsal.expected_sizes) / strata
        moves = (2 + 2 * (many + k) / max(few - k, 1.0) for k in range(min(rehearsal.n, math.ceil(10 / beta), 100_000)))
        bound = max(math.exp(-beta * k) * min(move, rehearsal.n + 1) for k, move in enumerate(moves))
        values["log_sensitivity"] = math.log(2 * GRID * bound) / beta
    return values


def _strata(by: Sequence[Cut], cap: int, rehearsal: Rehearsal) -> dict[str, float]:
    c, t = rehearsal.expected_sizes
    size = min(t, cap * c) + min(c, cap * t)
    freedom = rehearsal.n - min(2 * math.prod(bins(by, rehearsal.schema)), rehearsal.n / 2)
    return {"size": size, "squares": freedom * rehearsal.sd**2, "design": size**2 * (1 / t + 1 / c)}


@expected.register
def _(
    query: OutputPerturbedLogistic | ObjectivePerturbedLogistic, rehearsal: Rehearsal, _: Guarantee
) -> dict[str, float]:
    """As if covariates had nothing to do with treatment."""
    c, t = rehearsal.expected_sizes
    values = dict.fromkeys(feature_names(query.of, rehearsal.schema), 0.0)
    return values | {"intercept": math.log(t / c) * math.sqrt(len(query.of) + 1)}


@expected.register
def _(query: WeightedArms, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if every unit had the score that the intercept alone gives."""
    c, t = rehearsal.expected_sizes
    weights = _weights(query.estimand, _score(query.coefficients, query.of), query.clip)
    low, high = rehearsal.schema.outcome_bounds
    mean = rehearsal.mean - (low + high) / 2
    control, treated = c * weights[0], t * weights[1]
    return {
        "contrast": (treated - control) * mean,
        "level": (treated + control) * mean,
        "tilt": treated - control,
        "mass": treated + control,
        "deficit": (treated + control) * (((high - low) / 2) ** 2 - mean**2 - rehearsal.sd**2),
        "design": control * weights[0] + treated * weights[1],
    }


def _score(coefficients: Sequence[float], of: Sequence[str]) -> float:
    """The score that the intercept alone gives."""
    return 1 / (1 + math.exp(-min(max(coefficients[0] / math.sqrt(len(of) + 1), -30), 30)))


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
def _(query: RegressionMoments, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if covariates explained a quarter of the outcome's variance and were all the confounding.

    Each feature has an equal part in both; none has to do with another.
    """
    variances: list[float] = []
    for column in covariates_named(query.of, rehearsal.schema):
        if isinstance(column, Real):
            variances.append(rehearsal.covariate_sd**2)
        else:
            share = 1 / len(column.values)
            variances += [4 * share * (1 - share)] * (len(column.values) - 1)
    count = len(variances)
    low, high = rehearsal.schema.outcome_bounds
    sizes = rehearsal.expected_sizes
    squares = [1.0, ((high - low) / 2) ** 2, *(1.0 for _ in variances)]
    tables = []
    for arm in (0, 1):
        apart = (-1, 1)[arm] * sizes[1 - arm] / rehearsal.n * rehearsal.confounding
        line = [1.0, rehearsal.mean - (low + high) / 2 + apart * rehearsal.sd]
        line += [2 * apart * math.sqrt(variance / count) for variance in variances]
        table = np.outer(line, line)
        table[OUTCOME, OUTCOME] += rehearsal.sd**2
        for place, variance in enumerate(variances, start=FIRST_FEATURE):
            table[place, place] += variance
            table[OUTCOME, place] += rehearsal.sd / 2 * math.sqrt(variance / count)
        tables.append(sizes[arm] * table)
    values = {}
    names = (at.name for at in query.sensitivity(rehearsal.schema, "record", "l1").coordinates)
    for name, moment in zip(names, query.moments(rehearsal.schema), strict=True):
        table = tables[1] - tables[0] if moment.signed else tables[1] + tables[0]
        value = float(table[moment.first, moment.second])
        values[name] = float(table[CONSTANT, CONSTANT]) * squares[moment.first] - value if moment.deficit else value
    return values


@expected.register
def _(query: AugmentedScores, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if regressions explained a quarter of the variance and every unit had the propensity of its arm's share."""
    c, t = rehearsal.expected_sizes
    n, score = rehearsal.n, min(max(t / rehearsal.n, query.clip), 1 - query.clip)
    low, high = rehearsal.schema.outcome_bounds
    largest = (query.limit * (high - low) / 2) ** 2
    targets = {"ATE": n, "ATT": t, "ATO": n * score * (1 - score)}[query.estimand]
    control, treated = _weights(query.estimand, score, query.clip)
    squares = min((c * control**2 + t * treated**2) * rehearsal.sd**2 * 3 / 4, n * largest)
    design = {"ATE": float(n), "ATT": float(t), "ATO": n * (score * (1 - score)) ** 2}[query.estimand]
    sums = {"score": 0.0, "mass": float(targets), "deficit": n * largest - squares, "product": 0.0, "design": design}
    return sums | {"clipped": 0.0}


@expected.register
def _(query: OutcomesBelow, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if outcomes were normal with the expected mean and standard deviation."""
    distance = (query.threshold - rehearsal.mean) / max(rehearsal.sd, 1e-300)
    return {"below": rehearsal.n * (1 + math.erf(distance / math.sqrt(2))) / 2}


@expected.register
def _(query: MatchedContrast | ScrambledContrast, rehearsal: Rehearsal, guarantee: Guarantee) -> dict[str, float]:
    """As if, without a limit, the busiest units served ten times as often as their arm does on average."""
    n, (c, t) = rehearsal.n, rehearsal.expected_sizes
    few, many = min(c, t), max(c, t)
    most = 10 * many / few
    chosen = min(math.sqrt(guarantee.epsilon * query.error * many * most / math.sqrt(2)), most)
    limit = max(chosen, many / few, 1.0) if query.limit is None else float(query.limit)
    return {
        "effect": 0.0,
        "squares": 3 * n / 4 * rehearsal.sd**2,
        "freedom": 3 * n / 4,
        "largest": (1 + limit) / n,
        "squared": 1.2 * (1 / c + 1 / t),
        "limit_0": limit,
        "limit_1": limit,
        "matched": 1.0,
    }


@expected.register
def _(query: SubgroupMoments, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if all groups were of one size."""
    whole = expected(ArmMoments(), rehearsal, Guarantee(epsilon=1.0))
    groups = query.cells.names(rehearsal.schema)
    return {f"{name} of {group}": value / len(groups) for group in groups for name, value in whole.items()}


@expected.register
def _(query: EffectMoments, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if covariates were spread evenly, explained a quarter of the outcome's variance and not the treatment."""
    names = query.basis.names(rehearsal.schema)
    values = basis_values(query.basis, spread_out(query.basis.reads(rehearsal.schema), 1024), rehearsal.schema)
    n, share = rehearsal.n, min(max(rehearsal.expected_sizes[1] / rehearsal.n, query.clip), 1 - query.clip)
    overlap = share * (1 - share)
    products = n * (overlap if query.learner == "residual" else 1.0) * values.T @ values / len(values)
    low, high = rehearsal.schema.outcome_bounds
    largest = (query.limit * (high - low) / 2) ** 2
    squares = min(rehearsal.sd**2 * 3 / 4 / (1.0 if query.learner == "residual" else overlap), largest)
    sums = {f"{names[i]} by {names[j]}": float(products[i, j]) for i, j in query.pairs(rehearsal.schema)}
    sums |= {f"effect * {name}": 0.0 for name in names}
    return sums | {"deficit": n * (largest - squares), "clipped": 0.0}


@expected.register
def _(query: EffectWeights, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    return dict.fromkeys(query.basis.names(rehearsal.schema), 0.0)


@expected.register
def _(query: BlockEffects, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if each block told the effect as well as a difference in means of twice as many units in each arm does."""
    low, high = rehearsal.schema.outcome_bounds
    sizes = [max(size / query.blocks, 1.0) for size in rehearsal.expected_sizes]
    largest = (query.limit * (high - low) / 2) ** 2
    spread = min(2 * rehearsal.sd**2 * (1 / sizes[0] + 1 / sizes[1]), largest)
    deficits = {f"deficit of {name}": query.blocks * (largest - spread) for name in query.names}
    return dict.fromkeys(query.names, 0.0) | deficits


@expected.register
def _(query: InfluenceEffects, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:  # noqa: ARG001
    return dict.fromkeys(query.names, 0.0)


@expected.register
def _(query: StratumCounts, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if all strata were of one size."""
    bins, sizes = query.bins(rehearsal.schema), rehearsal.expected_sizes
    return {f"size_{arm} of {name}": sizes[arm] / len(bins) for name in bins for arm in (0, 1)}


@expected.register
def _(query: ScoreCounts, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if every unit had the score that the intercept alone gives."""
    bins, sizes = query.bins(), rehearsal.expected_sizes
    found = bins[int(np.searchsorted(query.edges, _score(query.coefficients, query.of), side="right"))]
    return {f"size_{arm} of {name}": sizes[arm] * float(name == found) for name in bins for arm in (0, 1)}


@expected.register
def _(query: CovariateSums, rehearsal: Rehearsal, _: Guarantee) -> dict[str, float]:
    """As if covariates had nothing to do with treatment, and listed values were equally frequent."""
    sizes, weights = rehearsal.expected_sizes, (1.0, 1.0)
    if isinstance(query, WeightedCovariates):
        weights = _weights(query.estimand, _score(query.coefficients, query.score), query.clip)
    values = {"size_1": float(sizes[1])}
    for arm in (0, 1):
        mass = sizes[arm] * weights[arm]
        values |= {f"mass_{arm}": mass, f"design_{arm}": mass * weights[arm]}
        for column in covariates_named(query.of, rehearsal.schema):
            listed = () if isinstance(column, Real) or len(column.values) == 2 else column.values
            values |= {f"total_{arm} of {column.name}": 0.0}
            values |= {f"total_{arm} of {column.name}={value}": mass / len(listed) for value in listed}
            values |= {f"deficit_{arm} of {column.name}": mass * (1 - rehearsal.covariate_sd**2)}
    return values
