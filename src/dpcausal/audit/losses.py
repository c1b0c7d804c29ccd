"""The privacy loss itself, without sampling, wherever noise is added to an exact answer."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from dpcausal.audit.bound import epsilon_of_mu
from dpcausal.audit.neighbours import Pair, Record, record, worst_pairs
from dpcausal.audit.spy import SpySampler
from dpcausal.audit.tables import catalogue_of, exact_answer
from dpcausal.calibration import Noise, calibrate, smoothness
from dpcausal.guarantee import Guarantee
from dpcausal.queries import (
    ArmMoments,
    ArmTotals,
    AugmentedScores,
    BlockEffects,
    Cells,
    CovariateSums,
    Cut,
    EffectMoments,
    EffectWeights,
    Fourier,
    MatchedContrast,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Polynomial,
    Query,
    RegressionMoments,
    ScoreCounts,
    Spline,
    StratumContrasts,
    StratumCounts,
    StratumMatches,
    SubgroupMoments,
    WeightedArms,
    WeightedCovariates,
)
from dpcausal.schema import PROTECTS, Protects, Schema
from dpcausal.testing import standard_schema
from dpcausal.vault.context import Answer
from dpcausal.vault.engines import Engine


@dataclass(frozen=True)
class Claim:
    """A query, the tables it is asked of, and what is claimed about its answer."""

    query: Query
    schema: Schema
    guarantee: Guarantee

    @cached_property
    def noise(self) -> Noise:
        """The noise that the door would add."""
        return calibrate(self.query, self.schema, self.guarantee)

    def answer(self, engine: Engine) -> Answer:
        """Return the exact answer, which in production never leaves the vault."""
        return exact_answer(self.query, self.schema, engine, self.guarantee)

    @cached_property
    def exact(self) -> bool:
        """Whether the answer draws nothing, as seen on one table: then its loss is known without sampling."""
        spy, table = SpySampler(), worst_pairs(self.schema.protects)[0].tables[0]
        engine = catalogue_of(self.schema).assemble(table)
        exact_answer(self.query, self.schema, engine, self.guarantee, sampler=spy)
        return not spy.drawn

    def loss(self, one: Answer, other: Answer) -> float:
        """Return the privacy loss between two answers as a share of what is claimed: more than 1 is a broken promise.

        For Laplace noise that is the sum of (move / scale) over epsilon; for Gaussian noise the epsilon that the length
        mu of the vector of (move / sd) has at this delta; mu may not be more than the ledger is charged for either.
        Where the scale is private it is not a loss but a share of what the proof allows: moves may be half of what
        their share of epsilon pays for, and the scale's logarithm may move by beta (docs/proofs/stratum_matches.md).
        """
        if one.public_values != other.public_values:
            return math.inf
        pairs = list(zip(one.in_order(self.noise), other.in_order(self.noise), strict=True))
        moves = [abs(a - b) for a, b in pairs]
        if self.noise.family == "gaussian":
            mu = math.hypot(*(move / scale for move, scale in zip(moves, self.noise.scales, strict=True) if scale))
            lost = epsilon_of_mu(mu, self.guarantee.delta) / self.guarantee.epsilon
            charged = self.noise.event.mu * (1 + 1e-9)
            return lost if mu <= charged else max(lost, mu / charged)
        public = [(move, scale) for move, scale in zip(moves, self.noise.scales, strict=True) if scale is not None]
        lost = sum(move / scale for move, scale in public) / self.guarantee.epsilon
        if len(public) == len(moves):
            return lost
        return max(self._private_loss(moves[0], one, other), lost / (1 - self._effect_share))

    @property
    def _effect_share(self) -> float:
        return float(self.query.shares["effect"]) if isinstance(self.query, StratumMatches) else 0.0

    def _private_loss(self, move: int, one: Answer, other: Answer) -> float:
        epsilon = self.guarantee.epsilon * self._effect_share
        scales = one.scales["effect"], other.scales["effect"]
        drift = abs(math.log(scales[0] / scales[1])) / smoothness(epsilon, self.guarantee.delta)
        return max(2 * move / min(scales) / epsilon, drift)


def loss_between(claim: Claim, pair: Pair) -> float:
    """Return the loss of a claim on one pair of tables."""
    one, other = (claim.answer(catalogue_of(claim.schema).assemble(table)) for table in pair.tables)
    return claim.loss(one, other)


OUTSIDE = record(2, 0.0)
"""A unit in an arm that is not declared."""


def small_kinds(outcomes: Sequence[float] = (0.0, 10.0)) -> list[Record]:
    """Return units with these outcomes and covariates at the ends of their ranges, in both arms."""
    ends = (("a", 18.0, "no"), ("b", 90.0, "yes"))
    return [
        record(arm, outcome, ward=ward, age=age, smoker=smoker)
        for arm in (0, 1)
        for outcome in outcomes
        for ward, age, smoker in ends
    ]


def all_pairs(size: int, protects: Protects) -> Iterator[tuple[tuple[Record, ...], Record, Record]]:
    """Yield all tables of so many units, less one, with outcomes at the ends, and all two units that may be the last.

    One of the two may be in an arm that is not declared. Where that puts it outside the comparison, it leaves.
    """
    public = {"record": (), "record_within_arm": ("treat",), "outcome": ("treat", "ward")}[protects]
    kinds = [*small_kinds(outcomes=(0.0, 2.5, 7.5, 10.0)), OUTSIDE]
    changes = [(a, b) for a, b in itertools.combinations(kinds, 2) if all(a[name] == b[name] for name in public)]
    for rest in itertools.combinations_with_replacement(small_kinds(), size - 1):
        yield from ((rest, a, b) for a, b in changes)


@cache
def worst_of_all(claim: Claim, sizes: tuple[int, ...]) -> tuple[float, Pair, int]:
    """Return the largest loss over all small tables and their neighbours, where it is, and how many pairs there are.

    The search is made once for a claim in each process: attacks and sensitivity share it.
    """
    catalogue = catalogue_of(claim.schema)
    answers: dict[tuple[int, ...], Answer] = {}
    kinds: dict[tuple[Any, ...], int] = {}

    def answer(units: tuple[Record, ...]) -> Answer:
        key = tuple(sorted(kinds.setdefault(tuple(each.values()), len(kinds)) for each in units))
        if key not in answers:
            answers[key] = claim.answer(catalogue.assemble(units))
        return answers[key]

    most, where, tried = -1.0, Pair("", (), {}, {}), 0
    for size in sizes:
        for rest, before, after in all_pairs(size, claim.guarantee.protects):
            lost = claim.loss(answer((*rest, before)), answer((*rest, after)))
            tried += 1
            if lost > most:
                most, where = lost, Pair(f"worst small table, {claim.query.name}", rest, before, after)
    return most, where, tried


Asked = tuple[Query, Protects, float]
"""A query, what it protects, and its delta."""

_BOTH = (0.0, 1e-5)


def claims() -> dict[str, list[Claim]]:
    """Return every query whose answer is exact, in the variants that have bounds of their own, grouped."""
    grouped: dict[str, list[Claim]] = {}
    every = (*_of_averages(), *_of_curves(), *_of_diagnostics())
    asked = [(*each, None) for each in every] + [(*each, 0) for each in _of_two_arms()]
    for query, protects, delta, undeclared in asked:
        noise = "smooth" if query.noise == "smooth" else "Gaussian" if delta else "Laplace"
        arms = "" if undeclared is None else ", two arms only"
        name = f"{query.name}, {protects.replace('_', ' ')}{arms}, {noise}"
        for epsilon in (1.0, 0.1, 8.0) if query.noise == "smooth" else (1.0,):
            guarantee = Guarantee(epsilon=epsilon, delta=delta, protects=protects)
            claim = Claim(query, standard_schema(protects, undeclared), guarantee)
            grouped.setdefault(name, []).append(claim)
    return grouped


def _of_two_arms() -> list[Asked]:
    """Return questions of tables that no unit can leave: those proved only there, and those with fewer sums there."""
    by = [Cut("ward")]
    asked: list[Asked] = [(StratumMatches(by, "global"), "record", delta) for delta in _BOTH]
    asked += [(StratumMatches(by, "smooth"), "record", 1e-5)]
    for each in (
        ArmTotals(),
        ArmMoments(),
        StratumContrasts(by, 3),
        RegressionMoments(["age"]),
        CovariateSums(["age"]),
    ):
        asked += [(each, "record", delta) for delta in _BOTH]
    return asked


def _of_averages() -> list[Asked]:
    """Return the questions behind average effects."""
    by = [Cut("ward")]
    asked: list[Asked] = []
    for each in (ArmTotals(), ArmMoments(), OutcomesBelow(5.0), StratumContrasts(by, 1), StratumContrasts(by, 3)):
        asked += [(each, protects, 0.0) for protects in PROTECTS] + [(each, "record", 1e-5)]
    asked += [(OutputPerturbedLogistic(["age"], penalty), "record", 0.0) for penalty in (1.0, 20.0)]
    asked += [(OutputPerturbedLogistic(["age"], 1.0), "record", 1e-5)]
    for estimand in ("ATE", "ATT", "ATC", "ATO"):
        for at, shrink in (([0.0, 20.0], 0.0), ([5.0, -20.0], 0.0), ([1.0, -1.0], 0.5), ([0.0, 0.0], 0.0)):
            asked += [(WeightedArms(["age"], at, estimand, 0.1, shrink), "record", delta) for delta in _BOTH]
    for covariates, interaction in itertools.product((["age"], ["ward", "age", "smoker"]), (True, False)):
        moments = RegressionMoments(covariates, interaction)
        asked += [(moments, protects, delta) for protects in PROTECTS for delta in _BOTH]
    far = 2.0**20
    for aim in ("ATE", "ATT", "ATO"):
        for limit, models in (
            (0.5, ([0.0, 20.0], [far, -far], [-far, far])),
            (5.0, ([-3.0, -2.0], [0.0, 0.5], [0.0, -0.5])),
        ):
            scores = AugmentedScores(["age"], *models, aim, 0.1, limit)
            asked += [(scores, "record", delta) for delta in _BOTH]
    asked += [(MatchedContrast(["age"], m, limit, 0.01), "outcome", 0.0) for m in (1, 5) for limit in (None, 1)]
    return asked


def _of_curves() -> list[Asked]:
    """Return the questions behind heterogeneous treatment effects."""
    groups, parts = Cells([Cut("ward")]), Cells([Cut("smoker"), Cut("age", [40.0, 70.0])])
    asked: list[Asked] = [(SubgroupMoments(groups), protects, 0.0) for protects in PROTECTS]
    asked += [(SubgroupMoments(groups), "record", 1e-5), (SubgroupMoments(parts), "record", 0.0)]
    far = 2.0**20
    extreme = [0.0, 20.0], [far, -far], [-far, far]
    moderate = [-3.0, -2.0], [0.0, 0.5], [0.0, -0.5]
    even = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    line, curve, waves = Polynomial(["age"]), Spline(["age"], 1), Fourier(["age"], n_features=2)
    for residual, limit, models, bases in (
        (True, 0.5, extreme, (line, curve, groups, waves)),
        (True, 1.0, even, (line, waves)),
        (False, 5.0, extreme, (curve, groups)),
        (False, 0.5, moderate, (line, waves)),
    ):
        for basis in bases:
            moments = EffectMoments(["age"], *models, basis, "residual" if residual else "augmented", 0.1, limit)
            asked += [(moments, "record", delta) for delta in _BOTH]
    for basis, models, limit, penalty in (
        (line, extreme, 0.05, 1.0),
        (waves, moderate, 0.05, 1.0),
        (curve, even, 1.0, 20.0),
    ):
        weights = EffectWeights(["age"], *models, basis, 0.1, limit, penalty)
        asked += [(weights, "record", delta) for delta in _BOTH]
    # With as many blocks as units it does not matter which unit is in which: this answer is exact.
    linear, scribbler = (BlockEffects(each, ["age"], [[18.0], [54.0]], 128, 0.1) for each in ("linear", "scribbler"))
    return [*asked, (linear, "record", 0.0), (scribbler, "record", 0.0), (scribbler, "record", 1e-5)]


def _of_diagnostics() -> list[Asked]:
    """Return the questions behind overlap and balance."""
    steep = [0.0, 20.0]
    asked: list[Asked] = []
    for counts in (StratumCounts(Cells([Cut("ward"), Cut("age", [40.0])])), ScoreCounts(["age"], steep, [0.1, 0.9])):
        asked += [(counts, protects, 0.0) for protects in PROTECTS] + [(counts, "record", 1e-5)]
    for covariates in (["age"], ["ward", "age", "smoker"]):
        sums = CovariateSums(covariates), WeightedCovariates(covariates, ["age"], steep, "ATE", 0.1)
        asked += [(each, protects, 0.0) for each in sums for protects in PROTECTS]
        asked += [(each, "record", 1e-5) for each in sums]
    both = ["age", "smoker"]
    for weighted in (
        WeightedCovariates(both, ["age"], [1.0, -1.0], "ATT", 0.1),
        WeightedCovariates(both, ["age"], [5.0, -20.0], "ATO", 0.1),
    ):
        asked += [(weighted, "record", delta) for delta in _BOTH]
    return asked
