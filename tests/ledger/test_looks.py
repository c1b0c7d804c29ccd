"""A schedule of looks: paid for once before the first is read, each look answered at most once, whatever dies when."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, LedgerError, QueryError
from dpcausal.guarantee import Event
from dpcausal.ledger import DataSet
from dpcausal.queries import Cut, LookMoments
from dpcausal.rehearsal.pricing import outstanding_cost
from dpcausal.vault.noise import Sampler

YEAR = Event(family="gaussian", epsilon=1.0, delta=1e-6, mu=0.2)
BUDGET = dpc.Budget(epsilon=1, delta=1e-5)
GUARANTEE = dpc.Guarantee(epsilon=1.0, delta=1e-6)
VERSIONS = ("w1", "w2", "w3")
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm"),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Category("week", [1, 2, 3])],
    entry="week",
)


def paid(url: str) -> dpc.Ledger:
    ledger = dpc.Ledger.create(url, BUDGET, as_of="w1")
    ledger.grant("year", YEAR, {})
    ledger.debit("year")
    return ledger


def test_the_life_of_a_schedule(ledger_url: str) -> None:
    ledger = paid(ledger_url)
    assert ledger.store_look("year", "first", None, '{"answer": 1}') == '{"answer": 1}'
    assert ledger.store_look("year", "first", None, '{"answer": 2}') == '{"answer": 1}'
    assert ledger.store_look("year", "second", "first", '{"answer": 3}') == '{"answer": 3}'
    assert ledger.stored("first") == '{"answer": 1}'
    assert ledger.stored("year") is None
    assert [entry.kind for entry in ledger.entries()] == ["open", "grant", "debit", "look", "look"]
    assert ledger.spent.epsilon == 1.0


def test_no_look_without_its_debit_or_before_the_one_before(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of="w1")
    ledger.grant("year", YEAR, {})
    with pytest.raises(LedgerError, match="a schedule that was debited"):
        ledger.store_look("year", "first", None, "{}")
    ledger.debit("year")
    with pytest.raises(LedgerError, match="look before this one"):
        ledger.store_look("year", "second", "first", "{}")
    assert [entry.kind for entry in ledger.entries()] == ["open", "grant", "debit"]


FORGERIES: list[tuple[str, dict[str, Any]]] = [
    ("look", {"schedule": "unpaid", "previous": None, "release": {}}),
    ("look", {"schedule": "year", "previous": "never", "release": {}}),
    ("release", {"release": {}}),
]


@pytest.mark.parametrize(("kind", "content"), FORGERIES)
def test_chained_entry_that_may_not_stand_there_is_found(tmp_path: Path, kind: Any, content: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = paid(url)
    with ledger._transaction() as connection:
        ledger._append(connection, kind, "another", content)
    with pytest.raises(LedgerError):
        dpc.Ledger(url)


def test_look_that_was_changed_is_not_served(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = paid(url)
    ledger.store_look("year", "first", None, '{"answer": 1}')
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE dpcausal_ledger SET body = replace(body, '1', '2') WHERE kind = 'look'"))
    engine.dispose()
    with pytest.raises(LedgerError):
        ledger.stored("first")


def test_lost_looks_are_paid_for_once_more_when_a_copy_is_restored(tmp_path: Path) -> None:
    url, copy, witness = tmp_path / "ledger.db", tmp_path / "copy.db", str(tmp_path / "witness.log")
    ledger = dpc.Ledger.create(f"sqlite:///{url}", dpc.Budget(epsilon=3, delta=1e-5), as_of="w1", witness=witness)
    ledger.grant("year", YEAR, {})
    ledger.debit("year")
    ledger.store_look("year", "first", None, '{"answer": 1}')
    shutil.copy(url, copy)
    ledger.store_look("year", "second", "first", '{"answer": 2}')
    url.unlink()
    restored = dpc.Ledger.restore(
        f"sqlite:///{url}", copy=f"sqlite:///{copy}", witness=witness, by="bob", reason="the disk failed"
    )
    assert restored.spent.epsilon == 2.0
    assert restored.store_look("year", "second", "first", '{"answer": 3}') == '{"answer": 3}'
    restored.verify()


def vault_on(url: str, version: str) -> dpc.Vault:
    weeks = VERSIONS.index(version) + 1
    entered = [week for week in range(1, weeks + 1) for _ in range(100)]
    table = pa.table({"arm": [0, 1] * 50 * weeks, "y": [0.2, 0.7] * 50 * weeks, "week": entered})
    return dpc.Vault(table, SCHEMA, ledger=dpc.Ledger(url), as_of=version)


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(address, BUDGET, as_of="w1")
    for version in VERSIONS[1:]:
        ledger.add_version(version)
    return address


def look_at(url: str, version: str, look: int) -> dpc.Release:
    return vault_on(url, version).release(LookMoments(Cut("week"), look), GUARANTEE)


def test_year_of_looks_costs_once_and_each_look_keeps_its_version(url: str) -> None:
    looks = [look_at(url, version, look) for look, version in enumerate(VERSIONS, 1)]
    assert [look.receipt.as_of for look in looks] == list(VERSIONS)
    assert len({look.receipt.digest for look in looks}) == 1
    ledger = dpc.Ledger(url)
    assert ledger.spent.epsilon == 1.0
    assert [entry.kind for entry in ledger.entries()].count("look") == 3
    assert [look_at(url, "w3", look) for look in (1, 2, 3)] == looks
    assert ledger.check_receipts([look.receipt for look in looks]) == ()
    with pytest.raises(BudgetExceededError):  # a schedule of another price is another schedule
        vault_on(url, "w3").release(LookMoments(Cut("week"), 1), dpc.Guarantee(epsilon=0.5, delta=1e-6))


def test_ledger_without_a_column_of_entry_has_no_schedules_and_answers_the_rest() -> None:
    """As all ledgers of before it could be declared: what they record of the data set is the same."""
    before, table = replace(SCHEMA, entry=None), pa.table({"arm": [0, 1] * 50, "y": [0.2, 0.7] * 50, "week": [1] * 100})
    assert {*DataSet.of(before).to_dict()} == {"protects", "unit", "public"}
    ledger = dpc.Ledger.create("sqlite://", BUDGET, as_of="w1")
    vault = dpc.Vault(table, before, ledger=ledger, as_of="w1")
    with pytest.raises(QueryError, match="the schema declares none"):
        vault.release(LookMoments(Cut("week"), 1), GUARANTEE)
    with pytest.raises(LedgerError, match="leave entry out"):
        dpc.Vault(table, SCHEMA, ledger=ledger, as_of="w1")
    assert dpc.DifferenceInMeans().estimate(vault, epsilon=1.0).receipts
    assert ledger.spent.epsilon == 1.0


def test_missed_look_is_refused_until_it_is_made_up_for(url: str) -> None:
    with pytest.raises(LedgerError, match="look before this one"):
        look_at(url, "w2", 2)
    assert dpc.Ledger(url).spent.epsilon == 0
    effect = dpc.ScheduledDifference("week", 2).estimate(vault_on(url, "w2"), epsilon=1.0, delta=1e-6)
    assert effect.receipts[0].as_of == "w2"
    assert dpc.Ledger(url).spent.epsilon == 1.0


def test_schedule_that_is_paid_for_is_not_outstanding(url: str) -> None:
    def ask(source: dpc.Source) -> object:
        return dpc.ScheduledDifference("week").estimate(source, epsilon=1.0)

    first = vault_on(url, "w1")
    assert [price.epsilon for price in outstanding_cost(first, ask).values()] == [1.0]
    first.release(LookMoments(Cut("week"), 1), dpc.Guarantee(epsilon=1.0))
    assert outstanding_cost(vault_on(url, "w3"), ask) == {}


class KilledError(BaseException):
    """As good as a kill: nothing in the package catches it."""


STEPS = ("before grant", "after grant", "after debit", "after noise", "after store_look")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("look", [1, 2])
def test_kill_at_any_step_leaves_one_debit_and_one_answer(
    url: str, step: str, look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = [look_at(url, "w1", 1)] if look == 2 else []
    when, _, name = step.partition(" ")
    place, attribute = (Sampler, "add_noise") if name == "noise" else (dpc.Ledger, name)
    whole = getattr(place, attribute)

    def dying(*given: Any) -> None:
        if when == "after":
            whole(*given)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(place, attribute, dying)
        with pytest.raises(KilledError):
            look_at(url, "w1", look)
    stored = [entry.content["release"] for entry in dpc.Ledger(url).entries() if entry.kind == "look"]
    answer = look_at(url, "w2", look)  # another process, and a later version
    kinds = [entry.kind for entry in dpc.Ledger(url).entries()]
    assert (kinds.count("grant"), kinds.count("debit"), kinds.count("look")) == (1, 1, look)
    assert kinds.index("debit") < kinds.index("look")
    assert dpc.Ledger(url).spent.epsilon == 1.0
    survived = step == "after store_look"
    assert len(stored) == len(earlier) + survived
    assert answer.receipt.as_of == ("w1" if survived else "w2")
    assert look_at(url, "w3", look) == answer
    assert [look_at(url, "w3", 1)] == (earlier or [answer])


def test_nothing_is_read_before_the_debit_of_the_schedule(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vault, read = vault_on(url, "w1"), []
    monkeypatch.setattr(type(vault), "_answer", lambda *_: read.append(1))

    def refuse(*_: Any) -> None:
        raise LedgerError(expected="a disk", got="none", hint="buy one.")

    monkeypatch.setattr(dpc.Ledger, "debit", refuse)
    with pytest.raises(LedgerError):
        vault.release(LookMoments(Cut("week"), 1), GUARANTEE)
    assert read == []
