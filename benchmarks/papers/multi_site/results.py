"""The stored result of the experiment, and how to read it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.papers.paper import Result

NAMES = {
    "minimum_variance": "MVAgg",
    "inverse_variance": "IVW",
    "sample_size": "AggAll",
    "largest": "AggLargest",
}
"""The paper's names of the rules."""

RULES = tuple(NAMES)

SMOOTH, GLOBAL, MEANS = (
    "exact matching, smooth, record",
    "exact matching, global, record",
    "difference in means, record_within_arm",
)
"""The paper's estimators, with what each protects."""


ENOUGH = 2.0
"""How many standard errors count as a difference."""


@dataclass(frozen=True)
class Row:
    """One setting and estimator: errors of each rule, alpha by alpha.

    Attributes:
        table: The table.
        split: How it is spread over sites.
        estimator: What sites do, and what it protects.
        runs: How many runs there were.
        by: Errors and standard deviations by whose estimator and rule it is.
    """

    table: str
    split: str
    estimator: str
    runs: int
    by: dict[str, Any]

    @property
    def in_the_paper(self) -> bool:
        """Whether the paper has this setting; it has no sites by country."""
        return self.split != "country"

    def errors(self, by: str, rule: str, measure: str = "error") -> list[float]:
        """Return the mean absolute errors of one curve."""
        values: list[float] = self.by[by][rule][measure]
        return values

    def from_truth(self, rule: str) -> list[float]:
        """Return how far our estimates are from the truth."""
        curve = self.by["ours"][rule]
        values: list[float] = curve.get("truth", curve["error"])
        return values


def rows(result: Result, *estimators: str) -> list[Row]:
    """Return the settings in which sites did one of these; without a name, what the paper's sites do."""
    chosen = estimators or (SMOOTH, GLOBAL, MEANS)
    return [
        Row(each["table"], each["split"], name, each["runs"], by)
        for each in result["settings"]
        for name, by in each["curves"].items()
        if name in chosen and (estimators or "paper" in by)
    ]


def row(result: Result, table: str, split: str, estimator: str) -> Row | None:
    """Return one setting, if it was run."""
    found = [each for each in rows(result, estimator) if (each.table, each.split) == (table, split)]
    return found[0] if found else None


def best(row: Row, by: str, place: int, rules: Sequence[str] = RULES) -> list[str]:
    """Return the rules with the smallest error at an alpha; rules that chose the same sites tie."""
    found = {rule: row.errors(by, rule)[place] for rule in rules}
    return [rule for rule, error in found.items() if error <= min(found.values())]


def compared(row: Row, one: str, other: str, place: int) -> int:
    """Return -1 or 1 if one printed rule's error is smaller or larger than another's, 0 if no difference is seen.

    A difference is seen from two standard errors on. All rules pool what the same sites sent, but results hold no
    pairs of runs: the standard error is that of two independent means, which is too large where errors go together.
    """
    errors, sds = ([row.errors("paper", rule, of)[place] for rule in (one, other)] for of in ("error", "sd"))
    gap = errors[0] - errors[1]
    return 0 if abs(gap) <= ENOUGH * math.hypot(*sds) / math.sqrt(row.runs) else 1 if gap > 0 else -1


def over_best(row: Row, by: str, rules: Sequence[str] = RULES) -> Iterator[dict[str, float]]:
    """Yield, alpha by alpha, each rule's error over that of the best rule."""
    for at in zip(*(row.errors(by, rule) for rule in rules), strict=True):
        yield {rule: error / min(at) for rule, error in zip(rules, at, strict=True)}


def mean_ratio(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def share(counted: int, of: int) -> str:
    """Return a count of cells in words."""
    return f"{counted} of {of}"


def number(value: float) -> str:
    """Return an error with two digits, without a leading zero."""
    text = f"{value:.2g}" if value >= 0.001 else f"{value:.5f}".rstrip("0")
    if "e" in text:
        text = f"{value:.0f}"
    return text.removeprefix("0") if text.startswith("0.") else text
