"""What a restored ledger counts once more is what was lost: no price is left out, and none is counted twice.

Answers are lost that receipts tell of, alone and several together, that the copy holds without an answer, and that a
person states. Mutants of the arithmetic must fail the same check.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, get_args

import pytest

import dpcausal as dpc
from dpcausal.errors import LedgerError
from dpcausal.guarantee import Event, Rule
from dpcausal.ledger import restoring
from dpcausal.ledger.budget import Total
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.restoring import Lost
from dpcausal.ledger.store import Store
from dpcausal.ledger.witness import open_witness
from dpcausal.queries import ArmMoments, ArmTotals, CovariateSums
from dpcausal.queries.calibration import Asked, gaussian_sd
from dpcausal.release import Receipt, joint_price
from dpcausal.testing import standard_schema
from tests.ledger.long_ledgers import AS_OF

SCHEMA = standard_schema()
LAPLACE: list[Asked] = [Asked(ArmMoments(), dpc.Guarantee(epsilon=0.1))]
GAUSSIAN: list[Asked] = [Asked(ArmTotals(), dpc.Guarantee(epsilon=0.3, delta=1e-7))]
SEVERAL: list[Asked] = [
    Asked(ArmMoments(), dpc.Guarantee(epsilon=0.7)),
    Asked(ArmTotals(), dpc.Guarantee(epsilon=0.2, delta=1e-6)),
    Asked(CovariateSums(["age"]), dpc.Guarantee(epsilon=0.4, delta=2e-6)),
]
PURE: list[Asked] = [Asked(ArmMoments(), dpc.Guarantee(epsilon=0.5)), Asked(ArmTotals(), dpc.Guarantee(epsilon=0.25))]
STATED = 0.05
BY: dict[str, Any] = {"by": "bob", "reason": "the disk failed"}


def events_of(asked: Sequence[Asked], rule: Rule) -> list[Event]:
    return [each.noise(SCHEMA, rule).event for each in asked]


def added(*parts: Sequence[Event]) -> Total:
    return reduce(Total.plus, (event for part in parts for event in part), Total())


@dataclass
class Disk:
    """A ledger on a disk that is about to fail, and a copy of it."""

    folder: Path
    rule: Rule = "additive"
    witness: str = ""

    def __post_init__(self) -> None:
        self.witness = self.witness or str(self.folder / "witness.log")
        self.url, self.copy = f"sqlite:///{self.folder / 'ledger.db'}", self.folder / "copy.db"
        budget = dpc.Budget(epsilon=20, delta=1e-3, rule=self.rule)
        self.ledger = dpc.Ledger.create(self.url, budget, as_of=AS_OF, witness=self.witness)

    def reserve(self, request: str, asked: Sequence[Asked]) -> None:
        self.ledger.grant(request, events_of(asked, self.rule), {})

    def answer(self, request: str, asked: Sequence[Asked]) -> Receipt:
        self.reserve(request, asked)
        debit = self.ledger.debit(request)
        self.ledger.store(request, '{"answer": 1}')
        return replace(joint_price(asked), entry=debit.number, digest=debit.digest)

    def save(self) -> None:
        shutil.copy(self.folder / "ledger.db", self.copy)

    def restore(self, **parts: Any) -> dpc.Ledger:
        (self.folder / "ledger.db").unlink()
        copy = f"sqlite:///{self.copy}"
        self.ledger = dpc.Ledger.restore(self.url, copy=copy, witness=self.witness, **BY, **parts)
        return self.ledger

    @property
    def total(self) -> Total:
        return self.ledger._current().total


def check_prices(folder: Path) -> None:
    """Lose answers of every kind under both rules, restore a copy, and compare what is counted with what they cost."""
    for rule in get_args(Rule):
        (place := folder / rule).mkdir(parents=True)
        disk = Disk(place, rule)
        disk.answer("before", LAPLACE)
        disk.reserve("unanswered", SEVERAL)
        disk.save()
        disk.answer("unanswered", SEVERAL)
        lost = {"pure": LAPLACE, "gaussian": GAUSSIAN, "several": SEVERAL, "several pure": PURE}
        receipts = [disk.answer(request, asked) for request, asked in lost.items()]
        disk.answer("unknown", [Asked(ArmMoments(), dpc.Guarantee(epsilon=STATED))])
        held = added(events_of(LAPLACE, rule), events_of(SEVERAL, rule))
        again = added(events_of(SEVERAL, rule), *(events_of(each, rule) for each in lost.values()))
        stated = Event(family="laplace", epsilon=STATED, delta=0.0, mu=0.0)
        with pytest.raises(LedgerError, match="the price of every answer that is lost"):
            Lost.of(_copied(disk), receipts, open_witness(disk.witness), disk.ledger.opening).check_stated(None)
        disk.restore(receipts=[*receipts, *receipts], lost_epsilon=STATED)
        expected = (held + again).plus(stated)
        assert (disk.total.epsilon, disk.total.delta) == (expected.epsilon, expected.delta)
        assert disk.total.rho >= expected.rho
        for name in ("pure", "gaussian"):
            (event,) = events_of(lost[name], rule)
            assert restoring._price(receipts[list(lost).index(name)], rule) == event
        bound = sum(restoring._price(receipt, rule).rho for receipt in receipts)
        known = held.plus(stated) + added(events_of(SEVERAL, rule))
        assert disk.total.rho == known.rho + bound


def _copied(disk: Disk) -> Sequence[Entry]:
    """Return the entries of the copy, which may be behind its witness."""
    other = dpc.Ledger.__new__(dpc.Ledger)
    other._open(Store(f"sqlite:///{disk.copy}"), open_witness(disk.witness), restoring=True)
    return other.entries()


def test_every_lost_price_is_counted_once_more(tmp_path: Path) -> None:
    check_prices(tmp_path)


def _only(*parts: str) -> Callable[..., Any]:
    """Return a mutant that counts some of the three kinds of loss."""

    def events(lost: Lost, stated: Event | None, rule: Rule) -> list[Event]:
        found = {
            "receipts": [restoring._price(each, rule) for each in lost.receipts],
            "unanswered": [event for each in lost.unanswered for event in each],
            "stated": [stated] if stated else [],
        }
        return [event for part in parts for event in found[part]]

    return events


def _priced(change: Callable[[Receipt], Receipt]) -> Callable[[Receipt, Rule], Event]:
    price = restoring._price
    return lambda receipt, rule: price(change(receipt), rule)


def _first(receipt: Receipt) -> Receipt:
    return replace(receipt, query=receipt.query.partition(" + ")[0])


def _as_pure(receipt: Receipt, _: Rule) -> Event:
    return Event(family="laplace", epsilon=receipt.epsilon, delta=receipt.delta, mu=0.0)


def _as_gaussian(receipt: Receipt, _: Rule) -> Event:
    delta = receipt.delta or 1e-9
    return Event(
        family="gaussian",
        epsilon=receipt.epsilon,
        delta=receipt.delta,
        mu=1 / gaussian_sd(receipt.epsilon, delta),
    )


MUTANTS: dict[str, tuple[object, str, object]] = {
    "receipts left out": (Lost, "events", _only("unanswered", "stated")),
    "unanswered requests left out": (Lost, "events", _only("receipts", "stated")),
    "the stated price left out": (Lost, "events", _only("receipts", "unanswered")),
    "only the first event of an unanswered request": (
        Lost,
        "events",
        lambda lost, stated, rule: _only("receipts", "unanswered", "stated")(
            replace(lost, unanswered=tuple(each[:1] for each in lost.unanswered)), stated, rule
        ),
    ),
    "one of several queries": (
        restoring,
        "_price",
        _priced(lambda receipt: replace(receipt, epsilon=receipt.epsilon / receipt.count)),
    ),
    "several queries as one": (restoring, "_price", _priced(_first)),
    "delta left out": (restoring, "_price", _priced(lambda receipt: replace(receipt, delta=0.0))),
    "Gaussian noise as pure": (restoring, "_price", _as_pure),
    "pure noise as Gaussian": (restoring, "_price", _as_gaussian),
    "a stated price without rho": (
        restoring,
        "stated_event",
        lambda epsilon, delta, *_: Event(family="gaussian", epsilon=epsilon, delta=delta, mu=0.0),
    ),
    "no statement needed": (Lost, "unknown", property(lambda _: 0)),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_arithmetic_that_is_wrong_is_caught(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, wrong = MUTANTS[mutant]
    monkeypatch.setattr(place, name, wrong)
    if name == "stated_event":
        monkeypatch.setattr("dpcausal.ledger.ledger.stated_event", wrong)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_prices(tmp_path)


@pytest.mark.parametrize("rule", get_args(Rule))
def test_restoring_twice_counts_each_loss_once(rule: Rule, tmp_path: Path) -> None:
    disk = Disk(tmp_path, rule)
    disk.answer("before", LAPLACE)
    disk.save()
    receipts = [disk.answer("pure", LAPLACE), disk.answer("gaussian", GAUSSIAN)]
    disk.restore(receipts=receipts)
    once = disk.total
    assert once == added(events_of(LAPLACE, rule) * 2, events_of(GAUSSIAN, rule))
    again = dpc.Ledger.restore(disk.url, witness=disk.witness, receipts=receipts, **BY)
    assert again._current().total == once  # the first restore is in the chain, and counted them
    disk.save()
    disk.ledger = again
    later = disk.answer("later", GAUSSIAN)
    disk.restore(receipts=[*receipts, later])
    assert disk.total == once + added(events_of(GAUSSIAN, rule))
    assert disk.ledger.check_receipts([*receipts, later]) == ()


@pytest.mark.parametrize("witness", ["witness.log", "sqlite"])
def test_older_copy_that_is_restored_twice_counts_what_the_first_restore_counted(tmp_path: Path, witness: str) -> None:
    """The copy does not hold the first restore, so that everything since is lost once more, also what was stated."""
    disk = Disk(tmp_path, witness=str(tmp_path / witness) if ".log" in witness else f"sqlite:///{tmp_path / witness}")
    disk.answer("before", LAPLACE)
    disk.save()
    receipt = disk.answer("pure", LAPLACE)
    disk.answer("unknown", GAUSSIAN)
    disk.restore(receipts=[receipt], lost_epsilon=0.3, lost_delta=1e-7)
    once = disk.total
    with pytest.raises(LedgerError, match="restored after this copy was made"):
        disk.restore(receipts=[receipt])
    disk.ledger = dpc.Ledger.restore(
        disk.url,
        copy=f"sqlite:///{disk.copy}",
        witness=disk.witness,
        receipts=[receipt],
        lost_epsilon=0.3,
        lost_delta=1e-7,
        **BY,
    )
    assert disk.total == once


def test_most_entries_that_anybody_knows_of_are_missing(tmp_path: Path) -> None:
    """The witness and the receipts each know of a last entry; the later one counts."""
    disk = Disk(tmp_path)
    disk.save()
    first, second = disk.answer("one", LAPLACE), disk.answer("two", LAPLACE)
    entries, seen, opening = _copied(disk), open_witness(disk.witness), disk.ledger.opening
    assert Lost.of(entries, [first], seen, opening).entries == 6
    assert Lost.of(entries, [first], seen, opening).unknown == 1
    assert Lost.of(entries, [first, second], None, opening).entries == 6
    assert Lost.of(entries, [first], None, opening).entries == 3
