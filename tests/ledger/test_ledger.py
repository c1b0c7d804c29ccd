import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, LedgerError, SchemaError
from dpcausal.guarantee import Event
from dpcausal.ledger import DataSet
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.store import Store
from dpcausal.testing import standard_schema
from tests.ledger.long_ledgers import forge

AS_OF = "2026-06-30"
FACTS = DataSet("record")
BUDGET = dpc.Budget(epsilon=1)
TENTH = Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0)


def test_the_life_of_a_request(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    assert ledger.stored("r") is None
    ledger.grant("r", TENTH, {"what": "a question"})
    ledger.grant("r", TENTH, {"what": "a question"})
    assert ledger.debit("r") == ledger.debit("r")
    assert ledger.store("r", '{"answer": 1}') == '{"answer": 1}'
    assert ledger.store("r", '{"answer": 2}') == '{"answer": 1}'
    assert ledger.stored("r") == '{"answer": 1}'
    assert [entry.kind for entry in ledger.entries()] == ["open", "grant", "debit", "release"]
    assert (ledger.spent.epsilon, ledger.remaining.epsilon) == (0.1, 0.9)
    assert ledger.tight_epsilon(0.0) == 0.1


def test_nothing_happens_out_of_order(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    with pytest.raises(LedgerError, match="granted"):
        ledger.debit("r")
    ledger.grant("r", TENTH, {})
    with pytest.raises(LedgerError, match="debited"):
        ledger.store("r", "{}")


def test_what_does_not_fit_a_ledger_is_refused_without_a_way_around_the_budget(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    ledger.bind(AS_OF, FACTS, 100)
    ledger.check_budget(BUDGET)
    ledger.check_budget(None)
    ledger.check_data_set(AS_OF, FACTS)
    with pytest.raises(LedgerError, match=r"this ledger's is epsilon 1, .* cannot be raised") as raised:
        ledger.check_budget(dpc.Budget(epsilon=2))
    assert "use another ledger" not in str(raised.value)
    with pytest.raises(LedgerError, match="the same people, a new ledger adds to what was spent") as raised:
        ledger.check_data_set(AS_OF, DataSet("outcome", None, ("treat",)))
    assert "use another ledger" not in str(raised.value)


def test_a_grant_beyond_the_budget_leaves_no_trace(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    for place in range(10):
        ledger.grant(str(place), TENTH, {})
    with pytest.raises(BudgetExceededError):
        ledger.grant("one more", TENTH, {})
    assert len(ledger.entries()) == 11
    ledger.grant("3", TENTH, {})


def test_two_ledgers_at_one_address_see_each_other(ledger_url: str) -> None:
    if ledger_url == "sqlite://":
        pytest.skip("each ledger in memory is its own")
    one, other = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF), dpc.Ledger(ledger_url)
    one.grant("r", TENTH, {})
    other.debit("r")
    other.store("r", '{"answer": 1}')
    assert one.stored("r") == '{"answer": 1}'
    assert one.spent == other.spent


def test_threads_take_turns(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    refused = []

    def spend(place: int) -> None:
        try:
            ledger.grant(str(place), TENTH, {})
            ledger.debit(str(place))
        except BudgetExceededError:
            refused.append(place)

    threads = [threading.Thread(target=spend, args=(place,)) for place in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 6
    assert ledger.spent.epsilon == 1.0


TAMPERINGS = [
    "UPDATE dpcausal_ledger SET body = replace(body, '0.1', '0.0') WHERE number = 1",
    "UPDATE dpcausal_ledger SET kind = 'open' WHERE number = 2",
    "UPDATE dpcausal_ledger SET request = 's' WHERE number = 3",
    "UPDATE dpcausal_ledger SET digest = previous WHERE number = 2",
    "DELETE FROM dpcausal_ledger WHERE number = 0",
    "DELETE FROM dpcausal_ledger WHERE number = 2",
    "DELETE FROM dpcausal_ledger",
    "INSERT INTO dpcausal_ledger SELECT 4, 'debit', 'x', body, previous, digest FROM dpcausal_ledger WHERE number = 2",
]


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_tampering_is_found_on_open_and_in_use(ledger_url: str, tampering: str) -> None:
    if ledger_url == "sqlite://":
        pytest.skip("only this process can reach a ledger in memory")
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    ledger.grant("r", TENTH, {})
    ledger.debit("r")
    ledger.store("r", '{"answer": 1}')
    assert len(dpc.Ledger(ledger_url).entries()) == 4
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(text(tampering))
    engine.dispose()
    with pytest.raises(LedgerError):
        dpc.Ledger(ledger_url)
    with pytest.raises(LedgerError):
        ledger.entries()


def test_a_ledger_cut_while_in_use_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    ledger.grant("r", TENTH, {})
    ledger.debit("r")
    assert ledger.spent.epsilon == 0.1
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM dpcausal_ledger WHERE number = 2"))
    engine.dispose()
    with pytest.raises(LedgerError, match="truncated or replaced"):
        ledger.grant("s", TENTH, {})


def test_a_changed_answer_is_not_served(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    ledger.grant("r", TENTH, {})
    ledger.debit("r")
    ledger.store("r", '{"answer": 1}')
    ledger.grant("s", TENTH, {})
    ledger.debit("s")
    assert ledger.stored("r") == '{"answer": 1}'
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE dpcausal_ledger SET body = replace(body, '1', '2') WHERE number = 3"))
    engine.dispose()
    with pytest.raises(LedgerError, match="changed, removed or inserted"):
        ledger.stored("r")


def test_a_reservation_pays_for_what_was_reserved(ledger_url: str) -> None:
    ledger = dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    ledger.grant("r", TENTH, {})
    with pytest.raises(LedgerError, match="the price that was reserved"):
        ledger.grant("r", Event(family="laplace", epsilon=0.2, delta=0.0, mu=0.0), {})


def test_an_answer_that_could_not_be_stored_is_not_told(tmp_path: Path) -> None:
    """A database that fails must not quote what it was given: the next attempt would draw other noise."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    ledger.grant("r", TENTH, {})
    ledger.debit("r")
    engine = create_engine(url)
    with engine.begin() as connection:
        full = "BEFORE INSERT ON dpcausal_ledger BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        connection.execute(text(f"CREATE TRIGGER full {full}"))
    engine.dispose()
    answer = 31415926
    with pytest.raises(LedgerError, match="not full") as caught:
        ledger.store("r", f'{{"answer": {answer}}}')
    assert str(answer) not in "".join(traceback.format_exception(caught.value))


AFTER_A_FORK = """
import os
import dpcausal as dpc
from dpcausal.guarantee import Event

ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=1))
if os.fork() == 0:
    ledger.grant("r", Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0), {})
os.wait()
"""


def test_a_ledger_in_memory_is_not_two_budgets_after_a_fork() -> None:
    done = subprocess.run(  # noqa: S603 (our own text)
        [sys.executable, "-c", AFTER_A_FORK], capture_output=True, text=True, timeout=300, check=False
    )
    assert "second budget" in done.stderr


def test_a_server_that_isolates_more_still_lets_one_answer_win(ledger_url: str) -> None:
    if not ledger_url.startswith("postgresql"):
        pytest.skip("only PostgreSQL has levels of isolation")
    engine = create_engine(ledger_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_isolation TO 'repeatable read'"))
    engine.dispose()
    dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF).grant("r", TENTH, {})

    def answer(place: int) -> str:
        ledger = dpc.Ledger(ledger_url)
        ledger.debit("r")
        return ledger.store("r", f'{{"answer": {place}}}')

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(answer, range(12)))) == 1


@pytest.mark.parametrize(
    "url",
    ["mysql://host/name", "ledger", "", "sqlite:////no/such/folder/ledger.db", "postgresql+psycopg://127.0.0.1:1/x"],
)
def test_places_that_cannot_hold_a_ledger_are_refused(url: str) -> None:
    with pytest.raises(LedgerError):
        dpc.Ledger.create(url, BUDGET, as_of=AS_OF)


def test_a_ledger_that_does_not_exist_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="dpcausal ledger create"):
        dpc.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("emptied", ["DELETE FROM dpcausal_ledger", "DROP TABLE dpcausal_ledger"])
def test_an_emptied_ledger_is_not_a_fresh_budget(ledger_url: str, emptied: str) -> None:
    if ledger_url == "sqlite://":
        pytest.skip("only this process can reach a ledger in memory")
    dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(text(emptied))
    engine.dispose()
    with pytest.raises(LedgerError, match="dpcausal ledger restore"):
        dpc.Ledger(ledger_url)
    if emptied.startswith("DELETE"):
        with pytest.raises(LedgerError, match="a ledger already"):
            dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)


def test_a_relative_address_is_resolved_once_and_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = dpc.Ledger.create("sqlite:///ledger.db", BUDGET, as_of=AS_OF)
    monkeypatch.chdir("/")
    assert ledger.address == f"sqlite:///{tmp_path / 'ledger.db'}"
    assert ledger.spent.epsilon == 0
    with pytest.raises(LedgerError, match=r"no ledger at sqlite:////ledger\.db"):
        dpc.Ledger("sqlite:///ledger.db")


def test_what_another_version_of_dpcausal_wrote_is_told_in_words(tmp_path: Path) -> None:
    """A fact that nobody knows, or an opening of version 0.1.0, is no bare error of Python."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(url, BUDGET, as_of=AS_OF)
    ledger.bind(AS_OF, FACTS, 100)
    forge(url, 1, data_set=FACTS.to_dict() | {"colour": "blue"})  # type: ignore[arg-type]
    old = Entry.after(
        None, "open", "", {"budget": BUDGET.to_dict(), "data_set": {"n": 3, "unit": "who, first by when"}}
    )
    other = tmp_path / "old.db"
    store = Store(f"sqlite:///{other}")
    with store.exclusive() as connection:
        store.create(connection)
        store.append(connection, old)
    for address in (url, f"sqlite:///{other}"):
        with pytest.raises(LedgerError, match="not as this version of dpcausal writes one"):
            dpc.Ledger(address)


def test_two_ledgers_made_alike_on_one_day_are_told_apart() -> None:
    one, other = (dpc.Ledger.create("sqlite://", BUDGET, as_of=AS_OF) for _ in range(2))
    assert one.opening != other.opening
    one.bind(AS_OF, FACTS, 100)
    assert [len(each.entries()) for each in (one, other)] == [2, 1]


def test_a_ledger_in_memory_says_that_it_forgets() -> None:
    assert "forgets" in repr(dpc.Ledger.create("sqlite://", BUDGET))


def test_no_password_is_shown(ledger_url: str) -> None:
    if not ledger_url.startswith("postgresql"):
        pytest.skip("only PostgreSQL has passwords")
    with_password = ledger_url.replace("postgres@", "postgres:hunter2@")
    assert "hunter2" not in repr(dpc.Ledger.create(with_password, BUDGET, as_of=AS_OF))
    assert "hunter2" not in repr(dpc.Ledger(f"{ledger_url}?password=hunter2"))


def test_a_server_that_may_forget_is_refused(ledger_url: str) -> None:
    if not ledger_url.startswith("postgresql"):
        pytest.skip("only PostgreSQL can be told not to write to disk")
    engine = create_engine(ledger_url, isolation_level="AUTOCOMMIT")

    def set_fsync(setting: str, value: str) -> None:
        with engine.connect() as connection:
            connection.execute(text(setting))
            connection.execute(text("SELECT pg_reload_conf()"))
            end = time.monotonic() + 100
            while connection.execute(text("SHOW fsync")).scalar() != value:  # until the server has read its settings
                assert time.monotonic() < end
                time.sleep(0.05)

    try:
        set_fsync("ALTER SYSTEM SET fsync TO off", "off")
        with pytest.raises(LedgerError, match="fsync"):
            dpc.Ledger.create(ledger_url, BUDGET, as_of=AS_OF)
    finally:
        set_fsync("ALTER SYSTEM RESET fsync", "on")
        engine.dispose()


def test_ledgers_that_allowed_what_has_no_proof_are_refused() -> None:
    document = DataSet.of(standard_schema()).to_dict()
    assert DataSet.from_dict(document | {"allow_unproved": []}) == DataSet.from_dict(document)
    with pytest.raises(SchemaError, match="allowed influence_effects, which has none"):
        DataSet.from_dict(document | {"allow_unproved": ["influence_effects"]})
