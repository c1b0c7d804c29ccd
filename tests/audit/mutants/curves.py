"""Effects that vary between units, told of too loudly."""

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.fuzz import Panic
from dpcausal.queries import (
    GRID,
    BlockEffects,
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
from dpcausal.queries.query import outcome_tick
from dpcausal.queries.weighted_regression_moments import WHOLE
from dpcausal.vault.answers import (
    block_effects,
    effect_moments,
    effect_weights,
    logistic,
    weighted_regression_moments,
)
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.engines import exact_ints
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.exact_gradients import CURVATURE_TICKS, GRADIENT_TICKS
from dpcausal.vault.numerics.learners import run_silenced
from dpcausal.vault.numerics.residuals import Residuals
from tests.audit.mutants.mutant import answer_by, attack_on, determinism_of, mutant, sensitivity_of, shape_of

if TYPE_CHECKING:
    from dpcausal.vault.numerics.learners import Learn

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


def _in_blocks(patch: pytest.MonkeyPatch, blocks_of: Any, *, alike: bool = False) -> None:
    """Answers from these blocks; the same profiles, to write on, for all of them if they are alike."""

    def answer(context: AnswerContext[BlockEffects]) -> Answer:
        query, schema, learner = context.query, context.schema, cast("Learn", context.learner)
        covariates, arms, outcomes, at = block_effects.for_learners(query, schema, context.engine)
        said = [
            learner(covariates[block], arms[block], outcomes[block], at if alike else at.copy())
            for block in blocks_of(query, outcomes)
        ]
        most = query.limit * outcome_tick(schema) * GRID
        return Answer(block_effects.sums(query, np.array(said) / most))

    answer_by(patch, BlockEffects, answer)


def _by_lot(query: BlockEffects, outcomes: Any) -> list[Any]:
    return np.array_split(Sampler().shuffle(len(outcomes)), query.blocks)


@mutant("every unit in two blocks", sensitivity_of(BlockEffects, learner="scribbler"))
def overlap(patch: pytest.MonkeyPatch) -> None:
    def twice(query: BlockEffects, outcomes: Any) -> list[Any]:
        once = _by_lot(query, outcomes)
        return [np.concatenate([once[place - 1], once[place]]) for place in range(len(once))]

    _in_blocks(patch, twice)


@mutant("units in blocks by their outcomes", attack_on("BlockEnsemble", 2_000))
def sorted_blocks(patch: pytest.MonkeyPatch) -> None:
    _in_blocks(patch, lambda query, outcomes: np.array_split(np.argsort(outcomes, kind="stable"), query.blocks))


@mutant("blocks that pass on their profiles", sensitivity_of(BlockEffects, learner="scribbler"))
def passed_on(patch: pytest.MonkeyPatch) -> None:
    _in_blocks(patch, _by_lot, alike=True)


@mutant("effects of blocks without their limit", sensitivity_of(BlockEffects, learner="linear"))
def wide_effects(patch: pytest.MonkeyPatch) -> None:
    sums = block_effects.sums
    _in_blocks(patch, _by_lot)
    patch.setattr(block_effects, "sums", lambda query, shares: sums(query, shares) | _totals(query, shares))


def _totals(query: BlockEffects, shares: Any) -> dict[str, int]:
    return dict(zip(query.names, np.rint(shares * GRID).sum(axis=0).astype(int).tolist(), strict=True))


@mutant("a learner that is not kept quiet", shape_of("DifferenceInMeans"))
def loud(patch: pytest.MonkeyPatch) -> None:
    def aloud(work: Any, size: int) -> Any:
        with contextlib.suppress(BaseException):
            work()
        return np.zeros(size)

    patch.setattr(block_effects, "run_silenced", aloud)


@mutant("a learner whose panics get out", shape_of("DifferenceInMeans"))
def panicking(patch: pytest.MonkeyPatch) -> None:

    def only_exceptions(work: Any, size: int) -> Any:
        raised: list[Panic] = []

        def watched() -> Any:
            try:
                return np.asarray(work(), dtype=float)
            except Panic as panic:
                raised.append(panic)
                raise

        said = run_silenced(watched, size)
        if raised:
            raise raised[0]
        return said

    patch.setattr(block_effects, "run_silenced", only_exceptions)
