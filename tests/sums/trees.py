"""Random trees, for tests that must hold for any."""

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from dpcausal.errors import QueryError
from dpcausal.sums.numbers import (
    GRID,
    Between,
    Bin,
    Clip,
    Code,
    Constant,
    Lookup,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
    deficit,
    level,
    sign,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LEAVES: tuple[Number, ...] = (
    Ticks("outcome"),
    Ticks("covariate_0"),
    Code("treatment", 2),
    Code("covariate_1", 2),
    Code("covariate_2", 5),
)
_CONSTANTS = st.one_of(
    st.integers(-9, 9), st.sampled_from([GRID, -GRID, GRID // 2, 2**31 - 1, 2**31, -(2**31), 2**40 + 1, -(2**45)])
)


@st.composite
def _grown(draw: st.DrawFn, below: st.SearchStrategy[Number]) -> Number:
    """Return a number made of others, or one of these where the number would be too large."""
    one, other = draw(below), draw(below)
    least, most = sorted((draw(_CONSTANTS), draw(_CONSTANTS)))
    ways: tuple[Callable[[], Number], ...] = (
        lambda: one + other,
        lambda: one - other + least,
        lambda: one * other,
        lambda: least * one,
        lambda: Shift(one, draw(st.integers(1, 40))),
        lambda: Clip(one, least, most),
        lambda: Where(Between(one, least, most), other),
        lambda: Lookup(Clip(one, 0, 3), tuple(draw(st.lists(_CONSTANTS, min_size=4, max_size=4)))),
        lambda: Bin(one, tuple(sorted(draw(st.lists(_CONSTANTS, min_size=1, max_size=4))))),
        lambda: deficit(Clip(one, -GRID, GRID)),
        lambda: sign(LEAVES[2]) * one,
        lambda: level(LEAVES[4], 3) + one,
        lambda: Sum((one, one)),
        lambda: Product(one, one),
    )
    try:
        return draw(st.sampled_from(ways))()
    except QueryError:
        return one


numbers: st.SearchStrategy[Number] = st.recursive(
    st.one_of(st.sampled_from(LEAVES), _CONSTANTS.map(Constant)), _grown, max_leaves=12
)
