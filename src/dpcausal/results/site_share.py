"""One site's part in a pooled effect."""

from dataclasses import dataclass

from dpcausal.utils.text import format_number


@dataclass(frozen=True)
class SiteShare:
    """One site's part in a pooled effect.

    Attributes:
        status: `answered`, or why it did not.
        n: Its number of units; None where it did not answer.
        standard_error: The standard error of that, sampling error and privacy noise together.
        weight: Its weight in the pooled effect; 0 where it was left out. None where the sites' sums were added.
    """

    site: str
    status: str
    n: int | None = None
    estimate: float | None = None
    standard_error: float | None = None
    weight: float | None = None

    def __str__(self) -> str:
        words = [f"{self.site}: {self.status}"]
        words += [] if self.n is None else [f"{self.n:,} units"]
        if self.estimate is not None:
            error = "" if self.standard_error is None else f" ± {format_number(self.standard_error)}"
            words.append(f"effect {format_number(self.estimate)}{error}")
        words += [] if self.weight is None or self.estimate is None else [f"weight {self.weight:.1%}"]
        return ", ".join(words)
