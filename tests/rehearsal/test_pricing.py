"""A study that asks several questions begins only if there is enough left for all of them."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError
from dpcausal.queries import Query
from dpcausal.rehearsal.pricing import outstanding_cost
from dpcausal.source import RecordingSource, Source


def robust(source: Source) -> dpc.Effect:
    return dpc.DoublyRobust(covariates=["age", "race"]).estimate(source, epsilon=1.0)


def opened(table: pa.Table, schema: dpc.Schema, budget: dpc.Budget) -> dpc.Vault:
    return dpc.Vault(table, schema, ledger="sqlite://", budget=budget)


def test_price_covers_every_query_and_spends_nothing(table: pa.Table, schema: dpc.Schema) -> None:
    vault = opened(table, schema, dpc.Budget(epsilon=1.0))
    due = outstanding_cost(vault, robust)
    assert len(due) == 4  # scales, two models and scores
    assert sum(event.epsilon for event in due.values()) == pytest.approx(1.0)
    assert len(vault.ledger.entries()) == 2
    vault.ledger.check_affords(due)
    paid = robust(vault)
    assert sum(receipt.epsilon for receipt in paid.receipts) == pytest.approx(1.0)


def test_a_study_that_fits_only_in_part_is_refused_whole(table: pa.Table, schema: dpc.Schema) -> None:
    vault = opened(table, schema, dpc.Budget(epsilon=0.9))
    with pytest.raises(BudgetExceededError, match=r"epsilon 1, delta 0 for 4 queries"):
        vault.ledger.check_affords(outstanding_cost(vault, robust))
    assert vault.ledger.spent.epsilon == 0


def test_queries_that_fit_singly_but_not_together_are_refused(table: pa.Table, schema: dpc.Schema) -> None:
    def plain(source: dpc.Source) -> object:
        return dpc.DifferenceInMeans().estimate(source, epsilon=1.0)

    vault = opened(table, schema, dpc.Budget(epsilon=1.5))
    with pytest.raises(BudgetExceededError, match="epsilon 2, delta 0 for"):
        vault.ledger.check_affords(outstanding_cost(vault, robust, plain))
    assert vault.ledger.spent.epsilon == 0
    # What the check is there for: without it the first is spent before anyone is told.
    robust(vault)
    with pytest.raises(BudgetExceededError):
        plain(vault)
    assert vault.ledger.spent.epsilon == pytest.approx(1)


def test_stored_answers_cost_nothing(table: pa.Table, schema: dpc.Schema) -> None:
    vault = opened(table, schema, dpc.Budget(epsilon=1.0))
    robust(vault)
    assert outstanding_cost(vault, robust) == {}
    vault.ledger.check_affords({})


def test_a_study_that_was_cut_short_pays_for_the_rest_only(
    table: pa.Table, schema: dpc.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last question was debited and never answered; the first two are replayed, so that the same is asked again."""
    vault = opened(table, schema, dpc.Budget(epsilon=1.0))
    answer = dpc.Vault._answer

    def cut_short(self: dpc.Vault, query: Query, *others: object) -> object:
        if query.name == "augmented_scores":
            raise KeyboardInterrupt
        return answer(self, query, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(dpc.Vault, "_answer", cut_short)
    with pytest.raises(KeyboardInterrupt):
        robust(vault)
    monkeypatch.undo()
    assert vault.ledger.remaining.epsilon == pytest.approx(0, abs=1e-12)
    due = outstanding_cost(vault, robust)
    assert len(due) == 1
    vault.ledger.check_affords(due)  # it is reserved already
    robust(vault)


def test_several_askers_are_added_up(table: pa.Table, schema: dpc.Schema) -> None:
    def plain(source: Source) -> dpc.Effect:
        return dpc.DifferenceInMeans().estimate(source, epsilon=0.5)

    vault = opened(table, schema, dpc.Budget(epsilon=1.2))
    for ask in (robust, plain):
        vault.ledger.check_affords(outstanding_cost(vault, ask))
    with pytest.raises(BudgetExceededError):
        vault.ledger.check_affords(outstanding_cost(vault, robust, plain))
    assert len(outstanding_cost(vault, plain, plain)) == 1  # the same question is asked once


def test_a_stored_answer_to_an_expected_query_is_priced(table: pa.Table, schema: dpc.Schema) -> None:
    """The cap follows from noisy sizes of arms: the query with the expected cap may not be the one that is asked."""
    vault = opened(table, schema, dpc.Budget(epsilon=10.0))
    default = dpc.Stratification(by=["race"])
    expected = RecordingSource(dpc.Rehearsal(schema, vault.n))
    default.estimate(expected, epsilon=1.0)
    second = expected.releases[1]
    vault.release(second.query, second.guarantee)
    prices = outstanding_cost(vault, lambda source: default.estimate(source, epsilon=1.0))
    assert sum(event.epsilon for event in prices.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [dpc.DoublyRobust, dpc.InverseWeighting, dpc.RegressionAdjustment])
@pytest.mark.parametrize("lacking", [(), ("x0",), ("x0", "x1", "x2")], ids=["none", "one", "all"])
def test_a_price_in_rho_covers_the_search_for_missing_values(
    kind: Callable[..., dpc.DoublyRobust], lacking: tuple[str, ...]
) -> None:
    """Parts of one epsilon differ in rho, and what is asked next depends on how many values are missing."""
    n, names = 5_000, ("x0", "x1", "x2")
    columns = {
        name: pa.array([None if name in lacking and i % 4 == 0 else i % 7 - 3 for i in range(n)]) for name in names
    }
    columns |= {"t": pa.array([i % 2 for i in range(n)]), "y": pa.array([float(i % 11) for i in range(n)])}
    covariates = [dpc.Real(name, -4, 4, typical=(-3, 3)) for name in names]
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 10), covariates=covariates)
    vault = opened(pa.table(columns), schema, dpc.Budget(epsilon=20, delta=1e-6, rule="zcdp"))

    def asks(source: Source) -> object:
        return kind(covariates=names).estimate(source, epsilon=2.0, delta=1e-6)

    due = outstanding_cost(vault, asks)
    asks(vault)
    spent = [event.rho for entry in vault.ledger.entries() if entry.kind == "grant" for event in entry.events]
    assert 0 < sum(spent) <= sum(event.rho for event in due.values())
