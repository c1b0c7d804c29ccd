"""What a learner says of profiles, added up over blocks of rows. Proof: docs/proofs/block_effects.md."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, BlockEffects
from dpcausal.queries.models import LearnerQuery
from dpcausal.queries.profiles import by_covariate, codes_of, design_lines
from dpcausal.queries.query import outcome_tick
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import OUTSIDE, Engine
from dpcausal.vault.noise import shuffled
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.learners import Array, Learn, run_silenced


def block_effects(query: BlockEffects, schema: Schema, engine: Engine, _: Guarantee, learner: Learn) -> Answer:
    """The sums over blocks. Which block a row is in is drawn by lot, so that it does not depend on any row."""
    covariates, arms, outcomes, at = for_learners(query, schema, engine)
    # All units are put into blocks, and those outside the comparison left out after that: no unit moves another.
    blocks = (block[arms[block] < OUTSIDE] for block in np.array_split(shuffled(len(arms)), query.blocks))
    most = query.limit * outcome_tick(schema) * GRID
    said = [
        run_silenced(partial(learner, covariates[block], arms[block], outcomes[block], at.copy()), len(at))
        for block in blocks
    ]
    return Answer(sums(query, np.clip(said, -most, most) / most))


def sums(query: BlockEffects, shares: Array) -> dict[str, int]:
    """The answer from each block's effects as shares of the limit, one line a block."""
    kept = np.rint(np.clip(shares, -1, 1) * GRID).astype(np.int64)
    totals, deficits = kept.sum(axis=0), ((GRID * GRID - kept * kept) // GRID).sum(axis=0)
    named = zip(query.names, totals.tolist(), strict=True)
    return dict(named) | {
        f"deficit of {name}": value for name, value in zip(query.names, deficits.tolist(), strict=True)
    }


def for_learners(query: LearnerQuery, schema: Schema, engine: Engine) -> tuple[Array, Array, Array, Array]:
    """All rows, also outside the comparison, as learners see them: covariates, arms, outcomes; and the profiles."""
    features = Features(query.covariates, schema)
    rows = engine.collect(("treatment", "outcome", *features.columns), query.most_units, whole=True)
    low, high = schema.outcome_bounds
    outcomes = (low + high) / 2 + rows["outcome"].astype(np.float64) * outcome_tick(schema)
    at = _numbers(
        design_lines(codes_of(by_covariate(query.covariates, query.at), features.covariates), features.covariates)
    )
    return _numbers(features.design(rows)), rows["treatment"].astype(np.float64), outcomes, at


def _numbers(lines: list[NDArray[np.int64]]) -> Array:
    numbers: Array = np.array(lines).T / GRID
    return numbers
