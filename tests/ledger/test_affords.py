"""Whether several requests fit together, by either rule, before any of them is reserved."""

from pathlib import Path

import pytest

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger import Budget, Ledger, Population

LAPLACE = Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0)
GAUSSIAN = Event(family="gaussian", epsilon=0.2, delta=1e-6, mu=0.05)
SMOOTH = Event(family="smooth", epsilon=0.1, delta=1e-7, mu=0.0)


def opened(budget: Budget) -> Ledger:
    return Ledger.create("sqlite://", budget)


def test_three_tenths_fit_into_three_tenths_and_four_do_not() -> None:
    ledger = opened(Budget(epsilon=0.3))
    ledger.check_affords({str(place): LAPLACE for place in range(3)})
    with pytest.raises(BudgetExceededError, match=r"epsilon 0\.4, delta 0 for 4 queries"):
        ledger.check_affords({str(place): LAPLACE for place in range(4)})
    assert len(ledger.entries()) == 1


def test_what_is_reserved_is_paid_for_and_counts_against_the_rest() -> None:
    ledger = opened(Budget(epsilon=0.3))
    for request in ("a", "b"):
        ledger.grant(request, LAPLACE, {})
    ledger.check_affords({"a": LAPLACE, "b": LAPLACE, "c": LAPLACE})
    with pytest.raises(BudgetExceededError, match=r"and epsilon 0\.1, delta 0 is left"):
        ledger.check_affords({"a": LAPLACE, "c": LAPLACE, "d": LAPLACE})


def test_by_zcdp_as_many_fit_as_can_be_granted() -> None:
    ledger = opened(Budget(epsilon=0.5, delta=1e-6, rule="zcdp"))
    requests = [str(place) for place in range(1_000)]
    fitting = 0
    for request in requests:
        try:
            ledger.grant(request, GAUSSIAN, {})
        except BudgetExceededError:
            break
        fitting += 1
    assert 1 < fitting < 1_000
    fresh = opened(Budget(epsilon=0.5, delta=1e-6, rule="zcdp"))
    fresh.check_affords(dict.fromkeys(requests[:fitting], GAUSSIAN))
    with pytest.raises(BudgetExceededError, match=f"{fitting + 1} queries"):
        fresh.check_affords(dict.fromkeys(requests[: fitting + 1], GAUSSIAN))


def test_an_event_that_a_rule_cannot_take_is_named() -> None:
    ledger = opened(Budget(epsilon=3, delta=1e-6, rule="zcdp"))
    with pytest.raises(BudgetExceededError, match="additive rule takes such events"):
        ledger.check_affords({"a": GAUSSIAN, "b": SMOOTH})


def test_several_prices_of_one_request_are_reserved_together_or_not_at_all() -> None:
    ledger = opened(Budget(epsilon=0.3, delta=1e-6))
    with pytest.raises(BudgetExceededError, match=r"epsilon 0\.4, delta 2e-06 for 2 queries"):
        ledger.grant("too much", [GAUSSIAN, GAUSSIAN], {})
    assert len(ledger.entries()) == 1
    ledger.grant("both", [LAPLACE, GAUSSIAN], {})
    assert (ledger.spent.epsilon, ledger.spent.delta) == (0.3, 1e-6)
    assert [entry.kind for entry in ledger.entries()] == ["open", "grant"]
    with pytest.raises(LedgerError, match="price that was reserved"):
        ledger.grant("both", [LAPLACE], {})


def test_refusal_says_what_is_short_and_what_was_free() -> None:
    """A template's delta met a budget without one, and a question that had changed cost again without a word."""
    without = opened(Budget(epsilon=0.3))
    with pytest.raises(BudgetExceededError, match="ask with a delta of at most 0; the budget is") as found:
        without.check_affords({"a": GAUSSIAN})
    assert "only where nothing in it changed" not in str(found.value)
    without.grant("a", LAPLACE, {})
    with pytest.raises(BudgetExceededError, match="costs nothing only where nothing in it changed"):
        without.check_affords({"b": Event(family="laplace", epsilon=0.25, delta=0.0, mu=0.0)})


def test_a_population_opened_as_a_ledger_asks_for_the_name(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/teams.db"
    Population.create(place, "teams", Budget(epsilon=1)).allocate("headline", Budget(epsilon=0.5), as_of="w")
    with pytest.raises(LedgerError, match=r"add which ledger: .*POPULATION/EXPERIMENT"):
        Ledger(place)
    assert Ledger(f"{place}?ledger=teams/headline").budget == Budget(epsilon=0.5)
    with pytest.raises(LedgerError) as found:
        Ledger(f"sqlite:///{tmp_path}/none.db")
    assert "POPULATION" not in str(found.value)
