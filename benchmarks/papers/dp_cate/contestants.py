"""Who learns effects that vary: this library's learners, the paper's heuristic, a peer, and two without privacy."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.datasets import BUDGET
from benchmarks.papers.dp_cate import boosting, references
from benchmarks.papers.dp_cate.influence import SECOND_STAGES, finite_version, networks
from benchmarks.papers.dp_cate.tables import Table, Vector
from dpcausal.estimators.conditional.meta_learners import MetaLearner
from dpcausal.results.curve import CurveEstimator, EffectCurve

DELTA = 1e-6
QUERIES = 300
"""How many profiles the heuristic is asked for, as in its paper."""


@dataclass(frozen=True)
class Found:
    """Effects of the first profiles of a table, or of all; with bounds, where a learner gives any."""

    effects: Vector
    low: Vector | None = None
    high: Vector | None = None


Ask = Callable[[Table, float, Generator], Found]


@dataclass(frozen=True)
class Contestant:
    """One learner.

    Attributes:
        label: What to call it.
        group: Whose it is.
        ask: What it gives for a table and an epsilon.
        private: Whether one unit's record is protected as promised.
        share: What part of the repeats it gets on tables of more than a thousand units; slow ones get fewer.
        most_units: Beyond so many units it takes too long.
    """

    label: str
    group: Literal["ours", "paper", "peer", "reference"]
    ask: Ask
    private: bool = True
    share: float = 1.0
    most_units: int = 10**6

    def repeats(self, n: int, most: int) -> int:
        """How many of the repeats it gets: none on tables that are too large, all on small ones."""
        if n > self.most_units:
            return 0
        return most if n <= 1_000 else max(round(most * self.share), 1)


def vault(table: Table) -> dpc.Vault:
    """Return a new vault."""
    return dpc.Vault(table.data.relation(), table.data.schema("record"), ledger="sqlite://", budget=BUDGET)


def r_learner(table: Table) -> dpc.RLearner:
    """Return the R-learner with a table's functions."""
    return dpc.RLearner(covariates=table.data.names, basis=table.basis)


def _dr_learner(table: Table) -> dpc.DRLearner:
    return dpc.DRLearner(covariates=table.data.names, basis=table.basis)


def kernel_learner(table: Table, meta_learner: MetaLearner = "R") -> dpc.KernelLearner:
    """About as wide as two profiles are apart, which in half ranges is the root of the number of covariates."""
    names = table.data.names
    return dpc.KernelLearner(covariates=names, width=math.sqrt(len(names)), meta_learner=meta_learner)


def _by(make: Callable[[Table], CurveEstimator]) -> Ask:
    def ask(table: Table, epsilon: float, _: Generator) -> Found:
        return _found(make(table).estimate(vault(table), epsilon=epsilon, delta=DELTA), table)

    return ask


def _found(curve: EffectCurve, table: Table) -> Found:
    if curve.no_interval:
        return Found(curve.effect(table.profiles))
    return Found(curve.effect(table.profiles), *curve.effect_interval(table.profiles))


def _constant(table: Table, epsilon: float, _: Generator) -> Found:
    """One effect for everybody. Its interval is about the average, so it is not held against it."""
    effect = dpc.DifferenceInMeans().estimate(vault(table), epsilon=epsilon)
    return Found(np.full(len(table.effects), effect.estimate))


def _heuristic(table: Table, epsilon: float, generator: Generator) -> Found:
    effects, sd = finite_version(
        table.rows, table.profile_features[:QUERIES], networks("R", SECOND_STAGES["forest"]()), DELTA
    )
    return Found(effects + sd / epsilon * generator.standard_normal(len(effects)))


def _same_functions(table: Table, _: float, __: Generator) -> Found:
    effects, errors = references.same_functions(table)
    return Found(effects, effects - 1.96 * errors, effects + 1.96 * errors)


HEURISTIC = "Schröder et al. 2025, influence functions (not private)"
NO_PRIVACY = "no privacy: R-learner, same functions"
TREES = "no privacy: R-learner, boosted trees"

_PEERS = (
    Contestant(
        "Niu et al. 2022, DP-EBM, R-learner",
        "peer",
        lambda table, epsilon, generator: Found(boosting.r_learner(table, epsilon, DELTA, generator)),
        share=0.6,
    ),
    Contestant(
        "Niu et al. 2022, DP-EBM, DR-learner",
        "peer",
        lambda table, epsilon, generator: Found(boosting.dr_learner(table, epsilon, DELTA, generator)),
        share=0.6,
    ),
)

CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("R-learner", "ours", _by(r_learner)),
    Contestant("DR-learner", "ours", _by(_dr_learner)),
    Contestant("kernel learner", "ours", _by(kernel_learner)),
    Contestant("kernel learner, DR", "ours", _by(partial(kernel_learner, meta_learner="DR"))),
    Contestant("difference in means", "ours", _constant),
    Contestant(HEURISTIC, "paper", _heuristic, private=False, share=0.2, most_units=10_000),
    *(_PEERS if boosting.installed() else ()),
)

REFERENCES: tuple[Contestant, ...] = (
    Contestant(NO_PRIVACY, "reference", _same_functions, private=False),
    Contestant(
        TREES,
        "reference",
        lambda table, _, __: Found(references.trees(table)),
        private=False,
        share=0.2,
    ),
)
"""Learners for whom there is no epsilon."""
