"""Pay, then read; answer once, for ever. Doors that do otherwise are caught by the same observers."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.calibration import Noise, calibrate
from dpcausal.errors import EngineError, LedgerError
from dpcausal.ledger.chain import digest_of
from dpcausal.queries import ArmTotals, Query
from dpcausal.release import Receipt
from dpcausal.vault import door
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.engines import Engine, Integers
from dpcausal.vault.noise import add_noise

ONE = dpc.Guarantee(epsilon=1.0)


class Watched:
    """An engine that notes what the ledger held when it was read."""

    def __init__(self, engine: Engine, ledger: dpc.Ledger) -> None:
        self.engine, self.ledger = engine, ledger
        self.held: list[list[str]] = []

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str]) -> Integers:
        self.held.append([entry.kind for entry in self.ledger.entries()])
        return self.engine.aggregate(cells, sums)


class ReadFirst(dpc.Vault):
    """A broken twin that reads before it pays."""

    __slots__ = ()

    def release(self, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        ANSWERS[type(query)](query, self.schema, self._engine, guarantee)
        return super().release(query, guarantee)


class FreshNoise(dpc.Vault):
    """A broken twin that answers the same request anew, at no charge."""

    __slots__ = ()

    def release(self, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        super().release(query, guarantee)
        noise = calibrate(query, self.schema, guarantee)
        answer = ANSWERS[type(query)](query, self.schema, self._engine, guarantee)
        steps = add_noise(answer.in_order(noise), answer.sized(noise))
        return dpc.Release.of(query, guarantee, noise, steps, answer.facts, Receipt("arm_totals", 1.0, 0.0))


Opener = Callable[[type[dpc.Vault]], dpc.Vault]


@pytest.fixture
def opened(table: pa.Table, schema: dpc.Schema) -> Opener:
    return lambda kind: kind(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3))


def held_while_read(vault: dpc.Vault) -> list[list[str]]:
    watched = Watched(vault._engine, vault.ledger)
    vault._engine = watched  # type: ignore[assignment]
    vault.release(ArmTotals(), ONE)
    return watched.held


def test_the_debit_is_in_the_ledger_when_rows_are_read(opened: Opener) -> None:
    assert held_while_read(opened(dpc.Vault)) == [["open", "grant", "debit"]]
    assert ["open"] in held_while_read(opened(ReadFirst))


def test_a_request_is_answered_once(opened: Opener) -> None:
    honest, broken = opened(dpc.Vault), opened(FreshNoise)
    assert len({honest.release(ArmTotals(), ONE).values for _ in range(5)}) == 1
    assert len({broken.release(ArmTotals(), ONE).values for _ in range(5)}) > 1


def test_rows_stay_unread_when_the_ledger_fails(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = opened(dpc.Vault)
    watched = Watched(vault._engine, vault.ledger)
    vault._engine = watched  # type: ignore[assignment]

    def fail(_: dpc.Ledger, __: str) -> None:
        raise LedgerError(expected="a disk", got="none", hint="buy one.")

    monkeypatch.setattr(dpc.Ledger, "debit", fail)
    with pytest.raises(LedgerError):
        vault.release(ArmTotals(), ONE)
    assert watched.held == []


def test_a_failure_after_the_debit_is_not_refunded_and_not_charged_twice(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = opened(dpc.Vault)

    def fail(_: object, __: object) -> tuple[int, ...]:
        raise EngineError(expected="power", got="none", hint="wait.")

    with monkeypatch.context() as patched:
        patched.setattr(door, "add_noise", fail)
        with pytest.raises(EngineError):
            vault.release(ArmTotals(), ONE)
    assert vault.ledger.spent.epsilon == 1.0
    vault.release(ArmTotals(), ONE)
    assert vault.ledger.spent.epsilon == 1.0
    assert [entry.kind for entry in vault.ledger.entries()] == ["open", "grant", "debit", "release"]


def test_of_two_answers_in_a_race_the_first_stored_is_returned(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process stores its answer between our noise and our store: ours is thrown away unseen."""
    vault = opened(dpc.Vault)
    theirs: list[dpc.Release] = []

    def beaten(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        noisy = add_noise(steps, noise)
        if not theirs:
            receipt = Receipt("arm_totals", 1.0, 0.0, 2, "theirs")
            theirs.append(dpc.Release.of(ArmTotals(), ONE, noise, add_noise(steps, noise), {}, receipt))
            grant = next(entry for entry in vault.ledger.entries() if entry.kind == "grant")
            vault.ledger.store(grant.request, theirs[0].to_json())
        return noisy

    monkeypatch.setattr(door, "add_noise", beaten)
    assert vault.release(ArmTotals(), ONE) == theirs[0]


def test_a_request_is_its_question(opened: Opener) -> None:
    vault = opened(dpc.Vault)
    vault.release(ArmTotals(), ONE)
    grant = next(entry for entry in vault.ledger.entries() if entry.kind == "grant")
    assert grant.request == digest_of(grant.content["question"])
    assert [column["name"] for column in grant.content["question"]["columns"]] == ["treat", "score"]
    assert np.isclose(grant.content["event"]["epsilon"], 1.0)
