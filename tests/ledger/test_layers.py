"""Experiments of a layer cost a person what the costliest bucket costs, and no more and no less."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import create_engine, text

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, DpcausalError, LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger import layers, running_total
from dpcausal.ledger.allocated_total import AllocatedTotal
from dpcausal.ledger.budget import Total

AS_OF = "2026-06-30"
LAYERS = {"page": dpc.Layer("bucket", 4), "price": dpc.Layer("cell", 3)}
Claimed = tuple[str, tuple[int, ...]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'population.db'}"


def created(url: str, epsilon: float = 3, **more: Any) -> dpc.Population:
    return dpc.Population.create(url, "people", dpc.Budget(epsilon=epsilon, delta=1e-4), layers=LAYERS, **more)


def spend(ledger: dpc.Ledger, epsilon: float) -> None:
    ledger.grant("query", Event(family="laplace", epsilon=epsilon, delta=0.0, mu=0.0), {})


def costliest_person(charged: dict[str, tuple[Claimed, int]]) -> int:
    """Return what the person loses who loses most, by going through all of them, in hundredths of epsilon."""
    people = itertools.product(*(range(layer.buckets) for layer in LAYERS.values()))
    sums = []
    for person in people:
        place = dict(zip(LAYERS, person, strict=True))
        sums.append(sum(cost for (layer, buckets), cost in charged.values() if not layer or place[layer] in buckets))
    return max(sums)


def steps(random: Random) -> Iterator[tuple[str, Claimed, int, int]]:
    for place in range(24):
        layer = random.choice(["", "page", "page", "price"])
        count = LAYERS[layer].buckets if layer else 0
        buckets = tuple(sorted(random.sample(range(count), random.randint(1, count)))) if layer else ()
        cap = random.randint(5, 80)
        yield f"e{place}", (layer, buckets), cap, random.randint(0, cap)


def matches_every_person(url: str, seed: int) -> bool:
    """Whether random experiments, of which some are closed, cost the population what its costliest person loses."""
    random, people = Random(seed), created(url)  # noqa: S311 (which experiments there are)
    charged: dict[str, tuple[Claimed, int]] = {}
    left: dict[str, int] = {}
    for name, (layer, buckets), cap, spent in steps(random):
        taken = {bucket for other in left for bucket in charged[other][0][1] if charged[other][0][0] == layer}
        terms: dict[str, Any] = {"layer": layer, "buckets": buckets} if layer else {}
        ask = partial(people.allocate, name, dpc.Budget(epsilon=cap / 100), as_of=AS_OF, **terms)
        if taken & set(buckets):
            with pytest.raises(LedgerError, match="and is still open"):
                ask()
        elif costliest_person(charged | {name: ((layer, buckets), cap)}) > 300:
            with pytest.raises(BudgetExceededError):
                ask()
        else:
            spend(ask(), spent / 100) if spent else ask()
            charged[name], left[name] = ((layer, buckets), cap), spent
        if left and random.random() < 0.4:
            closing = random.choice(sorted(left))
            people.close(closing)
            charged[closing] = charged[closing][0], left.pop(closing)
        if round(100 * people.allocated.epsilon) != costliest_person(charged):
            return False
    people.verify()
    assert dpc.Population(url, "people").allocated == people.allocated
    return bool(charged)


@pytest.mark.parametrize("seed", range(3))
def test_cost_is_that_of_the_costliest_person(url: str, seed: int) -> None:
    assert matches_every_person(url, seed)


def largest_of_experiments(self: layers.Allocated) -> Any:
    """The largest cost of one experiment, for the largest sum over a bucket: wrong where buckets are claimed again."""
    buckets = [bucket for each in self.layers.values() for bucket in each]
    return self.apart + (layers.costliest(buckets) if buckets else Total())


def paid_by_the_first_bucket(buckets: Any) -> Any:
    return buckets[0].total


def paid_by_everybody(self: layers.Allocated, total: Any, *_: Any) -> Any:
    return replace(self, apart=self.apart + total)


MUTANTS = {
    "the largest layer for the sum of layers": lambda patch: patch.setattr(
        layers.Allocated, "total", property(largest_of_experiments)
    ),
    "one bucket for the largest": lambda patch: patch.setattr(layers, "costliest", paid_by_the_first_bucket),
    "charged to everybody": lambda patch: patch.setattr(layers.Allocated, "moved", paid_by_everybody),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_accounts_are_caught(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    caught = 0
    for seed in range(3):
        try:
            caught += not matches_every_person(f"sqlite:///{tmp_path / str(seed)}.db", seed)
        except (DpcausalError, pytest.fail.Exception):
            caught += 1
    assert caught


def test_claimed_again_adds_up_in_that_bucket(url: str) -> None:
    people = created(url)
    spend(people.allocate("a", dpc.Budget(epsilon=1), as_of=AS_OF, layer="page", buckets=[0, 1]), 0.5)
    with pytest.raises(LedgerError, match="buckets 1-2 of the layer page, by bucket, a has some"):
        people.allocate("b", dpc.Budget(epsilon=1), as_of=AS_OF, layer="page", buckets=[1, 2])
    people.close("a")
    people.allocate("b", dpc.Budget(epsilon=1), as_of=AS_OF, layer="page", buckets=[1, 2])
    assert people.allocated.epsilon == 1.5
    assert [float(each.total.epsilon) for each in people.buckets("page")] == [0.5, 1.5, 1, 0]
    assert [each.holder for each in people.buckets("page")] == ["", "b", "b", ""]
    assert people.remaining_in("page", [0]).epsilon == 2.5
    assert (people.remaining_in("page", [3]).epsilon, people.remaining_in("page", [1]).epsilon) == (3, 1.5)
    assert [str(each.claim) for each in people.experiments()][1] == "buckets 1-2 of the layer page, by bucket"


def test_deltas_and_epsilons_are_counted_apart(url: str) -> None:
    people = created(url)
    people.allocate("a", dpc.Budget(epsilon=1, delta=1e-6), as_of=AS_OF, layer="page", buckets=[0])
    people.allocate("b", dpc.Budget(epsilon=0.5, delta=5e-6), as_of=AS_OF, layer="page", buckets=[1])
    people.allocate("c", dpc.Budget(epsilon=0.25), as_of=AS_OF, layer="price", buckets=[0])
    assert (people.allocated.epsilon, people.allocated.delta) == (1.25, 5e-6)


def test_rho_adds_up_by_bucket(url: str) -> None:
    people = dpc.Population.create(url, "people", dpc.Budget(epsilon=2, delta=1e-6, rule="zcdp"), layers=LAYERS)
    part = people.budget.part(2)
    half = dpc.Budget(epsilon=part.epsilon, delta=part.delta, rule="zcdp")
    for place in range(4):
        people.allocate(f"e{place}", half, as_of=AS_OF, layer="page", buckets=[place])
    people.allocate("all", half, as_of=AS_OF)
    with pytest.raises(BudgetExceededError):
        people.allocate("more", half, as_of=AS_OF, layer="price", buckets=[0])


def test_checkpoints_hold_the_buckets(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_total, "CHECKPOINT_EVERY", 4)
    people = created(url, period="year")
    for place in range(7):
        people.allocate(f"e{place}", dpc.Budget(epsilon=0.1), as_of=AS_OF, layer="page", buckets=[place % 3])
        people.close(f"e{place}") if place % 2 else spend(
            people.allocate(f"e{place}", dpc.Budget(epsilon=0.1), as_of=AS_OF, layer="page", buckets=[place % 3]), 0.05
        )
        if not place % 2:
            people.close(f"e{place}")
    kinds = Counter(entry.kind for entry in people.entries())
    assert kinds["checkpoint"] >= 3
    again = dpc.Population(url, "people")
    assert [str(each.total.epsilon) for each in again.buckets("page")] == ["1/10", "1/20", "1/20", "0"]
    again.verify()
    assert isinstance(again._current(), AllocatedTotal)


@pytest.mark.parametrize("ledger", ["people", "people/e"])
def test_an_edited_column_of_buckets_is_found(url: str, ledger: str) -> None:
    people = created(url)
    people.allocate("e", dpc.Budget(epsilon=1), as_of=AS_OF, layer="page", buckets=[1])
    engine = create_engine(url)
    with engine.begin() as connection:
        changed = connection.execute(
            text(
                f"UPDATE dpcausal_ledgers SET body = replace(body, '\"bucket\"', '\"other\"') WHERE ledger = '{ledger}'"
            )
        )
    engine.dispose()
    assert changed.rowcount
    with pytest.raises(LedgerError, match="chain is broken"):
        dpc.Population(url, "people").verify()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"layer": "other", "buckets": [0]}, "no layer 'other'; it has page, price"),
        ({"layer": "page"}, "buckets of the layer page from 0 to 3"),
        ({"buckets": [0]}, "no layer that they are of"),
        ({"layer": "page", "buckets": [4]}, "from 0 to 3"),
        ({"layer": "page", "buckets": [True]}, "from 0 to 3"),
        ({"layer": "page", "buckets": 3}, "from 0 to 3"),
    ],
)
def test_buckets_that_do_not_exist_are_refused(url: str, given: dict[str, Any], words: str) -> None:
    people = created(url)
    with pytest.raises(DpcausalError, match=words):
        people.allocate("e", dpc.Budget(epsilon=1), as_of=AS_OF, **given)
    assert people.allocated.epsilon == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": dpc.Layer("user", 4)},
        {"a": dpc.Layer("bucket", 4), "b": dpc.Layer("bucket", 3)},
        {"a/b": dpc.Layer("bucket", 4)},
        {"a": "bucket"},
    ],
)
def test_layers_that_are_none_are_refused(url: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(LedgerError):
        dpc.Population.create(url, "people", dpc.Budget(epsilon=1), unit="user", layers=wrong)
