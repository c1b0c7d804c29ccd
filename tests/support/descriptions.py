"""Descriptions of queries and their bounds, which are made once in a process."""

from dpcausal.queries import summing


def forget_descriptions() -> None:
    """Let descriptions and bounds be made again, as a test that changes how they are made needs."""
    summing.described.cache_clear()
    summing._sensitivity.cache_clear()
