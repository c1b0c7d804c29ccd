"""What the paper varies: data sets, epsilons, neighbours, limits, coefficients and the division of epsilon."""

from typing import Literal

Level = Literal["label", "sample"]
"""The paper's words; this library's are outcome and record."""

PROTECTS: dict[Level, Literal["outcome", "record"]] = {"label": "outcome", "sample": "record"}

DATA = ("IHDP", "Lalonde", "ACIC", "Synth")
EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
NEIGHBOURS = (1, 3, 5, 7)
USUAL = 5
"""The neighbours of the paper's main text."""
LIMITS = (1, 10, 50)
COEFFICIENTS = (0.0001, 0.001, 0.003, 0.01, 0.1, 1.0)
PAPER_COEFFICIENT: dict[Level, float] = {"label": 0.01, "sample": 0.001}
"""The paper's c and h."""
OWN_COEFFICIENT: dict[Level, float] = {"label": 0.003, "sample": 0.001}
"""This library's defaults."""
SPLIT = (0.1, 0.7, 0.2)
SPLIT_EPSILONS = (1.5, 3.0)
SPLITS = tuple((score, arm, 10 - score - arm) for score in range(1, 9) for arm in range(1, 10 - score))
"""Tenths of epsilon for scores, arms and outcomes."""
DELTA = 1e-5
"""For those who need one; the paper does not state its own."""
FEWEST = 10
"""Repeats of a cell, as in the paper; where repeats cost nothing there are `MANY`."""
MANY = 200

Setting = tuple[int | None, float]
"""A limit, or None for an adaptive one with this coefficient."""


def settings() -> dict[str, Setting]:
    """Return every way to limit matches, by its name in the result."""
    fixed: dict[str, Setting] = {f"limit {limit}": (limit, 0.01) for limit in LIMITS}
    return fixed | {f"coefficient {error:g}": (None, error) for error in COEFFICIENTS}


def adaptive(level: Level, *, paper: bool) -> str:
    """Return the name of the adaptive limit with the paper's coefficient, or with this library's."""
    return f"coefficient {(PAPER_COEFFICIENT if paper else OWN_COEFFICIENT)[level]:g}"
