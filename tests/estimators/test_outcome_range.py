import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError, SchemaError

SCHEMA = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("cost", 0, 1_000_000))


def vault_of(n: int, schema: dpc.Schema = SCHEMA) -> dpc.Vault:
    generator = np.random.default_rng(0)
    table = pa.table({"t": generator.integers(0, 2, n), "cost": generator.gamma(4, 5_000, n)})
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10))


def test_bounds_are_found_and_hold_nearly_all_outcomes() -> None:
    vault = vault_of(50_000)
    found = dpc.OutcomeRange(steps=8).find(vault, epsilon=0.5)
    assert found.outcome.low <= 1_000_000 / 2**8  # nearly 1 % lie below the lowest step: noise decides
    assert 50_000 < found.outcome.high < 100_000  # the 99th percentile is near 50,000
    assert found.narrower > 10
    assert 0.2 < vault.ledger.spent.epsilon <= 0.5  # less where both searches ask the same
    assert sum(receipt.epsilon for receipt in found.receipts) == pytest.approx(vault.ledger.spent.epsilon)
    assert "times narrower than 0 to 1,000,000" in str(found)
    assert "epsilon 0.5" in str(found)


def test_a_narrower_range_serves_the_same_ledger(tmp_path: object) -> None:
    address = f"sqlite:///{tmp_path}/ledger.db"
    generator = np.random.default_rng(0)
    table = pa.table({"t": generator.integers(0, 2, 20_000), "cost": generator.gamma(4, 5_000, 20_000)})
    dpc.Ledger.create(address, dpc.Budget(epsilon=2), as_of="2026-06-30")
    wide = dpc.Vault(table, SCHEMA, ledger=address, as_of="2026-06-30")
    found = dpc.OutcomeRange().find(wide, epsilon=0.5)
    narrow = dpc.Vault(table, found.schema(SCHEMA), ledger=address, as_of="2026-06-30")
    before = dpc.DifferenceInMeans().estimate(wide, epsilon=0.5)
    after = dpc.DifferenceInMeans().estimate(narrow, epsilon=0.5)
    assert after.privacy_sd < before.privacy_sd / 5
    assert narrow.ledger.spent.epsilon == wide.ledger.spent.epsilon <= 1.5


def test_a_tail_that_noise_hides_is_refused_and_nothing_is_spent() -> None:
    vault = vault_of(100)
    with pytest.raises(RefusedError, match="twice the noise in a count"):
        dpc.OutcomeRange().find(vault, epsilon=0.01)
    assert vault.ledger.spent.epsilon == 0


def test_binary_outcome_has_no_range_to_find() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Binary("cost"))
    with pytest.raises(SchemaError, match="two values"):
        dpc.OutcomeRange().find(dpc.Rehearsal(schema, n=100), epsilon=1.0)


@pytest.mark.parametrize("wrong", [{"tail": 0.0}, {"tail": 0.5}, {"steps": 0}, {"steps": 21}, {"steps": 6.0}])
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(QueryError):
        dpc.OutcomeRange(**wrong).find(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)  # type: ignore[arg-type]
