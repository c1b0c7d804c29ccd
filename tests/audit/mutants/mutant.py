"""What a mutant is, and how the checks that must catch it are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dpcausal.audit import tables
from dpcausal.audit.attack import check_epsilon, ranked_pairs
from dpcausal.audit.determinism import check_determinism
from dpcausal.audit.finding import Finding
from dpcausal.audit.fuzz import check_shape
from dpcausal.audit.losses import Claim, claims, worst_of_all
from dpcausal.audit.noise_distribution import check_draws, check_noise
from dpcausal.audit.payment import check_debit
from dpcausal.audit.public_outputs import check_public_outputs
from dpcausal.audit.sensitivity import check_sensitivity
from dpcausal.audit.targets import TARGETS, Target
from dpcausal.queries import Query
from dpcausal.queries.scores import weight_table
from dpcausal.queries.summing import SummingQuery
from dpcausal.sums.description import Sums
from dpcausal.vault import adding
from dpcausal.vault.adding import add_up
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.context import Answer, AnswerContext
from tests.support.descriptions import forget_descriptions

Break = Callable[[pytest.MonkeyPatch], None]
Check = Callable[[], Finding]


@dataclass(frozen=True)
class Mutant:
    """A broken variant.

    Attributes:
        name: What is wrong with it.
        broken: What breaks the package.
        check: The check that must fail then, and pass otherwise.
        rereads: Whether it changes how tables are read, so that nothing that was read before counts.
    """

    name: str
    broken: Break
    check: Check
    rereads: bool


MUTANTS: list[Mutant] = []


def mutant(name: str, check: Check, *, rereads: bool = False) -> Callable[[Break], Break]:
    """Put a way to break the package on the list."""

    def listed(broken: Break) -> Break:
        MUTANTS.append(Mutant(name, broken, check, rereads))
        return broken

    return listed


def found(each: Mutant, *, breaking: bool) -> Finding:
    """Return what the check finds in the broken package, or in the whole one.

    Units that were read once are shared by all mutants that do not change how they are read.
    """
    with pytest.MonkeyPatch.context() as patch:
        _forget()
        if each.rereads:
            patch.setattr(tables, "CATALOGUES", {})
        if breaking:
            each.broken(patch)
        finding = each.check()
    _forget()
    return finding


def _forget() -> None:
    worst_of_all.cache_clear()
    weight_table.cache_clear()
    forget_descriptions()


def _claims(query: type[Query], wanted: Mapping[str, object]) -> list[Claim]:
    """The audited claims about such a query with such parameters."""
    return [
        claim
        for group in claims([query]).values()
        for claim in group
        if all(getattr(claim.query, name) == value for name, value in wanted.items())
    ]


def answer_by(patch: pytest.MonkeyPatch, query: type[Query], answer: Callable[[AnswerContext[Any]], Answer]) -> None:
    """Let another function answer a query."""
    patch.setitem(ANSWERS, query, answer)


def add_up_others(patch: pytest.MonkeyPatch, query: type[SummingQuery], changed: Callable[[Sums], Sums]) -> None:
    """Let a query's answer add up what its bound is not of."""

    def answer(context: AnswerContext[SummingQuery]) -> Answer:
        described = context.query.sums(context.schema, context.schema.bounded_as(context.guarantee.protects), "l1")
        ticks = [add_up(context.engine, changed(sums)) for sums in described]
        return Answer({name: tick for each in ticks for name, tick in each.items()})

    answer_by(patch, query, answer)


def answer_within(patch: pytest.MonkeyPatch, query: type[SummingQuery], broken: Break) -> None:
    """Let a query's answer add up what its bound is not of: the description that it has once something is broken."""

    def answer(context: AnswerContext[SummingQuery]) -> Answer:
        with pytest.MonkeyPatch.context() as inner:
            broken(inner)
            inner.setattr(adding, "described", lambda query, *asked: query.sums(*asked))  # anew, not as its bound was
            return adding.answer(context)

    answer_by(patch, query, answer)


def noise_of(query: type[Query], runs: int = 100, **wanted: object) -> Check:
    return lambda: check_noise(query.name, _claims(query, wanted)[0], runs, at_once=10_000)


def draws_of(name: str) -> Check:
    return lambda: check_draws(_target(name))


def _target(name: str) -> Target:
    """A fresh copy of a target, which has observed nothing yet."""
    return replace(next(target for target in TARGETS if target.name == name))


def sensitivity_of(query: type[Query], sizes: tuple[int, ...] = (2,), **wanted: object) -> Check:
    """Check one claim after the other, up to the first that fails."""

    def check() -> Finding:
        first, *rest = _claims(query, wanted)
        finding = check_sensitivity(query.name, [first], sizes)
        while finding.passed and rest:
            finding = check_sensitivity(query.name, [rest.pop(0)], sizes)
        return finding

    return check


def determinism_of(query: type[Query]) -> Check:
    return lambda: check_determinism(query.name, _claims(query, {})[0], 2_000, threads=(2,))


def attack_on(name: str, runs: int) -> Check:
    def check() -> Finding:
        target = _target(name)
        pair, exact = ranked_pairs(target, (2,))[0]
        return check_epsilon(target, pair, exact, runs)

    return check


def shape_of(name: str) -> Check:
    """Look at the shape of what the estimators of this name release, and a learner that cannot behave."""
    targets = [target for target in TARGETS if target.name.startswith(name)]
    return lambda: check_shape(1, targets=targets)


def debit() -> Finding:
    return check_debit(TARGETS[:5])


def public() -> Finding:
    return check_public_outputs(TARGETS[2], 6)


def public_of(name: str) -> Check:
    return lambda: check_public_outputs(_target(name))
