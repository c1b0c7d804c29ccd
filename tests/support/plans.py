"""Plans without the parts that take longest, for tests that are about others."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from dpcausal.planning import plan as planning


@contextmanager
def quick_plans(*, curves: bool = True) -> Iterator[None]:
    """Make plans without rehearsals with noise, and without trying out how many confounders could be adjusted for.

    Args:
        curves: Whether plans hold curves of the width against epsilon.
    """
    left_out: dict[str, Any] = {"count_refusals": lambda *_: 0, "max_confounders": lambda *_: 1}
    if not curves:
        left_out["width_curve"] = lambda *_: []
    with mock.patch.multiple(planning, **left_out):
        yield
