"""Cases of a test that the gate leaves out, and that `make slow` runs."""

from collections.abc import Iterable
from typing import Any

import pytest

SLOW = pytest.mark.slow


def sampled(cases: Iterable[Any], every: int, first: int = 0) -> list[Any]:
    """Mark all cases as slow but every n-th one from the first.

    Args:
        cases: Values for `pytest.mark.parametrize`.
        every: One case of how many stays in the gate.
        first: The place of the first that stays.
    """
    return [case if place % every == first else marked(case) for place, case in enumerate(cases)]


def marked(case: Any) -> Any:
    """Mark one case as slow; a tuple holds the values of several parameters."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=SLOW)
