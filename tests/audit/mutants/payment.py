"""Doors that do not pay first, do not answer once, do not refuse."""

import pytest

import dpcausal as dpc
from dpcausal.audit.payment import check_refusal, check_retry
from dpcausal.queries import Query, calibration
from dpcausal.release import Receipt
from dpcausal.vault.answers import ANSWERS
from tests.audit.mutants.mutant import debit, mutant


@mutant("reads before it pays", debit)
def reads_first(patch: pytest.MonkeyPatch) -> None:
    release = dpc.Vault.release

    def read_first(vault: dpc.Vault, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        ANSWERS[type(query)](vault._context(query, guarantee))
        return release(vault, query, guarantee)

    patch.setattr(dpc.Vault, "release", read_first)


@mutant("fresh noise when asked again", check_retry)
def fresh_noise(patch: pytest.MonkeyPatch) -> None:
    release = dpc.Vault.release

    def fresh(vault: dpc.Vault, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        release(vault, query, guarantee)
        noise = calibration.calibrate(query, vault.schema, guarantee)
        return vault._answer(query, guarantee, noise, Receipt(query.name, 1.0, 0.0))

    patch.setattr(dpc.Vault, "release", fresh)


@mutant("a budget that refuses nothing", check_refusal)
def no_budget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpc.Budget, "covers", lambda *_: True)
