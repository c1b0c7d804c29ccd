"""What a tree may be made of, whoever wrote it."""

import re

from dpcausal.errors import QueryError

LARGEST = 2**62
"""The largest size of a number, and of any step on the way to it."""

MOST_NODES, DEEPEST, MOST_CODES = 10_000, 64, 2**18
"""How many nodes a tree may have, how deep it may be, and how many values a code or a table."""

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
