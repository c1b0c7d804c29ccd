"""An older copy that is put back on purpose: what is lost is written down, counted once more, and told."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, GuaranteeError, LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger.restoring import _price
from dpcausal.queries import ArmMoments, ArmTotals
from dpcausal.queries.calibration import Asked
from dpcausal.release import Receipt, joint_price
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.testing import standard_schema
from tests.ledger.long_ledgers import AS_OF, GAUSSIAN, LAPLACE, answer

BY: dict[str, Any] = {"by": "bob", "reason": "the disk failed"}


class Lost:
    """A ledger of which one answer was given before the copy was made, and more after it."""

    def __init__(self, folder: Path, *, witness: bool = True, rule: str = "additive", unanswered: bool = False) -> None:
        self.file, self.copy = folder / "ledger.db", folder / "copy.db"
        self.url, self.copy_url = f"sqlite:///{self.file}", f"sqlite:///{self.copy}"
        self.witness = str(folder / "witness.log") if witness else None
        budget = dpc.Budget(epsilon=1, delta=1e-5, rule=rule)  # type: ignore[arg-type]
        self.ledger = dpc.Ledger.create(self.url, budget, as_of=AS_OF, witness=self.witness)
        answer(self.ledger, "before")
        if unanswered:
            self.ledger.grant("unanswered", LAPLACE, {})
        shutil.copy(self.file, self.copy)

    def answered(self, request: str, event: Event = LAPLACE) -> Receipt:
        answer(self.ledger, request, event)
        debit = next(entry for entry in self.ledger.entries() if (entry.kind, entry.request) == ("debit", request))
        return Receipt("arm_totals", event.epsilon, event.delta, debit.number, debit.digest)

    def restore(self, **parts: Any) -> dpc.Ledger:
        self.file.unlink(missing_ok=True)
        return dpc.Ledger.restore(self.url, copy=self.copy_url, witness=self.witness, **BY, **parts)


def test_what_receipts_tell_is_counted_once_more(tmp_path: Path) -> None:
    lost = Lost(tmp_path)
    receipts = [lost.answered("one"), lost.answered("two", GAUSSIAN)]
    restored = lost.restore(receipts=receipts)
    assert restored.spent.epsilon == pytest.approx(0.5)
    assert restored.spent.delta == 1e-7
    assert [entry.kind for entry in restored.entries()][-2:] == ["release", "restore"]
    assert restored.check_receipts(receipts) == ()
    assert dpc.Ledger(lost.url, witness=lost.witness).spent == restored.spent
    [told] = LedgerSummary.of(restored).restores
    assert "by bob (the disk failed): 6 entries lost at the end, 2 of the lost answers by receipt" in told
    answer(restored, "one")
    assert restored.spent.epsilon == pytest.approx(0.6)
    restored.verify()


def test_answers_that_only_a_witness_knows_of_must_be_priced(tmp_path: Path) -> None:
    lost = Lost(tmp_path)
    receipt = lost.answered("one")
    lost.answered("two")
    for receipts in ([], [receipt]):
        with pytest.raises(LedgerError, match=f"6 entries are missing, .* all but {2 - len(receipts)} answers"):
            lost.restore(receipts=receipts)
        assert not lost.file.exists()
    restored = lost.restore(receipts=[receipt], lost_epsilon=0.25)
    assert restored.spent.epsilon == pytest.approx(0.45)


def test_without_a_witness_a_person_must_state_the_rest(tmp_path: Path) -> None:
    lost = Lost(tmp_path, witness=False)
    receipt = lost.answered("one")
    with pytest.raises(LedgerError, match="no witness, so the number of missing entries is unknown"):
        lost.restore(receipts=[receipt])
    assert lost.restore(receipts=[receipt], lost_epsilon=0.0).spent.epsilon == 0.2


def test_a_request_that_may_have_been_answered_since_is_counted_once_more(tmp_path: Path) -> None:
    """Its grant is in the copy; its answer may have been told, and would be drawn anew for nothing."""
    lost = Lost(tmp_path, unanswered=True)
    lost.ledger.debit("unanswered")
    lost.ledger.store("unanswered", '{"answer": "told"}')
    assert lost.restore().spent.epsilon == pytest.approx(0.3)


def test_what_is_lost_may_use_up_the_budget(tmp_path: Path) -> None:
    lost = Lost(tmp_path)
    lost.answered("one")
    restored = lost.restore(lost_epsilon=5.0)
    with pytest.raises(BudgetExceededError):
        restored.grant("another", LAPLACE, {})


def test_prices_in_rho_come_from_receipts(tmp_path: Path) -> None:
    lost = Lost(tmp_path, rule="zcdp")
    receipt = lost.answered("one", Event(family="gaussian", epsilon=0.1, delta=1e-5, mu=0.01))
    before = lost.ledger.spent.epsilon
    with pytest.raises(LedgerError, match="adds up rho"):
        lost.restore(lost_epsilon=0.1, lost_delta=1e-6)
    assert before <= lost.restore(receipts=[receipt]).spent.epsilon < 1


def test_a_copy_is_put_back_where_nothing_is(tmp_path: Path) -> None:
    lost = Lost(tmp_path)
    lost.answered("one")
    with pytest.raises(LedgerError, match="a ledger already"):
        dpc.Ledger.restore(lost.url, copy=lost.copy_url, witness=lost.witness, lost_epsilon=0.1, **BY)
    assert len(lost.ledger.entries()) == 7


def test_a_copy_that_a_restore_left_behind_is_refused(tmp_path: Path) -> None:
    """Two ledgers that go on from one copy would be two budgets."""
    lost = Lost(tmp_path)
    for request in ("one", "two", "three"):
        lost.answered(request)
    found_again = shutil.copy(lost.file, tmp_path / "found-again.db")
    answer(lost.restore(lost_epsilon=0.3), "four")
    with pytest.raises(LedgerError, match="another entry"):
        dpc.Ledger(f"sqlite:///{found_again}", witness=lost.witness)
    with pytest.raises(LedgerError, match="left behind by an earlier restore"):
        dpc.Ledger.restore(f"sqlite:///{found_again}", witness=lost.witness, lost_epsilon=0.0, **BY)


def test_a_broken_copy_and_hostile_words_are_refused(tmp_path: Path) -> None:
    lost = Lost(tmp_path)
    receipt = lost.answered("one")
    for parts in ({"by": "bob\x1b[2J"}, {"reason": ""}, {"lost_epsilon": -1.0}, {"lost_epsilon": float("nan")}):
        with pytest.raises(LedgerError):
            dpc.Ledger.restore(lost.url, witness=lost.witness, **(BY | parts))
    with pytest.raises(GuaranteeError):
        lost.restore(receipts=[Receipt("arm_totals", -5.0, 0.0, receipt.entry, receipt.digest)])
    lost.copy.write_bytes(lost.copy.read_bytes().replace(b"laplace", b"gaplace"))
    with pytest.raises(LedgerError, match="chain is broken"):
        lost.restore(receipts=[receipt])


def test_a_witness_that_is_lost_too_is_replaced(tmp_path: Path) -> None:
    lost = Lost(tmp_path)
    lost.answered("one")
    new = str(tmp_path / "new.log")
    with pytest.raises(LedgerError, match="number of missing entries is unknown"):
        dpc.Ledger.restore(lost.url, witness=new, **BY)
    assert dpc.Ledger.restore(lost.url, witness=new, lost_epsilon=0.0, **BY).spent.epsilon == 0.2
    assert dpc.Ledger(lost.url, witness=new).spent.epsilon == 0.2


def test_lost_receipt_of_several_queries_costs_no_less_than_they_did() -> None:
    """Which of them had Gaussian noise is unknown, so the price in rho is above any way to divide the total."""
    asked = [
        Asked(ArmMoments(), dpc.Guarantee(epsilon=0.2)),
        Asked(ArmTotals(), dpc.Guarantee(epsilon=1.0, delta=1e-6)),
    ]
    schema = standard_schema()
    spent = sum(each.noise(schema, "zcdp").event.rho for each in asked)
    receipt = replace(joint_price(asked), entry=3, digest="0" * 64)
    price = _price(receipt, "zcdp")
    assert (receipt.count, price.epsilon, price.delta) == (2, 1.2, 1e-6)
    assert price.rho >= spent
