"""Whatever noise makes of released numbers, an estimator gives a sound result or one of the package's errors.

A variance may come out negative, a mean beyond all bounds, a count far below 0. NumPy's warnings are errors in tests,
so that none can reach a user: it would depend on the noise, and on the table.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered
from dpcausal.audit.targets import TARGETS, Target
from dpcausal.errors import DpcausalError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query
from dpcausal.release import Release
from dpcausal.source import Source, WrappedSource
from dpcausal.testing import synthetic_table
from tests.statistics.samplers import Undrawn
from tests.support.engines import CachedEngine
from tests.support.slow import marked

ABSURD = ((3.0, 1.0), (3.0, 1e-3), (50.0, 1e-8), (1e3, 1.0))
"""How many standard deviations every released number is moved by, and epsilon."""

LARGEST_TILT = 10.0
"""The same, at most, for the noise in a loss. It is no released number: the vault minimises the loss."""


class Absurd(Undrawn):
    """A sampler that moves every number up, down or not at all, all by as many standard deviations."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self._signs, self._size = np.random.default_rng(0), size

    def _moves(self, sds: Sequence[float], family: str) -> Sequence[float]:
        self.sds += sds
        size = min(self._size, LARGEST_TILT) if family in ("cube", "ball") else self._size
        moves: list[float] = (self._signs.choice([-1.0, 0.0, 1.0], len(sds)) * size * np.array(sds)).tolist()
        return moves


def asks(target: Target) -> bool:
    """Return whether it is an estimator, and no query by itself."""
    return isinstance(target.ask, partial) and hasattr(target.ask.func, "__self__")


class Overwritten(WrappedSource):
    """A source whose releases hold numbers that no table has, whatever was asked."""

    def __init__(self, source: Source, numbers: Callable[[int], Sequence[float]]) -> None:
        super().__init__(source)
        self._numbers = numbers

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the other source's answer with other numbers."""
        honest = super().release(query, guarantee)
        return replace(honest, values=tuple(map(float, self._numbers(len(honest.values)))))


OVERWRITTEN: dict[str, Callable[[int], Sequence[float]]] = {
    "zeros": lambda count: [0.0] * count,
    "ones": lambda count: [1.0] * count,
    "large": lambda count: [1e4] * count,
    "negative": lambda count: [-1e4] * count,
    "alternating": lambda count: [1e3 * (-1) ** place for place in range(count)],
    "wild": lambda count: np.random.default_rng(count).standard_cauchy(count) * 1e3,
    "small": lambda count: np.random.default_rng(count).normal(0, 1e-9, count),
}
ASKED = [each for each in TARGETS if asks(each)]
FIRSTS = {each.estimator: each for each in reversed(ASKED)}
"""The first variant of each estimator, which is in the gate."""


@pytest.mark.parametrize(
    "target", [each if each in FIRSTS.values() else marked(each) for each in ASKED], ids=[each.name for each in ASKED]
)
def test_no_release_is_too_absurd_for_an_estimator(target: Target) -> None:
    ask = target.ask
    assert isinstance(ask, partial)
    engine = CachedEngine.of(synthetic_table(target.schema, 200), target.schema)
    moved: list[tuple[Source, float]] = [
        (Unmetered(engine, target.schema, Absurd(size)), epsilon) for size, epsilon in ABSURD
    ]
    honest = Unmetered(engine, target.schema, Absurd(0.0))
    overwritten = [(Overwritten(honest, numbers), 1.0) for numbers in OVERWRITTEN.values()]
    shown = 0
    for source, epsilon in (*moved, *overwritten):
        try:
            result = ask(source, epsilon=epsilon)
        except DpcausalError:
            continue
        shown += len(str(result)) > 0
        check_sound(result)
    assert shown


def check_sound(result: object) -> None:
    """Fail where an effect is no number, or its interval does not contain it; an effect without one says why."""
    if not isinstance(result, dpc.Effect):
        return
    assert math.isfinite(result.estimate)
    assert "nan" not in str(result).lower().split()
    if not result.no_interval:
        low, high = result.interval()
        assert low <= result.estimate <= high
        assert low < high
