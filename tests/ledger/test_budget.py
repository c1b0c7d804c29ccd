import functools
import math
import sys
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.errors import GuaranteeError, MissingExtraError
from dpcausal.guarantee import Event, Rule, exact
from dpcausal.ledger.accounting import tight_epsilon
from dpcausal.ledger.budget import Total, _rho_of
from dpcausal.queries import ArmTotals
from dpcausal.queries.calibration import calibrate, epsilon_of_gaussian, float_below, gaussian_sd


def laplace(epsilon: float) -> Event:
    return Event(family="laplace", epsilon=epsilon, delta=0.0, mu=0.0)


def gaussian(epsilon: float, delta: float, rule: Rule = "zcdp") -> Event:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    return calibrate(ArmTotals(), schema, dpc.Guarantee(epsilon=epsilon, delta=delta), rule).event


def total(*events: Event) -> Total:
    return functools.reduce(Total.plus, events, Total())


def test_decimals_add_up_as_people_write_them() -> None:
    assert dpc.Budget(epsilon=0.3).covers(total(*[laplace(0.1)] * 3))
    assert not dpc.Budget(epsilon=0.3).covers(total(*[laplace(0.1)] * 3, laplace(1e-6)))


def test_deltas_add_up_too() -> None:
    budget = dpc.Budget(epsilon=10, delta=2e-6)
    assert budget.covers(total(*[gaussian(1, 1e-6)] * 2))
    assert not budget.covers(total(*[gaussian(1, 1e-6)] * 3))
    assert not dpc.Budget(epsilon=10).covers(total(gaussian(1, 1e-6)))


def test_zcdp_affords_more_small_gaussians_and_fewer_large_laplaces() -> None:
    added, concentrated = dpc.Budget(epsilon=3, delta=1e-5), dpc.Budget(epsilon=3, delta=1e-5, rule="zcdp")
    many = total(*[gaussian(0.2, 1e-7)] * 50)
    assert concentrated.covers(many)
    assert not added.covers(many)
    few = total(*[laplace(1.0)] * 3)
    assert added.covers(few)
    assert not concentrated.covers(few)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 49, 1_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(3, 1e-6), (0.3, 1e-9), (1, 1e-5)])
def test_equal_parts_of_a_budget_fit_and_leave_nothing_worth_having(count: int, epsilon: float, delta: float) -> None:
    for budget in (
        dpc.Budget(epsilon=epsilon),
        dpc.Budget(epsilon=epsilon, delta=delta),
        dpc.Budget(epsilon=epsilon, delta=delta, rule="zcdp"),
    ):
        part = budget.part(count)
        one = gaussian(part.epsilon, part.delta) if part.delta else laplace(part.epsilon)
        spent = Total().plus(one, count)
        assert budget.covers(spent)
        assert not budget.covers(spent.plus(one))
        assert budget.spent(spent).epsilon == pytest.approx(epsilon, rel=1e-4)


@given(
    epsilon=st.floats(0.01, 20) | st.integers(1, 20) | st.decimals(min_value="0.01", max_value=20, places=3).map(float),
    delta=st.sampled_from([0.0, 1e-9, 1e-6, 3e-5]),
    outer=st.integers(1, 60),
    inner=st.integers(1, 60),
    rule=st.sampled_from(["additive", "zcdp"]),
)
@example(epsilon=4, delta=1e-6, outer=20, inner=8, rule="zcdp")
@example(epsilon=2.225, delta=0.0, outer=23, inner=16, rule="additive")
@settings(max_examples=60, deadline=None)
def test_parts_of_a_part_fit_into_it(epsilon: float, delta: float, outer: int, inner: int, rule: Any) -> None:
    """Eight looks that are one of 160 parts each fit into an experiment's budget that is one of 20."""
    whole = dpc.Budget(epsilon=epsilon, delta=delta, rule=rule if delta else "additive")
    large, small = whole.part(outer), whole.part(outer * inner)
    one = gaussian(small.epsilon, small.delta) if delta else laplace(small.epsilon)
    part = dpc.Budget(epsilon=large.epsilon, delta=large.delta, rule=whole.rule)
    assert part.covers(Total().plus(one, inner))
    assert whole.covers(functools.reduce(Total.__add__, [part.cap] * outer))
    assert whole.spent(Total().plus(one, outer * inner)).epsilon == pytest.approx(epsilon, rel=1e-6)


def test_parts_are_counted_in_whole_numbers() -> None:
    for count in (0, -1, 2.0):
        with pytest.raises(GuaranteeError, match="a number of queries"):
            dpc.Budget(epsilon=1).part(count)  # type: ignore[arg-type]


def test_a_zcdp_budget_covers_one_gaussian_release_of_its_own_numbers_and_is_still_private() -> None:
    random = np.random.default_rng(3)
    pairs = [(round(float(10**e), 4), float(10**d)) for e, d in random.uniform((-2, -9), (1, -3), (12, 2))]
    for epsilon, delta in [(0.1, 1e-6), (0.3, 1e-5), (1.0, 1e-6), (3.0, 1e-6), *pairs]:
        budget = dpc.Budget(epsilon=epsilon, delta=delta, rule="zcdp")
        event = gaussian(epsilon, delta)
        assert budget.covers(total(event))
        assert not budget.covers(total(event, event))
        assert event.rho >= 1 / (2 * Fraction(gaussian_sd(epsilon, delta)) ** 2)  # never charged too little
        smaller = float_below(1 / Fraction(event.mu))
        assert budget.cap.rho <= 1 / (2 * Fraction(smaller) ** 2)
        assert Fraction(epsilon_of_gaussian(smaller, float_below(exact(delta)))) <= exact(epsilon)


def test_a_charge_that_opendp_does_not_confirm_is_beyond_a_zcdp_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.ledger.budget.epsilon_of_gaussian", lambda *_: math.inf)
    _rho_of.cache_clear()
    cap = dpc.Budget(epsilon=0.77, delta=1e-6, rule="zcdp").cap
    assert cap.rho == 1 / (2 * Fraction(gaussian_sd(0.77, 1e-6)) ** 2)
    _rho_of.cache_clear()


@pytest.mark.parametrize("rule", ["additive", "zcdp"])
@pytest.mark.parametrize(("epsilon", "delta", "count"), [(3, 0.4, 10**8), (0.001, 1e-5, 10**6), (3, 1e-6, 10**20)])
def test_parts_that_are_too_small_are_refused(rule: Any, epsilon: float, delta: float, count: int) -> None:
    with pytest.raises(GuaranteeError, match="ask fewer queries"):
        dpc.Budget(epsilon=epsilon, delta=delta, rule=rule).part(count)


def test_one_gaussian_of_the_whole_budget_fits_under_either_rule() -> None:
    for rule in ("additive", "zcdp"):
        budget = dpc.Budget(epsilon=1, delta=1e-6, rule=rule)
        assert budget.covers(total())
        assert budget.remaining(total()).epsilon == pytest.approx(1)
        spent = budget.spent(total(gaussian(0.999, 1e-6)))
        assert budget.covers(total(gaussian(0.999, 1e-6)))
        assert spent.epsilon == pytest.approx(0.999)
        assert not budget.covers(total(gaussian(0.999, 1e-6), laplace(0.1)))


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "rule": "zcdp"}, {"epsilon": 1, "rule": "none"}],
)
def test_impossible_budgets_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(GuaranteeError):
        dpc.Budget(**wrong)  # type: ignore[arg-type]


def test_a_refusal_speaks_in_the_terms_of_its_rule() -> None:
    left, got, _ = dpc.Budget(epsilon=3).refusal(total(laplace(2.5)), laplace(1.0))
    assert (left, got) == ("epsilon 0.5, delta 0", "epsilon 1, delta 0")
    left, got, hint = dpc.Budget(epsilon=3, delta=1e-6, rule="zcdp").refusal(total(), laplace(1.0))
    assert left.startswith("rho 0.1")
    assert got == "rho 0.5 (laplace noise for epsilon 1, delta 0)"
    assert "with a positive delta" in hint


def test_tight_totals_are_never_above_sums() -> None:
    events = [laplace(0.1)] * 20
    assert tight_epsilon(events, 0.0) == 2.0
    assert tight_epsilon(events, 1e-6) < 1.8  # 1.789 by an independent computation
    assert tight_epsilon([gaussian(1, 1e-6)], 1e-6) == pytest.approx(0.93, abs=0.02)
    assert tight_epsilon([gaussian(1, 1e-6, "additive")], 1e-6) == pytest.approx(1, abs=1e-4)
    assert tight_epsilon([], 1e-6) == 0.0
    mixed = [*events, gaussian(1, 1e-6)]
    assert tight_epsilon(mixed, 1e-6) < 3.0


def test_tight_totals_without_their_library_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.common", None)
    assert tight_epsilon([laplace(0.1)], 0.0) == 0.1
    with pytest.raises(MissingExtraError, match=r"dpcausal\[accounting\]"):
        tight_epsilon([laplace(0.1)], 1e-6)


def test_many_events_add_up_like_one_after_the_other() -> None:
    for event in (laplace(0.1), gaussian(0.3, 1e-7)):
        assert total(laplace(0.2)).plus(event, 1000) == total(laplace(0.2), *[event] * 1000)


def delta_of_gaussian(epsilon: float, mu: float) -> float:
    below = NormalDist().cdf
    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


def test_tight_totals_of_many_events_are_quick_and_right() -> None:
    """Events that are alike are composed at once: one after the other, these would take minutes.

    So many small events come to one Gaussian release, by the central limit theorem for privacy losses.
    """
    pure, noisy = laplace(0.001), Event(family="gaussian", epsilon=0.1, delta=1e-9, mu=0.001)
    one_kind, two_kinds = tight_epsilon([pure] * 33_000, 1e-6), tight_epsilon([pure, noisy] * 33_000, 1e-6)
    assert delta_of_gaussian(one_kind, 0.001 * math.sqrt(33_000)) == pytest.approx(1e-6, rel=0.01)
    assert delta_of_gaussian(two_kinds, 0.001 * math.sqrt(66_000)) == pytest.approx(1e-6, rel=0.01)
