"""Adversarial learners."""

from collections.abc import Mapping

import numpy as np

from dpcausal.utils.arrays import Array
from dpcausal.vault.numerics.learners import Learner

_FAR = 1e9


def scribbler(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """Return one extreme or the other, and overwrite all that it was given, profiles too.

    Which of the two depends on the sum of treated units' outcomes in this block; and on what an earlier block left in
    the profiles, if these are not given to each block afresh.
    """
    if arms @ outcomes > 5:
        at += 10.0  # covariates are from -1 to 1
    effects = np.where(at[:, 0] > 5, _FAR, -_FAR)
    for given in (covariates, arms, outcomes):
        given[:] = 0.0
    return effects


OWN: Mapping[str, Learner] = {"scribbler": Learner(scribbler, version="1")}
"""The learners that vaults of the audit know in addition to the built-in ones."""
