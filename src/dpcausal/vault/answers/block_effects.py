"""What a learner says of profiles, added up over blocks of rows. Proof: docs/proofs/block_effects.md."""

from functools import partial
from typing import cast

import numpy as np

from dpcausal.queries import GRID, BlockEffects
from dpcausal.queries.models import LearnerQuery
from dpcausal.queries.profiles import by_covariate, codes_of, design_lines
from dpcausal.queries.query import outcome_tick
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import OUTSIDE, Engine
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.learners import Learn, run_silenced


@answers(BlockEffects, kernel=True)
def answer(context: AnswerContext[BlockEffects]) -> Answer:
    """Return the sums over blocks. Rows are put into blocks at random, so that no row decides on another's block."""
    query, schema, engine = context.query, context.schema, context.engine
    covariates, arms, outcomes, at = for_learners(query, schema, engine)
    # All units are put into blocks, and those outside the comparison left out after that: no unit moves another.
    blocks = (
        block[arms[block] < OUTSIDE] for block in np.array_split(context.sampler.shuffle(len(arms)), query.blocks)
    )
    learner = cast("Learn", context.learner)  # the door found it before the debit
    most = query.limit * outcome_tick(schema) * GRID
    effects = [
        run_silenced(partial(learner, covariates[block], arms[block], outcomes[block], at.copy()), len(at))
        for block in blocks
    ]
    return Answer(sums(query, np.clip(effects, -most, most) / most))


def sums(query: BlockEffects, shares: Array) -> dict[str, int]:
    """Return the answer from each block's effects as shares of the limit, one line a block."""
    kept = np.rint(np.clip(shares, -1, 1) * GRID).astype(np.int64)
    totals, deficits = kept.sum(axis=0), ((GRID * GRID - kept * kept) // GRID).sum(axis=0)
    named = zip(query.names, totals.tolist(), strict=True)
    return dict(named) | {
        f"deficit of {name}": value for name, value in zip(query.names, deficits.tolist(), strict=True)
    }


def for_learners(query: LearnerQuery, schema: Schema, engine: Engine) -> tuple[Array, Array, Array, Array]:
    """Return covariates, arms and outcomes of all rows as learners see them, and the profiles."""
    features = Features(query.covariates, schema)
    rows = engine.collect(("treatment", "outcome", *features.columns), query.most_units, whole=True)
    low, high = schema.outcome_bounds
    outcomes = (low + high) / 2 + rows["outcome"].astype(np.float64) * outcome_tick(schema)
    at = _numbers(
        design_lines(codes_of(by_covariate(query.covariates, query.at), features.covariates), features.covariates)
    )
    return _numbers(features.design(rows)), rows["treatment"].astype(np.float64), outcomes, at


def _numbers(lines: list[Int64s]) -> Array:
    numbers: Array = np.array(lines).T / GRID
    return numbers
