"""Computed bounds are those that are proved by hand, or it is known why they are narrower."""

import itertools
from typing import get_args

import pytest

from dpcausal.queries import QUERIES, Norm
from dpcausal.schema import Protects
from tests.sums.hand_bounds import NORMS, SCHEMAS, described, rows
from tests.support.slow import sampled

NAMES = [name for name in QUERIES if described(name)]
CASES = list(itertools.product(NAMES, SCHEMAS, get_args(Protects), NORMS))


@pytest.mark.parametrize(("name", "schema", "protects", "norm"), sampled(CASES, every=41))
def test_computed_bounds_agree_with_those_by_hand(name: str, schema: str, protects: Protects, norm: Norm) -> None:
    far = [row for row in rows(name, schema, protects, norm) if not row.explained]
    assert not far
