"""The life of a request in a ledger."""

from collections.abc import Sequence

from dpcausal.errors import LedgerError
from dpcausal.ledger.chain import Kind

REQUEST_ORDER: tuple[Kind, ...] = ("grant", "debit", "release")


def check_order(kinds: Sequence[str]) -> None:
    """Raise unless the entries of one request are a grant, then a debit, then a release, each once, up to somewhere."""
    if tuple(kinds) != REQUEST_ORDER[: len(kinds)]:
        raise LedgerError(
            expected="grant, debit and release of each request once and in this order",
            got=f"{', '.join(kinds)} of one request",
            hint="restore the ledger from a copy that verifies; do not release anything before.",
        )
