"""How much a study should do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setup:
    """What was asked for on the command line.

    Attributes:
        quick: Whether to do just enough to see that it works.
        repeats: Repeats for each setting; None for the study's own number.
    """

    quick: bool = False
    repeats: int | None = None

    def times(self, usual: int, quick: int = 2) -> int:
        """How many repeats, where a study would usually do this many."""
        return self.repeats or (quick if self.quick else usual)
