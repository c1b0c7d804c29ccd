"""Learners as bad as can be, for answers that promise to be private whatever a learner does."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpcausal.audit.distinguisher import Array
from dpcausal.queries import BlockEffects, Query
from dpcausal.vault.numerics.learners import Learner, find_learner

_FAR = 1e9


def scribbler(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """Says one extreme or the other, and overwrites all that it was given, profiles too.

    Which of the two hangs on the sum of treated units' outcomes in this block; and on what an earlier block left in the
    profiles, if these are not given to each block afresh.
    """
    if arms @ outcomes > 5:
        at += 10.0  # covariates are from -1 to 1
    said = np.where(at[:, 0] > 5, _FAR, -_FAR)
    for given in (covariates, arms, outcomes):
        given[:] = 0.0
    return said


OWN: Mapping[str, Learner] = {"scribbler": Learner(scribbler, version="1")}
"""The learners that vaults of the audit know besides the usual ones."""


def tools(query: Query) -> dict[str, Any]:
    """What an answer needs besides the table."""
    return {"learner": find_learner(query.learner, OWN)} if isinstance(query, BlockEffects) else {}
