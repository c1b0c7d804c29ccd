"""Plans without the parts that take longest, for tests that are about others."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from dpcausal.planning import plan as planning


@contextmanager
def quick_plans() -> Iterator[None]:
    """Make plans without rehearsals with noise, and without trying out how many confounders could be adjusted for."""
    with mock.patch.multiple(planning, count_refusals=lambda *_: 0, max_confounders=lambda *_: 1):
        yield
