import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, DpcausalError, GuaranteeError, LedgerError, QueryError, TableError
from dpcausal.queries import ArmMoments, ArmTotals
from dpcausal.vault import door
from dpcausal.vault.engines.duckdb import DuckDBEngine

ONE = dpc.Guarantee(epsilon=1.0)
AS_OF = "2026-06-30"


def test_the_same_request_gives_the_same_answer_and_spends_nothing(vault: dpc.Vault) -> None:
    first = vault.release(ArmTotals(), ONE)
    assert vault.release(ArmTotals(), ONE) == first
    assert vault.ledger.spent.epsilon == 1.0
    assert vault.release(ArmTotals(), dpc.Guarantee(epsilon=1.5)).values != first.values
    assert vault.ledger.spent.epsilon == 2.5


def test_stored_answer_says_everywhere_that_the_table_was_not_read(table: pa.Table, schema: dpc.Schema) -> None:
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    fresh = dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)
    repaired = table.set_column(table.column_names.index("score"), "score", pa.array([9.0] * table.num_rows))
    stored = dpc.DifferenceInMeans().estimate(dpc.Vault(repaired, schema, ledger=vault.ledger), epsilon=1.0)
    study = dpc.Study(name="s", question="?", schema=schema, estimator=dpc.DifferenceInMeans(), epsilon=1.0)

    def shown(effect: dpc.Effect) -> list[str]:
        report = dpc.Report.of(effect, study, date=date(2026, 1, 31))
        return [str(effect), effect._repr_html_(), report.to_html(), report.to_json()]

    assert stored == fresh
    assert [receipt.stored for receipt in (*fresh.receipts, *stored.receipts)] == [False, True]
    assert dpc.Effect.from_json(stored.to_json()).receipts[0].stored
    assert not any("the table was not read" in text for text in shown(fresh))
    assert all(f"on {stored.receipts[0].on}" in text for text in shown(stored))
    assert all("the table was not read" in " ".join(text.split()) for text in shown(stored))
    assert all("new version (as_of)" in " ".join(text.split()) for text in shown(stored))


def test_a_request_is_what_the_answer_depends_on(table: pa.Table, schema: dpc.Schema) -> None:
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    first = vault.release(ArmTotals(), ONE)
    shown_otherwise = dpc.Schema(
        treatment=dpc.Treatment("treat", labels=("a", "b"), undeclared=0), outcome=schema.outcome
    )
    assert dpc.Vault(table, shown_otherwise, ledger=vault.ledger).release(ArmTotals(), ONE) == first
    coded_otherwise = dpc.Schema(treatment=dpc.Treatment("treat", undeclared=1), outcome=schema.outcome)
    assert dpc.Vault(table, coded_otherwise, ledger=vault.ledger).release(ArmTotals(), ONE) != first
    assert vault.ledger.spent.epsilon == 2.0


def test_what_is_public_cannot_be_declared_anew(table: pa.Table) -> None:
    """Else the sizes of any two groups could be read off as the arms of a trial."""
    trial = dpc.Schema(
        treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Real("score", 0, 10), protects="record_within_arm"
    )
    vault = dpc.Vault(table, trial, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    black = dpc.Treatment("race", arms=("other", "black"), undeclared="other")
    other = dpc.Schema(treatment=black, outcome=trial.outcome, protects="record_within_arm")
    with pytest.raises(LedgerError, match="race"):
        dpc.Vault(table, other, ledger=vault.ledger)
    labels = dpc.Schema(treatment=trial.treatment, outcome=trial.outcome, protects="outcome")
    public_race = dpc.Schema(
        treatment=trial.treatment,
        outcome=trial.outcome,
        covariates=[dpc.Category("race", ["a", "b"])],
        protects="outcome",
    )
    vault = dpc.Vault(table, labels, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    with pytest.raises(LedgerError, match="race"):
        dpc.Vault(table, public_race, ledger=vault.ledger)


def test_an_answer_survives_a_restart(
    ledger_url: str, table: pa.Table, schema: dpc.Schema, request: pytest.FixtureRequest
) -> None:
    if ledger_url == "sqlite://":
        pytest.skip("a ledger in memory is meant to forget")
    dpc.Ledger.create(ledger_url, dpc.Budget(epsilon=3), as_of=AS_OF)
    first = dpc.Vault(table, schema, ledger=ledger_url, as_of=AS_OF).release(ArmMoments(), ONE)
    again = dpc.Vault(table, schema, ledger=ledger_url, as_of=AS_OF)
    assert again.release(ArmMoments(), ONE) == first
    assert again.ledger.spent.epsilon == 1.0


def test_two_vaults_share_one_ledger(table: pa.Table, schema: dpc.Schema) -> None:
    one = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    wider = dpc.Schema(treatment=schema.treatment, outcome=dpc.Real("score", 0, 20))
    other = dpc.Vault(table, wider, ledger=one.ledger)
    one.release(ArmTotals(), ONE)
    other.release(ArmTotals(), ONE)
    assert one.ledger.spent.epsilon == 2.0


def test_the_budget_is_a_hard_stop(table: pa.Table, schema: dpc.Schema) -> None:
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=0.3))
    for bound in (1, 2, 3):
        narrower = dpc.Schema(treatment=schema.treatment, outcome=dpc.Real("score", 0, bound))
        dpc.Vault(table, narrower, ledger=vault.ledger).release(ArmTotals(), dpc.Guarantee(epsilon=0.1))
    with pytest.raises(BudgetExceededError, match="Nothing was spent"):
        vault.release(ArmTotals(), dpc.Guarantee(epsilon=0.001))
    with pytest.raises(BudgetExceededError, match="delta 1e-06"):
        vault.release(ArmTotals(), dpc.Guarantee(epsilon=0.001, delta=1e-6))
    assert vault.ledger.remaining.epsilon == 0


def test_a_ledger_belongs_to_one_data_set(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    dpc.Ledger.create(url, dpc.Budget(epsilon=3), as_of=AS_OF)
    dpc.Vault(table, schema, ledger=url, budget=dpc.Budget(epsilon=3), as_of=AS_OF)
    with pytest.raises(LedgerError, match="budget"):
        dpc.Vault(table, schema, ledger=url, budget=dpc.Budget(epsilon=4), as_of=AS_OF)
    with pytest.raises(LedgerError, match="another number of units than this ledger's data set has") as refused:
        dpc.Vault(table.slice(1), schema, ledger=url, as_of=AS_OF)
    assert "999" not in str(refused.value)
    outcome_level = dpc.Schema(treatment=schema.treatment, outcome=schema.outcome, protects="outcome")
    with pytest.raises(LedgerError, match="data set"):
        dpc.Vault(table, outcome_level, ledger=dpc.Ledger(url), as_of=AS_OF)


def test_opening_with_another_unit_tells_no_count(table: pa.Table, schema: dpc.Schema) -> None:
    """Whoever names a column as the unit must not learn how many values it has."""
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    told = set()
    for last in ("none", "HIV"):
        visits = table.append_column("dx", pa.array(["a", "b"] + ["none"] * 997 + [last]))
        spying = dpc.Schema(treatment=schema.treatment, outcome=schema.outcome, unit=dpc.Unit("dx", by="age"))
        with pytest.raises(LedgerError, match="one unit for each dx") as refused:
            dpc.Vault(visits, spying, ledger=vault.ledger)
        told.add(str(refused.value))
    assert len(told) == 1


def test_nothing_of_a_table_is_opened_before_all_that_is_public_was_compared(
    table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1)).ledger
    other = replace(schema, protects="outcome")
    monkeypatch.setattr(door, "open_table", lambda *_: pytest.fail("the table was opened"))
    for refused in (
        {"schema": other},
        {"schema": replace(schema, unit=dpc.Unit("who", by="when"))},
        {"schema": schema, "as_of": "2026-09-30"},
        {"schema": schema, "budget": dpc.Budget(epsilon=2)},
    ):
        with pytest.raises(LedgerError):
            dpc.Vault(table, ledger=ledger, **refused)


def test_a_vault_that_counts_first_is_caught(
    table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant compares nothing before it counts: the table is opened for whoever asks."""
    ledger = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1)).ledger
    monkeypatch.setattr(dpc.Ledger, "check_data_set", lambda *_: None)
    monkeypatch.setattr(door, "open_table", lambda *_: pytest.fail("the table was opened"))
    with pytest.raises(pytest.fail.Exception, match="the table was opened"):
        dpc.Vault(table, replace(schema, protects="outcome"), ledger=ledger)


def test_units_that_print_alike_are_told_apart(table: pa.Table) -> None:
    """Their parts are stored: as one text, `a, first by b` could be said of two different units."""
    names = ("a, first by b", "a")
    visits = table.append_column(names[0], pa.array(range(1000))).append_column("a", pa.array(range(1000)))
    visits = visits.append_column("c", table["age"]).append_column("b, first by c", table["age"])
    parts = {"treatment": dpc.Treatment("treat", undeclared=0), "outcome": dpc.Real("score", 0, 10)}
    one = dpc.Schema(**parts, unit=dpc.Unit("a, first by b", by="c"))  # type: ignore[arg-type]
    other = dpc.Schema(**parts, unit=dpc.Unit("a", by="b, first by c"))  # type: ignore[arg-type]
    vault = dpc.Vault(visits, one, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    with pytest.raises(LedgerError, match="data set"):
        dpc.Vault(visits, other, ledger=vault.ledger)


def test_a_ledger_on_disk_is_never_made_by_a_vault(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    for budget in (None, dpc.Budget(epsilon=3)):
        with pytest.raises(LedgerError, match=rf"There is no ledger at {url}"):
            dpc.Vault(table, schema, ledger=url, budget=budget, as_of=AS_OF)
    assert not (tmp_path / "ledger.db").exists()
    with pytest.raises(LedgerError, match="needs a budget"):
        dpc.Vault(table, schema, ledger="sqlite://")


def test_a_version_has_its_own_answers_and_the_same_budget(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    """A refreshed table with as many units must not give yesterday's answer, free and without a note."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = dpc.Ledger.create(url, dpc.Budget(epsilon=3), as_of=AS_OF)
    first = dpc.Vault(table, schema, ledger=ledger, as_of=AS_OF).release(ArmTotals(), ONE)
    with pytest.raises(LedgerError, match="dpcausal ledger add-version"):
        dpc.Vault(table, schema, ledger=ledger, as_of="2026-09-30")
    with pytest.raises(LedgerError, match="say which version"):
        dpc.Vault(table, schema, ledger=ledger)
    ledger.add_version("2026-09-30")
    longer = pa.concat_tables([table, table])
    later = dpc.Vault(longer, schema, ledger=ledger, as_of="2026-09-30")
    second = later.release(ArmTotals(), ONE)
    assert second != first
    assert (first.receipt.as_of, second.receipt.as_of) == (AS_OF, "2026-09-30")
    assert ledger.spent.epsilon == 2.0
    assert ledger.versions == {AS_OF: 1000, "2026-09-30": 2000}
    assert dpc.Vault(table, schema, ledger=url, as_of=AS_OF).release(ArmTotals(), ONE) == first
    with pytest.raises(LedgerError, match="This ledger is for another data set"):
        dpc.Vault(longer, replace(schema, protects="outcome"), ledger=ledger, as_of="2026-09-30")
    assert "data as of        2026-09-30" in str(dpc.DifferenceInMeans().estimate(later, epsilon=0.5))


@pytest.mark.parametrize("as_of", ["", " today", "two\nlines", "\x1b[31m", "x" * 65, 2026])
def test_a_version_is_one_printable_line(table: pa.Table, schema: dpc.Schema, as_of: object) -> None:
    with pytest.raises(LedgerError, match="a date or a name on one line"):
        dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3), as_of=as_of)  # type: ignore[arg-type]


def test_a_receipt_tells_the_day_of_its_debit_and_nothing_tells_more(vault: dpc.Vault) -> None:
    """Times of debit and release would tell how long the table took to read."""
    release = vault.release(ArmTotals(), ONE)
    assert release.receipt.on is not None
    for entry in vault.ledger.entries():
        assert entry.content["at"] == date.fromisoformat(entry.content["at"]).isoformat()
        assert ":" not in entry.content["at"]
    assert f"of {release.receipt.on}" in str(dpc.DifferenceInMeans().estimate(vault, epsilon=1.0))


def test_a_weaker_guarantee_than_declared_is_refused(vault: dpc.Vault, table: pa.Table, schema: dpc.Schema) -> None:
    for protects in ("record_within_arm", "outcome"):
        with pytest.raises(GuaranteeError, match="void the promise"):
            vault.release(ArmTotals(), dpc.Guarantee(epsilon=1, protects=protects))
    trial = dpc.Schema(treatment=schema.treatment, outcome=schema.outcome, protects="record_within_arm")
    stronger = dpc.Vault(table, trial, ledger="sqlite://", budget=dpc.Budget(epsilon=3)).release(ArmTotals(), ONE)
    assert "size_1" in stronger.names
    assert vault.ledger.spent.epsilon == 0


def test_only_listed_queries_are_answered(vault: dpc.Vault) -> None:
    class Everything(ArmTotals):
        """A query that lies about its sensitivity."""

    with pytest.raises(QueryError, match="Everything"):
        vault.release(Everything(), ONE)


def test_what_is_no_ledger_and_no_budget_is_refused(table: pa.Table, schema: dpc.Schema) -> None:
    with pytest.raises(LedgerError, match="the name of its file"):
        dpc.Vault(table, schema, ledger=3, budget=dpc.Budget(epsilon=1))  # type: ignore[arg-type]
    with pytest.raises(GuaranteeError, match="a Budget"):
        dpc.Vault(table, schema, ledger="sqlite://", budget=3)  # type: ignore[arg-type]


def test_what_is_no_source_is_refused(table: pa.Table) -> None:
    with pytest.raises(TableError, match="put the table into a Vault"):
        dpc.DifferenceInMeans().estimate(table, epsilon=1.0)


def test_threads_may_share_a_vault(table: pa.Table, schema: dpc.Schema) -> None:
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
    with ThreadPoolExecutor(8) as pool:
        epsilons = [1 + place / 100 for place in range(24)]
        asked = [pool.submit(vault.release, ArmTotals(), dpc.Guarantee(epsilon=epsilon)) for epsilon in epsilons]
        assert len({future.result().values for future in asked}) == 24


def test_a_vault_cannot_change_which_records_count(table: pa.Table) -> None:
    visits = table.append_column("who", pa.array(list(range(500)) * 2)).append_column("when", table["age"])
    parts = {
        "treatment": dpc.Treatment("treat", undeclared=0),
        "outcome": dpc.Real("score", 0, 10),
        "protects": "record_within_arm",
    }
    first = dpc.Schema(**parts, unit=dpc.Unit("who", by="when"))  # type: ignore[arg-type]
    last = dpc.Schema(**parts, unit=dpc.Unit("who", by="when", keep="last"))  # type: ignore[arg-type]
    vault = dpc.Vault(visits, first, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    with pytest.raises(LedgerError, match=r"who \(last by when\)"):
        dpc.Vault(visits, last, ledger=vault.ledger)


@pytest.mark.parametrize("size", [0, 1])
def test_a_table_too_small_for_anything_is_refused(size: int, table: pa.Table, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="2 to"):
        dpc.Vault(table.slice(0, size), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))


def test_a_vault_reads_for_releases_and_contributions_only_and_cannot_be_copied(vault: dpc.Vault) -> None:
    public = {name for name in dir(dpc.Vault) if not name.startswith("_")}
    known = {"schema", "n", "as_of", "arm_sizes", "caveats", "rule", "ledger"}
    assert public == {"release", "answered", "contribute", "narrowed", "scaled", "question", "check_ready"} | known
    for held in (vault, vault.narrowed(0, 5)):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied") as refused:
                attempt(held)
            assert isinstance(refused.value, DpcausalError)
        with pytest.raises(AttributeError):
            held.n = 3  # type: ignore[misc]


def test_narrowing_reads_nothing_and_pays_into_the_same_ledger(
    vault: dpc.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "_query", lambda *_: pytest.fail("the table was read"))
        narrow = vault.narrowed(0, 5)
    assert narrow.question(ArmTotals(), ONE) != vault.question(ArmTotals(), ONE)
    narrow.release(ArmTotals(), ONE)
    assert narrow.ledger is vault.ledger
    assert vault.ledger.spent.epsilon == 1.0


def test_arm_sizes_are_told_only_where_declared_public(table: pa.Table, schema: dpc.Schema) -> None:
    outcome = replace(schema.outcome, missing=0)
    trial = dpc.Schema(treatment=schema.treatment, outcome=outcome, protects="record_within_arm")
    budget = dpc.Budget(epsilon=1)
    for private in (schema, replace(trial, outcome=schema.outcome)):
        assert dpc.Vault(table, private, ledger="sqlite://", budget=budget).arm_sizes is None
    sizes = dpc.Vault(table, trial, ledger="sqlite://", budget=budget).arm_sizes
    assert sizes is not None
    assert sum(sizes) == 1000


def test_more_units_than_a_proof_is_about_are_refused_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"t": [0, 1] * 10, "y": [0.0, 1.0] * 10})
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    monkeypatch.setattr(ArmTotals, "most_units", 19)
    with pytest.raises(TableError, match="at most 19 units"):
        vault.release(ArmTotals(), dpc.Guarantee(epsilon=1))
    assert vault.ledger.spent.epsilon == 0
