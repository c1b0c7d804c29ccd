"""Overlap and balance, told of too loudly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.queries import (
    GRID,
    CovariateCounts,
    CovariateSums,
    MissingCovariates,
    Query,
    ScoreCounts,
    Sensitivity,
    StratumCounts,
    WeightedCovariates,
)
from dpcausal.queries.covariate_counts import COARSE, EACH
from dpcausal.queries.scores import predictor
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate, totals
from dpcausal.sums.numbers import Ticks, nodes, parts
from dpcausal.vault import adding
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.numerics.features import Features
from tests.audit.mutants.mutant import add_up_others, answer_by, mutant, sensitivity_of

ALL = ("ward", "age", "smoker")


def _bounded_by(patch: pytest.MonkeyPatch, query: Any, bound: Any) -> None:
    sensitivity = query.sensitivity

    def smaller(asked: Query, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole: Sensitivity = sensitivity(asked, schema, protects, norm)
        return replace(whole, bound=bound(asked, whole.bound))

    patch.setattr(query, "sensitivity", smaller)


@mutant("counts charged as if a unit were added and not replaced", sensitivity_of(StratumCounts))
def added(patch: pytest.MonkeyPatch) -> None:
    _bounded_by(patch, StratumCounts, lambda _, bound: bound / 2)


@mutant("bins of the score with as many units in each", sensitivity_of(ScoreCounts))
def own_bins(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[ScoreCounts]) -> Answer:
        query, schema = context.query, context.schema
        features = Features(query.covariates, schema)
        batch = context.engine.collect(("treatment", *features.columns), 10**6)
        (scores,) = evaluate([predictor(query.coefficients, query.covariates, schema)], batch)
        edges = np.quantile(scores, [1 / 3, 2 / 3])
        bins = np.searchsorted(edges, scores, side="right")
        sizes = np.bincount(2 * bins + batch["treatment"], minlength=6).tolist()
        names = (at.name for at in query.sensitivity(schema, "record", "l1").coordinates)
        return Answer(dict(zip(names, sizes, strict=True)))

    answer_by(patch, ScoreCounts, answer)


@mutant("covariates charged for one of three", sensitivity_of(CovariateSums, covariates=ALL))
def one_of_three(patch: pytest.MonkeyPatch) -> None:
    _bounded_by(patch, CovariateSums, lambda query, bound: bound / len(query.covariates))


@mutant("covariates as shares of the table's own spread", sensitivity_of(CovariateSums, covariates=ALL))
def own_spread(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[CovariateSums]) -> Answer:
        (sums,) = context.query.sums(context.schema, "record", "l1")
        units = dict(context.engine.collect(tuple({"treatment", *sums.columns}), 10**6))
        every = (node for number in sums.numbers.values() for node in nodes(number))
        for name in {node.column for node in every if isinstance(node, Ticks)}:
            units[name] = units[name] * GRID // max(int(np.abs(units[name]).max(initial=1)), 1)
        return Answer(totals(sums, units))

    answer_by(patch, CovariateSums, answer)


@mutant("counts of covariates charged for one level of bins", sensitivity_of(CovariateCounts, covariates=("age",)))
def one_level(patch: pytest.MonkeyPatch) -> None:
    _bounded_by(patch, CovariateCounts, lambda _, bound: bound / 2)


@mutant("coarse bins of a covariate that overlap", sensitivity_of(CovariateCounts, covariates=("age",)))
def overlapping_bins(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[CovariateCounts]) -> Answer:
        counts, names = adding.answer(context).ticks, context.query.own_names
        twice = {
            names[start + place]: counts[names[start + place]] + counts[names[start + place - 1]]
            for start in range(0, len(names), EACH)
            for place in range(1, COARSE)
        }
        return Answer({**counts, **twice})

    answer_by(patch, CovariateCounts, answer)


@mutant("missing covariates charged for half of one", sensitivity_of(MissingCovariates))
def half_missing(patch: pytest.MonkeyPatch) -> None:
    _bounded_by(patch, MissingCovariates, lambda _, bound: bound / 2)


@mutant("units that lack any covariate counted for each", sensitivity_of(MissingCovariates, each=False))
def each_of_any(patch: pytest.MonkeyPatch) -> None:
    def several(sums: Sums) -> Sums:
        return replace(sums, whole={name: parts(number)[0] for name, number in sums.whole.items()})

    add_up_others(patch, MissingCovariates, several)


@mutant("missing covariates counted twice", sensitivity_of(MissingCovariates))
def twice_missing(patch: pytest.MonkeyPatch) -> None:
    def twice(sums: Sums) -> Sums:
        return replace(sums, whole={name: 2 * number for name, number in sums.whole.items()})

    add_up_others(patch, MissingCovariates, twice)


@mutant("covariates weighted beyond the largest weight", sensitivity_of(WeightedCovariates, covariates=ALL))
def far_weights(patch: pytest.MonkeyPatch) -> None:
    def heavier(sums: Sums) -> Sums:
        return replace(sums, numbers={name: 3 * number for name, number in sums.numbers.items()})

    add_up_others(patch, WeightedCovariates, heavier)


@mutant("sums of weights for nothing", sensitivity_of(WeightedCovariates, covariates=("age",)))
def free_weights(patch: pytest.MonkeyPatch) -> None:
    sensitivity = WeightedCovariates.sensitivity

    def quieter(query: WeightedCovariates, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        return replace(sensitivity(query, schema, "outcome", norm))

    patch.setattr(WeightedCovariates, "sensitivity", quieter)
