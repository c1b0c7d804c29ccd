"""How much a study should do."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import DataSet, load


@dataclass(frozen=True)
class Setup:
    """What was asked for on the command line.

    Attributes:
        quick: Whether to do just enough to see that it works.
        repeats: Repeats for each setting; None for the study's own number.
        data: A folder with the published data sets; None for synthetic ones alone.
    """

    quick: bool = False
    repeats: int | None = None
    data: Path | None = None

    def times(self, usual: int, quick: int = 2) -> int:
        """How many repeats, where a study would usually do this many."""
        return self.repeats or (quick if self.quick else usual)

    def tables(self) -> list[DataSet]:
        """Return the published data sets, where a folder has them."""
        return [] if self.data is None else [load(name, str(self.data)) for name in ("IHDP", "Lalonde", "ACIC")]
