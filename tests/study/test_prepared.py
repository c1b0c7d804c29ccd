"""A prepared study states its price, is refused whole, and runs by one call."""

from dataclasses import replace

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, StudyError
from dpcausal.release import Receipt

OVERLAP = {"overlap": {"epsilon": 0.5, "covariates": ["age"]}}


def opened(table: pa.Table, schema: dpc.Schema, epsilon: float) -> dpc.Vault:
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=epsilon))


@pytest.fixture
def study(schema: dpc.Schema) -> dpc.Study:
    return dpc.Study(
        name="robust",
        question="Does it help?",
        schema=schema,
        estimator=dpc.DoublyRobust(covariates=["age"]),
        epsilon=1.0,
        requires=OVERLAP,
        epsilons={"north": 0.25},
    )


def test_preparing_states_the_price_and_spends_nothing(table: pa.Table, schema: dpc.Schema, study: dpc.Study) -> None:
    vault = opened(table, schema, 2.0)
    prepared = study.prepare(vault)
    assert str(prepared.price) == "epsilon 1.5, delta 0"
    assert sum(event.epsilon for event in prepared.due.values()) == pytest.approx(1.5)
    assert study.prepare(vault, "north").price.epsilon == 0.75
    assert {entry.kind for entry in vault.ledger.entries()} == {"open", "bind"}


def test_vault_that_declares_the_table_otherwise_is_refused_before_anything_is_paid(
    table: pa.Table, schema: dpc.Schema, study: dpc.Study
) -> None:
    wider = replace(schema, outcome=dpc.Real("score", 0, 1_000))
    for other, words in (
        (wider, "differs in outcome"),
        (replace(wider, covariates=()), "differs in outcome, age, race"),
    ):
        vault = opened(table, other, 2.0)
        with pytest.raises(StudyError, match=words):
            study.prepare(vault)
        assert not vault.ledger.spent.epsilon
    more = replace(schema, covariates=(*schema.covariates, dpc.Binary("extra")))
    assert study.prepare(opened(table.append_column("extra", pa.array([0] * len(table))), more, 2.0)).due


def test_running_pays_what_was_due_once(table: pa.Table, schema: dpc.Schema, study: dpc.Study) -> None:
    vault = opened(table, schema, 1.5)
    result = study.prepare(vault).run()
    assert vault.ledger.spent.epsilon == pytest.approx(1.5)
    assert result.effect is not None
    assert not result.failed
    assert [release.query.name for release in result.releases[-4:]] == [each.query for each in _asked(result.effect)]
    again = study.prepare(vault)
    assert not again.due
    assert again.run() == result


def _asked(effect: dpc.Effect) -> list[Receipt]:
    """Its receipts in the order of the ledger."""
    return sorted(effect.receipts, key=lambda receipt: receipt.entry or 0)


def test_study_that_fits_in_part_is_refused_before_its_first_query(
    table: pa.Table, schema: dpc.Schema, study: dpc.Study
) -> None:
    vault = opened(table, schema, 1.4)
    refusal = r"^Budget exceeded: this costs epsilon 1\.5, delta 0 for \d queries, and epsilon 1\.4, delta 0 is left"
    with pytest.raises(BudgetExceededError, match=refusal):
        study.prepare(vault).run()
    assert vault.ledger.spent.epsilon == 0


def test_effect_is_not_asked_for_where_a_required_diagnostic_fails(schema: dpc.Schema, table: pa.Table) -> None:
    ages = [age / 2 + 25 * arm for age, arm in zip(table["age"].to_pylist(), table["treat"].to_pylist(), strict=True)]
    apart = table.set_column(table.column_names.index("age"), "age", pa.array(ages))
    study = dpc.Study(
        name="plain",
        question="Does it help?",
        schema=schema,
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        requires={"balance": {"epsilon": 50.0, "covariates": ["age"]}},
    )
    vault = opened(apart, schema, 60.0)
    result = study.prepare(vault).run()
    assert (result.effect, result.failed) == (None, ("balance",))
    assert vault.ledger.spent.epsilon == pytest.approx(50.0)
