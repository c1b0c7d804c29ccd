"""One budget for every experiment on the same people."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger import allocation, population, running_total, verification
from dpcausal.ledger.allocation import Days
from dpcausal.ledger.budget import Total

AS_OF = "2026-06-30"
HALF = dpc.Budget(epsilon=0.5)


def event(epsilon: float) -> Event:
    return Event(family="laplace", epsilon=epsilon, delta=0.0, mu=0.0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'population.db'}"


@pytest.fixture
def people(url: str) -> dpc.Population:
    return dpc.Population.create(url, "people", dpc.Budget(epsilon=2))


def execute(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_allocations_never_exceed_the_budget(people: dpc.Population) -> None:
    for place in range(4):
        people.allocate(f"e{place}", HALF, as_of=AS_OF)
    with pytest.raises(BudgetExceededError, match="epsilon 0, delta 0"):
        people.allocate("e4", dpc.Budget(epsilon=1e-6), as_of=AS_OF)
    assert people.remaining.epsilon == 0
    people.verify()


def test_zcdp_allocations_add_up_rho(url: str) -> None:
    budget = dpc.Budget(epsilon=1, delta=1e-6, rule="zcdp")
    people = dpc.Population.create(url, "people", budget)
    part = budget.part(4)
    quarter = dpc.Budget(epsilon=part.epsilon, delta=part.delta, rule="zcdp")
    for place in range(4):
        people.allocate(f"e{place}", quarter, as_of=AS_OF)
    with pytest.raises(BudgetExceededError):
        people.allocate("e4", quarter, as_of=AS_OF)
    with pytest.raises(LedgerError, match="rule"):
        people.allocate("e5", dpc.Budget(epsilon=0.1, delta=1e-8), as_of=AS_OF)


def test_allocating_again_takes_nothing_more(people: dpc.Population) -> None:
    first = people.allocate("e", HALF, as_of=AS_OF)
    assert people.allocate("e", HALF, as_of=AS_OF).opening == first.opening
    assert people.remaining.epsilon == 1.5
    for budget, as_of in ((dpc.Budget(epsilon=1), AS_OF), (HALF, "2027")):
        with pytest.raises(LedgerError, match="was allocated"):
            people.allocate("e", budget, as_of=as_of)
    assert people.remaining.epsilon == 1.5


def test_a_removed_ledger_is_not_created_again(url: str, people: dpc.Population) -> None:
    people.allocate("e", HALF, as_of=AS_OF)
    execute(url, "DELETE FROM dpcausal_ledgers WHERE ledger = 'people/e'")
    for use in (lambda: people.allocate("e", HALF, as_of=AS_OF), people.verify, lambda: people.close("e")):
        with pytest.raises(LedgerError, match="created together"):
            use()


def test_an_experiment_answers_from_its_own_ledger(url: str, people: dpc.Population) -> None:
    ledger = people.allocate("e", HALF, as_of=AS_OF)
    schema = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real("y", 0, 1))
    table = pa.table({"arm": [0, 1] * 50, "y": [0.2, 0.6] * 50})
    vault = dpc.Vault(table, schema, ledger=ledger.address, as_of=AS_OF)
    dpc.DifferenceInMeans().estimate(vault, epsilon=0.4)
    assert dpc.Ledger(f"{url}?ledger=people/e").spent.epsilon == 0.4
    with pytest.raises(BudgetExceededError):
        dpc.DifferenceInMeans().estimate(vault, epsilon=0.2)
    weaker = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real("y", 0, 1), protects="outcome")
    with pytest.raises(LedgerError, match="or stronger"):
        dpc.Vault(table, weaker, ledger=people.allocate("f", HALF, as_of=AS_OF), as_of=AS_OF)


def test_closing_returns_what_was_never_granted(people: dpc.Population) -> None:
    ledger = people.allocate("e", HALF, as_of=AS_OF)
    ledger.grant("debited", event(0.1), {})
    ledger.debit("debited")
    ledger.grant("reserved", event(0.2), {})
    assert people.close("e").epsilon == pytest.approx(0.2)
    assert people.close("e").epsilon == pytest.approx(0.2)
    assert people.allocated.epsilon == pytest.approx(0.3)
    with pytest.raises(LedgerError, match="closed"):
        ledger.grant("later", event(0.1), {})
    with pytest.raises(LedgerError, match="closed"):
        ledger.check_affords({"later": event(0.1)})
    assert ledger.remaining.epsilon == 0
    ledger.debit("reserved")  # its price was not returned
    ledger.verify()
    people.verify()
    assert [each.returned is not None for each in people.experiments()] == [True]


def test_closing_under_zcdp_returns_rho_exactly(url: str) -> None:
    people = dpc.Population.create(url, "people", dpc.Budget(epsilon=2, delta=1e-6, rule="zcdp"))
    part = dpc.Budget(epsilon=1, delta=1e-6, rule="zcdp")
    ledger = people.allocate("e", part, as_of=AS_OF)
    gaussian = Event(family="gaussian", epsilon=0.3, delta=1e-6, mu=0.05)
    ledger.grant("query", gaussian, {})
    people.close("e")
    people.verify()
    assert people.allocated == people.budget.spent(Total().plus(gaussian))


def test_a_closed_ledger_that_grants_is_found(people: dpc.Population, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = people.allocate("e", HALF, as_of=AS_OF)
    people.close("e")
    with monkeypatch.context() as patch:  # a version of dpcausal that does not know of closing
        patch.setattr(dpc.Ledger, "_check_open", lambda _: None)
        patch.setattr(running_total.RunningTotal, "_with", lambda self, _: self)
        ledger.grant("later", event(0.5), {})
    with pytest.raises(LedgerError):
        people.verify()


def test_damage_is_found(url: str, people: dpc.Population) -> None:
    people.allocate("e", HALF, as_of=AS_OF)
    people.allocate("f", HALF, as_of=AS_OF)
    execute(
        url, "UPDATE dpcausal_ledgers SET body = replace(body, '0.5', '0.1') WHERE ledger = 'people' AND number = 1"
    )
    with pytest.raises(LedgerError, match="chain is broken"):
        dpc.Population(url, "people")


def test_a_witness_finds_an_older_copy(tmp_path: Path, url: str) -> None:
    witness = str(tmp_path / "witness.log")
    people = dpc.Population.create(url, "people", dpc.Budget(epsilon=2), witness=witness)
    people.allocate("e", HALF, as_of=AS_OF)
    execute(url, "DELETE FROM dpcausal_ledgers WHERE ledger = 'people/e' OR (ledger = 'people' AND number = 1)")
    with pytest.raises(LedgerError, match="as the witness"):
        dpc.Population(url, "people", witness=witness)


def test_checkpoints_hold_the_allocations(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_total, "CHECKPOINT_EVERY", 5)
    monkeypatch.setattr(verification, "PIECE", 3)
    monkeypatch.setattr(population, "_AT_ONCE", 2)
    people = dpc.Population.create(url, "people", dpc.Budget(epsilon=1), period="year")
    for place in range(8):
        people.allocate(f"e{place}", dpc.Budget(epsilon=0.1), as_of=AS_OF)
        if place % 2:
            people.close(f"e{place}")
    assert sum(entry.kind == "checkpoint" for entry in people.entries()) == 2
    again = dpc.Population(url, "people")
    assert again.allocated.epsilon == people.allocated.epsilon == pytest.approx(0.4)
    again.verify()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[date]:
    days = [date(2026, 12, 31)]
    monkeypatch.setattr(allocation, "today", lambda: days[-1])
    monkeypatch.setattr(population, "today", lambda: days[-1])
    return days


def test_a_renewed_budget_is_spent_within_its_period(url: str, clock: list[date]) -> None:
    people = dpc.Population.create(url, "people", dpc.Budget(epsilon=1), period="quarter")
    ledger = people.allocate("e", dpc.Budget(epsilon=1), as_of=AS_OF)
    ledger.grant("reserved", event(0.5), {})
    ledger.grant("paid", event(0.1), {})
    ledger.debit("paid")
    with pytest.raises(BudgetExceededError):
        people.allocate("f", HALF, as_of=AS_OF)
    clock.append(date(2027, 1, 1))
    for use in (
        lambda: ledger.grant("later", event(0.1), {}),
        lambda: ledger.debit("reserved"),
        lambda: ledger.store("paid", "{}"),
    ):
        with pytest.raises(LedgerError, match="2026-Q4, from 2026-10-01 to 2026-12-31"):
            use()
    following = people.allocate("e", dpc.Budget(epsilon=1), as_of=AS_OF)
    assert following.opening != ledger.opening
    following.grant("later", event(1.0), {})
    assert [each.period for each in people.experiments()] == ["2026-Q4", "2027-Q1"]
    people.verify()
    assert people.guarantee.startswith(
        "the guarantee is epsilon 1 per person in each quarter; over k quarters k times that"
    )


@pytest.mark.parametrize(
    ("day", "period", "expected"),
    [
        (date(2028, 2, 29), "month", ("2028-02", "2028-02-01", "2028-02-29")),
        (date(2026, 12, 5), "month", ("2026-12", "2026-12-01", "2026-12-31")),
        (date(2026, 5, 31), "quarter", ("2026-Q2", "2026-04-01", "2026-06-30")),
        (date(2026, 1, 1), "year", ("2026", "2026-01-01", "2026-12-31")),
    ],
)
def test_periods_are_calendar_periods(day: date, period: allocation.Period, expected: tuple[str, str, str]) -> None:
    assert Days.around(day, period) == Days(*expected)


def test_populations_in_one_database_are_apart(url: str, people: dpc.Population) -> None:
    others = dpc.Population.create(url, "others", dpc.Budget(epsilon=1))
    others.allocate("e", HALF, as_of=AS_OF)
    assert people.remaining.epsilon == 2
    assert people.allocate("e", HALF, as_of=AS_OF).opening != dpc.Ledger(f"{url}?ledger=others/e").opening
    with pytest.raises(LedgerError, match=r"There is a ledger already(?s:.*)Ledger\.open_or_create"):
        dpc.Population.create(url, "people", dpc.Budget(epsilon=9))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"protects": "outcome"}, "a list of public columns"),
        ({"public": ["arm"]}, "a list of public columns"),
        ({"protects": "outcome", "public": "arm"}, "a list of public columns"),
        ({"unit": None}, "the name of a column"),
    ],
)
def test_population_is_created_with_declarations_that_can_be_held(url: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        dpc.Population.create(url, "people", HALF, **given)


def test_ledgers_of_a_population_come_from_it_alone(url: str, people: dpc.Population) -> None:
    with pytest.raises(LedgerError, match="without a budget from it"):
        dpc.Ledger.create(f"{url}?ledger=people/e", HALF, as_of=AS_OF)
    people.allocate("e", HALF, as_of=AS_OF)
    with pytest.raises(LedgerError, match="has its budget from the population"):
        dpc.Ledger.restore(f"{url}?ledger=people/e", by="me", reason="why", lost_epsilon=0)
    with pytest.raises(LedgerError, match="name"):
        people.allocate("people/e", HALF, as_of=AS_OF)
    with pytest.raises(LedgerError, match="stored"):
        dpc.Population.create("sqlite://", "people", HALF)
