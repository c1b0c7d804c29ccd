"""Deficits as SQL."""

from dpcausal.queries import GRID
from dpcausal.vault.engines import Ticks
from dpcausal.vault.parsing import literal


def deficit_of(line: str) -> Ticks:
    """Return one row's h² - z², in ticks of h² / GRID, rounded down, where z is in ticks of h / GRID."""
    square = f"CAST({line} AS DOUBLE) * CAST({line} AS DOUBLE)"
    return Ticks(
        f"(({GRID**2} - (CAST({line} AS BIGINT) * {line})) >> {GRID.bit_length() - 1})",
        f"FLOOR(({literal(GRID**2)} - {square}) * {literal(1 / GRID)})",
    )


DEFICIT = deficit_of("outcome")
