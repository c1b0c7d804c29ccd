"""Checks of the project's own, run by `make check`."""
