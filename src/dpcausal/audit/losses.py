"""The privacy loss itself, without sampling, wherever noise is added to an exact answer."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from dpcausal.audit.bound import epsilon_of_mu
from dpcausal.audit.neighbours import Pair, Record, record, worst_pairs
from dpcausal.audit.spy import SpySampler
from dpcausal.audit.tables import catalogue_of, exact_answer
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, CovariateSums, Query, Sensitivity, StratumMatches
from dpcausal.queries.calibration import Noise, calibrate
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import PROTECTS, Protects, Schema
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


UNKNOWN = dict.fromkeys(("ward", "age", "smoker"))
"""The covariates of a unit of which nothing is known."""


def all_pairs(
    size: int, protects: Protects, *, missing: bool = False, unknown: bool = False
) -> Iterator[tuple[tuple[Record, ...], Record, Record]]:
    """Yield all tables of so many units, less one, with outcomes at the ends, and all two units that may be the last.

    One of the two may be in an arm that is not declared or, where arms are public, without an outcome. Where that puts
    it outside the comparison, it leaves. With `missing` both may be without an outcome in any case, and with
    `unknown` without any covariate.
    """
    public = {"record": (), "record_within_arm": ("treat",), "outcome": ("treat", "ward", "age")}[protects]
    lacking = [OUTSIDE] if protects == "record" else []
    if missing or protects != "record":
        lacking += [dict(kind) | {"score": None} for kind in small_kinds((0.0,))]
    if unknown:
        lacking += [dict(kind) | UNKNOWN for kind in small_kinds((0.0,))]
    kinds = [*small_kinds(outcomes=(0.0, 2.5, 7.5, 10.0)), *lacking]
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
        query = claim.query
        allowed = {"missing": query.counts_missing, "unknown": bool(query.indicated)}
        for rest, before, after in all_pairs(size, claim.guarantee.protects, **allowed):
            lost = claim.loss(answer((*rest, before)), answer((*rest, after)))
            tried += 1
            if lost > most:
                most, where = lost, Pair(f"worst small table, {claim.query.name}", rest, before, after)
    return most, where, tried


def claims(kinds: Sequence[type[Query]] = ()) -> dict[str, list[Claim]]:
    """Return the claims about every example of every query that draws no noise inside its answer, grouped."""
    grouped: dict[str, list[Claim]] = {}
    for kind in kinds or QUERIES.values():
        for query in () if kind.draws else kind.examples(standard_schema()):
            for claim in _variants(query):
                grouped.setdefault(_group(claim), []).append(claim)
    # Whatever the scale of a covariate, its scores have the same limits.
    for query in CovariateSums.examples(standard_schema())[-1:] if not kinds or CovariateSums in kinds else ():
        for claim in _variants(query):
            grouped[_group(claim)].append(replace(claim, schema=claim.schema.scaled({"age": _SCALE})))
    return grouped


_SCALE = Scale([(40, -1), (60, 0), (61, 1)])


def _variants(query: Query) -> Iterator[Claim]:
    """Yield a claim for each protection, declaration of arms and outcomes and kind of noise with its own sensitivity.

    The widest protection comes first: with the same sensitivity, a narrower one only has fewer neighbours.
    """
    seen: list[tuple[Sensitivity, float]] = []
    epsilons = (1.0, 0.1, 8.0) if query.noise == "smooth" else (1.0,)
    declared = itertools.product(PROTECTS, (None, 0), (False, True), (0.0, 1e-5), epsilons)
    for protects, undeclared, complete, delta, epsilon in declared:
        guarantee = Guarantee(epsilon=epsilon, delta=delta, protects=protects)
        claim = Claim(query, standard_schema(protects, undeclared, complete=complete), guarantee)
        try:
            own = claim.noise.sensitivity, epsilon
        except QueryError:  # not for such tables, or not for such a guarantee
            continue
        if own not in seen:
            seen.append(own)
            yield claim


def _group(claim: Claim) -> str:
    noise = "smooth" if claim.query.noise == "smooth" else "Gaussian" if claim.guarantee.delta else "Laplace"
    arms = "" if claim.schema.treatment.undeclared is None else ", two arms only"
    return f"{claim.query.name}, {claim.guarantee.protects.replace('_', ' ')}{arms}, {noise}"
