"""How much a study should do."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks import datasets
from benchmarks.studies.tables import Table


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

    def tables(self) -> list[Table]:
        """The published data sets, where a folder has them."""
        return [] if self.data is None else [published(name, self.data) for name in ("IHDP", "Lalonde", "ACIC")]


def published(name: str, folder: Path) -> Table:
    """One of the published data sets, with the bounds written down for it."""
    found = datasets.load(name, str(folder))
    return Table(found.name, found.table, found.treatment, found.outcome, found.covariates, found.truth)
