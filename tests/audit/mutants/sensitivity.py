"""Answers that one unit moves further than noise pays for."""

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.fuzz import check_record_independence
from dpcausal.audit.sensitivity import check_totals
from dpcausal.queries import (
    GRID,
    ArmMoments,
    ArmOutcomeCounts,
    ArmRegressionMoments,
    ArmTotals,
    AugmentedScores,
    CellMoments,
    ChangeMoments,
    ClusterMoments,
    CovariateMoments,
    CovariateSums,
    CovariateTotals,
    CustomSums,
    CutoffMoments,
    EventCounts,
    InstrumentMoments,
    MatchedContrast,
    MetricMoments,
    MissingOutcomes,
    ObservedScores,
    OutcomeCounts,
    ReceivedMoments,
    RegressionMoments,
    SegmentMetrics,
    Sensitivity,
    StratumMatches,
    VaryingEffectMoments,
    WeightedArms,
    WeightedCounts,
    profiles,
    summing,
)
from dpcausal.queries.coerced import OUTCOME, design
from dpcausal.queries.look_moments import FINE
from dpcausal.queries.matched_contrast import COEFFICIENT_TICKS
from dpcausal.queries.scores import EXPONENTS, by_arm, looked_up
from dpcausal.queries.summing import SummingQuery
from dpcausal.release import PublicValue
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.sums.cases import Domain, domain_of
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import Number, Shift
from dpcausal.vault import adding, coercion, ticks
from dpcausal.vault.answers import (
    logistic,
    look_moments,
    matched_contrast,
    stratum_matches,
)
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.matching import matched
from dpcausal.vault.ticks import as_ticks
from tests.audit.mutants.mutant import add_up_others, answer_by, answer_within, attack_on, mutant, sensitivity_of


def _times(factor: int, names: Sequence[str], sums: Sums) -> Sums:
    """Return a description in which some numbers are so many times as large."""
    return replace(sums, numbers={**sums.numbers, **{name: factor * sums.numbers[name] for name in names}})


def _running_totals(context: AnswerContext[Any]) -> Answer:
    """Return how many units are in each count or one before it."""
    counts = adding.answer(context).ticks
    return Answer(dict(zip(counts, itertools.accumulate(counts.values()), strict=True)))


@mutant("clipped after the noise, so that nothing is clipped before it", sensitivity_of(ArmTotals), rereads=True)
def unclipped(patch: pytest.MonkeyPatch) -> None:
    def ticks(column: dpc.Real, value: str) -> str:
        middle, ticks_to_one = profiles.grid(column)
        wide = f"LEAST(GREATEST(({value} - {middle}) * {ticks_to_one}, -2e9), 2e9)"
        return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN 0 ELSE FLOOR({wide}) END"

    patch.setattr(coercion, "as_ticks", ticks)


@mutant("scores that go on beyond the ends of a scale", sensitivity_of(CovariateSums), rereads=True)
def endless_scale(patch: pytest.MonkeyPatch) -> None:
    def score(column: dpc.Real, scale: Scale, value: str) -> str:
        del column
        (low, below), (high, above) = scale.knots[-2:]
        line = f"FLOOR(({value} - {low}) * {(above - below) * GRID / (high - low)} + {below * GRID})"
        return f"CASE WHEN {value} BETWEEN -1e3 AND 1e3 THEN {line} ELSE 0 END"

    patch.setattr(ticks, "_score", score)


@mutant("each record of a unit within the bounds, and not their total", check_totals)
def unbounded_total(patch: pytest.MonkeyPatch) -> None:
    bounded, added = as_ticks, coercion._added

    def ticks(column: dpc.Real, value: str) -> str:
        middle, ticks_to_one = profiles.grid(column)
        return f"FLOOR(({value} - {middle}) * {ticks_to_one})" if "total" in value else bounded(column, value)

    def event(column: dpc.Real, value: str, *others: Any) -> tuple[str, str]:
        within = f"CASE WHEN {value} BETWEEN {column.low} AND {column.high} THEN {value} ELSE {column.high} END"
        return added(column, f"({within})", *others)

    patch.setattr(coercion, "as_ticks", ticks)
    patch.setattr(coercion, "_added", event)


@mutant("bounds from the table", sensitivity_of(ArmTotals))
def own_bounds(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[ArmTotals]) -> Answer:
        batch = context.engine.collect(("treatment", "outcome"), 10**6)
        low, high = int(batch["outcome"].min(initial=0)), int(batch["outcome"].max(initial=0))
        scaled = (batch["outcome"] - low) * 2 * GRID // max(high - low, 1) - GRID
        totals = {f"total_{arm}": int(scaled[batch["treatment"] == arm].sum()) for arm in (0, 1)}
        sizes = {"size_1": int(batch["treatment"].sum()), "compared": len(batch["treatment"])}
        return Answer(totals | sizes)

    answer_by(patch, ArmTotals, answer)


@mutant("numbers as shares of the largest in the table", lambda: check_record_independence(3))
def own_largest(patch: pytest.MonkeyPatch) -> None:
    ticks = as_ticks
    patch.setattr(
        coercion,
        "as_ticks",
        lambda column, value: (
            f"CAST({ticks(column, value)} * 2.0 / MAX(CASE WHEN {value} > 0 THEN 2 ELSE 1 END) OVER () AS BIGINT)"
        ),
    )


@mutant("lengths from the table", sensitivity_of(dpc.queries.OutputPerturbedLogistic, penalty=20.0))
def own_lengths(patch: pytest.MonkeyPatch) -> None:
    ticks = Features.ticks

    def scaled(features: Features, batch: Mapping[str, Any]) -> Any:
        values = ticks(features, batch)
        values[1:] = values[1:] * GRID // max(np.abs(values[1:]).max(initial=0), 1)
        return values

    patch.setattr(Features, "ticks", scaled)


@mutant("a constant without a penalty", sensitivity_of(dpc.queries.OutputPerturbedLogistic, penalty=20.0))
def free_constant(patch: pytest.MonkeyPatch) -> None:
    penalised = logistic.penalised

    def derivatives(losses: Any, penalty: float, tilt: Any) -> Any:
        whole = penalised(losses, penalty, tilt)

        def without(at: Any) -> Any:
            gradient, curvature = whole(at)
            gradient[0] -= 0.999 * penalty * at[0]  # a thousandth is left, so that there is a minimum
            curvature[0, 0] -= 0.999 * penalty
            return gradient, curvature

        return without

    patch.setattr(logistic, "penalised", derivatives)


@mutant("matches weighted by how many were found (equation 4)", sensitivity_of(MatchedContrast, neighbours=5, limit=1))
def equation_4(patch: pytest.MonkeyPatch) -> None:
    def contrast(query: MatchedContrast, scores: Any, arms: Any, outcomes: Any, _: float) -> Answer:
        limit = query.limit or 1
        has, serves = matched(scores, arms, query.neighbours, (query.neighbours * limit,) * 2)
        found_by = [max(float(has[arms == arm].mean()), 1.0) if (arms == arm).any() else 1.0 for arm in (0, 1)]
        each = (has > 0) + np.where(arms == 1, serves / found_by[0], serves / found_by[1])
        coefficients = np.rint(each / (1 + limit) * COEFFICIENT_TICKS).astype(np.int64) * (2 * arms - 1)
        return Answer(
            {"effect": int((coefficients * outcomes).sum()), "squares": 0},
            [PublicValue(name, 1.0, because="") for name in query.public_values],
        )

    patch.setattr(matched_contrast, "contrast", contrast)


def _printed(sizes: Any, n: int, beta: float) -> float:
    """The multi-site paper's equation (1), in ticks."""

    def ratio(t: int, c: int, k: int) -> int:
        few, many = min(t, c), max(t, c)
        return many + k if k >= few else math.ceil((many + k + 1) / (few - k))

    farthest = n + math.ceil(10 / beta)  # where the exponential has won
    most = (max(ratio(t, c, k) for t, c in sizes.tolist()) for k in range(farthest))
    return max(math.exp(-beta * k) * 4 * GRID * (1 + each) for k, each in enumerate(most))


@mutant("smooth sensitivity off by one, as printed", sensitivity_of(StratumMatches, (2, 3), bound="smooth"))
def off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stratum_matches, "smooth_bound", _printed)


@mutant("absent strata left out", sensitivity_of(StratumMatches, bound="smooth"))
def absent_strata(patch: pytest.MonkeyPatch) -> None:
    bound = stratum_matches.smooth_bound
    patch.setattr(stratum_matches, "smooth_bound", lambda sizes, n, beta: bound(sizes[sizes.sum(axis=1) > 0], n, beta))


@mutant("noise of once the smooth bound in place of twice", sensitivity_of(StratumMatches, bound="smooth"))
def once_the_bound(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[StratumMatches]) -> Answer:
        whole = stratum_matches.answer(context)
        return replace(whole, scales={name: scale / 2 for name, scale in whole.scales.items()})

    answer_by(patch, StratumMatches, answer)


@mutant("charged for one arm where two can change", sensitivity_of(ArmMoments))
def wrong_arm(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ArmMoments.sensitivity

    def one_arm(query: ArmMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        trial = sensitivity(query, schema, "record_within_arm", norm)
        return replace(sensitivity(query, schema, protects, norm), bound=trial.bound)

    patch.setattr(ArmMoments, "sensitivity", one_arm)


@mutant("deficits at half their weight", sensitivity_of(ArmMoments))
def light_deficits(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ArmMoments.sensitivity

    def lighter(query: ArmMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        coordinates = [
            replace(at, weight=at.weight / 2) if at.weight and at.name.startswith("deficit") else at
            for at in whole.coordinates
        ]
        return replace(whole, coordinates=tuple(coordinates))

    patch.setattr(ArmMoments, "sensitivity", lighter)


@mutant("treatment received charged for outcomes only", sensitivity_of(ReceivedMoments))
def free_received(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ReceivedMoments.sensitivity

    def outcomes_only(query: ReceivedMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        return replace(whole, bound=sensitivity(query, schema, "outcome", "l1").bound)

    patch.setattr(ReceivedMoments, "sensitivity", outcomes_only)


@mutant(
    "moments with the treatment received charged without it",
    sensitivity_of(InstrumentMoments, covariates=("age",), interaction=True),
)
def free_instrument(patch: pytest.MonkeyPatch) -> None:
    sensitivity = InstrumentMoments.sensitivity

    def without(query: InstrumentMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        bound = query.regression.sensitivity(schema, protects, norm).bound
        return replace(sensitivity(query, schema, protects, norm), bound=bound)

    patch.setattr(InstrumentMoments, "sensitivity", without)


@mutant("distances beyond the bandwidth", sensitivity_of(CutoffMoments, treated_below=False))
def far_distances(patch: pytest.MonkeyPatch) -> None:
    add_up_others(patch, CutoffMoments, partial(_times, 3, ("distance", "product")))


@mutant("a unit that changes sides charged as if it left one", sensitivity_of(CutoffMoments, treated_below=True))
def one_side(patch: pytest.MonkeyPatch) -> None:
    sensitivity = CutoffMoments.sensitivity
    patch.setattr(
        CutoffMoments,
        "sensitivity",
        lambda query, schema, _, norm: sensitivity(query, schema, "outcome", norm),
    )


@mutant("changes beyond their bounds", sensitivity_of(ChangeMoments))
def unbounded_changes(patch: pytest.MonkeyPatch) -> None:
    add_up_others(patch, ChangeMoments, partial(_times, 2, ("total",)))


@mutant("every arm's size charged as if one alone moved", sensitivity_of(CellMoments))
def light_sizes(patch: pytest.MonkeyPatch) -> None:
    sensitivity = CellMoments.sensitivity

    def lighter(query: CellMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        coordinates = [
            replace(at, weight=at.weight / 2) if at.weight and at.name.startswith("size") else at
            for at in whole.coordinates
        ]
        return replace(whole, coordinates=tuple(coordinates))

    patch.setattr(CellMoments, "sensitivity", lighter)


@mutant("one arm's regression charged where two move", sensitivity_of(ArmRegressionMoments, covariates=("age",)))
def one_regression(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ArmRegressionMoments.sensitivity

    def one_arm(query: ArmRegressionMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        return replace(whole, bound=sensitivity(query, schema, "record_within_arm", norm).bound)

    patch.setattr(ArmRegressionMoments, "sensitivity", one_arm)


@mutant("features of regressions beyond their bounds", sensitivity_of(ArmRegressionMoments, covariates=("age",)))
def far_features(patch: pytest.MonkeyPatch) -> None:
    _added_with_wide_features(patch, ArmRegressionMoments)


@mutant("products of metrics charged at a quarter", sensitivity_of(MetricMoments, (1,), weights=(1.0, 2.0, 3.0)))
def light_products(patch: pytest.MonkeyPatch) -> None:
    sensitivity = MetricMoments.sensitivity

    def lighter(query: MetricMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        coordinates = [
            replace(at, weight=at.weight / 4) if at.weight and at.name.startswith("product") else at
            for at in whole.coordinates
        ]
        return replace(whole, coordinates=tuple(coordinates))

    patch.setattr(MetricMoments, "sensitivity", lighter)


@mutant("segments that are not paid for", sensitivity_of(SegmentMetrics, segments=("ward",)))
def free_segments(patch: pytest.MonkeyPatch) -> None:
    sensitivity = MetricMoments.sensitivity

    def unpaid(query: MetricMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        coordinates = [
            replace(at, weight=at.weight / 2) if at.weight and "ward=" in at.name else at for at in whole.coordinates
        ]
        return replace(whole, coordinates=tuple(coordinates))

    patch.setattr(SegmentMetrics, "sensitivity", unpaid)


@mutant("cohorts that count in full at every look of a schedule", attack_on("ScheduledDifference", 200))
def heavy_cohorts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(look_moments, "weights", lambda looks, _: (FINE,) * looks)


@mutant("weights that are not clipped", sensitivity_of(WeightedArms, coefficients=(0.0, 20.0)))
def heavy_weights(patch: pytest.MonkeyPatch) -> None:
    _added_with_heavy_weights(patch, WeightedArms)


def _added_with_heavy_weights(patch: pytest.MonkeyPatch, kind: type[SummingQuery]) -> None:
    """Let an answer add up the inverse of the score, whatever the clip."""

    def heavy(control: Number, treated: Number, _: str, clip: float) -> Number:
        table = np.rint(np.minimum((1 + np.exp(EXPONENTS)) * clip, 2.0**10) * GRID).astype(np.int64)
        return by_arm(looked_up(table, control), looked_up(table, treated))

    answer_within(patch, kind, lambda inner: inner.setattr(sys.modules[kind.__module__], "unit_weight", heavy))


@mutant("outcomes from a centre, as far as they reach", sensitivity_of(WeightedArms, centre=-1.0))
def far_outcomes(patch: pytest.MonkeyPatch) -> None:
    far = lambda query: OUTCOME - query.centre_ticks  # noqa: E731
    answer_within(patch, WeightedArms, lambda inner: inner.setattr(WeightedArms, "_centred", far))


@mutant("covariate moments with half their bound", sensitivity_of(CovariateMoments, covariates=("age",)))
def half_covariate_bound(patch: pytest.MonkeyPatch) -> None:
    sensitivity = CovariateMoments.sensitivity

    def half(query: CovariateMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        return replace(whole, bound=whole.bound / 2)

    patch.setattr(CovariateMoments, "sensitivity", half)


@mutant("moments with half their bound", sensitivity_of(RegressionMoments, covariates=("age",), interaction=True))
def half_bound(patch: pytest.MonkeyPatch) -> None:
    sensitivity = RegressionMoments.sensitivity

    def half(query: RegressionMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        return replace(whole, bound=whole.bound / 2)

    patch.setattr(RegressionMoments, "sensitivity", half)


@mutant(
    "moments charged for outcomes where everything can change",
    sensitivity_of(RegressionMoments, covariates=("ward", "age", "smoker"), interaction=False),
)
def only_outcomes(patch: pytest.MonkeyPatch) -> None:
    sensitivity = RegressionMoments.sensitivity
    patch.setattr(
        RegressionMoments,
        "sensitivity",
        lambda query, schema, _, norm: sensitivity(query, schema, "outcome", norm),
    )


@mutant(
    "moments of covariates beyond their bounds",
    sensitivity_of(RegressionMoments, covariates=("age",), interaction=True),
)
def wide_features(patch: pytest.MonkeyPatch) -> None:
    _added_with_wide_features(patch, RegressionMoments)


def _added_with_wide_features(patch: pytest.MonkeyPatch, kind: type[SummingQuery]) -> None:
    """Let an answer add up features half as far again from the middle as the bound says."""

    def wide(*given: Any) -> list[Number]:
        return [Shift(3 * line, 1) for line in design(*given)]

    answer_within(patch, kind, lambda inner: inner.setattr(sys.modules[kind.__module__], "design", wide))


@mutant(
    "moments of covariates as the table spreads",
    sensitivity_of(RegressionMoments, covariates=("age",), interaction=True),
)
def own_spread(patch: pytest.MonkeyPatch) -> None:
    def spread(batch: Mapping[str, Any]) -> Mapping[str, Any]:
        ages = batch["covariate_1"]
        return {**batch, "covariate_1": ages * GRID // np.abs(ages).max(initial=1)}

    patch.setattr(adding, "evaluate", lambda numbers, batch: evaluate(numbers, spread(batch)))


@mutant("scores without their limit", sensitivity_of(AugmentedScores, limit=0.5))
def unlimited(patch: pytest.MonkeyPatch) -> None:
    def unlimited(sums: Sums) -> Sums:
        return replace(sums, whole={**sums.whole, "score": sums.whole["score"].number})  # type: ignore[attr-defined]

    add_up_others(patch, AugmentedScores, unlimited)


@mutant("bins that overlap", sensitivity_of(OutcomeCounts))
def cumulative(patch: pytest.MonkeyPatch) -> None:
    answer_by(patch, OutcomeCounts, _running_totals)


@mutant("cumulative counts of both arms", sensitivity_of(ArmOutcomeCounts))
def cumulative_by_arm(patch: pytest.MonkeyPatch) -> None:
    answer_by(patch, ArmOutcomeCounts, _running_totals)


@mutant("all units of each arm beside those without an outcome", sensitivity_of(MissingOutcomes))
def overlapping_counts(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[MissingOutcomes]) -> Answer:
        sums = context.engine.aggregate({"treatment": 2}, ["1", "CASE WHEN outcome > 0 THEN 1 ELSE 0 END"])
        return Answer(dict(zip(MissingOutcomes.counts, map(int, sums.ravel()), strict=True)))

    answer_by(patch, MissingOutcomes, answer)


@mutant("covariates of all units charged as if outcomes alone could change", sensitivity_of(CovariateTotals))
def totals_for_outcomes(patch: pytest.MonkeyPatch) -> None:
    sensitivity = CovariateTotals.sensitivity
    patch.setattr(
        CovariateTotals, "sensitivity", lambda query, schema, _, norm: sensitivity(query, schema, "outcome", norm)
    )


@mutant("sums for effects that vary, charged like those for one effect", sensitivity_of(VaryingEffectMoments))
def varying_for_one(patch: pytest.MonkeyPatch) -> None:
    sensitivity = VaryingEffectMoments.sensitivity

    def smaller(query: VaryingEffectMoments, schema: Schema, protects: Any, norm: Any) -> Sensitivity:
        usual = RegressionMoments(query.covariates).sensitivity(schema, protects, norm)
        return replace(sensitivity(query, schema, protects, norm), bound=usual.bound)

    patch.setattr(VaryingEffectMoments, "sensitivity", smaller)


@mutant("weighted residuals charged as if units could only leave", sensitivity_of(ObservedScores))
def residuals_that_leave(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ObservedScores.sensitivity

    def halved(query: ObservedScores, schema: Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        return replace(whole, bound=whole.bound / 2)

    patch.setattr(ObservedScores, "sensitivity", halved)


@mutant("clusters charged for outcomes where everything can change", sensitivity_of(ClusterMoments))
def clusters_for_outcomes(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ClusterMoments.sensitivity
    patch.setattr(
        ClusterMoments, "sensitivity", lambda query, schema, _, norm: sensitivity(query, schema, "outcome", norm)
    )


@mutant("numbers at risk in place of counts", sensitivity_of(EventCounts))
def at_risk(patch: pytest.MonkeyPatch) -> None:
    answer_by(patch, EventCounts, _running_totals)


@mutant("weighted counts charged as if a unit kept its arm", sensitivity_of(WeightedCounts))
def weighted_within_arm(patch: pytest.MonkeyPatch) -> None:
    sensitivity = WeightedCounts.sensitivity
    patch.setattr(
        WeightedCounts,
        "sensitivity",
        lambda query, schema, _, norm: sensitivity(query, schema, "record_within_arm", norm),
    )


@mutant("counts with the inverse of a score that is not clipped", sensitivity_of(WeightedCounts))
def unclipped_counts(patch: pytest.MonkeyPatch) -> None:
    _added_with_heavy_weights(patch, WeightedCounts)


@mutant("outcomes counted once for each arm", sensitivity_of(OutcomeCounts))
def counted_twice(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[OutcomeCounts]) -> Answer:
        return Answer({name: 2 * count for name, count in adding.answer(context).ticks.items()})

    answer_by(patch, OutcomeCounts, answer)


@mutant(
    "a unit that loses its outcome, where arms are public, moves more than is paid for", sensitivity_of(CellMoments)
)
def unpaid_loss(patch: pytest.MonkeyPatch) -> None:
    def staying(schema: Schema, protects: Any) -> Domain:
        whole = domain_of(schema, protects)
        if schema.protects == "record":
            return whole
        return replace(whole, changes=whole.changes - {"treatment", "arm"}, leaves=False)

    patch.setattr(Schema, "bounded_as", lambda _, protects: protects)
    patch.setattr(summing, "domain_of", staying)


@mutant("described numbers from the low end of their range", sensitivity_of(CustomSums))
def from_the_low_end(patch: pytest.MonkeyPatch) -> None:
    def shifted(sums: Sums) -> Sums:
        return replace(sums, numbers={name: number - number.low for name, number in sums.numbers.items()})

    add_up_others(patch, CustomSums, shifted)
