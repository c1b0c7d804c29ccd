"""A line of progress on standard error, so that standard output stays a result."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Yield the items, with a line about how many have gone by and how long the rest may take."""
    start = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if done % max(total // 100, 1) == 0 or done == total:
            left = (time.monotonic() - start) / done * (total - done)
            sys.stderr.write(f"\r{what}: {done:,} of {total:,}, about {left:,.0f} s left   ")
            sys.stderr.flush()
    sys.stderr.write("\n")
