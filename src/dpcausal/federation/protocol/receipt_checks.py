"""Checks of receipts that sites send."""

import re

from dpcausal.release import Receipt


def is_paid(receipt: Receipt, price: Receipt) -> bool:
    """Return whether a receipt shows that a price was debited from a ledger."""
    return (
        (receipt.query, receipt.epsilon, receipt.delta) == (price.query, price.epsilon, price.delta)
        and type(receipt.entry) is int
        and receipt.entry >= 0
        and receipt.site is None
        and _is_digest(receipt.digest)
        and _is_day(receipt.on)
        and type(receipt.stored) is bool
    )


def _is_day(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is not None


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None
