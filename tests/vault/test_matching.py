"""The fast matcher does what a plain one does, also where scores tie and where capacity runs out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcausal.vault.numerics import matching
from dpcausal.vault.numerics.matching import SWEEPS, matched, serve

Int64s = NDArray[np.int64]


def plainly(scores: Int64s, arms: Int64s, neighbours: int, caps: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Matching as one would explain it: sort everyone in the other arm who may still serve, and take the first."""
    order = sorted(range(len(scores)), key=lambda unit: (scores[unit], arms[unit], unit))
    has, serves = [0] * len(scores), [0] * len(scores)
    for arm in (0, 1):
        seekers = [unit for unit in order if arms[unit] == arm]
        servers = [unit for unit in order if arms[unit] != arm]
        place = {unit: at for at, unit in enumerate(servers)}
        for sweep in range(SWEEPS):
            for seeker in seekers[sweep::SWEEPS]:
                free = [unit for unit in servers if serves[unit] < caps[1 - arm]]
                below = [unit for unit in free if scores[unit] < scores[seeker]]
                # Nearest first; of equals the lower score; within a score the one nearest to the seeker's place.
                near = sorted(
                    free,
                    key=lambda unit: (
                        abs(int(scores[unit]) - int(scores[seeker])),
                        unit not in below,
                        -place[unit] if unit in below else place[unit],
                    ),
                )[:neighbours]
                has[seeker] = len(near)
                for unit in near:
                    serves[unit] += 1
    return has, serves


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), max_size=40),
    st.integers(1, 4),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_the_matcher_is_the_plain_one(units: list[tuple[int, int]], neighbours: int, caps: tuple[int, int]) -> None:
    scores, arms = (np.array([unit[part] for unit in units], dtype=np.int64) for part in (0, 1))
    has, serves = matched(scores, arms, neighbours, caps)
    assert (has.tolist(), serves.tolist()) == plainly(scores, arms, neighbours, caps)


def test_a_larger_table_with_exhaustion() -> None:
    generator = np.random.default_rng(0)
    scores, arms = generator.integers(0, 300, 400), (generator.random(400) < 0.2).astype(np.int64)
    has, serves = matched(scores, arms, 3, (2, 5))
    assert (has.tolist(), serves.tolist()) == plainly(scores, arms, 3, (2, 5))
    assert has.min() == 0  # some found nobody
    assert serves[arms == 1].max() == 5


def test_without_numba_the_same_loop_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    scores, arms = generator.integers(0, 1000, 500), generator.integers(0, 2, 500)
    compiled = matched(scores, arms, 5, (7, 7))
    monkeypatch.setattr(matching, "_loop", lambda: serve)
    plain = matched(scores, arms, 5, (7, 7))
    assert all((one == other).all() for one, other in zip(compiled, plain, strict=True))


@given(st.integers(0, 1000))
def test_order_does_not_matter_to_groups_that_share_score_and_arm(seed: int) -> None:
    generator = np.random.default_rng(seed)
    scores, arms = generator.integers(0, 6, 50), generator.integers(0, 2, 50)
    shuffled = generator.permutation(50)
    one = matched(scores, arms, 2, (3, 4))
    other = matched(scores[shuffled], arms[shuffled], 2, (3, 4))
    groups = scores * 2 + arms
    for count, again in zip(one, other, strict=True):
        assert (np.bincount(groups, count) == np.bincount(groups[shuffled], again)).all()
