"""What a tree may be made of, and how much work its bound may be, whoever wrote it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dpcausal.errors import QueryError

LARGEST = 2**62
"""The largest size of a number, and of any step on the way to it."""

MOST_NODES, DEEPEST, MOST_CODES = 10_000, 64, 2**18
"""How many nodes a tree may have, how deep it may be, and how many values a code or a table."""

MOST_WORK = 100_000_000
"""How many steps a bound may take, each about a tenth of a microsecond. They are counted, not timed, so that all sites
refuse the same."""

_LEFT: ContextVar[list[int] | None] = ContextVar("_LEFT", default=None)


class TooMuchWorkError(QueryError):
    """A bound needs more steps than it may take."""


_COLUMN = re.compile(r"treatment|arm|outcome|covariate_(0|[1-9][0-9]{0,4})")


def check_column(name: object, families: tuple[str, ...]) -> None:
    """Raise unless a name is that of a coerced column of some families."""
    if not (isinstance(name, str) and _COLUMN.fullmatch(name) and name.partition("_")[0] in families):
        raise QueryError(
            expected=f"a coerced column: {', '.join(families).replace('covariate', 'covariate_0 and so on')}",
            got=repr(name)[:80],
            hint="columns are named by what they are in the schema, not as in the table.",
        )


def check_whole(what: str, value: object, least: int, most: int) -> None:
    """Raise unless a value is a whole number between two others."""
    if type(value) is not int or not least <= value <= most:
        raise QueryError(
            expected=f"{what} from {least} to {most}",
            got=repr(value)[:80] if not isinstance(value, int) or abs(value) <= LARGEST else "a larger number",
            hint="give a whole number in this range.",
        )


def check_order(least: object, most: object) -> None:
    """Raise unless two values are whole numbers in order."""
    check_whole("a lower end", least, -LARGEST, LARGEST)
    check_whole("an upper end", most, least if isinstance(least, int) else -LARGEST, LARGEST)


def check_table(what: str, values: tuple[object, ...]) -> None:
    """Raise unless all values are whole numbers."""
    if set(map(type, values)) <= {int} and min(values, default=0) >= -LARGEST and max(values, default=0) <= LARGEST:  # type: ignore[operator, type-var]
        return
    for value in values:
        check_whole(what, value, -LARGEST, LARGEST)


@contextmanager
def limited_work() -> Iterator[None]:
    """Limit the steps that may be spent within the context."""
    before = _LEFT.set([MOST_WORK])
    try:
        yield
    finally:
        _LEFT.reset(before)


def spend(steps: int) -> None:
    """Raise if so many more steps are too many: called before they are made."""
    left = _LEFT.get()
    if left is None:
        return
    left[0] -= steps
    if left[0] < 0:
        left[0] = -1
        raise TooMuchWorkError(
            expected=f"sums whose bound is computed in at most {MOST_WORK:,} steps",
            got="sums that need more",
            hint="ask for fewer sums, fewer conditions on one column or fewer products, or in several queries.",
        )
