"""The check that every engine must pass: it adds up the same integers as plain Python, on hostile tables."""

from tests.support.conformance.engines import check_engine

__all__ = ["check_engine"]
