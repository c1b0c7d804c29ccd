"""What is lost when an older copy of a ledger is put back, and what it may cost.

An answer that was released and is no longer in the ledger may be drawn and released again. So its price is counted
once more. Known are the prices of lost receipts, and those of requests that the copy holds without an answer. The rest
a person has to state.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from dpcausal.errors import LedgerError
from dpcausal.guarantee import Event, Guarantee, Rule
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.witness import Witness
from dpcausal.queries.calibration import SPARE, float_above, gaussian_sd
from dpcausal.queries.privacy_curve import curve_sd
from dpcausal.release import Receipt

Family = Literal["laplace", "smooth"]


@dataclass(frozen=True)
class Lost:
    """The part of a ledger that an older copy lacks.

    Attributes:
        receipts: Receipts of debits that it does not hold, and that no earlier restore counted.
        unanswered: For each request that it holds without an answer, its prices: it may have been answered since.
        entries: The number of entries known to be missing at its end.
        witnessed: Whether a witness confirms this number; without one there may be more.
        restored: Whether the ledger was restored after the copy was made. What was counted then is lost too, and
            numbers of entries say nothing about it, since they begin anew with each restore.
    """

    receipts: tuple[Receipt, ...]
    unanswered: tuple[Sequence[Event], ...]
    entries: int
    witnessed: bool
    restored: bool = False

    @classmethod
    def of(cls, entries: Sequence[Entry], receipts: Iterable[Receipt], witness: Witness | None, opening: str) -> "Lost":
        """Return what the entries of a copy lack of what receipts and a witness know.

        Raises:
            LedgerError: If the witness knows another ledger.
        """
        last = entries[-1].number
        seen, shared = (witness.last(opening), witness.last(opening, last)) if witness else (None, None)
        if shared is not None and entries[shared.number].digest != shared.digest:
            raise LedgerError(
                expected=f"a copy whose entry {shared.number} is the one that the witness recorded",
                got="another entry: this copy is of a ledger that was left behind by an earlier restore",
                hint="restore from a later copy.",
            )
        held = {(entry.number, entry.digest) for entry in entries}
        counted = {digest for entry in entries if entry.kind == "restore" for digest in entry.content["receipts"]}
        known = {each.digest: each for each in receipts if each.entry is not None and each.digest not in counted}
        lost = tuple(each for each in known.values() if (each.entry, each.digest) not in held)
        # After a debit there is at least its release.
        end = max([last, seen.number if seen else last, *((each.entry or 0) + 1 for each in lost)])
        answered = {entry.request for entry in entries if entry.kind == "release"}
        open_ones = tuple(entry.events for entry in entries if entry.kind == "grant" and entry.request not in answered)
        complete = seen is not None and end == last
        since = [each.number for each in witness.since(opening, last)] if witness else []
        restored = any(later <= earlier for earlier, later in pairwise(since))
        return cls(lost, () if complete else open_ones, end - last, seen is not None, restored)

    @property
    def unknown(self) -> int:
        """The largest number of missing answers without a receipt.

        Each of them takes three entries: if its grant is still there, it is among the unanswered ones. A lost receipt
        takes three too, or two where its grant is still there.
        """
        explained = 3 * len(self.receipts) - min(len(self.receipts), len(self.unanswered))
        return max(0, self.entries - explained) // 3

    def events(self, stated: Event | None, rule: Rule) -> list[Event]:
        """Return the prices that are counted as spent once more, in a ledger that adds up prices like this."""
        unanswered = (event for events in self.unanswered for event in events)
        return [*(_price(each, rule) for each in self.receipts), *unanswered, *([stated] if stated else [])]

    def check_stated(self, stated: Event | None) -> None:
        """Raise where a person must state a price and did not."""
        if stated is not None or (self.witnessed and not self.unknown and not self.restored):
            return
        missing = (
            "this ledger was restored after this copy was made, and what was counted then is lost too"
            if self.restored
            else f"{self.entries} entries are missing, of which receipts explain all but {self.unknown} answers"
            if self.witnessed
            else "this ledger has no witness, so the number of missing entries is unknown"
        )
        raise LedgerError(
            expected="the price of every answer that is lost",
            got=missing,
            hint="give all receipts that you can find with --receipts; for the rest, state the most that it may have "
            "cost with --lost-epsilon and --lost-delta, or --lost-epsilon 0 if nothing else was answered.",
        )

    def __str__(self) -> str:
        parts = [f"{self.entries} entries lost at the end", f"{len(self.receipts)} of the lost answers by receipt"]
        parts += [f"{len(self.unanswered)} requests that may have been answered since"] if self.unanswered else []
        parts += [f"up to {self.unknown} answers without a receipt"] if self.unknown else []
        parts += ["restored once more"] if self.restored else []
        return ", ".join(parts if self.witnessed else [*parts, "no witness"])


def stated_event(epsilon: float | None, delta: float, rule: str) -> Event | None:
    """Return the price that a person states for answers without a receipt; None where none is stated.

    Raises:
        LedgerError: Where a sum of epsilons and deltas has no price under the budget's rule.
    """
    if epsilon is None:
        return None
    if not (math.isfinite(epsilon) and epsilon >= 0 and 0 <= delta < 1):
        raise LedgerError(
            expected="a lost epsilon of 0 or more, and a lost delta from 0 to below 1",
            got=f"{epsilon!r} and {delta!r}",
            hint="state the most that the lost answers may have cost together.",
        )
    if rule == "zcdp" and delta > 0:
        raise LedgerError(
            expected="receipts, or a lost epsilon without delta, in a ledger that adds up rho",
            got=f"a lost delta of {delta:g}",
            hint="a sum of epsilons and deltas has no price in rho; find the receipts.",
        )
    family: Family = "laplace" if delta == 0 else "smooth"
    return Event(family=family, epsilon=epsilon, delta=delta, mu=0.0)


def check_line(what: str, text: str) -> None:
    """Raise unless a text is one line without control characters, as it may stand in a ledger."""
    if not (isinstance(text, str) and text.strip() and text.isprintable()):
        raise LedgerError(
            problem=f"{what} must be one line of printable text",
            hint="write who decides this, and why.",
        )


def _price(receipt: Receipt, rule: Rule) -> Event:
    """Return the price of an answer, from its receipt. With a delta and a price in rho it was Gaussian noise.

    A receipt of several queries has the sum of their prices. Which of them had Gaussian noise is unknown: Laplace noise
    has at most mu² = epsilon², and each Gaussian one at most that of all of epsilon and delta.
    """
    Guarantee(epsilon=receipt.epsilon, delta=receipt.delta)  # raises unless these are prices
    if receipt.delta == 0:
        return Event(family="laplace", epsilon=receipt.epsilon, delta=0.0, mu=0.0)
    by_rho = Fraction(gaussian_sd(receipt.epsilon, receipt.delta))
    least = by_rho if rule == "zcdp" else min(by_rho, curve_sd(receipt.epsilon, receipt.delta, 1 - SPARE[0]))
    mu = float_above(1 / least)  # at least as `calibrate` has it
    if receipt.count > 1:
        mu = (1 + 1e-9) * math.hypot(receipt.epsilon, math.sqrt(receipt.count) * mu)
    return Event(family="gaussian", epsilon=receipt.epsilon, delta=receipt.delta, mu=mu)
