"""Effects that vary between units, told of too loudly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.queries import (
    GRID,
    Cells,
    Cut,
    EffectMoments,
    EffectWeights,
    Polynomial,
    Sensitivity,
    SubgroupMoments,
    WeightedRegressionMoments,
)
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.weighted_regression_moments import WHOLE
from dpcausal.vault.answers import (
    effect_moments,
    effect_weights,
    logistic,
    weighted_regression_moments,
)
from dpcausal.vault.engines import exact_ints
from dpcausal.vault.numerics.exact_gradients import CURVATURE_TICKS, GRADIENT_TICKS
from dpcausal.vault.numerics.residuals import Residuals
from tests.audit.mutants.mutant import determinism_of, mutant, sensitivity_of

GROUPS, LINE = Cells([Cut("ward")]), Polynomial(["age"])


@mutant("groups with half their bound", sensitivity_of(SubgroupMoments, cells=GROUPS))
def half_bound(patch: pytest.MonkeyPatch) -> None:
    sensitivity = SubgroupMoments.sensitivity

    def half(query: SubgroupMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        return replace(whole, bound=whole.bound / 2)

    patch.setattr(SubgroupMoments, "sensitivity", half)


@mutant("groups charged for outcomes where everything can change", sensitivity_of(SubgroupMoments, cells=GROUPS))
def only_outcomes(patch: pytest.MonkeyPatch) -> None:
    sensitivity = SubgroupMoments.sensitivity
    patch.setattr(
        SubgroupMoments, "sensitivity", lambda query, schema, _, norm: sensitivity(query, schema, "outcome", norm)
    )


@mutant("residuals without their limit", sensitivity_of(EffectMoments, learner="residual", limit=0.5, basis=LINE))
def unlimited(patch: pytest.MonkeyPatch) -> None:
    def within(numbers: Any, limit: float) -> Any:
        ticks = np.rint(numbers / GRID / limit * LENGTH).astype(np.int64)
        return ticks, np.zeros_like(ticks)

    patch.setattr(effect_moments, "within", within)


@mutant(
    "functions that are together longer than 1",
    sensitivity_of(EffectMoments, learner="augmented", limit=0.5, basis=LINE),
)
def long_functions(patch: pytest.MonkeyPatch) -> None:
    functions = Residuals.functions
    patch.setattr(Residuals, "functions", lambda residuals, batch: functions(residuals, batch) * 5 // 4)


@mutant(
    "products of two functions with half their noise",
    sensitivity_of(EffectMoments, learner="residual", limit=1.0, basis=LINE),
)
def quiet_products(patch: pytest.MonkeyPatch) -> None:
    sensitivity = EffectMoments.sensitivity

    def quieter(query: EffectMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        squares = {i for i, pair in enumerate(query.pairs(schema)) if pair[0] == pair[1]}
        products = set(range(len(query.pairs(schema)))) - squares
        coordinates = [
            replace(at, weight=at.weight / 2) if at.weight and place in products else at
            for place, at in enumerate(whole.coordinates)
        ]
        return replace(whole, coordinates=tuple(coordinates))

    patch.setattr(EffectMoments, "sensitivity", quieter)


@mutant(
    "arms taken to be a half from their propensities",
    sensitivity_of(EffectMoments, learner="residual", limit=0.5, basis=LINE),
)
def near_arms(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EffectMoments, "farthest_arm", lambda *_: 0.5)


@mutant("units far out with the weight of all others", sensitivity_of(WeightedRegressionMoments, covariates=("age",)))
def even_weights(patch: pytest.MonkeyPatch) -> None:
    def weights(query: Any, schema: Any, lines: Any) -> Any:
        return np.full(lines.shape[1], WHOLE)

    patch.setattr(weighted_regression_moments, "weights", weights)


@mutant("sums of effects that are not whole", determinism_of(EffectMoments))
def float_sums(patch: pytest.MonkeyPatch) -> None:
    def sums(regressors: Any, kept: Any, cut: Any) -> Any:
        lines = np.vstack([regressors / 3, kept / 3, cut / 3, cut / 3])
        return (lines @ lines[: len(regressors)].T * 2**30).astype(np.int64)

    patch.setattr(effect_moments, "sums", sums)


@mutant("a tenth of the ridge that is told", sensitivity_of(EffectWeights, basis=LINE))
def thin_ridge(patch: pytest.MonkeyPatch) -> None:
    penalised = logistic.penalised
    patch.setattr(effect_weights, "penalised", lambda losses, penalty, tilt: penalised(losses, penalty / 10, tilt))


@mutant(
    "regressors of augmented scores taken to be as short as those of residuals",
    sensitivity_of(EffectWeights, learner="augmented", basis=LINE),
)
def short_regressors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EffectWeights, "longest", lambda *_: 0.5)


@mutant(
    "least squares, which one unit can pull anywhere", sensitivity_of(EffectWeights, learner="residual", basis=LINE)
)
def squares(patch: pytest.MonkeyPatch) -> None:
    def sums(at: Any, batch: Any, residuals: Residuals, limit: float, learner: str) -> Any:
        distance, missed = residuals.residual(batch)
        regressors = (distance / GRID) * (residuals.functions(batch) / LENGTH)
        pull = -regressors @ (missed / GRID - at @ regressors) / limit
        return exact_ints(np.vstack([pull * GRADIENT_TICKS, regressors @ regressors.T * CURVATURE_TICKS]))

    patch.setattr(effect_weights, "loss_sums", sums)
