"""Who asks a shared ledger, and the most that this requester may spend of its budget."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from dpcausal.guarantee import Event
from dpcausal.ledger.budget import Budget, Spending, Total


@dataclass(frozen=True)
class Requester:
    """Who pays for the next requests of a ledger.

    Attributes:
        name: The name under which the ledger adds up what this requester spends.
        cap: The most that it may ever spend; None for as much as the whole budget.
    """

    name: str
    cap: Budget | None = None


def charged_to(name: str, total: Total, by_requester: Mapping[str, Total]) -> Total:
    """Return the part of a total that counts against a requester's cap: all that was not spent for others.

    What was spent for nobody in particular, such as the loss that a restore records, counts against everyone.
    """
    return reduce(Total.__sub__, (each for other, each in by_requester.items() if other != name), total)


@dataclass(frozen=True)
class Share:
    """What one requester may spend of a ledger's budget, and what is left of it.

    Attributes:
        left: What is left of it now.
        after: What would be left after a study; None where the study does not fit into it.
    """

    requester: str
    cap: Budget
    left: Spending
    after: Spending | None

    @classmethod
    def of(cls, requester: Requester, charged: Total, prices: Iterable[Event] = ()) -> "Share | None":
        """Return the share of a requester with a cap, given what is charged to it; None without a cap."""
        if requester.cap is None:
            return None
        total = reduce(Total.plus, prices, charged)
        after = requester.cap.remaining(total) if requester.cap.covers(total) else None
        return cls(requester.name, requester.cap, requester.cap.remaining(charged), after)

    def __str__(self) -> str:
        return f"of the {self._words(self.cap)} that {self.requester} may spend, {self._words(self.left)} are left"

    def _words(self, part: Budget | Spending) -> str:
        """Return a part of the budget in words, its delta only where there is one to spend."""
        delta = f", delta {max(part.delta, 0.0):g}" if self.cap.delta else ""
        return f"epsilon {max(part.epsilon, 0.0):g}{delta}"
