"""Pay, then read; answer once, for ever, when things go wrong too. (When they go right: see the audit.)"""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.spy import SpySampler, SpyVault
from dpcausal.errors import EngineError, LedgerError
from dpcausal.queries import ArmTotals
from dpcausal.queries.calibration import Noise
from dpcausal.release import Noisy, Receipt
from dpcausal.utils.hash_chain import digest_of
from dpcausal.vault.noise import Sampler

ONE = dpc.Guarantee(epsilon=1.0)


@pytest.fixture
def vault(table: pa.Table, schema: dpc.Schema) -> SpyVault:
    return SpyVault(table, schema)


def test_rows_stay_unread_when_the_ledger_fails(vault: SpyVault, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: dpc.Ledger, __: str) -> None:
        raise LedgerError(expected="a disk", got="none", hint="buy one.")

    monkeypatch.setattr(dpc.Ledger, "debit", fail)
    with pytest.raises(LedgerError):
        vault.release(ArmTotals(), ONE)
    assert vault.readings == []


def test_failure_after_the_debit_is_neither_refunded_nor_charged_twice(
    vault: SpyVault, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fail(*_: object) -> Noisy:
        raise EngineError(expected="power", got="none", hint="wait.")

    with monkeypatch.context() as patched:
        patched.setattr(SpySampler, "add_noise", fail)
        with pytest.raises(EngineError):
            vault.release(ArmTotals(), ONE)
    assert vault.ledger.spent.epsilon == 1.0
    vault.release(ArmTotals(), ONE)
    assert vault.ledger.spent.epsilon == 1.0
    assert [entry.kind for entry in vault.ledger.entries()] == ["open", "bind", "grant", "debit", "release"]


def test_first_stored_answer_of_a_race_is_returned(vault: SpyVault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process stores its answer between our noise and our store: ours is thrown away unseen."""
    theirs: list[dpc.Release] = []

    def beaten(_: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        noisy, other = (Sampler().add_noise(ticks, noise) for _ in range(2))
        if not theirs:
            receipt = Receipt("arm_totals", 1.0, 0.0, 2, "theirs")
            theirs.append(dpc.Release.of(ArmTotals(), ONE, noise, noisy=other, public_values=(), receipt=receipt))
            grant = next(entry for entry in vault.ledger.entries() if entry.kind == "grant")
            vault.ledger.store(grant.request, theirs[0].to_json())
        return noisy

    monkeypatch.setattr(SpySampler, "add_noise", beaten)
    assert vault.release(ArmTotals(), ONE) == theirs[0]


def test_request_is_identified_by_its_question(vault: SpyVault) -> None:
    vault.release(ArmTotals(), ONE)
    grant = next(entry for entry in vault.ledger.entries() if entry.kind == "grant")
    assert grant.request == digest_of(grant.content["question"])
    assert [column["name"] for column in grant.content["question"]["columns"]] == ["treat", "score"]
    assert np.isclose(grant.content["event"]["epsilon"], 1.0)
