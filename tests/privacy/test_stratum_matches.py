"""Exact matching moves no further than its bounds say, the smooth bound is smooth, and the printed ones are not."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, Cut, StratumMatches
from dpcausal.queries.calibration import Noise
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.release import Noisy
from dpcausal.vault.answers.stratum_contrasts import Arm, contrast
from dpcausal.vault.answers.stratum_matches import moves, smooth_bound
from dpcausal.vault.context import Answer
from dpcausal.vault.noise import Sampler
from dpcausal.vault.table import open_table

Counts = tuple[tuple[int, int], ...]
"""Treated and control units of each stratum."""

Kind = tuple[int, int, int]
"""Stratum, arm, outcome in ticks."""


def matched_sum(units: tuple[Kind, ...], strata: int) -> int:
    """The sum that the answer is about, by the answer's own arithmetic."""
    total = 0
    for stratum in range(strata):
        arms: list[Arm] = []
        for arm in (0, 1):
            outcomes = [unit[2] for unit in units if unit[:2] == (stratum, arm)]
            arms.append((len(outcomes), sum(outcomes), sum(outcome**2 for outcome in outcomes)))
        total += contrast(arms[0], arms[1], len(units))[0]
    return total


def counts(units: tuple[Kind, ...], strata: int) -> Counts:
    return tuple((sum(u[:2] == (x, 1) for u in units), sum(u[:2] == (x, 0) for u in units)) for x in range(strata))


def here(sizes: Counts, n: int) -> float:
    """The bound on moves at distance 0."""
    t, c = np.array(sizes).T[:, :, None]
    return float(moves(t, c, np.array([0]), n)[0])


def neighbours(strata: int, n: int) -> Iterator[tuple[tuple[Kind, ...], tuple[Kind, ...]]]:
    """All pairs of tables with extreme outcomes that differ in one unit."""
    kinds = list(itertools.product(range(strata), (0, 1), (-GRID, GRID)))
    for rest in itertools.combinations_with_replacement(kinds, n - 1):
        for one, other in itertools.combinations(kinds, 2):
            yield (*rest, one), (*rest, other)


@pytest.mark.parametrize(("strata", "n"), [(1, n) for n in range(2, 8)] + [(2, n) for n in range(2, 7)])
def test_bound_holds_for_all_small_tables(strata: int, n: int) -> None:
    tightest, most = 0.0, 0

    @cache
    def known(units: tuple[Kind, ...]) -> tuple[int, float]:
        """The sum and the bound of a table, whatever the order of its units."""
        return matched_sum(units, strata), here(counts(units, strata), n)

    for pair in neighbours(strata, n):
        (one, first), (other, second) = (known(tuple(sorted(table))) for table in pair)
        change = abs(one - other)
        for bound in (first, second):
            assert change <= bound
            tightest = max(tightest, change / bound)
        most = max(most, change)
    assert n < 5 or (tightest > 0.99 if strata == 2 else tightest > 0.6)
    assert most <= 2 * GRID * (n + 1)  # what the global bound is made of
    assert most >= 0.99 * 2 * GRID * n


def near(sizes: Counts) -> Iterator[Counts]:
    """The counts of every table that differs in one unit."""
    cells = [(x, arm) for x in range(len(sizes)) for arm in (0, 1)]
    for out, into in itertools.permutations(cells, 2):
        changed = [list(stratum) for stratum in sizes]
        changed[out[0]][out[1]] -= 1
        changed[into[0]][into[1]] += 1
        if min(map(min, changed)) >= 0:
            yield tuple((t, c) for t, c in changed)


Bound = Callable[[NDArray[np.int64], int, float], float]


def roughest(bound: Bound, sizes: Counts, beta: float) -> float:
    """The largest change in the bound's logarithm between neighbours, in units of beta."""
    n = sum(map(sum, sizes))
    at = math.log(bound(np.array(sizes), n, beta))
    return max(abs(math.log(bound(np.array(other), n, beta)) - at) / beta for other in near(sizes))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=4),
    st.sampled_from([0.003, 0.041, 0.1, 0.5, 2.0]),
)
def test_bound_is_smooth_between_all_neighbours(sizes: list[tuple[int, int]], beta: float) -> None:
    if sum(map(sum, sizes)) >= 2:
        assert roughest(smooth_bound, tuple(sizes), beta) <= 1 + 1e-9


def printed(sizes: NDArray[np.int64], n: int, beta: float) -> float:
    """The multi-site paper's equation (1), over all strata."""

    def ratio(t: int, c: int, k: int) -> int:
        few, many = min(t, c), max(t, c)
        return many + k if k >= few else math.ceil((many + k + 1) / (few - k))

    most = (max(ratio(t, c, k) for t, c in sizes.tolist()) for k in range(n + 1))
    return max(math.exp(-beta * k) * 4 * (1 + each) / n for k, each in enumerate(most))


def printed_where_present(sizes: NDArray[np.int64], n: int, beta: float) -> float:
    """The same, over the strata that hold a unit: not what the paper's appendix says of the others, R = k."""
    return printed(sizes[sizes.sum(axis=1) > 0], n, beta)


def corrected(sizes: NDArray[np.int64], n: int, beta: float) -> float:
    """The same with the ratio that can be reached at distance k."""
    most: list[int] = [
        max(math.ceil((max(t, c) + k + 1) / max(1, min(t, c) - k)) for t, c in sizes.tolist()) for k in range(n + 1)
    ]
    return max(math.exp(-beta * k) * 4 * (1 + each) / n for k, each in enumerate(most))


def test_printed_smooth_sensitivity_is_off_by_one() -> None:
    for sizes, beta, roughness in ((((1, 5), (0, 0)), 0.1, 1.4), (((3, 14), (2, 2)), 0.041, 1.3)):
        assert roughest(printed, sizes, beta) > roughness
        assert roughest(corrected, sizes, beta) <= 1 + 1e-9
        assert roughest(smooth_bound, sizes, beta) <= 1 + 1e-9
    assert roughest(printed, ((500, 500), (0, 0)), smoothness(1 / 3, 1e-5)) <= 1 + 1e-9  # a stratum that opens


def test_leaving_out_absent_strata_is_caught() -> None:
    beta = smoothness(1 / 3, 1e-5)
    assert roughest(printed_where_present, ((500, 500), (0, 0)), beta) > 100
    assert roughest(smooth_bound, ((500, 500), (0, 0)), beta) <= 1 + 1e-9


def test_bound_is_tighter_than_the_corrected_one() -> None:
    sizes = np.array([(50, 50)] * 20)
    beta = smoothness(1.0, 1e-5)
    ours = smooth_bound(sizes, 2000, beta) / (2 * GRID) / 2000
    assert ours < 0.6 * corrected(sizes, 2000, beta)


def worst_delta(epsilon: float, beta: float, scale: float = 200.0) -> float:
    """The delta at epsilon between the releases of two neighbours whose noise differs as much as beta allows."""
    values = np.arange(-60 * int(scale), 60 * int(scale))
    worst = 0.0
    for ratio in (math.exp(beta), 1.0, math.exp(-beta)):
        one, other = scale, scale * ratio
        shift = math.floor(min(one, other) * epsilon / 2)  # the smaller of the two sensitivities
        law, near_law = (
            math.tanh(1 / 2 / size) * np.exp(-np.abs(values - at) / size) for size, at in ((one, 0), (other, shift))
        )
        worst = max(worst, float(np.maximum(law - math.exp(epsilon) * near_law, 0).sum()))
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (1.0, 0.01), (3.0, 1e-5), (10.0, 1e-3)])
def test_laplace_noise_by_a_smooth_bound_keeps_delta(epsilon: float, delta: float) -> None:
    assert worst_delta(epsilon, smoothness(epsilon, delta)) <= delta
    assert worst_delta(epsilon, 5 * smoothness(epsilon, delta)) > delta  # a bound five times rougher does not


SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=[dpc.Binary("x")]
)
QUERY = StratumMatches([Cut("x")], "smooth")
GUARANTEE = dpc.Guarantee(epsilon=1.0, delta=1e-5)


def asked(units: tuple[Kind, ...], guarantee: dpc.Guarantee = GUARANTEE) -> Answer:
    """What a table says, by way of the engine."""
    x, t, y = (list(part) for part in zip(*units, strict=True))
    table = pa.table({"x": x, "t": t, "y": [(outcome + GRID) / (2 * GRID) for outcome in y]})
    return exact_answer(QUERY, SCHEMA, open_table(table, SCHEMA), guarantee)


def by_hand(sizes: Counts, n: int, beta: float) -> float:
    """The smooth bound, distance by distance and stratum by stratum."""
    best = 0.0
    for k in range(n + 1):
        leaving = joining = 0.0
        for a, b in ((a, b) for t, c in sizes for a, b in ((t, c), (c, t))):
            leaving = max(leaving, min(a + k, n) / max(b - k, 1))
            joining = max(joining, min(a + k, n) / (max(b - k, 0) + 1))
        best = max(best, math.exp(-beta * k) * (2 * GRID * min(2 + leaving + joining, n + 1) + 2))
    return best


TABLES: list[tuple[Kind, ...]] = [
    ((0, 1, GRID), (0, 0, -GRID)),
    tuple((place % 2, int(place % 3 == 0), GRID) for place in range(30)),
    tuple((0, int(place < 3), -GRID) for place in range(40)),
]


@pytest.mark.parametrize("units", TABLES, ids=len)
def test_noise_scale_is_twice_the_smooth_bound(units: tuple[Kind, ...]) -> None:
    """Else the bound could be right and the noise half of it."""
    share, n = 0.7, len(units)
    needed = 2 * by_hand(counts(units, 2), n, smoothness(share, GUARANTEE.delta)) / share
    assert needed <= asked(units).scales["effect"] <= 1.1 * needed


def test_door_draws_noise_of_the_private_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale that the table decides reaches the sampler, and does not leave."""
    seen: list[float | None] = []
    add_noise = Sampler.add_noise

    def watched(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        seen.append(noise.scales[0])
        return add_noise(sampler, ticks, noise)

    monkeypatch.setattr(Sampler, "add_noise", watched)
    x, t, _ = zip(*TABLES[1], strict=True)
    table = pa.table({"x": list(x), "t": list(t), "y": [1.0] * 30})
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=9, delta=0.1))
    release = vault.release(QUERY, GUARANTEE)
    assert seen == [asked(TABLES[1]).scales["effect"]]
    assert release.scales[0] is None
    assert all(str(seen[0]) not in entry.body for entry in vault.ledger.entries())


@pytest.mark.parametrize("units", TABLES, ids=len)
def test_logarithm_of_the_bound_keeps_its_own_bound(units: tuple[Kind, ...]) -> None:
    at = asked(units).ticks["log_sensitivity"]
    kinds = list(itertools.product((0, 1), (0, 1), (GRID,)))
    changes = [abs(asked((kind, *units[1:])).ticks["log_sensitivity"] - at) for kind in kinds]
    assert max(changes) <= QUERY.log_ticks + 2
