"""One unit is in one block, whatever a learner does there; blocks made of what units say, or of others, are caught."""

import importlib
import itertools
import logging
import secrets
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

import dpcausal as dpc
from dpcausal.audit.tables import catalogue_of, exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, BlockEffects, Norm
from dpcausal.schema.schema import PROTECTS
from dpcausal.vault.answers.block_effects import sums
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.learners import LEARNERS, Learn, linear, run_silenced
from dpcausal.vault.table import open_table

MODULE = importlib.import_module("dpcausal.vault.answers.block_effects")  # its name is that of a function in it
ONE = dpc.Guarantee(epsilon=1)
NORMS: tuple[Norm, Norm] = ("l1", "l2")
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("a", 0, 1)],
)

Array = NDArray[np.float64]
Unit = dict[str, float]

KINDS: list[Unit] = [{"t": t, "y": y, "a": a} for t, y, a in itertools.product((0, 1), (0.0, 1.0), (0.0, 0.7, 1.0))]


def asking(profiles: int = 2, blocks: int = 2, limit: float = 1.0) -> BlockEffects:
    return BlockEffects("mine", ["a"], [[place / 10] for place in range(profiles)], blocks, limit)


def moved(query: BlockEffects, norm: Norm, one: dict[str, int], other: dict[str, int]) -> float:
    """The change between two answers as a share of the bound: more than 1 is a broken promise."""
    sensitivity = query.sensitivity(SCHEMA, "record", norm)
    changes = [float(Fraction(one[at.name] - other[at.name]) / (at.weight or 0)) for at in sensitivity.coordinates]
    length = np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes)
    return float(length) / float(sensitivity.bound)


def answer(query: BlockEffects, units: Sequence[Unit], learner: Learn) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise, from units that the real engine has read."""
    return dict(exact_answer(query, SCHEMA, catalogue_of(SCHEMA).assemble(units), ONE, learner).ticks)


def spiteful(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    """A learner that goes from one end to the other at each profile with any change of any unit."""
    seen = zlib.crc32(np.column_stack([covariates, arms, outcomes]).tobytes())
    return np.where((seen >> np.arange(len(at))) % 2 == 0, 100.0, -100.0)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[int]], None]:
    """Puts units into blocks in an order that the test chooses."""

    def choose(order: Sequence[int]) -> None:
        monkeypatch.setattr(Sampler, "shuffle", lambda *_: np.array(order, dtype=np.int64))

    return choose


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("profiles", [1, 2, 5])
def test_bound_holds_for_any_learner(profiles: int, norm: Norm) -> None:
    """All pairs of what one block may say, on a coarse grid with ends, the middle and ticks beside them."""
    query, rest = asking(profiles, 3), np.array([[0.3] * profiles, [-1.0] * profiles])
    step = 1 / GRID
    said = [-7.0, -1.0, -1 + step, -0.5, -step, 0.0, step / 2, 0.123456, 0.5, 0.7, 1 - step, 1.0, 7.0]
    most = 0.0
    for one, other in itertools.product(said, said):
        ends = (sums(query, np.vstack([rest, np.full((1, profiles), each)])) for each in (one, other))
        most = max(most, moved(query, norm, *ends))
    assert 0.9999 < most <= 1


@pytest.mark.parametrize("norm", NORMS)
def test_rounding_stays_inside_the_bound_for_every_effect_on_the_grid(norm: Norm) -> None:
    """All 2^21 + 1 effects of one block against adversarial ones."""
    every = np.arange(-GRID, GRID + 1)
    deficit = (GRID * GRID - every * every) // GRID
    sensitivity = asking(1).sensitivity(SCHEMA, "record", norm)
    total, lacking = (
        values / float(at.weight or 0) for values, at in zip((every, deficit), sensitivity.coordinates, strict=True)
    )
    for place in (0, 1, GRID // 2, GRID - 1, GRID, GRID + 1, GRID + 1023, 2 * GRID - 1, 2 * GRID):
        parts = np.abs(total - total[place]), np.abs(lacking - lacking[place])
        change = sum(parts) if norm == "l1" else np.hypot(*parts)
        assert np.max(change) <= float(sensitivity.bound)


def test_bound_holds_for_every_assignment_to_blocks(
    orders: Callable[[Sequence[int]], None],
) -> None:
    """All orders of four units in two blocks, and all kinds of unit in place of the first: the same order for both."""
    query, rest = asking(3, 2), [KINDS[1], KINDS[4], KINDS[11]]
    most = 0.0
    for order in itertools.permutations(range(4)):
        orders(order)
        answers = [answer(query, [unit, *rest], spiteful) for unit in KINDS]
        for norm, (one, other) in itertools.product(NORMS, itertools.combinations(answers, 2)):
            most = max(most, moved(query, norm, one, other))
    assert 0.99 < most <= 1


def test_distribution_of_the_answer_does_not_depend_on_the_order_of_the_table(
    orders: Callable[[Sequence[int]], None],
) -> None:
    """Over all orders, which are alike, answers come as often: so two tables can be compared block by block.

    That is the coupling of the proof: whatever order an engine gives rows in, there is for each order of one table one
    of the other that puts the same units into the same places.
    """
    query, units = asking(2, 2), [KINDS[0], KINDS[4], KINDS[7], KINDS[11]]
    laws = []
    for table in (units, units[::-1], [units[place] for place in (2, 0, 3, 1)]):
        law: Counter[tuple[int, ...]] = Counter()
        for order in itertools.permutations(range(4)):
            orders(order)
            law[tuple(answer(query, table, spiteful).values())] += 1
        laws.append(law)
    assert laws[0] == laws[1] == laws[2]
    assert len(laws[0]) > 1


def biased(size: int) -> NDArray[np.int64]:
    """The mutant: each place swapped with any place, as shuffles are often written; some orders come more often."""
    order = np.arange(size)
    for place in range(size):
        other = secrets.randbelow(size)
        order[place], order[other] = order[other], order[place]
    return order


@pytest.mark.statistical
@pytest.mark.parametrize(("draw", "fair"), [(Sampler().shuffle, True), (biased, False)])
def test_all_orders_are_equally_likely(draw: Callable[[int], NDArray[np.int64]], fair: bool) -> None:
    seen = Counter(tuple(draw(4).tolist()) for _ in range(12_000))
    assert len(seen) == 24
    chance = stats.chisquare([seen[order] for order in itertools.permutations(range(4))]).pvalue
    assert chance > 1e-10 if fair else chance < 1e-10


def test_blocks_are_drawn_anew_for_each_answer() -> None:
    table = pa.table({"t": [0, 1] * 50, "y": np.linspace(0, 1, 100), "a": np.linspace(0, 1, 100)})
    engine = open_table(table, SCHEMA)
    seen = []

    def remember(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        seen.append(frozenset(np.rint(covariates[:, 0] * 1e6).tolist()))
        return np.zeros(len(at))

    for _ in range(2):
        exact_answer(asking(2, 7), SCHEMA, engine, ONE, remember)
    assert sorted(map(len, seen)) == sorted([14, 14, 14, 14, 14, 15, 15] * 2)
    assert len(frozenset.union(*seen[:7])) == 100  # each unit in one block
    assert seen[:7] != seen[7:]


@pytest.mark.parametrize("norm", NORMS)
def test_blocks_by_the_order_of_a_covariate_are_caught(norm: Norm, orders: Callable[[Sequence[int]], None]) -> None:
    """The mutant: units sorted into blocks. One that moves to the other end moves a unit of every block along."""
    units = [{"t": 0.0, "y": 0.5, "a": place / 10} for place in range(10)]
    query = asking(2, 5)
    ends = []
    for first in (0.0, 1.0):
        table = [units[0] | {"a": first}, *units[1:]]
        orders(sorted(range(10), key=lambda place, table=table: (table[place]["a"], place)))  # type: ignore[misc]
        ends.append(answer(query, table, spiteful))
    assert moved(query, norm, *ends) > 1.4


@pytest.mark.parametrize("norm", NORMS)
def test_learner_with_a_memory_is_caught(norm: Norm, orders: Callable[[Sequence[int]], None]) -> None:
    """The mutant: a block must be learned from by itself. Here each starts where the last ended."""
    query, ends = asking(1, 5), []
    for y in (0.0, 1.0):
        memory = [0.0]

        def warm(covariates: Array, arms: Array, outcomes: Array, at: Array, memory: list[float] = memory) -> Array:
            memory[0] += outcomes.sum() - 1
            return np.full(len(at), 100.0 * memory[0])

        orders(range(10))
        ends.append(answer(query, [{"t": 0.0, "y": y if place == 0 else 0.5, "a": 0.5} for place in range(10)], warm))
    assert moved(query, norm, *ends) > 1.4


@pytest.mark.parametrize("norm", NORMS)
def test_learner_that_overwrites_profiles_does_not_reach_other_blocks(
    norm: Norm, orders: Callable[[Sequence[int]], None]
) -> None:
    """For instance one that centres profiles as it centres covariates, in place."""

    def centred(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        at -= covariates.mean(axis=0)
        return at[:, 0] * 100

    query, ends = BlockEffects("mine", ["a"], [[0.5]], 5, 1.0), []
    for first in (0.0, 1.0):
        orders(range(10))
        ends.append(
            answer(query, [{"t": 0.0, "y": 0.5, "a": first if place == 0 else 0.5} for place in range(10)], centred)
        )
    assert moved(query, norm, *ends) <= 1


def test_bound_without_the_number_of_profiles_is_caught() -> None:
    """The mutant: as if one unit moved all profiles' effects by what it moves one by."""
    one, other = (sums(asking(9, 1 + 1), np.full((2, 9), each)) for each in (-1.0, 1.0))
    half = {name: (value + one[name]) // 2 for name, value in other.items()}  # one block of the two has moved
    for norm, root in (("l1", 9.0), ("l2", 3.0)):
        claimed, honest = (asking(count).sensitivity(SCHEMA, "record", norm).bound for count in (1, 9))  # type: ignore[arg-type]
        assert float(honest / claimed) == pytest.approx(root, rel=1e-6)
        assert moved(asking(9), norm, one, half) * float(honest) > 0.999 * root * float(claimed)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", NORMS)
def test_effects_without_a_limit_are_caught(norm: Norm, monkeypatch: pytest.MonkeyPatch) -> None:
    query = asking(2, 2)
    monkeypatch.setattr(np, "clip", lambda values, *_: values)
    one, other = (sums(query, np.array([[0.0, 0.0], [each, each]])) for each in (-1.5, 1.5))
    assert moved(query, norm, one, other) > 1.4


def raises(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    raise ValueError(f"unit {outcomes[0]}")


def talks(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    print(f"unit {outcomes[0]}")  # noqa: T201
    print(f"unit {outcomes[0]}", file=sys.stderr)  # noqa: T201
    warnings.warn(f"unit {outcomes[0]}", stacklevel=1)
    logging.getLogger("learner").warning("unit %s", outcomes[0])
    return np.log(np.zeros(len(at))) / 0  # and warnings of numpy's own


def overreaches(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
    return outcomes[len(outcomes) :][:1].reshape(len(at))


def saying(said: Callable[[int], Any]) -> Learn:
    """A learner that says this, of so many profiles."""

    def learner(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        return said(len(at))  # type: ignore[no-any-return]

    return learner


FAILING: dict[str, Learn] = {
    "raises": raises,
    "talks": talks,
    "overreaches": overreaches,
    "not a number": saying(lambda count: np.full(count, np.nan)),
    "infinite": saying(lambda count: np.full(count, np.inf)),
    "too many": saying(lambda count: np.zeros(count + 1)),
    "text": saying(lambda count: ["no number"] * count),
    "nothing": saying(lambda _: None),
    "singular": saying(lambda count: np.linalg.inv(np.zeros((count, count)))[0]),
}


@pytest.mark.parametrize("name", FAILING)
def test_failing_learner_is_silent_and_counts_as_no_effect(
    name: str, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    found = answer(asking(2, 3), KINDS, FAILING[name])
    assert set(found.values()) == {0, 3 * GRID}
    assert found["profile 1"] == 0
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_effect_that_overflows_raises_no_warning() -> None:
    """filterwarnings = error: the warning that numpy gives would tell that some block's effect was that large."""
    narrow = dpc.Schema(
        treatment=SCHEMA.treatment, outcome=dpc.Real("y", 0, 0.1, missing=0.05), covariates=SCHEMA.covariates
    )
    engine = catalogue_of(narrow).assemble(KINDS)
    exact_answer(asking(1, 2), narrow, engine, ONE, saying(lambda count: np.full(count, 1e308)))


@pytest.mark.parametrize("learner", [linear, spiteful])
def test_empty_blocks_count(learner: Learn) -> None:
    """More blocks than units, or a block of one arm: nothing about that is an error."""
    found = answer(asking(2, 30), KINDS, learner)
    assert list(found) == [at.name for at in asking(2, 30).sensitivity(SCHEMA, "record", "l1").coordinates]


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_built_in_learners_depend_on_their_block_only(name: str) -> None:
    """The same block gives the same effects, whatever was learned from before."""
    generator = np.random.default_rng(0)
    blocks = []
    for _ in range(2):
        covariates, arms = generator.uniform(-1, 1, (60, 2)), generator.integers(0, 2, 60).astype(float)
        blocks.append((covariates, arms, covariates[:, 0] * arms + generator.normal(0, 0.1, 60)))
    at = np.array([[-0.5, 0.0], [0.5, 0.0]])
    with threadpool_limits(1):  # where cores are shared, boosting waits for them all the time
        first, _, again = (run_silenced(partial(LEARNERS[name], *blocks[place], at.copy()), 2) for place in (0, 1, 0))
    assert (first == again).all()
    assert first[1] == first[0] if name.endswith("_average") else first[1] > first[0]


def test_learners_get_the_documented_arrays(orders: Callable[[Sequence[int]], None]) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 10, missing=5),
        covariates=[dpc.Real("a", 0, 4), dpc.Category("k", ["p", "q", "r"])],
    )
    units = [{"t": place % 2, "y": 10 * place / 4, "a": float(place), "k": "pqr"[place % 3]} for place in range(4)]
    query = BlockEffects("mine", ["k", "a"], [["q", 1.0], ["r", 9.0]], 2, 0.5)
    seen = []

    def remember(covariates: Array, arms: Array, outcomes: Array, at: Array) -> Array:
        seen.append((covariates.tolist(), arms.tolist(), outcomes.tolist(), at.tolist()))
        return np.array([1.25, -9.0])

    orders(range(4))
    found = exact_answer(query, schema, catalogue_of(schema).assemble(units), ONE, remember).ticks
    assert seen[0] == ([[-1, -1, -1], [1, -1, -0.5]], [0, 1], [0.0, 2.5], [[1, -1, -0.5], [-1, 1, 1]])
    assert seen[1] == ([[-1, 1, 0], [-1, -1, 0.5]], [0, 1], [5.0, 7.5], [[1, -1, -0.5], [-1, 1, 1]])
    ticks = {at.name: at.tick for at in query.sensitivity(schema, "record", "l1").coordinates}
    values = {name: value * ticks[name] for name, value in found.items()}
    assert values == pytest.approx(
        {
            "profile 1": 2.5,
            "profile 2": -5.0,
            "deficit of profile 1": 2 * (6.25 - 1.25**2),
            "deficit of profile 2": 0.0,
        },
        rel=1e-5,
    )


def test_bound_does_not_depend_on_protection_or_number_of_blocks() -> None:
    for norm in NORMS:
        bounds = {
            asking(4, blocks).sensitivity(SCHEMA, protects, norm).bound
            for protects, blocks in itertools.product(PROTECTS, (2, 1_000))
        }
        assert len(bounds) == 1


def test_door_accepts_only_learners_of_the_owner() -> None:
    table = pa.table({"t": [0, 1] * 50, "y": np.linspace(0, 1, 100), "a": np.linspace(0, 1, 100)})
    opened = {"ledger": "sqlite://", "budget": dpc.Budget(epsilon=3)}
    vault = dpc.Vault(table, SCHEMA, learners={"mine": dpc.Learner(spiteful, "1")}, **opened)  # type: ignore[arg-type]
    release = vault.release(asking(2, 5), ONE)
    assert vault.release(asking(2, 5), ONE) == release
    assert vault.ledger.spent.epsilon == 1.0
    other = dpc.Vault(table, SCHEMA, **opened)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="a learner out of"):
        other.release(asking(2, 5), ONE)
    assert other.ledger.spent.epsilon == 0
